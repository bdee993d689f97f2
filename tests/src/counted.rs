//! A capture replayed through a real NATS server, and everything that the server then shows held against the figures counted from
//! it by other means: received live, read from a stream's history, or half and half.

use crate::capture::{Capture, Message};
use crate::nats::Nats;
use crate::radixscope::Radixscope;
use crate::{figures, replay};
use serde_json::Value;

/// Compares everything with the figures: nothing lost, nothing rejected, a viewer that agrees.
pub async fn check(server: &Radixscope, capture: &Capture) -> Value {
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

/// Replays a capture to a server that listens, and checks what it shows.
pub async fn live(name: &'static str) {
    let nats = Nats::start().await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    let capture = Capture::load(name);
    replay::publish(&nats.client().await, &capture.messages).await;
    check(&server, &capture).await;
}

/// Keeps `before` in the stream before the server starts and says `after` while it may still be reading history.
pub async fn from_history(capture: &Capture, before: &[Message], after: &[Message], rest: &[Message]) {
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
