//! A 0.9 frontend serves requests and no message of a KV router is received: it routes by guess or not by KV at all.

use super::no_events;
use super::prelude::*;
use crate::check::missing;
use radixscope_model::record::{Counter, DecisionSource, HistogramKind, ProcessRole};
use radixscope_state::cluster::ProcessState;

/// Requests that a KV router would have published.
const MIN_REQUESTS: u64 = 10;

pub(in crate::check) const RULE: Rule = Rule {
    hold_ms: 20_000,
    ..Rule::new("approximate_mode", "KV events used by routers of 0.8 and 0.9", look)
};

fn look(view: &View<'_>) -> RuleOutcome {
    let Some(served) = view.requests_served(WINDOW_MS) else {
        return RuleOutcome::no_data(missing::of_frontends(view, "the number of requests served", ""));
    };
    if view.listening_ms().is_none_or(|ms| ms < WINDOW_MS) {
        return RuleOutcome::no_data("Dynamo's messages have been listened to for less than a minute.");
    }
    // From 1.0 on routers do not publish decisions; their own counters show it, see `router_hears_no_events`.
    let is_new = |p: &ProcessState| {
        p.counter_value(Counter::StoredOk).is_some() && p.role == ProcessRole::Frontend
            || p.session(HistogramKind::HitRate).is_some()
    };
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
                "No KV event was received in the last 60 s, so how routers use them is not known.",
            ),
            false => RuleOutcome::Explained("no_events"),
        };
    }
    Finding::new(
        Severity::Info,
        "No message of a KV router although requests are served",
        "A KV router of 0.8 or 0.9 publishes every choice; here workers publish KV events and no router publishes. \
         Its frontend guesses caches from its own choices (--no-kv-events, forgotten after 120 s), routes without \
         KV, or publishes over ZMQ.",
    )
    .evidence(format!("Requests served, by the frontends' metrics, {WINDOW}"), served, "requests")
    .evidence(format!("Choices published by routers, by NATS, {WINDOW}"), 0, "decisions")
    .evidence(format!("Stored events received, by NATS, {WINDOW}"), stores, "events")
    .fixes("approximate_mode")
    .panel(PanelRef::Decisions)
    .into()
}
