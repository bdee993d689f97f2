//! Answers and the events that arrive around them.

use super::*;
use KnowledgeWhy::{Cleared, Dump, FromFirstEvent, JoinedLate};
use TreeKnowledge::{Complete, Partial};

#[test]
fn a_worker_that_has_run_is_queried_after_its_first_event() {
    let mut attached = Attached::new();
    assert_eq!(attached.queries, [], "nothing shows yet that its events will be received");
    attached.receive(&[stored(90, Some(2), &[3])]);
    attached.knows(Partial, JoinedLate);
    assert_eq!(attached.starts(), [None]);
    assert_eq!(attached.knowledge().asking, QueryState::Dump);
    attached.respond(dump(Some(90), &[stored(0, None, &[1, 2, 3]), stored(1, Some(1), &[4])]));
    attached.knows(Complete, Dump);
    assert_eq!(attached.held(), [(1, None), (2, Some(1)), (3, Some(2)), (4, Some(1))]);
    assert_eq!(attached.knowledge().asking, QueryState::Joining);
    attached.pass(3_000).pass(10_000);
    assert_eq!(attached.knowledge().asking, QueryState::No);
}

#[test]
fn a_cached_dump_removes_what_its_own_end_says() {
    let mut attached = Attached::new();
    attached.receive(&[stored(90, None, &[9])]);
    let cached =
        [stored(0, None, &[1, 2, 3]), stored(88, Some(3), &[5]), removed(89, &[2]), stored(90, None, &[9])];
    attached.respond(dump(Some(90), &cached));
    assert_eq!(attached.held(), [(1, None), (3, Some(2)), (5, Some(3)), (9, None)]);
    assert_eq!(attached.cluster.totals().unattached, 0);
    assert_eq!(attached.unknown(), (0, 0));
}

#[test]
fn what_came_after_the_dump_is_applied_over_it() {
    let mut attached = Attached::new();
    attached.receive(&[stored(90, None, &[9])]);
    attached.receive(&[stored(91, Some(1), &[2]), removed(92, &[9]), stored(93, None, &[7])]);
    attached.respond(dump(Some(90), &[stored(0, None, &[1]), stored(1, None, &[9])]));
    assert_eq!(attached.held(), [(1, None), (2, Some(1)), (7, None)]);
    attached.receive(&[stored(94, Some(2), &[3])]);
    assert_eq!(attached.held(), [(1, None), (2, Some(1)), (3, Some(2)), (7, None)]);
    attached.knows(Complete, Dump);
}

#[test]
fn events_that_the_dump_held_are_not_applied_again() {
    let mut attached = Attached::new();
    attached.receive(&[stored(90, None, &[9])]);
    // The dump is ahead of its own number, which is ahead of what was received.
    attached.respond(dump(Some(95), &[stored(0, None, &[1, 2])]));
    attached.receive(&[stored(91, None, &[50]), removed(92, &[50]), stored(95, None, &[51])]);
    assert_eq!(attached.held(), [(1, None), (2, Some(1))]);
    attached.receive(&[removed(96, &[60]), stored(97, Some(61), &[62]), removed(98, &[62])]);
    assert_eq!(attached.unknown(), (0, 0), "it may be ahead of its number too");
    let state = &attached.cluster.workers()[0];
    assert_eq!((state.store_events_total, state.remove_events_total), (4, 3), "all were received");
    attached.knows(Complete, Dump);
    assert_eq!(attached.starts(), [None]);
}

#[test]
fn after_the_overlap_what_is_unknown_counts_again() {
    let mut attached = Attached::new();
    attached.receive(&[stored(90, None, &[9])]).respond(dump(Some(90), &[stored(0, None, &[9])]));
    attached.pass(2_100).pass(10_000).receive(&[removed(91, &[77])]);
    assert_eq!(attached.unknown(), (1, 0));
}

#[test]
fn a_worker_that_restarts_while_it_is_queried_is_another() {
    let mut attached = Attached::new();
    attached.receive(&[stored(90, None, &[9])]);
    let query = attached.queries[0].id;
    attached.publisher = 0xdef;
    attached.sequence = 0;
    attached.receive(&[stored(1, None, &[5])]);
    assert_eq!(attached.cancelled, [query]);
    attached.respond_to(query, Ok(dump(Some(90), &[stored(0, None, &[1, 2])])));
    assert_eq!(attached.held(), [(5, None)], "what the one before held is gone, and so is its response");
    attached.knows(Complete, FromFirstEvent);
    // A late word of the one before.
    attached.publisher = PUBLISHER;
    attached.receive(&[stored(91, None, &[10])]);
    assert_eq!(attached.held(), [(5, None)]);
}

#[test]
fn a_response_of_another_process_than_the_one_that_speaks_does_not_count() {
    let mut attached = Attached::new();
    attached.subscribe();
    assert_eq!(attached.queries.len(), 0, "the worker is unknown");
    attached.receive(&[stored(90, None, &[9])]);
    let mut foreign = events_of(WORKER, &[stored(0, None, &[1])]);
    foreign.events[0].worker = Worker::new(43, 0);
    attached.respond(TreeResponse::TreeDump { events: foreign, last_event_id: Some(90) });
    assert_eq!(attached.held(), [(9, None)]);
    attached.knows(Partial, JoinedLate);
    assert!(matches!(attached.knowledge().asking, QueryState::Failed { next_ms: Some(_) }));
}

#[test]
fn a_response_older_than_what_was_received_before_it_was_requested_is_requested_again() {
    let mut attached = Attached::new();
    attached.receive(&[stored(90, None, &[9])]);
    attached.respond(dump(Some(89), &[stored(0, None, &[1])]));
    assert_eq!(attached.held(), [(9, None)]);
    attached.knows(Partial, JoinedLate);
    attached.pass(1_000).respond(dump(Some(90), &[stored(0, None, &[1]), stored(1, None, &[9])]));
    assert_eq!(attached.held(), [(1, None), (9, None)]);
    attached.knows(Complete, Dump);
}

#[test]
fn a_dump_with_a_cycle_does_not_hang() {
    let mut attached = Attached::new();
    attached.receive(&[stored(90, None, &[9])]);
    let cycle = [
        stored(0, Some(3), &[1]),
        stored(1, Some(1), &[2]),
        stored(2, Some(2), &[3]),
        stored(3, Some(4), &[4]),
    ];
    attached.respond(dump(Some(90), &cycle)).pass(1_000);
    let names: Vec<u64> = attached.held().iter().map(|(name, _)| *name).collect();
    assert_eq!(names, [1, 2, 3, 4]);
    attached.respond(dump(Some(90), &[]));
}

#[test]
fn more_events_than_fit_the_queue_have_it_queried_again() {
    let mut attached = Attached::new();
    attached.receive(&[stored(90, None, &[9])]);
    let query = attached.queries[0].id;
    let mut id = 91;
    while attached.cancelled.is_empty() {
        let batch: Vec<Value> = (id..id + 4_000).map(|id| removed(id, &[id])).collect();
        attached.receive_batch(&batch);
        id += 4_000;
        assert!(id < 200_000);
    }
    assert_eq!(attached.cancelled, [query]);
    assert!(id > crate::attach::queue::MAX_EVENTS as u64);
    attached.pass(1_000);
    assert_eq!(attached.queries.len(), 2);
    attached.respond(dump(Some(id - 1), &[stored(0, None, &[1])]));
    assert_eq!(attached.held(), [(1, None)]);
    attached.knows(Complete, Dump);
}

#[test]
fn events_of_0_9_that_share_an_id_are_all_applied_after_the_dump() {
    let mut attached = Attached::of_0_9();
    attached.receive(&[stored(50, None, &[5])]);
    attached.knows(Partial, JoinedLate);
    assert_eq!(attached.queries, []);
    assert_eq!(attached.knowledge().asking, QueryState::OnRequest);
    attached.request();
    assert_eq!(attached.queries, [], "its index may be behind what was received");
    attached.pass(500);
    assert_eq!(attached.starts(), [None]);
    attached.receive(&[stored(51, None, &[6]), removed(51, &[5])]);
    attached.respond(dump(None, &[stored(0, None, &[1]), stored(1, None, &[5])]));
    assert_eq!(attached.held(), [(1, None), (6, None)]);
    attached.receive(&[stored(51, None, &[7]), stored(52, Some(1), &[2])]);
    assert_eq!(attached.held(), [(1, None), (2, Some(1)), (6, None), (7, None)]);
    attached.knows(Complete, Dump);
}

#[test]
fn a_worker_that_dropped_everything_is_complete() {
    let mut attached = Attached::new();
    attached.receive(&[stored(90, Some(1), &[9])]);
    attached.receive(&[json!({"event_id": 91, "dp_rank": 0, "data": "cleared"}), stored(92, None, &[3])]);
    attached.knows(Complete, Cleared);
    attached.respond(dump(Some(89), &[stored(0, None, &[1])]));
    assert_eq!(attached.held(), [(3, None)]);
}
