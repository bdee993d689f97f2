//! This dashboard came after workers had stored blocks that nobody repeats: part of the picture is missing, by nature.

use super::prelude::*;
use crate::check::view::is_joined_late;
use radixscope_model::record::MissedCause;

/// Above this share of its cache, in per cent, a worker counts as known again.
const KNOWN_PERCENT: u64 = 95;

pub(in crate::check) const RULE: Rule =
    Rule::new("joined_late", "Every block received from the beginning", look);

fn look(view: &View<'_>) -> RuleOutcome {
    if view.cluster.workers().iter().all(|w| w.last_event_ms.is_none()) {
        return RuleOutcome::no_data("No KV event was received.");
    }
    let late: Vec<_> = view.present().filter(|&worker| is_incomplete(view, worker)).collect();
    if late.is_empty() && !view.is_history_expired() {
        return RuleOutcome::Ok;
    }
    found(view, &late).into()
}

fn is_incomplete(view: &View<'_>, worker: WorkerIx) -> bool {
    let Some(state) = view.worker(worker) else { return false };
    if state.last_event_ms.is_none() || state.lines.is_empty() || !is_joined_late(state) {
        return false;
    }
    let held = view.cluster.tree_of(worker).holdings(worker);
    let is_full = view.capacity_blocks(worker).is_some_and(|of| held.resident * 100 >= of * KNOWN_PERCENT);
    !is_full || held.unattached > 0
}

fn found(view: &View<'_>, late: &[WorkerIx]) -> Finding {
    let tree = view.cluster.totals();
    let mut found = Finding::new(
        Severity::Info,
        "This dashboard came after the workers: older blocks are unknown",
        "Blocks stored before we listened are not in this tree, so removals of unknown blocks and stores with unknown \
         parents are to be expected. The picture completes itself as blocks are replaced; the router is not affected.",
    )
    .about(PanelRef::Tree, late)
    .evidence("Blocks that wait for a parent from before, by KV events, of all known", part(tree.unattached, tree.resident), "blocks");
    for source in view.cluster.sources() {
        for missed in source.missed.iter().filter(|missed| missed.cause == MissedCause::HistoryExpired) {
            let label = format!("Messages that the stream had dropped before we read it, by {}", source.name);
            found = found.evidence(label, missed.count, "messages");
        }
    }
    found
        .each(view, late, |found, worker, who| {
            let Some(state) = view.worker(worker) else { return found };
            let known = view.cluster.tree_of(worker).holdings(worker).resident;
            let (of, value) = match view.capacity_blocks(worker) {
                Some(capacity) => (", of its capacity by its card or the frontend", part(known, capacity)),
                None => ("; its capacity is unknown", known.to_string()),
            };
            let first = format!("Number of the first event of {who} that was received, by NATS");
            found.evidence(format!("Known blocks of {who}, by KV events{of}"), value, "blocks").evidence_if(
                first,
                state.lines.last().map(|line| line.first_event_id),
                "",
            )
        })
        .fixes("joined_late")
}
