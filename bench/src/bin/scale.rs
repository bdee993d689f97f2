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
use radixscope_bench::report::ReportFile;
use radixscope_bench::synthetic_tree::{Change, RouterEvent};
use radixscope_captures::publisher::{Publisher, frames};
use radixscope_model::id::{BlockHash, TokensHash};
use radixscope_model::record::Block;
use radixscope_tests::discovery::{Folder, event_channel};
use radixscope_tests::envelope::envelope;
use radixscope_tests::figures::number;
use radixscope_tests::flood::{self, Form};
use radixscope_tests::nats::{Nats, Options as NatsOptions};
use radixscope_tests::radixscope::Radixscope;
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
        rows.extend(at_rates::<OverNats>(workers, &rates, seconds).await);
        rows.extend(at_rates::<OverZmq>(workers, &rates, seconds).await);
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
    report_row(as_fast_as_taken::<OverNats>(workers, events).await);
    report_row(as_fast_as_taken::<OverZmq>(workers, events).await);
    report.write(&json!({"rows": rows}));
}

/// How messages of many workers reach a server.
trait Feed: Sized {
    const NAME: &str;
    type Message;

    /// A server that listens, with the other ends of its sockets.
    async fn start(workers: u64) -> (Radixscope, Self);

    /// A worker's message number `own`.
    fn message(worker: u64, own: u64) -> Self::Message;

    /// Publishes messages, the first of which is number `first` of all, when they are due.
    async fn publish(&mut self, first: u64, messages: Vec<Self::Message>, pace: Pace);
}

/// When messages are due.
#[derive(Clone, Copy)]
struct Pace {
    began: Instant,
    /// So many a second; `None`: as fast as they are taken.
    per_s: Option<u64>,
}

impl Pace {
    /// When the message after `sent` others is due.
    fn due(self, sent: u64) -> Instant {
        let seconds = self.per_s.map_or(0.0, |per_s| sent as f64 / per_s as f64);
        self.began + Duration::from_secs_f64(seconds)
    }
}

/// Over NATS.
struct OverNats {
    _nats: Nats,
    client: Client,
}

impl Feed for OverNats {
    const NAME: &str = "NATS";
    type Message = Bytes;

    async fn start(_: u64) -> (Radixscope, Self) {
        let nats = Nats::with(NatsOptions { jetstream: false, ..NatsOptions::default() }).await;
        let server = Radixscope::serve(&nats.url()).await;
        server.until_ready().await;
        let client = nats.client().await;
        (server, Self { _nats: nats, client })
    }

    fn message(worker: u64, own: u64) -> Bytes {
        envelope_of(worker, own).into()
    }

    async fn publish(&mut self, first: u64, messages: Vec<Bytes>, pace: Pace) {
        let mut sent = 0;
        for part in messages.chunks(AT_ONCE) {
            sleep_until(pace.due(sent).into()).await;
            let numbers = first + sent..first + sent + part.len() as u64;
            flood::send(&self.client, Form::Envelope, numbers, part.iter().cloned()).await;
            sent += part.len() as u64;
        }
    }
}

/// Over a ZeroMQ socket of each worker.
struct OverZmq {
    publishers: Vec<Publisher>,
    /// Names the sockets for as long as the server runs.
    _folder: Folder,
}

impl Feed for OverZmq {
    const NAME: &str = "ZeroMQ";
    type Message = [Vec<u8>; 4];

    async fn start(workers: u64) -> (Radixscope, Self) {
        let folder = Folder::default();
        let publishers: Vec<_> = (0..workers).map(|_| Publisher::bind(1)).collect();
        for (worker, publisher) in (0..).zip(&publishers) {
            let (key, value) = event_channel(TOPIC, PUBLISHER_IDS + worker, &publisher.endpoint());
            folder.put(&key, &value);
        }
        let server = Radixscope::start(["serve", "--discovery", &folder.url(), "--tree-dumps", "off"]).await;
        publishers.iter().for_each(|publisher| publisher.wait_for_subscribers(TOPIC, 1));
        (server, Self { publishers, _folder: folder })
    }

    fn message(worker: u64, own: u64) -> [Vec<u8>; 4] {
        frames(TOPIC, PUBLISHER_IDS + worker, own, &envelope_of(worker, own))
    }

    async fn publish(&mut self, first: u64, messages: Vec<[Vec<u8>; 4]>, pace: Pace) {
        let publishers = std::mem::take(&mut self.publishers);
        // It blocks while a socket takes no more.
        let publishing = tokio::task::spawn_blocking(move || {
            for (sent, message) in (0..).zip(&messages) {
                if sent % AT_ONCE as u64 == 0 {
                    std::thread::sleep(pace.due(sent).saturating_duration_since(Instant::now()));
                }
                publishers[(first + sent) as usize % publishers.len()].publish(message);
            }
            publishers
        });
        self.publishers = publishing.await.expect("publishers do not fail");
    }
}

/// Messages made before they are published, so that making them takes no time.
fn messages<F: Feed>(workers: u64, events: Range<u64>) -> Vec<F::Message> {
    events.map(|n| F::message(n % workers, n / workers)).collect()
}

async fn as_fast_as_taken<F: Feed>(workers: u64, events: u64) -> Taken {
    let (server, mut feed) = F::start(workers).await;
    let messages = messages::<F>(workers, 0..events);
    let (cpu, started) = (server.process().cpu_time(), Instant::now());
    feed.publish(0, messages, Pace { began: started, per_s: None }).await;
    let taken = taken(F::NAME, &server, events, started, cpu).await;
    // First: it would connect again to each of a thousand publishers that ends.
    drop(server);
    taken
}

/// One rate after the other, each for so many seconds: what was published in that time, how long the rest took, what it cost.
async fn at_rates<F: Feed>(workers: u64, rates: &[u64], seconds: u64) -> Vec<Value> {
    let (server, mut feed) = F::start(workers).await;
    let viewer = server.viewer().await;
    let (mut sent, mut lost_before) = (0, 0);
    let mut rows = Vec::new();
    for &rate in rates {
        let events = rate * seconds;
        let messages = messages::<F>(workers, sent..sent + events);
        viewer.take_gaps();
        let (cpu, started) = (server.process().cpu_time(), Instant::now());
        feed.publish(sent, messages, Pace { began: started, per_s: Some(rate) }).await;
        let published_s = started.elapsed().as_secs_f64();
        sent += events;
        let Taken { lost, took_s, cpu_s, .. } = taken(F::NAME, &server, sent, started, cpu).await;
        let mut gaps = viewer.take_gaps();
        gaps.sort_unstable();
        let p99_ms = gaps.get(gaps.len() * 99 / 100).map(|gap| gap.as_millis() as f64);
        for (figure, value, unit) in [
            ("published", Some(events as f64 / published_s), "events/s"),
            ("lost", Some((lost - lost_before) as f64), "events"),
            ("all taken after the last", Some(took_s - published_s), "s"),
            ("the server", Some(cpu_s / took_s), "cores"),
            ("p99 gap of a viewer", p99_ms, "ms"),
            ("records skipped for it so far", Some(viewer.with(|seen| seen.skipped) as f64), "records"),
            ("memory", Some(server.process().rss_bytes() as f64 / 1e6), "MB"),
        ] {
            let what = format!("{workers} workers over {}, {rate} events/s asked for: {figure}", F::NAME);
            println!("{what} {} {unit}", value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}")));
            rows.push(json!({"what": what, "value": value, "unit": unit}));
        }
        lost_before = lost;
    }
    // As above: before the publishers.
    drop((viewer, server));
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
