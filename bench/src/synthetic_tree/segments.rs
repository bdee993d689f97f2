//! Runs of blocks that were stored together, each below the end of another one.

use radixscope_model::id::{BlockHash, TokensHash};
use radixscope_model::record::Block;
use radixscope_router::hash::chain_hash;

use crate::random::mixed;

/// A run.
#[derive(Clone, Copy)]
pub(super) struct Segment {
    /// Above it; itself for a system prompt.
    parent: u32,
    /// Number of its first block among all that ever were.
    first: u64,
    /// Engine's hash of its last block.
    last: BlockHash,
    /// Blocks from the beginning of the prompt.
    pub(super) depth: u32,
    /// Blocks; none when it was evicted.
    pub(super) len: u32,
    /// Runs below it.
    pub(super) children: u32,
    /// Workers that hold it, a bit each.
    pub(super) owners: u32,
}

/// All runs, those above before those below. System prompts come first.
pub(super) struct Segments {
    all: Vec<Segment>,
    starters: u32,
    /// Blocks that ever were.
    ever: u64,
    seed: u64,
    pub(super) distinct_blocks: u64,
    pub(super) held_blocks: u64,
}

impl Segments {
    pub(super) fn new(seed: u64) -> Self {
        Self { all: Vec::new(), starters: 0, ever: 0, seed: mixed(seed), distinct_blocks: 0, held_blocks: 0 }
    }

    /// How many system prompts there are; their ids are from 0 to below that.
    pub(super) fn starters(&self) -> u32 {
        self.starters
    }

    /// All of them, with their ids.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (u32, &Segment)> {
        self.all.iter().enumerate().map(|(id, segment)| (id as u32, segment))
    }

    pub(super) fn parent(&self, id: u32) -> Option<u32> {
        let parent = self.all[id as usize].parent;
        (parent != id).then_some(parent)
    }

    /// Whether nothing else is directly below what is above it.
    pub(super) fn is_only_child(&self, id: u32) -> bool {
        self.parent(id).is_some_and(|parent| self.all[parent as usize].children == 1)
    }

    pub(super) fn is_held(&self, id: u32) -> bool {
        self.all[id as usize].len > 0
    }

    /// Whether it may be evicted: held, nothing below it, and no system prompt.
    pub(super) fn is_leaf(&self, id: u32) -> bool {
        let segment = &self.all[id as usize];
        segment.len > 0 && segment.children == 0 && id >= self.starters
    }

    pub(super) fn leaves(&self) -> impl Iterator<Item = u32> {
        (0..self.all.len() as u32).filter(|&id| self.is_leaf(id))
    }

    /// Blocks from the beginning of the prompt to its end.
    pub(super) fn end_blocks(&self, id: u32) -> u64 {
        let segment = &self.all[id as usize];
        u64::from(segment.depth + segment.len)
    }

    /// Adds `len` blocks below the end of `parent`; gives their id, the engine's hash of the block above, and the blocks.
    pub(super) fn add(
        &mut self,
        parent: Option<u32>,
        len: u64,
        owners: u32,
    ) -> (u32, Option<BlockHash>, Vec<Block>) {
        let id = self.all.len() as u32;
        let above = parent.map(|parent| self.all[parent as usize]);
        let first = self.ever;
        let blocks = self.blocks(above.map(|s| s.last), first, len);
        self.ever += len;
        self.distinct_blocks += len;
        self.held_blocks += len * u64::from(owners.count_ones());
        match parent {
            Some(parent) if len > 0 => self.all[parent as usize].children += 1,
            Some(_) => {}
            None => self.starters += 1,
        }
        self.all.push(Segment {
            parent: parent.unwrap_or(id),
            first,
            last: blocks.last().map_or(BlockHash(0), |block| block.block_hash),
            depth: above.map_or(0, |s| s.depth + s.len),
            len: len as u32,
            children: 0,
            owners,
        });
        (id, above.map(|s| s.last), blocks)
    }

    /// Takes `len` blocks, or as many as there are, from the end of a leaf; gives their hashes, the lowest first as engines
    /// evict, and who held them.
    pub(super) fn cut(&mut self, id: u32, len: u64) -> (Vec<BlockHash>, u32) {
        let segment = self.all[id as usize];
        let above = self.parent(id).map(|parent| self.all[parent as usize].last);
        let blocks = self.blocks(above, segment.first, segment.len.into());
        let retained = blocks.len().saturating_sub(len as usize);
        let cut = (blocks.len() - retained) as u64;
        let left = &mut self.all[id as usize];
        left.len = retained as u32;
        if let Some(last) = retained.checked_sub(1) {
            left.last = blocks[last].block_hash;
        } else {
            self.all[segment.parent as usize].children -= 1;
        }
        self.distinct_blocks -= cut;
        self.held_blocks -= cut * u64::from(segment.owners.count_ones());
        (blocks[retained..].iter().rev().map(|block| block.block_hash).collect(), segment.owners)
    }

    /// The blocks with these numbers below `above`.
    fn blocks(&self, above: Option<BlockHash>, first: u64, len: u64) -> Vec<Block> {
        let mut above = above;
        let block = |number: u64| {
            let tokens_hash =
                TokensHash(mixed(self.seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))));
            let block_hash = chain_hash(above, tokens_hash);
            above = Some(block_hash);
            Block { block_hash, tokens_hash }
        };
        (first..first + len).map(block).collect()
    }
}
