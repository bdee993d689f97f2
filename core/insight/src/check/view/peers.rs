//! Workers beside each other: which ones may be compared.

use super::View;
use crate::check::rules::worker_stopped::is_stopped;
use radixscope_model::id::{Millis, PoolIx, WorkerIx};
use radixscope_model::record::Role;
use radixscope_state::cluster::WorkerState;

/// A worker that came this lately, or a pool that lost one abruptly this lately, is not judged by its share.
const RECOVERY_MS: u64 = 90_000;
/// Workers first seen within this time of the first one were there before us.
const TOGETHER_MS: u64 = 15_000;

impl View<'_> {
    /// Workers that do the same work and may be compared: present, of one component, and not just come. Pools of one are
    /// left out, workers that look dead, and a pool that has just lost one abruptly: its requests went to the others all at
    /// once. One that is stopped gives its own away one by one.
    pub(in crate::check) fn pools(&self) -> Vec<Vec<WorkerIx>> {
        let workers = self.cluster.workers();
        let is_recent = |at: Millis| self.now.since(at) < RECOVERY_MS;
        let was_lost = |(ix, state): &(WorkerIx, &WorkerState)| {
            let departure = state.departure.filter(|departure| is_recent(departure.at_ms));
            departure.is_some_and(|departure| !is_stopped(self, *ix, &departure))
        };
        let recovering: Vec<PoolIx> =
            workers.indexed().filter(was_lost).map(|(_, state)| state.pool).collect();
        let Some(first) = workers.iter().map(|w| w.first_ms).min() else { return Vec::new() };
        // Of one that looks dead the last load stands still.
        let silent: &[WorkerIx] = self.active("worker_gone").map_or(&[], |finding| &finding.workers);
        let mut pools: Vec<Vec<WorkerIx>> = Vec::new();
        for ix in self.present().filter(|ix| !silent.contains(ix)) {
            let Some(worker) = workers.get(ix) else { continue };
            if recovering.contains(&worker.pool) {
                continue;
            }
            if worker.first_ms.since(first) > TOGETHER_MS && is_recent(worker.first_ms) {
                continue;
            }
            let is_same = |pool: &&mut Vec<WorkerIx>| self.cluster.pool_of(pool[0]) == Some(worker.pool);
            match pools.iter_mut().find(is_same) {
                Some(pool) => pool.push(ix),
                None => pools.push(vec![ix]),
            }
        }
        pools.retain(|pool| pool.len() > 1);
        pools
    }

    /// The present workers of a pool.
    pub(in crate::check) fn present_in(&self, pool: PoolIx) -> impl Iterator<Item = WorkerIx> + use<'_> {
        let cluster = self.cluster;
        self.present().filter(move |&worker| cluster.pool_of(worker) == Some(pool))
    }

    /// The name of a worker's pool for a title, ` of dynamo/prefill`; empty where there is one pool only.
    pub(in crate::check) fn of_pool(&self, pool: PoolIx) -> String {
        match self.cluster.pool(pool).filter(|_| self.cluster.pools_in_use().len() > 1) {
            Some(pool) => format!(" of {}", pool.name()),
            None => String::new(),
        }
    }

    /// Whether a worker may be expected to publish KV events: decode workers need not, and others may say that they do not.
    pub(in crate::check) fn publishes(&self, worker: WorkerIx) -> bool {
        let Some(state) = self.worker(worker) else { return false };
        state.last_event_ms.is_some() || !(state.publishes_events == Some(false) || self.decodes(state.pool))
    }

    /// Whether the workers of a pool only decode what others prefilled.
    pub(in crate::check) fn decodes(&self, pool: PoolIx) -> bool {
        self.cluster.role(pool).is_some_and(|(role, _)| role == Role::Decode)
    }

    /// Whether a worker has just started, so that its cache is cold and prompts are computed whole: its publisher's events
    /// are known from the first one on, and that is not long ago.
    pub(in crate::check) fn is_warming_up(&self) -> bool {
        self.present().any(|worker| self.began_within(worker, RECOVERY_MS))
    }

    /// The same of some workers.
    pub(in crate::check) fn is_any_warming_up(&self, workers: &[WorkerIx]) -> bool {
        workers.iter().any(|&worker| self.began_within(worker, RECOVERY_MS))
    }

    /// Whether a worker's publisher was received from its first event on, and began within the last `ms`.
    pub(in crate::check) fn began_within(&self, worker: WorkerIx, ms: u64) -> bool {
        let lines = self.worker(worker).map(|worker| worker.lines.as_slice()).unwrap_or_default();
        // Publishers count from 0 or 1.
        lines.iter().any(|line| line.first_event_id <= 1 && self.now.since(line.first_ms) < ms)
    }
}

/// The middle of some numbers, the larger of two; `None` of none.
pub(in crate::check) fn median<T: Copy + PartialOrd>(numbers: impl IntoIterator<Item = T>) -> Option<T> {
    let mut sorted: Vec<T> = numbers.into_iter().collect();
    sorted.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    sorted.get(sorted.len() / 2).copied()
}
