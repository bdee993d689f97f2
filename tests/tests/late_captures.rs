//! Recordings of real Dynamo that ran already, said again through real sockets to the program that attaches to them: what
//! it shows in the end is what the workers held in truth, block for block, and nothing is found that is not so.

use radixscope_tests::late::{Attaching, Deployment, FoundBy, source, truth};
use radixscope_tests::radixscope::Radixscope;
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

/// What was lost, and what was got back.
fn losses(source: &Value) -> (u64, u64) {
    let number = |name: &str| source[name].as_u64().expect("a number");
    (number("missed_total"), number("recovered_total"))
}

/// Nothing was found but what attaching late itself says.
async fn finds_only(server: &Radixscope, expected: &[&str]) {
    let mut found = truth::found(server).await;
    found.retain(|code| code != "tree_partial" && code != "joined_late");
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

async fn over_nats(attaching: Attaching, requests: bool) {
    let mut deployment = Deployment::start(attaching).await;
    let server = deployment.attach().await;
    deployment.play(&server, requests).await;
    let cluster = truth::agrees(&server, deployment.truth(), &[]).await;
    let nats = source(&cluster, "nats");
    assert_eq!((losses(nats), &nats["rejected"], &nats["dropped"]), ((0, 0), &json!([]), &json!(0)));
    let asked = deployment.asked();
    assert_eq!(asked.len(), 3, "each worker is asked once: {asked:?}");
    assert!(asked.iter().all(|(_, start)| start.is_none()), "for all its blocks: {asked:?}");
    finds_only(&server, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_nats_a_dump_and_the_events_since_are_the_truth() {
    over_nats(OVER_NATS, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_nats_with_decisions_it_is_the_same() {
    over_nats(Attaching { name: "1.6.1-nats-late-replica-sync", ..OVER_NATS }, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_of_0_9_answer_on_request() {
    over_nats(Attaching { name: "0.9.1-localindexer-late", ..OVER_NATS }, true).await;
}

/// What is lost is got back, each message that can be counted once.
async fn lossy(attaching: Attaching, kind: &str, left: &[u64]) -> (Radixscope, Deployment) {
    let mut deployment = Deployment::start(Attaching { loses: one_in_twenty, ..attaching }).await;
    let server = deployment.attach().await;
    deployment.play(&server, false).await;
    let cluster = truth::agrees(&server, deployment.truth(), left).await;
    let lost = deployment.lost();
    assert!(lost > 100, "{lost}");
    let source = source(&cluster, kind);
    let (missed, recovered) = losses(source);
    assert_eq!(missed, recovered, "all of it was got back: {source}");
    // What the last messages of a publisher were nobody can tell.
    assert!((lost / 2..=lost).contains(&missed), "{lost} lost, {missed} missed");
    let ranges = deployment.asked().iter().filter(|(_, start)| start.is_some()).count();
    assert!(ranges > 0, "{:?}", deployment.asked());
    (server, deployment)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_nats_lost_events_are_got_back() {
    let (server, _deployment) = lossy(OVER_NATS, "nats", &[]).await;
    finds_only(&server, &[]).await;
}

const OVER_ZMQ: Attaching = Attaching {
    name: "1.6.1-zmq-default",
    before: Some(("mid", 1.0)),
    found_by: FoundBy::Folder,
    loses: nothing,
};

async fn over_zmq(attaching: Attaching, queries: usize) {
    let mut deployment = Deployment::start(attaching).await;
    let server = deployment.attach().await;
    deployment.play(&server, false).await;
    let cluster = truth::agrees(&server, deployment.truth(), &[]).await;
    let zmq = source(&cluster, "zmq");
    assert_eq!((losses(zmq), &zmq["rejected"], &zmq["dropped"]), ((0, 0), &json!([]), &json!(0)));
    let asked = deployment.asked();
    assert!(asked.len() == queries && asked.iter().all(|(_, start)| start.is_none()), "{asked:?}");
    finds_only(&server, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_zeromq_from_discovery_alone_a_late_viewer_is_complete() {
    over_zmq(OVER_ZMQ, 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_zeromq_from_the_first_event_on_nobody_is_asked() {
    over_zmq(Attaching { before: None, ..OVER_ZMQ }, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_zeromq_lost_events_are_got_back() {
    let (server, _deployment) = lossy(OVER_ZMQ, "zmq", &[]).await;
    finds_only(&server, &[]).await;
}

const RESTARTS: Attaching =
    Attaching { name: "1.6.1-zmq-etcd-restarts", before: None, found_by: FoundBy::Etcd, loses: nothing };
/// Those that were killed and told to end.
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
    finds_only(&server, &["worker_gone", "worker_stopped"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn losses_while_workers_end_and_begin_anew_are_got_back() {
    let (server, _deployment) = lossy(RESTARTS, "zmq", &LEFT).await;
    finds_only(&server, &["worker_gone", "worker_stopped"]).await;
}
