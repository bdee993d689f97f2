//! Measures how many KV events a second of one core takes in: a thousand workers publish as fast as they are taken, over a real
//! NATS server and over ZeroMQ sockets of their own, to a real `radixscope serve`. The figure is of the server's processor time,
//! so that others on the machine do not count.
#![forbid(unsafe_code)]

use std::time::Instant;

use clap::Parser as _;
use radixscope_captures::publisher::{Publisher, frames};
use radixscope_model::id::{BlockHash, TokensHash};
use radixscope_model::record::Block;
use radixscope_tests::discovery::{Folder, event_channel};
use radixscope_tests::envelope::envelope;
use radixscope_tests::figures::number;
use radixscope_tests::flood::{self, Form};
use radixscope_tests::nats::{Nats, Options as NatsOptions};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::report::ReportFile;
use radixscope_tests::synthetic_tree::{Change, RouterEvent};
use radixscope_tests::wait;
use serde_json::{Value, json};

const TOPIC: &str = "kv-events";
/// Ids of publishers begin here. As Dynamo's they do not fit into four bytes.
const PUBLISHER_IDS: u64 = 0x6a6c_a1fa_0000_0000;
/// Blocks in a stored event: a prompt's new part.
const BLOCKS: u64 = 4;
/// Events until what was stored is dropped. Odd, as those that drop are odd and those that store are even.
const EVENTS_HELD: u64 = 51;
/// Least events per second that one core of the server has to do.
const BUDGET_EVENTS_PER_CORE_S: f64 = 250_000.0;

#[derive(clap::Parser)]
struct Options {
    #[command(flatten)]
    report: ReportFile,
    /// Workers that publish
    #[arg(long, default_value_t = 1_000)]
    workers: u64,
    /// Events of all of them together
    #[arg(long, default_value_t = 400_000)]
    events: u64,
}

/// What came of one plane.
struct Taken {
    plane: &'static str,
    received: u64,
    lost: u64,
    took_s: f64,
    cpu_s: f64,
}

#[tokio::main]
async fn main() {
    let Options { report, workers, events } = Options::parse();
    let mut rows = Vec::new();
    let mut report_row = |Taken { plane, received, lost, took_s, cpu_s }| {
        let per_core = received as f64 / cpu_s;
        println!(
            "{plane}, {workers} workers: {received} events in {took_s:.1} s, {lost} lost, {cpu_s:.2} s of processor: \
             {per_core:.0} events per second of one core"
        );
        let whom = format!("{workers} workers over {plane}");
        rows.push(json!({
            "what": format!("events per second of one core, {whom}"), "value": per_core, "unit": "events/s",
            "budget": format!("≥ {BUDGET_EVENTS_PER_CORE_S}"), "within": per_core >= BUDGET_EVENTS_PER_CORE_S,
        }));
        rows.push(json!({
            "what": format!("lost, {whom}"), "value": lost, "unit": "events", "budget": "0", "within": lost == 0,
        }));
    };
    report_row(over_nats(workers, events).await);
    report_row(over_zmq(workers, events).await);
    report.write(&json!({"rows": rows}));
}

async fn over_nats(workers: u64, events: u64) -> Taken {
    let nats = Nats::with(NatsOptions { jetstream: false, ..NatsOptions::default() }).await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    let messages: Vec<_> = (0..events).map(|n| envelope_of(n % workers, n / workers).into()).collect();
    let client = nats.client().await;
    let (cpu, started) = (server.process().cpu_time(), Instant::now());
    flood::send(&client, Form::Envelope, 0..events, messages.into_iter()).await;
    taken("NATS", &server, events, started, cpu).await
}

async fn over_zmq(workers: u64, events: u64) -> Taken {
    let folder = Folder::default();
    let publishers: Vec<_> = (0..workers).map(|_| Publisher::bind(1)).collect();
    for (worker, publisher) in (0..).zip(&publishers) {
        let (key, value) = event_channel(TOPIC, PUBLISHER_IDS + worker, &publisher.endpoint());
        folder.put(&key, &value);
    }
    let server = Radixscope::start(["serve", "--discovery", &folder.url(), "--tree-dumps", "off"]).await;
    publishers.iter().for_each(|publisher| publisher.wait_for_subscribers(TOPIC, 1));
    let message = |n: u64| {
        let (worker, own) = (n % workers, n / workers);
        frames(TOPIC, PUBLISHER_IDS + worker, own, &envelope_of(worker, own))
    };
    let messages: Vec<_> = (0..events).map(message).collect();
    let (cpu, started) = (server.process().cpu_time(), Instant::now());
    let publishing = tokio::task::spawn_blocking(move || {
        for (n, message) in messages.iter().enumerate() {
            publishers[n % publishers.len()].publish(message);
        }
        publishers
    });
    let publishers = publishing.await.expect("publishers do not fail");
    let taken = taken("ZeroMQ", &server, events, started, cpu).await;
    // First: it would connect again to each of a thousand publishers that ends.
    drop(server);
    drop(publishers);
    taken
}

/// A worker's event number `own`, as one batch. Every second one drops what was stored some events before, as in a warm engine.
fn envelope_of(worker: u64, own: u64) -> Vec<u8> {
    // Spread as hashes are.
    let hashes = |own: u64| (0..BLOCKS).map(move |n| mix(worker << 40 | own << 8 | n));
    let change = match own.checked_sub(EVENTS_HELD) {
        Some(old) if own % 2 == 1 => Change::Removed(hashes(old).map(BlockHash).collect()),
        _ => {
            let block = |hash| Block { block_hash: BlockHash(hash), tokens_hash: TokensHash(mix(hash)) };
            Change::Stored { parent: None, blocks: hashes(own).map(block).collect() }
        }
    };
    let event = RouterEvent::new(PUBLISHER_IDS + worker, own + 1, &change);
    envelope(PUBLISHER_IDS + worker, own, TOPIC, &[event])
}

fn mix(n: u64) -> u64 {
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// What the server took in, once it has everything or reports it as lost.
async fn taken(
    plane: &'static str,
    server: &Radixscope,
    sent: u64,
    started: Instant,
    cpu: std::time::Duration,
) -> Taken {
    let counts = |cluster: &Value| {
        let sources = cluster["sources"].as_array().expect("sources");
        let plane = sources.iter().find(|source| source["kind"] == "nats" || source["kind"] == "zmq");
        let plane = plane.expect("the event plane");
        let missed = plane["missed"].as_array().expect("a list");
        (number(plane, "received"), missed.iter().map(|missed| number(missed, "count")).sum::<u64>())
    };
    let is_all = |cluster: &Value| {
        let (received, lost) = counts(cluster);
        wait::expect(received + lost >= sent, || format!("{received} received, {lost} lost"))
    };
    let cluster = server.until_cluster("everything is received or lost", is_all).await;
    let (received, lost) = counts(&cluster);
    let cpu_s = (server.process().cpu_time() - cpu).as_secs_f64();
    Taken { plane, received, lost, took_s: started.elapsed().as_secs_f64(), cpu_s }
}
