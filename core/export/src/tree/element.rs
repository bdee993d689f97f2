//! One element of a response: a run of blocks with one child each and the same owners.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::{BlockWorkers, TreeSnapshot};
use radixscope_state::cluster::touched_ms;
use radixscope_state::tree::NodeId;

/// The fields of an element; the rest is read from the tree as it is written.
pub(super) struct Element<'p> {
    pub(super) picture: &'p TreeSnapshot,
    /// 0 at the top of a page; other answers have no levels.
    pub(super) level: Option<usize>,
    /// Its first block.
    pub(super) first: NodeId,
    /// Its last block.
    pub(super) last: NodeId,
    /// Its blocks.
    pub(super) len: u32,
    /// Position of the first block; `None` below a parent that was never seen.
    pub(super) position: Option<u32>,
    /// Sums over the element and everything below it.
    pub(super) blocks: u32,
    pub(super) shared: u32,
    pub(super) copies: u64,
    /// Position behind the deepest block.
    pub(super) depth: Option<u32>,
    /// `None`: of no request is known what was held.
    pub(super) hits: Option<u32>,
    /// Latest touch of a block of the element.
    pub(super) touched: u32,
    /// Latest touch of a block of it or below.
    pub(super) subtree_touched: u32,
    /// Elements right below it.
    pub(super) branches: usize,
}

impl Serialize for Element<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (picture, tree) = (self.picture, self.picture.tree());
        let mut row = to.serialize_struct("Element", 16)?;
        if let Some(level) = self.level {
            row.serialize_field("level", &level)?;
        }
        row.serialize_field("block_hash", &tree.block_hash(self.first))?;
        row.serialize_field("tokens_hash", &tree.tokens_hash(self.first))?;
        row.serialize_field("position", &self.position)?;
        row.serialize_field("len", &self.len)?;
        row.serialize_field("last_block_hash", &tree.block_hash(self.last))?;
        row.serialize_field("workers", &BlockWorkers { picture, node: self.first })?;
        row.serialize_field("subtree_blocks", &self.blocks)?;
        row.serialize_field("subtree_shared_blocks", &self.shared)?;
        row.serialize_field("subtree_copies", &self.copies)?;
        row.serialize_field("subtree_depth_blocks", &self.depth)?;
        row.serialize_field("hits", &self.hits)?;
        row.serialize_field("first_stored_ms", &touched_ms(tree.first_stored(self.first)))?;
        row.serialize_field("last_touch_ms", &touched_ms(self.touched))?;
        row.serialize_field("subtree_last_touch_ms", &touched_ms(self.subtree_touched))?;
        row.serialize_field("branches", &self.branches)?;
        row.end()
    }
}
