//! A worker left without having been stopped, or is silent while routers still send it requests or can no longer reach it:
//! its cache is lost and its requests may fail.

use super::prelude::*;
use super::worker_stopped::{self, REPORTED_MS, departure, last_sign, left_lately};
use radixscope_model::record::{LinkState, RoutingState, SourceKind};
use radixscope_state::cluster::{DecisionEntry, ProcessState, WorkerState};
use radixscope_state::per_worker::PerWorker;

/// Silence that arouses suspicion, if requests were sent to it meanwhile.
const SILENT_MS: u64 = 5_000;
/// A request shows on a worker within this time.
const SHOWS_MS: u64 = 1_000;
/// Requests sent into silence that make a suspicion.
const MIN_CHOICES: u64 = 3;
/// What a worker publishes within this time after a router gave it up was on its way.
const LATE_MS: u64 = 2_000;
/// A scrape of a frontend older than this is outdated.
const FRESH_MS: u64 = 15_000;
/// Scrapes that fail for so long while others succeed.
const UNSCRAPED_MS: u64 = 15_000;

pub(in crate::check) const RULE: Rule = Rule {
    // A worker that keeps sending was only removed from a list. Messages within 2 s were in transit; later ones count.
    hold_ms: 3_000,
    ..Rule::new("worker_gone", "Workers that left or stopped responding", evaluate)
};

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let departed = worker_stopped::departed(view, |is_stopped| !is_stopped);
    let suspects: Vec<_> = suspects(view);
    if departed.is_empty() && suspects.is_empty() {
        return RuleOutcome::Ok;
    }
    found(view, &departed, &suspects).into()
}

/// Workers that look dead.
fn suspects(view: &View<'_>) -> Vec<WorkerIx> {
    let sent = sent_into_silence(view);
    let is_suspect = |worker: &WorkerIx| {
        sent.get(*worker).is_some_and(|&sent| sent >= MIN_CHOICES)
            || is_given_up(view, *worker)
            || is_unscraped(view, *worker)
    };
    view.present().filter(|&worker| left_lately(view, worker).is_none()).filter(is_suspect).collect()
}

/// Requests that were sent to each worker after its last sign and that should have shown; 0 while it is not silent.
fn sent_into_silence(view: &View<'_>) -> PerWorker<u64> {
    let workers = view.cluster.workers();
    let mut sent = PerWorker::default();
    if !is_listening(view) {
        return sent;
    }
    for decided in view.decisions(REPORTED_MS).filter(|d| view.now.since(d.at_ms) >= SHOWS_MS) {
        let worker = decided.decision.worker;
        let Some(state) = workers.get(worker) else { continue };
        let Some(last) = state.last_sign_ms else { continue };
        let is_silent = (SILENT_MS..=REPORTED_MS).contains(&view.now.since(last));
        if is_silent && decided.at_ms > last && must_show(state, decided) {
            *sent.of(worker) += 1;
        }
    }
    sent
}

/// Whether a request has to show on the worker: in its load if reported, else by blocks that it must store.
fn must_show(state: &WorkerState, decided: &DecisionEntry) -> bool {
    let new_blocks =
        decided.decision.isl_blocks.unwrap_or(0).saturating_sub(decided.overlap_blocks().unwrap_or(0));
    state.engine_used_blocks.is_some() || (state.last_event_ms.is_some() && new_blocks >= 2)
}

/// Silence means something only while we listen.
fn is_listening(view: &View<'_>) -> bool {
    view.listening_ms().is_some_and(|ms| ms >= SILENT_MS)
}

/// Routers that cannot reach a worker, by their own gauges, of those that know it (≥ 1.7).
fn given_up_by<'v>(view: &View<'v>, worker: WorkerIx) -> (Vec<&'v ProcessState>, usize) {
    let frontends = view.processes().filter(|p| view.now.since(p.last_ms) <= FRESH_MS);
    let states = frontends.filter_map(|process| {
        let figures = process.workers().iter().find(|figures| figures.worker == worker)?;
        Some((process, figures.state?))
    });
    let states: Vec<_> = states.collect();
    let unreachable = states.iter().filter(|(_, state)| *state == RoutingState::Unavailable);
    (unreachable.map(|&(process, _)| process).collect(), states.len())
}

/// Whether every router that knows a worker gave it up, and the worker does not show that it runs all the same.
fn is_given_up(view: &View<'_>, worker: WorkerIx) -> bool {
    let (by, of) = given_up_by(view, worker);
    let Some(latest) = by.iter().map(|process| process.last_ms).max() else { return false };
    let last = view.worker(worker).and_then(|state| state.last_sign_ms);
    by.len() == of && last.is_none_or(|last| latest.since(last) >= LATE_MS || view.now.since(last) >= LATE_MS)
}

/// Whether its metrics cannot be read while those of others can, and nothing else is received of it.
fn is_unscraped(view: &View<'_>, worker: WorkerIx) -> bool {
    let Some(state) = view.worker(worker) else { return false };
    let Some(process) = view.known_process_of(worker) else { return false };
    let latest = view.processes().map(|p| p.last_ms).max().unwrap_or(process.last_ms);
    let silent = state.last_sign_ms.is_none_or(|last| view.now.since(last) >= UNSCRAPED_MS);
    let away = latest.since(process.last_ms);
    silent && (UNSCRAPED_MS..=REPORTED_MS).contains(&away) && scrapes_work(view)
}

fn scrapes_work(view: &View<'_>) -> bool {
    view.cluster.sources().iter().any(|s| {
        matches!(s.kind, SourceKind::Prometheus | SourceKind::Simulator) && s.state == LinkState::Live
    })
}

fn found(view: &View<'_>, departed: &[WorkerIx], suspects: &[WorkerIx]) -> Finding {
    let title = match (departed, suspects) {
        (departed, []) => format!("Left: {}", view.names(departed)),
        ([], suspects) => format!("Not responding: {}", view.names(suspects)),
        (departed, suspects) => {
            format!("Left: {}; not responding: {}", view.names(departed), view.names(suspects))
        }
    };
    let explanation = if suspects.is_empty() {
        "What the worker had cached is lost, so its conversations are recomputed elsewhere. Nothing shows that it was \
         stopped on purpose: it fell silent before it left, or requests on it failed."
    } else {
        "Routers sent requests to a worker that sends nothing any more, so those requests wait or fail until its registration \
         expires. That takes up to 10 s after a process is killed; longer silence means that it hangs."
    };
    let both: Vec<_> = departed.iter().chain(suspects).copied().collect();
    Finding::new(Severity::Warning, title, explanation)
        .about(PanelRef::Workers, &both)
        .each(view, departed, |found, worker, who| departure(found, view, worker, who))
        .each(view, suspects, |found, worker, who| silence(found, view, worker, who))
        .fixes("worker_gone")
}

fn silence(found: Finding, view: &View<'_>, worker: WorkerIx, who: &str) -> Finding {
    let sent = sent_into_silence(view).get(worker).copied().filter(|&sent| sent > 0);
    let (by, of) = given_up_by(view, worker);
    let routers = (!by.is_empty()).then(|| part(by.len() as u64, of as u64));
    let label = format!("Routers that count {who} as unavailable, by their metrics, of those that know it");
    let found = last_sign(found, view, worker, who).evidence_if(label, routers, "routers").evidence_if(
        format!("Requests sent to {who} since its last message, by decisions"),
        sent,
        "requests",
    );
    match view.known_process_of(worker) {
        Some(process) => {
            let label = format!("Last scrape of {who} that succeeded, by {}", process.name);
            found.evidence(label, view.seconds_since(process.last_ms), "s ago")
        }
        None => found,
    }
}
