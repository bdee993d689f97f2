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
//! it *returned*, with an empty tree.

use std::collections::{BTreeMap, VecDeque};

use crate::ingest::FRESH_MS;
use radixscope_model::id::{Millis, SourceIx, WorkerIx};
use radixscope_model::record::{Entry, GoneWhy, Record};
use radixscope_state::cluster::Cluster;

/// What a worker says within this time after it left was on its way already: several queues lie between an engine and
/// us. What it says later shows that it is there.
const LATE_MS: u64 = 2_000;

/// A router that stops lets go of all its workers at once (≥ 1.5), and none of them has left. A new process that writes to the
/// same log needs longer to start.
const STOPS_WITHIN_MS: u64 = 10_000;
/// Logs whose ends are kept apart; of more the oldest end is forgotten.
const MAX_LOGS: usize = 64;

/// What the logs wrote last of each worker. Bounded, because workers are.
#[derive(Default)]
pub(super) struct Departures {
    latest: BTreeMap<WorkerIx, LoggedChange>,
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
        let known = self.latest.get(&worker);
        if known.is_none_or(|known| known.written_ms <= written_ms) {
            self.latest.insert(worker, LoggedChange { written_ms, left, is_new: true });
        }
    }

    /// Whether the worker left, by the latest line about it.
    pub(super) fn is_gone(&self, worker: WorkerIx, cluster: &Cluster) -> bool {
        let change = self.latest.get(&worker).filter(|change| change.is_new);
        change.map_or_else(
            || cluster.worker(worker).is_some_and(|worker| worker.gone.is_some()),
            |change| change.left,
        )
    }

    /// Other workers take these places.
    pub(super) fn vacate(&mut self, workers: &[WorkerIx]) {
        self.latest.retain(|worker, _| !workers.contains(worker));
    }

    /// What was written since the last call and is news for the state, without what is old at `now`.
    pub(super) fn flush(&mut self, now: Millis, cluster: &Cluster) -> Vec<Record<'static>> {
        let mut records = Vec::new();
        for (&worker, change) in self.latest.iter_mut().filter(|(_, change)| change.is_new) {
            change.is_new = false;
            let Some(state) = cluster.worker(worker) else { continue };
            if now.since(change.written_ms) > FRESH_MS || state.gone.is_some() == change.left {
                continue;
            }
            records.push(match change.left {
                true => Record::Gone { worker, why: GoneWhy::Log },
                false => Record::Returned { worker },
            });
        }
        records
    }
}

/// The worker that shows by what it says that it is there again.
pub(crate) fn returns(entry: &Entry<'_>, cluster: &Cluster) -> Option<WorkerIx> {
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
    let gone = cluster.worker(worker)?.gone?;
    (entry.at_ms.since(gone.at_ms) > LATE_MS).then_some(worker)
}
