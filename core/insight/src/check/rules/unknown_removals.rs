//! Workers remove blocks that they never stored as far as anybody heard: stores are lost or left out.

use super::event_path::{
    WINDOW, WINDOW_MS, capacity_blocks, each, is_heard_late, is_history_expired, link, lost_events, name,
    names, part,
};
use super::{block_size, unknown_parents};
use crate::check::{Finding, Rule, RuleOutcome, View};
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::record::{Counter, Severity};

/// Removed blocks, and one in so many of all removed, that are more than a coincidence: worth knowing, and a fault.
const MIN_BLOCKS: u64 = 10;
const KNOWN_ONE_IN: u64 = 200;
const FAULT_BLOCKS: u64 = 50;
const FAULT_ONE_IN: u64 = 10;
/// Losses explain unknown removals for this long.
const AFTER_LOSS_MS: u64 = 300_000;

/// See the module.
pub(in crate::check) struct UnknownRemovals;

impl Rule for UnknownRemovals {
    fn code(&self) -> &'static str {
        "unknown_removals"
    }

    fn subject(&self) -> &'static str {
        "Removed blocks that had been stored"
    }

    fn hold_ms(&self) -> u64 {
        10_000
    }

    fn look(&self, view: &View<'_>) -> RuleOutcome {
        if view.cluster.workers().iter().all(|w| w.remove_events_total == 0) {
            return RuleOutcome::Unknown("No worker removed a block yet.".into());
        }
        let mut workers: Vec<_> = view.present().filter(|&worker| misses(view, worker)).collect();
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
        if let Some(code) = lost_events(view, AFTER_LOSS_MS) {
            return RuleOutcome::Explained(code);
        }
        workers.retain(|&worker| !is_from_before(view, worker));
        if workers.is_empty() {
            RuleOutcome::Explained("joined_late")
        } else {
            RuleOutcome::Found(found(view, &workers))
        }
    }
}

/// Whether it shows on a worker, whatever the reason.
fn misses(view: &View<'_>, worker: WorkerIx) -> bool {
    let rise = view.history.rise(view.cluster, worker, view.now, WINDOW_MS);
    rise.unknown_removed >= MIN_BLOCKS && rise.unknown_removed * KNOWN_ONE_IN >= rise.removed
}

/// What a worker held when we came it can remove once; more than its cache holds was not held then.
fn is_from_before(view: &View<'_>, worker: WorkerIx) -> bool {
    let Some(state) = view.cluster.worker(worker) else { return true };
    let came_late = is_heard_late(state) || is_history_expired(view);
    came_late && capacity_blocks(view, worker).is_none_or(|capacity| state.unknown_removed_total <= capacity)
}

const FAULT: &str = "Stored events of these blocks were left out by the publisher or lost, so the router never knew blocks \
                     that the engine held. Hits on them were not seen.";
const FACT: &str = "A small share of the removals names blocks that were not known. Engines that hold a block twice \
                    remove it twice, which is harmless; else a stored event was left out.";

fn is_fault(view: &View<'_>, worker: WorkerIx) -> bool {
    let rise = view.history.rise(view.cluster, worker, view.now, WINDOW_MS);
    rise.unknown_removed >= FAULT_BLOCKS && rise.unknown_removed * FAULT_ONE_IN >= rise.removed
}

fn found(view: &View<'_>, workers: &[WorkerIx]) -> Finding {
    let (severity, explanation) = if workers.iter().any(|&worker| is_fault(view, worker)) {
        (Severity::Warning, FAULT)
    } else {
        (Severity::Info, FACT)
    };
    let title = format!("Blocks are removed that were never stored: {}", names(view, workers));
    let mut found = Finding::new(severity, title, explanation)
        .workers(workers.iter().copied())
        .link(link(view, "tree", workers));
    found = each(found, view, workers, |found, worker| {
        let rise = view.history.rise(view.cluster, worker, view.now, WINDOW_MS);
        let label =
            format!("Removed blocks that were never stored, {}, by KV events, {WINDOW}", name(view, worker));
        found.evidence(label, part(rise.unknown_removed, rise.removed), "blocks")
    });
    let since = Millis(view.now.0.saturating_sub(WINDOW_MS));
    let processes = view.cluster.processes().iter();
    let at_router =
        processes.filter_map(|p| p.counted_since(Counter::RemovedUnknown, since)).reduce(|a, b| a + b);
    if let Some(count) = at_router {
        let label = format!("Removed events that routers did not know, by their metrics, {WINDOW}");
        found = found.evidence(label, count as u64, "events");
    }
    found
        .fix(
            "TensorRT-LLM: events are filtered by attention window and by block; look for dropped blocks in the worker's log \
             and start the publisher before the first request",
            "--publish-events-and-metrics",
            "",
        )
        .fix("vLLM, SGLang: one publisher for each engine rank; check that two ranks do not share an endpoint", "--kv-events-config", "")
}
