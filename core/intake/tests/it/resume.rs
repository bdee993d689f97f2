//! Going on from a state that was kept: nothing of it is lost, nothing of it is certain, and who left meanwhile has left.

use radixscope_intake::{Break, Intake, NatsSubjects, Payload, Received};
use radixscope_model::id::{Millis, SourceIx, Worker, WorkerIx};
use radixscope_model::record::{DepartureCause, KnowledgeWhy, LinkState, SourceKind, TreeKnowledge};
use radixscope_state::cluster::Cluster;
use serde_json::json;

const START_MS: u64 = 1_800_000_000_000;
const STAYS: u64 = 0x6a6c;
const LEAVES: u64 = 0x77;

const CORE: &str = "namespace.dynamo.component.backend.kv-events";
const STREAM: &str = "namespace-dynamo-component-backend-kv-events.kv-events";

struct Server {
    intake: Intake,
    /// Of KV events.
    subject: &'static str,
    nats: SourceIx,
    discovery: SourceIx,
}

impl Server {
    fn start(mut intake: Intake, subject: &'static str, at: u64, cluster: &mut Cluster) -> Self {
        let mut source = |name, kind| intake.source(name, kind, Millis(at), cluster).unwrap();
        let (nats, discovery) = (source("nats", SourceKind::Nats), source("etcd", SourceKind::Discovery));
        Self { intake, subject, nats, discovery }
    }

    fn stored(&mut self, at: u64, worker: u64, event_id: u64, block: u64, cluster: &mut Cluster) {
        let blocks = [json!({"block_hash": block, "tokens_hash": block})];
        let data = json!({"stored": {"parent_hash": null, "blocks": blocks}});
        let event = json!({"event_id": event_id, "data": data, "dp_rank": 0});
        let message = json!({"worker_id": worker, "event": event}).to_string();
        let payload = NatsSubjects::default().publication(self.subject, None, message.into()).unwrap();
        self.intake.handle(&Received { source: self.nats, at_ms: Millis(at), payload }, cluster);
    }

    fn discovered(&mut self, at: u64, worker: u64, cluster: &mut Cluster) {
        let entry = json!({"type": "Endpoint", "namespace": "dynamo", "component": "backend", "endpoint": "generate",
            "instance_id": worker});
        let key = format!("v1/instances/dynamo/backend/generate/{worker:x}").into();
        let payload = Payload::Discovery { key, value: Some(entry.to_string().into()), lease: None };
        self.intake.handle(&Received { source: self.discovery, at_ms: Millis(at), payload }, cluster);
    }
}

/// The state after two workers spoke, and a server that goes on from it after five seconds.
fn resumed(subject: &'static str) -> (Server, Cluster) {
    let mut cluster = Cluster::default();
    let mut before = Server::start(Intake::default(), subject, START_MS, &mut cluster);
    before.stored(START_MS, STAYS, 0, 1, &mut cluster);
    before.stored(START_MS, LEAVES, 0, 2, &mut cluster);
    before.intake.flush(Millis(START_MS), &mut cluster);
    assert!((0..2).all(|ix| cluster.worker(WorkerIx(ix)).unwrap().knowledge.is_complete()));
    let mut intake = Intake::default();
    let away = Break { since_ms: Millis(START_MS + 1), until_ms: Millis(START_MS + 5_000) };
    intake.resume(away, &mut cluster);
    (Server::start(intake, subject, START_MS + 5_000, &mut cluster), cluster)
}

#[test]
fn what_was_known_is_there_and_doubted_from_the_last_moment_on() {
    let (mut server, mut cluster) = resumed(CORE);
    assert_eq!(cluster.sources().len(), 2, "the same sources");
    assert!(cluster.sources().iter().all(|source| source.state == LinkState::Connecting));
    for ix in [WorkerIx(0), WorkerIx(1)] {
        let knowledge = &cluster.worker(ix).unwrap().knowledge;
        let expected = (TreeKnowledge::Partial, KnowledgeWhy::ConnectionBroke, Millis(START_MS + 1));
        assert_eq!((knowledge.state, knowledge.why, knowledge.since_ms), expected);
        assert_eq!(cluster.blocks(ix), Some(1));
    }
    server.intake.flush(Millis(START_MS + 6_000), &mut cluster);
    assert_eq!(cluster.gaps_total(), 1);
    let gap = cluster.sources()[server.nats.at()].all_gaps()[0];
    assert_eq!((gap.since_ms, gap.until_ms), (Millis(START_MS + 1), Millis(START_MS + 5_000)));
    // In the middle of its events it goes on being the same worker.
    server.stored(START_MS + 7_000, STAYS, 9, 3, &mut cluster);
    assert_eq!((cluster.workers().len(), cluster.blocks(WorkerIx(0))), (2, Some(2)));
    assert_eq!(cluster.worker_ix(Worker::new(STAYS, 0)), Some(WorkerIx(0)));
}

#[test]
fn a_worker_that_begins_anew_holds_nothing_of_before() {
    let (mut server, mut cluster) = resumed(CORE);
    server.stored(START_MS + 7_000, STAYS, 0, 3, &mut cluster);
    let worker = cluster.worker(WorkerIx(0)).unwrap();
    assert_eq!(worker.knowledge.why, KnowledgeWhy::FromFirstEvent);
    assert_eq!((cluster.blocks(WorkerIx(0)), cluster.blocks(WorkerIx(1))), (Some(1), Some(1)));
}

#[test]
fn a_stream_is_read_again_from_its_beginning_so_that_nothing_of_it_was_missed() {
    let (mut server, mut cluster) = resumed(STREAM);
    server.intake.flush(Millis(START_MS + 6_000), &mut cluster);
    assert_eq!(cluster.gaps_total(), 0);
    let knowledge = |cluster: &Cluster| {
        let knowledge = &cluster.worker(WorkerIx(0)).unwrap().knowledge;
        (knowledge.state, knowledge.why)
    };
    assert_eq!(knowledge(&cluster), (TreeKnowledge::Partial, KnowledgeWhy::ConnectionBroke));
    server.stored(START_MS + 7_000, STAYS, 0, 3, &mut cluster);
    assert_eq!(knowledge(&cluster), (TreeKnowledge::Complete, KnowledgeWhy::History));
    assert_eq!(cluster.blocks(WorkerIx(0)), Some(1), "what is kept of it is read once more");
}

#[test]
fn who_is_on_no_list_and_silent_has_left_meanwhile() {
    let (mut server, mut cluster) = resumed(CORE);
    server.discovered(START_MS + 6_000, STAYS, &mut cluster);
    server.intake.flush(Millis(START_MS + 34_000), &mut cluster);
    assert!(cluster.workers().iter().all(|worker| worker.departure.is_none()), "lists may still be read");
    server.intake.flush(Millis(START_MS + 36_000), &mut cluster);
    let departed = |ix| cluster.worker(WorkerIx(ix)).unwrap().departure.map(|departure| departure.why);
    assert_eq!((departed(0), departed(1)), (None, Some(DepartureCause::Discovery)));
}
