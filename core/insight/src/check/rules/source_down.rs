//! A configured source cannot be read: what it would report is missing here.

use super::prelude::*;
use radixscope_model::record::{LinkState, SourceKind};
use radixscope_state::cluster::SourceState;

/// A link may break for so long without a word.
const DOWN_MS: u64 = 10_000;

pub(in crate::check) const RULE: Rule = Rule {
    hold_ms: 0,
    clear_ms: 5_000,
    ..Rule::new("source_down", "Links to all configured sources", evaluate)
};

/// The one that is written to and not read: what one sees is whole, what one can go back to is not.
fn not_recorded(view: &View<'_>, recording: &SourceState) -> RuleOutcome {
    let label = format!("{}: {}", recording.name, recording.detail);
    let explanation =
        "What happens meanwhile cannot be gone back to. The live view and Dynamo are not affected.";
    let title = format!("Cannot write {}", recording.name);
    let found = Finding::new(Severity::Warning, title, explanation).panel(PanelRef::Overview);
    found.evidence(label, view.seconds_since(recording.since_ms), "s").fixes("source_down/recording").into()
}

/// The other one that is written to.
fn not_exported(view: &View<'_>, export: &SourceState) -> RuleOutcome {
    let label = format!("{}: {}", export.name, export.detail);
    let explanation = "Decisions wait in memory; of too many the oldest are dropped and counted. The live view and Dynamo are not \
                       affected.";
    let found = Finding::new(Severity::Warning, "Cannot send decisions to OpenTelemetry", explanation);
    let found = found.panel(PanelRef::Overview).evidence(label, view.seconds_since(export.since_ms), "s");
    found.fixes("source_down/otlp_export").into()
}

/// The one that load is sent to: its requests fail, which says nothing of what else is read.
fn not_sent(view: &View<'_>, load: &SourceState) -> RuleOutcome {
    let label = format!("{}: {}", load.name, load.detail);
    let explanation = "Requests of radixscope stage fail there; one at a time is tried until one is answered. What is shown comes from the \
                       other sources.";
    let title = format!("Cannot send requests to {}", load.name);
    let found = Finding::new(Severity::Warning, title, explanation).panel(PanelRef::Overview);
    found.evidence(label, view.seconds_since(load.since_ms), "s").fixes("source_down/stage_load").into()
}

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let is_down = |s: &&SourceState| {
        matches!(s.state, LinkState::Connecting | LinkState::Refused | LinkState::Partial)
            && view.now.since(s.since_ms) > DOWN_MS
    };
    let down: Vec<_> = view.cluster.sources().iter().filter(is_down).collect();
    let Some(first) = down.first() else { return RuleOutcome::Ok };
    let (what, unseen, fixes) = match first.kind {
        SourceKind::Nats if first.state == LinkState::Partial => {
            ("Cannot read all of", "what is published on the subjects that are denied", "source_down/denied")
        }
        SourceKind::Zmq if first.state == LinkState::Partial => (
            "Cannot read all of",
            "what is published where we are not connected, so the tree of those workers goes out of date",
            "source_down/zmq",
        ),
        SourceKind::Engines => {
            let what = if first.state == LinkState::Partial { "Cannot read all of" } else { "Cannot read" };
            (
                what,
                "KV events of engines, so the tree of those workers goes out of date",
                "source_down/engines",
            )
        }
        SourceKind::Nats | SourceKind::Simulator => (
            "Cannot read",
            "KV events, loads and decisions, so the tree goes out of date",
            "source_down/nats",
        ),
        SourceKind::Logs => (
            "Cannot read",
            "what logs report: costs of candidates, departures, block sizes",
            "source_down/logs",
        ),
        SourceKind::Indexer => (
            "Cannot read",
            "the index that is compared with the tree; the tree itself does not depend on it",
            "source_down/indexer",
        ),
        SourceKind::RequestTraces => (
            "Cannot read",
            "requests by their traces: tokens, times, how much was really cached, sessions",
            "source_down/request_traces",
        ),
        SourceKind::ClientResults => {
            ("Cannot read", "what clients measured of requests", "source_down/client_results")
        }
        SourceKind::Otlp => (
            "Cannot receive",
            "requests by their traces from OpenTelemetry: tokens, times, how much was really cached, trace ids",
            "source_down/otlp",
        ),
        SourceKind::Prometheus => {
            ("Cannot read", "latency, errors and the process's own counters", "source_down/prometheus")
        }
        SourceKind::Discovery => (
            "Cannot read",
            "which workers there are, what they are and where their events come from",
            "source_down/discovery",
        ),
        SourceKind::Zmq => {
            ("Cannot read", "KV events, loads and decisions, so the tree goes out of date", "source_down/zmq")
        }
        SourceKind::WorkerTrees => {
            ("Cannot ask", "blocks that workers stored before we listened", "source_down/worker_trees")
        }
        SourceKind::OtlpExport => return not_exported(view, first),
        SourceKind::StageLoad => return not_sent(view, first),
        SourceKind::Recording => return not_recorded(view, first),
    };
    let more = if down.len() > 1 { format!(" and {} more", down.len() - 1) } else { String::new() };
    let mut found = Finding::new(
        Severity::Warning,
        format!("{what} {}{more}", first.name),
        format!("Not seen meanwhile: {unseen}. Dynamo itself is not affected by that."),
    )
    .panel(PanelRef::Overview);
    for source in &down {
        let label = format!("{}, {}: {}", source.name, source.state.as_str(), source.detail);
        found = found.evidence(label, view.seconds_since(source.since_ms), "s");
    }
    found.fixes(fixes).into()
}
