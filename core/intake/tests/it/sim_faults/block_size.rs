//! Engine, publisher and card disagree on the size of a block (reference §9.1).

use radixscope_sim::Fault;

use crate::sim_faults::observer::{Seen, with};

/// What all four have in common: requests succeed, engines find prefixes, the router none.
fn assert_no_overlap(seen: &Seen) {
    let report = seen.simulation.report();
    assert!(report.finished_total > 200);
    assert_eq!(report.failed_total, 0);
    assert_eq!((seen.cluster.missed_total(), seen.cluster.rejected_total()), (0, 0));
    let totals = seen.cluster.decisions().totals();
    assert_eq!((totals.count, totals.overlap_blocks), (report.routed_total, 0));
    assert!(totals.isl_blocks > 0 && seen.engine_hits() > 0.6);
    assert!(seen.value("frontend", "dynamo_frontend_cached_tokens_sum") > 0.0);
    assert_eq!(seen.value("frontend", "dynamo_frontend_model_kv_cache_block_size"), 16.0);
    assert_eq!(seen.count_lines("cached blocks: 0, tree size: 0"), report.routed_total as usize);
    assert!((0..3).all(|w| seen.worker(w).block_size_tokens == Some(16)));
}

const UNKNOWN_PARENT: &str = "Failed to find parent block; skipping store operation worker_id=";
const UNKNOWN_BLOCK: &str = "Failed to find block to remove; skipping remove operation worker_id=";

#[test]
fn an_engine_with_longer_blocks_publishes_empty_stores_and_real_removals() {
    let seen = with(Fault::BlockSize, 60);
    assert_no_overlap(&seen);
    let stores = seen.sum(|w| w.store_events_total);
    assert!(stores > 500);
    assert_eq!((seen.sum(|w| w.stored_total), seen.sum(|w| w.empty_stores_total)), (0, stores));
    let removed = seen.sum(|w| w.removed_total);
    assert!(removed > 500);
    assert_eq!(seen.sum(|w| w.unknown_removed_total), removed);
    assert_eq!(seen.held(), [0, 0, 0]);
    // Stores at the root are applied, though there is nothing in them.
    let unknown = seen.count_lines_of("frontend", UNKNOWN_PARENT);
    assert_eq!(unknown as u64, seen.sum(|w| w.unknown_parents_total));
    assert!(unknown > stores as usize / 2 && unknown < stores as usize);
    assert_eq!(seen.count_lines_of("frontend", UNKNOWN_BLOCK) as u64, removed);
    let text = "WARN dynamo_llm::kv_router::publisher: Block not published. Block size must be 16 tokens to be \
                 published. Block size is: 32";
    for worker in ["worker-1", "worker-2", "worker-3"] {
        assert_eq!(seen.count_lines_of(worker, text), 3);
    }
    assert!((0..3).all(|w| seen.worker(w).capacity_blocks == Some(600)), "as its engine counts them");
}

#[test]
fn longer_blocks_on_tensorrt_llms_path_leave_only_removals() {
    let seen = with(Fault::BlockSizeOversize, 60);
    assert_no_overlap(&seen);
    assert_eq!(seen.sum(|w| w.store_events_total), 0);
    let removed = seen.sum(|w| w.removed_total);
    assert!(removed > 500);
    assert_eq!(seen.sum(|w| w.unknown_removed_total), removed);
    assert_eq!(seen.count_lines_of("frontend", UNKNOWN_BLOCK) as u64, removed);
    assert!(
        seen.count_lines_of("worker-2", "contains 32 tokens, which is greater than kv_block_size 16") > 100
    );
}

#[test]
fn shorter_blocks_on_tensorrt_llms_path_leave_only_empty_stores() {
    let seen = with(Fault::BlockSizePartial, 60);
    assert_no_overlap(&seen);
    let stores = seen.sum(|w| w.store_events_total);
    assert!(stores > 500);
    assert_eq!((seen.sum(|w| w.empty_stores_total), seen.sum(|w| w.removed_total)), (stores, 0));
    assert!(seen.simulation.report().evicted_blocks_total.iter().all(|&n| n > 0), "removals are swallowed");
    assert_eq!(seen.count_lines(UNKNOWN_BLOCK), 0);
}

#[test]
fn a_card_with_another_size_leaves_full_trees_without_overlap() {
    let seen = with(Fault::BlockSizeCard, 60);
    assert_no_overlap(&seen);
    assert_eq!(seen.complaints(), 0);
    assert_eq!(seen.sum(|w| w.unknown_parents_total + w.unknown_removed_total + w.empty_stores_total), 0);
    assert!(seen.held().iter().all(|held| (560..=600).contains(held)), "{:?}", seen.held());
}

#[test]
fn every_cost_is_the_sum_of_its_parts() {
    use radixscope_state::cluster::DecisionEntry;
    let faults = [Fault::BlockSize, Fault::BlockSizeOversize, Fault::BlockSizePartial, Fault::BlockSizeCard];
    for fault in faults {
        let seen = with(fault, 60);
        let decided: Vec<&DecisionEntry> = seen.cluster.decisions().newest_first().collect();
        let parts =
            decided.iter().flat_map(|decided| decided.cost_parts().into_iter().map(move |p| (decided, p)));
        for (decided, part) in parts {
            assert_eq!(part.other_cost, 0.0, "{fault:?}: {} of {:?}", part.sum(), decided.decision);
        }
    }
}
