//! Summing up and ordering what changed, from below upward.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::apply::TreeNodes;
use super::siblings::SiblingContext;
use super::{Arrangement, ChainId, Forest, Holder, Sums, Width};
use crate::tree::Tree;

/// In [`super::Chain::pending`]: its sums are made.
const DONE: u32 = u32::MAX;
/// The beginning of the hits' window moves in steps of this, in units of `touched`: a second as the state's fold counts
/// time.
const HIT_STEP: u32 = 10;
/// Revisions that were given to forests so far: they tell one from another, and nothing that is folded or shown is made of them.
static REVISIONS: AtomicU64 = AtomicU64::new(0);

impl Forest {
    /// Arranges everything anew at the next update.
    pub(super) fn arrange(&mut self, arrangement: Arrangement) {
        if self.arrangement == arrangement {
            return;
        }
        self.hits_moved |= self.arrangement.hits_window != arrangement.hits_window;
        self.arrangement = arrangement;
        for at in 0..self.chains.len() {
            if !self.chains[at].is_dead() {
                self.mark(ChainId(at as u32));
            }
        }
        self.top_is_stale = true;
        self.changes.skip();
    }

    /// Remembers that a chain's sums are to be made anew.
    pub(super) fn mark(&mut self, id: ChainId) {
        if self.marks.set(id) {
            self.stale.push(id);
        }
    }

    pub(super) fn update(&mut self, tree: &Tree) {
        self.count_hits(tree);
        self.changes.begin();
        if self.stale.is_empty() && !self.top_is_stale {
            return;
        }
        self.climb();
        let stale = std::mem::take(&mut self.stale);
        let nodes = tree.nodes();
        for &id in &stale {
            self.sum_up_from(nodes, id);
        }
        let mut top = std::mem::take(&mut self.top);
        let mut sums = Sums::default();
        let order = self.arrangement.order;
        let mut context =
            SiblingContext { parent: ChainId::NONE, chains: &mut self.chains, marks: &self.marks, order };
        self.width = top.lay_out(&mut context, &mut sums);
        (self.top, self.sums) = (top, sums);
        self.top_is_stale = false;
        self.record_changes(nodes, &stale);
        for &id in &stale {
            self.marks.unset(id);
            let chain = &mut self.chains[id.at()];
            (chain.pending, chain.new) = (0, 0);
        }
        self.stale = stale;
        self.stale.clear();
        self.free.append(&mut self.dead);
        self.revision = REVISIONS.fetch_add(1, Relaxed) + 1;
    }

    /// Marks all that is above something stale, and counts for each chain the stale ones right below it. One way up after
    /// the other: the chains of a way lie close to each other in memory.
    fn climb(&mut self) {
        for i in 0..self.stale.len() {
            let mut id = self.stale[i];
            while let Some(parent) = self.chains[id.at()].parent()
                && !self.chains[id.at()].is_dead()
            {
                self.chains[parent.at()].pending += 1;
                if !self.marks.set(parent) {
                    break;
                }
                self.stale.push(parent);
                id = parent;
            }
        }
    }

    /// Makes the sums of `id` if nothing below it is to be made first, and of those above it that waited for it alone.
    fn sum_up_from(&mut self, nodes: TreeNodes<'_>, mut id: ChainId) {
        loop {
            let chain = &self.chains[id.at()];
            if chain.pending > 0 || chain.is_dead() {
                return;
            }
            self.sum_up(nodes, id);
            let chain = &mut self.chains[id.at()];
            chain.pending = DONE;
            let Some(parent) = chain.parent() else { return };
            self.chains[parent.at()].pending -= 1;
            id = parent;
        }
    }

    fn sum_up(&mut self, nodes: TreeNodes<'_>, id: ChainId) {
        let chain = &mut self.chains[id.at()];
        let mut siblings = std::mem::take(&mut chain.siblings);
        let owners = nodes.set(chain.owners);
        let holders = owners.len() as u32;
        let mut sums = Sums {
            blocks: if holders > 0 { chain.len } else { 0 },
            shared: if holders > 1 { chain.len } else { 0 },
            copies: u64::from(chain.len) * u64::from(holders.saturating_sub(1)),
            hits: chain.own_hits,
            bottom: chain.end(),
            touched: chain.own_touched,
            holder: Holder::of(owners),
            workers: owners.low(),
            chains: 1,
        };
        let order = self.arrangement.order;
        let mut context = SiblingContext { parent: id, chains: &mut self.chains, marks: &self.marks, order };
        siblings.lay_out(&mut context, &mut sums);
        let width = match self.arrangement.width {
            Width::Blocks => sums.blocks,
            Width::Hits => sums.hits,
        };
        let chain = &mut self.chains[id.at()];
        // Blocks in use stay used when what made them so goes.
        chain.own_touched = sums.touched;
        (chain.siblings, chain.sums, chain.width) = (siblings, sums, width);
    }

    /// Counts the hits of the window into the chains where they ended, and marks those whose count has changed.
    fn count_hits(&mut self, tree: &Tree) {
        let since = self.now.saturating_sub(self.arrangement.hits_window) / HIT_STEP * HIT_STEP;
        if !self.hits_moved && since == self.hits_since {
            return;
        }
        (self.hits_moved, self.hits_since) = (false, since);
        self.requests = tree.requests(since);
        let before = std::mem::take(&mut self.hot);
        for id in &before {
            let chain = &mut self.chains[id.at()];
            (chain.pending, chain.own_hits) = (chain.own_hits, 0);
        }
        for (node, touch) in tree.hits().rev() {
            if touch < since {
                break;
            }
            let Some(id) = self.chain_of(node) else { continue };
            let hits = &mut self.chains[id.at()].own_hits;
            if *hits == 0 {
                self.hot.push(id);
            }
            *hits += 1;
        }
        for i in 0..self.hot.len() {
            let id = self.hot[i];
            if self.chains[id.at()].own_hits != self.chains[id.at()].pending {
                self.mark(id);
            }
        }
        for id in before {
            let chain = &mut self.chains[id.at()];
            let is_cold = chain.own_hits == 0 && chain.pending > 0;
            chain.pending = 0;
            if is_cold {
                self.mark(id);
            }
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
