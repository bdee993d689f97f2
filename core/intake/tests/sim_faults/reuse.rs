//! How much of each prompt was cached where, block for block as the simulated engines had it.

use std::collections::HashMap;

use radixscope_captures::Simulated;
use radixscope_dynamo::envelope;
use radixscope_dynamo::kv_event::{KvData, KvEvents};
use radixscope_intake::{Intake, Received};
use radixscope_model::id::{BlockHash, Millis, Worker};
use radixscope_model::record::{GoneReason, SourceKind};
use radixscope_sim::{Channel, Config, DecisionRecord, Simulation};
use radixscope_state::cluster::{Cluster, DecisionEntry};

use crate::observer::{START, small};

/// When blocks were first stored, and last removed by whom, as the engines' events say; times in milliseconds.
#[derive(Default)]
struct Blocks {
    stored: HashMap<BlockHash, u64>,
    removed: HashMap<BlockHash, Vec<(u64, u64)>>,
}

impl Blocks {
    fn take(&mut self, at: Millis, payload: &[u8], events: &mut KvEvents) {
        let opened = envelope::open(payload).expect("sound");
        let (payload, format) = opened.payload();
        events.decode(payload, format).expect("sound");
        for event in &events.events {
            match &event.data {
                KvData::Stored { blocks, .. } => {
                    for block in events.blocks_of(blocks) {
                        self.stored.entry(block.block_hash).or_insert(at.0);
                    }
                }
                KvData::Removed { hashes } => {
                    for &hash in events.removed_of(hashes) {
                        self.removed.entry(hash).or_default().push((at.0, event.worker.id.0));
                    }
                }
                KvData::Cleared => {}
            }
        }
    }
}

/// Decisions with all that the router knew, and the state that was made of what the deployment emitted.
fn run(config: Config, seconds: u64) -> (Vec<DecisionRecord>, Blocks, Cluster, Simulation) {
    let mut simulation = Simulation::new(config, START).expect("sound");
    let (mut simulated, mut blocks, mut events) =
        (Simulated::default(), Blocks::default(), KvEvents::default());
    let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
    let source = intake.source("simulated", SourceKind::Simulator, START, &mut cluster).expect("sound");
    let mut decisions: Vec<DecisionRecord> = Vec::new();
    for step in 1..=seconds * 4 {
        let until = Millis(START.0 + step * 250);
        simulation.run_until(until, &mut |m| {
            if m.channel == Channel::Nats && m.name.ends_with("kv-events") {
                blocks.take(m.at_ms, m.payload, &mut events);
            }
            let received = Received { source, at_ms: m.at_ms, payload: simulated.payload(&m) };
            intake.handle(&received, &mut cluster);
        });
        let last = decisions.last().map_or(0, |of| of.at_ms.0);
        decisions.extend(simulation.report().decisions.iter().filter(|of| of.at_ms.0 > last).cloned());
        if step % 4 == 0 {
            intake.flush(until, &mut cluster);
        }
    }
    (decisions, blocks, cluster, simulation)
}

/// Compares every decision. Gives blocks: of prompts, seen, held, held by the chosen worker; and how many decisions lost blocks to an
/// eviction.
fn compare(config: Config, seconds: u64) -> ([u64; 4], usize) {
    let (decisions, blocks, cluster, simulation) = run(config, seconds);
    let mut sums = [0; 4];
    let (mut compared, mut evicted) = (0, 0);
    for truth in &decisions {
        let chosen = Worker::new(simulation.worker_id(truth.worker), 0);
        let ix = cluster.worker_ix(chosen).expect("sound");
        let of_truth = |entry: &&DecisionEntry| {
            let decision = &entry.decision;
            (decision.worker, decision.isl_tokens, entry.decided_ms())
                == (ix, Some(truth.isl_tokens.into()), truth.at_ms)
        };
        let mut found = cluster.decisions().newest_first().filter(of_truth);
        let (Some(entry), None) = (found.next(), found.next()) else { continue };
        let Some(reuse) = entry.reuse else { continue };
        compared += 1;
        let overlap = |at: usize| truth.candidates[at].candidate.overlap_blocks;
        let held = (0..truth.candidates.len()).map(overlap).max().expect("sound");
        let seen_by = |before: &dyn Fn(u64) -> bool| {
            let is_seen = |hash: &&BlockHash| blocks.stored.get(*hash).is_some_and(|&at| before(at));
            truth.prompt.iter().take_while(is_seen).count() as u32
        };
        // What was stored in the same millisecond may have been stored before or after.
        let seen = seen_by(&|at| at < truth.at_ms.0)..=seen_by(&|at| at <= truth.at_ms.0);
        assert_eq!(reuse.prompt_blocks as usize, truth.prompt.len(), "{truth:?}");
        assert_eq!((reuse.held_blocks, reuse.eligible_blocks), (held, held), "{entry:?}");
        assert_eq!(reuse.chosen_blocks, overlap(usize::from(truth.worker - truth.first_worker)), "{entry:?}");
        assert!(seen.contains(&reuse.seen_blocks), "{} of {seen:?}: {reuse:?}", reuse.seen_blocks);
        assert_eq!(reuse.gone.is_some(), reuse.seen_blocks > reuse.held_blocks, "{reuse:?}");
        if let Some(gone) = reuse.gone {
            let hash = truth.prompt[held as usize];
            let (at, worker) =
                blocks.removed[&hash].iter().rfind(|(at, _)| *at <= truth.at_ms.0).copied().expect("sound");
            assert_eq!(cluster.worker(gone.worker).expect("sound").id.id.0, worker, "{reuse:?}");
            assert!(gone.at_ms.0 <= at && at < gone.at_ms.0 + 100, "{at}: {reuse:?}");
            assert_eq!(gone.why, GoneReason::Evicted);
            evicted += 1;
        }
        let of = [reuse.prompt_blocks, reuse.seen_blocks, reuse.held_blocks, reuse.chosen_blocks];
        sums.iter_mut().zip(of).for_each(|(sum, of)| *sum += u64::from(of));
    }
    assert!(compared * 10 >= decisions.len() * 9, "{compared} of {} decisions", decisions.len());
    (sums, evicted)
}

#[test]
fn the_reuse_of_each_prompt_is_that_of_the_simulated_caches() {
    // Conversations go on longer than caches hold them.
    let mut config = Config { concurrency: 160, ..small(None) };
    config.workload.think_ms = (2_000, 20_000);
    let (sums, evicted) = compare(config, 120);
    assert!(sums.is_sorted_by(|a, b| a > b), "each step loses some: {sums:?}");
    assert!(evicted > 50, "{evicted}");
}
