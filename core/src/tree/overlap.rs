//! How much of a prompt each worker holds, by the rule of the deployed Dynamo (reference §6).

use super::{NodeId, OwnerSet, Tree};
use crate::id::{TokensHash, WorkerIx};

/// How a version of Dynamo counts the overlap of a prompt with a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OverlapRule {
    /// 0.8, 0.9: every block on the path that the worker holds counts, holes do not end the count; the walk ends
    /// where no worker holds the block.
    PathNodes,
    /// From 1.0: blocks from the first on without a hole.
    Prefix,
}

impl Tree {
    /// Overlap of `prompt` with every worker, in blocks, written to `out` by worker index. `out` is resized to hold
    /// every worker that ever held a block.
    pub fn overlap(
        &self,
        rule: OverlapRule,
        prompt: impl IntoIterator<Item = TokensHash>,
        out: &mut Vec<u32>,
    ) {
        out.clear();
        out.resize(self.holdings.len(), 0);
        match rule {
            OverlapRule::PathNodes => self.count_path_nodes(prompt, out),
            OverlapRule::Prefix => self.count_prefix(prompt, out),
        }
    }

    /// Nodes along `prompt` as far as somebody holds them, with the owner set's key.
    fn held_path(&self, prompt: impl IntoIterator<Item = TokensHash>) -> impl Iterator<Item = (NodeId, u32)> {
        let mut at = NodeId::ROOT;
        prompt.into_iter().map_while(move |tokens| {
            at = self.families.find(&self.arena, at, tokens.0)?;
            let set = self.arena[at].set();
            (!self.sets.get(set).is_empty()).then_some((at, set.0))
        })
    }

    fn count_path_nodes(&self, prompt: impl IntoIterator<Item = TokensHash>, out: &mut [u32]) {
        // Neighbours share their set: count runs, not blocks.
        let mut run: Option<(NodeId, u32, u32)> = None;
        let mut close = |run: Option<(NodeId, u32, u32)>| {
            if let Some((node, _, len)) = run {
                self.owners(node).iter().for_each(|w| out[w.at()] += len);
            }
        };
        for (node, set) in self.held_path(prompt) {
            match &mut run {
                Some((_, of, len)) if *of == set => *len += 1,
                _ => {
                    close(run);
                    run = Some((node, set, 1));
                }
            }
        }
        close(run);
    }

    fn count_prefix(&self, prompt: impl IntoIterator<Item = TokensHash>, out: &mut [u32]) {
        let mut active: Vec<WorkerIx> = Vec::new();
        let mut last_set = None;
        let mut depth = 0;
        for (node, set) in self.held_path(prompt) {
            if last_set != Some(set) {
                let owners: &OwnerSet = self.owners(node);
                if depth == 0 {
                    active.extend(owners.iter());
                } else {
                    active.retain(|&w| {
                        owners.contains(w) || {
                            out[w.at()] = depth;
                            false
                        }
                    });
                }
                last_set = Some(set);
            }
            if active.is_empty() {
                break;
            }
            depth += 1;
        }
        for w in active {
            out[w.at()] = depth;
        }
    }
}
