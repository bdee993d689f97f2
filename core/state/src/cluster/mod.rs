//! The state: everything known about the cluster after a number of records, and the one way it changes, [`Cluster::fold`].
//!
//! Pure and deterministic: the same records give the same state in the server, in the browser and from a recording,
//! and [`Cluster::digest`] proves it. State that can be derived is not stored. No clock: time comes with the record.

mod cache_outcome;
mod clients;
mod completeness;
mod decisions;
mod departed;
mod endpoints;
mod engines;
mod explain;
mod filter;
mod findings;
mod fold;
mod hint;
mod history;
mod in_flight;
mod indexers;
mod knowledge;
#[cfg(test)]
mod knowledge_tests;
mod log_signal;
mod order;
mod parts;
mod pool;
mod process;
mod quantile;
mod rates;
mod redact;
mod requests;
mod router;
mod scores;
mod settings;
#[cfg(test)]
mod settings_tests;
mod sizes;
mod snapshot;
mod source;
mod ticket;
mod tiers;
mod ttft;
mod worker;
mod workers;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use radixscope_model::id::{BlockHash, Millis, PoolIx, Seq, Slot, SourceIx, Worker, WorkerIx};
use radixscope_model::record::{
    EngineFeed, Finding, LatencyTargets, LogSignal, PolicyClassFigures, PolicyClasses, RuleStatus, Tier,
    TreeKnowledge,
};

use crate::tree::forest::Arrangement;
use crate::tree::{ChangedBlocks, DEFAULT_LIMIT_NODES, Holdings, NodeId, OwnerSet, Tree};
use departed::DepartedWorkers;
use findings::Findings;

pub use cache_outcome::{CacheOutcome, HIT_SHARE, LostAffinity, NoCostGap};
pub use clients::ClientResults;
pub use completeness::Coverage;
pub use decisions::{DecisionEntry, DecisionTotals, Decisions, MAX_CANDIDATES, MAX_DECISIONS};
pub use departed::MAX_DEPARTED;
pub use engines::MAX_ENGINES;
pub use explain::{CostParts, LONG_WAIT_US};
pub use filter::{ByFilter, ClientFilter, DecisionKind, Filter, Picked};
pub use fold::{TOUCH_MS, touch, touched_ms};
pub use hint::{Hint, HintOption, candidates_hint};
pub use history::{HISTORY_S, HISTORY_STEP_S, TimeSteps};
pub use in_flight::InFlight;
pub use indexers::{IndexerState, MAX_INDEXERS};
pub use knowledge::{KnowledgeState, PoolKnowledge, QueryTotals, ResidentSource};
pub use log_signal::LogSignalState;
pub use order::{Column, Sort};
pub use parts::RequestParts;
pub use pool::{PoolState, is_peer};
pub use process::{MAX_PROCESSES, ProcessState, SCRAPE_WINDOW_MS};
pub use quantile::{Distribution, Quantile};
pub use rates::{Bucket, RATE_BUCKET_MS, RATE_WINDOW_S, Rates};
pub use requests::Requests;
pub use router::{MAX_ROUTERS_KNOWN, RouterState};
pub use settings::{
    MAX_SETTINGS, MAX_SETTINGS_CHANGES, ReportedRouter, SettingsState, SettingsStep, SourcedNumber,
};
pub use sizes::{BlockSizeSource, CapacitySource, Sourced};
pub use snapshot::{SnapshotError, SnapshotPart, SnapshotReader};
pub use source::{MissedCount, RejectedCount, SourceState, UnknownGaps};
pub use tiers::{TierBlocks, TierPaths};
pub use ttft::TtftPart;
pub use worker::{
    Departure, Liveness, QUIET_AFTER_MS, RouterLoad, Sequences, TierCounts, WorkerState, WorkerTransport,
};
pub use workers::{SILENT_AFTER_MS, Workers};

/// Most workers kept apart. More would make every per-worker panel useless long before memory is a problem.
pub const MAX_WORKERS: usize = Slot::COUNT;
/// Most sources.
pub const MAX_SOURCES: usize = 64;

/// Everything but the tree. Serialised as it is into the snapshot.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Head {
    seq: Seq,
    now_ms: Millis,
    sources: Vec<SourceState>,
    workers: Workers,
    pools: Vec<PoolState>,
    departed: DepartedWorkers,
    decisions: Decisions,
    requests: Requests,
    processes: Vec<ProcessState>,
    routers: Vec<RouterState>,
    signs: Vec<LogSignalState>,
    findings: Findings,
    limit_nodes: u32,
    settings: Vec<SettingsState>,
    policy_classes: Vec<PolicyClasses>,
    engines: Vec<EngineFeed>,
    /// Names of workers, in the order in which they were first recorded.
    endpoints: Vec<(WorkerIx, String)>,
    indexers: Vec<IndexerState>,
    clients: ClientResults,
    targets: LatencyTargets,
}

/// The state of a Dynamo cluster as far as it was received.
pub struct Cluster {
    head: Head,
    /// By [`PoolIx`].
    trees: Vec<Tree>,
    /// What workers hold below device memory, where any does.
    tiers: BTreeMap<(PoolIx, Tier), Tree>,
    /// What trees note beyond their blocks.
    follow: Follow,
    /// The last record that stored or removed blocks one by one, and in which tree.
    changed: Option<(Seq, PoolIx, Option<Tier>)>,
}

/// What trees note beyond their blocks, for whoever needs the past.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Follow {
    /// Nothing.
    #[default]
    Nothing,
    /// What each event changed: [`Cluster::changed_blocks`].
    Blocks,
    /// And the hash of each block with everything before it: [`Tree::chain_hash`].
    Chains,
}

impl Follow {
    fn begin_in(self, tree: &mut Tree) {
        tree.follow_blocks(self >= Self::Blocks);
        if self == Self::Chains {
            tree.keep_chain_hashes();
        }
    }
}

impl Default for Cluster {
    fn default() -> Self {
        Self::new(DEFAULT_LIMIT_NODES)
    }
}

impl Cluster {
    /// The empty state, with trees of at most `limit_nodes` nodes together.
    pub fn new(limit_nodes: u32) -> Self {
        Self {
            head: Head {
                seq: Seq(0),
                now_ms: Millis(0),
                sources: Vec::new(),
                workers: Workers::default(),
                pools: Vec::new(),
                departed: DepartedWorkers::default(),
                decisions: Decisions::default(),
                requests: Requests::default(),
                processes: Vec::new(),
                routers: Vec::new(),
                signs: Vec::new(),
                findings: Findings::default(),
                limit_nodes,
                settings: Vec::new(),
                policy_classes: Vec::new(),
                engines: Vec::new(),
                endpoints: Vec::new(),
                indexers: Vec::new(),
                clients: ClientResults::default(),
                targets: LatencyTargets::default(),
            },
            trees: Vec::new(),
            tiers: BTreeMap::new(),
            follow: Follow::Nothing,
            changed: None,
        }
    }

    /// What trees note from now on.
    pub fn follow_blocks(&mut self, follow: Follow) {
        self.follow = follow;
        self.all_trees_mut().for_each(|(_, tree)| follow.begin_in(tree));
    }

    /// What the last record changed of single blocks: of a worker's device or of one tier. `None`: it was no event of blocks, or
    /// nobody asked for it.
    pub fn changed_blocks(&self) -> Option<&ChangedBlocks> {
        let (_, pool, tier) = self.changed.filter(|(seq, ..)| *seq == self.head.seq)?;
        match tier {
            None => self.trees.get(pool.at()),
            Some(tier) => self.tiers.get(&(pool, tier)),
        }?
        .changed_blocks()
    }

    /// An empty tree of this cluster.
    fn new_tree(limit_nodes: u32, follow: Follow) -> Tree {
        let mut tree = Tree::with_limit(limit_nodes);
        follow.begin_in(&mut tree);
        tree
    }

    /// An independent copy, without a forest. It takes as much memory as the state.
    #[must_use]
    pub fn copy_without_forests(&self) -> Self {
        Self {
            head: self.head.clone(),
            trees: self.trees.iter().map(Tree::copy_without_forest).collect(),
            tiers: self.tiers.iter().map(|(&at, tree)| (at, tree.copy_without_forest())).collect(),
            follow: Follow::Nothing,
            changed: None,
        }
    }

    /// The last record folded.
    pub fn seq(&self) -> Seq {
        self.head.seq
    }

    /// Time of the latest record; 0 before the first.
    pub fn now_ms(&self) -> Millis {
        self.head.now_ms
    }

    /// Most nodes that all trees together keep.
    pub fn limit_nodes(&self) -> u32 {
        self.head.limit_nodes
    }

    /// Keeps the forest of one tree from now on, that of a pool's devices or of a lower tier, arranged like this and up to
    /// date, and no other.
    pub fn arrange_forest(&mut self, pool: PoolIx, tier: Option<Tier>, arrangement: Arrangement) {
        for (at, tree) in self.all_trees_mut() {
            if at == (pool, tier) {
                tree.build_forest(arrangement);
                tree.update_forest();
            } else {
                tree.drop_forest();
            }
        }
    }

    /// Brings the forest up to date, if one is kept.
    pub fn update_forest(&mut self) {
        self.all_trees_mut().for_each(|(_, tree)| tree.update_forest());
    }

    /// Whether bringing the forest up to date is to tell what appeared and what went. Does nothing without a forest.
    pub fn keep_forest_changes(&mut self, keep: bool) {
        self.all_trees_mut().for_each(|(_, tree)| tree.keep_forest_changes(keep));
    }

    /// Keeps no forest any more.
    pub fn drop_forest(&mut self) {
        self.all_trees_mut().for_each(|(_, tree)| tree.drop_forest());
    }

    fn all_trees_mut(&mut self) -> impl Iterator<Item = ((PoolIx, Option<Tier>), &mut Tree)> {
        let device = self.trees.iter_mut().zip(0..).map(|(tree, pool)| ((PoolIx(pool), None), tree));
        device.chain(self.tiers.iter_mut().map(|(&(pool, tier), tree)| ((pool, Some(tier)), tree)))
    }

    /// Sources, by [`SourceIx`].
    pub fn sources(&self) -> &[SourceState] {
        &self.head.sources
    }

    /// Workers by slot: those that are there, and of those that left the latest ones.
    pub fn workers(&self) -> &Workers {
        &self.head.workers
    }

    /// The index for a worker that is new, with at most so many slots. `None`: there are as many workers as can be.
    /// `replaces`: whether it may take the slot of a worker that left or may have, with the time and when a message named
    /// a worker last.
    pub fn next_worker(
        &self,
        slots: usize,
        replaces: Option<(Millis, &dyn Fn(WorkerIx) -> Millis)>,
    ) -> Option<WorkerIx> {
        self.head.workers.next(slots, replaces)
    }

    /// Workers that are forgotten but for who they were.
    pub fn departed(&self) -> impl Iterator<Item = (WorkerIx, &WorkerState)> {
        self.head.departed.iter()
    }

    /// Most nodes from now on, of all trees together.
    pub fn set_limit_nodes(&mut self, limit_nodes: u32) {
        self.head.limit_nodes = limit_nodes;
        self.all_trees_mut().for_each(|(_, tree)| tree.set_limit(limit_nodes));
    }

    /// One worker; of one that is forgotten who it was, as long as a retained decision may name it.
    pub fn worker(&self, worker: WorkerIx) -> Option<&WorkerState> {
        self.head.workers.get(worker).or_else(|| self.head.departed.get(worker))
    }

    /// Index of a worker known by its id; of one that came back after it was forgotten the present one.
    pub fn worker_ix(&self, id: Worker) -> Option<WorkerIx> {
        self.head.workers.find(id).or_else(|| self.head.departed.find(id))
    }

    /// Workers by ascending id: the order of the API. The page keeps the order of slots, so that no row jumps.
    pub fn workers_by_id(&self) -> Vec<WorkerIx> {
        let mut order: Vec<(Worker, WorkerIx)> =
            self.head.workers.indexed().map(|(worker, state)| (state.id, worker)).collect();
        order.sort_by_key(|&(id, _)| id);
        order.into_iter().map(|(_, worker)| worker).collect()
    }

    /// The slot of a worker in the trees. `None`: it is forgotten, and its slot another one's.
    pub fn slot(&self, worker: WorkerIx) -> Option<Slot> {
        self.head.workers.get(worker).map(|_| worker.slot())
    }

    /// What a worker holds on its device.
    pub fn holdings(&self, worker: WorkerIx) -> Holdings {
        self.slot(worker).map(|slot| self.tree_of(worker).holdings(slot)).unwrap_or_default()
    }

    /// The workers of a set of a tree.
    pub fn owners<'c>(&'c self, owners: &'c OwnerSet) -> impl Iterator<Item = WorkerIx> + 'c {
        owners.iter().filter_map(|slot| self.head.workers.in_slot(slot))
    }

    /// The node at which a worker holds a block of its device.
    pub fn find(&self, worker: WorkerIx, hash: BlockHash) -> Option<NodeId> {
        self.tree_of(worker).find(self.slot(worker)?, hash)
    }

    /// Latest routing decisions and their totals.
    pub fn decisions(&self) -> &Decisions {
        &self.head.decisions
    }

    /// Requests that ended without a known decision.
    pub fn requests(&self) -> &Requests {
        &self.head.requests
    }

    /// What latency is judged by.
    pub fn targets(&self) -> LatencyTargets {
        self.head.targets
    }

    /// What clients measured.
    pub fn clients(&self) -> &ClientResults {
        &self.head.clients
    }

    /// Processes whose metrics are scraped, in order of first sight.
    pub fn processes(&self) -> &[ProcessState] {
        &self.head.processes
    }

    /// Routers seen, in order of first sight.
    pub fn routers(&self) -> &[RouterState] {
        &self.head.routers
    }

    /// Decisions of one router. Logs do not name theirs, so with several routers such decisions belong to none.
    /// `None`: how many are its own is not known.
    pub fn decisions_of(&self, router: &RouterState) -> Option<u64> {
        let all = self.head.decisions.totals().count;
        let named: u64 = self.head.routers.iter().map(|router| router.decisions).sum();
        match self.head.routers.as_slice() {
            [_] => Some(all),
            _ => (named >= all).then_some(router.decisions),
        }
    }

    /// What frontends' metrics report of the classes of policy of their routers' queues.
    pub fn policy_classes(&self) -> &[PolicyClasses] {
        &self.head.policy_classes
    }

    /// The same of one frontend.
    pub fn policy_classes_of(&self, process: &str) -> &[PolicyClassFigures] {
        let known = self.head.policy_classes.iter().find(|of| of.process == process);
        known.map_or(&[][..], |of| of.classes.as_slice())
    }

    /// What logs reported of the event path.
    pub fn signs(&self) -> &[LogSignalState] {
        &self.head.signs
    }

    /// What one sign in the logs adds up to; `None`: no log reported it.
    pub fn sign(&self, wanted: impl Fn(&LogSignal) -> bool) -> Option<&LogSignalState> {
        self.head.signs.iter().find(|state| wanted(&state.sign))
    }

    /// What checks found, by code, those that are over included.
    pub fn findings(&self) -> &[Finding] {
        self.head.findings.all()
    }

    /// What was checked last; empty before the first check.
    pub fn checked(&self) -> &[RuleStatus] {
        self.head.findings.rules()
    }

    /// Blocks that `worker` holds, those outside the picture included. `None`: no KV event of it was ever received and it
    /// never answered, so its cache is unknown.
    pub fn blocks(&self, worker: WorkerIx) -> Option<u64> {
        let state = self.worker(worker)?;
        let is_known = state.last_event_ms.is_some() || state.knowledge.state != TreeKnowledge::Unknown;
        let held = self.holdings(worker);
        is_known.then_some(held.resident + held.hidden + held.further)
    }

    /// Messages known to be lost, over all sources and causes, each once.
    pub fn missed_total(&self) -> u64 {
        self.head.sources.iter().map(SourceState::missed_total).sum()
    }

    /// Breaks of connections that cost an unknown number of messages, over all sources.
    pub fn gaps_total(&self) -> u64 {
        self.head.sources.iter().map(SourceState::gaps_total).sum()
    }

    /// Whether more messages may be lost than [`Self::missed_total`] counts.
    pub fn is_missed_total_at_least(&self) -> bool {
        self.head.sources.iter().any(SourceState::is_missed_at_least)
    }

    /// Whether a worker's count of lost events is a lower bound: a connection broke in its life or before its first event,
    /// or messages of unknown workers were lost.
    pub fn is_missed_at_least(&self, worker: WorkerIx) -> bool {
        self.worker(worker).is_some_and(|state| {
            let mut planes = self.head.sources.iter().filter(|source| source.kind.is_event_plane());
            planes.any(|source| source.may_have_missed(state))
        })
    }

    /// Inputs not understood, over all sources.
    pub fn rejected_total(&self) -> u64 {
        self.head.sources.iter().flat_map(|s| &s.rejected).map(|r| r.count).sum()
    }

    /// Digest of the whole state: equal exactly (but for chance) if the state is.
    pub fn digest(&self) -> u64 {
        let Head { seq, now_ms, sources, workers, pools, departed, decisions, .. } = &self.head;
        let Head { processes, routers, signs, findings, limit_nodes, settings, .. } = &self.head;
        let Head { policy_classes, engines, endpoints, indexers, targets, .. } = &self.head;
        let known = (seq, now_ms, sources, workers, departed.digest(), decisions.sums(), decisions.digest());
        let known = (known, pools, self.head.requests.digest(), self.head.clients.digest());
        let processes: Vec<u64> = processes.iter().map(ProcessState::digest).collect();
        let lists = (settings, policy_classes, engines, endpoints, indexers, targets);
        let small = (known, processes, routers, signs, findings, limit_nodes, lists);
        xxhash_rust::xxh3::xxh3_64_with_seed(
            &encoded(&small),
            self.all_trees().fold(0, |all: u64, (_, tree)| all.rotate_left(7) ^ tree.digest()),
        )
    }

    fn source_mut(&mut self, source: SourceIx) -> Option<&mut SourceState> {
        self.head.sources.get_mut(source.at())
    }

    fn worker_mut(&mut self, worker: WorkerIx) -> Option<&mut WorkerState> {
        self.head.workers.get_mut(worker)
    }
}

/// A hash of plain data.
fn hash(value: &impl Serialize) -> u64 {
    xxhash_rust::xxh3::xxh3_64(&encoded(value))
}

fn encoded(value: &impl Serialize) -> Vec<u8> {
    // Serialising plain data into memory cannot fail; if it ever did, two digests would differ and be seen to.
    postcard::to_allocvec(value).unwrap_or_default()
}
