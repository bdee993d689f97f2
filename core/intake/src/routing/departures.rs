//! Workers that leave and come back, by routers' logs and by what they publish.
//!
//! A line becomes a record at the flush, not at once: a log is read from its beginning, and only then is known whether
//! the line is of the present, and whether another one, of this log or of another, came after it.
//!
//! # How it works
//!
//! A router's log says that it removed a worker, unless it says that it stops itself; at the next flush the worker is
//! *gone* and its blocks leave the tree. The latest line of all logs counts, if it is of the present. What the worker
//! says in the two seconds after is late and changes no tree; what it says later, or a line that adds it again, makes
//! it *returned*, with an empty tree. Whatever finds a departure out first counts: lists and gauges that miss the worker
//! later say nothing new.
//!
//! A worker that died is registered until its lease ends. Until then its router finds out by trying: a request that could
//! not reach it takes it *out* of the candidates, until the router reads the list of instances again, which it does at every
//! change of it and every five seconds. Then the worker is tried again, and fails again. Decisions are weighed as of
//! their own time, so what counts is whether a worker was out at that time.

use std::collections::{BTreeMap, VecDeque};

use crate::ingest::FRESH_MS;
use radixscope_model::id::{Millis, PoolIx, SourceIx, WorkerIx};
use radixscope_model::record::{DepartureCause, Entry, Record, RoutingState};
use radixscope_state::cluster::Cluster;
use radixscope_state::per_worker::PerWorker;

/// What a worker says within this time after it left was on its way already: several queues lie between an engine and
/// us. What it says later shows that it is there.
const LATE_MS: u64 = 2_000;

/// A router that stops lets go of all its workers at once (≥ 1.5), and none of them has left. A new process that writes to the
/// same log needs longer to start.
const STOPS_WITHIN_MS: u64 = 10_000;
/// Logs whose ends are kept apart; of more the oldest end is forgotten.
const MAX_LOGS: usize = 64;

/// A router writes that it removed or added a worker so much later at most than it did it.
const WRITTEN_WITHIN_MS: u64 = 50;
/// Changes of a worker that are remembered: decisions are weighed seconds after they were taken.
const MAX_HISTORY: usize = 8;
/// Times in which a worker could not be reached that are remembered of each.
const MAX_OUT: usize = 32;
/// A router reads the list of instances again at least this often, counted from its last change; who could not be reached is
/// among the candidates again from then on [live 1.6.1].
const RELISTED_EVERY_MS: u64 = 5_000;
/// What a frontend's gauges say of workers holds for so long: three scrapes at the usual interval.
const GAUGES_HOLD_MS: u64 = 15_000;

/// What the logs wrote last of each worker. Bounded, because workers are.
#[derive(Default)]
pub(super) struct Departures {
    latest: BTreeMap<WorkerIx, LoggedChange>,
    /// The last changes of each, by the time at which they were written, and whether it left.
    history: BTreeMap<WorkerIx, Vec<(Millis, bool)>>,
    /// When a router could not reach a worker, by time.
    unreachable: BTreeMap<WorkerIx, Vec<Millis>>,
    /// When a worker of which logs say that it was removed last showed that it is there, by its own clock where that is known.
    returned: BTreeMap<WorkerIx, Millis>,
    /// When each worker last published a KV event, by its own clock where that is known.
    said: PerWorker<Millis>,
    /// Workers that every router counts as unavailable by its gauges, since when.
    unavailable: BTreeMap<WorkerIx, Millis>,
    /// The same of before: from, to; by time.
    were_unavailable: BTreeMap<WorkerIx, Vec<(Millis, Millis)>>,
    /// Logs whose process stops, and since when.
    stopping: VecDeque<(SourceIx, Box<str>, Millis)>,
}

#[derive(Clone, Copy)]
struct LoggedChange {
    written_ms: Millis,
    left: bool,
    /// Whether it is no record yet.
    is_new: bool,
}

impl Departures {
    /// A process wrote at `written_ms` that it stops.
    pub(super) fn stops(&mut self, source: SourceIx, log: &str, written_ms: Millis) {
        self.stopping.retain(|(of, name, _)| (*of, &**name) != (source, log));
        if self.stopping.len() == MAX_LOGS {
            self.stopping.pop_front();
        }
        self.stopping.push_back((source, log.into(), written_ms));
    }

    /// Whether the process of a log was stopping at `written_ms`.
    pub(super) fn is_stopping(&self, source: SourceIx, log: &str, written_ms: Millis) -> bool {
        let of_log = |(of, name, _): &&(SourceIx, Box<str>, Millis)| (*of, &**name) == (source, log);
        let since = self.stopping.iter().find(of_log).map(|(.., since)| *since);
        since.is_some_and(|since| written_ms >= since && written_ms.since(since) <= STOPS_WITHIN_MS)
    }

    /// A router wrote at `written_ms` that it removed the worker (`left`) or added it.
    pub(super) fn logged(&mut self, worker: WorkerIx, written_ms: Millis, left: bool) {
        let history = self.history.entry(worker).or_default();
        let at = history.partition_point(|(at, _)| *at <= written_ms);
        history.insert(at, (written_ms, left));
        if history.len() > MAX_HISTORY {
            history.remove(0);
        }
        let known = self.latest.get(&worker);
        if known.is_none_or(|known| known.written_ms <= written_ms) {
            self.latest.insert(worker, LoggedChange { written_ms, left, is_new: true });
        }
    }

    /// A router wrote at `written_ms` that it could not reach the worker.
    pub(super) fn unreachable(&mut self, worker: WorkerIx, written_ms: Millis) {
        let times = self.unreachable.entry(worker).or_default();
        times.insert(times.partition_point(|at| *at <= written_ms), written_ms);
        if times.len() > MAX_OUT {
            times.remove(0);
        }
    }

    /// When the list of a pool's instances changed, as far as logs tell; in no order.
    fn listed<'a>(&'a self, pool: Option<PoolIx>, cluster: &'a Cluster) -> impl Iterator<Item = Millis> + 'a {
        let of_pool = self.history.iter().filter(move |(worker, _)| cluster.pool_of(**worker) == pool);
        of_pool.flat_map(|(_, changes)| changes.iter().map(|(at, _)| *at))
    }

    /// Whether routers left the worker out at `at`, because they could not reach it.
    pub(super) fn is_out(&self, worker: WorkerIx, at: Millis, cluster: &Cluster) -> bool {
        let pool = cluster.pool_of(worker);
        let failed = self.unreachable.get(&worker).map_or(&[][..], Vec::as_slice);
        let was_unavailable = || {
            let times = self.were_unavailable.get(&worker).map_or(&[][..], Vec::as_slice);
            times.iter().any(|(from, to)| (*from..*to).contains(&at))
        };
        // Until the list is read again: when it changes, and every few seconds counted from its last change.
        let is_out_since = |failed_ms: &Millis| {
            let listed = || self.listed(pool, cluster);
            let last = listed().filter(|listed| listed <= failed_ms).max().unwrap_or(*failed_ms);
            let again = failed_ms.0 + RELISTED_EVERY_MS - failed_ms.since(last) % RELISTED_EVERY_MS;
            (failed_ms.0..again).contains(&at.0)
                && !listed().any(|listed| *failed_ms < listed && listed <= at)
        };
        failed.iter().any(is_out_since)
            || self.unavailable.get(&worker).is_some_and(|since| *since <= at)
            || was_unavailable()
    }

    /// Takes what routers' gauges say of workers.
    fn read_gauges(&mut self, now: Millis, cluster: &Cluster) {
        let mut states: BTreeMap<WorkerIx, (bool, Millis)> = BTreeMap::new();
        for process in cluster.processes().iter().filter(|p| now.since(p.last_ms) <= GAUGES_HOLD_MS) {
            for figures in process.workers() {
                let Some(state) = figures.state else { continue };
                let known = states.entry(figures.worker).or_insert((true, process.last_ms));
                known.0 &= state == RoutingState::Unavailable;
            }
        }
        let Self { unavailable, were_unavailable, .. } = self;
        unavailable.retain(|worker, since| {
            let is_out = states.get(worker).is_some_and(|(is_out, _)| *is_out);
            if !is_out {
                let times = were_unavailable.entry(*worker).or_default();
                times.push((*since, now));
                if times.len() > MAX_OUT {
                    times.remove(0);
                }
            }
            is_out
        });
        for (worker, (_, at)) in states.into_iter().filter(|(_, (is_out, _))| *is_out) {
            self.unavailable.entry(worker).or_insert(at);
        }
    }

    /// Whether the worker left, by the latest line about it.
    pub(super) fn has_left(&self, worker: WorkerIx, cluster: &Cluster) -> bool {
        let change = self.latest.get(&worker).filter(|change| change.is_new);
        change.map_or_else(
            || cluster.worker(worker).is_some_and(|worker| worker.departure.is_some()),
            |change| change.left,
        )
    }

    /// Whether the worker had left at a time, by what routers wrote until then. A log that is read late contains what happened
    /// since, too.
    pub(super) fn had_left(&self, worker: WorkerIx, at: Millis, cluster: &Cluster) -> bool {
        let history = self.history.get(&worker).map_or(&[][..], Vec::as_slice);
        let known = Millis(at.0 + WRITTEN_WITHIN_MS);
        let later = history.partition_point(|(written_ms, _)| *written_ms <= known);
        match (later.checked_sub(1).and_then(|last| history.get(last)), history.get(later)) {
            // It may have shown since that it is there.
            (Some((removed_ms, true)), _) => {
                !self.returned.get(&worker).is_some_and(|returned| (*removed_ms..=at).contains(returned))
            }
            (Some((_, false)), _) | (None, Some((_, true))) => false,
            // It was added later: it was not there if logs tell what was added and removed until then, else if nothing showed it.
            (None, Some((_, false))) => cluster.worker(worker).is_some_and(|state| {
                self.listed(Some(state.pool), cluster).any(|first| first <= known) || state.first_ms > at
            }),
            (None, None) => self.has_left(worker, cluster),
        }
    }

    /// When a router wrote that the worker left, if that is the latest that logs say of it.
    pub(super) fn left_ms(&self, worker: WorkerIx) -> Option<Millis> {
        self.latest.get(&worker).filter(|change| change.left).map(|change| change.written_ms)
    }

    /// A KV event of the worker was published.
    #[inline]
    pub(super) fn published(&mut self, worker: WorkerIx, said_ms: Millis) {
        let last = self.said.of(worker);
        *last = said_ms.max(*last);
    }

    /// The worker showed at `said_ms` that it is there again.
    pub(super) fn returned(&mut self, worker: WorkerIx, said_ms: Millis) {
        self.returned.insert(worker, said_ms);
    }

    /// What was written since the last call and is news for the state, without what is old at `now`.
    pub(super) fn flush(&mut self, now: Millis, cluster: &Cluster) -> Vec<Record<'static>> {
        self.read_gauges(now, cluster);
        // The one place where something is forgotten with a worker: its index is never given again.
        let is_there = |worker: &WorkerIx| cluster.workers().get(*worker).is_some();
        self.history.retain(|worker, _| is_there(worker));
        self.latest.retain(|worker, _| is_there(worker));
        self.unreachable.retain(|worker, _| is_there(worker));
        self.were_unavailable.retain(|worker, _| is_there(worker));
        self.returned.retain(|worker, _| is_there(worker));
        let mut records = Vec::new();
        for (&worker, change) in self.latest.iter_mut().filter(|(_, change)| change.is_new) {
            change.is_new = false;
            let Some(state) = cluster.worker(worker) else { continue };
            // A log is read from its beginning, and a backlog is received late: then a worker is gone that said nothing since.
            let is_fresh = now.since(change.written_ms) <= FRESH_MS;
            let said_ms = self.said.get(worker).copied().unwrap_or_default();
            if !is_fresh && change.left && said_ms.since(change.written_ms) > LATE_MS {
                self.returned.insert(worker, said_ms);
                continue;
            }
            if state.departure.is_some() == change.left || !(is_fresh || change.left) {
                continue;
            }
            records.push(match change.left {
                true => Record::Left { worker, why: DepartureCause::Log },
                false => Record::Rejoined { worker },
            });
        }
        records
    }
}

/// When something was said: by the clock of who said it, unless that clock is far from ours.
pub(crate) fn said_ms(published_ms: Option<Millis>, received_ms: Millis) -> Millis {
    let is_near = |at: &Millis| at.since(received_ms).max(received_ms.since(*at)) <= FRESH_MS;
    published_ms.filter(is_near).unwrap_or(received_ms)
}

/// The worker that shows by what it said at `said_ms` that it is there again: what it said before it left may be received after.
pub(crate) fn returns(entry: &Entry<'_>, said_ms: Millis, cluster: &Cluster) -> Option<WorkerIx> {
    let worker = match entry.record {
        Record::Stored { worker, .. }
        | Record::Removed { worker, .. }
        | Record::Cleared { worker, .. }
        | Record::OtherTier { worker, .. }
        | Record::TierStored { worker, .. }
        | Record::TierRemoved { worker, .. }
        | Record::TierCleared { worker, .. }
        | Record::EngineLoad { worker, .. }
        | Record::Sequence { worker, by_worker: true, .. } => worker,
        _ => return None,
    };
    let departure = cluster.worker(worker)?.departure?;
    (said_ms.since(departure.at_ms) > LATE_MS).then_some(worker)
}

/// Whether a record says only what is known: that a worker left that has left, or that one is back that is there.
pub(crate) fn is_known(record: &Record<'_>, cluster: &Cluster) -> bool {
    let has_left = |worker| cluster.worker(worker).is_some_and(|state| state.departure.is_some());
    match record {
        Record::Left { worker, .. } => has_left(*worker),
        Record::Rejoined { worker } => !has_left(*worker),
        _ => false,
    }
}
