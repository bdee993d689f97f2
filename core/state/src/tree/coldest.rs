//! The bound on memory: beyond it the coldest leaves leave the picture, and are counted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::arena::NO_CHILD;
use super::{NodeId, Tree};
use radixscope_model::id::Slot;

/// One sweep drops this share of the limit, so that sweeps are rare: 1 / 16.
const SWEEP_SHARE: u32 = 16;

/// A leaf, the one stored longest ago first: when, tokens hash, engine hash and who calls it so. A worker calls one
/// block so, hence no two leaves are equal and the order never depends on the node's id: server and browser, with
/// other ids, drop the same.
type Leaf = Reverse<(u32, u64, u64, Option<Slot>, NodeId)>;

impl Tree {
    /// Drops the leaves that were stored longest ago until the tree is a sixteenth below its limit.
    ///
    /// A block is a leaf once everything below it has gone, so a chain goes from its end.
    pub(super) fn drop_coldest(&mut self) {
        let target = self.limit - self.limit / SWEEP_SHARE;
        let leaves = self.arena.ids().skip(1).filter(|&id| {
            let n = &self.arena[id];
            !n.is_free() && n.child == NO_CHILD
        });
        let mut leaves: BinaryHeap<Leaf> = leaves.map(|id| self.leaf(id)).collect();
        while self.arena.live() > target
            && let Some(Reverse((.., leaf))) = leaves.pop()
        {
            let above = self.held_above(leaf);
            self.hide(leaf);
            if above != NodeId::ROOT && !self.arena[above].is_free() && self.arena[above].child == NO_CHILD {
                leaves.push(self.leaf(above));
            }
        }
    }

    fn leaf(&self, id: NodeId) -> Leaf {
        let n = &self.arena[id];
        let worker = self.index.first_to_use_primary(&self.arena, id, self.owners(id));
        Reverse((n.touched, n.tokens, n.block, worker, id))
    }

    /// The nearest block above that somebody holds; the root or the orphan parent if there is none.
    fn held_above(&self, leaf: NodeId) -> NodeId {
        let mut at = self.arena[leaf].parent;
        while at != NodeId::ROOT && !self.arena[at].is_orphan_parent() && self.owners(at).is_empty() {
            at = self.arena[at].parent;
        }
        at
    }

    /// Takes a leaf from the picture; its owners still hold it.
    fn hide(&mut self, leaf: NodeId) {
        let owners: Vec<Slot> = self.owners(leaf).iter().collect();
        for worker in owners {
            self.release(worker, leaf);
            self.holdings_mut(worker).hidden += 1;
            self.totals.hidden += 1;
            self.totals.resident += 1;
        }
    }
}
