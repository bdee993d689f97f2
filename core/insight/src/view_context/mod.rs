//! What panels look at: the state, and the pool of it that the reader chose. Knows no signal.

mod labels;
mod sums;
#[cfg(test)]
mod tests;

use std::ops::Deref;

use crate::changes::ChangeTree;
use crate::completeness::Trust;
use radixscope_model::id::{Millis, PoolIx, WorkerIx};
use radixscope_model::record::{Role, Tier};
use radixscope_state::cluster::{Cluster, Coverage, WorkerState};
use radixscope_state::tree::{NodeId, Tree};

pub use labels::PoolLabel;
pub use sums::{Sums, Unit, caption, source_name};

/// Workers that left stay in lists for so long, milliseconds: whoever looks for one finds it, and where pods are replaced all the time
/// the list is still about those that are here.
pub const LISTED_AFTER_LEAVING_MS: u64 = 300_000;

/// Whether the value of a filter in an address selects everything: what Grafana writes for a variable that is `All`.
pub fn is_all(value: &str) -> bool {
    // `.*` is what the project's dashboard gives Prometheus for `All`; `${worker}` in a text panel becomes it too.
    matches!(value, "" | "All" | "$__all" | "*" | ".*")
}

/// Pools as the address names them; without either name all are meant.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PoolQuery {
    /// `NAMESPACE/COMPONENT`.
    pub pool: Option<String>,
    /// A model.
    pub model: Option<String>,
}

impl PoolQuery {
    /// The pool meant: of several of one model the first that holds blocks. `None`: all are meant.
    ///
    /// # Errors
    /// The key and the value that no pool fits.
    pub fn find(&self, cluster: &Cluster) -> Result<Option<PoolIx>, (&'static str, &str)> {
        if let Some(name) = &self.pool {
            return cluster.pool_by_name(name).map(Some).ok_or(("pool", name));
        }
        let Some(model) = &self.model else { return Ok(None) };
        let serves_it = |pool: &PoolIx| cluster.models_in(*pool).contains(&model.as_str());
        let pools: Vec<PoolIx> = cluster.trees().map(|(pool, _)| pool).filter(serves_it).collect();
        let holds_blocks = |pool: &&PoolIx| cluster.tree(**pool).totals().resident > 0;
        let found = pools.iter().find(holds_blocks).or(pools.first());
        found.copied().map(Some).ok_or(("model", model))
    }
}

/// Which tree is drawn: that of a pool, and of which of its lower tiers; `None`: of the devices.
pub type DrawnTree = (PoolIx, Option<Tier>);

/// Which pools are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ShownPools {
    /// The pool whose tree is drawn.
    pub pool: PoolIx,
    /// The only one shown; `None`: all.
    pub only: Option<PoolIx>,
    /// The lower tier whose tree is drawn; `None`: the device's.
    pub tier: Option<Tier>,
}

impl ShownPools {
    /// The tree that is drawn.
    pub const fn drawn(&self) -> DrawnTree {
        (self.pool, self.tier)
    }

    /// Those that the address names; a name that no pool has means all.
    pub fn of(cluster: &Cluster, query: &PoolQuery) -> Self {
        let only = query.find(cluster).ok().flatten();
        Self { pool: only.unwrap_or_else(|| cluster.default_pool()), only, tier: None }
    }

    /// The same with the tree of `pool` drawn, where all are shown.
    #[must_use]
    pub fn drawing(self, pool: Option<PoolIx>) -> Self {
        Self { pool: self.only.or(pool).unwrap_or(self.pool), ..self }
    }

    /// The same with the tree of a lower tier, if anything is held there.
    #[must_use]
    pub fn in_tier(self, cluster: &Cluster, tier: Option<Tier>) -> Self {
        let holds_blocks = |tier: &Tier| cluster.tier_tree(self.pool, *tier).totals().resident > 0;
        Self { tier: tier.filter(holds_blocks), ..self }
    }
}

/// The state as it is shown: what a panel asks of it, and of which pool.
#[derive(Clone, Copy)]
pub struct ViewContext<'a> {
    /// Everything.
    pub cluster: &'a Cluster,
    /// The pool whose tree is drawn.
    pub pool: PoolIx,
    /// The only pool shown; `None`: all.
    pub only: Option<PoolIx>,
    /// The lower tier whose tree is drawn; `None`: the device's.
    pub tier: Option<Tier>,
    /// The copy that is drawn in the tree's place while the reader points at it.
    pub paused_tree: Option<&'a Tree>,
    /// What changed between two moments, which is drawn in the tree's place.
    pub changes: Option<&'a ChangeTree>,
}

impl<'a> ViewContext<'a> {
    /// Looks at `pools` of a state.
    pub fn new(cluster: &'a Cluster, pools: ShownPools) -> Self {
        Self {
            cluster,
            pool: pools.pool,
            only: pools.only,
            tier: pools.tier,
            paused_tree: None,
            changes: None,
        }
    }

    /// The prefix tree of the pool that is drawn; the copy, where one is held; that of two moments, where they are compared.
    pub fn tree(&self) -> &'a Tree {
        self.changes.map(ChangeTree::tree).or(self.paused_tree).unwrap_or_else(|| self.live_tree())
    }

    /// Whether a block of the copy that is held was evicted since.
    pub fn has_evicted(&self, node: NodeId) -> bool {
        self.paused_tree.is_some_and(|paused| self.live_tree().has_evicted(paused, node))
    }

    /// The prefix tree of the pool that is drawn, as it is now.
    pub fn live_tree(&self) -> &'a Tree {
        self.tier.map_or_else(|| self.cluster.tree(self.pool), |tier| self.cluster.tier_tree(self.pool, tier))
    }

    /// The lower tiers of that pool in which anything is held.
    pub fn tiers(&self) -> Vec<Tier> {
        let holds_blocks = |tier: &Tier| self.cluster.tier_tree(self.pool, *tier).totals().resident > 0;
        Tier::ALL.into_iter().filter(holds_blocks).collect()
    }

    /// Tokens per block in that pool.
    pub fn block_tokens(&self) -> Option<u32> {
        self.cluster.block_tokens(self.pool)
    }

    /// Whether something of `pool` is shown.
    pub fn has(&self, pool: PoolIx) -> bool {
        self.only.is_none_or(|only| only == pool)
    }

    /// The workers shown, by slot, those that left included.
    pub fn worker_list(&self) -> impl Iterator<Item = WorkerIx> + use<'a> {
        let Self { cluster, only, .. } = *self;
        let workers = cluster.workers().indexed();
        workers.filter(move |(_, state)| only.is_none_or(|only| only == state.pool)).map(|(worker, _)| worker)
    }

    /// The workers shown, without those of which nothing can have come from `from` on: they left before.
    pub fn workers_since(&self, from: Millis) -> impl Iterator<Item = WorkerIx> + use<'a> {
        let cluster = self.cluster;
        self.worker_list().filter(move |worker| {
            let left = |state: &WorkerState| {
                Some(state.departure?.at_ms.max(state.last_event_ms.unwrap_or_default()))
            };
            cluster.worker(*worker).and_then(left).is_none_or(|left| left >= from)
        })
    }

    /// The workers shown, without those that left more than [`LISTED_AFTER_LEAVING_MS`] before `now` while others are here.
    pub fn listed_workers(&self, now: Millis) -> Vec<WorkerIx> {
        let since = Millis(now.0.saturating_sub(LISTED_AFTER_LEAVING_MS));
        let listed: Vec<WorkerIx> = self.workers_since(since).collect();
        if listed.is_empty() { self.worker_list().collect() } else { listed }
    }

    /// The workers of the pool that is drawn.
    pub fn drawn_workers(&self) -> impl Iterator<Item = WorkerIx> + use<'a> {
        Self { only: Some(self.pool), ..*self }.worker_list()
    }
}

impl ViewContext<'_> {
    /// Whether any worker of the pools shown ever published a KV event.
    pub fn has_kv_events(&self) -> bool {
        let mut workers = self.worker_list().filter_map(|worker| self.cluster.worker(worker));
        workers.any(|worker| worker.last_event_ms.is_some())
    }

    /// How much of what the workers of the pools shown hold is known.
    pub fn coverage(&self) -> Coverage {
        self.cluster.coverage(self.cluster.pools_in_use().into_iter().filter(|&pool| self.has(pool)))
    }

    /// Whether figures of the tree that is drawn may stand.
    pub fn trust(&self) -> Trust {
        Trust::of(self.cluster, self.pool)
    }

    /// Whether the pool drawn has no tree because its workers decode and publish nothing.
    pub fn decodes_silently(&self) -> bool {
        self.is_silent(self.pool)
    }

    /// Whether its workers decode, and none of them ever published a KV event.
    fn is_silent(&self, pool: PoolIx) -> bool {
        let mut workers = self.cluster.workers_in(pool).filter_map(|worker| self.cluster.worker(worker));
        self.is_decode(pool) && workers.all(|state| state.last_event_ms.is_none())
    }

    fn is_decode(&self, pool: PoolIx) -> bool {
        self.cluster.role(pool).is_some_and(|(role, _)| role == Role::Decode)
    }
}

impl Deref for ViewContext<'_> {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        self.cluster
    }
}
