//! Two states of hand-made workers and of random ones, against plain sets.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use radixscope_model::id::{BlockHash, DecisionId, Seq, TokensHash};
use radixscope_model::record::{
    Block, Decision, DecisionSource, DepartureCause, Entry, ProcessRole, Progress, Record, Scrape,
};

const NOW: u64 = 1_800_000_000_000;

/// A state that grows.
#[derive(Default)]
struct Stage {
    cluster: Cluster,
    at: u64,
    decisions: u64,
}

impl Stage {
    fn fold(&mut self, record: Record<'_>) {
        let seq = Seq(self.cluster.seq().0 + 1);
        self.cluster.fold(seq, &Entry { at_ms: Millis(NOW + self.at), record });
    }

    fn pass(&mut self, ms: u64) {
        self.at += ms;
    }

    fn worker(&mut self, id: u64, component: &'static str) -> WorkerIx {
        let worker = WorkerIx(self.cluster.workers().len() as u32);
        let id = Worker::new(id, 0);
        self.fold(Record::new_worker(worker, id, "dynamo", component));
        worker
    }

    fn store(&mut self, worker: WorkerIx, parent: Option<u64>, blocks: impl IntoIterator<Item = u64>) {
        let blocks: Vec<Block> = blocks.into_iter().map(block).collect();
        self.fold(Record::Stored { worker, parent: parent.map(BlockHash), blocks: blocks.into() });
    }

    fn remove(&mut self, worker: WorkerIx, blocks: impl IntoIterator<Item = u64>) {
        let hashes: Vec<BlockHash> = blocks.into_iter().map(BlockHash).collect();
        self.fold(Record::Removed { worker, hashes: hashes.into() });
    }

    fn decide(&mut self, worker: WorkerIx, isl: u64, overlap: u64, ttft_ms: u64) {
        self.decisions += 1;
        let id = DecisionId(self.decisions);
        self.fold(Record::Decision(Box::new(Decision {
            isl_blocks: Some(isl),
            overlap_blocks: Some(overlap),
            ..Decision::new(id, worker, DecisionSource::Log)
        })));
        let ended_ms = Some(Millis(NOW + self.at));
        let progress = Progress { ttft_us: Some(ttft_ms * 1_000), ended_ms, ..Progress::default() };
        self.fold(Record::Progress { decision: id, progress: Box::new(progress) });
    }

    fn mark(&self) -> (Cluster, Millis) {
        (self.cluster.copy_without_forests(), Millis(NOW + self.at))
    }
}

fn block(t: u64) -> Block {
    Block { block_hash: BlockHash(t), tokens_hash: TokensHash(t) }
}

fn between(a: &(Cluster, Millis), b: &(Cluster, Millis)) -> Changes {
    let [a, b] = [a, b].map(|of| ComparedState { cluster: &of.0, at: of.1, epoch: 1 });
    Changes::between(a, b, false)
}

#[test]
fn who_is_in_one_recording_only_neither_came_nor_left() {
    let (mut a, mut b) = (Stage::default(), Stage::default());
    let (one, other) = (a.worker(7, "backend"), a.worker(8, "backend"));
    a.store(one, None, 1..=4);
    a.store(other, None, 1..=2);
    // The same worker under another index.
    let (new, same) = (b.worker(9, "backend"), b.worker(7, "backend"));
    b.store(same, None, 3..=9);
    b.store(new, None, 1..=1);
    let (a, b) = (a.mark(), b.mark());
    let one = ComparedState { cluster: &a.0, at: a.1, epoch: 1 };
    let changes = Changes::between(one, ComparedState { cluster: &b.0, at: b.1, epoch: 2 }, true);
    assert!(changes.is_across);
    let of = |id| {
        let worker = changes.pools[0].workers.iter().find(|worker| worker.id == Worker::new(id, 0));
        let WorkerChange { presence, blocks, decisions, .. } = worker.expect("it is there");
        (*presence, blocks.before, blocks.stored, blocks.evicted, *decisions)
    };
    assert_eq!(of(7), (None, 4, 5, 2, None), "3 and 4 are in both; totals of two runs do not compare");
    assert_eq!(of(8), (Some(Presence::OnlyInA), 2, 0, 2, None));
    assert_eq!(of(9), (Some(Presence::OnlyInB), 0, 1, 0, None));
}

#[test]
fn blocks_are_stored_evicted_kept_and_moved() {
    let mut stage = Stage::default();
    let (one, two) = (stage.worker(7, "backend"), stage.worker(8, "backend"));
    stage.store(one, None, 1..=6);
    stage.store(two, None, [1, 2]);
    let a = stage.mark();
    stage.pass(10_000);
    stage.remove(one, [6, 5, 4]);
    stage.store(two, Some(2), 3..=5);
    stage.store(one, None, 20..=29);
    // In neither state.
    stage.store(one, None, [40, 41]);
    stage.remove(one, [41, 40]);
    let b = stage.mark();
    let changes = between(&a, &b);
    let [pool] = &changes.pools[..] else { panic!("{changes:?}") };
    assert_eq!((pool.name.as_str(), changes.at), ("dynamo/backend", [a.1, b.1]));
    let [w1, w2] = &pool.workers[..] else { panic!("{pool:?}") };
    // 4 and 5 went from the first to the second worker; 3 was added as a copy, 6 is gone.
    let first = Blocks { before: 6, stored: 10, evicted: 3, moved_in: 0, moved_out: 2, hidden: 0 };
    let second = Blocks { before: 2, stored: 3, evicted: 0, moved_in: 2, moved_out: 0, hidden: 0 };
    assert_eq!((w1.blocks, w2.blocks), (first, second));
    assert_eq!((w1.blocks.retained(), w1.blocks.after(), w2.blocks.after()), (3, 13, 5));
    assert_eq!(
        pool.blocks,
        Blocks { before: 8, stored: 13, evicted: 3, moved_in: 2, moved_out: 2, hidden: 0 }
    );
    assert_eq!(w1.events, Some((12, 5)), "events tell of those in between too");
    assert_eq!((w1.presence, w2.presence), (None, None));
    let tree = ChangeTree::of(&a.0, &b.0, &pool.name, None, None);
    let counts = BlockChange::ALL.map(|change| tree.count(change));
    assert_eq!(counts, [2, 11, 1, 2, 0], "1 and 2 are kept, 3 has a copy more, 6 is gone, 4 and 5 moved");
    let of_one = ChangeTree::of(&a.0, &b.0, &pool.name, None, Some(Worker::new(7, 0)));
    let counts = BlockChange::ALL.map(|change| of_one.count(change));
    assert_eq!(counts, [3, 10, 1, 2, 0]);
    let backwards = between(&b, &a);
    let back = backwards.pools[0].blocks;
    assert_eq!((back.before, back.stored, back.evicted), (18, 3, 13));
}

#[test]
fn workers_that_joined_or_left_are_named() {
    let mut stage = Stage::default();
    let (stays, leaves) = (stage.worker(7, "backend"), stage.worker(8, "backend"));
    stage.store(stays, None, 1..=3);
    stage.store(leaves, None, 1..=5);
    stage.fold(Record::Scrape(Box::new(Scrape::new("frontend", ProcessRole::Frontend))));
    let a = stage.mark();
    stage.pass(5_000);
    stage.fold(Record::Left { worker: leaves, why: DepartureCause::Discovery });
    stage.fold(Record::Left { worker: stays, why: DepartureCause::Discovery });
    stage.fold(Record::Rejoined { worker: stays });
    stage.worker(9, "backend");
    stage.fold(Record::Scrape(Box::new(Scrape {
        restarts: 2,
        ..Scrape::new("frontend", ProcessRole::Frontend)
    })));
    stage.fold(Record::Scrape(Box::new(Scrape::new("worker", ProcessRole::Worker))));
    let b = stage.mark();
    let presences = |changes: &Changes| -> Vec<_> {
        changes.pools[0].workers.iter().map(|worker| (worker.id.id.0, worker.presence)).collect()
    };
    let changes = between(&a, &b);
    assert_eq!(
        presences(&changes),
        [(7, Some(Presence::LeftAndCameBack)), (8, Some(Presence::Left)), (9, Some(Presence::Came))]
    );
    assert_eq!(changes.pools[0].workers[1].blocks.evicted, 5, "they went with it");
    assert_eq!(
        changes.processes,
        [("frontend".to_owned(), Presence::Restarted(2)), ("worker".to_owned(), Presence::Came)]
    );
    let mut later = stage;
    later.pass(70_000);
    let without = between(&later.mark(), &later.mark());
    assert_eq!(presences(&without), [(7, None), (9, None)], "one that had left before is not listed");
    later.fold(Record::Rejoined { worker: leaves });
    let c = later.mark();
    let changes = between(&b, &c);
    assert_eq!(presences(&changes), [(7, None), (8, Some(Presence::CameBack)), (9, None)]);
    let silent = |name: &str| (name.to_owned(), Presence::FellSilent);
    assert_eq!(changes.processes, [silent("frontend"), silent("worker")]);
}

#[test]
fn requests_are_those_of_the_minute_before_and_decisions_those_between() {
    let mut stage = Stage::default();
    let (one, two) = (stage.worker(7, "backend"), stage.worker(8, "backend"));
    stage.decide(one, 100, 0, 900);
    stage.pass(50_000);
    (0..3).for_each(|_| stage.decide(one, 100, 50, 100));
    let a = stage.mark();
    stage.pass(70_000);
    stage.decide(one, 100, 90, 40);
    (0..2).for_each(|_| stage.decide(two, 10, 5, 300));
    let b = stage.mark();
    let changes = between(&a, &b);
    let pool = &changes.pools[0];
    let [w1, w2] = &pool.workers[..] else { panic!("{pool:?}") };
    assert_eq!([w1.decisions, w2.decisions, pool.decisions], [Some(1), Some(2), Some(3)]);
    let backwards = between(&b, &a);
    let back = &backwards.pools[0];
    assert_eq!((back.workers[1].decisions, back.decisions), (Some(2), Some(3)), "whichever is earlier");
    let rate = |requests: &Requests| (requests.decisions.with_blocks, requests.decisions.overlap_share());
    assert_eq!(rate(&w1.requests[0]), (4, Some(150.0 / 400.0)));
    assert_eq!(rate(&w1.requests[1]), (1, Some(0.9)), "those before A are longer ago than a minute");
    assert_eq!(rate(&w2.requests[0]), (0, None));
    assert_eq!(rate(&pool.requests[1]), (3, Some(100.0 / 120.0)));
    assert_eq!(w1.requests[0].reach_ms, 60_000);
    let p50 = |requests: &Requests| {
        let times = requests.ttft.as_ref()?;
        Some((times.samples, times.quantiles?[0].value()?))
    };
    assert_eq!(p50(&w1.requests[0]), Some((4, 100.0)));
    assert_eq!(p50(&w1.requests[1]), Some((1, 40.0)));
    assert_eq!(p50(&w2.requests[1]), Some((2, 300.0)));
    assert_eq!(p50(&w2.requests[0]), None);
}

#[test]
fn totals_of_two_runs_of_the_server_are_not_compared() {
    let mut stage = Stage::default();
    let one = stage.worker(7, "backend");
    stage.store(one, None, 1..=3);
    let a = stage.mark();
    stage.decide(one, 10, 5, 10);
    let b = stage.mark();
    let (first, second) = (
        ComparedState { cluster: &a.0, at: a.1, epoch: 1 },
        ComparedState { cluster: &b.0, at: b.1, epoch: 2 },
    );
    let changes = Changes::between(first, second, false);
    let worker = &changes.pools[0].workers[0];
    assert_eq!((worker.decisions, worker.events, changes.pools[0].decisions), (None, None, None));
    assert_eq!(worker.blocks.retained(), 3, "blocks have names");
}

#[test]
fn equal_blocks_of_two_pools_do_not_move_from_one_to_the_other() {
    let mut stage = Stage::default();
    let (one, two) = (stage.worker(7, "backend"), stage.worker(8, "prefill"));
    stage.store(one, None, 1..=4);
    let a = stage.mark();
    stage.remove(one, [4, 3, 2, 1]);
    stage.store(two, None, 1..=4);
    let b = stage.mark();
    let changes = between(&a, &b);
    let blocks: Vec<_> = changes
        .pools
        .iter()
        .map(|pool| (pool.blocks.stored, pool.blocks.evicted, pool.blocks.moved_in))
        .collect();
    assert_eq!(blocks, [(0, 4, 0), (4, 0, 0)]);
}

/// What is done: a worker stores the beginning of a prompt, or removes the last blocks of one.
#[derive(Clone, Debug)]
enum Step {
    Store(u16, Vec<u64>),
    Remove(u16, Vec<u64>, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let prompt = || prop::collection::vec(0u64..3, 1..6);
    let step = prop_oneof![
        3 => (0u16..3, prompt()).prop_map(|(worker, prompt)| Step::Store(worker, prompt)),
        2 => (0u16..3, prompt(), 1usize..4).prop_map(|(worker, prompt, n)| Step::Remove(worker, prompt, n)),
    ];
    prop::collection::vec(step, 0..30)
}

/// A block's name is its path.
fn named(path: &[u64]) -> u64 {
    path.iter().fold(7, |name: u64, part| name * 11 + part + 1)
}

/// What workers hold, as plain sets of paths.
type HeldPaths = BTreeSet<(u16, Vec<u64>)>;

fn apply(stage: &mut Stage, held: &mut HeldPaths, step: &Step) {
    match step {
        Step::Store(worker, prompt) => {
            let block = |at: usize| Block {
                block_hash: BlockHash(named(&prompt[..=at])),
                tokens_hash: TokensHash(prompt[at]),
            };
            let blocks: Vec<Block> = (0..prompt.len()).map(block).collect();
            stage.fold(Record::Stored {
                worker: WorkerIx((*worker).into()),
                parent: None,
                blocks: blocks.into(),
            });
            held.extend((1..=prompt.len()).map(|len| (*worker, prompt[..len].to_vec())));
        }
        Step::Remove(worker, prompt, n) => {
            let removed = (1..=prompt.len()).rev().take(*n).map(|len| prompt[..len].to_vec());
            for path in removed {
                stage.remove(WorkerIx((*worker).into()), [named(&path)]);
                held.remove(&(*worker, path));
            }
        }
    }
}

proptest! {
    #[test]
    fn counts_are_those_of_plain_sets(before in steps(), after in steps()) {
        let (mut stage, mut held) = (Stage::default(), HeldPaths::new());
        for id in 0..3 {
            stage.worker(id, "backend");
        }
        before.iter().for_each(|step| apply(&mut stage, &mut held, step));
        let (a, held_before) = (stage.mark(), held.clone());
        after.iter().for_each(|step| apply(&mut stage, &mut held, step));
        let b = stage.mark();
        let changes = between(&a, &b);
        let mut places: BTreeMap<&Vec<u64>, (BTreeSet<u16>, BTreeSet<u16>)> = BTreeMap::new();
        for (worker, path) in held_before.difference(&held) {
            places.entry(path).or_default().0.insert(*worker);
        }
        for (worker, path) in held.difference(&held_before) {
            places.entry(path).or_default().1.insert(*worker);
        }
        let moved: Vec<_> = places.values().filter(|(lost, gained)| !lost.is_empty() && !gained.is_empty()).collect();
        let pool = &changes.pools[0];
        for worker in &pool.workers {
            let w = worker.ix.slot().0;
            let of = |set: &HeldPaths| set.iter().filter(|(of, _)| *of == w).count() as u64;
            let only = |one: &HeldPaths, other: &HeldPaths| one.difference(other).filter(|(of, _)| *of == w).count() as u64;
            let expected = Blocks {
                before: of(&held_before),
                stored: only(&held, &held_before),
                evicted: only(&held_before, &held),
                moved_in: moved.iter().filter(|(_, gained)| gained.contains(&w)).count() as u64,
                moved_out: moved.iter().filter(|(lost, _)| lost.contains(&w)).count() as u64,
                hidden: 0,
            };
            prop_assert_eq!(worker.blocks, expected);
            prop_assert_eq!(worker.blocks.after(), of(&held));
        }
        prop_assert_eq!(pool.blocks.moved_in, moved.len() as u64);
        let tree = ChangeTree::of(&a.0, &b.0, &pool.name, None, None);
        let count = |is_it: fn(bool, bool) -> bool| {
            places.values().filter(|(lost, gained)| is_it(!lost.is_empty(), !gained.is_empty())).count() as u64
        };
        prop_assert_eq!(tree.count(BlockChange::Stored), count(|lost, gained| !lost && gained));
        prop_assert_eq!(tree.count(BlockChange::Evicted), count(|lost, gained| lost && !gained));
        prop_assert_eq!(tree.count(BlockChange::Moved), count(|lost, gained| lost && gained));
        let all: BTreeSet<&Vec<u64>> = held.union(&held_before).map(|(_, path)| path).collect();
        prop_assert_eq!(tree.count(BlockChange::Retained), (all.len() - places.len()) as u64);
    }
}
