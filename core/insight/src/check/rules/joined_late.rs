//! This dashboard came after workers had stored blocks that nobody repeats: part of the picture is missing, by nature.

use super::event_path::{capacity_blocks, each, is_heard_late, is_history_expired, link, name, part};
use crate::check::{Finding, Rule, RuleOutcome, View};
use radixscope_model::id::WorkerIx;
use radixscope_model::record::{MissedCause, Severity};

/// Above this share of its cache, in per cent, a worker counts as known again.
const KNOWN_PERCENT: u64 = 95;

/// See the module.
pub(in crate::check) struct JoinedLate;

impl Rule for JoinedLate {
    fn code(&self) -> &'static str {
        "joined_late"
    }

    fn subject(&self) -> &'static str {
        "Every block received from the beginning"
    }

    fn look(&self, view: &View<'_>) -> RuleOutcome {
        if view.cluster.workers().iter().all(|w| w.last_event_ms.is_none()) {
            return RuleOutcome::Unknown("No KV event was received.".into());
        }
        let late: Vec<_> = view.present().filter(|&worker| is_incomplete(view, worker)).collect();
        let expired = is_history_expired(view);
        if late.is_empty() && !expired { RuleOutcome::Ok } else { RuleOutcome::Found(found(view, &late)) }
    }
}

fn is_incomplete(view: &View<'_>, worker: WorkerIx) -> bool {
    let Some(state) = view.cluster.worker(worker) else { return false };
    if state.last_event_ms.is_none() || state.lines.is_empty() || !is_heard_late(state) {
        return false;
    }
    let held = view.cluster.tree().holdings(worker);
    let is_full = capacity_blocks(view, worker).is_some_and(|of| held.resident * 100 >= of * KNOWN_PERCENT);
    !is_full || held.unattached > 0
}

fn found(view: &View<'_>, late: &[WorkerIx]) -> Finding {
    let tree = view.cluster.tree().totals();
    let mut found = Finding::new(
        Severity::Info,
        "This dashboard came after the workers: older blocks are unknown",
        "Blocks stored before we listened are not in this tree, so removals of unknown blocks and stores with unknown \
         parents are to be expected. The picture completes itself as blocks are replaced; the router is not affected.",
    )
    .workers(late.iter().copied())
    .link(link(view, "tree", late))
    .evidence("Blocks that wait for a parent from before, by KV events, of all known", part(tree.unattached, tree.resident), "blocks");
    for source in view.cluster.sources() {
        for missed in source.missed.iter().filter(|missed| missed.cause == MissedCause::HistoryExpired) {
            let label = format!("Messages that the stream had dropped before we read it, by {}", source.name);
            found = found.evidence(label, missed.count, "messages");
        }
    }
    each(found, view, late, |found, worker| {
        let who = name(view, worker);
        let Some(state) = view.cluster.worker(worker) else { return found };
        let known = view.cluster.tree().holdings(worker).resident;
        let found = match capacity_blocks(view, worker) {
            Some(capacity) => found.evidence(
                format!("Known blocks of {who}, by KV events, of its capacity by its card or the frontend"),
                part(known, capacity),
                "blocks",
            ),
            None => found.evidence(format!("Known blocks of {who}, by KV events; its capacity is unknown"), known, "blocks"),
        };
        match state.lines.last() {
            Some(line) => found.evidence(format!("Number of the first event of {who} that was received, by NATS"), line.first_event_id, ""),
            None => found,
        }
    })
    .fix("0.8, 0.9 over JetStream: the stream's history is read by default, up to its age limit of an hour", "", "")
    .fix("Event plane on plain NATS or ZMQ: there is no history; start this dashboard before the workers, or wait", "", "")
}
