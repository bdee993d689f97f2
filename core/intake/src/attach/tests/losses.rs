//! What was lost, got back, or found to differ.

use super::*;
use KnowledgeWhy::{ConnectionBroke, Dump, EventsLost, FromFirstEvent};
use TreeKnowledge::{Complete, Partial};

#[test]
fn lost_events_are_requested_by_number_and_got_back() {
    let mut attached = Attached::new();
    attached.receive(&[stored(1, None, &[1]), stored(2, Some(1), &[2])]);
    attached.sequence += 1;
    attached.receive(&[stored(5, Some(3), &[4])]);
    assert_eq!(attached.starts(), [Some(3)]);
    attached.knows(Partial, EventsLost);
    attached.receive(&[removed(6, &[4])]);
    let missed = [stored(3, Some(2), &[3]), removed(4, &[1]), stored(5, Some(3), &[4])];
    attached.respond(range(5, &missed)).pass(1_000).pass(1_000).pass(1_000);
    assert_eq!(attached.held(), [(2, Some(1)), (3, Some(2))]);
    assert_eq!(attached.cluster.totals().unattached, 0);
    attached.knows(Complete, FromFirstEvent);
    let source = &attached.cluster.sources()[0];
    assert!(source.missed_total() > 0);
    for missed in &source.missed {
        assert_eq!(missed.lost(), 0, "{missed:?}");
    }
    let state = &attached.cluster.workers()[0];
    assert_eq!(state.missed_total, state.recovered_total);
}

fn registered(attached: &mut Attached, is_there: bool) {
    let instance = json!({"type": "Endpoint", "component": "backend", "endpoint": "generate",
        "namespace": "dynamo", "instance_id": WORKER, "transport": {"tcp": "10.0.0.1:1/x"}});
    let key = format!("v1/instances/dynamo/backend/generate/{WORKER:x}").into();
    let value = is_there.then(|| instance.to_string().into());
    attached.handle(Payload::Discovery { key, value, lease: None });
}

/// A worker leaves before it is certain that messages which are missing do not come, so that they are counted later: how many
/// of them stay lost.
fn leaves(attached: &mut Attached) -> u64 {
    assert_eq!(attached.cluster.sources()[0].missed_total(), 0);
    registered(attached, false);
    attached.pass(0);
    disconnect(attached);
    attached.pass(1_000).pass(1_000).pass(1_000);
    assert!(attached.cluster.workers()[0].departure.is_some());
    let source = &attached.cluster.sources()[0];
    assert!(source.missed_total() > 0);
    source.missed.iter().map(|missed| missed.lost()).sum()
}

fn disconnect(attached: &mut Attached) {
    let publisher_id = Some(attached.publisher);
    attached.handle(Payload::Unsubscribed { publisher_id });
    attached.pass(0);
}

fn got_back() -> Attached {
    let mut attached = Attached::new();
    registered(&mut attached, true);
    attached.receive(&[stored(1, None, &[1])]);
    attached.sequence += 1;
    attached.receive(&[stored(3, Some(2), &[3])]);
    attached.respond(range(3, &[stored(2, Some(1), &[2]), stored(3, Some(2), &[3])]));
    attached.knows(Complete, FromFirstEvent);
    attached
}

#[test]
fn what_was_got_back_of_a_worker_that_left_is_no_loss() {
    assert_eq!(leaves(&mut got_back()), 0);
}

#[test]
fn what_was_got_back_is_no_loss_if_the_connection_broke_before_the_worker_left() {
    let mut attached = got_back();
    disconnect(&mut attached);
    attached.knows(Partial, ConnectionBroke);
    assert_eq!(leaves(&mut attached), 0);
}

#[test]
fn what_was_not_got_back_is_lost_though_the_worker_left_before_that_was_certain() {
    let mut attached = Attached::of_0_9();
    registered(&mut attached, true);
    attached.sequence = 0;
    attached.receive(&[stored(0, None, &[1])]);
    attached.sequence += 1;
    attached.receive(&[stored(2, None, &[2])]);
    attached.knows(Complete, FromFirstEvent);
    assert_eq!(leaves(&mut attached), 1);
}

#[test]
fn lost_events_that_no_worker_has_are_lost_and_then_everything_is_requested() {
    let mut attached = Attached::new();
    attached.receive(&[stored(1, None, &[1]), stored(4, None, &[4])]);
    attached.respond(TreeResponse::TreeDumpFailed { message: String::new() });
    attached.knows(Partial, EventsLost);
    attached.pass(1_000);
    assert_eq!(attached.starts(), [Some(2), Some(2)]);
    // Too long ago: it answers with all its blocks.
    attached.respond(dump(Some(4), &[stored(0, None, &[2]), stored(1, None, &[4])])).pass(1_000);
    assert_eq!(attached.held(), [(2, None), (4, None)]);
    attached.knows(Complete, Dump);
    assert_eq!(attached.cluster.sources()[0].missed.iter().map(|missed| missed.lost()).sum::<u64>(), 0);
}

#[test]
fn a_worker_that_does_not_know_its_events_is_queried_for_everything() {
    let mut attached = Attached::new();
    attached.receive(&[stored(1, None, &[1]), stored(4, None, &[4])]);
    attached.respond(TreeResponse::TooNew { newest_available: 1 });
    assert_eq!(attached.starts(), [Some(2), None]);
    attached.knows(Partial, EventsLost);
}

#[test]
fn events_lost_while_the_response_is_awaited_are_requested_after_it() {
    let mut attached = Attached::new();
    attached.receive(&[stored(90, None, &[9]), stored(93, None, &[12])]);
    attached.respond(dump(Some(90), &[stored(0, None, &[9])]));
    assert_eq!(attached.starts(), [None, Some(91)]);
    attached.respond(range(93, &[stored(91, None, &[10]), stored(92, None, &[11]), stored(93, None, &[12])]));
    assert_eq!(attached.held(), [(9, None), (10, None), (11, None), (12, None)]);
    attached.knows(Complete, Dump);
}

#[test]
fn after_a_break_the_worker_is_queried_for_its_events() {
    let mut attached = Attached::new();
    attached.receive(&[stored(1, None, &[1])]);
    attached.break_connection();
    attached.pass(0);
    attached.knows(Partial, ConnectionBroke);
    assert_eq!(attached.queries, [], "not before everything is received again");
    attached.subscribe();
    assert_eq!(attached.starts(), [Some(2)]);
    attached.respond(TreeResponse::TooNew { newest_available: 1 });
    attached.knows(Complete, FromFirstEvent);
    attached.break_connection();
    attached.receive(&[stored(2, None, &[2])]);
    attached.knows(Complete, FromFirstEvent);
    assert_eq!(attached.queries.len(), 1, "its number tells that nothing was missed");
}

#[test]
fn a_message_of_0_9_that_is_lost_makes_it_partial_until_somebody_asks() {
    let mut attached = Attached::of_0_9();
    attached.sequence = 0;
    attached.receive(&[stored(0, None, &[1])]);
    attached.knows(Complete, FromFirstEvent);
    attached.sequence += 1;
    attached.receive(&[stored(2, None, &[2])]).pass(1_000).pass(1_000);
    attached.knows(Partial, EventsLost);
    assert_eq!(attached.queries, []);
}

#[test]
fn a_comparison_that_agrees_changes_nothing() {
    let mut attached = Attached::new();
    attached.receive(&[stored(1, None, &[1, 2]), stored(2, Some(1), &[3]), removed(3, &[1])]);
    attached.intake.set_verify_every(Some(60_000));
    attached.pass(1_000).pass(80_000);
    assert_eq!(attached.starts(), [None]);
    let before = attached.held();
    let tree = attached.cluster.tree_of(WorkerIx(0)).digest();
    // Its index has lost what hangs below the block that is gone.
    attached.respond(dump(Some(3), &[]));
    assert_eq!(attached.held(), before, "no fault of the events");
    assert_eq!(attached.cluster.tree_of(WorkerIx(0)).digest(), tree);
    attached.pass(3_000).pass(9_000);
    assert_eq!(attached.queries.len(), 1);
    assert_eq!(attached.knowledge().drift, None);
    attached.knows(Complete, FromFirstEvent);
}

#[test]
fn a_difference_that_the_next_response_has_too_is_divergence() {
    let mut attached = Attached::new();
    attached.receive(&[stored(1, None, &[1, 2]), stored(2, None, &[5])]);
    attached.intake.set_verify_every(Some(60_000));
    attached.pass(1_000).pass(80_000);
    attached.respond(dump(Some(2), &[stored(0, None, &[1]), stored(1, None, &[7])]));
    assert_eq!(attached.held().len(), 3, "it may be of events that are on their way");
    assert_eq!(attached.knowledge().drift, None);
    attached.pass(6_000);
    assert_eq!(attached.queries.len(), 2);
    attached.respond(dump(Some(2), &[stored(0, None, &[1]), stored(1, None, &[5]), stored(2, None, &[7])]));
    let drift = attached.knowledge().drift.expect("twice");
    assert_eq!((drift.missing_blocks, drift.surplus_blocks), (1, 1), "7 and 2; not 5");
    assert_eq!(attached.held(), [(1, None), (5, None), (7, None)], "the worker is right");
    attached.pass(80_000);
    attached.respond(dump(Some(2), &[stored(0, None, &[1]), stored(1, None, &[5]), stored(2, None, &[7])]));
    assert_eq!(attached.knowledge().drift, None, "they agree again");
}

#[test]
fn an_idle_worker_whose_events_were_missed_is_queried_for_them() {
    let mut attached = Attached::new();
    attached.receive(&[stored(1, None, &[1])]);
    let tree = attached.cluster.tree_of(WorkerIx(0));
    assert!(tree.find(Slot(0), BlockHash(1)).is_some());
    attached.sequence += 7;
    attached.receive(&[stored(9, None, &[9])]);
    assert_eq!(attached.starts(), [Some(2)]);
}
