//! Pools: the workers of one component of one namespace. A router chooses among the workers of one pool, so that each pool
//! has a prefix tree of its own: equal blocks in two pools are never one block.

use serde::{Deserialize, Serialize};

use super::{Cluster, MAX_DEPARTED, MAX_WORKERS, TierCounts, WorkerState};
use crate::tree::{Totals, Tree};
use radixscope_model::id::{Millis, PoolIx, WorkerIx};
use radixscope_model::record::{Role, RoleEvidence, Tier};

/// Most pools. Every worker that has a place or is still named is in one, so that there is always room for another.
const MAX_POOLS: usize = MAX_WORKERS + MAX_DEPARTED + 1;

/// Dynamo's own examples and operator name the component of prefill workers so.
const PREFILL_COMPONENT: &str = "prefill";

/// A pool.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PoolState {
    /// Dynamo namespace; empty when no message named it.
    pub namespace: String,
    /// Dynamo component (`backend`, `prefill` …); empty when no message named it.
    pub component: String,
    /// First sign of it.
    pub first_ms: Millis,
    /// Whether choices in this pool ignore what workers hold of a prompt, as those among decode workers do.
    pub ignores_cache: bool,
    /// What was received of its role, each once.
    roles: Vec<(RoleEvidence, Role)>,
}

impl PoolState {
    fn new(namespace: &str, component: &str, at: Millis) -> Self {
        Self {
            namespace: namespace.to_owned(),
            component: component.to_owned(),
            first_ms: at,
            ignores_cache: false,
            roles: Vec::new(),
        }
    }

    /// Takes a sign of its role; whether it is news.
    pub(super) fn learn(&mut self, evidence: RoleEvidence, role: Role) -> bool {
        let is_new = !self.roles.contains(&(evidence, role));
        if is_new {
            self.roles.push((evidence, role));
        }
        is_new
    }

    /// Whether this was received of its role.
    pub fn says(&self, evidence: RoleEvidence, role: Role) -> bool {
        self.roles.contains(&(evidence, role))
    }

    /// Whether there is evidence that its workers prefill for others.
    fn may_prefill(&self) -> bool {
        self.component == PREFILL_COMPONENT || self.roles.iter().any(|(_, role)| *role == Role::Prefill)
    }

    /// `namespace/component`, as on screen and in the API; a part that is not known is `?`.
    pub fn name(&self) -> String {
        let known = |name: &str| if name.is_empty() { "?".to_owned() } else { name.to_owned() };
        format!("{}/{}", known(&self.namespace), known(&self.component))
    }

    /// Whether a router could choose from both, as far as their names are known.
    pub fn may_be(&self, other: &Self) -> bool {
        let agree = |a: &str, b: &str| a.is_empty() || b.is_empty() || a == b;
        agree(&self.namespace, &other.namespace) && agree(&self.component, &other.component)
    }
}

impl Cluster {
    /// Pools by [`PoolIx`], those included of which every worker has left.
    pub fn pools(&self) -> &[PoolState] {
        &self.head.pools
    }

    /// One pool.
    pub fn pool(&self, pool: PoolIx) -> Option<&PoolState> {
        self.head.pools.get(pool.at())
    }

    /// The pool of a worker.
    pub fn pool_of(&self, worker: WorkerIx) -> Option<PoolIx> {
        Some(self.worker(worker)?.pool)
    }

    /// The pools that workers are in now, in order of first sight.
    pub fn pools_in_use(&self) -> Vec<PoolIx> {
        let mut used = vec![false; self.head.pools.len()];
        for worker in self.head.workers.iter() {
            used[worker.pool.at()] |= worker.departure.is_none();
        }
        (0..used.len() as u16).map(PoolIx).filter(|pool| used[pool.at()]).collect()
    }

    /// The pool to begin with: the first that holds blocks, else the first that workers are in.
    pub fn default_pool(&self) -> PoolIx {
        let with_blocks = self.trees().find(|(_, tree)| tree.totals().resident > 0).map(|(pool, _)| pool);
        with_blocks.or_else(|| self.pools_in_use().first().copied()).unwrap_or_default()
    }

    /// The pool of this name, see [`PoolState::name`].
    pub fn pool_by_name(&self, name: &str) -> Option<PoolIx> {
        self.head.pools.iter().position(|pool| pool.name() == name).map(|at| PoolIx(at as u16))
    }

    /// The prefix tree of a pool; an empty one for a pool that is not known.
    pub fn tree(&self, pool: PoolIx) -> &Tree {
        self.trees.get(pool.at()).unwrap_or_else(Tree::empty)
    }

    /// The prefix tree that holds the blocks of `worker`.
    pub fn tree_of(&self, worker: WorkerIx) -> &Tree {
        self.pool_of(worker).map_or_else(Tree::empty, |pool| self.tree(pool))
    }

    /// The prefix trees with their pools.
    pub fn trees(&self) -> impl Iterator<Item = (PoolIx, &Tree)> {
        self.trees.iter().enumerate().map(|(at, tree)| (PoolIx(at as u16), tree))
    }

    /// What the workers of a pool hold in a lower tier, as a tree of its own: blocks before the first that is held there
    /// stand in it without holders. Empty where none is held.
    pub fn tier_tree(&self, pool: PoolIx, tier: Tier) -> &Tree {
        self.tiers.get(&(pool, tier)).unwrap_or_else(Tree::empty)
    }

    /// Blocks that `worker` holds in a lower tier; `None`: no event of that tier was received from it.
    pub fn tier_blocks(&self, worker: WorkerIx, tier: Tier) -> Option<u64> {
        let state = self.worker(worker)?;
        let slot = self.slot(worker)?;
        let held = self.tier_tree(state.pool, tier).holdings(slot);
        let blocks = held.resident + held.hidden + held.further;
        (state.tiers[tier as usize] != TierCounts::default()).then_some(blocks)
    }

    /// The trees of all pools and tiers, those of the devices first within a pool.
    pub(super) fn all_trees(&self) -> impl Iterator<Item = ((PoolIx, Option<Tier>), &Tree)> {
        let device = self.trees().map(|(pool, tree)| ((pool, None), tree));
        device.chain(self.tiers.iter().map(|(&(pool, tier), tree)| ((pool, Some(tier)), tree)))
    }

    /// Totals over the trees of all pools. Blocks of two pools may be of different size.
    pub fn totals(&self) -> Totals {
        self.trees.iter().map(Tree::totals).fold(Totals::default(), Totals::plus)
    }

    /// What the workers of a pool do, and how that is known; `None`: not reported.
    ///
    /// Metrics and logs call the workers of an aggregated deployment `decode` too, and its routers may be configured not to count
    /// prompts, as decode routers do not: all of that means decode only beside a pool that prefills (reference: topologies
    /// §1).
    pub fn role(&self, pool: PoolIx) -> Option<(Role, RoleEvidence)> {
        let of = self.pool(pool)?;
        let others = self.head.pools.iter().filter(|other| other.namespace == of.namespace);
        let is_apart = || others.clone().any(|other| !std::ptr::eq(other, of) && other.may_prefill());
        for evidence in [RoleEvidence::Card, RoleEvidence::Metrics, RoleEvidence::Log, RoleEvidence::Wire] {
            let is_exact = evidence == RoleEvidence::Card;
            if of.says(evidence, Role::Prefill) {
                return Some((Role::Prefill, evidence));
            }
            if of.says(evidence, Role::Decode) {
                let role = if is_exact || is_apart() { Role::Decode } else { Role::Aggregated };
                return Some((role, evidence));
            }
            if of.says(evidence, Role::Aggregated) {
                return Some((Role::Aggregated, evidence));
            }
        }
        if of.component == PREFILL_COMPONENT {
            return Some((Role::Prefill, RoleEvidence::Name));
        }
        is_apart().then_some((Role::Decode, RoleEvidence::Name))
    }

    /// Applies what became known of roles: which choices consider caches.
    pub(super) fn update_roles(&mut self) {
        for at in 0..self.head.pools.len() {
            let pool = PoolIx(at as u16);
            let ignores = self.role(pool).is_some_and(|(role, _)| role == Role::Decode);
            if self.head.pools[at].ignores_cache == ignores {
                continue;
            }
            self.head.pools[at].ignores_cache = ignores;
            let workers: Vec<WorkerIx> = self.workers_in(pool).collect();
            self.head.decisions.set_ignores_cache(pool, &workers, ignores);
        }
    }

    /// The workers of a pool by slot, those that left and are retained included.
    pub fn workers_in(&self, pool: PoolIx) -> impl Iterator<Item = WorkerIx> + '_ {
        let workers = self.head.workers.indexed();
        workers.filter(move |(_, worker)| worker.pool == pool).map(|(worker, _)| worker)
    }

    /// The models that workers of a pool serve, each once, in order of first sight, else the only one that frontends serve.
    /// One component of Dynamo from 1.0 on serves one; empty: not reported.
    pub fn models_in(&self, pool: PoolIx) -> Vec<&str> {
        let mut models: Vec<&str> = Vec::new();
        for worker in
            self.head.workers.iter().filter(|worker| worker.pool == pool && !worker.model.is_empty())
        {
            if !models.contains(&worker.model.as_str()) {
                models.push(&worker.model);
            }
        }
        if models.is_empty() {
            models.extend(self.only_model());
        }
        models
    }

    /// The model that all frontends serve, if it is one.
    fn only_model(&self) -> Option<&str> {
        let mut names =
            self.processes().iter().flat_map(|process| process.models()).map(|model| &*model.name);
        let first = names.next()?;
        names.all(|name| name == first).then_some(first)
    }

    /// The model of a worker: its own, else that of other workers of its pool, else the one that frontends' metrics name beside
    /// it (≥ 1.7). `None`: not reported.
    pub fn model_of(&self, worker: WorkerIx) -> Option<&str> {
        let state = self.worker(worker)?;
        let named = |state: &WorkerState| !state.model.is_empty();
        let peer = || self.head.workers.iter().find(|other| other.pool == state.pool && named(other));
        let known = Some(state).filter(|state| named(state)).or_else(peer).map(|state| state.model.as_str());
        known.or_else(|| self.model_by_metrics(worker))
    }

    fn model_by_metrics(&self, worker: WorkerIx) -> Option<&str> {
        self.processes().iter().find_map(|process| {
            let figures = process.workers().iter().find(|figures| figures.worker == worker)?;
            Some(process.models().get(usize::from(figures.model?))?.name.as_str())
        })
    }

    /// Index of a pool, which is made if it is new.
    pub(super) fn pool_named(&mut self, namespace: &str, component: &str, at: Millis) -> PoolIx {
        let pools = &self.head.pools;
        let is_it = |pool: &PoolState| pool.namespace == namespace && pool.component == component;
        if let Some(known) = pools.iter().position(is_it) {
            return PoolIx(known as u16);
        }
        let state = PoolState::new(namespace, component, at);
        if pools.len() < MAX_POOLS {
            self.head.pools.push(state);
            self.trees.push(Self::new_tree(self.head.limit_nodes, self.follow));
            return PoolIx(self.head.pools.len() as u16 - 1);
        }
        let mut is_named = vec![false; MAX_POOLS];
        let departed = self.head.departed.iter().map(|(_, worker)| worker);
        self.head.workers.iter().chain(departed).for_each(|worker| is_named[worker.pool.at()] = true);
        let free = is_named.iter().position(|named| !named).unwrap_or_default();
        self.head.pools[free] = state;
        self.head.decisions.begin_pool(PoolIx(free as u16));
        self.trees[free] = Self::new_tree(self.head.limit_nodes, self.follow);
        self.tiers.retain(|(pool, _), _| pool.at() != free);
        PoolIx(free as u16)
    }

    /// `worker` turns out to be of another pool: its blocks go with it.
    pub(super) fn move_to(&mut self, worker: WorkerIx, pool: PoolIx) {
        let Some(state) = self.worker_mut(worker) else { return };
        let from = std::mem::replace(&mut state.pool, pool);
        if from == pool {
            return;
        }
        let ignores_cache = self.pool(pool).is_some_and(|pool| pool.ignores_cache);
        self.head.decisions.move_worker(worker, from, (pool, ignores_cache));
        let slot = worker.slot();
        if self.tree(from).holdings(slot).is_empty() {
            return;
        }
        let Some(left) = self.trees.get_mut(from.at()) else { return };
        let held = left.held_by(slot);
        left.clear(slot);
        let Some(tree) = self.trees.get_mut(pool.at()) else { return };
        for (parent, block, touched) in held {
            tree.store(slot, parent, &[block], touched);
        }
        for tier in Tier::ALL {
            let Some(left) = self.tiers.get_mut(&(from, tier)) else { continue };
            let held = left.held_by(slot);
            left.clear(slot);
            let (limit, follow) = (self.head.limit_nodes, self.follow);
            let tree = self.tiers.entry((pool, tier)).or_insert_with(|| Self::new_tree(limit, follow));
            for (parent, block, touched) in held {
                tree.store(slot, parent, &[block], touched);
            }
        }
    }

    /// How many nodes the tree of `pool`, or of a tier of it, may keep, so that all trees together keep no more than the limit: what the others
    /// leave free, at least an equal part.
    pub(super) fn share_of_limit(&self, pool: PoolIx, tier: Option<Tier>) -> u32 {
        let others = self.all_trees().filter(|(at, _)| *at != (pool, tier));
        let others = others.map(|(_, tree)| tree.allocated());
        let (count, used) = others
            .filter(|&nodes| nodes > 0)
            .fold((1, 0_u32), |(count, sum), nodes| (count + 1, sum.saturating_add(nodes)));
        let limit = self.head.limit_nodes;
        limit.saturating_sub(used).max(limit / count).max(1)
    }
}

/// Whether a router could choose either: workers of one pool, as far as the names of their pools are known.
pub fn is_peer(cluster: &Cluster, worker: &WorkerState, like: &WorkerState) -> bool {
    worker.pool == like.pool
        || match (cluster.pool(worker.pool), cluster.pool(like.pool)) {
            (Some(a), Some(b)) => a.may_be(b),
            _ => false,
        }
}
