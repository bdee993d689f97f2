//! Workers beside each other: which ones may be compared, how much they hold, what they are called. Free of thresholds of
//! single rules.

use super::View;
use radixscope_model::id::{Millis, Worker, WorkerIx};
use radixscope_model::record::{Counter, Finding, Gauge, Phase, ProcessRole};
use radixscope_state::cluster::ProcessState;

/// A worker that came this lately, or a cluster that lost one this lately, is not judged by its share.
const SETTLE_MS: u64 = 90_000;
/// Workers that are first heard of within this time of the first one were there before us.
const TOGETHER_MS: u64 = 15_000;
/// A scrape older than this says nothing of now.
const STALE_MS: u64 = 30_000;

/// Name of a worker in evidence: its decimal id and rank.
pub(super) fn name(view: &View<'_>, worker: WorkerIx) -> String {
    view.cluster.worker(worker).map(|w| format!("worker {}", w.id)).unwrap_or_default()
}

/// Workers that do the same work and may be compared: present, of one component, and not just come. Pools of one are left
/// out, one that looks dead, and all of them while a worker has just left.
pub(super) fn pools(view: &View<'_>) -> Vec<Vec<WorkerIx>> {
    let workers = view.cluster.workers();
    let lately = |at: Millis| view.now.since(at) < SETTLE_MS;
    if workers.iter().any(|w| w.gone.is_some_and(|gone| lately(gone.at_ms))) {
        return Vec::new();
    }
    let Some(first) = workers.iter().map(|w| w.first_ms).min() else { return Vec::new() };
    // Of one that looks dead the last load stands still.
    let silent: &[WorkerIx] = holding(view, "worker_gone").map(|f| f.workers.as_slice()).unwrap_or_default();
    let mut pools: Vec<Vec<WorkerIx>> = Vec::new();
    for ix in view.present().filter(|ix| !silent.contains(ix)) {
        let worker = &workers[ix.at()];
        let is_new = worker.first_ms.since(first) > TOGETHER_MS && lately(worker.first_ms);
        if is_new {
            continue;
        }
        let is_same = |pool: &&mut Vec<WorkerIx>| {
            let other = &workers[pool[0].at()];
            other.namespace == worker.namespace && other.component == worker.component
        };
        match pools.iter_mut().find(is_same) {
            Some(pool) => pool.push(ix),
            None => pools.push(vec![ix]),
        }
    }
    pools.retain(|pool| pool.len() > 1);
    pools
}

/// Whether a worker has just started, so that its cache is cold and prompts are computed whole: its publisher's events are
/// known from the first one on, and that is not long ago.
pub(super) fn is_warming_up(view: &View<'_>) -> bool {
    let has_just_begun = |ix: WorkerIx| {
        let lines = view.cluster.worker(ix).map(|worker| worker.lines.as_slice()).unwrap_or_default();
        // Publishers count from 0 or 1.
        lines.iter().any(|line| line.first_event_id <= 1 && view.now.since(line.first_ms) < SETTLE_MS)
    };
    view.present().any(has_just_begun)
}

/// The middle of some numbers, the larger of two; `None` of none.
pub(super) fn median<T: Copy + PartialOrd>(numbers: impl IntoIterator<Item = T>) -> Option<T> {
    let mut sorted: Vec<T> = numbers.into_iter().collect();
    sorted.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    sorted.get(sorted.len() / 2).copied()
}

/// Processes of a role that were scraped lately.
pub(super) fn scraped<'v>(
    view: &View<'v>,
    role: ProcessRole,
) -> impl Iterator<Item = &'v ProcessState> + use<'v> {
    let now = view.now;
    let is_current =
        move |process: &&ProcessState| process.role == role && now.since(process.last_ms) <= STALE_MS;
    view.cluster.processes().iter().filter(is_current)
}

/// What a counter of all frontends rose by over the last `ms`; `None`: none offers it.
pub(super) fn counted(view: &View<'_>, counter: Counter, ms: u64) -> Option<f64> {
    let since = Millis(view.now.0.saturating_sub(ms));
    let rises = scraped(view, ProcessRole::Frontend).filter_map(|p| p.counted_since(counter, since));
    rises.fold(None, |sum, rise| Some(sum.unwrap_or(0.0) + rise))
}

/// Sum of a gauge over all processes of a role; `None`: none offers it.
pub(super) fn gauge(view: &View<'_>, role: ProcessRole, gauge: Gauge) -> Option<f64> {
    let values = scraped(view, role).filter_map(|p| p.gauge(gauge));
    values.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
}

/// The scraped process of a worker, where its metrics carry its id (≥ 1.0).
pub(super) fn process_of<'v>(view: &View<'v>, worker: WorkerIx) -> Option<&'v ProcessState> {
    let id = view.cluster.worker(worker)?.id.id.0;
    scraped(view, ProcessRole::Worker).find(|process| process.instance() == Some(id))
}

/// The worker of a rank of a scraped process.
pub(super) fn worker_of(view: &View<'_>, process: &ProcessState, dp_rank: u32) -> Option<WorkerIx> {
    view.cluster.worker_ix(Worker::new(process.instance()?, dp_rank))
}

/// Blocks that a worker's KV cache holds, and who says so.
pub(super) fn capacity_blocks(view: &View<'_>, worker: WorkerIx) -> Option<(u64, &'static str)> {
    view.cluster.capacity(worker).map(|capacity| (capacity.value, capacity.source.label()))
}

/// Most requests that a worker runs at once, by the frontends' word; `None` where they serve several models or none says.
pub(super) fn batch_limit(view: &View<'_>) -> Option<u64> {
    one_model(view, |model| model.max_num_seqs).filter(|&limit| limit > 0)
}

fn one_model(
    view: &View<'_>,
    of: impl Fn(&radixscope_model::record::ModelFigures) -> Option<u64>,
) -> Option<u64> {
    let mut models = scraped(view, ProcessRole::Frontend).flat_map(|process| process.models());
    let first = models.next()?;
    let is_one = models.all(|model| model.name == first.name && of(model) == of(first));
    is_one.then(|| of(first)).flatten()
}

/// The finding of a code, if it holds.
pub(super) fn holding<'v>(view: &View<'v>, code: &str) -> Option<&'v Finding> {
    view.cluster.findings().iter().find(|finding| finding.code == code && finding.phase != Phase::Cleared)
}

/// Requests in flight on a worker: by choices and ends, else by the one router there is (≥ 1.7). Of several routers each
/// may count its own alone.
pub(super) fn in_flight(view: &View<'_>, worker: WorkerIx) -> Option<u64> {
    let by_router = || {
        let counts = |process: &'_ ProcessState| {
            process.workers().iter().find(|figures| figures.worker == worker)?.active_requests
        };
        let mut routers = scraped(view, ProcessRole::Frontend).filter_map(counts);
        routers.next().filter(|_| routers.next().is_none())
    };
    view.cluster.worker(worker)?.in_flight.now().map(u64::from).or_else(by_router)
}

/// Requests that wait now: before a worker was chosen, or in an engine, or above what it runs at once. With who says so;
/// `None`: nothing would tell.
pub(super) fn waiting(view: &View<'_>) -> Option<(u64, &'static str)> {
    let router = gauge(view, ProcessRole::Frontend, Gauge::RouterQueuedRequests)
        .map(|n| (n as u64, "router's queue, frontends' metrics"));
    let engine = gauge(view, ProcessRole::Worker, Gauge::EngineWaitingRequests)
        .map(|n| (n as u64, "engines' queues, workers' metrics"));
    let admission = gauge(view, ProcessRole::Worker, Gauge::AdmissionQueuedRequests)
        .map(|n| (n as u64, "workers' admission queues, their metrics"));
    let limit = batch_limit(view);
    let above = limit.and_then(|limit| {
        let counts = view.present().filter_map(|ix| in_flight(view, ix));
        let over = counts.map(|n| n.saturating_sub(limit));
        over.fold(None, |sum: Option<u64>, n| Some(sum.unwrap_or(0) + n))
    });
    let above = above.map(|n| (n, "requests above the batch limit, by choices and ends"));
    [router, engine, admission, above].into_iter().flatten().max_by_key(|&(n, _)| n)
}
