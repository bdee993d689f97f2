//! A worker left, and still gets requests or still speaks: somebody did not notice.

use super::event_path::{WINDOW, WINDOW_MS, each, link, name, names, seconds_since};
use crate::check::{Finding, Rule, RuleOutcome, View};
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::record::Severity;

/// A departure is known everywhere after this time; a worker that is stopped gently finishes what it has.
const SPREADS_MS: u64 = 5_000;
const DRAINS_MS: u64 = 60_000;
/// A process needs longer than this to start.
pub(super) const RESTARTS_MS: u64 = 10_000;
/// A departure matters for this long.
const TOLD_MS: u64 = 300_000;
/// Choices that are no stragglers.
const MIN_CHOICES: u64 = 3;

/// See the module.
pub(in crate::check) struct GhostWorker;

impl Rule for GhostWorker {
    fn code(&self) -> &'static str {
        "ghost_worker"
    }

    fn subject(&self) -> &'static str {
        "Requests and events of workers that left"
    }

    fn look(&self, view: &View<'_>) -> RuleOutcome {
        let all = 0..view.cluster.workers().len() as u16;
        let ghosts: Vec<_> = all.map(WorkerIx).filter(|&worker| is_ghost(view, worker)).collect();
        if ghosts.is_empty() { RuleOutcome::Ok } else { RuleOutcome::Found(found(view, &ghosts)) }
    }
}

/// Choices lately that a router made when the worker had been gone for a while. A trace tells of a request at its
/// end, so what counts is when it was decided.
fn choices(view: &View<'_>, worker: WorkerIx, gone_ms: Millis) -> u64 {
    let late = Millis(gone_ms.0 + SPREADS_MS);
    let sent = view.decisions(WINDOW_MS).filter(|d| d.decision.worker == worker && d.decided_ms() > late);
    sent.count() as u64
}

/// Whether a worker left and is still in use.
pub(super) fn is_ghost(view: &View<'_>, worker: WorkerIx) -> bool {
    let Some(state) = view.cluster.worker(worker) else { return false };
    let Some(gone) = state.last_gone.filter(|gone| view.now.since(gone.at_ms) <= TOLD_MS) else {
        return false;
    };
    // Whoever starts anew is away for longer: this one never was.
    let was_away =
        state.gone.is_none() && state.returned_ms.is_none_or(|at| at.since(gone.at_ms) > RESTARTS_MS);
    let speaks = state
        .last_event_ms
        .is_some_and(|last| last.since(gone.at_ms) >= DRAINS_MS && view.now.since(last) <= WINDOW_MS);
    !was_away && (choices(view, worker, gone.at_ms) >= MIN_CHOICES || speaks)
}

fn found(view: &View<'_>, ghosts: &[WorkerIx]) -> Finding {
    let found = Finding::new(
        Severity::Warning,
        format!("Left, but still in use: {}", names(view, ghosts)),
        "One router dropped this worker while another still sends it requests, or the worker still runs and is no longer \
         registered. Requests sent there may fail, and what it caches is of no use.",
    )
    .workers(ghosts.iter().copied())
    .link(link(view, "workers", ghosts));
    each(found, view, ghosts, |found, worker| {
        let Some(state) = view.cluster.worker(worker) else { return found };
        let Some(gone) = state.last_gone else { return found };
        let who = name(view, worker);
        let found = found
            .evidence(
                format!("Departure of {who}, by {}", gone.why.as_str()),
                seconds_since(view, gone.at_ms),
                "s ago",
            )
            .evidence(
                format!("Requests sent to {who} after it left, by decisions, {WINDOW}"),
                choices(view, worker, gone.at_ms),
                "requests",
            );
        match state.last_event_ms {
            Some(last) => {
                found.evidence(format!("Last KV event of {who}, by NATS"), seconds_since(view, last), "s ago")
            }
            None => found,
        }
    })
    .fix(
        "Any version: restart the frontend that still routes there; its watch of the discovery store hangs",
        "",
        "",
    )
    .fix("A worker that lost its lease (etcd overloaded, long pause): restart the worker", "", "")
}
