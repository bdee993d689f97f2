//! The prefixes worth a look: the largest, and those most used.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{ChainId, Forest, Sums};

/// A chain says nothing new below one that it nearly equals: at least this share of the listed one above it.
const SAME_SHARE: f64 = 0.9;

/// Size, then the smaller tokens hash; the size of the nearest listed chain above.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    size: u32,
    tokens: Reverse<u64>,
    id: ChainId,
    above: u32,
}

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
        let mut next = BinaryHeap::new();
        self.best_of(None, u32::MAX, most, &of, &mut next);
        while listed.len() < most
            && let Some(Entry { size, id, above, .. }) = next.pop()
            && size > 0
        {
            let is_new = above == u32::MAX || f64::from(size) < SAME_SHARE * f64::from(above);
            if is_new {
                listed.push(id);
            }
            self.best_of(Some(id), if is_new { size } else { above }, most, &of, &mut next);
        }
        listed
    }

    /// Adds those of some siblings that can be listed. Only one of them can nearly equal the one above and be passed over, so
    /// one more than `most` are enough.
    fn best_of(
        &self,
        parent: Option<ChainId>,
        above: u32,
        most: usize,
        of: &impl Fn(&Sums) -> u32,
        next: &mut BinaryHeap<Entry>,
    ) {
        let siblings = self.siblings(parent);
        let entry = |&id: &ChainId| {
            let chain = self.chain(id);
            Entry { size: of(&chain.sums), tokens: Reverse(chain.tokens), id, above }
        };
        if siblings.groups().is_empty() {
            next.extend(siblings.ids.iter().map(entry));
            return;
        }
        let mut best: BinaryHeap<Reverse<Entry>> = BinaryHeap::new();
        for group in siblings.groups() {
            let is_full = best.len() > most;
            // No member has more than all of them together.
            if is_full && best.peek().is_some_and(|least| of(&group.sums) < least.0.size) {
                continue;
            }
            for entry in siblings.members(group).iter().map(entry) {
                if best.len() <= most {
                    best.push(Reverse(entry));
                } else if best.peek().is_some_and(|least| least.0 < entry) {
                    best.pop();
                    best.push(Reverse(entry));
                }
            }
        }
        next.extend(best.into_iter().map(|entry| entry.0));
    }
}
