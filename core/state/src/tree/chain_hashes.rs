//! The hash of each block with everything before it, as Dynamo computes it (reference §5.10), for whoever asks what became of a block
//! that is removed: from the tree alone it would take a walk up to the root.
//!
//! Only there on request: eight bytes a node, sixteen at most because the room grows by doubling, and a hash for each block that is new.

use super::arena::Arena;
use super::{NodeId, Step, Tree};
use radixscope_model::id::{BlockHash, TokensHash};
use radixscope_model::record::Block;
use radixscope_router::hash::chain_hash;

/// By node; 0 where it is not known: the root, and what waits for a parent.
#[derive(Default)]
pub(super) struct ChainHashes(Vec<u64>);

impl ChainHashes {
    /// A node of these tokens is below `above`.
    #[inline]
    pub(super) fn add(&mut self, node: NodeId, above: NodeId, tokens: u64) {
        let chain = match above {
            NodeId::ROOT => chain_hash(None, TokensHash(tokens)).0,
            above => match self.get(above) {
                Some(above) => chain_hash(Some(above), TokensHash(tokens)).0,
                None => 0,
            },
        };
        self.put(node, chain);
    }

    /// Blocks, the first of them at `first`, each the only one below the one before.
    pub(super) fn add_all(&mut self, arena: &Arena, first: NodeId, blocks: &[Block]) {
        let above = arena[first].parent;
        let (mut node, mut chain) = (first, self.get(above));
        let is_known = above == NodeId::ROOT || chain.is_some();
        for block in blocks {
            chain = is_known.then(|| chain_hash(chain, block.tokens_hash));
            self.put(node, chain.map_or(0, |chain| chain.0));
            node = NodeId(arena[node].child);
        }
    }

    /// What is at `node` waits for a parent.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.put(node, 0);
    }

    fn put(&mut self, node: NodeId, chain: u64) {
        if self.0.len() <= node.at() {
            self.0.resize(node.at() + 1, 0);
        }
        self.0[node.at()] = chain;
    }

    pub(super) fn get(&self, node: NodeId) -> Option<BlockHash> {
        self.0.get(node.at()).filter(|&&chain| chain != 0).map(|&chain| BlockHash(chain))
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<u64>()
    }
}

impl Tree {
    /// From now on [`Tree::chain_hash`] is known.
    pub fn keep_chain_hashes(&mut self) {
        if self.chain_hashes.is_some() {
            return;
        }
        let mut chains = ChainHashes::default();
        for step in self.walk(NodeId::ROOT) {
            if let Step::Enter { node, .. } = step
                && node != NodeId::ROOT
            {
                chains.add(node, self.arena[node].parent, self.arena[node].tokens);
            }
        }
        self.chain_hashes = Some(chains);
    }

    /// The hash of the block at `node` with everything before it. `None`: nobody asked for such hashes, or what is before the block is
    /// not known.
    pub fn chain_hash(&self, node: NodeId) -> Option<BlockHash> {
        self.chain_hashes.as_ref()?.get(node)
    }
}
