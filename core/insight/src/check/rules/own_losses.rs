//! Messages that did not reach this dashboard though they were published: dropped here, or sent while the connection was
//! lost. What it shows is incomplete, and the fault is not Dynamo's.

use crate::check::{Finding, Rule, RuleOutcome, View};
use radixscope_model::record::{MissedCause, Severity};
use radixscope_state::cluster::{MissedCount, SourceState, UnknownGaps};

/// Losses count as present for this long after the last one.
const RECENT_MS: u64 = 60_000;

/// See the module.
pub(in crate::check) struct OwnLosses;

impl Rule for OwnLosses {
    fn code(&self) -> &'static str {
        "own_losses"
    }

    fn subject(&self) -> &'static str {
        "Messages that this dashboard lost itself"
    }

    fn hold_ms(&self) -> u64 {
        0
    }

    fn look(&self, view: &View<'_>) -> RuleOutcome {
        let dropped =
            |missed: &&MissedCount| missed.cause.is_own() && view.now.since(missed.last_ms) <= RECENT_MS;
        let unseen = |gaps: &&UnknownGaps| view.now.since(gaps.until_ms) <= RECENT_MS;
        let sources = view.cluster.sources();
        let has_dropped = sources.iter().any(|source| source.missed.iter().any(|missed| dropped(&missed)));
        let has_gaps = sources.iter().any(|source| source.gaps.iter().any(|gaps| unseen(&gaps)));
        let mut found = match (has_dropped, has_gaps) {
            (false, false) => return RuleOutcome::Ok,
            (true, _) => too_slow(),
            (false, true) => connection_lost(),
        };
        for source in sources {
            for missed in source.missed.iter().filter(dropped) {
                found = found.evidence(label(source, missed), missed.count, "messages");
            }
            for gaps in source.gaps.iter().filter(unseen) {
                let label =
                    format!("{}, {}, connection lost: messages missed", source.name, gaps.topic.as_str());
                let value = match gaps.count {
                    1 => "unknown number, 1 gap".to_owned(),
                    count => format!("unknown number, {count} gaps"),
                };
                found = found.evidence(label, value, "");
            }
        }
        RuleOutcome::Found(found)
    }
}

fn too_slow() -> Finding {
    let found = Finding::new(
        Severity::Warning,
        "This dashboard lost messages itself",
        "It could not read as fast as Dynamo publishes, so its tree and its counts are incomplete. Dynamo's router \
         is not affected.",
    );
    found
        .fix("Give this process more CPU, or let it hold more before it drops", "--queue-messages", "")
        .link("view=overview")
}

fn connection_lost() -> Finding {
    let found = Finding::new(
        Severity::Warning,
        "Messages were missed while the connection was lost",
        "What was published meanwhile is not in the tree and the counts, and nothing tells how much that was. Dynamo's \
         router is not affected unless it lost its connection too.",
    );
    found
        .fix(
            "RuleOutcome in the NATS server's log why connections end, \"Slow Consumer\" among others",
            "write_deadline",
            "10s",
        )
        .link("view=overview")
}

fn label(source: &SourceState, missed: &MissedCount) -> String {
    let cause = match missed.cause {
        MissedCause::SlowConsumer => "slow_consumer, at least",
        cause => cause.as_str(),
    };
    format!("{}, {cause}, since it was started", source.name)
}
