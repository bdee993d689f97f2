//! Blocks that left the caches of all workers of a pool: which worker held each last, when it went and why. So that of a prompt that
//! is not cached any more it can be said that it was.
//!
//! A block is known by the hash of itself and everything before it, so that no prompt is taken for another. The latest departure
//! counts. Memory is bounded by two tables, of which the older one is dropped as a whole when the newer one is full: then what went
//! before the newer one began is no longer known, which [`GoneBlocks::known_since`] says.

use hashbrown::HashMap;

use radixscope_model::id::{BlockHash, Millis, PoolIx, WorkerIx};
use radixscope_model::micros::Micros;
use radixscope_model::record::{GoneBlock, GoneReason};

/// Blocks of each table: as many as fit into 2^20 places of 25 bytes, so that both take 52 MB at most, and 65 MB while one
/// grows.
const MAX_BLOCKS: usize = (1 << 20) / 8 * 7;

/// Room at the beginning: a small deployment fills no table anew.
const FIRST_BLOCKS: usize = (1 << 12) / 8 * 7;

/// What is known of one block.
#[derive(Clone, Copy)]
struct Gone {
    at: Tenths,
    worker: WorkerIx,
    held_blocks: u32,
    why: GoneReason,
}

/// Tenths of a second: 13 years.
#[derive(Clone, Copy)]
struct Tenths(u32);

impl Tenths {
    const STEP_MS: u64 = 100;
    /// 2025-01-01.
    const BEGIN_MS: u64 = 1_735_689_600_000;

    fn of(at: Millis) -> Self {
        Self((at.0.saturating_sub(Self::BEGIN_MS) / Self::STEP_MS).min(u32::MAX.into()) as u32)
    }

    fn millis(self) -> Millis {
        Millis(Self::BEGIN_MS + u64::from(self.0) * Self::STEP_MS)
    }
}

const _: () = assert!(size_of::<(u64, Gone)>() <= 24, "the bound above counts on it");

/// The blocks.
#[derive(Default)]
pub(super) struct GoneBlocks {
    recent: HashMap<u64, Gone>,
    older: HashMap<u64, Gone>,
    /// Since when `recent` and `older` have all blocks.
    recent_since: Millis,
    older_since: Millis,
    is_on: bool,
}

impl GoneBlocks {
    /// From `now` on blocks are remembered.
    pub(super) fn begin(&mut self, now: Millis) {
        if !self.is_on {
            self.is_on = true;
            self.recent.reserve(FIRST_BLOCKS);
            (self.recent_since, self.older_since) = (now, now);
        }
    }

    /// Whether blocks are remembered.
    #[inline]
    pub(super) const fn is_on(&self) -> bool {
        self.is_on
    }

    /// Blocks that went before this are not known.
    pub(super) const fn known_since(&self) -> Millis {
        self.older_since
    }

    /// The last worker that held the block ceased to.
    pub(super) fn add(&mut self, pool: PoolIx, chain: BlockHash, gone: GoneBlock) {
        if self.recent.len() == MAX_BLOCKS {
            // With the room that they have, so that neither grows again.
            std::mem::swap(&mut self.older, &mut self.recent);
            self.recent.clear();
            (self.older_since, self.recent_since) = (self.recent_since, gone.at_ms);
        }
        let GoneBlock { worker, at_ms, why, held_blocks } = gone;
        self.recent.insert(key(pool, chain), Gone { at: Tenths::of(at_ms), worker, held_blocks, why });
    }

    /// What became of a block that went at `until` or before.
    pub(super) fn find(&self, pool: PoolIx, chain: BlockHash, until: Micros) -> Option<GoneBlock> {
        self.latest(pool, chain).filter(|gone| gone.at_ms <= until.millis())
    }

    /// When a block went last.
    pub(super) fn latest(&self, pool: PoolIx, chain: BlockHash) -> Option<GoneBlock> {
        let key = key(pool, chain);
        let gone = self.recent.get(&key).or_else(|| self.older.get(&key))?;
        let Gone { at, worker, held_blocks, why } = *gone;
        Some(GoneBlock { worker, at_ms: at.millis(), why, held_blocks })
    }

    /// Bytes of heap in use.
    #[cfg(test)]
    fn heap_bytes(&self) -> usize {
        self.recent.allocation_size() + self.older.allocation_size()
    }
}

/// Blocks of two pools are never the same.
fn key(pool: PoolIx, chain: BlockHash) -> u64 {
    chain.0 ^ (pool.at() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 1_800_000_000_000;

    fn gone(worker: u32, at_ms: u64) -> GoneBlock {
        GoneBlock { worker: WorkerIx(worker), at_ms: Millis(at_ms), why: GoneReason::Evicted, held_blocks: 7 }
    }

    fn at(ms: u64) -> Micros {
        Micros::of(Millis(ms))
    }

    #[test]
    fn the_latest_departure_before_a_time_is_known_of_each_pool() {
        let mut blocks = GoneBlocks::default();
        blocks.begin(Millis(AT));
        blocks.add(PoolIx(0), BlockHash(5), gone(1, AT + 1_000));
        blocks.add(PoolIx(0), BlockHash(5), gone(2, AT + 2_000));
        let found = |pool, hash, ms| blocks.find(PoolIx(pool), BlockHash(hash), at(ms));
        assert_eq!(found(0, 5, AT + 2_000), Some(gone(2, AT + 2_000)));
        assert_eq!(found(0, 5, AT + 1_999), None, "it went later");
        assert_eq!((found(1, 5, AT + 9_000), found(0, 6, AT + 9_000)), (None, None));
        assert_eq!(blocks.known_since(), Millis(AT));
    }

    #[test]
    fn of_very_many_the_oldest_are_forgotten_and_since_when_they_are_known_is_said() {
        let mut blocks = GoneBlocks::default();
        blocks.begin(Millis(AT));
        for n in 0..2 * MAX_BLOCKS as u64 + 1 {
            blocks.add(PoolIx(0), BlockHash(n), gone(1, AT + n));
        }
        let found = |n: u64| blocks.find(PoolIx(0), BlockHash(n), at(AT + n)).is_some();
        let first = MAX_BLOCKS as u64;
        assert_eq!((found(0), found(first - 1), found(first), found(2 * first)), (false, false, true, true));
        assert_eq!(blocks.known_since(), Millis(AT + first));
        assert!(blocks.heap_bytes() <= 56 << 20, "{}", blocks.heap_bytes());
    }
}
