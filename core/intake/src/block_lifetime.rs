//! How long blocks live on each worker and whether they are wanted again, from a sample of them.
//!
//! A look at records on their way to the state. Every block whose engine hash is divisible by `ONE_IN` is followed:
//! engines hash evenly, so the sample is fair, and the choice needs no memory. Whoever hashes otherwise has no sample.
//! When prompts touch a held block again is not known here: prompts name blocks by the router's hashes.

use std::collections::VecDeque;

use indexmap::IndexMap;
use indexmap::map::Entry;

use radixscope_model::id::{BlockHash, Millis, WorkerIx};
use radixscope_model::percentile;
use radixscope_model::record::{BlockResidency, Record};
use radixscope_state::cluster::Cluster;
use radixscope_state::per_worker::PerWorker;

/// One of so many blocks is followed.
const ONE_IN: u16 = 16;
/// Blocks followed at a time, held ones and removed ones: about 12 MiB. Two million held blocks need half of it.
const MAX_FOLLOWED: usize = 1 << 18;
/// Blocks for which there is room from the beginning, so that a small deployment never moves them: 200 KiB.
const ROOM: usize = 1 << 12;
/// Places looked at for a removed block to forget before a held one is forgotten.
const LOOKED_AT: usize = 8;
/// How far back the figures reach.
const WINDOW_MS: u64 = 60_000;
/// How often they are reported.
const EVERY_MS: u64 = 5_000;
/// Most durations of a kind kept for a worker. Beyond it the figures reach less far back.
const MAX_DURATIONS: usize = 1 << 14;

/// Follows blocks.
pub struct BlockLifetimes {
    followed: IndexMap<(WorkerIx, BlockHash), BlockLife, hashbrown::DefaultHashBuilder>,
    workers: PerWorker<WorkerResidency>,
    last_ms: Option<Millis>,
    /// Where to look next for a block to forget.
    cursor: usize,
    forgotten: u64,
}

#[derive(Clone, Copy)]
enum BlockLife {
    /// Resident since then.
    Resident(Millis),
    /// Not held since then, but before.
    Removed(Millis),
}

#[derive(Default)]
struct WorkerResidency {
    lived: Durations,
    away: Durations,
    reported: Option<BlockResidency>,
}

/// Durations in milliseconds that ended within the window, with the times at which they did.
#[derive(Default)]
struct Durations(VecDeque<(Millis, u64)>);

impl Default for BlockLifetimes {
    fn default() -> Self {
        Self {
            followed: IndexMap::with_capacity_and_hasher(ROOM, hashbrown::DefaultHashBuilder::default()),
            workers: PerWorker::default(),
            last_ms: None,
            cursor: 0,
            forgotten: 0,
        }
    }
}

impl BlockLifetimes {
    /// A record passes, on its way to `cluster`.
    #[inline]
    pub fn observe(&mut self, at: Millis, record: &Record<'_>, cluster: &Cluster) {
        match record {
            Record::Stored { worker, blocks, .. } => {
                for block in blocks.iter().filter(|block| is_followed(block.block_hash)) {
                    self.stored(at, *worker, block.block_hash);
                }
            }
            Record::Removed { worker, hashes } => {
                for &hash in hashes.iter().filter(|&&hash| is_followed(hash)) {
                    self.removed(at, *worker, hash);
                }
            }
            // They were removed at an unknown time.
            Record::TreeDumpRemoved { worker, tier: None, hashes } => {
                for &hash in hashes.iter().filter(|&&hash| is_followed(hash)) {
                    self.followed.swap_remove(&(*worker, hash));
                }
            }
            // Not for want of room, so that it says nothing of how long blocks live.
            Record::Cleared { worker, all_ranks: true } => {
                let process = |worker: WorkerIx| cluster.worker(worker).map(|worker| worker.id.id);
                self.forget(|of| of == *worker || process(of) == process(*worker));
            }
            Record::Cleared { worker, .. } | Record::Left { worker, .. } => self.forget(|of| of == *worker),
            _ => {}
        }
    }

    /// Reports every worker's figures that changed, every few seconds.
    pub fn flush(&mut self, at: Millis) -> Vec<Record<'static>> {
        if self.last_ms.is_some_and(|last| at.since(last) < EVERY_MS) {
            return Vec::new();
        }
        self.last_ms = Some(at);
        self.workers.iter_mut().filter_map(|(worker, of)| of.news(at, worker)).collect()
    }

    /// Held blocks that are no longer followed because there were too many: the figures then miss the longest lives.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    fn stored(&mut self, at: Millis, worker: WorkerIx, hash: BlockHash) {
        match self.followed.entry((worker, hash)) {
            Entry::Occupied(mut known) => {
                if let BlockLife::Removed(since) = *known.get() {
                    known.insert(BlockLife::Resident(at));
                    self.workers.of(worker).away.push(at, at.since(since));
                }
            }
            Entry::Vacant(new) => {
                new.insert(BlockLife::Resident(at));
                if self.followed.len() > MAX_FOLLOWED {
                    self.forget_one();
                }
            }
        }
    }

    fn removed(&mut self, at: Millis, worker: WorkerIx, hash: BlockHash) {
        if let Some(life) = self.followed.get_mut(&(worker, hash))
            && let BlockLife::Resident(since) = *life
        {
            *life = BlockLife::Removed(at);
            self.workers.of(worker).lived.push(at, at.since(since));
        }
    }

    fn forget(&mut self, is_meant: impl Fn(WorkerIx) -> bool) {
        self.followed.retain(|(of, _), _| !is_meant(*of));
    }

    /// Forgets a block that was removed, if one is found soon, else a held one.
    fn forget_one(&mut self) {
        let places = (0..LOOKED_AT).map(|step| (self.cursor + step) % MAX_FOLLOWED);
        let is_removed =
            |at: &usize| matches!(self.followed.get_index(*at), Some((_, BlockLife::Removed(_))));
        let found = places.clone().find(is_removed);
        self.forgotten += u64::from(found.is_none());
        let at = found.unwrap_or(self.cursor % MAX_FOLLOWED);
        self.cursor = (at + 1) % MAX_FOLLOWED;
        self.followed.swap_remove_index(at);
    }
}

#[inline]
fn is_followed(hash: BlockHash) -> bool {
    hash.0.is_multiple_of(ONE_IN.into())
}

impl WorkerResidency {
    fn news(&mut self, at: Millis, worker: WorkerIx) -> Option<Record<'static>> {
        let (mut lived, mut away) = (self.lived.latest(at), self.away.latest(at));
        let lifetimes = BlockResidency {
            one_in: ONE_IN,
            removed: lived.len() as u32,
            lifetime_p50_ms: percentile(&mut lived, 50),
            lifetime_p95_ms: percentile(&mut lived, 95),
            came_back: away.len() as u32,
            came_back_p50_ms: percentile(&mut away, 50),
            reuse_p50_ms: None,
        };
        // Nothing is news only after something.
        let before = self.reported.unwrap_or(BlockResidency { one_in: ONE_IN, ..BlockResidency::default() });
        if before == lifetimes {
            return None;
        }
        self.reported = Some(lifetimes);
        Some(Record::BlockResidency { worker, lifetimes: Box::new(lifetimes) })
    }
}

impl Durations {
    fn push(&mut self, at: Millis, ms: u64) {
        if self.0.len() == MAX_DURATIONS {
            self.0.pop_front();
        }
        self.0.push_back((at, ms));
    }

    /// Those of the window, after the others were dropped.
    fn latest(&mut self, now: Millis) -> Vec<u64> {
        // Times may be a little out of order: what ended before the first one kept stays a little longer.
        while self.0.front().is_some_and(|(at, _)| now.since(*at) > WINDOW_MS) {
            self.0.pop_front();
        }
        self.0.iter().map(|(_, ms)| *ms).collect()
    }
}

fn percentile(values: &mut [u64], percent: usize) -> Option<u64> {
    let at = percentile::index(values.len(), percent)?;
    Some(*values.select_nth_unstable(at).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::TokensHash;
    use radixscope_model::record::{Block, DepartureCause};

    const W: WorkerIx = WorkerIx(1);

    #[derive(Default)]
    struct Seen(BlockLifetimes, Cluster);

    impl Seen {
        fn stored(&mut self, at: u64, hashes: impl IntoIterator<Item = u64>) {
            let block =
                |hash| Block { block_hash: BlockHash(hash), tokens_hash: TokensHash(hash.wrapping_mul(3)) };
            let blocks: Vec<Block> = hashes.into_iter().map(block).collect();
            self.0.observe(
                Millis(at),
                &Record::Stored { worker: W, parent: None, blocks: blocks.into() },
                &self.1,
            );
        }

        fn removed(&mut self, at: u64, hashes: impl IntoIterator<Item = u64>) {
            let hashes: Vec<BlockHash> = hashes.into_iter().map(BlockHash).collect();
            self.0.observe(Millis(at), &Record::Removed { worker: W, hashes: hashes.into() }, &self.1);
        }

        fn residency_at(&mut self, at: u64) -> Option<BlockResidency> {
            let mut records = self.0.flush(Millis(at));
            assert!(records.len() <= 1);
            match records.pop()? {
                Record::BlockResidency { worker: W, lifetimes } => Some(*lifetimes),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn one_of_sixteen_blocks_is_followed_from_stored_to_removed() {
        let mut seen = Seen::default();
        seen.stored(0, 0..320);
        for hash in 0..320 {
            seen.removed(1_000 * (1 + hash / 16), [hash]);
        }
        let lifetimes = seen.residency_at(20_000).expect("news");
        assert_eq!((lifetimes.one_in, lifetimes.removed, lifetimes.came_back), (16, 20, 0));
        assert_eq!((lifetimes.lifetime_p50_ms, lifetimes.lifetime_p95_ms), (Some(10_000), Some(19_000)));
    }

    #[test]
    fn a_block_stored_again_came_back_and_begins_a_new_life() {
        let mut seen = Seen::default();
        seen.stored(0, [16]);
        seen.stored(500, [16]);
        seen.removed(1_000, [16]);
        seen.removed(1_500, [16]);
        seen.stored(4_000, [16]);
        seen.removed(4_100, [16]);
        let lifetimes = seen.residency_at(5_000).expect("news");
        assert_eq!(
            (lifetimes.removed, lifetimes.lifetime_p50_ms, lifetimes.lifetime_p95_ms),
            (2, Some(100), Some(1_000))
        );
        assert_eq!((lifetimes.came_back, lifetimes.came_back_p50_ms), (1, Some(3_000)));
    }

    #[test]
    fn figures_reach_a_minute_back_and_are_reported_every_few_seconds_when_they_change() {
        let mut seen = Seen::default();
        seen.stored(0, [16, 32]);
        seen.removed(1_000, [16]);
        assert_eq!(seen.residency_at(2_000).map(|lifetimes| lifetimes.removed), Some(1));
        seen.removed(3_000, [32]);
        assert_eq!(seen.residency_at(4_000), None, "too soon");
        assert_eq!(seen.residency_at(7_000).map(|lifetimes| lifetimes.removed), Some(2));
        assert_eq!(seen.residency_at(12_000), None, "nothing new");
        assert_eq!(seen.residency_at(62_000).map(|lifetimes| lifetimes.removed), Some(1));
        assert_eq!(
            seen.residency_at(70_000).map(|lifetimes| (lifetimes.removed, lifetimes.lifetime_p50_ms)),
            Some((0, None))
        );
        assert_eq!(seen.residency_at(80_000), None);
    }

    #[test]
    fn what_was_dropped_at_once_says_nothing_of_how_long_blocks_live() {
        for record in [
            Record::Cleared { worker: W, all_ranks: false },
            Record::Cleared { worker: W, all_ranks: true },
            Record::Left { worker: W, why: DepartureCause::Health },
        ] {
            let mut seen = Seen::default();
            seen.stored(0, [16]);
            let Seen(lifetimes, cluster) = &mut seen;
            lifetimes.observe(Millis(1), &record, cluster);
            seen.removed(2, [16]);
            seen.stored(3, [16]);
            assert_eq!(seen.residency_at(10), None);
        }
    }

    #[test]
    fn memory_stays_bounded_and_removed_blocks_are_forgotten_first() {
        let mut seen = Seen::default();
        let hash = |n: usize| n as u64 * 16;
        let half = MAX_FOLLOWED / 2;
        seen.stored(0, (0..MAX_FOLLOWED).map(hash));
        seen.removed(1, (0..MAX_FOLLOWED).step_by(2).map(hash));
        seen.stored(2, (MAX_FOLLOWED..MAX_FOLLOWED + half / 2).map(hash));
        assert_eq!((seen.0.followed.len(), seen.0.forgotten()), (MAX_FOLLOWED, 0));
        seen.stored(3, (2 * MAX_FOLLOWED..3 * MAX_FOLLOWED).map(hash));
        assert_eq!(seen.0.followed.len(), MAX_FOLLOWED);
        assert!(seen.0.forgotten() > 0);
        assert!(seen.0.workers.of(W).lived.0.len() <= MAX_DURATIONS);
    }
}
