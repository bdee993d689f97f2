//! A worker was stopped: it left, and nothing that was sent to it failed or went unanswered. Knows departures of both kinds;
//! unplanned ones are found by `worker_gone`.
//!
//! A worker that is asked to stop leaves the discovery store at once and finishes what it has, so that it is received until it
//! leaves or beyond. One that was killed is registered until its lease ends, 6 to 23 s later [live 0.9.1, 1.6.1]; what
//! routers send there meanwhile fails or shows nowhere.

use super::ghost_worker::{RESTARTS_MS, is_ghost};
use super::prelude::*;
use radixscope_model::record::{DepartureCause, Outcome};
use radixscope_state::cluster::{Departure, WorkerState};

/// A departure is reported for this long.
pub(super) const REPORTED_MS: u64 = 300_000;
/// Silence after which a worker that left has finished what it had.
const DRAINED_MS: u64 = 10_000;
/// Who was received so shortly before it left had no lease to run out.
const SPOKE_MS: u64 = 3_000;
/// A request shows on a worker within this time.
const SHOWS_MS: u64 = 1_000;
/// Requests that fail so long before or after a departure are of it.
const FAILS_WITHIN_MS: u64 = 30_000;

pub(in crate::check) const RULE: Rule = Rule {
    // As long as `worker_gone`: who goes on speaking was only removed from a list.
    hold_ms: 3_000,
    ..Rule::new("worker_stopped", "Workers that were stopped", evaluate)
};

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let stopped = departed(view, |is_stopped| is_stopped);
    if stopped.is_empty() {
        return RuleOutcome::Ok;
    }
    Finding::new(
        Severity::Info,
        format!("Stopped: {}", view.names(&stopped)),
        "Its messages were received until it left, or no request was lost with it, as when a deployment is scaled down. What it had \
         cached is lost, so its conversations are recomputed elsewhere.",
    )
    .about(PanelRef::Workers, &stopped)
    .each(view, &stopped, |found, worker, who| departure(found, view, worker, who))
    .fixes("worker_stopped")
    .into()
}

/// Workers that left lately, those that were stopped or the others.
pub(super) fn departed(view: &View<'_>, wanted: impl Fn(bool) -> bool) -> Vec<WorkerIx> {
    let is_wanted = |worker: &WorkerIx| {
        left_lately(view, *worker).is_some_and(|departure| wanted(is_stopped(view, *worker, &departure)))
    };
    view.cluster.workers().indices().filter(is_wanted).collect()
}

/// How a worker left, if it was lately and it did not come back.
pub(super) fn left_lately(view: &View<'_>, worker: WorkerIx) -> Option<Departure> {
    let state = view.worker(worker)?;
    let departure = state
        .departure
        .or_else(|| state.last_departure.filter(|departure| has_drained(view, worker, state, departure)));
    departure.filter(|departure| view.now.since(departure.at_ms) <= REPORTED_MS)
}

/// Whether a worker sent messages after it had left, then stopped: it drained.
fn has_drained(view: &View<'_>, worker: WorkerIx, state: &WorkerState, departure: &Departure) -> bool {
    let spoke_on = state.returned_ms.is_some_and(|at| at.since(departure.at_ms) <= RESTARTS_MS);
    let is_silent = state.last_sign_ms.is_some_and(|last| view.now.since(last) >= DRAINED_MS);
    spoke_on && is_silent && !is_ghost(view, worker)
}

/// Whether a worker that left was asked to, as far as its last seconds show.
pub(in crate::check) fn is_stopped(view: &View<'_>, worker: WorkerIx, departure: &Departure) -> bool {
    let Some(state) = view.worker(worker) else { return false };
    let spoke = state.last_sign_ms.is_some_and(|last| departure.at_ms.since(last) <= SPOKE_MS);
    let requests_are_known = view.cluster.decisions().totals_of(worker).count > 0;
    (spoke || requests_are_known) && !has_lost_requests(view, worker, state, departure)
}

/// Whether a request failed on a worker about when it left, or was sent there and showed nowhere.
fn has_lost_requests(view: &View<'_>, worker: WorkerIx, state: &WorkerState, departure: &Departure) -> bool {
    let reach = view.now.since(departure.at_ms).saturating_add(FAILS_WITHIN_MS);
    let mut sent = view.decisions(reach).filter(|decided| decided.decision.worker == worker);
    sent.any(|decided| {
        let ended = decided.progress.ended_ms.unwrap_or(decided.at_ms);
        let failed = decided.progress.outcome == Some(Outcome::Failed)
            && ended.0.abs_diff(departure.at_ms.0) <= FAILS_WITHIN_MS;
        let was_answered = state.last_sign_ms.is_none_or(|last| decided.at_ms <= last);
        let new_blocks = decided.decision.isl_blocks.unwrap_or(0);
        let new_blocks = new_blocks.saturating_sub(decided.overlap_blocks().unwrap_or(0));
        let must_show = state.sequences.prefilled > 0 || state.last_event_ms.is_some() && new_blocks >= 2;
        let is_due = departure.at_ms.since(decided.at_ms) >= SHOWS_MS;
        failed || must_show && is_due && !was_answered
    })
}

/// Adds when and how a worker left.
pub(super) fn departure(found: Finding, view: &View<'_>, worker: WorkerIx, who: &str) -> Finding {
    let Some(departure) = left_lately(view, worker) else { return found };
    let how = match departure.why {
        DepartureCause::Log => "a frontend's log",
        DepartureCause::Health => "a frontend's list of instances",
        DepartureCause::Metrics => "a frontend's metrics",
        DepartureCause::Silent => "its long silence",
        DepartureCause::Discovery => "discovery",
    };
    let found =
        found.evidence(format!("Departure of {who}, by {how}"), view.seconds_since(departure.at_ms), "s ago");
    last_sign(found, view, worker, who)
}

/// Adds when a worker was received last.
pub(super) fn last_sign(found: Finding, view: &View<'_>, worker: WorkerIx, who: &str) -> Finding {
    let last = view.worker(worker).and_then(|w| w.last_sign_ms).map(|last| view.seconds_since(last));
    found.evidence_if(format!("Last KV event or load of {who}, by NATS"), last, "s ago")
}
