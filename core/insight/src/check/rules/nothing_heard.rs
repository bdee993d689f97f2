//! NATS is connected and Dynamo says nothing there at all: another event plane, or another NATS.

use super::event_path::{WINDOW, WINDOW_MS, requests_served, seconds_since};
use crate::check::{Finding, Rule, RuleOutcome, View};
use radixscope_model::record::{LinkState, Severity, SourceKind};

/// Silence that means something: engines tell their load with every request.
const SILENT_MS: u64 = 30_000;
/// Requests that would have been heard of.
const MIN_REQUESTS: u64 = 5;

/// See the module.
pub(in crate::check) struct NothingHeard;

impl Rule for NothingHeard {
    fn code(&self) -> &'static str {
        "nothing_heard"
    }

    fn subject(&self) -> &'static str {
        "Dynamo's messages on NATS"
    }

    fn hold_ms(&self) -> u64 {
        0
    }

    fn clear_ms(&self) -> u64 {
        0
    }

    fn look(&self, view: &View<'_>) -> RuleOutcome {
        let nats = |s: &&radixscope_state::cluster::SourceState| s.kind == SourceKind::Nats;
        let sources = view.cluster.sources();
        let Some(first) = sources.iter().find(nats) else {
            return RuleOutcome::Unknown("No NATS is configured; give its address with --nats.".into());
        };
        let is_silent = |s: &radixscope_state::cluster::SourceState| {
            s.state == LinkState::Live && view.now.since(s.since_ms) >= SILENT_MS && s.received == 0
        };
        if !sources.iter().filter(nats).all(is_silent) {
            return RuleOutcome::Ok;
        }
        let served = requests_served(view, WINDOW_MS);
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
        let label = format!(
            "Messages received, by {}, in the {} s it is connected",
            first.name,
            seconds_since(view, first.since_ms)
        );
        let mut found = Finding::new(severity, "Nothing of Dynamo is heard on NATS", explanation)
            .evidence(label, 0, "messages");
        found = match served {
            Some(served) => found.evidence(
                format!("Requests served, by the frontends' metrics, {WINDOW}"),
                served,
                "requests",
            ),
            None => found,
        };
        if routed > 0 {
            found = found.evidence(
                format!("Requests routed, by other sources than NATS, {WINDOW}"),
                routed,
                "requests",
            );
        }
        RuleOutcome::Found(
            found
                .fix(
                    "Dynamo from 1.3 on: publish on NATS, on every frontend and worker (0.9 to 1.2 do so by themselves)",
                    "DYN_EVENT_PLANE",
                    "nats",
                )
                .fix("Any version: give this dashboard the address that Dynamo's processes have in NATS_SERVER", "--nats", "")
                .link("view=overview"),
        )
    }
}
