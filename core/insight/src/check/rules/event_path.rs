//! What rules of the event path ask and say alike: who is meant, what happened lately, and which of their faults has
//! another cause that is reported already.

use crate::check::{Finding, Totals, View};
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::number_format::count;
use radixscope_model::record::{Counter, EventLine, HistogramKind, MissedCause, ProcessRole, Topic};
use radixscope_state::cluster::{UnknownGaps, WorkerState};

/// What "lately" means to these rules.
pub(super) const WINDOW_MS: u64 = 60_000;
/// The same in words.
pub(super) const WINDOW: &str = "last 60 s";
/// A worker of which nothing was received for so long while others spoke says nothing of the present.
const STALE_MS: u64 = 300_000;
/// Workers whose numbers are shown one by one.
const SHOWN_WORKERS: usize = 6;

/// Who a worker is, in words.
pub(super) fn name(view: &View<'_>, worker: WorkerIx) -> String {
    view.cluster.worker(worker).map_or_else(|| "unknown worker".to_owned(), |w| format!("worker {}", w.id))
}

/// Who some workers are, three of them by name.
pub(super) fn names(view: &View<'_>, workers: &[WorkerIx]) -> String {
    let named: Vec<_> = workers.iter().take(3).map(|&worker| name(view, worker)).collect();
    let more = workers.len() - named.len();
    if more == 0 { named.join(", ") } else { format!("{} and {more} more", named.join(", ")) }
}

/// The query of a panel, with the worker picked out if it is about one.
pub(super) fn link(view: &View<'_>, panel: &str, workers: &[WorkerIx]) -> String {
    match workers {
        [worker] => match view.cluster.worker(*worker) {
            Some(w) => format!("view={panel}&worker={}", w.id),
            None => format!("view={panel}"),
        },
        _ => format!("view={panel}"),
    }
}

/// A part of a whole: `12 of 30 (40 %)`.
pub(super) fn part(part: u64, whole: u64) -> String {
    if whole == 0 {
        return format!("{} of 0", count(part));
    }
    let percent = (part as f64 / whole as f64 * 100.0).round();
    format!("{} of {} ({percent} %)", count(part), count(whole))
}

/// Seconds since `at`.
pub(super) fn seconds_since(view: &View<'_>, at: Millis) -> u64 {
    view.now.since(at) / 1_000
}

/// Adds a row for each of some workers, the rest in one.
pub(super) fn each(
    mut found: Finding,
    view: &View<'_>,
    workers: &[WorkerIx],
    row: impl Fn(Finding, WorkerIx) -> Finding,
) -> Finding {
    for &worker in workers.iter().take(SHOWN_WORKERS) {
        found = row(found, worker);
    }
    let all = view.cluster.workers().len();
    if workers.len() > SHOWN_WORKERS {
        let value = part((workers.len() - SHOWN_WORKERS) as u64, all as u64);
        found = found.evidence("Further workers with the same fault, of all known", value, "workers");
    }
    found
}

/// What is known of a worker's KV events lately, and since when: the last minute if it sent any in it, else all since
/// we listen, so that an idle hour does not make a fault look mended.
pub(super) fn lately(view: &View<'_>, worker: WorkerIx) -> (Totals, &'static str) {
    let rise = view.history.rise(view.cluster, worker, view.now, WINDOW_MS);
    if rise.store_events + rise.remove_events > 0 {
        return (rise, WINDOW);
    }
    let latest = view.history.latest_event_ms();
    let own = view.cluster.worker(worker).and_then(|w| w.last_event_ms);
    let is_stale = latest.zip(own).is_none_or(|(latest, own)| latest.since(own) > STALE_MS);
    if is_stale {
        return (Totals { chosen: rise.chosen, ..Totals::default() }, WINDOW);
    }
    (view.history.session(view.cluster, worker), "since we listen")
}

/// Whether we came after its first events, so that it holds blocks that were never reported to us. Also where that is unknown.
pub(super) fn is_heard_late(worker: &WorkerState) -> bool {
    let publishers_begin_at = 1;
    worker.returned_ms.is_some()
        || worker.lines.is_empty()
        || worker.lines.iter().any(|line| line.first_event_id > publishers_begin_at)
}

/// Whether the stream had lost its beginning when we read it.
pub(super) fn is_history_expired(view: &View<'_>) -> bool {
    let expired = |cause| cause == MissedCause::HistoryExpired;
    view.cluster.sources().iter().any(|source| source.missed.iter().any(|missed| expired(missed.cause)))
}

/// The finding that tells of KV events lost within the last `ms`, on whatever way, be it an unknown number; `None`: none
/// were, as far as is known.
pub(super) fn lost_events(view: &View<'_>, ms: u64) -> Option<&'static str> {
    let sources = view.cluster.sources();
    let missed = sources.iter().flat_map(|source| &source.missed);
    let mut recent = missed.filter(|m| m.topic == Topic::KvEvents && view.now.since(m.last_ms) <= ms);
    let counted = recent.next().map(|missed| match missed.cause {
        MissedCause::EnvelopeGap | MissedCause::EventIdGap | MissedCause::EventsInLost => "event_gaps",
        MissedCause::HistoryExpired => "joined_late",
        _ => "own_losses",
    });
    let gaps = || sources.iter().flat_map(|source| &source.gaps);
    let is_recent = |gap: &UnknownGaps| gap.topic == Topic::KvEvents && view.now.since(gap.until_ms) <= ms;
    counted.or_else(|| gaps().any(is_recent).then_some("own_losses"))
}

/// The line that a worker's KV events came by last.
pub(super) fn line_of(worker: &WorkerState) -> Option<EventLine> {
    worker.lines.last().map(|line| line.line)
}

/// Requests that frontends answered lately, by their own metrics; `None`: no frontend is scraped.
pub(super) fn requests_served(view: &View<'_>, ms: u64) -> Option<u64> {
    let since = Millis(view.now.0.saturating_sub(ms));
    let frontends = view.cluster.processes().iter().filter(|p| p.role == ProcessRole::Frontend);
    let served = frontends.filter_map(|process| process.counted_since(Counter::RequestsOk, since));
    served.reduce(|a, b| a + b).map(|requests| requests as u64)
}

/// Prompt tokens that engines found in their caches lately, by the frontends' histogram, else by the engines' counters;
/// `None`: nobody says.
pub(super) fn cached_tokens(view: &View<'_>, ms: u64) -> Option<u64> {
    let since = Millis(view.now.0.saturating_sub(ms));
    let processes = view.cluster.processes();
    let by_frontends = processes.iter().filter_map(|process| {
        process.distribution(HistogramKind::CachedTokens, since, view.now).map(|tokens| tokens.sum())
    });
    let by_engines = processes.iter().filter_map(|p| p.counted_since(Counter::EnginePrefixHits, since));
    let tokens = by_frontends.reduce(|a, b| a + b).into_iter().chain(by_engines.reduce(|a, b| a + b));
    tokens.reduce(f64::max).map(|tokens| tokens.max(0.0) as u64)
}

/// Blocks that a worker's cache holds.
pub(super) fn capacity_blocks(view: &View<'_>, worker: WorkerIx) -> Option<u64> {
    view.cluster.capacity(worker).map(|capacity| capacity.value)
}
