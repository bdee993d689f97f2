//! Measures how many KV events a second of one core takes in: a thousand workers publish as fast as they are taken, over a real
//! NATS server and over ZeroMQ sockets of their own, to a real `radixscope serve`. The figure is of the server's processor time,
//! so that others on the machine do not count. With `--rates` they publish at one rate after the other instead, which shows at which
//! rate the server falls behind, and whether it, the broker or the publishers have no processor left.
#![forbid(unsafe_code)]

use std::ops::Range;
use std::time::{Duration, Instant};

use async_nats::Client;
use bytes::Bytes;
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
use tokio::time::sleep_until;

const TOPIC: &str = "kv-events";
/// Ids of publishers begin here. As Dynamo's they do not fit into four bytes.
const PUBLISHER_IDS: u64 = 0x6a6c_a1fa_0000_0000;
/// Blocks in a stored event: a prompt's new part.
const BLOCKS: u64 = 4;
/// Events until what was stored is dropped. Odd, as those that drop are odd and those that store are even.
const EVENTS_HELD: u64 = 51;
/// Messages between two waits.
const AT_ONCE: usize = 500;
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
    /// Events a second of all of them together, one rate after the other, with a viewer
    #[arg(long, value_delimiter = ',', conflicts_with = "events")]
    rates: Vec<u64>,
    /// How long each rate lasts, seconds
    #[arg(long, default_value_t = 10)]
    seconds: u64,
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
    let Options { report, workers, events, rates, seconds } = Options::parse();
    let mut rows = Vec::new();
    if !rates.is_empty() {
        for plane in [Plane::nats(workers).await, Plane::zmq(workers).await] {
            rows.extend(at_rates(plane, &rates, seconds).await);
        }
        return report.write(&json!({"rows": rows}));
    }
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
    report_row(as_fast_as_taken(Plane::nats(workers).await, events).await);
    report_row(as_fast_as_taken(Plane::zmq(workers).await, events).await);
    report.write(&json!({"rows": rows}));
}

/// A server that listens to a thousand workers, and their sockets.
struct Plane {
    name: &'static str,
    workers: u64,
    server: Radixscope,
    feed: Feed,
}

/// How messages reach the server.
enum Feed {
    Nats { _nats: Box<Nats>, client: Client },
    Zmq(Vec<Publisher>),
}

/// Messages made before they are published, so that making them takes no time.
enum Messages {
    Nats(Vec<Bytes>),
    Zmq(Vec<[Vec<u8>; 4]>),
}

impl Plane {
    async fn nats(workers: u64) -> Self {
        let nats = Nats::with(NatsOptions { jetstream: false, ..NatsOptions::default() }).await;
        let server = Radixscope::serve(&nats.url()).await;
        server.until_ready().await;
        let client = nats.client().await;
        Self { name: "NATS", workers, server, feed: Feed::Nats { _nats: Box::new(nats), client } }
    }

    async fn zmq(workers: u64) -> Self {
        let folder = Folder::default();
        let publishers: Vec<_> = (0..workers).map(|_| Publisher::bind(1)).collect();
        for (worker, publisher) in (0..).zip(&publishers) {
            let (key, value) = event_channel(TOPIC, PUBLISHER_IDS + worker, &publisher.endpoint());
            folder.put(&key, &value);
        }
        let server = Radixscope::start(["serve", "--discovery", &folder.url(), "--tree-dumps", "off"]).await;
        publishers.iter().for_each(|publisher| publisher.wait_for_subscribers(TOPIC, 1));
        Self { name: "ZeroMQ", workers, server, feed: Feed::Zmq(publishers) }
    }

    fn messages(&self, events: Range<u64>) -> Messages {
        let of = |n: u64| (n % self.workers, n / self.workers);
        match &self.feed {
            Feed::Nats { .. } => {
                let message = |n| envelope_of(of(n).0, of(n).1).into();
                Messages::Nats(events.map(message).collect())
            }
            Feed::Zmq(_) => {
                let message = |n| {
                    let (worker, own) = of(n);
                    frames(TOPIC, PUBLISHER_IDS + worker, own, &envelope_of(worker, own))
                };
                Messages::Zmq(events.map(message).collect())
            }
        }
    }

    /// Publishes them, the first of which is event number `first`: as fast as they are taken, or so many a second.
    async fn publish(&mut self, first: u64, messages: Messages, per_s: Option<u64>) {
        let began = Instant::now();
        let due =
            move |sent: u64| per_s.map(|per_s| began + Duration::from_secs_f64(sent as f64 / per_s as f64));
        match (&mut self.feed, messages) {
            (Feed::Nats { client, .. }, Messages::Nats(messages)) => {
                let mut sent = 0;
                for part in messages.chunks(AT_ONCE) {
                    if let Some(due) = due(sent) {
                        sleep_until(due.into()).await;
                    }
                    let numbers = first + sent..first + sent + part.len() as u64;
                    flood::send(client, Form::Envelope, numbers, part.iter().cloned()).await;
                    sent += part.len() as u64;
                }
            }
            (Feed::Zmq(all), Messages::Zmq(messages)) => {
                let publishers = std::mem::take(all);
                // It blocks while a socket takes no more.
                let publishing = tokio::task::spawn_blocking(move || {
                    for (sent, message) in (0..).zip(&messages) {
                        if sent % AT_ONCE as u64 == 0
                            && let Some(due) = due(sent)
                        {
                            std::thread::sleep(due.saturating_duration_since(Instant::now()));
                        }
                        publishers[(first + sent) as usize % publishers.len()].publish(message);
                    }
                    publishers
                });
                *all = publishing.await.expect("publishers do not fail");
            }
            _ => unreachable!("messages of this plane"),
        }
    }

    /// Ends: the server first, which would connect again to each of a thousand publishers that ends.
    fn end(self) {
        let Self { server, feed, .. } = self;
        drop(server);
        drop(feed);
    }
}

async fn as_fast_as_taken(mut plane: Plane, events: u64) -> Taken {
    let messages = plane.messages(0..events);
    let (cpu, started) = (plane.server.process().cpu_time(), Instant::now());
    plane.publish(0, messages, None).await;
    let taken = taken(plane.name, &plane.server, events, started, cpu).await;
    plane.end();
    taken
}

/// One rate after the other, each for so many seconds: what was published in that time, how long the rest took, what it cost.
async fn at_rates(mut plane: Plane, rates: &[u64], seconds: u64) -> Vec<Value> {
    let viewer = plane.server.viewer().await;
    let (mut sent, mut lost_before) = (0, 0);
    let mut rows = Vec::new();
    for &rate in rates {
        let events = rate * seconds;
        let messages = plane.messages(sent..sent + events);
        viewer.take_gaps();
        let (cpu, started) = (plane.server.process().cpu_time(), Instant::now());
        plane.publish(sent, messages, Some(rate)).await;
        let published_s = started.elapsed().as_secs_f64();
        sent += events;
        let Taken { lost, took_s, cpu_s, .. } = taken(plane.name, &plane.server, sent, started, cpu).await;
        let mut gaps = viewer.take_gaps();
        gaps.sort_unstable();
        let p99_ms = gaps.get(gaps.len() * 99 / 100).map_or(0, Duration::as_millis);
        let (lost, memory_mb) = (lost - lost_before, plane.server.process().rss_bytes() as f64 / 1e6);
        lost_before += lost;
        let what = format!("{} workers over {}, {rate} events/s asked for", plane.workers, plane.name);
        println!(
            "{what}: {:.0} events/s published, all taken {:.2} s after the last, {lost} lost; server {:.2} cores, \
             {memory_mb:.0} MB; p99 gap of a viewer {p99_ms} ms; {} records skipped for it",
            events as f64 / published_s,
            took_s - published_s,
            cpu_s / took_s,
            viewer.with(|seen| seen.skipped)
        );
        for (figure, value, unit) in [
            ("published", events as f64 / published_s, "events/s"),
            ("lost", lost as f64, "events"),
            ("all taken after the last", took_s - published_s, "s"),
            ("the server", cpu_s / took_s, "cores"),
            ("p99 gap of a viewer", p99_ms as f64, "ms"),
            ("memory", memory_mb, "MB"),
        ] {
            rows.push(json!({"what": format!("{what}: {figure}"), "value": value, "unit": unit}));
        }
    }
    drop(viewer);
    plane.end();
    rows
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
