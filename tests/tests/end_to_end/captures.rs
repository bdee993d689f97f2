//! Every capture of real Dynamo, replayed through a real NATS server, comes to the figures counted from it by other means:
//! received live, read from a stream's history, or half and half.

use radixscope_tests::capture::{self, Capture, Message};
use radixscope_tests::figures;
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::replay;
use serde_json::Value;

/// Compares everything with the figures: nothing lost, nothing rejected, a viewer that agrees.
async fn check(server: &Radixscope, capture: &Capture) -> Value {
    let cluster = server.until_quiet(capture.publications() as u64).await;
    let figures = figures::of(capture.name);
    figures.check_cluster(&cluster).unwrap_or_else(|e| panic!("{}: {e}", capture.name));
    let decisions = server.json("/api/v1/decisions?limit=10000").await;
    figures.check_decisions(&decisions).unwrap_or_else(|e| panic!("{}: {e}", capture.name));
    for source in cluster["sources"].as_array().unwrap() {
        let (missed, rejected) = (&source["missed"], &source["rejected"]);
        assert!(missed.as_array().unwrap().is_empty(), "{}: nothing is lost: {missed}", capture.name);
        assert!(
            rejected.as_array().unwrap().is_empty(),
            "{}: everything is understood: {rejected}",
            capture.name
        );
        assert_eq!((&source["dropped"], &source["state"]), (&0.into(), &"live".into()), "{}", capture.name);
    }
    server.viewer().await.agrees_with(server).await;
    cluster
}

async fn live(name: &'static str) {
    let nats = Nats::start().await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    let capture = Capture::load(name);
    replay::publish(&nats.client().await, &capture.messages).await;
    check(&server, &capture).await;
}

macro_rules! live {
    ($($test:ident: $name:literal),* $(,)?) => {$(
        #[tokio::test]
        async fn $test() {
            live($name).await;
        }
    )*};
}
live! {
    jetstream_line_of_0_9_1: "0.9.1-healthy",
    relay_path_of_0_9_1: "0.9.1-healthy-vllm",
    local_indexer_line_of_0_9_1: "0.9.1-localindexer",
    short_run_of_0_9_1: "0.9.1-log-jsonl-info",
    block_size_mismatch_of_0_9_1: "0.9.1-mismatch",
    workers_without_events_of_0_9_1: "0.9.1-no-events",
    restarted_worker_of_0_9_1: "0.9.1-worker-restart",
    healthy_1_6_1: "1.6.1-healthy",
    short_run_of_1_6_1: "1.6.1-log-jsonl-debug",
    block_size_mismatch_of_1_6_1: "1.6.1-mismatch",
    router_restart_of_1_6_1: "1.6.1-router-restart",
}

#[test]
fn every_capture_has_its_test() {
    assert_eq!(capture::ALL.len(), 11);
}

/// Keeps `before` in the stream before the server starts and says `after` while it may still be reading history.
async fn from_history(capture: &Capture, before: &[Message], after: &[Message], rest: &[Message]) {
    let nats = Nats::start().await;
    let jetstream = nats.jetstream().await;
    let streams = replay::create_streams(&jetstream, before).await;
    replay::publish_retained(&jetstream, before).await;
    let server = Radixscope::serve(&nats.url()).await;
    replay::publish_retained(&jetstream, after).await;
    server.until_ready().await;
    // A router reads the stream too: what is delivered to it must not count again, and its consumer must stay the
    // only one.
    replay::pull_like_a_router(&jetstream, &streams[0], "7587893521234", 100).await;
    replay::publish(&nats.client().await, rest).await;
    check(&server, capture).await;
    for stream in &streams {
        assert_eq!(replay::consumers(&jetstream, stream).await, ["7587893521234"], "{}", capture.name);
    }
}

#[tokio::test]
async fn history_of_a_stream_comes_to_the_same() {
    for name in capture::JETSTREAM {
        let capture = Capture::load(name);
        let (retained, rest) = capture.split_by_stream();
        from_history(&capture, &retained, &[], &rest).await;
    }
}

#[tokio::test]
async fn half_history_half_live_counts_nothing_twice_and_misses_nothing() {
    for name in capture::JETSTREAM {
        let capture = Capture::load(name);
        let (retained, rest) = capture.split_by_stream();
        let (before, after) = retained.split_at(retained.len() / 2);
        from_history(&capture, before, after, &rest).await;
    }
}
