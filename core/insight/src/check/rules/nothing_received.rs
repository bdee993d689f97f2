//! The event plane is connected and no message of Dynamo comes there at all: another event plane, or another NATS.

use super::prelude::*;
use radixscope_model::record::{LinkState, SourceKind};
use radixscope_state::cluster::SourceState;

/// Silence that means something: engines report their load with every request.
const SILENT_MS: u64 = 30_000;
/// Requests that would have been seen.
const MIN_REQUESTS: u64 = 5;

pub(in crate::check) const RULE: Rule = Rule {
    hold_ms: 0,
    clear_ms: 0,
    ..Rule::new("nothing_received", "Dynamo's messages on its event plane", evaluate)
};

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let is_plane =
        |s: &&SourceState| matches!(s.kind, SourceKind::Nats | SourceKind::Zmq | SourceKind::Engines);
    let planes = || view.cluster.sources().iter().filter(is_plane);
    let Some(first) = planes().next() else {
        return RuleOutcome::no_data(
            "No event plane is configured: set NATS with --nats, or --discovery, which finds ZeroMQ publishers; or engines \
             without Dynamo with --engine-events.",
        );
    };
    let is_silent = |s: &SourceState| {
        s.state == LinkState::Live && view.now.since(s.since_ms) >= SILENT_MS && s.received == 0
    };
    if !planes().all(is_silent) {
        return RuleOutcome::Ok;
    }
    let (over, explanations, fixes) = match first.kind {
        SourceKind::Zmq => ("over ZeroMQ", OVER_ZMQ, "nothing_received/zmq"),
        SourceKind::Engines => ("from engines", OF_ENGINES, "nothing_received/engines"),
        _ => ("on NATS", ON_NATS, "nothing_received"),
    };
    let served = view.requests_served(WINDOW_MS);
    let routed = view.decisions(WINDOW_MS).count() as u64;
    let requests = served.unwrap_or(0).max(routed);
    let (severity, explanation) = if requests >= MIN_REQUESTS {
        (Severity::Warning, explanations[0])
    } else {
        (Severity::Info, explanations[1])
    };
    let (name, connected_s) = (&first.name, view.seconds_since(first.since_ms));
    let received = format!("Messages received, by {name}, in the {connected_s} s it is connected");
    let by_others = format!("Requests routed, by other sources than the event plane, {WINDOW}");
    let whose = if first.kind == SourceKind::Engines { "KV event" } else { "message of Dynamo" };
    Finding::new(severity, format!("No {whose} received {over}"), explanation)
        .evidence(received, 0, "messages")
        .evidence_if(format!("Requests served, by the frontends' metrics, {WINDOW}"), served, "requests")
        .evidence_if(by_others, (routed > 0).then_some(routed), "requests")
        .fixes(fixes)
        .panel(PanelRef::Overview)
        .into()
}

/// Where requests are served, and where none is known to be.
const ON_NATS: [&str; 2] = [
    "Requests are served, yet no message of Dynamo was received over this NATS, so tree and loads cannot be shown. \
     From 1.3 on the event plane is ZeroMQ unless set otherwise; else this is another NATS than Dynamo's.",
    "The connection is up, but no message of Dynamo was received over it. That is normal while nothing runs; \
     otherwise the event plane is ZeroMQ (the default from 1.3 on) or this is another NATS than Dynamo's.",
];
const OF_ENGINES: [&str; 2] = [
    "Requests are served, yet no engine published a KV event, so the tree cannot be shown. An engine publishes when it stores blocks, if \
     its --kv-events-config says so and prefix caching is on.",
    "The engines are connected, but none published a KV event. That is normal while nothing runs: an engine publishes when it stores \
     blocks. Otherwise its --kv-events-config names another port or topic, or prefix caching is off.",
];
const OVER_ZMQ: [&str; 2] = [
    "Requests are served, yet no publisher sent a message, so tree and loads cannot be shown. Dynamo publishes on \
     NATS where DYN_EVENT_PLANE says so; else discovery names other publishers than those that serve.",
    "Publishers are connected, but no message of Dynamo was received. That is normal while nothing runs; otherwise Dynamo \
     publishes on NATS (DYN_EVENT_PLANE), or discovery names other publishers than those that serve.",
];
