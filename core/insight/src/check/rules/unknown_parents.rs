//! Stored blocks whose parent is not known: whole branches that the router leaves out.

use super::block_size;
use super::prelude::*;
use crate::check::view::is_joined_late;
use radixscope_model::record::{Counter, LogSignal};

/// Stored events with an unknown parent that are more than a coincidence, of all workers and of one.
const MIN_EVENTS: u64 = 10;
const MIN_OF_WORKER: u64 = 3;
/// One in so many stored events; where nothing is wrong there is none at all.
const ONE_IN: u64 = 200;
/// Or one in so many held blocks below them: of a branch only its first event has an unknown parent, while every block that
/// a response fills makes an event of its own.
const HELD_ONE_IN: u64 = 100;
/// How far back these events, which are few, are counted.
const REACH_MS: u64 = 120_000;
/// Losses explain unknown parents for this long.
const AFTER_LOSS_MS: u64 = 300_000;

pub(in crate::check) const RULE: Rule =
    Rule::new("unknown_parents", "Stored blocks that continue a known block", evaluate);

fn evaluate(view: &View<'_>) -> RuleOutcome {
    if view.cluster.workers().iter().all(|w| w.last_event_ms.is_none()) {
        return RuleOutcome::no_data("No KV event was received.");
    }
    let at_router = at_router(view);
    let here = missing(view);
    // A store without a block leaves its children without a parent at the router too: the fault is the empty store.
    // Counted since we listen: the router may have counted what we read as history.
    let empty: u64 = view.cluster.workers().iter().map(|state| state.empty_stores_total).sum();
    let by_empty_stores = empty > 0 && empty * 2 >= at_router.0;
    let is_few = at_router.0 < MIN_EVENTS || by_empty_stores;
    let hang_in_the_air = !without_parent(view, |_| true).is_empty();
    if at_router.0 < MIN_EVENTS && !hang_in_the_air && below_empty_stores(view) < MIN_EVENTS {
        return RuleOutcome::Ok;
    }
    if block_size::is_there(view) {
        return RuleOutcome::Explained("block_size_mismatch");
    }
    if !is_few || !here.is_empty() {
        return found(view, &here, at_router).into();
    }
    if hang_in_the_air {
        return RuleOutcome::Explained(view.lost_events(AFTER_LOSS_MS).unwrap_or("tree_partial"));
    }
    RuleOutcome::no_data("Stored events came without a block, so what continues them has no known parent.")
}

/// Stored events lately whose parent is unknown on workers whose stores come without a block.
fn below_empty_stores(view: &View<'_>) -> u64 {
    let rises = view.present().map(|worker| view.rise(worker, REACH_MS));
    rises.filter(|rise| rise.empty_stores > 0).map(|rise| rise.unknown_parents).sum()
}

/// Workers whose stores hang in the air as far as we received, without losses or a late beginning to explain it.
pub(super) fn missing(view: &View<'_>) -> Vec<WorkerIx> {
    if view.lost_events(AFTER_LOSS_MS).is_some() {
        return Vec::new();
    }
    without_parent(view, |worker| !view.worker(worker).is_none_or(is_joined_late))
}

/// Of some workers those whose stores hang in the air, unless their parents came without a block.
fn without_parent(view: &View<'_>, of: impl Fn(WorkerIx) -> bool) -> Vec<WorkerIx> {
    let (mut workers, mut unknown, mut stored) = (Vec::new(), 0, 0);
    for worker in view.present().filter(|&worker| of(worker) && !view.has_got_back(worker, REACH_MS)) {
        let totals = view.rise(worker, REACH_MS);
        // A store without a block makes its children's parents unknown: the fault is the empty store.
        let by_empty_stores = totals.empty_stores * 2 >= totals.unknown_parents;
        if totals.unknown_parents >= MIN_OF_WORKER && !by_empty_stores {
            workers.push(worker);
            unknown += totals.unknown_parents;
            stored += totals.store_events;
        }
    }
    let held = view.cluster.totals();
    let is_much = unknown * ONE_IN >= stored || held.unattached * HELD_ONE_IN >= held.resident;
    if unknown >= MIN_EVENTS && is_much { workers } else { Vec::new() }
}

/// Stored events that routers could not place lately, by their own counters, and all that they got.
fn at_router(view: &View<'_>) -> (u64, u64) {
    let rise = |counter| view.rise_of(view.processes(), counter, WINDOW_MS).unwrap_or(0.0) as u64;
    let missed = rise(Counter::StoredParentUnknown);
    (missed, missed + rise(Counter::StoredOk) + rise(Counter::StoredOther))
}

fn found(view: &View<'_>, workers: &[WorkerIx], (missed, stored): (u64, u64)) -> Finding {
    let title = if workers.is_empty() {
        "Stored blocks have parents unknown to the router".to_owned()
    } else {
        format!("Stored blocks continue unknown blocks: {}", view.names(workers))
    };
    let totals = view.cluster.totals();
    let placed = format!("Stored events that routers could not place, by their metrics, {WINDOW}");
    Finding::new(
        Severity::Warning,
        title,
        "A router rejects a stored event whose parent it does not know, and all blocks below it, so hits of those \
         prompts are not counted. The cause is a lost event, or a router that started when workers were warm.",
    )
    .about(PanelRef::Tree, workers)
    .evidence("Unattached blocks in the tree, by KV events, of all cached", part(totals.unattached, totals.resident), "blocks")
    .evidence_if(placed, (stored > 0).then(|| part(missed, stored)), "events")
    .log_lines(
        view,
        "Lines \"Failed to find parent block\", by logs, since we listen",
        LogSignal::ParentUnknown,
    )
    .log_lines(
        view,
        "Lines \"does not have local indexer enabled\", by logs, since we listen",
        LogSignal::NoLocalIndexer,
    )
    .each(view, workers, |found, worker, who| {
        let rise = view.rise(worker, REACH_MS);
        let label = format!("Stored events with an unknown parent, {who}, by KV events, last 120 s");
        found.evidence(label, part(rise.unknown_parents, rise.store_events), "events")
    })
    .fixes("unknown_parents")
}
