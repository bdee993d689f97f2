//! The prefixes worth a look: the largest, and those most used.

use std::collections::BinaryHeap;

use super::{ChainId, Forest, Sums};

/// A chain says nothing new below one that it nearly equals: at least this share of the listed one above it.
const SAME_SHARE: f64 = 0.9;

impl Forest {
    /// Up to `most` prefixes with the most blocks at and below them, largest first.
    pub fn largest(&self, most: usize) -> Vec<ChainId> {
        self.ranked(most, |sums| sums.blocks)
    }

    /// Up to `most` prefixes that the most requests of the window found held, most used first.
    pub fn hottest(&self, most: usize) -> Vec<ChainId> {
        self.ranked(most, |sums| sums.hits)
    }

    /// Best first from the top: a subtree never has more than the one it is in.
    fn ranked(&self, most: usize, of: impl Fn(&Sums) -> u32) -> Vec<ChainId> {
        let mut listed: Vec<ChainId> = Vec::new();
        // Size, then the smaller tokens hash; the size of the nearest listed chain above.
        let entry = |id: ChainId, above: u32| {
            let chain = self.chain(id);
            (of(&chain.sums), std::cmp::Reverse(chain.tokens), id, above)
        };
        let mut next: BinaryHeap<_> = self.top.iter().map(|&id| entry(id, u32::MAX)).collect();
        while listed.len() < most
            && let Some((size, _, id, above)) = next.pop()
            && size > 0
        {
            let is_new = above == u32::MAX || f64::from(size) < SAME_SHARE * f64::from(above);
            if is_new {
                listed.push(id);
            }
            let above = if is_new { size } else { above };
            next.extend(self.chain(id).children.iter().map(|&child| entry(child, above)));
        }
        listed
    }
}
