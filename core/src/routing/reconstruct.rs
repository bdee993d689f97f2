//! What every worker would have cost a request, computed from the tree and the active requests as they are now.

use super::active::ActiveSequences;
use super::paths::{Prompt, path_end};
use crate::cluster::{Cluster, WorkerState};
use crate::id::{TokensHash, WorkerIx};
use crate::record::{Candidate, PathEnd};
use crate::router::cost::{self, Common, Load, Overlap, Request, WorkerInput};
use crate::router::{Formula, Options};
use crate::tree::{OverlapRule, Tree};

/// More candidates than this are not reconstructed: one decision would outweigh all others kept.
const MAX_CANDIDATES: usize = 1 << 12;

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) formula: Formula,
    /// Overlap score weight or prefill load scale.
    pub(super) weight: f64,
    pub(super) isl_tokens: Option<u64>,
    pub(super) block_size_tokens: Option<u32>,
}

/// What was found.
pub(super) struct Found {
    /// By worker index; empty where prompt length or block size are unknown.
    pub(super) candidates: Vec<Candidate>,
    pub(super) path: Option<PathEnd>,
}

/// Memory to be used again.
#[derive(Default)]
pub(super) struct Reconstructor {
    chain: Vec<u64>,
    local: Vec<TokensHash>,
    overlaps: Vec<u32>,
    workers: Vec<WorkerIx>,
    inputs: Vec<WorkerInput>,
}

impl Reconstructor {
    /// Blocks of `prompt` that `worker` holds, by the rule of Dynamo from 1.0 on.
    pub(super) fn overlap(&mut self, tree: &Tree, prompt: Prompt<'_>, worker: WorkerIx) -> u32 {
        prompt.local(tree, &mut self.local);
        tree.overlap(OverlapRule::Prefix, self.local.iter().copied(), &mut self.overlaps);
        self.overlaps.get(worker.at()).copied().unwrap_or(0)
    }

    /// Weighs all workers that the router could have chosen instead of `chosen`: those of the same component that are
    /// not known to be gone.
    pub(super) fn candidates(
        &mut self,
        cluster: &Cluster,
        active: &ActiveSequences,
        chosen: WorkerIx,
        prompt: Prompt<'_>,
        asked: &Asked,
        gone: impl Fn(WorkerIx) -> bool,
    ) -> Found {
        let Self { chain, local, overlaps, workers, inputs } = self;
        prompt.local(cluster.tree(), local);
        let path = path_end(cluster.tree(), local);
        let mut found = Found { candidates: Vec::new(), path };
        let (Some(isl_tokens), Some(block_size_tokens)) = (asked.isl_tokens, asked.block_size_tokens) else {
            return found;
        };
        let Some(like) = cluster.worker(chosen) else { return found };
        cluster.tree().overlap(rule(asked.formula), local.iter().copied(), overlaps);
        prompt.chain(chain);
        workers.clear();
        inputs.clear();
        let peers = cluster.workers().iter().enumerate().filter(|(_, worker)| is_peer(worker, like));
        for (ix, _) in peers.take(MAX_CANDIDATES) {
            let worker = WorkerIx(ix as u16);
            if gone(worker) && worker != chosen {
                continue;
            }
            let load = active.load(worker);
            let overlap_blocks = overlaps.get(ix).copied().unwrap_or(0);
            workers.push(worker);
            inputs.push(WorkerInput {
                load: Some(Load {
                    active_prefill_tokens: load.prefill_tokens,
                    decode_blocks: load.blocks + active.new_blocks(worker, chain),
                    active_requests: load.requests.into(),
                }),
                overlap: Overlap::device(overlap_blocks),
                taint_weight: 0.0,
                tree_size_blocks: tree_size_blocks(cluster, worker, overlap_blocks),
            });
        }
        let (options, common) = (options(asked), Common::of(asked.formula, inputs));
        let request = Request::new(isl_tokens, block_size_tokens);
        found.candidates.extend(workers.iter().zip(inputs.iter()).map(|(&worker, input)| {
            let terms = cost::terms(&options, &request, common, input);
            Candidate {
                worker,
                overlap_blocks: input.overlap.device,
                prefill_blocks: terms.prefill_blocks,
                decode_blocks: terms.decode_blocks,
                cost: terms.cost,
                tree_size: (asked.formula == Formula::A).then_some(input.tree_size_blocks),
            }
        }));
        found
    }
}

/// How the deployed router counts overlap (reference §6).
fn rule(formula: Formula) -> OverlapRule {
    match formula {
        Formula::A => OverlapRule::PathNodes,
        _ => OverlapRule::Prefix,
    }
}

fn options(asked: &Asked) -> Options {
    let mut options = Options::new(asked.formula);
    options.set_prefill_factor(asked.weight);
    options
}

/// As the router of 0.8 to 1.1 knows it: the size of a worker's index, 0 without overlap.
pub(crate) fn tree_size_blocks(cluster: &Cluster, worker: WorkerIx, overlap_blocks: u32) -> u64 {
    if overlap_blocks > 0 { cluster.blocks(worker).unwrap_or(0) } else { 0 }
}

/// Whether a router could choose either: workers of one component, as far as components are known.
pub(crate) fn is_peer(worker: &WorkerState, like: &WorkerState) -> bool {
    let agree = |a: &str, b: &str| a.is_empty() || b.is_empty() || a == b;
    agree(&worker.namespace, &like.namespace) && agree(&worker.component, &like.component)
}
