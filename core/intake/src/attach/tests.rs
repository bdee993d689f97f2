//! How answers and events become one tree, one pitfall at a time.

mod asking;
mod holes;
mod joining;
mod losses;

use std::sync::Arc;

use radixscope_dynamo::envelope::Format;
use radixscope_dynamo::kv_event::KvEvents;
use radixscope_dynamo::subject::{self, Transport};
use radixscope_dynamo::tree_query::{QueryFailed, QueryFault, TreeResponse};
use radixscope_model::id::{BlockHash, Millis, Slot, SourceIx, Worker, WorkerIx};
use radixscope_model::record::{KnowledgeWhy, QueryState, SourceKind, TreeKnowledge};
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

/// Events of a worker, as a response has them.
fn events_of(worker: u64, events: &[Value]) -> KvEvents {
    let all: Vec<_> = events.iter().map(|event| json!({"worker_id": worker, "event": event})).collect();
    let mut read = KvEvents::default();
    read.decode(Value::from(all).to_string().as_bytes(), Format::Json).expect("events");
    read
}

fn dump(last_event_id: Option<u64>, events: &[Value]) -> TreeResponse {
    TreeResponse::TreeDump { events: events_of(WORKER, events), last_event_id }
}

fn range(last_event_id: u64, events: &[Value]) -> TreeResponse {
    TreeResponse::Events { events: events_of(WORKER, events), last_event_id: Some(last_event_id) }
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
        let response = json!({"status": "healthy", "instances": instances}).to_string().into();
        attached.handle(Payload::Health { frontend: "f".into(), response });
        attached
    }

    /// Of 0.9, which is queried on request only.
    fn of_0_9() -> Self {
        let mut attached = Self::with_endpoints(&[(WORKER, "worker_kv_indexer_query")]);
        attached.is_old = true;
        attached.publisher = WORKER;
        attached
    }

    fn handle(&mut self, payload: Payload) {
        let received = Received { source: self.source, at_ms: Millis(self.now), payload };
        self.intake.handle(&received, &mut self.cluster);
        self.obey();
    }

    fn obey(&mut self) {
        for command in self.intake.commands() {
            match command {
                Command::Query(query) => self.queries.push(query),
                Command::CancelQuery { id } => self.cancelled.push(id),
                _ => {}
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
    fn receive(&mut self, events: &[Value]) -> &mut Self {
        for event in events {
            self.receive_batch(std::slice::from_ref(event));
        }
        self
    }

    fn receive_batch(&mut self, events: &[Value]) {
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
        self.handle(payload);
    }

    /// Events come in a stream of JetStream, as JSON without an envelope.
    fn receive_in_stream(&mut self, events: &[Value]) {
        let mut subject = subject::parse(SUBJECT).expect("a subject");
        subject.transport = Transport::JetStream;
        let subject = Arc::new(subject);
        for event in events {
            let message = json!({"worker_id": WORKER, "event": event}).to_string().into();
            self.handle(Payload::Nats { subject: Arc::clone(&subject), message });
        }
    }

    /// The latest query is answered.
    fn respond(&mut self, response: TreeResponse) -> &mut Self {
        let query = self.queries.last().expect("asked").id;
        self.respond_to(query, Ok(response));
        self
    }

    fn respond_to(&mut self, query: u64, outcome: Result<TreeResponse, QueryFailed>) {
        self.handle(Payload::TreeResponse { query, outcome: Arc::new(outcome), size_bytes: 1 });
    }

    fn subscribe(&mut self) {
        self.handle(Payload::Subscribed { publisher_id: None });
    }

    fn unsubscribe(&mut self) {
        self.handle(Payload::Unsubscribed { publisher_id: None });
    }

    fn request(&mut self) {
        assert!(self.intake.request_dump(Worker::new(WORKER, 0)));
        self.pass(0);
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
        let response = json!({"status": "healthy", "instances": instances}).to_string().into();
        self.handle(Payload::Health { frontend: frontend.into(), response });
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
        let held = self.cluster.tree_of(WorkerIx(0)).held_by(Slot(0)).into_iter();
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

#[test]
fn a_broker_that_discovery_names_is_listened_to_until_no_entry_names_it() {
    let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
    let source = intake.source("discovery", SourceKind::Discovery, Millis(1), &mut cluster).expect("room");
    let mut registered = |topic: &str, xpub: &[&str]| {
        let key = format!(
            "v1/event_channels/namespace/dynamo/component/zmq_broker/endpoint/generate/topic/{topic}/7"
        );
        let value = json!({"type": "EventChannel", "topic": topic, "instance_id": 7,
            "scope": {"kind": "endpoint", "endpoint":
                {"namespace": "dynamo", "component": "zmq_broker", "name": "generate"}},
            "transport": {"kind": "ZmqBroker", "config": {"xsub_endpoints": ["tcp://b:1"], "xpub_endpoints": xpub}}});
        let value = (!xpub.is_empty()).then(|| value.to_string().into());
        let payload = Payload::Discovery { key: key.into(), value, lease: None };
        intake.handle(&Received { source, at_ms: Millis(2), payload }, &mut cluster);
        intake.commands()
    };
    let listen = |endpoint: &str| Command::ListenToBroker { endpoint: endpoint.to_owned() };
    let leave = |endpoint: &str| Command::LeaveBroker { endpoint: endpoint.to_owned() };
    assert_eq!(registered("a", &["tcp://b:2", "tcp://c:2"]), [listen("tcp://b:2"), listen("tcp://c:2")]);
    assert_eq!(registered("a", &["tcp://b:2"]), [leave("tcp://c:2")]);
    assert_eq!(registered("b", &["tcp://b:2"]), [listen("tcp://b:2")]);
    assert_eq!(registered("a", &[]), []);
    assert_eq!(registered("b", &[]), [leave("tcp://b:2")]);
}

#[test]
fn a_subject_of_nats_that_is_not_built_as_usual_is_subscribed_to() {
    let named = |prefix: &str, topic: &str| {
        let key =
            format!("v1/event_channels/namespace/dynamo/component/backend/endpoint/generate/topic/{topic}/7");
        let value = json!({"type": "EventChannel", "topic": topic, "instance_id": 7,
            "scope": {"kind": "endpoint", "endpoint":
                {"namespace": "dynamo", "component": "backend", "name": "generate"}},
            "transport": {"kind": "Nats", "config": {"subject_prefix": prefix}}});
        let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
        let source =
            intake.source("discovery", SourceKind::Discovery, Millis(1), &mut cluster).expect("room");
        let value = Some(value.to_string().into());
        let payload = Payload::Discovery { key: key.into(), value, lease: None };
        intake.handle(&Received { source, at_ms: Millis(2), payload }, &mut cluster);
        intake.commands()
    };
    assert_eq!(named("namespace.dynamo.component.backend.endpoint.generate", "kv-events"), []);
    assert_eq!(named("ours.*", "kv-events"), [], "no wildcard");
    assert_eq!(named("ours", "something-else"), []);
    let [Command::Subscribe(named)] = &named("ours.of.them", "kv-events")[..] else { panic!("one command") };
    assert_eq!((&*named.text, &*named.subject.namespace), ("ours.of.them.kv-events", "dynamo"));
}
