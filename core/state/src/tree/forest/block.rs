//! A block within its chain: the sums of a prefix that ends in the midst of a box.

use super::ChainId;
use crate::tree::{NodeId, Tree};

/// A block with the sums over it and everything below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    /// The chain that the block is in.
    pub chain: ChainId,
    /// Position of the block in its prompt, from 0.
    pub position: u32,
    /// Its place in the chain, from 0.
    pub place: u32,
    /// Blocks in the chain.
    pub chain_len: u32,
    /// Held blocks at and below it.
    pub blocks: u32,
    /// Of those, held by two workers or more.
    pub shared: u32,
    /// Copies of them beyond the first.
    pub copies: u64,
    /// Requests of the arrangement's window that found it held.
    pub hits: u32,
    /// Position behind the deepest block below it.
    pub bottom: u32,
    /// When a worker last stored, or a request last used, a block of its chain or below.
    pub touched: u32,
    /// Blocks that follow it.
    pub children: u32,
}

impl Tree {
    /// The sums of a block, as of the last update; `None` without a forest, or where the way from the top to the block
    /// is not known. Walks within the chain.
    pub fn prefix(&self, node: NodeId) -> Option<Prefix> {
        let forest = self.forest()?;
        let id = forest.chain_of(node)?;
        let chain = forest.chain(id);
        let (mut place, mut above) = (0, 0);
        let mut at = node;
        while at != chain.first {
            at = self.parent(at)?;
            above += self.hits_at(at, forest.hits_since());
            place += 1;
        }
        let holders = self.chain_owners(chain).len() as u32;
        let held_above = if holders > 0 { place } else { 0 };
        let sums = &chain.sums;
        Some(Prefix {
            chain: id,
            position: chain.position + place,
            place,
            chain_len: chain.len,
            blocks: sums.blocks.saturating_sub(held_above),
            shared: sums.shared.saturating_sub(if holders > 1 { place } else { 0 }),
            copies: sums.copies.saturating_sub(u64::from(place) * u64::from(holders.saturating_sub(1))),
            hits: sums.hits.saturating_sub(above),
            bottom: sums.bottom,
            touched: sums.touched,
            children: self.children(node).len() as u32,
        })
    }
}
