//! A worker left, and still gets requests or still sends messages.

use super::prelude::*;

/// A departure is known everywhere after this time; a worker that is stopped gently finishes what it has.
const SPREADS_MS: u64 = 5_000;
const DRAINS_MS: u64 = 60_000;
/// A process needs longer than this to start.
pub(super) const RESTARTS_MS: u64 = 10_000;
/// A departure matters for this long.
const REPORTED_MS: u64 = 300_000;
/// Choices that are no stragglers.
const MIN_CHOICES: u64 = 3;

pub(in crate::check) const RULE: Rule =
    Rule::new("ghost_worker", "Requests and events of workers that left", evaluate);

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let ghosts: Vec<_> = view.cluster.workers().indices().filter(|&worker| is_ghost(view, worker)).collect();
    if ghosts.is_empty() { RuleOutcome::Ok } else { found(view, &ghosts).into() }
}

/// Choices lately that a router made when the worker had been gone for a while. A trace reports a request at its
/// end, so what counts is when it was decided.
fn choices(view: &View<'_>, worker: WorkerIx, gone_ms: Millis) -> u64 {
    let late = Millis(gone_ms.0 + SPREADS_MS);
    let sent = view.decisions(WINDOW_MS).filter(|d| d.decision.worker == worker && d.decided_ms() > late);
    sent.count() as u64
}

/// Whether a worker left and is still in use.
pub(super) fn is_ghost(view: &View<'_>, worker: WorkerIx) -> bool {
    let Some(state) = view.worker(worker) else { return false };
    let Some(departure) =
        state.last_departure.filter(|departure| view.now.since(departure.at_ms) <= REPORTED_MS)
    else {
        return false;
    };
    // Whoever starts anew is away for longer: this one never was.
    let was_away = state.departure.is_none()
        && state.returned_ms.is_none_or(|at| at.since(departure.at_ms) > RESTARTS_MS);
    let speaks = state
        .last_event_ms
        .is_some_and(|last| last.since(departure.at_ms) >= DRAINS_MS && view.now.since(last) <= WINDOW_MS);
    !was_away && (choices(view, worker, departure.at_ms) >= MIN_CHOICES || speaks)
}

fn found(view: &View<'_>, ghosts: &[WorkerIx]) -> Finding {
    Finding::new(
        Severity::Warning,
        format!("Left, but still chosen or publishing: {}", view.names(ghosts)),
        "One router dropped this worker while another still sends it requests, or the worker still runs but is no longer \
         registered. Requests sent there may fail, and its cached blocks are not used.",
    )
    .about(PanelRef::Workers, ghosts)
    .each(view, ghosts, |found, worker, who| {
        let Some(state) = view.worker(worker) else { return found };
        let Some(departure) = state.last_departure else { return found };
        let label = format!("Departure of {who}, by {}", departure.why.as_str());
        let sent = format!("Requests sent to {who} after it left, by decisions, {WINDOW}");
        let last_event = state.last_event_ms.map(|last| view.seconds_since(last));
        found
            .evidence(label, view.seconds_since(departure.at_ms), "s ago")
            .evidence(sent, choices(view, worker, departure.at_ms), "requests")
            .evidence_if(format!("Last KV event of {who}, by NATS"), last_event, "s ago")
    })
    .fixes("ghost_worker")
}
