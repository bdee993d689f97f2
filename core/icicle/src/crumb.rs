//! A block by what stays when the tree changes.

use radixscope_model::id::{BlockHash, TokensHash};
use radixscope_state::tree::forest::{ChainId, Forest};
use radixscope_state::tree::{NodeId, Tree};

use radixscope_model::number_format;

/// A block: the hashes it has, and where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crumb {
    /// Engine's hash of the block.
    pub hash: BlockHash,
    /// Router's hash of its tokens.
    pub tokens: TokensHash,
    /// Position of the block in its prompt.
    pub position: u32,
}

impl Crumb {
    /// The first block of a box.
    pub fn of(tree: &Tree, forest: &Forest, id: ChainId) -> Self {
        let chain = forest.chain(id);
        Self::at(tree, chain.first, chain.position)
    }

    /// A block whose position is known.
    pub fn at(tree: &Tree, node: NodeId, position: u32) -> Self {
        Self { hash: tree.block_hash(node), tokens: tree.tokens_hash(node), position }
    }

    /// For the path.
    pub fn to_text(self) -> String {
        format!("block {}", number_format::count(u64::from(self.position)))
    }

    /// The node it names now; `None` once it is cached nowhere.
    pub fn node(self, tree: &Tree) -> Option<NodeId> {
        tree.find_any(self.hash).filter(|&n| tree.is_attached(n) && tree.tokens_hash(n) == self.tokens)
    }

    /// The box that its block is in now.
    pub fn chain(self, tree: &Tree) -> Option<ChainId> {
        tree.forest()?.chain_of(self.node(tree)?)
    }
}
