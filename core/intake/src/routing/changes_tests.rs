//! What the ring of changes and the past tree know, one change at a time.

use std::borrow::Cow;

use super::super::past::Past;
use super::*;
use radixscope_model::id::{Millis, PoolIx, Seq, Slot, SourceIx, Worker};
use radixscope_model::record::{Block, DepartureCause, Entry, SourceKind, Tier};
use radixscope_state::cluster::TierPaths;
use radixscope_state::requests::Prompt;
use radixscope_state::tree::OverlapRule;

/// Two workers, and a prompt whose blocks have the tokens 1, 2, 3 ….
struct Scenario {
    cluster: Cluster,
    changes: TreeChanges,
}

impl Scenario {
    fn new() -> Self {
        let mut scene = Self { cluster: Cluster::default(), changes: TreeChanges::default() };
        scene.pass(0, Record::Source { source: SourceIx(0), name: "n".into(), kind: SourceKind::Nats });
        for w in 0..2 {
            let id = Worker::new(100, w);
            scene.pass(0, Record::new_worker(WorkerIx(w), id, "dynamo", "dynamo"));
        }
        scene
    }

    fn pass(&mut self, ms: u64, record: Record<'_>) {
        self.changes.observe(Micros::of(Millis(ms)), &record, &self.cluster);
        self.cluster.follow_blocks(self.changes.follow());
        let seq = Seq(self.cluster.seq().0 + 1);
        let entry = Entry { at_ms: Millis(ms), record };
        self.cluster.fold(seq, &entry);
        self.changes.folded(&entry.record, &self.cluster);
    }

    /// `worker` stores the blocks `from..=to` of the prompt.
    fn stored(&mut self, ms: u64, worker: u16, from: u64, to: u64) {
        let block = |n: u64| Block { block_hash: BlockHash(n + 500), tokens_hash: TokensHash(n) };
        let blocks: Vec<Block> = (from..=to).map(block).collect();
        let parent = (from > 1).then(|| BlockHash(from - 1 + 500));
        self.pass(ms, Record::Stored { worker: WorkerIx(worker.into()), parent, blocks: blocks.into() });
    }

    fn removed(&mut self, ms: u64, worker: u16, blocks: impl IntoIterator<Item = u64>) {
        let hashes: Vec<BlockHash> = blocks.into_iter().map(|n| BlockHash(n + 500)).collect();
        self.pass(ms, Record::Removed { worker: WorkerIx(worker.into()), hashes: hashes.into() });
    }

    /// What both workers held of the first seven blocks, and how far anybody did.
    fn at(&self, rule: OverlapRule, ms: u64) -> (u32, u32, u32) {
        let (mut past, mut out) = (Past::default(), Vec::new());
        let prompt: Vec<u64> = (1..=7).collect();
        let (tree, at) = (self.cluster.tree(PoolIx(0)), Micros::of(Millis(ms)));
        past.load(&self.cluster, PoolIx(0), &self.changes, Prompt::Local(&prompt), Micros::default());
        let depth = past.overlap(tree, rule, at, &mut out);
        let of = |w: usize| out.get(w).copied().unwrap_or(0);
        (of(0), of(1), depth)
    }

    fn knows(&self, worker: u16, ms: u64) -> bool {
        self.changes.knows(WorkerIx(worker.into()), Micros::of(Millis(ms)))
    }
}

const PREFIX: OverlapRule = OverlapRule::Prefix;

#[test]
fn a_block_stored_since_was_not_there() {
    let mut scene = Scenario::new();
    scene.changes.need();
    scene.stored(10, 0, 1, 3);
    scene.stored(20, 0, 4, 5);
    scene.stored(30, 1, 1, 2);
    // Stored again: nothing changes.
    scene.stored(40, 0, 1, 5);
    assert_eq!(scene.at(PREFIX, 9), (0, 0, 0));
    assert_eq!(scene.at(PREFIX, 10), (3, 0, 3));
    assert_eq!(scene.at(PREFIX, 29), (5, 0, 5));
    assert_eq!(scene.at(PREFIX, 40), (5, 2, 5));
    assert_eq!(scene.changes.blocks.len(), 7);
}

#[test]
fn a_block_removed_since_was_there_though_the_tree_has_lost_it() {
    let mut scene = Scenario::new();
    scene.changes.need();
    scene.stored(10, 0, 1, 5);
    scene.removed(20, 0, [5, 4]);
    assert_eq!(scene.cluster.tree(PoolIx(0)).allocated(), 3);
    assert_eq!(scene.at(PREFIX, 19), (5, 0, 5));
    assert_eq!(scene.at(PREFIX, 20), (3, 0, 3));
    scene.removed(30, 0, [3, 2, 1]);
    scene.stored(40, 0, 1, 2);
    assert_eq!(scene.at(PREFIX, 19), (5, 0, 5));
    assert_eq!(scene.at(PREFIX, 29), (3, 0, 3));
    assert_eq!(scene.at(PREFIX, 30), (0, 0, 0));
    assert_eq!(scene.at(PREFIX, 40), (2, 0, 2));
}

#[test]
fn holes_end_a_prefix_and_not_a_path() {
    let mut scene = Scenario::new();
    scene.changes.need();
    scene.stored(10, 0, 1, 5);
    scene.stored(10, 1, 1, 4);
    scene.removed(20, 0, [2]);
    scene.removed(30, 1, [2]);
    assert_eq!(scene.at(PREFIX, 19), (5, 4, 5));
    assert_eq!(scene.at(PREFIX, 20), (1, 4, 5));
    assert_eq!(scene.at(OverlapRule::PathNodes, 19), (5, 4, 5));
    assert_eq!(scene.at(OverlapRule::PathNodes, 20), (4, 4, 5));
    assert_eq!(scene.at(OverlapRule::PathNodes, 30), (1, 1, 1), "no worker holds the second block");
}

#[test]
fn a_chain_of_a_prompt_finds_blocks_that_the_tree_has_lost() {
    let mut scene = Scenario::new();
    scene.changes.need();
    scene.stored(10, 0, 1, 5);
    scene.removed(20, 0, [5, 4, 3, 2, 1]);
    let local: Vec<u64> = (1..=7).collect();
    let mut chain = Vec::new();
    Prompt::Local(&local).chain(&mut chain);
    let (mut past, mut out) = (Past::default(), Vec::new());
    past.load(&scene.cluster, PoolIx(0), &scene.changes, Prompt::Chain(&chain), Micros::default());
    past.overlap(scene.cluster.tree(PoolIx(0)), PREFIX, Micros::of(Millis(19)), &mut out);
    assert_eq!(out[0], 5);
}

#[test]
fn what_was_dropped_at_once_was_held_before() {
    let gone = Record::Left { worker: WorkerIx(0), why: DepartureCause::Health };
    let one = Record::Cleared { worker: WorkerIx(0), all_ranks: false };
    for record in [gone, one] {
        let mut scene = Scenario::new();
        scene.changes.need();
        scene.stored(10, 0, 1, 3);
        scene.pass(20, record);
        assert_eq!((scene.knows(0, 19), scene.knows(1, 19)), (true, true));
        assert_eq!((scene.at(PREFIX, 19), scene.at(PREFIX, 20)), ((3, 0, 3), (0, 0, 0)));
    }
    let mut scene = Scenario::new();
    scene.changes.need();
    scene.stored(10, 0, 1, 3);
    scene.stored(10, 1, 1, 2);
    scene.pass(20, Record::Cleared { worker: WorkerIx(0), all_ranks: true });
    assert_eq!((scene.at(PREFIX, 19), scene.at(PREFIX, 20)), ((3, 2, 3), (0, 0, 0)));
}

#[test]
fn of_a_worker_that_held_very_much_it_is_not_known_what_it_held_before_it_left() {
    let mut scene = Scenario::new();
    scene.changes.need();
    for first in (0..=MAX_EMPTIED).step_by(1 << 10) {
        scene.stored(10, 0, 1 + first, first + (1 << 10));
    }
    scene.pass(20, Record::Left { worker: WorkerIx(0), why: DepartureCause::Health });
    assert_eq!((scene.knows(0, 19), scene.knows(0, 20), scene.knows(1, 19)), (false, true, true));
}

#[test]
fn nothing_is_kept_until_a_prompt_is_reported_and_the_past_begins_there() {
    let mut scene = Scenario::new();
    scene.stored(10, 0, 1, 3);
    assert!(scene.changes.blocks.is_empty());
    scene.changes.need();
    assert_eq!((scene.knows(0, 9), scene.knows(0, 10)), (false, true), "nothing changed since");
    scene.stored(20, 0, 4, 4);
    assert_eq!(scene.at(PREFIX, 10), (3, 0, 3));
}

#[test]
fn a_log_that_reports_no_prompt_costs_nothing_after_its_first_choice() {
    let mut scene = Scenario::new();
    scene.changes.expect();
    scene.stored(10, 0, 1, 3);
    assert_eq!(scene.changes.blocks.len(), 3);
    scene.changes.forgo();
    scene.changes.expect();
    scene.stored(20, 0, 4, 5);
    assert!(scene.changes.blocks.is_empty());
    scene.changes.need();
    scene.changes.forgo();
    scene.stored(30, 0, 6, 6);
    assert_eq!((scene.changes.blocks.len(), scene.knows(0, 19), scene.knows(0, 20)), (1, false, true));
}

#[test]
fn the_past_is_bounded_in_time_and_number_and_says_how_far_it_reaches() {
    let mut scene = Scenario::new();
    scene.changes.need();
    scene.stored(10, 0, 1, 1);
    scene.stored(20, 0, 2, 2);
    scene.stored(20 + KEPT_MS, 0, 3, 3);
    assert_eq!((scene.changes.blocks.len(), scene.knows(0, 9), scene.knows(0, 10)), (2, false, true));
    for n in 0..=MAX_CHANGES as u64 {
        let at = Micros::of(Millis(30 + KEPT_MS + n / 1_000));
        let block = ChangedBlock::new(BlockHash(n), TokensHash(n), None, false);
        scene.changes.push(at, WorkerIx(0), None, &[block]);
    }
    assert_eq!(scene.changes.blocks.len(), MAX_CHANGES);
    assert!(!scene.knows(0, 29 + KEPT_MS));
}

#[test]
fn clocks_that_differ_a_little_hide_no_change() {
    let mut scene = Scenario::new();
    scene.changes.need();
    scene.stored(50, 0, 1, 3);
    // Another publisher is behind.
    scene.stored(40, 1, 1, 2);
    assert_eq!(scene.at(PREFIX, 45), (0, 2, 2));
    assert_eq!(scene.at(PREFIX, 39), (0, 0, 0));
    assert_eq!(scene.at(PREFIX, 50), (3, 2, 3));
}

/// What happens in the random history below: a worker stores a prompt down to a depth, or drops a block of one.
#[derive(Clone, Copy, Debug)]
enum Act {
    Store { worker: u16, prompt: usize, from: usize, to: usize },
    Drop { worker: u16, prompt: usize, at: usize },
    Clear { worker: u16 },
}

/// Prompts that share beginnings and repeat tokens.
const PROMPTS: [[u64; 5]; 4] = [[1, 1, 2, 1, 1], [1, 1, 2, 3, 1], [1, 2, 1, 2, 1], [2, 1, 1, 1, 2]];

fn act() -> impl proptest::strategy::Strategy<Value = Act> {
    use proptest::prelude::*;
    let worker = 0..3_u16;
    prop_oneof![
        6 => (worker.clone(), 0..4_usize, 0..5_usize, 1..=5_usize).prop_map(|(worker, prompt, from, to)| {
            Act::Store { worker, prompt, from: from.min(to - 1), to }
        }),
        6 => (worker.clone(), 0..4_usize, 0..5_usize).prop_map(|(worker, prompt, at)| Act::Drop { worker, prompt, at }),
        1 => worker.prop_map(|worker| Act::Clear { worker }),
    ]
}

/// The name of a block: of its whole path, and of the worker where `own` names are given.
fn name(path: &[u64], worker: u16, own: bool) -> BlockHash {
    let path = path.iter().fold(1, |name, tokens| name * 10 + tokens);
    BlockHash(path * 10 + if own { u64::from(worker) } else { 0 })
}

/// Overlap of every prompt with every worker, and its depth, by looking at the tree as it is.
fn looked_up(tree: &Tree, rule: OverlapRule) -> Vec<Vec<u32>> {
    PROMPTS
        .iter()
        .map(|prompt| {
            let mut out = Vec::new();
            tree.overlap(rule, prompt.iter().map(|&tokens| TokensHash(tokens)), &mut out);
            out.resize(3, 0);
            out
        })
        .collect()
}

proptest::proptest! {
    #[test]
    fn the_past_is_what_looking_then_would_have_shown(
        acts in proptest::collection::vec((act(), 0..3_u64), 1..60),
        own in proptest::bool::ANY,
    ) {
        // Where a worker has holes and names of its own, what lies below them is not found again: then blocks go from
        // the end on, as engines drop them.
        let rule = if own { PREFIX } else { OverlapRule::PathNodes };
        let mut scene = Scenario::new();
        let id = Worker::new(7, 0);
        scene.pass(0, Record::new_worker(WorkerIx(2), id, "dynamo", "dynamo"));
        scene.changes.need();
        let mut ms = 1;
        let mut shown = vec![(0, looked_up(scene.cluster.tree(PoolIx(0)), rule))];
        for (act, later) in acts {
            ms += later;
            match act {
                Act::Store { worker, prompt, from, to } => {
                    let prompt = &PROMPTS[prompt];
                    let parent = (from > 0).then(|| name(&prompt[..from], worker, own));
                    if parent.is_some_and(|hash| scene.cluster.tree(PoolIx(0)).find(Slot(worker), hash).is_none()) {
                        continue;
                    }
                    let block = |at: usize| {
                        let block_hash = name(&prompt[..=at], worker, own);
                        Block { block_hash, tokens_hash: TokensHash(prompt[at]) }
                    };
                    let blocks: Vec<Block> = (from..to).map(block).collect();
                    scene.pass(ms, Record::Stored { worker: WorkerIx(worker.into()), parent, blocks: blocks.into() });
                }
                Act::Drop { worker, prompt, at } => {
                    let dropped = &PROMPTS[prompt][..=at];
                    let mut paths = vec![dropped];
                    if own {
                        let below = PROMPTS.iter().filter(|prompt| prompt.starts_with(dropped));
                        paths = below.flat_map(|prompt| (at + 1..=5).map(move |len| &prompt[..len])).collect();
                        paths.sort_by_key(|path| std::cmp::Reverse(path.len()));
                    }
                    let hashes: Vec<_> = paths.iter().map(|path| name(path, worker, own)).collect();
                    scene.pass(ms, Record::Removed { worker: WorkerIx(worker.into()), hashes: hashes.into() });
                }
                Act::Clear { worker } => {
                    scene.pass(ms, Record::Cleared { worker: WorkerIx(worker.into()), all_ranks: false });
                }
            }
            shown.retain(|(at, _)| *at != ms);
            shown.push((ms, looked_up(scene.cluster.tree(PoolIx(0)), rule)));
        }
        let mut past = Past::default();
        let mut out = Vec::new();
        for (at, then) in &shown {
            for (prompt, then) in PROMPTS.iter().zip(then) {
                let time = Micros::of(Millis(*at));
                past.load(&scene.cluster, PoolIx(0), &scene.changes, Prompt::Local(prompt), Micros::default());
                past.overlap(scene.cluster.tree(PoolIx(0)), rule, time, &mut out);
                out.resize(3, 0);
                for worker in (0..3_u16).filter(|&worker| scene.knows(worker, *at)) {
                    let all_known = (0..3).all(|worker| scene.knows(worker, *at));
                    // How far a path reaches depends on all workers.
                    if all_known || rule == PREFIX {
                        let worker = usize::from(worker);
                        proptest::prop_assert_eq!(out[worker], then[worker], "worker {} at {}", worker, at);
                    }
                }
            }
        }
    }
}

/// What a worker had in host memory beyond `device` blocks on its device.
fn host_at(scene: &Scenario, worker: u16, device: u32, ms: u64) -> u32 {
    let mut past = Past::default();
    let (prompt, pool, at): (Vec<u64>, _, _) = ((1..=7).collect(), PoolIx(0), Micros::of(Millis(ms)));
    past.load(&scene.cluster, pool, &scene.changes, Prompt::Local(&prompt), Micros::default());
    let mut tiers = TierPaths::default();
    tiers.follow(&scene.cluster, pool, past.prompt());
    past.load_tiers(&scene.cluster, pool, &tiers, at);
    let slot = WorkerIx(worker.into()).slot();
    let was = |tier, at| past.was_in_tier(tier, slot, at);
    tiers.beyond_at(&scene.cluster, pool, WorkerIx(worker.into()), device, was).host
}

#[test]
fn blocks_in_host_memory_are_known_as_they_were() {
    let mut scene = Scenario::new();
    scene.changes.need();
    scene.stored(10, 0, 1, 3);
    scene.stored(10, 1, 1, 7);
    let blocks = |numbers: std::ops::RangeInclusive<u64>| -> Vec<Block> {
        numbers.map(|n| Block { block_hash: BlockHash(n + 500), tokens_hash: TokensHash(n) }).collect()
    };
    let tier = Tier::Host;
    let stored = |parent: u64, of| Record::TierStored {
        worker: WorkerIx(0),
        tier,
        parent: Some(BlockHash(parent + 500)),
        blocks: Cow::Owned(of),
    };
    // The parent of the first is on the device only, that of the second in host memory.
    scene.pass(20, stored(3, blocks(4..=5)));
    scene.pass(30, stored(5, blocks(6..=7)));
    let hashes = Cow::Owned(vec![BlockHash(506), BlockHash(507)]);
    scene.pass(40, Record::TierRemoved { worker: WorkerIx(0), tier, hashes });
    for (ms, expected) in [(10, 0), (20, 2), (30, 4), (35, 4), (40, 2), (50, 2)] {
        assert_eq!(host_at(&scene, 0, 3, ms), expected, "at {ms} ms");
        assert_eq!(host_at(&scene, 1, 3, ms), 0, "another worker at {ms} ms");
    }
    // What changed below is no change on the devices.
    assert_eq!(scene.at(OverlapRule::Prefix, 35), (3, 7, 7));
    scene.pass(60, Record::TierCleared { worker: WorkerIx(0), tier });
    assert!(scene.knows(0, 60) && scene.knows(0, 59));
    assert_eq!((host_at(&scene, 0, 3, 59), host_at(&scene, 0, 3, 60)), (2, 0));
}

#[test]
fn what_a_worker_held_when_it_left_is_gone_though_another_one_stored_it_before_that_was_known() {
    let mut scene = Scenario::new();
    scene.changes.need();
    scene.changes.begin_gone(Millis(1));
    scene.stored(10, 0, 1, 3);
    scene.stored(10, 1, 1, 1);
    // Worker 0 left at 20; that is received when worker 1 has stored the second block.
    scene.stored(30, 1, 2, 2);
    scene.pass(20, Record::Left { worker: WorkerIx(0), why: DepartureCause::Log });
    let mut chain = Vec::new();
    Prompt::Local(&[1, 2, 3]).chain(&mut chain);
    let gone = |block: usize| {
        // Departures are retained from 2025 on.
        let at = Micros::of(Millis(1_900_000_000_000));
        scene.changes.gone().find(PoolIx(0), BlockHash(chain[block]), at).map(|gone| (gone.worker, gone.why))
    };
    assert_eq!(gone(0), None, "worker 1 held it too");
    assert_eq!([gone(1), gone(2)], [Some((WorkerIx(0), GoneReason::Left)); 2]);
    assert_eq!(scene.at(PREFIX, 25), (0, 1, 1));
}
