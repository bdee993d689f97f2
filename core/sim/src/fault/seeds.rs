//! Engines that hash with seeds of their own: the router's node keeps the hash of who stored it first, and the others
//! differ from it (reference §6.1).

use rustc_hash::FxHashMap;

use super::super::tokens::mix;
use radixscope_model::id::BlockHash;
use radixscope_model::record::Block;

/// Who stored each block first, as recorded in the nodes of the router's tree.
#[derive(Debug, Default)]
pub(crate) struct HashSeeds {
    /// First to store it, and how many hold it.
    nodes: FxHashMap<BlockHash, (u16, u32)>,
}

impl HashSeeds {
    /// How worker `worker` hashes what the others call `hash`.
    pub(crate) fn seeded(worker: u16, hash: BlockHash) -> BlockHash {
        BlockHash(hash.0 ^ mix(u64::from(worker) + 1))
    }

    /// A worker stored a block; its own hash and that of the node, where they differ.
    pub(crate) fn stored(&mut self, worker: u16, block: &Block) -> Option<(BlockHash, BlockHash)> {
        let (first, holders) = self.nodes.entry(block.block_hash).or_insert((worker, 0));
        *holders += 1;
        let own = Self::seeded(worker, block.block_hash);
        (*first != worker).then(|| (own, Self::seeded(*first, block.block_hash)))
    }

    /// A worker removed a block.
    pub(crate) fn removed(&mut self, hash: BlockHash) {
        if let Some((_, holders)) = self.nodes.get_mut(&hash) {
            *holders -= 1;
            if *holders == 0 {
                self.nodes.remove(&hash);
            }
        }
    }
}
