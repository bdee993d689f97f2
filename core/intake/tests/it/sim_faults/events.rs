//! KV events that do not come, come half, or come wrong (reference §2.6, §2.7, §9.2).

use radixscope_sim::{Config, EventTransport, Fault};

use crate::sim_faults::observer::{later, run, small, with};

#[test]
fn workers_that_publish_nothing_still_report_their_load() {
    let seen = with(Fault::NoEvents, 60);
    assert_eq!(seen.sum(|w| w.store_events_total + w.remove_events_total), 0);
    assert!((0..3).all(|w| seen.worker(w).engine_used_blocks.is_some()));
    assert!(seen.overlap() == 0.0 && seen.engine_hits() > 0.6);
    assert_eq!(seen.complaints(), 0);
}

#[test]
fn events_can_stop_later() {
    let seen = later(Fault::NoEvents, 30, 60);
    let last = (0..3).filter_map(|w| seen.worker(w).last_event_ms).max();
    let since_ms = last.map(|at| at.since(crate::sim_faults::observer::START));
    assert!(since_ms.is_some_and(|ms| (25_000..=30_000).contains(&ms)), "{since_ms:?}");
}

#[test]
fn one_worker_alone_can_be_silent() {
    let seen = with(Fault::NoEventsOne, 60);
    assert!(seen.worker(0).store_events_total > 100 && seen.worker(1).store_events_total > 100);
    assert_eq!(seen.worker(2).store_events_total + seen.worker(2).remove_events_total, 0);
    assert!(seen.worker(2).engine_used_blocks.is_some());
    assert_eq!(seen.complaints(), 0);
}

#[test]
fn what_is_lost_on_the_way_is_missed_and_the_router_asks_for_it() {
    let seen = with(Fault::Gap, 60);
    assert_eq!(seen.simulation.config().events, EventTransport::LocalIndexer);
    let missed = seen.cluster.missed_total();
    let asked = seen.count_lines_of(
        "frontend",
        "WARN dynamo_llm::kv_router::subscriber: Event ID gap detected for worker ",
    );
    assert!(missed > 20);
    // The last ones may be noticed by one of the two only.
    assert!(missed.abs_diff(asked as u64) <= 3, "{missed} missed, {asked} asked for");
    assert_eq!(seen.complaints(), asked);
    assert!((0..3).all(|w| seen.worker(w).missed_total > 0), "and it is known whose they were");
    assert!(seen.sum(|w| w.unknown_parents_total + w.unknown_removed_total) > 0);
    let healthy = run(Config { events: EventTransport::LocalIndexer, ..small(None) }, 60);
    assert_eq!(healthy.overlap(), seen.overlap(), "the router misses nothing");
}

#[test]
fn engines_with_seeds_of_their_own_differ_in_hashes_and_still_match() {
    let (seen, healthy) = (with(Fault::HashSeed, 60), run(small(None), 60));
    assert_eq!(seen.overlap(), healthy.overlap());
    assert_eq!(seen.sum(|w| w.unknown_parents_total + w.unknown_removed_total), 0);
    let text = "WARN dynamo_llm::kv_router::indexer: block_hash mismatch: sequence hashes should be uniform across \
                 workers expected=ExternalSequenceBlockHash(";
    let differing = seen.count_lines_of("frontend", text);
    assert!(differing > 300);
    assert_eq!(seen.complaints(), differing);
    assert!(
        seen.lines
            .iter()
            .filter(|(_, l)| l.contains(text))
            .all(|(_, l)| l.contains(") actual=Some(ExternalSequenceBlockHash("))
    );
}

#[test]
fn a_worker_on_the_other_plane_is_received_by_all_but_the_router() {
    let seen = with(Fault::MixedPlanes, 60);
    let stream = seen.subjects["namespace-dynamo-component-backend-kv-events.kv-events"];
    let core = seen.subjects["namespace.dynamo.component.backend.kv-events"];
    assert!(stream > core && core > 100);
    assert!((0..3).all(|w| seen.worker(w).store_events_total > 100));
    let id = seen.simulation.worker_id(2);
    let formulas = format!("Formula for worker_id={id} ");
    let cold = format!("Formula for worker_id={id} dp_rank=0 with 0 cached blocks");
    assert_eq!(seen.count_lines(&formulas), seen.count_lines(&cold));
    assert!(seen.overlap() > 0.2 && seen.overlap() < seen.engine_hits() - 0.1);
    assert_eq!((seen.complaints(), seen.cluster.missed_total()), (0, 0));
}

#[test]
fn stores_that_an_engine_keeps_to_itself_leave_their_children_without_a_parent() {
    let seen = with(Fault::UnknownParents, 120);
    assert!(seen.sum(|w| w.unknown_parents_total) > 20);
    assert_eq!((seen.sum(|w| w.empty_stores_total), seen.cluster.missed_total()), (0, 0));
    let refused = seen.count_lines_of("frontend", "Failed to find parent block; skipping store operation");
    assert!(refused as u64 >= seen.sum(|w| w.unknown_parents_total), "the router drops what we keep");
    assert!(seen.overlap() > 0.2);
}

#[test]
fn removals_of_blocks_never_stored_are_reported_by_the_router() {
    let (seen, healthy) = (with(Fault::UnknownRemovals, 60), run(small(None), 60));
    let unknown = seen.sum(|w| w.unknown_removed_total);
    assert!(unknown > 50);
    assert_eq!(seen.count_lines_of("frontend", "Failed to find block to remove") as u64, unknown);
    assert_eq!(seen.complaints() as u64, unknown);
    assert_eq!(seen.sum(|w| w.unknown_parents_total + w.empty_stores_total), 0);
    assert_eq!((seen.overlap(), seen.held()), (healthy.overlap(), healthy.held()));
}

#[test]
fn a_router_that_predicts_is_absent_from_nats() {
    let seen = with(Fault::Approximate, 60);
    for subject in ["kv-hit-rate", "active_sequences_events"] {
        assert!(seen.subjects.keys().all(|s| !s.ends_with(subject)), "{subject}");
    }
    assert!((0..3).all(|w| seen.worker(w).router_loads.is_empty()));
    assert!((0..3).all(|w| seen.worker(w).store_events_total > 100));
    let selected: Vec<&String> =
        seen.lines.iter().map(|(_, line)| line).filter(|line| line.contains("Selected worker")).collect();
    assert_eq!(selected.len() as u64, seen.simulation.report().routed_total);
    let warm = selected.iter().filter(|line| !line.contains("cached blocks: 0,")).count();
    assert!(warm > selected.len() / 2);
    assert_eq!(seen.complaints(), 0);
}
