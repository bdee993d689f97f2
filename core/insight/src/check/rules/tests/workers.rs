//! Workers that leave, fall silent, or are still used after they left.

use super::{Stage, evidence};
use radixscope_model::id::WorkerIx;
use radixscope_model::record::{DepartureCause, Record, Severity};

/// A worker that falls silent while requests go on being sent to it.
pub(super) fn silent() -> Stage {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    stage.store(worker, None, 1..20);
    stage.used(worker, 20);
    for _ in 0..8 {
        stage.pass(1);
        stage.decide(worker, 20, 10);
    }
    stage
}

/// A worker that left and still gets requests.
pub(super) fn ghost() -> Stage {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    stage.store(worker, None, 1..20);
    stage.pass(1);
    stage.record(Record::Left { worker, why: DepartureCause::Health });
    for _ in 0..20 {
        stage.pass(1);
        stage.decide(worker, 20, 0);
    }
    stage.pass(6);
    stage
}

#[test]
fn a_silent_worker_that_still_gets_requests_is_named_within_10_s() {
    let stage = silent();
    assert_eq!(stage.grave(), ["worker_gone"]);
    let finding = stage.found("worker_gone");
    assert_eq!(finding.title, "Not responding: worker 7/0");
    assert_eq!(finding.workers, [WorkerIx(0)]);
}

#[test]
fn a_silent_worker_that_gets_no_requests_is_idle() {
    let mut stage = Stage::new();
    let (idle, busy) = (stage.worker(7), stage.worker(8));
    stage.store(idle, None, 1..20);
    for n in 0..60 {
        stage.store(busy, None, n * 100..n * 100 + 5);
        stage.decide(busy, 20, 10);
        stage.pass(1);
    }
    assert!(stage.codes().is_empty(), "{:?}", stage.codes());
}

#[test]
fn requests_that_need_nothing_new_may_leave_a_worker_silent() {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    stage.store(worker, None, 1..20);
    for _ in 0..20 {
        stage.pass(1);
        stage.decide(worker, 20, 20);
    }
    assert!(stage.codes().is_empty(), "it tells no load, and stores nothing: {:?}", stage.codes());
}

/// A worker that leaves while it is received.
pub(super) fn stopped() -> Stage {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    stage.store(worker, None, 1..20);
    stage.pass(1);
    stage.record(Record::Left { worker, why: DepartureCause::Log });
    stage.pass(5);
    stage
}

#[test]
fn a_departure_is_listed_for_five_minutes() {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    stage.store(worker, None, 1..20);
    stage.pass(6);
    stage.record(Record::Left { worker, why: DepartureCause::Log });
    stage.pass(5);
    let finding = stage.found("worker_gone");
    assert_eq!(finding.title, "Left: worker 7/0");
    assert_eq!(evidence(finding, "Departure of worker 7/0, by a frontend's log"), "4", "as first reported");
    stage.pass(360);
    assert!(stage.finding("worker_gone").is_none());
}

#[test]
fn a_worker_that_was_received_until_it_left_was_stopped() {
    let stage = stopped();
    assert_eq!(stage.codes(), ["worker_stopped"]);
    let finding = stage.found("worker_stopped");
    assert_eq!((finding.severity, &*finding.title), (Severity::Info, "Stopped: worker 7/0"));
}

#[test]
fn an_idle_worker_that_leaves_was_stopped_where_requests_are_known() {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    stage.decide(worker, 20, 0);
    stage.store(worker, None, 1..20);
    stage.pass(60);
    stage.record(Record::Left { worker, why: DepartureCause::Metrics });
    stage.pass(5);
    assert_eq!(stage.codes(), ["worker_stopped"]);
}

#[test]
fn a_worker_that_a_request_was_sent_to_before_it_left_and_never_showed_was_killed() {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    stage.store(worker, None, 1..20);
    stage.pass(1);
    stage.decide(worker, 20, 0);
    stage.pass(1);
    stage.record(Record::Left { worker, why: DepartureCause::Log });
    stage.pass(5);
    assert_eq!(stage.codes(), ["worker_gone"]);
}

#[test]
fn a_departure_counts_as_it_was_first_found_out() {
    let mut stage = stopped();
    let first = stage.cluster.workers()[0].last_departure;
    stage.record(Record::Left { worker: WorkerIx(0), why: DepartureCause::Health });
    assert_eq!(stage.cluster.workers()[0].last_departure, first);
}

#[test]
fn requests_to_a_worker_that_left_long_ago_are_reported() {
    let stage = ghost();
    assert_eq!(stage.grave(), ["ghost_worker"]);
    assert_eq!(stage.found("ghost_worker").workers, [WorkerIx(0)]);
}

#[test]
fn a_worker_that_finishes_what_it_has_is_no_ghost() {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    stage.store(worker, None, 1..20);
    stage.record(Record::Left { worker, why: DepartureCause::Log });
    for n in 0..40 {
        stage.store(worker, None, n * 100..n * 100 + 5);
        stage.pass(1);
    }
    assert_eq!(stage.codes(), ["worker_stopped"]);
}

#[test]
fn a_worker_that_was_removed_and_works_on_as_if_nothing_had_happened_is_a_ghost() {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    stage.store(worker, None, 1..20);
    stage.pass(1);
    stage.record(Record::Left { worker, why: DepartureCause::Log });
    stage.pass(3);
    stage.record(Record::Rejoined { worker });
    for n in 0..20 {
        stage.store(worker, None, n * 100..n * 100 + 20);
        stage.decide(worker, 20, 0);
        stage.pass(1);
    }
    assert!(stage.grave().contains(&"ghost_worker"), "{:?}", stage.codes());
}

#[test]
fn a_worker_that_falls_silent_when_it_has_finished_what_it_had_has_left() {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    stage.store(worker, None, 1..20);
    stage.pass(1);
    stage.record(Record::Left { worker, why: DepartureCause::Log });
    stage.pass(2);
    stage.record(Record::Rejoined { worker });
    for n in 1..10 {
        stage.store(worker, None, n * 100..n * 100 + 20);
        stage.pass(1);
    }
    assert!(stage.finding("worker_stopped").is_none(), "it speaks: {:?}", stage.codes());
    stage.pass(14);
    assert!(stage.finding("worker_stopped").is_some() && stage.grave().is_empty(), "{:?}", stage.codes());
}

#[test]
fn a_worker_that_starts_anew_under_its_old_id_is_no_ghost() {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    stage.store(worker, None, 1..20);
    stage.pass(1);
    stage.record(Record::Left { worker, why: DepartureCause::Log });
    stage.pass(30);
    stage.record(Record::Rejoined { worker });
    for n in 0..90 {
        stage.store(worker, None, n * 100..n * 100 + 20);
        stage.decide(worker, 20, 0);
        stage.pass(1);
    }
    assert!(stage.finding("ghost_worker").is_none(), "{:?}", stage.codes());
}

/// Workers of two models in one component.
pub(super) fn two_models() -> Stage {
    let mut stage = Stage::new();
    for (id, name) in [(7, "small"), (8, "small"), (9, "large")] {
        let worker = stage.worker(id);
        stage.record(Record::Model { worker, name: name.into() });
    }
    stage.pass(10);
    stage
}

#[test]
fn models_that_share_a_component_are_critical_and_one_model_is_well() {
    let stage = two_models();
    let finding = stage.found("models_share_a_pool");
    assert_eq!((finding.severity, finding.workers.len()), (Severity::Critical, 3));
    assert_eq!(evidence(finding, "serve small"), "2");
    let mut stage = two_models();
    stage.record(Record::Left { worker: WorkerIx(2), why: DepartureCause::Log });
    stage.pass(40);
    assert!(stage.finding("models_share_a_pool").is_none(), "a rollout that is over");
}
