//! How much is known of what workers hold. Knows nothing of how they are queried.

use serde::{Deserialize, Serialize};

use super::{CapacitySource, Cluster, Sourced};
use radixscope_model::id::{Millis, PoolIx, WorkerIx};
use radixscope_model::record::{Divergence, KnowledgeWhy, QueryState, TreeKnowledge};

/// How much is known of the blocks of a worker, why, and what is done about it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KnowledgeState {
    /// How much.
    pub state: TreeKnowledge,
    /// Why.
    pub why: KnowledgeWhy,
    /// Since when.
    pub since_ms: Millis,
    /// Until when blocks were missing that are known now; `None`: none ever were, or they still are.
    pub lacked_until_ms: Option<Millis>,
    /// Removals of unknown blocks up to then: they were of those that were missing.
    pub removed_while_lacking_total: u64,
    /// Where asking it stands.
    pub asking: QueryState,
    /// The same in words; empty where there is nothing to say.
    pub asking_detail: String,
    /// Since when.
    pub asking_since_ms: Millis,
    /// Queries to it.
    pub queries: QueryTotals,
    /// How its last responses differed from the tree; `None`: they did not, or it was not queried twice.
    pub drift: Option<Divergence>,
    /// When that was found.
    pub drift_ms: Option<Millis>,
}

/// Queries to a worker for its blocks, since the server started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct QueryTotals {
    /// For all blocks.
    #[serde(rename = "dumps_total")]
    pub dumps: u64,
    /// For lost events.
    #[serde(rename = "ranges_total")]
    pub ranges: u64,
    /// Of both, those whose response was applied.
    #[serde(rename = "applied_total")]
    pub applied: u64,
    /// Of both, those that brought nothing.
    #[serde(rename = "failed_total")]
    pub failed: u64,
}

/// Where it is known from how many blocks a worker holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResidentSource {
    /// Everything that it holds is known.
    Complete,
    /// It removes blocks, so its cache is full; this is how many that holds.
    Full(CapacitySource),
}

impl ResidentSource {
    /// Name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Full(source) => source.as_str(),
        }
    }
}

/// What is known of the workers of a pool that are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolKnowledge {
    /// `Complete`: of all of them; `Unknown`: of none; otherwise `Partial`.
    pub state: TreeKnowledge,
    /// Workers of which everything is known.
    pub complete: u32,
    /// Workers of which a part is known.
    pub partial: u32,
    /// Workers of which nothing is known.
    pub unknown: u32,
    /// Blocks that are known, over all of them.
    pub known_blocks: u64,
    /// Blocks that they hold; `None`: of one of them that is not known.
    pub used_blocks: Option<u64>,
}

impl PoolKnowledge {
    /// Workers that are there.
    pub const fn workers(&self) -> u32 {
        self.complete + self.partial + self.unknown
    }

    /// Share of the blocks that is known, 0 to 1; `None`: not known, or they hold none.
    pub fn share(&self) -> Option<f64> {
        let used = self.used_blocks.filter(|&used| used > 0)?;
        Some((self.known_blocks as f64 / used as f64).min(1.0))
    }

    /// Whether everything is known of every worker that is there.
    pub fn is_complete(&self) -> bool {
        self.state == TreeKnowledge::Complete
    }
}

impl KnowledgeState {
    pub(super) fn new(at: Millis) -> Self {
        Self {
            state: TreeKnowledge::default(),
            why: KnowledgeWhy::default(),
            since_ms: at,
            lacked_until_ms: None,
            removed_while_lacking_total: 0,
            asking: QueryState::default(),
            asking_detail: String::new(),
            asking_since_ms: at,
            queries: QueryTotals::default(),
            drift: None,
            drift_ms: None,
        }
    }

    /// Whether everything is known.
    pub fn is_complete(&self) -> bool {
        self.state == TreeKnowledge::Complete
    }

    /// Whether events may arrive that a response already held: what they contradict is nothing to count.
    pub(super) fn is_joining(&self) -> bool {
        self.asking == QueryState::Joining
    }

    /// `unknown_removed_total`: of the worker.
    pub(super) fn know(
        &mut self,
        state: TreeKnowledge,
        why: KnowledgeWhy,
        unknown_removed_total: u64,
        at: Millis,
    ) {
        let is_late = self.state == TreeKnowledge::Partial || why == KnowledgeWhy::Dump;
        if state == TreeKnowledge::Complete && self.state != state && is_late {
            self.lacked_until_ms = Some(at);
            self.removed_while_lacking_total = unknown_removed_total;
        }
        if (self.state, self.why) != (state, why) {
            (self.state, self.why, self.since_ms) = (state, why, at);
        }
    }

    pub(super) fn set_query_state(&mut self, asking: QueryState, detail: &str, at: Millis) {
        match (self.asking, asking) {
            (_, QueryState::Dump) => self.queries.dumps += 1,
            (_, QueryState::Range) => self.queries.ranges += 1,
            (before, QueryState::Failed { .. }) if before.is_running() => self.queries.failed += 1,
            (before, QueryState::Joining) if before.is_running() => self.queries.applied += 1,
            _ => {}
        }
        if self.asking != asking {
            (self.asking, self.asking_since_ms) = (asking, at);
        }
        self.asking_detail.clear();
        self.asking_detail.push_str(detail);
    }

    pub(super) fn diverged(&mut self, drift: Divergence, at: Millis) {
        self.drift = (drift != Divergence::default()).then_some(drift);
        self.drift_ms = self.drift.map(|_| at);
    }

    /// The worker left: what it held is gone.
    pub(super) fn left(&mut self, at: Millis) {
        self.know(TreeKnowledge::Unknown, KnowledgeWhy::NoEvents, 0, at);
        self.set_query_state(QueryState::No, "", at);
        self.drift = None;
        self.drift_ms = None;
    }
}

impl Cluster {
    /// Blocks of `worker` that are known with all that lead to them, and how many it holds as far as is known: a cache from which blocks are removed
    /// is full.
    pub fn known_of_used(&self, worker: WorkerIx) -> (u64, Option<Sourced<u64, ResidentSource>>) {
        let held = self.holdings(worker);
        let known = held.resident + held.hidden + held.further;
        let Some(state) = self.worker(worker) else { return (known, None) };
        if state.knowledge.is_complete() {
            return (known, Some(Sourced { value: known, source: ResidentSource::Complete, at_ms: None }));
        }
        // What waits for a parent that is missing is in no path, so nothing about prompts follows from it.
        let known = known.saturating_sub(held.unattached);
        let capacity = self.capacity(worker).filter(|_| state.removed_total > 0);
        let used = capacity.map(|of| Sourced {
            value: of.value.max(known),
            source: ResidentSource::Full(of.source),
            at_ms: of.at_ms,
        });
        (known, used)
    }

    /// What is known of the workers of a pool that are there. Of a pool without any: nothing, of no blocks.
    pub fn pool_knowledge(&self, pool: PoolIx) -> PoolKnowledge {
        let mut sum = PoolKnowledge { used_blocks: Some(0), ..PoolKnowledge::default() };
        for worker in self.present_in(pool) {
            let Some(state) = self.worker(worker) else { continue };
            match state.knowledge.state {
                TreeKnowledge::Complete => sum.complete += 1,
                TreeKnowledge::Partial => sum.partial += 1,
                TreeKnowledge::Unknown => sum.unknown += 1,
            }
            let (known, used) = self.known_of_used(worker);
            sum.known_blocks += known;
            sum.used_blocks = sum.used_blocks.zip(used).map(|(sum, used)| sum + used.value);
        }
        sum.state = match sum.workers() {
            0 => TreeKnowledge::Unknown,
            all if all == sum.complete => TreeKnowledge::Complete,
            all if all == sum.unknown => TreeKnowledge::Unknown,
            _ => TreeKnowledge::Partial,
        };
        sum
    }

    /// Whether of any worker that is there not everything is known. Workers that publish no events, by their own card, do
    /// not count.
    pub fn is_partial_anywhere(&self) -> bool {
        self.pools_in_use().into_iter().flat_map(|pool| self.present_in(pool)).any(|worker| {
            self.worker(worker)
                .is_some_and(|state| state.publishes_events != Some(false) && !state.knowledge.is_complete())
        })
    }

    /// The workers of a pool that are there.
    fn present_in(&self, pool: PoolIx) -> impl Iterator<Item = WorkerIx> + '_ {
        self.workers_in(pool)
            .filter(|&worker| self.worker(worker).is_some_and(|state| state.departure.is_none()))
    }
}
