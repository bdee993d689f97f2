//! Recordings of real Dynamo that ran already, replayed through real sockets to the program that attaches to them: what
//! it shows in the end is what the workers held in truth, block for block, and nothing is found that is not so.

use std::collections::BTreeSet;

use radixscope_captures::Recording;
use radixscope_exhaustive::resources;
use radixscope_tests::late::{Attaching, Deployment, FoundBy, source, truth};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::{Value, json};

fn nothing(_: u64) -> bool {
    false
}

fn one_in_twenty(message: u64) -> bool {
    message.is_multiple_of(20)
}

const OVER_NATS: Attaching = Attaching {
    name: "1.6.1-nats-late",
    before: Some(("late", 1.0)),
    found_by: FoundBy::Frontend,
    loses: nothing,
};

const WITH_DECISIONS: Attaching = Attaching { name: "1.6.1-nats-late-replica-sync", ..OVER_NATS };
const OF_0_9: Attaching = Attaching { name: "0.9.1-localindexer-late", ..OVER_NATS };

/// What was lost, and what was got back.
fn losses(source: &Value) -> (u64, u64) {
    let number = |name: &str| source[name].as_u64().expect("a number");
    (number("missed_total"), number("recovered_total"))
}

/// Findings of attaching late, and of departed workers.
const ALWAYS: [&str; 3] = ["tree_partial", "worker_stopped", "worker_gone"];
/// What is judged by how fast requests and events follow each other, which is not as it was recorded.
const BY_PACE: [&str; 6] =
    ["slo_breach", "queueing", "churn", "hot_worker", "starved_worker", "in_flight_imbalance"];

/// Nothing else was found.
async fn finds_nothing_else(server: &Radixscope) {
    let found = truth::found(server).await;
    let is_expected = |code: &&String| ALWAYS.iter().chain(&BY_PACE).any(|one| one == code);
    let others: Vec<&String> = found.iter().filter(|code| !is_expected(code)).collect();
    assert!(others.is_empty(), "{others:?}");
    let cluster = server.cluster().await;
    let has_left = cluster["workers"].as_array().expect("workers").iter().any(|one| !one["gone"].is_null());
    let tells = found.contains("worker_stopped") || found.contains("worker_gone");
    assert_eq!(tells, has_left, "{found:?}");
}

async fn over_nats(attaching: Attaching, requests: bool) {
    let mut deployment = Deployment::start(attaching).await;
    let server = deployment.attach().await;
    deployment.play(&server, requests).await;
    let cluster = truth::agrees(&server, deployment.truth(), &[]).await;
    let nats = source(&cluster, "nats");
    assert_eq!((losses(nats), &nats["rejected"], &nats["dropped"]), ((0, 0), &json!([]), &json!(0)));
    let asked = deployment.queried();
    assert_eq!(asked.len(), 3, "each worker is asked once: {asked:?}");
    assert!(asked.iter().all(|(_, start)| start.is_none()), "for all its blocks: {asked:?}");
    finds_nothing_else(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_nats_with_decisions_it_is_the_same() {
    over_nats(WITH_DECISIONS, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_of_0_9_answer_on_request() {
    over_nats(OF_0_9, true).await;
}

/// One message of twenty is lost: each counts once, and all are got back.
async fn lossy(attaching: Attaching, kind: &str, left: &[u64]) {
    let mut deployment = Deployment::start(Attaching { loses: one_in_twenty, ..attaching }).await;
    let server = deployment.attach().await;
    deployment.play(&server, false).await;
    truth::agrees(&server, deployment.truth(), left).await;
    let lost = deployment.lost();
    assert!(lost > 50, "{lost}");
    let cluster = server
        .until_cluster("what was lost is counted and got back", |cluster| {
            let source = source(cluster, kind);
            wait::expect(losses(source) == (lost, lost), || format!("{lost} lost: {source}"))
        })
        .await;
    assert_eq!(source(&cluster, kind)["missed_at_least"], false);
    let ranges = deployment.queried().iter().filter(|(_, start)| start.is_some()).count();
    assert!(ranges > 10, "{:?}", deployment.queried());
    finds_nothing_else(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_nats_lost_events_are_got_back() {
    lossy(OVER_NATS, "nats", &[]).await;
}

const OVER_ZMQ: Attaching = Attaching {
    name: "1.6.1-zmq-default",
    before: Some(("mid", 1.0)),
    found_by: FoundBy::Folder,
    loses: nothing,
};

async fn over_zmq(attaching: Attaching) -> Value {
    let mut deployment = Deployment::start(attaching).await;
    let server = deployment.attach().await;
    deployment.play(&server, false).await;
    let cluster = truth::agrees(&server, deployment.truth(), &[]).await;
    let zmq = source(&cluster, "zmq");
    assert_eq!((losses(zmq), &zmq["rejected"], &zmq["dropped"]), ((0, 0), &json!([]), &json!(0)));
    let asked = deployment.queried();
    assert!(asked.len() <= 3 && asked.iter().all(|(_, start)| start.is_none()), "at most once: {asked:?}");
    finds_nothing_else(&server).await;
    cluster
}

/// Event plane and discovery of 1.7 as they are by default.
const OF_1_7: Attaching =
    Attaching { name: "1.7.0.dev20261026-zmq-etcd", found_by: FoundBy::Etcd, ..OVER_ZMQ };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_default_plane_of_1_7_is_complete_from_etcd_alone() {
    over_zmq(OF_1_7).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_zeromq_lost_events_are_got_back() {
    lossy(OVER_ZMQ, "zmq", &[]).await;
}

const RESTARTS: Attaching =
    Attaching { name: "1.6.1-zmq-etcd-restarts", before: None, found_by: FoundBy::Etcd, loses: nothing };

/// Those that were killed and those that were stopped.
const LEFT: [u64; 2] = [7_668_682_384_961_603_605, 7_668_682_384_961_603_610];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_end_and_begin_anew_are_followed_by_etcd() {
    let mut deployment = Deployment::start(RESTARTS).await;
    let server = deployment.attach().await;
    deployment.play(&server, false).await;
    let cluster = truth::agrees(&server, deployment.truth(), &LEFT).await;
    assert_eq!(cluster["workers"].as_array().map(Vec::len), Some(5), "two began anew");
    let zmq = source(&cluster, "zmq");
    assert_eq!((losses(zmq), &zmq["rejected"], &zmq["dropped"]), ((0, 0), &json!([]), &json!(0)));
    finds_nothing_else(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_zeromq_from_kubernetes_alone_a_late_viewer_is_complete() {
    over_zmq(Attaching { found_by: FoundBy::Other(resources::start), ..OVER_ZMQ }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_end_and_begin_anew_are_followed_by_kubernetes() {
    let mut deployment =
        Deployment::start(Attaching { found_by: FoundBy::Other(resources::start), ..RESTARTS }).await;
    let server = deployment.attach().await;
    deployment.play(&server, false).await;
    let cluster = truth::agrees(&server, deployment.truth(), &LEFT).await;
    let zmq = source(&cluster, "zmq");
    assert_eq!((losses(zmq), &zmq["rejected"], &zmq["dropped"]), ((0, 0), &json!([]), &json!(0)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn losses_while_workers_end_and_begin_anew_are_got_back() {
    lossy(RESTARTS, "zmq", &LEFT).await;
}

#[test]
fn every_recording_of_which_the_truth_is_known_has_its_test() {
    let folder = Recording::late("").folder().to_owned();
    let entries =
        std::fs::read_dir(folder).expect("the recordings").map(|entry| entry.expect("an entry").path());
    let known: BTreeSet<String> = entries
        .filter(|path| path.join("truth.json.gz").is_file())
        .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
        .collect();
    let tested = [OVER_NATS, WITH_DECISIONS, OF_0_9, OVER_ZMQ, OF_1_7, RESTARTS].map(|of| of.name);
    assert_eq!(known, tested.map(str::to_owned).into());
}
