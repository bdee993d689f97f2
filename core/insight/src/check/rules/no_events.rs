//! Requests go to a worker, but it publishes no KV events, or none any more: the router knows nothing of its cache. Of workers
//! that need not publish, because they decode or by their model card, there is no finding; nor of those that only another router than
//! Dynamo's names, whose events nobody listens to here.

use super::prelude::*;
use super::{block_size, not_kv_routing};
use crate::check::missing;
use radixscope_state::cluster::WorkerState;

/// A worker and the link have to be known for so long.
const MIN_LISTENING_MS: u64 = 15_000;
/// Requests that would have made it store something.
const MIN_CHOSEN: u64 = 10;
/// Blocks that running requests use, where no source reports choices: more than short prompts need.
const MIN_USED_BLOCKS: u64 = 16;
/// A worker with a message this recent is alive.
const ALIVE_MS: u64 = 10_000;

pub(in crate::check) const RULE: Rule =
    Rule::new("no_events", "KV events of every worker that gets requests", evaluate);

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let Some(listening) = view.listening_ms() else {
        return RuleOutcome::no_data(missing::of_event_plane(view));
    };
    if listening < MIN_LISTENING_MS || view.cluster.workers().is_empty() {
        return RuleOutcome::no_data("Too few messages were received yet to say that a worker is silent.");
    }
    let silent = silent(view);
    let is_mismatched =
        |&worker: &WorkerIx| view.cluster.pool_of(worker).is_some_and(|pool| block_size::is_in(view, pool));
    if silent.is_empty() {
        RuleOutcome::Ok
    } else if silent.iter().all(is_mismatched) {
        RuleOutcome::Explained("block_size_mismatch")
    } else if not_kv_routing::is_there(view) {
        // Nothing would read them.
        RuleOutcome::Explained("not_kv_routing")
    } else {
        found(view, &silent).into()
    }
}

/// Workers that get requests and send no KV events.
pub(super) fn silent(view: &View<'_>) -> Vec<WorkerIx> {
    if view.listening_ms().is_none_or(|ms| ms < MIN_LISTENING_MS) {
        return Vec::new();
    }
    view.present().filter(|&worker| is_silent(view, worker)).collect()
}

fn is_silent(view: &View<'_>, worker: WorkerIx) -> bool {
    let Some(state) = view.worker(worker).filter(|_| view.publishes(worker)) else { return false };
    if view.now.since(state.first_ms) < MIN_LISTENING_MS {
        return false;
    }
    let is_only_named = state.lines.is_empty() && state.publishes_events.is_none();
    if is_only_named && view.cluster.endpoint_of(worker).is_some() {
        return false;
    }
    let rise = view.rise(worker, WINDOW_MS);
    let is_reported = rise.isl_blocks > 0;
    // Prompts below one block, and prompts that are cached whole, store nothing.
    let new_blocks = rise.isl_blocks.saturating_sub(rise.overlap_blocks);
    let must_store = rise.chosen >= MIN_CHOSEN && (!is_reported || new_blocks >= 2 * rise.chosen);
    match state.last_event_ms {
        // An overlap means that a router knows its blocks: predicted, or from events that we do not receive.
        None => rise.overlap_blocks == 0 && (must_store || uses_blocks(view, state)),
        Some(last) => view.now.since(last) >= WINDOW_MS && must_store && is_reported && is_alive(view, state),
    }
}

fn uses_blocks(view: &View<'_>, state: &WorkerState) -> bool {
    state.engine_used_blocks.is_some_and(|used| used >= MIN_USED_BLOCKS) && is_alive(view, state)
}

fn is_alive(view: &View<'_>, state: &WorkerState) -> bool {
    state.last_sign_ms.is_some_and(|last| view.now.since(last) <= ALIVE_MS)
}

fn found(view: &View<'_>, silent: &[WorkerIx]) -> Finding {
    let expected: Vec<_> = view.present().filter(|&worker| view.publishes(worker)).collect();
    let pool = |worker: &WorkerIx| view.cluster.pool_of(*worker);
    let is_silent = |worker: &WorkerIx| silent.contains(worker);
    let all = silent.len() == expected.len();
    // Every pool that has a silent worker is silent as a whole.
    let whole = expected.iter().filter(|of| silent.iter().any(|s| pool(s) == pool(of))).all(is_silent);
    // Whoever publishes its load reaches us: then the event plane is the right one, and the engine is not asked.
    let reaches_us = silent.iter().any(|&w| view.worker(w).is_some_and(|state| state.last_sign_ms.is_some()));
    let of_pool = || silent.first().and_then(pool).map_or_else(String::new, |pool| view.of_pool(pool));
    let (severity, title, explanation) = match (whole, reaches_us) {
        (_, _) if may_only_decode(view, silent) => (
            Severity::Info,
            format!("No KV events from a whole component: {}", view.names(silent)),
            "Workers of another component publish KV events, these do not. That is normal for decode-only workers, and a \
             fault for any other.",
        ),
        (true, true) => (
            Severity::Critical,
            format!("No KV events from any worker{}", if all { String::new() } else { of_pool() }),
            "Requests are routed but no worker reports which blocks it stores, so the router's tree stays empty and every \
             overlap is 0. Requests succeed, but routing ignores what is cached.",
        ),
        (true, false) if all => (
            Severity::Warning,
            "No KV events from any worker reach this dashboard".to_owned(),
            "Requests are routed but neither KV events nor loads of any worker are received on NATS. Either the engines \
             publish none, or the event plane is ZMQ, which is the default from 1.3 on and which only routers receive.",
        ),
        _ => (
            Severity::Warning,
            format!("No KV events from {}", view.names(silent)),
            "Others publish which blocks they store, but nothing is received from these, so the router counts every prompt \
             as new there. Hits on them are by chance.",
        ),
    };
    Finding::new(severity, title, explanation)
        .about(PanelRef::Workers, silent)
        .evidence(
            "Workers that get requests and send no KV events, by NATS, of those present that should",
            part(silent.len() as u64, expected.len() as u64),
            "workers",
        )
        .each(view, silent, |found, worker, who| rows(found, view, worker, who))
        .fixes("no_events")
}

/// Whether the silent ones are exactly a component without a publisher, while another component publishes, and no source reports
/// what they do.
fn may_only_decode(view: &View<'_>, silent: &[WorkerIx]) -> bool {
    let pool = |worker: WorkerIx| view.worker(worker).map(|w| w.pool);
    let speaks = |worker: WorkerIx| view.worker(worker).is_some_and(|w| w.last_event_ms.is_some());
    let is_named = |worker: WorkerIx| {
        pool(worker).and_then(|pool| view.cluster.pool(pool)).is_some_and(|pool| !pool.component.is_empty())
    };
    // Prefill and decode workers serve one model.
    let speaking: Vec<_> = view.present().filter(|&worker| speaks(worker)).collect();
    let serves_other = |&worker: &WorkerIx| {
        let model = view.cluster.model_of(worker);
        model.is_some()
            && speaking.iter().all(|&other| view.cluster.model_of(other).is_some_and(|m| Some(m) != model))
    };
    let has_role = |&worker: &WorkerIx| pool(worker).is_some_and(|pool| view.cluster.role(pool).is_some());
    let named = silent.iter().all(|&worker| is_named(worker))
        && !silent.iter().any(|worker| has_role(worker) || serves_other(worker));
    let alone = |worker: WorkerIx| silent.iter().any(|&s| pool(s) == pool(worker));
    named && view.present().any(speaks) && !view.present().any(|worker| speaks(worker) && alone(worker))
}

fn rows(found: Finding, view: &View<'_>, worker: WorkerIx, who: &str) -> Finding {
    let Some(state) = view.worker(worker) else { return found };
    let known_s = view.seconds_since(state.first_ms);
    let found = match state.last_event_ms {
        None => {
            let label = format!("KV events of {who}, by NATS, since it was first seen {known_s} s ago");
            found.evidence(label, 0, "events")
        }
        Some(last) => {
            found.evidence(format!("Last KV event of {who}, by NATS"), view.seconds_since(last), "s ago")
        }
    };
    let routed = format!("Requests routed to {who}, by decisions, {WINDOW}");
    let used = format!("Blocks in use on {who}, by its engine's kv_metrics, now");
    found.evidence(routed, view.rise(worker, WINDOW_MS).chosen, "requests").evidence_if(
        used,
        state.engine_used_blocks,
        "blocks",
    )
}
