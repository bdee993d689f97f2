//! Measures the time from an event's publication to its arrival at every viewer, with the server's processor time: a
//! real NATS server, a real `radixscope serve`, 1,000 events a second in the forms of Dynamo 0.9 and 1.6.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_nats::Client;
use clap::Parser as _;
use futures_util::StreamExt;
use radixscope_bench::report::ReportFile;
use radixscope_model::frame::Frame;
use radixscope_model::record::Record;
use radixscope_tests::envelope::envelope;
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde::Serialize;
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

/// Events published per second.
const EVENTS_PER_S: u64 = 1_000;
/// Workers that publish them.
const WORKERS: u64 = 16;
/// Blocks in a stored event: a prompt's new part.
const BLOCKS: u64 = 8;
/// A worker's cache: beyond it every store comes with a removal, as in a warm engine.
const EVENTS_HELD: u64 = 400;

/// Most time from event to viewer, 95 of 100 times, in milliseconds.
const BUDGET_P95_MS: f64 = 250.0;
/// Most processor time of the server, in cores.
const BUDGET_CORES: f64 = 1.0;

/// How events travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
enum Form {
    /// JSON on the JetStream subject.
    #[serde(rename = "0.9")]
    Json,
    /// A batch in a MessagePack envelope on the endpoint's subject.
    #[serde(rename = "1.6")]
    Envelope,
}

/// One line of the table.
#[derive(Serialize)]
struct Line {
    form: Form,
    viewers: usize,
    stalled_viewers: usize,
    events_per_s: f64,
    p50_ms: f64,
    p95_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    /// Processor seconds of the server per second.
    server_cores: f64,
    server_rss_mib: f64,
    /// Viewers that were given a new snapshot, the stalled one apart.
    resyncs: u64,
    /// Events that did not reach every viewer.
    lost: u64,
}

impl Line {
    /// The figures that have a budget.
    fn rows(&self) -> [Value; 3] {
        let form = if self.form == Form::Json { "0.9" } else { "1.6" };
        let beside = if self.stalled_viewers > 0 { " and a stalled one" } else { "" };
        let whom = format!("{EVENTS_PER_S} events/s of {form} to {} viewers{beside}", self.viewers);
        let row = |what: &str, value: f64, unit: &str, most: f64| {
            let budget = format!("≤ {most} {unit}");
            json!({"what": format!("{what}, {whom}"), "value": value, "unit": unit, "budget": budget, "within": value <= most})
        };
        [
            row("event to viewer, p95", self.p95_ms, "ms", BUDGET_P95_MS),
            row("server", self.server_cores, "cores", BUDGET_CORES),
            row("lost or resynchronised", (self.lost + self.resyncs) as f64, "times", 0.0),
        ]
    }
}

#[derive(clap::Parser)]
struct Options {
    #[command(flatten)]
    report: ReportFile,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Numbers of viewers, one measurement each
    #[arg(long, value_delimiter = ',', default_values_t = [1, 50, 200])]
    viewers: Vec<usize>,
}

#[tokio::main]
async fn main() {
    let options = Options::parse();
    println!("{EVENTS_PER_S} events/s of {BLOCKS} blocks from {WORKERS} workers, {} s each", options.seconds);
    println!(
        "  form  viewers  stalled  events/s   p50 ms   p95 ms   p99 ms   max ms  server cores  RSS MiB  resyncs  lost"
    );
    let mut lines = Vec::new();
    for form in [Form::Json, Form::Envelope] {
        for (viewers, stalled) in options.viewers.iter().flat_map(|&n| [(n, 0), (n, 1)]) {
            // A stalled viewer is worth measuring beside many: one that waits for it would show there.
            if stalled == 1 && Some(&viewers) != options.viewers.iter().max() {
                continue;
            }
            let line = measure(form, viewers, stalled, options.seconds).await;
            show(&line);
            lines.push(line);
        }
    }
    let rows: Vec<Value> = lines.iter().flat_map(Line::rows).collect();
    options.report.write(&json!({
        "rows": rows, "lines": lines, "seconds": options.seconds, "events_per_s": EVENTS_PER_S,
        "blocks_per_event": BLOCKS, "workers": WORKERS,
    }));
}

fn show(line: &Line) {
    let form = if line.form == Form::Json { "0.9" } else { "1.6" };
    println!(
        "  {form:>4}  {:>7}  {:>7}  {:>8.0}  {:>7.1}  {:>7.1}  {:>7.1}  {:>7.1}  {:>12.2}  {:>7.0}  {:>7}  {:>4}",
        line.viewers,
        line.stalled_viewers,
        line.events_per_s,
        line.p50_ms,
        line.p95_ms,
        line.p99_ms,
        line.max_ms,
        line.server_cores,
        line.server_rss_mib,
        line.resyncs,
        line.lost
    );
}

/// When each event was published, by its first block's hash.
type Published = Arc<Mutex<HashMap<u64, Instant>>>;

async fn measure(form: Form, viewers: usize, stalled: usize, seconds: u64) -> Line {
    let nats = Nats::start().await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    let published = Published::default();
    let mut stalled_sockets = Vec::new();
    for _ in 0..stalled {
        stalled_sockets.push(connect_async(server.socket_url()).await.expect("a viewer connects").0);
    }
    let mut followers = Vec::new();
    for _ in 0..viewers {
        let (socket, _) = connect_async(server.socket_url()).await.expect("a viewer connects");
        followers.push(tokio::spawn(follow(socket, Arc::clone(&published), seconds * EVENTS_PER_S)));
    }
    let client = nats.client().await;
    let (cpu, since) = (server.process().cpu_time(), Instant::now());
    publish(&client, form, seconds, &published).await;
    let took = since.elapsed();
    let cpu = server.process().cpu_time() - cpu;
    let mut delays = Vec::new();
    let (mut resyncs, mut received_count) = (0, 0);
    for follower in followers {
        let seen =
            wait::within("every viewer has every event", follower).await.expect("a viewer does not fail");
        resyncs += seen.resyncs;
        received_count += seen.delays.len() as u64;
        delays.extend(seen.delays);
    }
    delays.sort_unstable();
    let at = |share: f64| {
        let index = ((delays.len() as f64 * share) as usize).min(delays.len() - 1);
        delays[index].as_secs_f64() * 1000.0
    };
    Line {
        form,
        viewers,
        stalled_viewers: stalled,
        events_per_s: (seconds * EVENTS_PER_S) as f64 / took.as_secs_f64(),
        p50_ms: at(0.50),
        p95_ms: at(0.95),
        p99_ms: at(0.99),
        max_ms: at(1.0),
        server_cores: cpu.as_secs_f64() / took.as_secs_f64(),
        server_rss_mib: server.process().rss_bytes() as f64 / (1024.0 * 1024.0),
        resyncs,
        lost: (seconds * EVENTS_PER_S * viewers as u64).saturating_sub(received_count),
    }
}

/// What a viewer measured.
#[derive(Default)]
struct Seen {
    delays: Vec<Duration>,
    resyncs: u64,
}

/// Reads frames until the last event came, and notes the delay of each. Folds nothing: here the server is measured.
async fn follow(mut socket: radixscope_tests::viewer::Socket, published: Published, events: u64) -> Seen {
    let mut seen = Seen::default();
    while let Some(Ok(message)) = socket.next().await {
        let Message::Binary(bytes) = message else { continue };
        let now = Instant::now();
        match Frame::decode(&bytes).expect("a frame of ours") {
            Frame::Lag { .. } => seen.resyncs += 1,
            Frame::Batch(batch) => {
                let published = published.lock().expect("no panic while holding it");
                for entry in batch.entries() {
                    let (_, entry) = entry.expect("a record of ours");
                    if let Record::Stored { blocks, .. } = &entry.record {
                        let first = blocks.first().expect("every event has blocks");
                        seen.delays.push(now.duration_since(published[&first.block_hash.0]));
                    }
                }
            }
            Frame::Hello { .. } | Frame::Snapshot { .. } => {}
        }
        if seen.delays.len() as u64 >= events {
            break;
        }
    }
    seen
}

/// Publishes at a steady rate: in steps of ten milliseconds, as bursts of a few workers are in life.
async fn publish(client: &Client, form: Form, seconds: u64, published: &Published) {
    const STEPS_PER_S: u64 = 100;
    let mut tick = tokio::time::interval(Duration::from_millis(1000 / STEPS_PER_S));
    for step in 0..seconds * STEPS_PER_S {
        tick.tick().await;
        for n in 0..EVENTS_PER_S / STEPS_PER_S {
            let event = step * (EVENTS_PER_S / STEPS_PER_S) + n;
            let (worker, own) = (event % WORKERS, event / WORKERS);
            let hash = |own: u64, block: u64| (1 + worker) << 48 | own << 8 | block;
            let stored = stored(worker, own, (0..BLOCKS).map(|block| hash(own, block)));
            published.lock().expect("no panic while holding it").insert(hash(own, 0), Instant::now());
            send(client, form, worker, &stored).await;
            if let Some(old) = own.checked_sub(EVENTS_HELD) {
                let removed = removed(worker, own, (0..BLOCKS).map(|block| hash(old, block)));
                send(client, form, worker, &removed).await;
            }
        }
        client.flush().await.expect("NATS takes what it is sent");
    }
}

fn stored(worker: u64, own: u64, hashes: impl Iterator<Item = u64>) -> Value {
    let blocks: Vec<_> =
        hashes.map(|hash| json!({"block_hash": hash, "tokens_hash": hash, "mm_extra_info": null})).collect();
    event(worker, own, json!({"stored": {"parent_hash": null, "blocks": blocks}}))
}

fn removed(worker: u64, own: u64, hashes: impl Iterator<Item = u64>) -> Value {
    event(worker, own, json!({"removed": {"block_hashes": hashes.collect::<Vec<_>>()}}))
}

fn event(worker: u64, own: u64, data: Value) -> Value {
    // Ids count every event of a worker from 1 without a hole, removals included.
    let removals = own.saturating_sub(EVENTS_HELD);
    let is_removal = u64::from(data["removed"].is_object());
    let event_id = 1 + own + removals + is_removal;
    json!({"worker_id": worker + 1, "event": {"event_id": event_id, "data": data, "dp_rank": 0}})
}

async fn send(client: &Client, form: Form, worker: u64, event: &Value) {
    let (subject, payload) = match form {
        Form::Json => {
            ("namespace-dynamo-component-backend-kv-events.kv-events", event.to_string().into_bytes())
        }
        Form::Envelope => {
            ("namespace.dynamo.component.backend.endpoint.generate.kv-events", batch(worker, event))
        }
    };
    client.publish(subject, payload.into()).await.expect("NATS takes what it is sent");
}

/// A batch of one event as Dynamo 1.6 publishes it.
fn batch(worker: u64, event: &Value) -> Vec<u8> {
    let sequence = event["event"]["event_id"].as_u64().expect("written as a number");
    envelope(worker + 1_000_000, sequence, "kv-events", &[event])
}
