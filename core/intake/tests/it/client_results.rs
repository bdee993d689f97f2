//! What aiperf measured of requests to real Dynamo, joined with the decisions that the frontend's log has of them, in whatever order both
//! are read.

use radixscope_intake::{Intake, Payload, Received};
use radixscope_model::id::{Millis, SourceIx};
use radixscope_model::record::{Outcome, RejectReason, SourceKind};
use radixscope_state::cluster::Cluster;

const RESULTS: &str = include_str!("../../../../tests/fixtures/aiperf/0.13.0/profile_export.jsonl");
const LOG: &str = include_str!("../../../../tests/fixtures/aiperf/0.13.0/frontend.log");
/// After the requests of both.
const BEGIN: Millis = Millis(1_795_762_401_000);

struct Scene {
    intake: Intake,
    cluster: Cluster,
    log: SourceIx,
    results: SourceIx,
    now: Millis,
}

impl Scene {
    fn new() -> Self {
        let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
        let log = intake.source("log", SourceKind::Logs, BEGIN, &mut cluster).unwrap();
        let results = intake.source("results", SourceKind::ClientResults, BEGIN, &mut cluster).unwrap();
        Self { intake, cluster, log, results, now: BEGIN }
    }

    fn read(&mut self, source: SourceIx, payload: Payload) {
        self.now.0 += 10;
        let received = Received { source, at_ms: self.now, payload };
        self.intake.handle(&received, &mut self.cluster);
    }

    fn log(&mut self) {
        for line in LOG.lines() {
            self.read(self.log, Payload::LogLine { log: "frontend".into(), line: line.into() });
        }
        self.later(1_000);
    }

    fn results(&mut self) {
        for line in RESULTS.lines() {
            self.read(self.results, Payload::ClientResult { line: line.into() });
        }
        self.later(1_000);
    }

    fn later(&mut self, ms: u64) {
        self.now.0 += ms;
        self.intake.flush(self.now, &mut self.cluster);
    }

    /// Of each decision: the request and the client's time to first token.
    fn joined(&self) -> Vec<(String, Option<u64>)> {
        let all = self.cluster.decisions().newest_first();
        let one = |request: Option<&str>| request.expect("named").to_owned();
        let mut all: Vec<_> = all
            .map(|entry| {
                (one(entry.decision.request_id.as_deref()), entry.client.and_then(|client| client.ttft_us))
            })
            .collect();
        all.sort();
        all
    }
}

#[test]
fn results_are_joined_with_their_requests_in_whatever_order_both_are_read() {
    let (mut before, mut after) = (Scene::new(), Scene::new());
    before.results();
    before.log();
    after.log();
    after.results();
    assert_eq!(before.joined(), after.joined());
    assert_eq!(before.joined().len(), 3);
    let known = |scene: &Scene| scene.joined().iter().filter(|(_, ttft)| ttft.is_some()).count();
    assert_eq!(known(&before), 3);
    let first = before.joined().into_iter().find(|(request, _)| request.starts_with("2e06a316")).unwrap();
    assert_eq!(first.1, Some(49_127), "by the ids in the log");
    for scene in [&before, &after] {
        assert_eq!((scene.cluster.clients().joined(), scene.cluster.clients().unknown()), (3, 0));
    }
}

#[test]
fn a_result_of_no_request_that_is_known_is_counted_as_such() {
    let mut scene = Scene::new();
    scene.results();
    scene.log();
    assert_eq!(scene.cluster.clients().unknown(), 0, "its request may still become known");
    scene.later(61_000);
    let clients = scene.cluster.clients();
    assert_eq!((clients.joined(), clients.unknown(), clients.joined_share()), (3, 1, Some(0.75)));
    let left = clients.unknown_newest_first().next().unwrap();
    assert_eq!((left.outcome, left.status), (Outcome::Failed, Some(404)));
    // Read once more, as after the file was replaced by itself.
    scene.results();
    assert_eq!(scene.cluster.clients().joined(), 3, "each counts once");
}

#[test]
fn results_before_any_log_wait_a_minute_and_are_then_of_no_known_request() {
    let mut scene = Scene::new();
    scene.results();
    scene.later(61_000);
    assert_eq!((scene.cluster.clients().joined(), scene.cluster.clients().unknown()), (0, 4));
    assert_eq!(scene.cluster.decisions().totals().count, 0);
}

#[test]
fn what_cannot_be_read_is_counted() {
    let mut scene = Scene::new();
    let line = r#"{"schema_version":"2.0","requests":[]}"#;
    scene.read(scene.results, Payload::ClientResult { line: line.into() });
    scene.later(1_000);
    let source = &scene.cluster.sources()[scene.results.at()];
    let [rejected] = source.rejected.as_slice() else { panic!("{:?}", source.rejected) };
    assert_eq!((rejected.reason, rejected.count), (RejectReason::UnknownKind, 1));
    assert!(rejected.sample.contains("profile_export.jsonl"), "{}", rejected.sample);
}

#[test]
fn a_snapshot_keeps_what_clients_measured() {
    let mut scene = Scene::new();
    scene.results();
    scene.log();
    scene.later(61_000);
    let (mut reader, mut restored) = (radixscope_state::cluster::SnapshotReader::of_bytes(1 << 20), None);
    scene
        .cluster
        .snapshot(|part| {
            if let Some(cluster) = reader.part(&part).unwrap() {
                restored = Some(cluster);
            }
        })
        .unwrap();
    let restored: Cluster = restored.expect("whole");
    assert_eq!(restored.digest(), scene.cluster.digest());
    assert_eq!(restored.clients(), scene.cluster.clients());
}
