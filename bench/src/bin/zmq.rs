//! Measures what ZeroMQ costs: KV events of many publishers with a socket each, found by discovery, at a steady rate to
//! a real `radixscope serve`; processor time of the thread that reads and of the whole server. `--engines`: the publishers are engines
//! without Dynamo.

use std::time::{Duration, Instant};

use clap::Parser as _;
use radixscope_bench::report::ReportFile;
use radixscope_captures::publisher::{Publisher, frames};
use radixscope_tests::discovery::{Folder, event_channel};
use radixscope_tests::envelope::envelope;
use radixscope_tests::figures::number;
use radixscope_tests::flood;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::{Value, json};

const TOPIC: &str = "kv-events";
/// Steps in which messages are published.
const STEPS_PER_S: u64 = 100;
/// Ids of publishers begin here.
const PUBLISHER_IDS: u64 = 1_000_000;

#[derive(clap::Parser)]
struct Options {
    #[command(flatten)]
    report: ReportFile,
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Publishers, each with a socket
    #[arg(long, default_value_t = 100)]
    publishers: u64,
    /// Messages a second of all publishers together
    #[arg(long, default_value_t = 10_000)]
    messages_per_s: u64,
    /// The publishers are engines without Dynamo
    #[arg(long)]
    engines: bool,
}

/// Blocks of a run that an engine stores, and tokens of a block.
const RUN_BLOCKS: u64 = 4;
const BLOCK_TOKENS: u64 = 16;
/// Runs that an engine holds: it removes the one before those.
const HELD_RUNS: u64 = 200;

#[tokio::main]
async fn main() {
    let options = Options::parse();
    let Options { seconds, publishers: count, messages_per_s, engines, .. } = options;
    let folder = Folder::default();
    let publishers: Vec<_> = (0..count).map(|_| Publisher::bind(1)).collect();
    let (thread, topic) = if engines { ("engines", "") } else { ("zmq", TOPIC) };
    let server = if engines {
        let named =
            publishers.iter().flat_map(|of| ["--engine-events".into(), format!("vllm={}", of.endpoint())]);
        Radixscope::start(std::iter::once("serve".to_owned()).chain(named)).await
    } else {
        for (worker, publisher) in publishers.iter().enumerate() {
            let (key, value) = event_channel(TOPIC, PUBLISHER_IDS + worker as u64, &publisher.endpoint());
            folder.put(&key, &value);
        }
        Radixscope::start(["serve", "--discovery", &folder.url(), "--tree-dumps", "off"]).await
    };
    publishers.iter().for_each(|publisher| publisher.wait_for_subscribers(topic, 1));
    let idle = spent(&server, thread);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let idle = (spent(&server, thread).0 - idle.0).as_secs_f64() / 5.0;
    let (before, since) = (spent(&server, thread), Instant::now());
    let of_kind = if engines { engine_message } else { message };
    let publishing = std::thread::spawn(move || {
        publish(&publishers, seconds, messages_per_s, of_kind);
        publishers
    });
    let publishing = tokio::task::spawn_blocking(|| publishing.join().expect("publishers do not fail"));
    let (publishers, bytes) =
        (publishing.await.expect("it ends"), of_kind(7, 1_000).iter().map(Vec::len).sum::<usize>());
    let took = since.elapsed().as_secs_f64();
    let sent = seconds * messages_per_s;
    let source = received(&server, sent, thread).await;
    // Once everything is read and folded: a machine that is busy does that later.
    let after = spent(&server, thread);
    let lost: u64 =
        source["missed"].as_array().expect("a list").iter().map(|missed| number(missed, "count")).sum();
    let cores = |before: Duration, after: Duration| (after - before).as_secs_f64() / took;
    let (reading, all) = (cores(before.0, after.0), cores(before.1, after.1));
    let rate = sent as f64 / took;
    drop(publishers);
    let what = if engines { "engines" } else { "publishers" };
    let whom = format!("{rate:.0} ZeroMQ messages/s of {bytes} bytes from {count} {what}");
    println!("{whom}: reading {reading:.3} cores, server {all:.3} cores, lost {lost}, idle {idle:.4} cores");
    let rss = server.process().rss_bytes() as f64 / (1024.0 * 1024.0);
    let rows = [
        json!({"what": format!("reading sockets, {whom}"), "value": reading, "unit": "cores"}),
        json!({"what": format!("server, {whom}"), "value": all, "unit": "cores"}),
        json!({"what": format!("lost, {whom}"), "value": lost, "unit": "messages", "budget": "0", "within": lost == 0}),
    ];
    options
        .report
        .write(&json!({"rows": rows, "seconds": took, "sent": sent, "idle_cores": idle, "rss_mib": rss}));
}

/// Processor time of the thread that reads, and of all.
fn spent(server: &Radixscope, thread: &str) -> (Duration, Duration) {
    (server.process().cpu_time_of_thread(thread), server.process().cpu_time())
}

/// One worker a publisher; its messages in turn with those of all others.
fn message(worker: u64, own: u64) -> Vec<Vec<u8>> {
    let publisher_id = PUBLISHER_IDS + worker;
    let event = flood::event(worker + 1, own);
    frames(TOPIC, publisher_id, own, &envelope(publisher_id, own, TOPIC, &[event])).into()
}

/// What vLLM publishes from 0.24 on: a run that it stores, and the one that it removes for it. Every second run is one that all
/// engines store.
fn engine_message(engine: u64, own: u64) -> Vec<Vec<u8>> {
    let run = if own.is_multiple_of(2) { own } else { own + (engine + 1) * 1_000_000 };
    let hashes = |own: u64| -> Vec<u64> {
        (0..RUN_BLOCKS)
            .map(|block| (own * RUN_BLOCKS + block + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .collect()
    };
    let tokens: Vec<u64> = (0..RUN_BLOCKS * BLOCK_TOKENS).map(|token| (run * 64 + token) % 128_000).collect();
    let stored = json!({"type": "BlockStored", "block_hashes": hashes(own), "parent_block_hash": null,
        "token_ids": tokens, "block_size": BLOCK_TOKENS, "lora_id": null, "medium": "GPU", "lora_name": null});
    let removed = own
        .checked_sub(HELD_RUNS)
        .map(|gone| json!({"type": "BlockRemoved", "block_hashes": hashes(gone), "medium": "GPU"}));
    let events: Vec<Value> = std::iter::once(stored).chain(removed).collect();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let batch = rmp_serde::to_vec(&json!([now.as_secs_f64(), events, 0])).expect("plain data");
    vec![Vec::new(), own.to_be_bytes().into(), batch]
}

/// Publishes at a steady rate, in steps of ten milliseconds.
fn publish(
    publishers: &[Publisher],
    seconds: u64,
    messages_per_s: u64,
    message: fn(u64, u64) -> Vec<Vec<u8>>,
) {
    let (started, count) = (Instant::now(), publishers.len() as u64);
    for n in 0..seconds * messages_per_s {
        let step = n * STEPS_PER_S / messages_per_s;
        let due = started + Duration::from_millis(step * 1000 / STEPS_PER_S);
        if let Some(early) = due.checked_duration_since(Instant::now()) {
            std::thread::sleep(early);
        }
        let (worker, own) = (n % count, n / count);
        publishers[worker as usize].publish(&message(worker, own));
    }
}

/// The source once it has everything.
async fn received(server: &Radixscope, sent: u64, kind: &str) -> Value {
    let source = |cluster: &Value| {
        let sources = cluster["sources"].as_array().expect("sources");
        sources.iter().find(|source| source["kind"] == kind).expect("the event plane").clone()
    };
    let is_all = |cluster: &Value| {
        let source = source(cluster);
        let lost: u64 = source["missed"].as_array().expect("a list").iter().map(|m| number(m, "count")).sum();
        wait::expect(number(&source, "received") + lost >= sent, || source.to_string())
    };
    source(&server.until_cluster("everything is received or lost", is_all).await)
}
