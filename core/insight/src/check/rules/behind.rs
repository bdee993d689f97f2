//! This dashboard shows the past: messages reach it long after they were published.

use super::prelude::*;
use radixscope_model::record::LinkState;

/// Delay of the slowest message that is too much.
const LATE_MS: i64 = 2_000;
/// A source that delivered something lately.
const FRESH_MS: u64 = 10_000;

pub(in crate::check) const RULE: Rule =
    Rule { hold_ms: 10_000, ..Rule::new("behind", "Delay of this dashboard", evaluate) };

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let live = view.cluster.sources().iter().filter(|s| s.state == LinkState::Live);
    let fresh = live.filter(|s| s.last_ms.is_some_and(|last| view.now.since(last) <= FRESH_MS));
    let late = fresh.filter_map(|s| Some((s, s.lag_ms.filter(|&lag| lag > LATE_MS)?)));
    let mut found = Finding::new(
        Severity::Warning,
        "This dashboard is behind",
        "Messages arrive seconds after they were published, so tree and loads are shown late. Either this process or \
         the network is too slow, or the clocks of publishers and of this machine differ.",
    )
    .fixes("behind")
    .panel(PanelRef::Overview);
    for (source, lag_ms) in late {
        let label = format!("Delay of the slowest message, by {}, latest second", source.name);
        found = found.evidence(label, lag_ms, "ms");
    }
    if found.evidence.is_empty() { RuleOutcome::Ok } else { found.into() }
}
