//! The state's totals over the last minutes, so that rules can ask what happened lately.

use std::collections::VecDeque;
use std::sync::OnceLock;

use super::chains::Chains;
use super::loads::LoadHistory;
use super::pace::Pace;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_state::cluster::Cluster;

/// Time between two samples.
const EVERY_MS: u64 = 2_000;
/// How far back they reach.
pub(super) const REACH_MS: u64 = 180_000;
/// With more workers than this samples are taken less often, so that memory stays bounded.
const MANY_WORKERS: usize = 256;

/// Totals of one worker since we listen; counts of blocks unless they say otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Stored.
    pub stored: u64,
    /// Removed, unknown ones included.
    pub removed: u64,
    /// Removed that were never stored as far as we received.
    pub unknown_removed: u64,
    /// Stored events.
    pub store_events: u64,
    /// Stored events without a block.
    pub empty_stores: u64,
    /// Stored events with an unknown parent.
    pub unknown_parents: u64,
    /// Removed events.
    pub remove_events: u64,
    /// Messages known to be lost and not got back.
    pub missed: u64,
    /// Requests that routers sent there.
    pub chosen: u64,
    /// Prompt blocks of those with length and overlap.
    pub isl_blocks: u64,
    /// Overlap of those.
    pub overlap_blocks: u64,
}

/// Samples of all workers' totals.
#[derive(Default)]
pub struct History {
    samples: VecDeque<(Millis, Vec<Totals>)>,
    /// Totals when what was published before we came had been read: none of it happened lately.
    before: Vec<Totals>,
    began_ms: Millis,
    latest_event_ms: Option<Millis>,
    /// What routers count on workers.
    pub(super) loads: LoadHistory,
    /// How fast prompts are computed.
    pace: Pace,
    /// Figures of the trees, by pool, if a rule used them since the last sample.
    pub(super) chains: OnceLock<Vec<Chains>>,
}

impl History {
    /// Begins anew: everything counted so far was published before we came.
    pub(super) fn begin(&mut self, cluster: &Cluster) {
        self.samples.clear();
        self.loads = LoadHistory::default();
        self.before = totals(cluster);
        self.began_ms = cluster.now_ms();
    }

    pub(super) fn sample(&mut self, cluster: &Cluster, now: Millis) {
        let workers = cluster.workers().len();
        self.chains = OnceLock::new();
        self.loads.sample(cluster, now);
        self.pace.sample(cluster, now);
        self.latest_event_ms = cluster.workers().iter().filter_map(|w| w.last_event_ms).max();
        let every = if workers > MANY_WORKERS { 10 * EVERY_MS } else { EVERY_MS };
        if self.samples.back().is_some_and(|(last, _)| now.since(*last) < every) {
            return;
        }
        self.samples.push_back((now, totals(cluster)));
        while self.samples.front().is_some_and(|(first, _)| now.since(*first) > REACH_MS) {
            self.samples.pop_front();
        }
    }

    pub(super) fn pace(&self) -> &Pace {
        &self.pace
    }

    /// When any worker's last KV event was received.
    pub fn latest_event_ms(&self) -> Option<Millis> {
        self.latest_event_ms
    }

    /// A worker's totals since we listen; what was published before we came is not in them.
    pub fn session(&self, cluster: &Cluster, worker: WorkerIx) -> Totals {
        Totals::of(cluster, worker).less(since(cluster, worker, self.began_ms, &self.before))
    }

    /// What a worker's totals rose by over the last `ms`, or since we listen if that is shorter.
    pub fn rise(&self, cluster: &Cluster, worker: WorkerIx, now: Millis, ms: u64) -> Totals {
        let then = self.samples.iter().rev().find(|(at, _)| now.since(*at) >= ms);
        let (at, totals) = then.map_or((self.began_ms, &self.before), |(at, totals)| (*at, totals));
        Totals::of(cluster, worker).less(since(cluster, worker, at, totals))
    }
}

/// A worker's totals at a moment; nothing if another worker had its place then.
fn since(cluster: &Cluster, worker: WorkerIx, at: Millis, totals: &[Totals]) -> Totals {
    let is_older = cluster.worker(worker).is_none_or(|state| state.first_ms <= at);
    totals.get(worker.at()).filter(|_| is_older).copied().unwrap_or_default()
}

fn totals(cluster: &Cluster) -> Vec<Totals> {
    (0..cluster.workers().len() as u16).map(|w| Totals::of(cluster, WorkerIx(w))).collect()
}

impl Totals {
    fn of(cluster: &Cluster, worker: WorkerIx) -> Self {
        let Some(w) = cluster.worker(worker) else { return Self::default() };
        let decided = cluster.decisions().totals_of(worker);
        Self {
            stored: w.stored_total,
            removed: w.removed_total,
            unknown_removed: w.unknown_removed_total,
            store_events: w.store_events_total,
            empty_stores: w.empty_stores_total,
            unknown_parents: w.unknown_parents_total,
            remove_events: w.remove_events_total,
            missed: w.missed_total.saturating_sub(w.recovered_total),
            chosen: decided.count,
            isl_blocks: decided.isl_blocks,
            overlap_blocks: decided.overlap_blocks,
        }
    }

    fn less(self, before: Self) -> Self {
        self.with(before, u64::saturating_sub)
    }

    /// The same of two workers together.
    pub fn plus(self, other: Self) -> Self {
        self.with(other, |a, b| a + b)
    }

    fn with(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            stored: of(self.stored, other.stored),
            removed: of(self.removed, other.removed),
            unknown_removed: of(self.unknown_removed, other.unknown_removed),
            store_events: of(self.store_events, other.store_events),
            empty_stores: of(self.empty_stores, other.empty_stores),
            unknown_parents: of(self.unknown_parents, other.unknown_parents),
            remove_events: of(self.remove_events, other.remove_events),
            missed: of(self.missed, other.missed),
            chosen: of(self.chosen, other.chosen),
            isl_blocks: of(self.isl_blocks, other.isl_blocks),
            overlap_blocks: of(self.overlap_blocks, other.overlap_blocks),
        }
    }
}
