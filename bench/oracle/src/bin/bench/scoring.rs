//! How long it takes to score a large cluster for a long prompt, look-up in the tree included, ours and Dynamo's in
//! turns; and to judge a session's decisions again under another setting.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use anyhow::Context;
use dynamo_kv_router::RadixTree;
use dynamo_kv_router::protocols::LocalBlockHash;
use radixscope_insight::counterfactual::{Sample, SampleBuilder, SampledDecision};
use radixscope_model::id::{DecisionId, Millis, TokensHash, WorkerIx};
use radixscope_model::record::Candidate;
use radixscope_oracle::selector::{Selection, Taints};
use radixscope_oracle::{Change, Event, ours, theirs};
use radixscope_router::{Formula, Load, RoutedRequest, RouterSettings, Scores, TieBreak, WorkerInput, score};
use radixscope_state::tree::{OverlapRule, Tree};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::Serialize;

use crate::throughput::{Comparison, compare, quantile};

const WORKERS: u16 = 1_000;
const PROMPT_BLOCKS: usize = 10_000;
const BLOCK_SIZE_TOKENS: u32 = 16;
/// Workers hold beginnings of the prompt of so many lengths: few as with shared system prompts and histories, or one
/// each, which is the most that a look-up can have to do.
const LENGTHS: [(usize, &str); 2] = [(40, "40 lengths held"), (WORKERS as usize, "1,000 lengths held")];

const DECISIONS: u64 = 10_000;
const CANDIDATES: u16 = 16;
const ROUNDS: usize = 31;

/// A decision of a large cluster.
#[derive(Serialize)]
pub(crate) struct Scoring {
    pub(crate) what: &'static str,
    pub(crate) workers: u16,
    pub(crate) prompt_blocks: usize,
    pub(crate) ours_ms: f64,
    pub(crate) theirs_ms: f64,
    #[serde(rename = "duel")]
    pub(crate) comparison: Comparison,
}

/// The decisions of a session under another setting.
#[derive(Serialize)]
pub(crate) struct Counterfactual {
    pub(crate) what: &'static str,
    pub(crate) decisions: u64,
    pub(crate) candidates: u16,
    pub(crate) median_ms: f64,
}

pub(crate) fn measure() -> anyhow::Result<Vec<Scoring>> {
    LENGTHS.iter().map(|&(lengths, what)| measure_one(lengths, what)).collect()
}

fn measure_one(lengths: usize, what: &'static str) -> anyhow::Result<Scoring> {
    let mut rng = Pcg64Mcg::seed_from_u64(7);
    let prompt: Vec<u64> = (0..PROMPT_BLOCKS).map(|_| rng.random()).collect();
    let events: Vec<Event> = (0..WORKERS)
        .map(|worker| {
            let held = (usize::from(worker) % lengths + 1) * PROMPT_BLOCKS / (lengths + 1);
            let blocks = prompt[..held].iter().map(|&tokens| (tokens ^ 1, tokens)).collect();
            Event { worker, change: Change::Stored { parent: None, blocks } }
        })
        .collect();
    let mut tree = Tree::default();
    let mut their_tree = RadixTree::new();
    for (id, event) in (0..).zip(&events) {
        ours::apply(&mut tree, event);
        their_tree.apply_event(theirs::router_event(event, id)).context("a store without parent")?;
    }
    let options = RouterSettings::new(Formula::E);
    let request =
        RoutedRequest::new(PROMPT_BLOCKS as u64 * u64::from(BLOCK_SIZE_TOKENS) + 5, BLOCK_SIZE_TOKENS);
    let mut inputs: Vec<WorkerInput> = (0..WORKERS)
        .map(|_| WorkerInput {
            load: Some(Load {
                active_prefill_tokens: rng.random_range(0..100_000),
                decode_blocks: rng.random_range(0..40_000),
                active_requests: rng.random_range(0..64),
            }),
            ..WorkerInput::default()
        })
        .collect();
    let mut selection = Selection::new(&options, &request, &inputs, &[], &Taints::default());
    let selector = selection.selector();
    let hashes: Vec<TokensHash> = prompt.iter().copied().map(TokensHash).collect();
    let their_hashes: Vec<LocalBlockHash> = prompt.iter().copied().map(LocalBlockHash).collect();

    let (mut overlaps, mut scores) = (Vec::new(), Scores::default());
    let mut our_choice = None;
    let mut our_turn = || {
        let start = Instant::now();
        tree.overlap(OverlapRule::Prefix, hashes.iter().copied(), &mut overlaps);
        for (input, &blocks) in inputs.iter_mut().zip(&overlaps) {
            input.overlap.device = blocks;
        }
        score(&options, &request, &inputs, &mut scores);
        our_choice = scores.choices().next();
        start.elapsed()
    };
    let mut their_choice = None;
    let mut their_turn = || {
        let hashes = their_hashes.clone();
        let start = Instant::now();
        selection.set_device_overlap(their_tree.find_matches(hashes, false).scores);
        their_choice = selection.select(&selector);
        start.elapsed()
    };
    let comparison = compare("decisions", 1, &mut our_turn, &mut their_turn);
    anyhow::ensure!(our_choice.is_some() && our_choice == their_choice, "the choices differ");
    Ok(Scoring {
        what,
        workers: WORKERS,
        prompt_blocks: PROMPT_BLOCKS,
        ours_ms: 1e3 / comparison.ours_per_s,
        theirs_ms: 1e3 / comparison.theirs_per_s,
        comparison,
    })
}

pub(crate) fn counterfactual() -> anyhow::Result<Vec<Counterfactual>> {
    let sample = session()?;
    let setting = |router_temperature| RouterSettings {
        overlap_score_weight: 1.5,
        router_temperature,
        tie_break: TieBreak::Random,
        ..RouterSettings::new(Formula::A)
    };
    let row = |what, took: Vec<f64>| Counterfactual {
        what,
        decisions: DECISIONS,
        candidates: CANDIDATES,
        median_ms: quantile(&took, 0.5),
    };
    let (cold, warm) = (setting(0.0), setting(0.5));
    let sweep = || {
        sample.grid(&[0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0], &[0.0, 0.2, 0.5], |_, _| {
            ControlFlow::Continue(())
        })
    };
    Ok(vec![
        row("one setting, temperature 0", rounds(ROUNDS, || sample.outcome(&cold))),
        row("one setting, temperature 0.5", rounds(ROUNDS, || sample.outcome(&warm))),
        row("sweep of 24 settings", rounds(5, sweep)),
    ])
}

/// Milliseconds of each round.
fn rounds<T>(rounds: usize, mut work: impl FnMut() -> T) -> Vec<f64> {
    let mut once = || {
        let start = Instant::now();
        std::hint::black_box(work());
        start.elapsed()
    };
    (0..rounds).map(|_| once()).map(|took: Duration| took.as_secs_f64() * 1e3).collect()
}

fn session() -> anyhow::Result<Sample> {
    let mut rng = Pcg64Mcg::seed_from_u64(11);
    let mut builder = SampleBuilder::default();
    for at in 0..DECISIONS {
        let isl_tokens: u64 = rng.random_range(200..12_000);
        let full = isl_tokens / u64::from(BLOCK_SIZE_TOKENS);
        let candidates: Vec<Candidate> = (0..CANDIDATES)
            .map(|worker| {
                let overlap = rng.random_range(0..=full);
                let left = isl_tokens - overlap * u64::from(BLOCK_SIZE_TOKENS) + rng.random_range(0..20_000);
                Candidate {
                    worker: WorkerIx(worker.into()),
                    overlap_blocks: overlap as u32,
                    host_blocks: 0,
                    disk_blocks: 0,
                    prefill_blocks: left as f64 / f64::from(BLOCK_SIZE_TOKENS),
                    decode_blocks: f64::from(rng.random_range(0..9_000_u32)),
                    cost: 0.0,
                    tree_size: Some(rng.random_range(0..60_000)),
                }
            })
            .collect();
        let decision = SampledDecision {
            id: DecisionId(at),
            at_ms: Millis(at * 40),
            turn: at,
            ended_ms: Some(Millis(at * 40 + rng.random_range(500..40_000))),
            isl_tokens: Some(isl_tokens),
            ttft_ms: None,
            block_size_tokens: Some(BLOCK_SIZE_TOKENS),
            chosen: rng.random_range(0..CANDIDATES),
        };
        let added = builder.push(&decision, &RouterSettings::new(Formula::A), &candidates);
        anyhow::ensure!(added.is_ok(), "a decision was left out: {added:?}");
    }
    Ok(builder.finish())
}
