//! What panels look at: the state, and the pool of it that the reader chose. Knows no signal.

use std::ops::Deref;

use radixscope_model::id::{Millis, PoolIx, WorkerIx};
use radixscope_model::record::Role;
use radixscope_state::cluster::{Cluster, DecisionTotals, PoolState};
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
    pub fn worker_list(&self) -> impl Iterator<Item = WorkerIx> + use<'a> {
        let Self { cluster, only, .. } = *self;
        let workers = cluster.workers().iter().zip(0..).map(|(worker, at)| (worker.pool, WorkerIx(at)));
        workers.filter(move |(pool, _)| only.is_none_or(|only| only == *pool)).map(|(_, worker)| worker)
    }

    /// The workers of the pool that is drawn.
    pub fn drawn_workers(&self) -> impl Iterator<Item = WorkerIx> + use<'a> {
        Self { only: Some(self.pool), ..*self }.worker_list()
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
        let mut namespaces =
            list.iter().filter_map(|&pool| Some(self.cluster.pool(pool)?.namespace.as_str()));
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

    /// What tells its workers from those of the other pools: role and model where they differ, else the name.
    pub fn beside(&self, all: &[PoolLabel]) -> String {
        let role = self.role.filter(|role| all.iter().any(|other| other.role != Some(*role)));
        let is_model_apart = all.iter().any(|other| other.models != self.models);
        let model = Some(self.models.as_str()).filter(|models| is_model_apart && !models.is_empty());
        let parts: Vec<&str> = [role.map(Role::as_str), model].into_iter().flatten().collect();
        let is_only = all
            .iter()
            .all(|other| other.pool == self.pool || (other.role, &other.models) != (self.role, &self.models));
        if is_only && !parts.is_empty() { parts.join(" · ") } else { self.short.clone() }
    }

    /// `backend · decode · tiny-llama`, as far as it is known.
    pub fn words(&self) -> String {
        let role = self.role.map(Role::as_str).filter(|role| *role != self.short);
        let models = Some(self.models.as_str()).filter(|models| !models.is_empty());
        [Some(self.short.as_str()), role, models].into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }
}

/// In what figures over several pools are added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// All pools have blocks of one size.
    Blocks,
    /// They have not.
    Tokens,
}

impl Unit {
    /// Name on screen.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Blocks => "blocks",
            Self::Tokens => "tokens",
        }
    }
}

/// Decisions of some pools, summed.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sums {
    /// Decisions.
    pub count: u64,
    /// What the prompts were, what of them the chosen workers held, and in what that is counted. `None`: blocks are of
    /// different size, and of some it is not known.
    pub prompts: Option<(u64, u64, Unit)>,
    /// Hit rates of the pools, where they cannot be summed.
    pub apart: Vec<(String, f64)>,
}

impl Sums {
    /// KV hit rate, 0 … 1; `None` where nothing or not enough is known.
    pub fn hit_rate(&self) -> Option<f64> {
        let (prompts, cached, _) = self.prompts.filter(|(prompts, ..)| *prompts > 0)?;
        Some(cached as f64 / prompts as f64)
    }
}

impl Shown<'_> {
    /// In what blocks of these pools can be added; `None`: their sizes differ or may differ, and one is unknown.
    pub fn unit(&self, pools: &[PoolIx]) -> Option<Unit> {
        if pools.len() < 2 {
            return Some(Unit::Blocks);
        }
        let sizes: Option<Vec<u32>> = pools.iter().map(|&pool| self.cluster.block_tokens(pool)).collect();
        let sizes = sizes?;
        Some(if sizes.windows(2).all(|pair| pair[0] == pair[1]) { Unit::Blocks } else { Unit::Tokens })
    }

    /// So many blocks of a pool in `unit`.
    fn in_unit(&self, pool: PoolIx, blocks: u64, unit: Unit) -> u64 {
        match unit {
            Unit::Blocks => blocks,
            Unit::Tokens => blocks.saturating_mul(self.cluster.block_tokens(pool).map_or(0, u64::from)),
        }
    }

    /// Blocks that workers of the pools shown hold, and how many of them are in the trees; what they are counted in.
    /// `None`: they cannot be added.
    pub fn held(&self) -> Option<(u64, u64, Unit)> {
        let trees = self.cluster.trees().filter(|(pool, tree)| self.has(*pool) && tree.totals().resident > 0);
        let totals: Vec<_> = trees.map(|(pool, tree)| (pool, tree.totals())).collect();
        let unit = self.unit(&totals.iter().map(|(pool, _)| *pool).collect::<Vec<_>>())?;
        let sum = |of: fn(&radixscope_state::tree::Totals) -> u64| {
            totals.iter().map(|(pool, totals)| self.in_unit(*pool, of(totals), unit)).sum()
        };
        Some((sum(|totals| totals.resident), sum(|totals| totals.resident - totals.hidden), unit))
    }

    /// Workers whose KV events were received, and workers that publish them by design. Those that left are neither, nor
    /// decode workers whose card says that they publish none, nor decode workers in a pool of which nobody ever published.
    pub fn coverage(&self) -> (usize, usize) {
        let silent_pools: Vec<PoolIx> =
            self.cluster.trees().map(|(pool, _)| pool).filter(|&pool| self.is_silent(pool)).collect();
        let publishes = |worker: &WorkerIx| {
            self.cluster.worker(*worker).is_some_and(|state| {
                let is_silent = state.publishes_events == Some(false) && self.is_decode(state.pool);
                state.gone.is_none() && !is_silent && !silent_pools.contains(&state.pool)
            })
        };
        let publishers: Vec<WorkerIx> = self.worker_list().filter(publishes).collect();
        let has_events = |worker: &&WorkerIx| {
            self.cluster.worker(**worker).is_some_and(|state| state.last_event_ms.is_some())
        };
        (publishers.iter().filter(has_events).count(), publishers.len())
    }

    /// Whether its workers decode, and none of them ever published a KV event.
    fn is_silent(&self, pool: PoolIx) -> bool {
        let mut workers = self.cluster.workers_in(pool).filter_map(|worker| self.cluster.worker(worker));
        self.is_decode(pool) && workers.all(|state| state.last_event_ms.is_none())
    }

    fn is_decode(&self, pool: PoolIx) -> bool {
        self.cluster.role(pool).is_some_and(|(role, _)| role == Role::Decode)
    }

    /// Sums over decisions of several pools.
    pub fn sums(&self, of_pool: &[(PoolIx, DecisionTotals)]) -> Sums {
        let count = of_pool.iter().map(|(_, totals)| totals.count).sum();
        let known: Vec<_> = of_pool.iter().filter(|(_, totals)| totals.isl_blocks > 0).collect();
        let Some(unit) = self.unit(&known.iter().map(|(pool, _)| *pool).collect::<Vec<_>>()) else {
            let rate = |(pool, totals): &&(PoolIx, DecisionTotals)| {
                Some((self.cluster.pool(*pool)?.name(), totals.overlap_share()?))
            };
            return Sums { count, prompts: None, apart: known.iter().filter_map(rate).collect() };
        };
        let sum = |of: fn(&DecisionTotals) -> u64| {
            known.iter().map(|(pool, totals)| self.in_unit(*pool, of(totals), unit)).sum()
        };
        let prompts = Some((sum(|totals| totals.isl_blocks), sum(|totals| totals.overlap_blocks), unit));
        Sums { count, prompts, apart: Vec::new() }
    }

    /// Sums over all decisions ever received in the pools shown.
    pub fn decision_sums(&self) -> Sums {
        let pools = (0..self.cluster.pools().len() as u16).map(PoolIx).filter(|pool| self.has(*pool));
        let totals: Vec<_> = pools.map(|pool| (pool, self.cluster.decisions().totals_in(pool))).collect();
        self.sums(&totals)
    }

    /// The same over those of the `window_ms` before `now`, as far as they are kept one by one.
    pub fn recent_sums(&self, now: Millis, window_ms: u64) -> Sums {
        let decisions = self.cluster.decisions().newest_first();
        let mut totals: Vec<(PoolIx, DecisionTotals)> = Vec::new();
        for decided in decisions.take_while(|decided| now.since(decided.at_ms) <= window_ms) {
            if !self.has(decided.pool) {
                continue;
            }
            match totals.iter_mut().find(|(pool, _)| *pool == decided.pool) {
                Some((_, totals)) => totals.add(decided),
                None => {
                    let mut first = DecisionTotals::default();
                    first.add(decided);
                    totals.push((decided.pool, first));
                }
            }
        }
        self.sums(&totals)
    }
}

impl Deref for Shown<'_> {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        self.cluster
    }
}
