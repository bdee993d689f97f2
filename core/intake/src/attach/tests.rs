//! How answers and events become one tree, one pitfall at a time.

use std::sync::Arc;

use radixscope_dynamo::envelope::Format;
use radixscope_dynamo::kv_event::KvEvents;
use radixscope_dynamo::tree_query::{QueryFailed, QueryFault, TreeAnswer};
use radixscope_model::id::{BlockHash, Millis, SourceIx, Worker, WorkerIx};
use radixscope_model::record::{Asking, KnowledgeWhy, SourceKind, TreeKnowledge};
use radixscope_state::cluster::{Cluster, KnowledgeState};
use serde_json::{Value, json};

use crate::command::TreeQuery;
use crate::{Break, Command, Intake, Missing, NatsSubjects, Payload, Received, TreeDumps};

const WORKER: u64 = 42;
const PUBLISHER: u64 = 0xabc;
const SUBJECT: &str = "namespace.dynamo.component.backend.endpoint.generate.kv-events";

/// One who attaches late, and what he has to do.
struct Attached {
    intake: Intake,
    cluster: Cluster,
    subjects: NatsSubjects,
    source: SourceIx,
    now: u64,
    publisher: u64,
    sequence: u64,
    /// Whether events come one by one, under the worker's own id.
    is_old: bool,
    queries: Vec<TreeQuery>,
    cancelled: Vec<u64>,
}

fn stored(id: u64, parent: Option<u64>, blocks: &[u64]) -> Value {
    let blocks: Vec<_> =
        blocks.iter().map(|b| json!({"block_hash": b, "tokens_hash": b + 1_000_000})).collect();
    json!({"event_id": id, "dp_rank": 0, "data": {"stored": {"parent_hash": parent, "blocks": blocks}}})
}

fn removed(id: u64, blocks: &[u64]) -> Value {
    json!({"event_id": id, "dp_rank": 0, "data": {"removed": {"block_hashes": blocks}}})
}

fn as_bytes<S: serde::Serializer>(payload: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bytes(payload)
}

/// Events of a worker, as an answer has them.
fn events_of(worker: u64, events: &[Value]) -> KvEvents {
    let all: Vec<_> = events.iter().map(|event| json!({"worker_id": worker, "event": event})).collect();
    let mut read = KvEvents::default();
    read.decode(Value::from(all).to_string().as_bytes(), Format::Json).expect("events");
    read
}

fn dump(last_event_id: Option<u64>, events: &[Value]) -> TreeAnswer {
    TreeAnswer::TreeDump { events: events_of(WORKER, events), last_event_id }
}

fn range(last_event_id: u64, events: &[Value]) -> TreeAnswer {
    TreeAnswer::Events { events: events_of(WORKER, events), last_event_id: Some(last_event_id) }
}

impl Attached {
    /// To a worker of 1.6 of which nothing was received yet.
    fn new() -> Self {
        let endpoint = format!("worker_kv_query_source_{PUBLISHER:x}");
        Self::with_endpoints(&[(WORKER, &endpoint)])
    }

    fn with_endpoints(endpoints: &[(u64, &str)]) -> Self {
        let mut attached = Self {
            intake: Intake::default(),
            cluster: Cluster::default(),
            subjects: NatsSubjects::default(),
            source: SourceIx(0),
            now: 1_800_000_000_000,
            publisher: PUBLISHER,
            sequence: 100,
            is_old: false,
            queries: Vec::new(),
            cancelled: Vec::new(),
        };
        let at = Millis(attached.now);
        attached.intake.set_verify_every(None);
        let source = attached.intake.source("nats", SourceKind::Nats, at, &mut attached.cluster);
        attached.source = source.expect("room");
        let instances: Vec<_> = endpoints
            .iter()
            .map(|(id, endpoint)| {
                json!({"component": "backend", "endpoint": endpoint, "namespace": "dynamo", "instance_id": id,
                    "transport": {"tcp": format!("10.0.0.1:1/{id:x}/{endpoint}")}})
            })
            .collect();
        let answer = json!({"status": "healthy", "instances": instances}).to_string().into();
        attached.take(Payload::Health { frontend: "f".into(), answer });
        attached
    }

    /// Of 0.9, which is asked on request only.
    fn of_0_9() -> Self {
        let mut attached = Self::with_endpoints(&[(WORKER, "worker_kv_indexer_query")]);
        attached.is_old = true;
        attached.publisher = WORKER;
        attached
    }

    fn take(&mut self, payload: Payload) {
        let received = Received { source: self.source, at_ms: Millis(self.now), payload };
        self.intake.take(&received, &mut self.cluster);
        self.obey();
    }

    fn obey(&mut self) {
        for command in self.intake.commands() {
            match command {
                Command::Query(query) => self.queries.push(query),
                Command::CancelQuery { id } => self.cancelled.push(id),
                Command::Listen(_) | Command::Unlisten { .. } => {}
            }
        }
    }

    /// Time passes.
    fn pass(&mut self, ms: u64) -> &mut Self {
        self.now += ms;
        self.intake.flush(Millis(self.now), &mut self.cluster);
        self.obey();
        self
    }

    /// Events come, a message each.
    fn hear(&mut self, events: &[Value]) -> &mut Self {
        for event in events {
            self.hear_batch(std::slice::from_ref(event));
        }
        self
    }

    fn hear_batch(&mut self, events: &[Value]) {
        let all: Vec<_> = events.iter().map(|event| json!({"worker_id": WORKER, "event": event})).collect();
        let payload = if self.is_old { all[0].clone() } else { Value::from(all) };
        let payload = rmp_serde::to_vec_named(&payload).expect("encodes");
        #[derive(serde::Serialize)]
        struct Enveloped<'a> {
            publisher_id: u64,
            sequence: u64,
            published_at: u64,
            topic: &'a str,
            #[serde(serialize_with = "as_bytes")]
            payload: Vec<u8>,
        }
        let (publisher_id, sequence, published_at) = (self.publisher, self.sequence, self.now);
        let message = Enveloped { publisher_id, sequence, published_at, topic: "kv-events", payload };
        self.sequence += 1;
        let message = rmp_serde::to_vec_named(&message).expect("encodes");
        let payload = self.subjects.publication(SUBJECT, None, message.into()).expect("kv-events");
        self.take(payload);
    }

    /// The latest query is answered.
    fn answer(&mut self, answer: TreeAnswer) -> &mut Self {
        let query = self.queries.last().expect("asked").id;
        self.answer_to(query, Ok(answer));
        self
    }

    fn answer_to(&mut self, query: u64, outcome: Result<TreeAnswer, QueryFailed>) {
        self.take(Payload::TreeAnswer { query, outcome: Arc::new(outcome), size_bytes: 1 });
    }

    fn subscribe(&mut self) {
        self.take(Payload::Subscribed { publisher_id: None });
    }

    /// A frontend lists the worker, so that it is known, with these endpoints.
    fn list_worker(&mut self, endpoints: &[&str]) {
        self.list_as(WORKER, "f", endpoints);
    }

    fn list_as(&mut self, worker: u64, frontend: &str, endpoints: &[&str]) {
        let instances: Vec<_> = std::iter::once(&"generate")
            .chain(endpoints)
            .map(|endpoint| {
                json!({"component": "backend", "endpoint": endpoint, "namespace": "dynamo",
                    "instance_id": worker, "transport": {"tcp": "10.0.0.1:1/x"}})
            })
            .collect();
        let answer = json!({"status": "healthy", "instances": instances}).to_string().into();
        self.take(Payload::Health { frontend: frontend.into(), answer });
    }

    fn break_connection(&mut self) {
        let mut missing = Missing::default();
        missing.broke(Break { since_ms: Millis(self.now - 1_000), until_ms: Millis(self.now) });
        self.intake.missing(self.source, &missing);
    }

    fn knowledge(&self) -> &KnowledgeState {
        &self.cluster.workers()[0].knowledge
    }

    #[track_caller]
    fn knows(&self, state: TreeKnowledge, why: KnowledgeWhy) {
        assert_eq!((self.knowledge().state, self.knowledge().why), (state, why));
    }

    /// Blocks that the worker holds, with those before them.
    fn held(&self) -> Vec<(u64, Option<u64>)> {
        let held = self.cluster.tree_of(WorkerIx(0)).held_by(WorkerIx(0)).into_iter();
        let mut held: Vec<_> =
            held.map(|(parent, block, _)| (block.block_hash.0, parent.map(|parent| parent.0))).collect();
        held.sort_unstable();
        held
    }

    fn starts(&self) -> Vec<Option<u64>> {
        self.queries.iter().map(|query| query.start_event_id).collect()
    }

    fn unknown(&self) -> (u64, u64) {
        let state = &self.cluster.workers()[0];
        (state.unknown_removed_total, state.unknown_parents_total)
    }
}

use KnowledgeWhy::{Cleared, ConnectionBroke, Dump, EventsLost, FromFirstEvent, JoinedLate, NoEvents};
use TreeKnowledge::{Complete, Partial};

#[test]
fn from_its_first_event_on_a_worker_is_complete_and_not_asked() {
    let mut attached = Attached::new();
    attached.hear(&[stored(1, None, &[1, 2]), removed(2, &[2])]).pass(1_000);
    attached.knows(Complete, FromFirstEvent);
    assert_eq!(attached.queries, []);
    assert_eq!(attached.knowledge().asking, Asking::No);
}

#[test]
fn a_worker_that_has_run_is_asked_after_its_first_event() {
    let mut attached = Attached::new();
    assert_eq!(attached.queries, [], "nothing shows yet that its events will be received");
    attached.hear(&[stored(90, Some(2), &[3])]);
    attached.knows(Partial, JoinedLate);
    assert_eq!(attached.starts(), [None]);
    assert_eq!(attached.knowledge().asking, Asking::Dump);
    attached.answer(dump(Some(90), &[stored(0, None, &[1, 2, 3]), stored(1, Some(1), &[4])]));
    attached.knows(Complete, Dump);
    assert_eq!(attached.held(), [(1, None), (2, Some(1)), (3, Some(2)), (4, Some(1))]);
    assert_eq!(attached.knowledge().asking, Asking::Joining);
    attached.pass(3_000).pass(10_000);
    assert_eq!(attached.knowledge().asking, Asking::No);
}

#[test]
fn a_cached_dump_removes_what_its_own_end_says() {
    let mut attached = Attached::new();
    attached.hear(&[stored(90, None, &[9])]);
    let cached =
        [stored(0, None, &[1, 2, 3]), stored(88, Some(3), &[5]), removed(89, &[2]), stored(90, None, &[9])];
    attached.answer(dump(Some(90), &cached));
    assert_eq!(attached.held(), [(1, None), (3, Some(2)), (5, Some(3)), (9, None)]);
    assert_eq!(attached.cluster.totals().unattached, 0);
    assert_eq!(attached.unknown(), (0, 0));
}

#[test]
fn what_came_after_the_dump_is_applied_over_it() {
    let mut attached = Attached::new();
    attached.hear(&[stored(90, None, &[9])]);
    attached.hear(&[stored(91, Some(1), &[2]), removed(92, &[9]), stored(93, None, &[7])]);
    attached.answer(dump(Some(90), &[stored(0, None, &[1]), stored(1, None, &[9])]));
    assert_eq!(attached.held(), [(1, None), (2, Some(1)), (7, None)]);
    attached.hear(&[stored(94, Some(2), &[3])]);
    assert_eq!(attached.held(), [(1, None), (2, Some(1)), (3, Some(2)), (7, None)]);
    attached.knows(Complete, Dump);
}

#[test]
fn events_that_the_dump_held_are_not_applied_again() {
    let mut attached = Attached::new();
    attached.hear(&[stored(90, None, &[9])]);
    // The dump is ahead of its own number, which is ahead of what was received.
    attached.answer(dump(Some(95), &[stored(0, None, &[1, 2])]));
    attached.hear(&[stored(91, None, &[50]), removed(92, &[50]), stored(95, None, &[51])]);
    assert_eq!(attached.held(), [(1, None), (2, Some(1))]);
    attached.hear(&[removed(96, &[60]), stored(97, Some(61), &[62]), removed(98, &[62])]);
    assert_eq!(attached.unknown(), (0, 0), "it may be ahead of its number too");
    let state = &attached.cluster.workers()[0];
    assert_eq!((state.store_events_total, state.remove_events_total), (4, 3), "all were received");
    attached.knows(Complete, Dump);
    assert_eq!(attached.starts(), [None]);
}

#[test]
fn after_the_overlap_what_is_unknown_counts_again() {
    let mut attached = Attached::new();
    attached.hear(&[stored(90, None, &[9])]).answer(dump(Some(90), &[stored(0, None, &[9])]));
    attached.pass(2_100).pass(10_000).hear(&[removed(91, &[77])]);
    assert_eq!(attached.unknown(), (1, 0));
}

#[test]
fn who_begins_anew_while_it_is_asked_is_another() {
    let mut attached = Attached::new();
    attached.hear(&[stored(90, None, &[9])]);
    let query = attached.queries[0].id;
    attached.publisher = 0xdef;
    attached.sequence = 0;
    attached.hear(&[stored(1, None, &[5])]);
    assert_eq!(attached.cancelled, [query]);
    attached.answer_to(query, Ok(dump(Some(90), &[stored(0, None, &[1, 2])])));
    assert_eq!(attached.held(), [(5, None)], "what the one before held is gone, and so is its answer");
    attached.knows(Complete, FromFirstEvent);
    // A late word of the one before.
    attached.publisher = PUBLISHER;
    attached.hear(&[stored(91, None, &[10])]);
    assert_eq!(attached.held(), [(5, None)]);
}

#[test]
fn an_answer_of_another_process_than_the_one_that_speaks_does_not_count() {
    let mut attached = Attached::new();
    attached.subscribe();
    assert_eq!(attached.queries.len(), 0, "nobody knows the worker");
    attached.hear(&[stored(90, None, &[9])]);
    let mut foreign = events_of(WORKER, &[stored(0, None, &[1])]);
    foreign.events[0].worker = Worker::new(43, 0);
    attached.answer(TreeAnswer::TreeDump { events: foreign, last_event_id: Some(90) });
    assert_eq!(attached.held(), [(9, None)]);
    attached.knows(Partial, JoinedLate);
    assert!(matches!(attached.knowledge().asking, Asking::Failed { next_ms: Some(_) }));
}

#[test]
fn a_rank_that_nothing_named_is_taken_from_the_answer() {
    let mut attached = Attached::with_endpoints(&[(WORKER, "worker_kv_query_source_77")]);
    attached.list_worker(&["worker_kv_query_source_77"]);
    attached.subscribe();
    assert_eq!(attached.queries[0].endpoint.worker, Worker::new(WORKER, 0));
    let message = "dp_rank mismatch: request.dp_rank=0 this.dp_rank=1".to_owned();
    attached.answer(TreeAnswer::Error { message, rank: Some(1) });
    assert_eq!(attached.queries.len(), 2, "at once");
    assert_eq!(attached.queries[1].endpoint.worker, Worker::new(WORKER, 1));
    let mut events = events_of(WORKER, &[stored(0, None, &[1])]);
    events.events[0].worker.dp_rank = 1;
    attached.answer(TreeAnswer::TreeDump { events, last_event_id: Some(3) });
    let ix = attached.cluster.worker_ix(Worker::new(WORKER, 1)).expect("introduced");
    assert_eq!(attached.cluster.tree_of(ix).holdings(ix).resident, 1);
}

#[test]
fn the_endpoint_of_another_publisher_is_not_asked() {
    let mut attached = Attached::with_endpoints(&[(WORKER, "worker_kv_query_source_77")]);
    attached.hear(&[stored(90, None, &[9])]);
    assert_eq!(attached.queries, []);
    assert!(!attached.intake.request_dump(Worker::new(WORKER, 0)));
}

#[test]
fn many_workers_are_asked_one_after_the_other() {
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
            let none = TreeAnswer::TreeDump { events: KvEvents::default(), last_event_id: Some(1) };
            attached.answer_to(query, Ok(none));
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
fn where_it_cannot_list_its_blocks_it_is_asked_again_and_again() {
    let mut attached = Attached::new();
    attached.hear(&[stored(90, None, &[9])]);
    for (n, wait) in [200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 300_000].into_iter().enumerate() {
        attached.answer(TreeAnswer::TreeDumpFailed { message: "busy".into() });
        let Asking::Failed { next_ms: Some(next) } = attached.knowledge().asking else { panic!("failed") };
        assert_eq!(next.0 - attached.now, wait, "after failure {}", n + 1);
        assert!(attached.knowledge().asking_detail.contains("busy"));
        attached.pass(wait - 1);
        assert_eq!(attached.queries.len(), n + 1);
        attached.pass(1);
        assert_eq!(attached.queries.len(), n + 2);
    }
    attached.answer(dump(Some(90), &[stored(0, None, &[9])]));
    attached.knows(Complete, Dump);
    let queries = attached.knowledge().queries;
    assert_eq!((queries.dumps, queries.applied, queries.failed), (10, 1, 9));
}

#[test]
fn a_query_that_fails_says_why() {
    let mut attached = Attached::new();
    attached.hear(&[stored(90, None, &[9])]);
    let query = attached.queries[0].id;
    let words = "the worker accepted the query and did not call back".to_owned();
    attached.answer_to(query, Err(QueryFailed { why: QueryFault::NoCallback, words: words.clone() }));
    assert_eq!(attached.knowledge().asking_detail, words);
    attached.knows(Partial, JoinedLate);
    attached.answer_to(query, Ok(dump(Some(90), &[stored(0, None, &[1])])));
    assert_eq!(attached.held(), [(9, None)], "a second answer to a query is none");
}

#[test]
fn a_dump_whose_blocks_lead_to_each_other_hangs_nobody() {
    let mut attached = Attached::new();
    attached.hear(&[stored(90, None, &[9])]);
    let cycle = [
        stored(0, Some(3), &[1]),
        stored(1, Some(1), &[2]),
        stored(2, Some(2), &[3]),
        stored(3, Some(4), &[4]),
    ];
    attached.answer(dump(Some(90), &cycle)).pass(1_000);
    let names: Vec<u64> = attached.held().iter().map(|(name, _)| *name).collect();
    assert_eq!(names, [1, 2, 3, 4]);
    attached.answer(dump(Some(90), &[]));
}

#[test]
fn a_number_where_blocks_were_asked_for_is_a_failure_and_no_loop() {
    let mut attached = Attached::new();
    attached.hear(&[stored(90, None, &[9])]);
    for answer in [
        TreeAnswer::TooNew { newest_available: 3 },
        TreeAnswer::InvalidRange,
        range(90, &[stored(90, None, &[9])]),
    ] {
        let before = attached.queries.len();
        attached.answer(answer);
        assert_eq!(attached.queries.len(), before);
        assert!(matches!(attached.knowledge().asking, Asking::Failed { .. }));
        attached.pass(1_000);
        assert_eq!(attached.queries.len(), before + 1);
    }
}

#[test]
fn lost_events_are_asked_for_by_number_and_got_back() {
    let mut attached = Attached::new();
    attached.hear(&[stored(1, None, &[1]), stored(2, Some(1), &[2])]);
    attached.sequence += 1;
    attached.hear(&[stored(5, Some(3), &[4])]);
    assert_eq!(attached.starts(), [Some(3)]);
    attached.knows(Complete, FromFirstEvent);
    attached.hear(&[removed(6, &[4])]);
    let missed = [stored(3, Some(2), &[3]), removed(4, &[1]), stored(5, Some(3), &[4])];
    attached.answer(range(5, &missed)).pass(1_000).pass(1_000).pass(1_000);
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

#[test]
fn lost_events_that_nobody_gives_back_are_lost_and_then_everything_is_asked_for() {
    let mut attached = Attached::new();
    attached.hear(&[stored(1, None, &[1]), stored(4, None, &[4])]);
    attached.answer(TreeAnswer::TreeDumpFailed { message: String::new() });
    attached.knows(Partial, EventsLost);
    attached.pass(1_000);
    assert_eq!(attached.starts(), [Some(2), Some(2)]);
    // Too long ago: it answers with all its blocks.
    attached.answer(dump(Some(4), &[stored(0, None, &[2]), stored(1, None, &[4])])).pass(1_000);
    assert_eq!(attached.held(), [(2, None), (4, None)]);
    attached.knows(Complete, Dump);
    assert_eq!(attached.cluster.sources()[0].missed.iter().map(|missed| missed.lost()).sum::<u64>(), 0);
}

#[test]
fn a_worker_that_does_not_know_what_it_said_is_asked_for_everything() {
    let mut attached = Attached::new();
    attached.hear(&[stored(1, None, &[1]), stored(4, None, &[4])]);
    attached.answer(TreeAnswer::TooNew { newest_available: 1 });
    assert_eq!(attached.starts(), [Some(2), None]);
    attached.knows(Partial, EventsLost);
}

#[test]
fn events_lost_while_the_answer_is_awaited_are_asked_for_after_it() {
    let mut attached = Attached::new();
    attached.hear(&[stored(90, None, &[9]), stored(93, None, &[12])]);
    attached.answer(dump(Some(90), &[stored(0, None, &[9])]));
    assert_eq!(attached.starts(), [None, Some(91)]);
    attached.answer(range(93, &[stored(91, None, &[10]), stored(92, None, &[11]), stored(93, None, &[12])]));
    assert_eq!(attached.held(), [(9, None), (10, None), (11, None), (12, None)]);
    attached.knows(Complete, Dump);
}

#[test]
fn after_a_break_the_worker_is_asked_what_it_said() {
    let mut attached = Attached::new();
    attached.hear(&[stored(1, None, &[1])]);
    attached.break_connection();
    attached.pass(0);
    attached.knows(Partial, ConnectionBroke);
    assert_eq!(attached.queries, [], "not before everything is received again");
    attached.subscribe();
    assert_eq!(attached.starts(), [Some(2)]);
    attached.answer(TreeAnswer::TooNew { newest_available: 1 });
    attached.knows(Complete, FromFirstEvent);
    attached.break_connection();
    attached.hear(&[stored(2, None, &[2])]);
    attached.knows(Complete, FromFirstEvent);
    assert_eq!(attached.queries.len(), 1, "its number tells that nothing was missed");
}

#[test]
fn more_events_than_are_kept_have_it_asked_again() {
    let mut attached = Attached::new();
    attached.hear(&[stored(90, None, &[9])]);
    let query = attached.queries[0].id;
    let mut id = 91;
    while attached.cancelled.is_empty() {
        let batch: Vec<Value> = (id..id + 4_000).map(|id| removed(id, &[id])).collect();
        attached.hear_batch(&batch);
        id += 4_000;
        assert!(id < 200_000);
    }
    assert_eq!(attached.cancelled, [query]);
    assert!(id > super::queue::MAX_EVENTS as u64);
    attached.pass(1_000);
    assert_eq!(attached.queries.len(), 2);
    attached.answer(dump(Some(id - 1), &[stored(0, None, &[1])]));
    assert_eq!(attached.held(), [(1, None)]);
    attached.knows(Complete, Dump);
}

#[test]
fn events_of_0_9_that_share_an_id_are_all_applied_after_the_dump() {
    let mut attached = Attached::of_0_9();
    attached.hear(&[stored(50, None, &[5])]);
    attached.knows(Partial, JoinedLate);
    assert_eq!(attached.queries, []);
    assert_eq!(attached.knowledge().asking, Asking::OnRequest);
    assert!(attached.intake.request_dump(Worker::new(WORKER, 0)));
    attached.pass(0);
    assert_eq!(attached.starts(), [None]);
    attached.hear(&[stored(51, None, &[6]), removed(51, &[5])]);
    attached.answer(dump(None, &[stored(0, None, &[1]), stored(1, None, &[5])]));
    assert_eq!(attached.held(), [(1, None), (6, None)]);
    attached.hear(&[stored(51, None, &[7]), stored(52, Some(1), &[2])]);
    assert_eq!(attached.held(), [(1, None), (2, Some(1)), (6, None), (7, None)]);
    attached.knows(Complete, Dump);
}

#[test]
fn a_message_of_0_9_that_is_lost_makes_it_partial_until_somebody_asks() {
    let mut attached = Attached::of_0_9();
    attached.sequence = 0;
    attached.hear(&[stored(0, None, &[1])]);
    attached.knows(Complete, FromFirstEvent);
    attached.sequence += 1;
    attached.hear(&[stored(2, None, &[2])]).pass(1_000).pass(1_000);
    attached.knows(Partial, EventsLost);
    assert_eq!(attached.queries, []);
}

#[test]
fn a_worker_that_dropped_everything_is_complete() {
    let mut attached = Attached::new();
    attached.hear(&[stored(90, Some(1), &[9])]);
    attached.hear(&[json!({"event_id": 91, "dp_rank": 0, "data": "cleared"}), stored(92, None, &[3])]);
    attached.knows(Complete, Cleared);
    attached.answer(dump(Some(89), &[stored(0, None, &[1])]));
    assert_eq!(attached.held(), [(3, None)]);
}

#[test]
fn who_left_while_it_was_asked_holds_nothing() {
    let mut attached = Attached::new();
    attached.hear(&[stored(90, None, &[9])]);
    let query = attached.queries[0].id;
    let gone = radixscope_model::record::Record::Gone {
        worker: WorkerIx(0),
        why: radixscope_model::record::GoneWhy::Health,
    };
    let entry = radixscope_model::record::Entry { at_ms: Millis(attached.now), record: gone };
    radixscope_state::sink::RecordSink::append(&mut attached.cluster, &entry);
    attached.pass(10);
    assert_eq!(attached.cancelled, [query]);
    attached.answer_to(query, Ok(dump(Some(90), &[stored(0, None, &[1])])));
    assert_eq!(attached.held(), []);
    attached.knows(TreeKnowledge::Unknown, NoEvents);
}

#[test]
fn nobody_is_asked_where_that_is_off() {
    let mut attached = Attached::new();
    attached.intake.set_tree_dumps(TreeDumps::Off);
    attached.hear(&[stored(90, None, &[9])]).pass(1_000);
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
fn where_nothing_tells_whom_to_ask_that_is_said() {
    let mut attached = Attached::with_endpoints(&[]);
    attached.hear(&[stored(90, None, &[9])]).pass(1_000);
    assert_eq!(attached.knowledge().asking, Asking::NoEndpoint);
    attached.hear(&[stored(91, None, &[10]), stored(95, None, &[11])]);
    attached.knows(Partial, JoinedLate);
}

#[test]
fn a_comparison_that_agrees_changes_nothing() {
    let mut attached = Attached::new();
    attached.hear(&[stored(1, None, &[1, 2]), stored(2, Some(1), &[3]), removed(3, &[1])]);
    attached.intake.set_verify_every(Some(60_000));
    attached.pass(1_000).pass(80_000);
    assert_eq!(attached.starts(), [None]);
    let before = attached.held();
    let tree = attached.cluster.tree_of(WorkerIx(0)).digest();
    // Its index has lost what hangs below the block that is gone.
    attached.answer(dump(Some(3), &[]));
    assert_eq!(attached.held(), before, "no fault of the events");
    assert_eq!(attached.cluster.tree_of(WorkerIx(0)).digest(), tree);
    attached.pass(3_000).pass(9_000);
    assert_eq!(attached.queries.len(), 1);
    assert_eq!(attached.knowledge().drift, None);
    attached.knows(Complete, FromFirstEvent);
}

#[test]
fn a_difference_that_the_next_answer_has_too_is_drift() {
    let mut attached = Attached::new();
    attached.hear(&[stored(1, None, &[1, 2]), stored(2, None, &[5])]);
    attached.intake.set_verify_every(Some(60_000));
    attached.pass(1_000).pass(80_000);
    attached.answer(dump(Some(2), &[stored(0, None, &[1]), stored(1, None, &[7])]));
    assert_eq!(attached.held().len(), 3, "it may be of events that are on their way");
    assert_eq!(attached.knowledge().drift, None);
    attached.pass(6_000);
    assert_eq!(attached.queries.len(), 2);
    attached.answer(dump(Some(2), &[stored(0, None, &[1]), stored(1, None, &[5]), stored(2, None, &[7])]));
    let drift = attached.knowledge().drift.expect("twice");
    assert_eq!((drift.missing_blocks, drift.surplus_blocks), (1, 1), "7 and 2; not 5");
    assert_eq!(attached.held(), [(1, None), (5, None), (7, None)], "the worker is right");
    attached.pass(80_000);
    attached.answer(dump(Some(2), &[stored(0, None, &[1]), stored(1, None, &[5]), stored(2, None, &[7])]));
    assert_eq!(attached.knowledge().drift, None, "they agree again");
}

#[test]
fn an_idle_worker_is_asked_once_its_plane_is_heard() {
    let mut attached = Attached::new();
    attached.list_worker(&["worker_kv_query_source_abc"]);
    assert_eq!(attached.queries, []);
    attached.subscribe();
    assert_eq!(attached.starts(), [None]);
    attached.answer(dump(Some(70), &[stored(0, None, &[1])]));
    attached.knows(Partial, NoEvents);
    attached.hear(&[stored(71, Some(1), &[2])]);
    attached.knows(Complete, Dump);
    assert_eq!(attached.held(), [(1, None), (2, Some(1))]);
    assert_eq!(attached.queries.len(), 1);
}

#[test]
fn an_idle_worker_that_spoke_unheard_is_asked_for_that() {
    let mut attached = Attached::new();
    attached.hear(&[stored(1, None, &[1])]);
    let tree = attached.cluster.tree_of(WorkerIx(0));
    assert!(tree.find(WorkerIx(0), BlockHash(1)).is_some());
    attached.sequence += 7;
    attached.hear(&[stored(9, None, &[9])]);
    assert_eq!(attached.starts(), [Some(2)]);
}
