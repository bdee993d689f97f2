//! NATS is connected and no message of Dynamo comes there at all: another event plane, or another NATS.

use super::prelude::*;
use radixscope_model::record::{LinkState, SourceKind};
use radixscope_state::cluster::SourceState;

/// Silence that means something: engines report their load with every request.
const SILENT_MS: u64 = 30_000;
/// Requests that would have been seen.
const MIN_REQUESTS: u64 = 5;

pub(in crate::check) const RULE: Rule =
    Rule { hold_ms: 0, clear_ms: 0, ..Rule::new("nothing_heard", "Dynamo's messages on NATS", look) };

fn look(view: &View<'_>) -> RuleOutcome {
    let nats = |s: &&SourceState| s.kind == SourceKind::Nats;
    let sources = view.cluster.sources();
    let Some(first) = sources.iter().find(nats) else {
        return RuleOutcome::no_data("No NATS is configured; give its address with --nats.");
    };
    let is_silent = |s: &SourceState| {
        s.state == LinkState::Live && view.now.since(s.since_ms) >= SILENT_MS && s.received == 0
    };
    if !sources.iter().filter(nats).all(is_silent) {
        return RuleOutcome::Ok;
    }
    let served = view.requests_served(WINDOW_MS);
    let routed = view.decisions(WINDOW_MS).count() as u64;
    let requests = served.unwrap_or(0).max(routed);
    let (severity, explanation) = if requests >= MIN_REQUESTS {
        (
            Severity::Warning,
            "Requests are served, yet no message of Dynamo came over this NATS, so tree and loads cannot be shown. \
             From 1.3 on the event plane is ZMQ unless set otherwise; else this is another NATS than Dynamo's.",
        )
    } else {
        (
            Severity::Info,
            "The connection stands, but no message of Dynamo came over it. That is right while nothing runs; \
             otherwise the event plane is ZMQ (the default from 1.3 on) or this is another NATS than Dynamo's.",
        )
    };
    let (name, connected_s) = (&first.name, view.seconds_since(first.since_ms));
    let received = format!("Messages received, by {name}, in the {connected_s} s it is connected");
    let by_others = format!("Requests routed, by other sources than NATS, {WINDOW}");
    Finding::new(severity, "No message of Dynamo received on NATS", explanation)
        .evidence(received, 0, "messages")
        .evidence_if(format!("Requests served, by the frontends' metrics, {WINDOW}"), served, "requests")
        .evidence_if(by_others, (routed > 0).then_some(routed), "requests")
        .fixes("nothing_heard")
        .panel(PanelRef::Overview)
        .into()
}
