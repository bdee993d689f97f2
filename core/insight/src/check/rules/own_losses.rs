//! Messages that did not reach this dashboard though they were published: dropped here, or sent while the connection was
//! lost. What it shows is incomplete, and the fault is not Dynamo's.

use super::prelude::*;
use radixscope_model::number_format::plural;
use radixscope_model::record::{MissedCause, Topic};
use radixscope_state::cluster::{MissedCount, SourceState, UnknownGaps};

/// Losses count as present for this long after the last one.
const RECENT_MS: u64 = 60_000;

pub(in crate::check) const RULE: Rule =
    Rule { hold_ms: 0, ..Rule::new("own_losses", "Messages lost by this dashboard", evaluate) };

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let dropped = |missed: &&MissedCount| {
        missed.cause.is_own() && missed.lost_since(Millis(view.now.0.saturating_sub(RECENT_MS))) > 0
    };
    let is_all_known = view.is_all_known();
    let unseen = |gaps: &&UnknownGaps| {
        let is_got_back = is_all_known && gaps.topic == Topic::KvEvents;
        !is_got_back && view.now.since(gaps.until_ms) <= RECENT_MS
    };
    let sources = view.cluster.sources();
    let has_dropped = sources.iter().any(|source| source.missed.iter().any(|missed| dropped(&missed)));
    let has_gaps = sources.iter().any(|source| source.unknown_gaps().any(|gaps| unseen(&gaps)));
    let (title, explanation, fixes) = match (has_dropped, has_gaps) {
        (false, false) => return RuleOutcome::Ok,
        (true, _) => (
            "This dashboard lost messages",
            "It could not read as fast as Dynamo publishes, so its tree and its counts are incomplete. Dynamo's router \
             is not affected.",
            "own_losses/too_slow",
        ),
        (false, true) => (
            "Messages were missed while the connection was lost",
            "What was published meanwhile is not in the tree and the counts, and how much that was is unknown. Dynamo's \
             router is not affected unless it lost its connection too.",
            "own_losses/connection_lost",
        ),
    };
    let mut found =
        Finding::new(Severity::Warning, title, explanation).fixes(fixes).panel(PanelRef::Overview);
    for source in sources {
        for missed in source.missed.iter().filter(dropped) {
            found = found.evidence(label(source, missed), missed.lost(), "messages");
        }
        for gaps in source.unknown_gaps().filter(unseen) {
            let label = format!("{}, {}, connection lost: messages missed", source.name, gaps.topic.as_str());
            let value = format!("unknown number, {}", plural(gaps.count, "gap", "gaps"));
            found = found.evidence(label, value, "");
        }
    }
    found.into()
}

fn label(source: &SourceState, missed: &MissedCount) -> String {
    let cause = match missed.cause {
        MissedCause::SlowConsumer => "slow_consumer, at least",
        cause => cause.as_str(),
    };
    format!("{}, {cause}, since it was started", source.name)
}
