//! One element of an answer: a run of blocks with one child each and the same owners.

use std::fmt::Write as _;

use super::{OrNull, Picture, ms};
use radixscope_state::tree::NodeId;

/// What is told of an element, but for what is below it.
pub(super) struct Element {
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
}

impl Element {
    /// Writes the members of the JSON object, without its braces.
    pub(super) fn write(&self, picture: &Picture, json: &mut String) {
        let tree = picture.tree();
        let _ = write!(
            json,
            "\"block_hash\":\"{}\",\"tokens_hash\":\"{}\",\"position\":{},\"len\":{},\"last_block_hash\":\"{}\",\"workers\":",
            tree.block_hash(self.first),
            tree.tokens_hash(self.first),
            OrNull(self.position),
            self.len,
            tree.block_hash(self.last),
        );
        picture.write_workers(json, tree.owners(self.first).iter());
        let _ = write!(
            json,
            ",\"subtree_blocks\":{},\"subtree_shared_blocks\":{},\"subtree_copies\":{},\"subtree_depth_blocks\":{},\
             \"hits\":{},\"first_stored_ms\":{},\"last_touch_ms\":{},\"subtree_last_touch_ms\":{}",
            self.blocks,
            self.shared,
            self.copies,
            OrNull(self.depth),
            OrNull(self.hits),
            ms(tree.first_stored(self.first)),
            ms(self.touched),
            ms(self.subtree_touched),
        );
    }
}
