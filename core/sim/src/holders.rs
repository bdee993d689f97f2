//! Which workers hold which block, by the events that the router received: a bit a worker in words of 64.
//! Must not know prompts' lengths, loads or costs.

use rustc_hash::FxHashMap;

use super::router::SimulatedCandidate;
use radixscope_model::id::BlockHash;
use radixscope_model::record::Block;

/// Workers per word.
const BITS: usize = u64::BITS as usize;

/// Holders of each block, in as few words as the number of workers needs: up to 64 workers one.
#[derive(Debug)]
pub(super) enum BlockHolders {
    Small(Map<1>),
    Medium(Map<4>),
    Large(Map<16>),
}

/// Most workers of [`BlockHolders`].
pub(super) const MOST_WORKERS: usize = 16 * BITS;

impl BlockHolders {
    pub(super) fn new(workers: usize) -> Self {
        match workers.div_ceil(BITS) {
            0..=1 => Self::Small(Map::default()),
            2..=4 => Self::Medium(Map::default()),
            _ => Self::Large(Map::default()),
        }
    }

    /// A worker holds a block; whether that is new.
    pub(super) fn insert(&mut self, worker: u16, hash: BlockHash) -> bool {
        match self {
            Self::Small(map) => map.insert(worker, hash),
            Self::Medium(map) => map.insert(worker, hash),
            Self::Large(map) => map.insert(worker, hash),
        }
    }

    /// A worker no longer holds a block; whether it did.
    pub(super) fn remove(&mut self, worker: u16, hash: BlockHash) -> bool {
        match self {
            Self::Small(map) => map.remove(worker, hash),
            Self::Medium(map) => map.remove(worker, hash),
            Self::Large(map) => map.remove(worker, hash),
        }
    }

    /// Whether a worker holds a block.
    pub(super) fn holds(&self, worker: u16, hash: BlockHash) -> bool {
        match self {
            Self::Small(map) => map.holds(worker, hash),
            Self::Medium(map) => map.holds(worker, hash),
            Self::Large(map) => map.holds(worker, hash),
        }
    }

    /// A worker holds nothing any more.
    pub(super) fn forget(&mut self, worker: u16) {
        match self {
            Self::Small(map) => map.forget(worker),
            Self::Medium(map) => map.forget(worker),
            Self::Large(map) => map.forget(worker),
        }
    }

    /// Counts for each worker the blocks of `prompt` it holds. As in Dynamo's tree, the path ends where no worker holds
    /// the next block.
    pub(super) fn count(&self, prompt: &[Block], candidates: &mut [SimulatedCandidate]) {
        match self {
            Self::Small(map) => map.count(prompt, candidates),
            Self::Medium(map) => map.count(prompt, candidates),
            Self::Large(map) => map.count(prompt, candidates),
        }
    }

    /// The same as Dynamo from 1.0 on counts: of each worker up to the first block that it does not hold.
    pub(super) fn count_prefixes(&self, prompt: &[Block], candidates: &mut [SimulatedCandidate]) {
        match self {
            Self::Small(map) => map.count_prefixes(prompt, candidates),
            Self::Medium(map) => map.count_prefixes(prompt, candidates),
            Self::Large(map) => map.count_prefixes(prompt, candidates),
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Small(map) => map.0.is_empty(),
            Self::Medium(map) => map.0.is_empty(),
            Self::Large(map) => map.0.is_empty(),
        }
    }
}

/// A path in Dynamo's tree and a chain hash name the same prefix.
#[derive(Debug, Default)]
pub(super) struct Map<const WORDS: usize>(FxHashMap<BlockHash, [u64; WORDS]>);

impl<const WORDS: usize> Map<WORDS> {
    fn place(worker: u16) -> (usize, u64) {
        (usize::from(worker) / BITS, 1 << (usize::from(worker) % BITS))
    }

    fn insert(&mut self, worker: u16, hash: BlockHash) -> bool {
        let (word, bit) = Self::place(worker);
        let word = &mut self.0.entry(hash).or_insert([0; WORDS])[word];
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    fn remove(&mut self, worker: u16, hash: BlockHash) -> bool {
        let (word, bit) = Self::place(worker);
        let Some(words) = self.0.get_mut(&hash) else { return false };
        let held = words[word] & bit != 0;
        words[word] &= !bit;
        if *words == [0; WORDS] {
            self.0.remove(&hash);
        }
        held
    }

    fn holds(&self, worker: u16, hash: BlockHash) -> bool {
        let (word, bit) = Self::place(worker);
        self.0.get(&hash).is_some_and(|words| words[word] & bit != 0)
    }

    fn forget(&mut self, worker: u16) {
        let (word, bit) = Self::place(worker);
        self.0.retain(|_, words| {
            words[word] &= !bit;
            *words != [0; WORDS]
        });
    }

    fn count(&self, prompt: &[Block], candidates: &mut [SimulatedCandidate]) {
        for words in prompt.iter().map_while(|block| self.0.get(&block.block_hash)) {
            for (at, &word) in words.iter().enumerate() {
                let mut left = word;
                while left != 0 {
                    candidates[at * BITS + left.trailing_zeros() as usize].candidate.overlap_blocks += 1;
                    left &= left - 1;
                }
            }
        }
    }

    fn count_prefixes(&self, prompt: &[Block], candidates: &mut [SimulatedCandidate]) {
        let mut still = [u64::MAX; WORDS];
        for words in prompt.iter().map_while(|block| self.0.get(&block.block_hash)) {
            for (at, (word, still)) in words.iter().zip(&mut still).enumerate() {
                *still &= word;
                let mut left = *still;
                while left != 0 {
                    candidates[at * BITS + left.trailing_zeros() as usize].candidate.overlap_blocks += 1;
                    left &= left - 1;
                }
            }
            if still == [0; WORDS] {
                break;
            }
        }
    }
}
