//! What a prompt meets below device memory: a router counts the blocks of the lower tiers that go on where those of the
//! tier above end (reference: topologies §4).

use super::Cluster;
use crate::tree::{NodeId, Tree};
use radixscope_model::id::{PoolIx, TokensHash, WorkerIx};
use radixscope_model::record::Tier;

/// Blocks of a prompt that a worker holds in each lower tier, each beyond those of the tiers above.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TierBlocks {
    /// In host memory.
    pub host: u32,
    /// On disk.
    pub disk: u32,
    /// In external storage.
    pub external: u32,
}

/// A prompt's way through the trees of the lower tiers; memory to be used again.
#[derive(Default)]
pub struct TierPaths([Vec<NodeId>; Tier::ALL.len()]);

impl TierPaths {
    /// Follows `prompt` through the tiers of a pool.
    pub fn follow(&mut self, cluster: &Cluster, pool: PoolIx, prompt: &[TokensHash]) {
        for (tier, path) in Tier::ALL.into_iter().zip(&mut self.0) {
            path.clear();
            let tree = cluster.tier_tree(pool, tier);
            let mut at = NodeId::ROOT;
            path.extend(prompt.iter().map_while(|&tokens| {
                at = tree.child(at, tokens)?;
                Some(at)
            }));
        }
    }

    /// Nodes along the prompt in the tree of a tier, as far as it has them.
    pub fn path(&self, tier: Tier) -> &[NodeId] {
        &self.0[tier as usize]
    }

    /// What `worker` holds of the prompt looked at, beyond `device_blocks` on its device.
    pub fn beyond(
        &self,
        cluster: &Cluster,
        pool: PoolIx,
        worker: WorkerIx,
        device_blocks: u32,
    ) -> TierBlocks {
        self.beyond_at(cluster, pool, worker, device_blocks, |_, _| None)
    }

    /// The same at an earlier time: `was` says whether the worker held a position of the prompt in a tier then, where that is
    /// another than now.
    pub fn beyond_at(
        &self,
        cluster: &Cluster,
        pool: PoolIx,
        worker: WorkerIx,
        device_blocks: u32,
        was: impl Fn(Tier, usize) -> Option<bool>,
    ) -> TierBlocks {
        let mut from = device_blocks as usize;
        let Some(slot) = cluster.slot(worker) else { return TierBlocks::default() };
        let [host, disk, external] = [Tier::Host, Tier::Disk, Tier::External].map(|tier| {
            let tree = cluster.tier_tree(pool, tier);
            let path = self.path(tier);
            let holds_now = |at: usize| path.get(at).is_some_and(|&node| tree.owners(node).contains(slot));
            let held = (from..).take_while(|&at| was(tier, at).unwrap_or_else(|| holds_now(at))).count();
            from += held;
            held as u32
        });
        TierBlocks { host, disk, external }
    }
}

impl Cluster {
    /// The trees in which blocks of a pool are named, that of the devices first.
    pub fn trees_in(&self, pool: PoolIx) -> impl Iterator<Item = &Tree> {
        let below = Tier::ALL.into_iter().map(move |tier| self.tier_tree(pool, tier));
        std::iter::once(self.tree(pool)).chain(below)
    }

    /// Whether any worker of a pool holds blocks below device memory.
    pub fn has_tiers(&self, pool: PoolIx) -> bool {
        Tier::ALL.into_iter().any(|tier| self.tier_tree(pool, tier).totals().resident > 0)
    }
}
