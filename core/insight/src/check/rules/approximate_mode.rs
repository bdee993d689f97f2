//! A KV router that takes no KV events and guesses what workers hold from what it sent there. From 1.0 on its log or its
//! metrics show it; of 0.8 and 0.9, that a frontend serves requests and no message of a KV router is received.

use super::prelude::*;
use super::{no_events, not_kv_routing};
use crate::check::missing;
use crate::check::view::median;
use radixscope_model::record::{Counter, DecisionSource, Gauge, HistogramKind, LogSignal, ProcessRole};
use radixscope_state::cluster::ProcessState;

/// Requests that a KV router would have published.
const MIN_REQUESTS: u64 = 10;

pub(in crate::check) const RULE: Rule =
    Rule { hold_ms: 20_000, ..Rule::new("approximate_mode", "KV events used by routers", evaluate) };

/// Whether a router of 1.x is known to go by its own guesses, for rules that see the consequences.
pub(super) fn is_there(view: &View<'_>) -> bool {
    // A frontend that counts sources of events takes them, whatever an older process wrote.
    let takes_events = |p: &ProcessState| p.gauge(Gauge::EventSourceMismatchWorkers).is_some();
    view.fresh().any(guesses) || is_logged(view) && !view.fresh().any(takes_events)
}

/// Whether a router's log reports that it uses no KV events.
fn is_logged(view: &View<'_>) -> bool {
    view.cluster.sign(|sign| *sign == LogSignal::KvEventsOff).is_some()
}

/// Whether a frontend counts stores in its router's index, and none of the workers' sources of KV events, which routers of
/// 1.6 that take events all count: they are its own guesses.
fn guesses(process: &ProcessState) -> bool {
    let is_1_6 = process.counter_value(Counter::SelectedPrefixTokens).is_some();
    is_1_6
        && process.counter_value(Counter::StoredOk).is_some_and(|stored| stored > 0.0)
        && process.gauge(Gauge::EventSourceMismatchWorkers).is_none()
}

/// The note that a router counts blocks as cached before they are.
fn predicts(view: &View<'_>) -> Option<String> {
    let ttl_ms = view.cluster.signs().iter().find_map(|state| match state.sign {
        LogSignal::PredictsOnRoute { ttl_ms } => Some(ttl_ms),
        _ => None,
    })?;
    let ttl = ttl_ms.map_or_else(String::new, |ms| format!(" for {:.0} s", f64::from(ms) / 1_000.0));
    Some(format!(
        "By its log, the router counts the blocks of a prompt as cached from its decision on{ttl} \
         (--router-predicted-ttl-secs), until KV events arrive."
    ))
}

fn evaluate(view: &View<'_>) -> RuleOutcome {
    if is_there(view) {
        return deaf(view).into();
    }
    match (published(view), predicts(view)) {
        (RuleOutcome::Ok | RuleOutcome::NoData(_), Some(note)) => RuleOutcome::Noted(note.into()),
        (outcome, _) => outcome,
    }
}

/// A router of 1.x that goes by its own guesses.
fn deaf(view: &View<'_>) -> Finding {
    let guessing = view.fresh().filter(|process| guesses(process));
    let found = Finding::new(
        Severity::Info,
        "The router predicts cached blocks without KV events",
        "It takes no KV events (--no-router-kv-events): it counts blocks as cached from its own decisions until a time limit. \
         Blocks that workers evicted earlier still count as cached, and blocks stored for other requests do not.",
    )
    .log_lines(
        view,
        "Lines \"Skipping KV event subscription\" with use_kv_events=false, by the router's log",
        LogSignal::KvEventsOff,
    );
    let found = guessing.fold(found, |found, process| {
        let stored = process.counter_value(Counter::StoredOk).unwrap_or(0.0);
        let label = format!(
            "Stores in the router's index that are its own, by {}'s metrics, since it started",
            process.name
        );
        found.evidence(label, stored, "stores")
    });
    // What the middle worker keeps blocks for: predictions that last longer count blocks that are gone.
    let lifetimes = view.present().filter_map(|worker| view.worker(worker)?.lifetimes?.lifetime_p50_ms);
    let seconds = median(lifetimes).map(|ms| (ms / 1_000).max(1).to_string());
    let lifetime: Vec<(&str, &str)> = seconds.iter().map(|seconds| ("lifetime", seconds.as_str())).collect();
    found
        .evidence(format!("Stored events received here, by NATS, {WINDOW}"), view.stores(), "events")
        .fixes_with("approximate_mode/deaf", &lifetime)
        .panel(PanelRef::Decisions)
}

/// What the messages of routers show, which those of 0.8 and 0.9 publish about every choice.
fn published(view: &View<'_>) -> RuleOutcome {
    let Some(served) = view.requests_served(WINDOW_MS) else {
        return RuleOutcome::no_data(missing::of_frontends(view, "the number of requests served", ""));
    };
    if view.listening_ms().is_none_or(|ms| ms < WINDOW_MS) {
        return RuleOutcome::no_data("Dynamo's messages have been received for less than a minute.");
    }
    // From 1.0 on routers do not publish decisions; their own counters show it, see `router_receives_no_events`.
    let is_new = |p: &ProcessState| {
        p.counter_value(Counter::StoredOk).is_some() && p.role == ProcessRole::Frontend
            || p.session(HistogramKind::HitRate).is_some()
    };
    if not_kv_routing::is_there(view) {
        return RuleOutcome::Explained("not_kv_routing");
    }
    if view.processes().any(is_new) || served < MIN_REQUESTS {
        return RuleOutcome::Ok;
    }
    let mut loads = view.cluster.workers().iter().flat_map(|worker| &worker.router_loads);
    if view.decisions(WINDOW_MS).any(|d| d.is_from(DecisionSource::KvHitRate))
        || loads.any(|load| view.now.since(load.at_ms) <= WINDOW_MS)
    {
        return RuleOutcome::Ok;
    }
    let stores = view.stores();
    if stores == 0 {
        return match no_events::silent(view).is_empty() {
            true => RuleOutcome::no_data(
                "No KV event was received in the last 60 s, so how routers use them is unknown.",
            ),
            false => RuleOutcome::Explained("no_events"),
        };
    }
    Finding::new(
        Severity::Info,
        "No message of a KV router although requests are served",
        "A KV router of 0.8 or 0.9 publishes every decision; here workers publish KV events and no router publishes. \
         Its frontend predicts cached blocks from its own decisions (--no-kv-events, forgotten after 120 s), routes without \
         KV, or publishes over ZMQ.",
    )
    .evidence(format!("Requests served, by the frontends' metrics, {WINDOW}"), served, "requests")
    .evidence(format!("Decisions published by routers, by NATS, {WINDOW}"), 0, "decisions")
    .evidence(format!("Stored events received, by NATS, {WINDOW}"), stores, "events")
    .fixes("approximate_mode")
    .panel(PanelRef::Decisions)
    .into()
}
