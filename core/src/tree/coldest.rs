//! The bound on memory: beyond it the coldest leaves leave the picture, and are counted.

use super::{NodeId, Tree};
use crate::id::WorkerIx;

/// One sweep drops this share of the limit, so that sweeps are rare: 1 / 16.
const SWEEP_SHARE: u32 = 16;

impl Tree {
    /// Drops the leaves that were stored longest ago until the tree is a sixteenth below its limit.
    ///
    /// The choice depends only on what was heard, never on node ids, so that server and browser drop the same.
    pub(super) fn drop_coldest(&mut self) {
        let target = self.limit - self.limit / SWEEP_SHARE;
        while self.arena.live() > target {
            let mut leaves: Vec<(u32, u64, u64, NodeId)> = Vec::new();
            for id in self.arena.ids().skip(1) {
                let n = &self.arena[id];
                if !n.is_free() && n.child == super::children::NO_CHILD {
                    leaves.push((n.touched, n.tokens, n.block, id));
                }
            }
            let excess = (self.arena.live() - target) as usize;
            let drop = excess.min(leaves.len());
            if drop == 0 {
                return;
            }
            if drop < leaves.len() {
                leaves.select_nth_unstable(drop);
                leaves.truncate(drop);
            }
            for (_, _, _, leaf) in leaves {
                self.hide(leaf);
            }
        }
    }

    /// Takes a leaf from the picture; its owners still hold it.
    fn hide(&mut self, leaf: NodeId) {
        let owners: Vec<WorkerIx> = self.owners(leaf).iter().collect();
        for worker in owners {
            self.release(worker, leaf);
            self.holdings_mut(worker).hidden += 1;
            self.totals.hidden += 1;
            self.totals.resident += 1;
        }
    }
}
