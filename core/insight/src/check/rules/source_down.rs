//! A configured source cannot be read: what it would tell is missing here.

use super::event_path::seconds_since;
use crate::check::{Finding, Rule, RuleOutcome, View};
use radixscope_model::record::{LinkState, Severity, SourceKind};

/// A link may break for so long without a word.
const DOWN_MS: u64 = 10_000;

/// See the module.
pub(in crate::check) struct SourceDown;

impl Rule for SourceDown {
    fn code(&self) -> &'static str {
        "source_down"
    }

    fn subject(&self) -> &'static str {
        "Links to all configured sources"
    }

    fn hold_ms(&self) -> u64 {
        0
    }

    fn clear_ms(&self) -> u64 {
        5_000
    }

    fn look(&self, view: &View<'_>) -> RuleOutcome {
        let is_down = |s: &&radixscope_state::cluster::SourceState| {
            matches!(s.state, LinkState::Connecting | LinkState::Refused | LinkState::Partial)
                && view.now.since(s.since_ms) > DOWN_MS
        };
        let down: Vec<_> = view.cluster.sources().iter().filter(is_down).collect();
        let Some(first) = down.first() else { return RuleOutcome::Ok };
        let unseen = match first.kind {
            SourceKind::Nats | SourceKind::Simulator => {
                "KV events, loads and decisions, so the tree is not kept up"
            }
            SourceKind::Logs => "what logs say: costs of candidates, departures, sizes of blocks",
            SourceKind::Prometheus => "latency, errors and the process's own counters",
        };
        let more = if down.len() > 1 { format!(" and {} more", down.len() - 1) } else { String::new() };
        let (what, unseen) = match first.state {
            LinkState::Partial => ("Cannot read all of", "what is published on the subjects that are denied"),
            _ => ("Cannot read", unseen),
        };
        let mut found = Finding::new(
            Severity::Warning,
            format!("{what} {}{more}", first.name),
            format!("Not seen meanwhile: {unseen}. Dynamo itself is not affected by that."),
        )
        .link("view=overview");
        for source in &down {
            let label = format!("{}, {}: {}", source.name, source.state.as_str(), source.detail);
            found = found.evidence(label, seconds_since(view, source.since_ms), "s");
        }
        let found = match first.kind {
            _ if first.state == LinkState::Partial => {
                found.fix("Allow this user to subscribe to them, or watch its namespace only", "--namespace", "")
            }
            SourceKind::Nats | SourceKind::Simulator => {
                found.fix("Check address, network policy and credentials", "--nats", "")
            }
            SourceKind::Logs => found.fix("Check that the file exists and may be read", "--logs", ""),
            SourceKind::Prometheus => found.fix(
                "Check address and port: frontends answer at /metrics of their HTTP port, workers at DYN_SYSTEM_PORT",
                "--prometheus",
                "",
            ),
        };
        RuleOutcome::Found(found)
    }
}
