//! This dashboard shows the past: messages reach it long after they were published.

use crate::check::{Finding, Rule, RuleOutcome, View};
use radixscope_model::record::{LinkState, Severity};

/// Delay of the slowest message that is too much.
const LATE_MS: i64 = 2_000;
/// A source that said something lately.
const FRESH_MS: u64 = 10_000;

/// See the module.
pub(in crate::check) struct Behind;

impl Rule for Behind {
    fn code(&self) -> &'static str {
        "behind"
    }

    fn subject(&self) -> &'static str {
        "How far this dashboard is behind"
    }

    fn hold_ms(&self) -> u64 {
        10_000
    }

    fn look(&self, view: &View<'_>) -> RuleOutcome {
        let live = view.cluster.sources().iter().filter(|s| s.state == LinkState::Live);
        let fresh = live.filter(|s| s.last_ms.is_some_and(|last| view.now.since(last) <= FRESH_MS));
        let late = fresh.filter_map(|s| Some((s, s.lag_ms.filter(|&lag| lag > LATE_MS)?)));
        let mut found = Finding::new(
            Severity::Warning,
            "This dashboard is behind",
            "Messages arrive seconds after they were published, so tree and loads are shown late. Either this process or \
             the way to it is too slow, or the clocks of publishers and of this machine differ.",
        )
        .fix("Give this process more CPU, or run it nearer to NATS", "", "")
        .fix("If the delay is constant: synchronise the clocks of workers and of this machine", "NTP", "")
        .link("view=overview");
        let mut any = false;
        for (source, lag_ms) in late {
            any = true;
            found = found.evidence(
                format!("Delay of the slowest message, by {}, latest second", source.name),
                lag_ms,
                "ms",
            );
        }
        if any { RuleOutcome::Found(found) } else { RuleOutcome::Ok }
    }
}
