//! Measures what a worker's whole tree costs who asks for it: a worker that answers with a million blocks, over TCP, to a
//! real `radixscope serve` that attaches late, in the forms of Dynamo 0.9 and 1.6.
//!
//! Seconds are from the first event received, with which the worker is asked, to the worker being complete; they hold what this program needs to send.

use std::time::{Duration, Instant};

use clap::Parser as _;
use serde::Serialize;
use serde_json::{Value, json};

use radixscope_bench::report::ReportFile;
use radixscope_tests::discovery::{Folder, Registered};
use radixscope_tests::envelope::envelope;
use radixscope_tests::fake_worker::{FakeWorker, Script, whole};
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;

const WORKER: u64 = 7_668_682_384_961_603_590;
const PUBLISHER: u64 = 3_916_204_183_855_218;
const SUBJECT: &str = "namespace.dynamo.component.backend.endpoint.generate.kv-events";
/// Blocks of a prompt in the worker's cache, and how many of them it shares with the one before.
const PROMPT_BLOCKS: u64 = 256;
const SHARED_BLOCKS: u64 = 64;
/// Number of the newest event before anybody listened.
const LAST: u64 = 5_000_000;
/// How often it is looked whether the tree is complete.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How a dump is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
enum Form {
    /// JSON, an event for each block.
    #[serde(rename = "0.9")]
    Blocks,
    /// MessagePack, an event for each run of blocks.
    #[serde(rename = "1.6")]
    Runs,
}

/// What one dump cost.
#[derive(Serialize)]
struct Line {
    form: Form,
    blocks: u64,
    answer_bytes: usize,
    complete_s: f64,
    rss_before_bytes: u64,
    rss_after_bytes: u64,
    peak_rss_bytes: u64,
}

impl Line {
    fn rows(&self) -> Vec<Value> {
        let form = if self.form == Form::Blocks { "0.9, JSON" } else { "1.6, MessagePack" };
        let whom = format!("dump of {} blocks ({form})", self.blocks);
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let row = |what: &str, value: f64, unit: &str| json!({"what": format!("{what}, {whom}"), "value": value, "unit": unit});
        vec![
            row("asked to complete", self.complete_s, "s"),
            row("answer", mb(self.answer_bytes as u64), "MB"),
            row("memory at its peak", mb(self.peak_rss_bytes), "MB"),
            row("memory afterwards", mb(self.rss_after_bytes), "MB"),
        ]
    }
}

#[derive(clap::Parser)]
struct Options {
    #[command(flatten)]
    report: ReportFile,
    /// Blocks of the worker
    #[arg(long, default_value_t = 1_000_000)]
    blocks: u64,
}

#[tokio::main]
async fn main() {
    let Options { report, blocks } = Options::parse();
    let mut lines = Vec::new();
    for form in [Form::Runs, Form::Blocks] {
        let line = measure(form, blocks).await;
        println!("{}", serde_json::to_string(&line).expect("plain data"));
        lines.push(line);
    }
    let rows: Vec<Value> = lines.iter().flat_map(Line::rows).collect();
    report.write(&json!({"lines": lines, "rows": rows}));
}

async fn measure(form: Form, blocks: u64) -> Line {
    let item = response(form, blocks);
    let answer_bytes = item.len();
    let parts = whole(&item, form == Form::Runs);
    drop(item);
    let worker = FakeWorker::start(move |_| Script::response(parts.clone())).await;
    let nats = Nats::start().await;
    let client = nats.client().await;
    let folder = register(form, blocks, worker.port());
    let server = Radixscope::serve_with(&nats.url(), &["--discovery", &folder.url()]).await;
    server
        .until_cluster("everything is read", |cluster| {
            let are_live = cluster["workers"].as_array().is_some_and(|workers| workers.len() == 1)
                && cluster["sources"].as_array().into_iter().flatten().any(|source| {
                    source["name"].as_str().is_some_and(|name| name.starts_with("nats"))
                        && source["state"] == "live"
                });
            wait::expect(are_live, || cluster["sources"].to_string())
        })
        .await;
    let rss_before_bytes = server.process().rss_bytes();
    let event = event(LAST + 1, None, &[(u64::MAX, u64::MAX)]);
    let message = envelope(PUBLISHER, 7, "kv-events", &vec![event]);
    client.publish(SUBJECT, message.into()).await.expect("the server lives");
    client.flush().await.expect("the server lives");
    let since = Instant::now();
    loop {
        let cluster = server.json("/api/v1/cluster").await;
        let worker = &cluster["workers"][0];
        if worker["knowledge"]["state"] == "complete" {
            assert_eq!(worker["blocks"], blocks + 1, "{worker}");
            break;
        }
        assert!(since.elapsed() < Duration::from_secs(300), "not complete: {worker} {}", cluster["sources"]);
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let complete_s = since.elapsed().as_secs_f64();
    let [rss_after_bytes, peak_rss_bytes] = [server.process().rss_bytes(), server.process().peak_rss_bytes()];
    Line { form, blocks, answer_bytes, complete_s, rss_before_bytes, rss_after_bytes, peak_rss_bytes }
}

fn register(form: Form, blocks: u64, tcp_port: u16) -> Folder {
    let folder = Folder::default();
    let entries = Registered { worker_id: WORKER, publisher_id: PUBLISHER, zmq_port: 1, tcp_port }.entries();
    // NATS is the event plane: no channel is registered.
    for (key, value) in entries.into_iter().filter(|(key, _)| !key.contains("event_channels")) {
        let codec = if form == Form::Blocks { "json" } else { "msgpack" };
        let value = value.to_string().replace("\"msgpack\"", &format!("\"{codec}\""));
        let value = value.replace("\"total_kv_blocks\":1600", &format!("\"total_kv_blocks\":{}", blocks * 2));
        folder.put(&key, &serde_json::from_str(&value).expect("JSON"));
    }
    folder
}

/// The one item of the response.
fn response(form: Form, blocks: u64) -> Vec<u8> {
    let events = events(form, blocks);
    let dump = match form {
        Form::Blocks => json!({"TreeDump": events}),
        Form::Runs => json!({"TreeDump": {"events": events, "last_event_id": LAST, "reset_scope": "all"}}),
    };
    let item = json!({"data": dump, "complete_final": false});
    match form {
        Form::Blocks => item.to_string().into_bytes(),
        Form::Runs => rmp_serde::to_vec_named(&item).expect("plain data"),
    }
}

/// Prompts that share their first blocks with the one before, down to the last block.
fn events(form: Form, blocks: u64) -> Vec<Value> {
    // Spread over all u64, and no two alike.
    let hash = |n: u64| (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut events = Vec::new();
    let (mut next, mut fork) = (0, None);
    while next < blocks {
        let own = if fork.is_none() { PROMPT_BLOCKS } else { PROMPT_BLOCKS - SHARED_BLOCKS };
        let run: Vec<u64> = (next..blocks.min(next + own)).collect();
        let pairs: Vec<(u64, u64)> = run.iter().map(|&n| (hash(n), hash(n + blocks))).collect();
        match form {
            Form::Runs => events.push(event(events.len() as u64, fork, &pairs)),
            Form::Blocks => {
                let mut parent = fork;
                for pair in &pairs {
                    events.push(event(events.len() as u64, parent, &[*pair]));
                    parent = Some(pair.0);
                }
            }
        }
        // Each fourth prompt begins anew.
        next += own;
        fork =
            if (next / own) % 4 == 0 { None } else { pairs.get(SHARED_BLOCKS as usize).map(|pair| pair.0) };
    }
    events
}

fn event(event_id: u64, parent: Option<u64>, pairs: &[(u64, u64)]) -> Value {
    let blocks: Vec<Value> =
        pairs.iter().map(|(hash, tokens)| json!({"block_hash": hash, "tokens_hash": tokens})).collect();
    let data = json!({"stored": {"parent_hash": parent, "blocks": blocks}});
    json!({"worker_id": WORKER, "event": {"event_id": event_id, "dp_rank": 0, "data": data}})
}
