//! Blocks stored and removed per second over the last minutes, in a ring of buckets; and of which seconds they are known:
//! without a connection nothing is received, and a rate of 0 would be wrong.

use std::cell::OnceCell;

use serde::{Deserialize, Serialize};

use super::history::{HISTORY_STEP_S, HISTORY_STEPS, Ring, SECONDS, TimeSteps};
use super::{Cluster, SourceState};
use radixscope_model::id::{Millis, WorkerIx};

/// Length of a bucket.
pub const RATE_BUCKET_MS: u64 = 1000;
/// Seconds kept.
pub const RATE_WINDOW_S: u64 = 300;

/// What happened within one second.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Bucket {
    /// Blocks stored.
    pub stored: u32,
    /// Blocks removed.
    pub removed: u32,
}

impl Bucket {
    #[inline]
    fn add(&mut self, stored: u32, removed: u32) {
        self.stored = self.stored.saturating_add(stored);
        self.removed = self.removed.saturating_add(removed);
    }
}

/// Buckets up to the last event: each second, and the longer steps of the last hour.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Rates {
    seconds: Ring<Bucket, SECONDS>,
    steps: Ring<Bucket, HISTORY_STEPS>,
}

impl Rates {
    #[inline]
    pub(super) fn add(&mut self, at: Millis, stored: u32, removed: u32) {
        let second = at.0 / RATE_BUCKET_MS;
        let none = Bucket::default();
        // What is older than is kept counts in totals only.
        if let Some(bucket) = self.seconds.entry(second, none) {
            bucket.add(stored, removed);
        }
        if let Some(bucket) = self.steps.entry(second / HISTORY_STEP_S, none) {
            bucket.add(stored, removed);
        }
    }

    /// The first Unix second that is kept; `None` before the first event.
    fn first_s(&self) -> Option<u64> {
        let (second, _) = self.seconds.ends()?;
        // A step may have begun before its first event: what follows it is known whole.
        Some(self.steps.ends().map_or(second, |(step, _)| second.min((step + 1) * HISTORY_STEP_S)))
    }

    fn bucket(&self, step: u64, len_s: u64) -> Bucket {
        if len_s == 1 { self.seconds.get(step) } else { self.steps.get(step) }.unwrap_or_default()
    }
}

impl Cluster {
    /// Blocks that `worker` stored and removed in each of the `seconds` full seconds before the one that contains `now`,
    /// oldest first, with the Unix second of each. `None`: not known, because no source of KV events was connected then, or
    /// because none was ever received from the worker.
    pub fn rates(
        &self,
        worker: WorkerIx,
        now: Millis,
        seconds: u64,
    ) -> impl Iterator<Item = (u64, Option<Bucket>)> + '_ {
        let steps = TimeSteps::seconds(now, seconds);
        steps.begins().map(|at| at.0 / RATE_BUCKET_MS).zip(self.rates_in(worker, steps))
    }

    /// The same for every step of `steps`: sums over the step.
    pub fn rates_in(&self, worker: WorkerIx, steps: TimeSteps) -> impl Iterator<Item = Option<Bucket>> + '_ {
        let state = self.worker(worker).filter(|state| state.last_event_ms.is_some());
        let listened = ReceptionSeconds::of(self);
        steps.numbers().map(move |step| {
            let bucket = state?.rates.bucket(step, steps.len_s());
            let is_known = || steps.seconds_of(step).all(|second| listened.to(second));
            Some(bucket).filter(|bucket| *bucket != Bucket::default() || is_known())
        })
    }

    /// Mean per second over those of the `seconds` full seconds before `now` that are known: blocks stored, blocks removed.
    /// `None`: none is.
    pub fn rate_per_second(&self, worker: WorkerIx, now: Millis, seconds: u64) -> Option<(f64, f64)> {
        let (mut stored, mut removed, mut known) = (0u64, 0u64, 0u64);
        for bucket in self.rates(worker, now, seconds).filter_map(|(_, bucket)| bucket) {
            stored += u64::from(bucket.stored);
            removed += u64::from(bucket.removed);
            known += 1;
        }
        (known > 0).then(|| (stored as f64 / known as f64, removed as f64 / known as f64))
    }
}

/// In which seconds KV events could be received.
struct ReceptionSeconds<'c> {
    cluster: &'c Cluster,
    /// History is read from before the first connection on: from its first event to that connection it is whole. Asked for
    /// only if no connection is known, because it looks at all workers.
    history: OnceCell<Option<(u64, u64)>>,
}

impl<'c> ReceptionSeconds<'c> {
    const fn of(cluster: &'c Cluster) -> Self {
        Self { cluster, history: OnceCell::new() }
    }

    fn sources(&self) -> impl Iterator<Item = &'c SourceState> {
        self.cluster.sources().iter().filter(|source| source.kind.is_event_plane())
    }

    fn history(&self) -> Option<(u64, u64)> {
        let connected = self.sources().filter_map(SourceState::first_connected).min()?;
        let first = self.cluster.workers().iter().filter_map(|worker| worker.rates.first_s()).min()?;
        Some((first, connected.0.div_ceil(RATE_BUCKET_MS)))
    }

    fn to(&self, second: u64) -> bool {
        let is_in = |(from, until): (u64, u64)| from <= second && second < until;
        self.sources().any(|source| source.was_connected_in(second))
            || self.history.get_or_init(|| self.history()).is_some_and(is_in)
    }
}
