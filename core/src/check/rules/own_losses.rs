//! This dashboard lost messages itself: what it shows is incomplete, and the fault is ours.

use crate::check::{Found, Look, Rule, View};
use crate::cluster::MissedCount;
use crate::record::{MissedCause, Severity};

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

    fn look(&self, view: &View<'_>) -> Look {
        let ours = |missed: &&MissedCount| {
            let own = matches!(
                missed.cause,
                MissedCause::QueueFull | MissedCause::SlowConsumer | MissedCause::TooManyWorkers
            );
            own && view.now.since(missed.last_ms) <= RECENT_MS
        };
        let mut found = Found::new(
            Severity::Warning,
            "This dashboard lost messages itself",
            "It could not read as fast as Dynamo publishes, so its tree and its counts are incomplete. Dynamo's router \
             is not affected.",
        )
        .fix("Give this process more CPU, or let it hold more before it drops", "--queue-messages", "")
        .link("view=overview");
        let mut lost = 0;
        for source in view.cluster.sources() {
            for missed in source.missed.iter().filter(ours) {
                lost += missed.count;
                let label = format!("{}, {}, since it was started", source.name, missed.cause.as_str());
                found = found.evidence(label, missed.count, "messages");
            }
        }
        if lost == 0 { Look::Ok } else { Look::Found(found) }
    }
}
