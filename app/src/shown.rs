//! What panels look at: the state, and the pool of it that the reader chose. Knows no signal.

use std::ops::Deref;

use radixscope_model::id::{PoolIx, WorkerIx};
use radixscope_model::record::Role;
use radixscope_state::cluster::{Cluster, PoolState};
use radixscope_state::tree::Tree;

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

/// Which pools are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ShownPools {
    /// The pool whose tree is drawn.
    pub pool: PoolIx,
    /// The only one shown; `None`: all.
    pub only: Option<PoolIx>,
}

impl ShownPools {
    /// Those that the address names; a name that no pool has means all.
    pub fn of(cluster: &Cluster, query: &PoolQuery) -> Self {
        let only = query.find(cluster).ok().flatten();
        Self { pool: only.unwrap_or_else(|| cluster.default_pool()), only }
    }
}

/// The state as it is shown: what a panel asks of it, and of which pool.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    /// Everything.
    pub cluster: &'a Cluster,
    /// The pool whose tree is drawn.
    pub pool: PoolIx,
    /// The only pool shown; `None`: all.
    pub only: Option<PoolIx>,
}

impl<'a> Shown<'a> {
    /// Looks at `pools` of a state.
    pub fn new(cluster: &'a Cluster, pools: ShownPools) -> Self {
        Self { cluster, pool: pools.pool, only: pools.only }
    }

    /// The prefix tree of the pool that is drawn.
    pub fn tree(&self) -> &'a Tree {
        self.cluster.tree(self.pool)
    }

    /// Tokens per block in that pool.
    pub fn block_tokens(&self) -> Option<u32> {
        self.cluster.block_tokens(self.pool)
    }

    /// Whether something of `pool` is shown.
    pub fn has(&self, pool: PoolIx) -> bool {
        self.only.is_none_or(|only| only == pool)
    }

    /// The workers shown, in order of first sight, those that left included.
    pub fn worker_list(&self) -> impl Iterator<Item = WorkerIx> + 'a {
        let Self { cluster, only, .. } = *self;
        let workers = cluster.workers().iter().zip(0..).map(|(worker, at)| (worker.pool, WorkerIx(at)));
        workers.filter(move |(pool, _)| only.is_none_or(|only| only == *pool)).map(|(_, worker)| worker)
    }

    /// The pools that a reader can choose from: those that workers are in, and the one shown. Workers of whom no message
    /// named the pool may be of any; they have none of their own here.
    pub fn pool_list(&self) -> Vec<PoolIx> {
        let in_use = self.cluster.pools_in_use();
        let state = |pool: PoolIx| self.cluster.pool(pool);
        let is_named = |pool: &PoolState| !pool.namespace.is_empty() && !pool.component.is_empty();
        let is_of_another = |pool: PoolIx| {
            let Some(of) = state(pool).filter(|of| !is_named(of)) else { return false };
            in_use.iter().any(|&other| {
                other != pool && state(other).is_some_and(|other| is_named(other) && other.may_be(of))
            })
        };
        let mut list: Vec<PoolIx> = in_use.iter().copied().filter(|&pool| !is_of_another(pool)).collect();
        if let Some(only) = self.only.filter(|only| !list.contains(only)) {
            list.push(only);
        }
        list
    }

    /// The same with what they are called; empty where there is no choice: one pool, and nothing asked for.
    pub fn pool_labels(&self) -> Vec<PoolLabel> {
        let list = self.pool_list();
        if list.len() < 2 && self.only.is_none() {
            return Vec::new();
        }
        let mut namespaces = list.iter().filter_map(|&pool| Some(self.cluster.pool(pool)?.namespace.as_str()));
        let first = namespaces.next();
        let is_one = namespaces.all(|other| Some(other) == first);
        list.iter().filter_map(|&pool| PoolLabel::of(self.cluster, pool, is_one)).collect()
    }

    /// Whether several pools are to be told apart.
    pub fn has_pools(&self) -> bool {
        self.pool_list().len() > 1
    }
}

/// What a pool is called on screen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolLabel {
    /// Which.
    pub pool: PoolIx,
    /// `NAMESPACE/COMPONENT`, as in the address.
    pub name: String,
    /// The component alone where all pools are of one namespace.
    pub short: String,
    /// What its workers do.
    pub role: Option<Role>,
    /// The models that they serve.
    pub models: String,
}

impl PoolLabel {
    fn of(cluster: &Cluster, pool: PoolIx, is_one_namespace: bool) -> Option<Self> {
        let state = cluster.pool(pool)?;
        let name = state.name();
        let short = match is_one_namespace && !state.component.is_empty() {
            true => state.component.clone(),
            false => name.clone(),
        };
        let role = cluster.role(pool).map(|(role, _)| role);
        Some(Self { pool, name, short, role, models: cluster.models_in(pool).join(", ") })
    }

    /// `backend · decode · tiny-llama`, as far as it is known.
    pub fn words(&self) -> String {
        let role = self.role.map(Role::as_str).filter(|role| *role != self.short);
        let models = Some(self.models.as_str()).filter(|models| !models.is_empty());
        [Some(self.short.as_str()), role, models].into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }
}

impl Deref for Shown<'_> {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        self.cluster
    }
}
