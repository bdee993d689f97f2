//! Which worker is queried when, and the records about it.

use super::*;
use KnowledgeWhy::{Dump, FromFirstEvent, JoinedLate, NoEvents};
use TreeKnowledge::{Complete, Partial};

#[test]
fn from_its_first_event_on_a_worker_is_complete_and_not_asked() {
    let mut attached = Attached::new();
    attached.receive(&[stored(1, None, &[1, 2]), removed(2, &[2])]).pass(1_000);
    attached.knows(Complete, FromFirstEvent);
    assert_eq!(attached.queries, []);
    assert_eq!(attached.knowledge().asking, QueryState::No);
}

#[test]
fn a_rank_that_nothing_named_is_taken_from_the_response() {
    let mut attached = Attached::with_endpoints(&[(WORKER, "worker_kv_query_source_77")]);
    attached.list_worker(&["worker_kv_query_source_77"]);
    attached.subscribe();
    assert_eq!(attached.queries[0].endpoint.worker, Worker::new(WORKER, 0));
    let message = "dp_rank mismatch: request.dp_rank=0 this.dp_rank=1".to_owned();
    attached.respond(TreeResponse::Error { message, rank: Some(1) });
    assert_eq!(attached.queries.len(), 2, "at once");
    assert_eq!(attached.queries[1].endpoint.worker, Worker::new(WORKER, 1));
    let mut events = events_of(WORKER, &[stored(0, None, &[1])]);
    events.events[0].worker.dp_rank = 1;
    attached.respond(TreeResponse::TreeDump { events, last_event_id: Some(3) });
    let ix = attached.cluster.worker_ix(Worker::new(WORKER, 1)).expect("introduced");
    assert_eq!(attached.cluster.holdings(ix).resident, 1);
}

#[test]
fn the_endpoint_of_another_publisher_is_not_asked() {
    let mut attached = Attached::with_endpoints(&[(WORKER, "worker_kv_query_source_77")]);
    attached.receive(&[stored(90, None, &[9])]);
    assert_eq!(attached.queries, []);
    assert!(!attached.intake.request_dump(Worker::new(WORKER, 0)));
}

#[test]
fn many_workers_are_queried_one_after_the_other() {
    let mut attached = Attached::new();
    let workers = 30;
    for n in 0..workers {
        let (id, name) = (1_000 + n, format!("worker_kv_query_source_{n:x}"));
        attached.list_as(id, &format!("f{n}"), &[name.as_str()]);
    }
    attached.subscribe();
    assert!(attached.queries.len() <= 2, "spread over three seconds");
    let mut most = 0;
    let mut answered = 0;
    for _ in 0..1_200 {
        attached.pass(10);
        most = most.max(attached.queries.len() - answered);
        // Each takes a while.
        if attached.now.is_multiple_of(300) && answered < attached.queries.len() {
            let query = attached.queries[answered].id;
            answered += 1;
            let none = TreeResponse::TreeDump { events: KvEvents::default(), last_event_id: Some(1) };
            attached.respond_to(query, Ok(none));
        }
        if attached.queries.len() >= workers as usize {
            break;
        }
    }
    assert!((2..=8).contains(&most), "{most} at a time");
    let took = attached.now - 1_800_000_000_000;
    assert!((2_500..=12_000).contains(&took), "{took} ms");
}

#[test]
fn where_it_cannot_list_its_blocks_it_is_queried_again_and_again() {
    let mut attached = Attached::new();
    attached.receive(&[stored(90, None, &[9])]);
    for (n, wait) in [200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 300_000].into_iter().enumerate() {
        attached.respond(TreeResponse::TreeDumpFailed { message: "busy".into() });
        let QueryState::Failed { next_ms: Some(next) } = attached.knowledge().asking else {
            panic!("failed")
        };
        assert_eq!(next.0 - attached.now, wait, "after failure {}", n + 1);
        assert!(attached.knowledge().asking_detail.contains("busy"));
        attached.pass(wait - 1);
        assert_eq!(attached.queries.len(), n + 1);
        attached.pass(1);
        assert_eq!(attached.queries.len(), n + 2);
    }
    attached.respond(dump(Some(90), &[stored(0, None, &[9])]));
    attached.knows(Complete, Dump);
    let queries = attached.knowledge().queries;
    assert_eq!((queries.dumps, queries.applied, queries.failed), (10, 1, 9));
}

#[test]
fn a_failed_query_has_its_reason() {
    let mut attached = Attached::new();
    attached.receive(&[stored(90, None, &[9])]);
    let query = attached.queries[0].id;
    let detail = "the worker accepted the query and did not call back".to_owned();
    attached.respond_to(query, Err(QueryFailed { why: QueryFault::NoCallback, detail: detail.clone() }));
    assert_eq!(attached.knowledge().asking_detail, detail);
    attached.knows(Partial, JoinedLate);
    attached.respond_to(query, Ok(dump(Some(90), &[stored(0, None, &[1])])));
    assert_eq!(attached.held(), [(9, None)], "a second response to a query is none");
}

#[test]
fn a_number_where_blocks_were_requested_is_a_failure_and_no_loop() {
    let mut attached = Attached::new();
    attached.receive(&[stored(90, None, &[9])]);
    for response in [
        TreeResponse::TooNew { newest_available: 3 },
        TreeResponse::InvalidRange,
        range(90, &[stored(90, None, &[9])]),
    ] {
        let before = attached.queries.len();
        attached.respond(response);
        assert_eq!(attached.queries.len(), before);
        assert!(matches!(attached.knowledge().asking, QueryState::Failed { .. }));
        attached.pass(1_000);
        assert_eq!(attached.queries.len(), before + 1);
    }
}

#[test]
fn a_worker_that_left_while_it_was_queried_holds_nothing() {
    let mut attached = Attached::new();
    attached.receive(&[stored(90, None, &[9])]);
    let query = attached.queries[0].id;
    let gone = radixscope_model::record::Record::Left {
        worker: WorkerIx(0),
        why: radixscope_model::record::DepartureCause::Health,
    };
    let entry = radixscope_model::record::Entry { at_ms: Millis(attached.now), record: gone };
    radixscope_state::sink::RecordSink::append(&mut attached.cluster, &entry);
    attached.pass(10);
    assert_eq!(attached.cancelled, [query]);
    attached.respond_to(query, Ok(dump(Some(90), &[stored(0, None, &[1])])));
    assert_eq!(attached.held(), []);
    attached.knows(TreeKnowledge::Unknown, NoEvents);
}

#[test]
fn no_worker_is_queried_if_queries_are_off() {
    let mut attached = Attached::new();
    attached.intake.set_tree_dumps(TreeDumps::Off);
    attached.receive(&[stored(90, None, &[9])]).pass(1_000);
    assert!(!attached.intake.request_dump(Worker::new(WORKER, 0)));
    attached.pass(1_000);
    assert_eq!(attached.queries, []);
    attached.intake.set_tree_dumps(TreeDumps::OnRequest);
    attached.pass(1_000);
    assert_eq!(attached.queries, []);
    assert!(attached.intake.request_dump(Worker::new(WORKER, 0)));
    attached.pass(1_000);
    assert_eq!(attached.starts(), [None]);
}

#[test]
fn a_missing_query_endpoint_is_reported() {
    let mut attached = Attached::with_endpoints(&[]);
    attached.receive(&[stored(90, None, &[9])]).pass(1_000);
    assert_eq!(attached.knowledge().asking, QueryState::NoEndpoint);
    attached.receive(&[stored(91, None, &[10]), stored(95, None, &[11])]);
    attached.knows(Partial, JoinedLate);
}

#[test]
fn an_idle_worker_is_queried_once_its_plane_is_received() {
    let mut attached = Attached::new();
    attached.list_worker(&["worker_kv_query_source_abc"]);
    assert_eq!(attached.queries, []);
    attached.subscribe();
    assert_eq!(attached.starts(), [None]);
    attached.respond(dump(Some(70), &[stored(0, None, &[1])]));
    attached.knows(Partial, NoEvents);
    attached.receive(&[stored(71, Some(1), &[2])]);
    attached.knows(Complete, Dump);
    assert_eq!(attached.held(), [(1, None), (2, Some(1))]);
    assert_eq!(attached.queries.len(), 1);
}
