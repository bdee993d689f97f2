//! Summing up and ordering what changed, from below upward.

use std::cmp::Reverse;

use super::{Arrangement, Chain, ChainId, Forest, Holder, Order, Sums, Width};
use crate::tree::{NodeId, Tree};

impl Forest {
    /// Arranges everything anew at the next settling.
    pub(super) fn arrange(&mut self, arrangement: Arrangement) {
        if self.arrangement == arrangement {
            return;
        }
        self.hits_moved |= self.arrangement.hits_window != arrangement.hits_window;
        self.arrangement = arrangement;
        for at in 0..self.chains.len() {
            if !self.chains[at].is_dead {
                self.mark(ChainId(at as u32));
            }
        }
        self.top_is_stale = true;
    }

    /// Remembers that a chain's sums are to be made anew.
    pub(super) fn mark(&mut self, id: ChainId) {
        let chain = &mut self.chains[id.at()];
        if !chain.is_stale {
            chain.is_stale = true;
            self.stale.push(id);
        }
    }

    pub(super) fn settle(&mut self, tree: &Tree) {
        self.count_hits(tree);
        if self.stale.is_empty() && !self.top_is_stale {
            return;
        }
        // What is above something stale is stale.
        let mut i = 0;
        while let Some(&id) = self.stale.get(i) {
            if let Some(parent) = self.chains[id.at()].parent() {
                self.mark(parent);
            }
            i += 1;
        }
        let mut stale = std::mem::take(&mut self.stale);
        // A chain begins below its parent, so deeper ones first are children before parents.
        stale.sort_unstable_by_key(|id| Reverse(self.chains[id.at()].position));
        for &id in &stale {
            self.chains[id.at()].is_stale = false;
            if !self.chains[id.at()].is_dead {
                self.sum_up(tree, id);
            }
        }
        stale.clear();
        self.stale = stale;
        let mut top = std::mem::take(&mut self.top);
        let mut sums = Sums::default();
        self.width = self.line_up(ChainId::NONE, &mut top, &mut sums);
        (self.top, self.sums) = (top, sums);
        self.top_is_stale = false;
        self.free.append(&mut self.dead);
        self.revision += 1;
    }

    fn sum_up(&mut self, tree: &Tree, id: ChainId) {
        let mut children = std::mem::take(&mut self.chains[id.at()].children);
        let chain = &self.chains[id.at()];
        let owners = tree.chain_owners(chain);
        let holders = owners.len() as u32;
        let mut sums = Sums {
            blocks: tree.held_in(chain),
            shared: if holders > 1 { chain.len } else { 0 },
            copies: u64::from(chain.len) * u64::from(holders.saturating_sub(1)),
            hits: chain.own_hits,
            bottom: chain.end(),
            touched: chain.own_touched,
            holder: Holder::of(owners),
            workers: owners.low(),
            chains: 1,
        };
        self.line_up(id, &mut children, &mut sums);
        let width = self.units(&sums);
        let chain = &mut self.chains[id.at()];
        // Blocks in use stay used when what made them so goes.
        chain.own_touched = sums.touched;
        (chain.children, chain.sums, chain.width) = (children, sums, width);
    }

    fn units(&self, sums: &Sums) -> u32 {
        match self.arrangement.width {
            Width::Blocks => sums.blocks,
            Width::Hits => sums.hits,
        }
    }

    /// Cleans the list of those below `parent`, puts them into their order and place and adds their sums to `sums`.
    /// Gives the units of all of them.
    fn line_up(&mut self, parent: ChainId, family: &mut Vec<ChainId>, sums: &mut Sums) -> u32 {
        let chains = &mut self.chains;
        family.retain(|id| {
            let chain = &chains[id.at()];
            chain.parent == parent && !chain.is_dead
        });
        let heavy = self.arrangement.order == Order::LeftHeavy;
        let key = |chain: &Chain| (Reverse(if heavy { chain.width } else { 0 }), chain.tokens);
        if !family.is_sorted_by_key(|id| key(&chains[id.at()])) {
            // A sort that profits from what is in order already.
            family.sort_by_key(|id| key(&chains[id.at()]));
        }
        // What moved away and back is listed twice.
        family.dedup();
        let mut before = 0;
        for &id in family.iter() {
            let chain = &mut chains[id.at()];
            chain.before = before;
            before += chain.width;
            sums.add(&chain.sums);
        }
        before
    }

    /// Counts the hits of the window into the chains where they ended.
    fn count_hits(&mut self, tree: &Tree) {
        let since = 0;
        if !self.hits_moved && since == self.counted_since {
            return;
        }
        (self.hits_moved, self.counted_since) = (false, since);
        for id in std::mem::take(&mut self.hot) {
            self.chains[id.at()].own_hits = 0;
            self.mark(id);
        }
        let hits: [(NodeId, u32); 0] = [];
        let _ = tree;
        for (node, _) in hits {
            let Some(id) = self.chain_of(node) else { continue };
            self.chains[id.at()].own_hits += 1;
            self.hot.push(id);
            self.mark(id);
        }
    }
}

impl Sums {
    /// Adds those of another subtree.
    pub(super) fn add(&mut self, other: &Sums) {
        self.blocks += other.blocks;
        self.shared += other.shared;
        self.copies += other.copies;
        self.hits += other.hits;
        self.bottom = self.bottom.max(other.bottom);
        self.touched = self.touched.max(other.touched);
        self.holder = self.holder.with(other.holder);
        self.workers |= other.workers;
        self.chains += other.chains;
    }
}
