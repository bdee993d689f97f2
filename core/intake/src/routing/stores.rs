//! Whose blocks a worker stored around the time at which its engine evicted others: as much as KV events show of what took the room.
//!
//! Events name no request. Blocks that are stored one after the other are a *run*, known by the hash of its first block with everything
//! before it: a run begins where the prompt of a request goes on beyond what its worker held, which [`Starts`] has of the decisions
//! whose prompts are visible. It is not known what an engine evicts a block for; what it stored around then is.
//!
//! All is bounded: of each worker the stores of eleven seconds, and what they added up to at its latest evictions.

use std::collections::VecDeque;

use hashbrown::HashMap;

use radixscope_model::id::{BlockHash, DecisionId, Millis, WorkerIx};
use radixscope_state::per_worker::PerWorker;

/// Stores from this long before an eviction count.
const BEFORE_MS: u64 = 10_000;
/// And to this long after: engines evict first and store then. Evictions within the same time are one window.
const AFTER_MS: u64 = 1_000;
/// Stores retained of each worker; with more within that time the oldest do not count.
const MAX_STORES: usize = 256;
/// Runs of each worker that go on: more requests are rarely computed at once.
const MAX_TAILS: usize = 64;
/// Windows retained of each worker: eight minutes in which it evicts all the time.
const MAX_WINDOWS: usize = 512;
/// Beginnings of runs whose decisions are known.
const MAX_STARTS: usize = 1 << 14;
/// Times of departures are retained in tenths of a second.
const ROUNDED_MS: u64 = 100;

/// The first block of a run, with everything before it; 0: of a block whose parent is not known.
type Run = u64;

#[derive(Clone, Copy)]
struct Store {
    at_ms: Millis,
    run: Run,
    blocks: u32,
}

/// What a worker stored around evictions that began at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct EvictionWindow {
    at_ms: Millis,
    /// Blocks in all.
    pub(super) stored_blocks: u32,
    /// Of those, the blocks of the run that most are of.
    pub(super) run_blocks: u32,
    run: Run,
}

const _: () =
    assert!(size_of::<Store>() <= 24 && size_of::<EvictionWindow>() <= 24, "the bounds above count on it");

#[derive(Default)]
struct OfWorker {
    /// By the time at which they were received.
    stores: VecDeque<Store>,
    /// The last block of each run, as the worker calls it.
    tails: VecDeque<(BlockHash, Run)>,
    windows: VecDeque<EvictionWindow>,
    /// When the window began that is not over.
    open: Option<Millis>,
}

/// Stores of all workers.
#[derive(Default)]
pub(super) struct Stores(PerWorker<OfWorker>);

impl Stores {
    /// A worker stores blocks that it did not hold, the last of which it calls `last`, behind a block that it calls `parent`. `first`
    /// gives the hash of the first one with everything before it.
    pub(super) fn stored(
        &mut self,
        at_ms: Millis,
        worker: WorkerIx,
        (parent, last): (Option<BlockHash>, BlockHash),
        blocks: u32,
        first: impl FnOnce() -> Option<BlockHash>,
    ) {
        let of = self.0.of(worker);
        of.close(at_ms);
        let goes_on = parent.and_then(|parent| of.tails.iter_mut().rev().find(|(tail, _)| *tail == parent));
        let run = if let Some((tail, run)) = goes_on {
            *tail = last;
            *run
        } else {
            let run = first().map_or(0, |first| first.0);
            if of.tails.len() == MAX_TAILS {
                of.tails.pop_front();
            }
            of.tails.push_back((last, run));
            run
        };
        let is_old = |store: &Store| at_ms.since(store.at_ms) > BEFORE_MS + AFTER_MS;
        while of.stores.len() == MAX_STORES || of.stores.front().is_some_and(is_old) {
            of.stores.pop_front();
        }
        of.stores.push_back(Store { at_ms, run, blocks });
    }

    /// A worker's engine evicts blocks.
    pub(super) fn evicted(&mut self, at_ms: Millis, worker: WorkerIx) {
        let of = self.0.of(worker);
        of.close(at_ms);
        of.open.get_or_insert(at_ms);
    }

    /// What a worker stored around an eviction. `None`: it is not known, or was too long ago.
    pub(super) fn around(&self, at_ms: Millis, worker: WorkerIx) -> Option<EvictionWindow> {
        let of = self.0.get(worker)?;
        let is_of = |from: Millis| from.0 <= at_ms.0 + ROUNDED_MS && at_ms.since(from) <= AFTER_MS;
        match of.open.filter(|open| is_of(*open)) {
            Some(open) => of.window(open),
            None => of.windows.iter().rev().find(|window| is_of(window.at_ms)).copied(),
        }
    }
}

impl OfWorker {
    /// Ends the window whose time is over.
    fn close(&mut self, now: Millis) {
        let Some(open) = self.open.filter(|open| now.since(*open) > AFTER_MS) else { return };
        self.open = None;
        if let Some(window) = self.window(open) {
            if self.windows.len() == MAX_WINDOWS {
                self.windows.pop_front();
            }
            self.windows.push_back(window);
        }
    }

    /// What was stored around evictions that began at a time, if anything was.
    fn window(&self, at_ms: Millis) -> Option<EvictionWindow> {
        let mut runs: HashMap<Run, u32> = HashMap::new();
        let from = Millis(at_ms.0.saturating_sub(BEFORE_MS));
        let near = self.stores.iter().filter(|store| (from.0..=at_ms.0 + AFTER_MS).contains(&store.at_ms.0));
        for store in near {
            let sum = runs.entry(store.run).or_default();
            *sum = sum.saturating_add(store.blocks);
        }
        let (run, run_blocks) =
            runs.iter().map(|(run, blocks)| (*run, *blocks)).max_by_key(|of| (of.1, of.0))?;
        let stored_blocks = runs.values().fold(0_u32, |sum, blocks| sum.saturating_add(*blocks));
        Some(EvictionWindow { at_ms, stored_blocks, run_blocks, run })
    }
}

/// Where the prompts of the latest decisions went on beyond what their workers held.
#[derive(Default)]
pub(super) struct Starts {
    decisions: HashMap<(WorkerIx, Run), DecisionId>,
    order: VecDeque<(WorkerIx, Run)>,
}

impl Starts {
    /// The chosen worker of a decision held none of its prompt from the block `first` on, given with everything before it.
    pub(super) fn add(&mut self, worker: WorkerIx, first: u64, decision: DecisionId) {
        if self.decisions.insert((worker, first), decision).is_none() {
            self.order.push_back((worker, first));
            if self.order.len() > MAX_STARTS
                && let Some(oldest) = self.order.pop_front()
            {
                self.decisions.remove(&oldest);
            }
        }
    }

    /// Whose run most blocks were of.
    pub(super) fn find(&self, worker: WorkerIx, window: &EvictionWindow) -> Option<DecisionId> {
        self.decisions.get(&(worker, window.run)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const W: WorkerIx = WorkerIx(3);

    fn store(stores: &mut Stores, ms: u64, (parent, last): (Option<u64>, u64), blocks: u32, first: u64) {
        let names = (parent.map(BlockHash), BlockHash(last));
        stores.stored(Millis(ms), W, names, blocks, || Some(BlockHash(first)));
    }

    #[test]
    fn the_run_that_most_blocks_are_of_is_found_with_what_follows_it() {
        let (mut stores, mut starts) = (Stores::default(), Starts::default());
        // Too early.
        store(&mut stores, 1_000, (None, 1), 900, 1);
        store(&mut stores, 12_000, (None, 10), 30, 10);
        store(&mut stores, 12_500, (None, 20), 40, 20);
        // It goes on with the first one: in pieces, and with what it generates.
        store(&mut stores, 13_000, (Some(10), 11), 20, 77);
        stores.evicted(Millis(13_100), W);
        stores.evicted(Millis(13_500), W);
        store(&mut stores, 14_000, (Some(11), 12), 1, 77);
        // Too late.
        store(&mut stores, 14_101, (Some(20), 21), 500, 77);
        let window = stores.around(Millis(13_500), W).unwrap();
        assert_eq!((window.stored_blocks, window.run_blocks), (91, 51));
        assert_eq!(starts.find(W, &window), None, "its decision is not known yet");
        starts.add(W, 10, DecisionId(5));
        assert_eq!(starts.find(W, &window), Some(DecisionId(5)));
        assert_eq!(starts.find(WorkerIx(4), &window), None, "another worker's");
        let rounded = stores.around(Millis(13_000), W);
        assert_eq!(rounded, Some(window), "departures are retained in tenths of a second");
        assert_eq!(stores.around(Millis(12_900), W), None);
        assert_eq!(stores.around(Millis(13_500), WorkerIx(4)), None);
    }

    #[test]
    fn an_eviction_is_found_while_it_lasts_and_only_so_many_are_retained() {
        let mut stores = Stores::default();
        stores.evicted(Millis(500), W);
        assert_eq!(stores.around(Millis(500), W), None, "nothing was stored");
        store(&mut stores, 1_000, (None, 1), 5, 1);
        assert_eq!(stores.around(Millis(500), W).map(|window| window.stored_blocks), Some(5));
        for n in 1..=2 * MAX_WINDOWS as u64 {
            stores.evicted(Millis(n * 2_000), W);
            store(&mut stores, n * 2_000 + 1, (None, n), 1, n);
        }
        let of = stores.0.get(W).unwrap();
        assert!(
            of.windows.len() <= MAX_WINDOWS && of.stores.len() <= MAX_STORES && of.tails.len() <= MAX_TAILS
        );
        assert_eq!(stores.around(Millis(500), W), None, "it was too long ago");
        assert!(stores.around(Millis(2_000 * 1_000), W).is_some());
    }

    #[test]
    fn only_the_latest_starts_are_retained() {
        let mut starts = Starts::default();
        for n in 0..MAX_STARTS as u64 + 10 {
            starts.add(W, n, DecisionId(n));
        }
        assert_eq!((starts.decisions.len(), starts.order.len()), (MAX_STARTS, MAX_STARTS));
        let window = |run| EvictionWindow { at_ms: Millis(0), stored_blocks: 1, run_blocks: 1, run };
        assert_eq!((starts.find(W, &window(9)), starts.find(W, &window(10))), (None, Some(DecisionId(10))));
    }
}
