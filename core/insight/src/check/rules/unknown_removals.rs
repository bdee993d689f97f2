//! Workers remove blocks that they never stored as far as is known: stores are lost or left out.

use super::prelude::*;
use super::{block_size, unknown_parents};
use crate::check::view::is_joined_late;
use radixscope_model::record::Counter;

/// Removed blocks, and one in so many of all removed, that are more than a coincidence: worth knowing, and a fault.
const MIN_BLOCKS: u64 = 10;
const KNOWN_ONE_IN: u64 = 200;
const FAULT_BLOCKS: u64 = 50;
const FAULT_ONE_IN: u64 = 10;
/// Losses explain unknown removals for this long.
const AFTER_LOSS_MS: u64 = 300_000;

pub(in crate::check) const RULE: Rule = Rule {
    hold_ms: 10_000,
    ..Rule::new("unknown_removals", "Removed blocks that had been stored", evaluate)
};

fn evaluate(view: &View<'_>) -> RuleOutcome {
    if view.cluster.workers().iter().all(|w| w.remove_events_total == 0) {
        return RuleOutcome::no_data("No worker removed a block yet.");
    }
    let has_all = |worker| view.has_got_back(worker, AFTER_LOSS_MS);
    let mut workers: Vec<_> =
        view.present().filter(|&worker| misses(view, worker) && !has_all(worker)).collect();
    if workers.is_empty() {
        return RuleOutcome::Ok;
    }
    if block_size::is_there(view) {
        return RuleOutcome::Explained("block_size_mismatch");
    }
    // Stores that are missing make both: their children lack a parent, and their removals are unknown.
    if !unknown_parents::missing(view).is_empty() {
        return RuleOutcome::Explained("unknown_parents");
    }
    if let Some(code) = view.lost_events(AFTER_LOSS_MS) {
        return RuleOutcome::Explained(code);
    }
    workers.retain(|&worker| !is_from_before(view, worker));
    match workers.is_empty() {
        true => RuleOutcome::Explained("tree_partial"),
        false => found(view, &workers).into(),
    }
}

/// Whether it shows on a worker, whatever the reason.
fn misses(view: &View<'_>, worker: WorkerIx) -> bool {
    let rise = view.rise(worker, WINDOW_MS);
    rise.unknown_removed >= MIN_BLOCKS && rise.unknown_removed * KNOWN_ONE_IN >= rise.removed
}

/// What a worker held when we came it can remove once; more than its cache holds was not held then.
fn is_from_before(view: &View<'_>, worker: WorkerIx) -> bool {
    let Some(state) = view.worker(worker) else { return true };
    let came_late = is_joined_late(state) || view.is_history_expired();
    came_late && view.capacity_blocks(worker).is_none_or(|capacity| state.unknown_removed_total <= capacity)
}

const FAULT: &str = "Stored events of these blocks were dropped by the publisher or lost, so the router never knew blocks that \
                     the engine had. Hits on them were not counted.";
const FACT: &str = "A small share of the removals names unknown blocks. Engines that have a block twice remove it twice, \
                    which is harmless; else a stored event was dropped.";

fn is_fault(view: &View<'_>, worker: WorkerIx) -> bool {
    let rise = view.rise(worker, WINDOW_MS);
    rise.unknown_removed >= FAULT_BLOCKS && rise.unknown_removed * FAULT_ONE_IN >= rise.removed
}

fn found(view: &View<'_>, workers: &[WorkerIx]) -> Finding {
    let (severity, explanation) = if workers.iter().any(|&worker| is_fault(view, worker)) {
        (Severity::Warning, FAULT)
    } else {
        (Severity::Info, FACT)
    };
    let title = format!("Blocks are removed that were never stored: {}", view.names(workers));
    let at_router = view.rise_of(view.processes(), Counter::RemovedUnknown, WINDOW_MS);
    let label = format!("Removed events that routers did not know, by their metrics, {WINDOW}");
    Finding::new(severity, title, explanation)
        .about(PanelRef::Tree, workers)
        .each(view, workers, |found, worker, who| {
            let rise = view.rise(worker, WINDOW_MS);
            let label = format!("Removed blocks that were never stored, {who}, by KV events, {WINDOW}");
            found.evidence(label, part(rise.unknown_removed, rise.removed), "blocks")
        })
        .evidence_if(label, at_router.map(|count| count as u64), "events")
        .fixes("unknown_removals")
}
