//! What fifteen minutes of history cost a server in memory: the same events to one that keeps them and one that does not.

use radixscope_bench::synthetic_tree::{SUBJECT, SyntheticTree, Wire};
use radixscope_tests::figures::{number, sum};
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::Value;

use crate::{at_most, row};

const WORKERS: u16 = 8;
const SEED: u64 = 2_026;
const BLOCKS: u64 = 100_000;
/// Fifteen minutes at a thousand events a second.
const EVENTS: u64 = 900_000;
/// They are published as fast as both servers take them: so many messages ahead at most.
const AHEAD: u64 = 200;
/// The least that the server has for its history.
const BUDGET_MIB: f64 = 256.0;
const MIB: f64 = 1024.0 * 1024.0;

/// Resident memory with and without history, and what the history says of itself.
pub(crate) async fn measure() -> Vec<Value> {
    let nats = Nats::start().await;
    let with = Radixscope::serve_with(&nats.url(), &["--history", "15m"]).await;
    let without = Radixscope::serve_with(&nats.url(), &["--history", "0"]).await;
    let servers = [&with, &without];
    for server in servers {
        server.until_ready().await;
    }
    let client = nats.client().await;
    let (mut tree, mut wire) = (SyntheticTree::new(BLOCKS, WORKERS, SEED), Wire::new(WORKERS));
    let mut published = 0;
    let mut publish = async |message: Vec<u8>| {
        client.publish(SUBJECT, message.into()).await.expect("NATS takes what it is sent");
        published += 1;
        if published % AHEAD == 0 {
            client.flush().await.expect("NATS takes what it is sent");
            received(&servers, published - AHEAD / 2).await;
        }
    };
    let grown_events: Vec<_> = tree.by_ref().collect();
    let live = (0..EVENTS).map(|_| tree.live());
    for event in grown_events.into_iter().chain(live) {
        if let Some(message) = wire.take(event) {
            publish(message).await;
        }
    }
    for message in wire.flush() {
        publish(message).await;
    }
    client.flush().await.expect("NATS takes what it is sent");
    received(&servers, published).await;
    let retained = number(&with.json("/history").await["kept"], "bytes") as f64;
    let rss = servers.map(|server| server.process().rss_bytes() as f64);
    let what = |label: &str| format!("history of 15 min at 1,000 events/s, 100,000 blocks: {label}");
    let more = rss[0] - rss[1];
    vec![
        row(&what("server's memory with it"), rss[0] / MIB, "MiB", None),
        row(&what("the same with --history 0"), rss[1] / MIB, "MiB", None),
        at_most(&what("difference"), more / MIB, "MiB", BUDGET_MIB),
        row(&what("bytes that it holds, by itself"), retained / MIB, "MiB", None),
        row(&what("memory per event"), more / EVENTS as f64, "bytes", None),
        row(&what("the same, an hour"), more * 4.0 / MIB, "MiB", None),
    ]
}

/// Waits until each has received so many messages.
async fn received(servers: &[&Radixscope], messages: u64) {
    for server in servers {
        wait::until("the events are received", async || {
            let cluster = server.cluster().await;
            let received_count = sum(cluster["sources"].as_array().expect("sources"), "received");
            wait::expect(received_count >= messages, || format!("{received_count} of {messages}"))
        })
        .await;
    }
}
