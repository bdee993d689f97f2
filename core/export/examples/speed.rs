//! How fast lines of logs are read, requests are simulated and simulated again, and a page of a large tree is written:
//! `cargo xtask bench speed`. Of several rounds the fastest counts: what disturbs a measurement only makes it slower.
#![expect(clippy::print_stdout, reason = "its figures are what it is for")]
#![expect(clippy::expect_used, reason = "a recording that cannot be read ends it")]

use std::error::Error;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use radixscope_captures::{Recording, fixtures};
use radixscope_dynamo::active_sequence::{self, SequenceChange};
use radixscope_dynamo::hit_rate::HitRate;
use radixscope_dynamo::load::ActiveLoad;
use radixscope_dynamo::{envelope, log_line, subject, trace};
use radixscope_export::tree::{Page, TreeSnapshot};
use radixscope_model::id::{BlockHash, Millis, PoolIx, Seq, TokensHash, Worker, WorkerIx};
use radixscope_model::record::{Block, Entry, Record, Topic};
use radixscope_router::{Formula, RouterSettings};
use radixscope_sim::resimulation::{Arrival, ResimulationSettings, run};
use radixscope_sim::{Config, Simulation};
use radixscope_state::cluster::Cluster;
use serde_json::{Value, json};

const START: Millis = Millis(1_767_225_600_000);
const KV: RouterSettings = RouterSettings::new(Formula::A);
/// Arrivals that are simulated again.
const ARRIVALS: usize = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let mut rows = log_lines();
    rows.extend(topics());
    rows.push(simulation());
    rows.extend(resimulation());
    rows.push(tree_page());
    for row in &rows {
        println!("{}: {:.1} {}", row["what"], row["value"].as_f64().unwrap_or_default(), row["unit"]);
    }
    if let Some(at) = args.iter().position(|arg| arg == "--json")
        && let Some(file) = args.get(at + 1)
    {
        std::fs::write(file, serde_json::to_vec(&json!({ "rows": rows }))?)?;
    }
    Ok(())
}

fn fastest(rounds: usize, mut round: impl FnMut()) -> Duration {
    let timed = |_| {
        let start = Instant::now();
        round();
        start.elapsed()
    };
    (0..rounds).map(timed).min().unwrap_or_default()
}

fn ms(what: String, took: Duration) -> Value {
    json!({"what": what, "value": took.as_secs_f64() * 1e3, "unit": "ms"})
}

/// Messages of the topics that serde reads, of all recordings.
fn topics() -> Vec<Value> {
    let messages: Vec<_> = Recording::all_in(&fixtures())
        .iter()
        .flat_map(Recording::subscribed)
        .filter_map(|message| Some((subject::parse(&message.subject)?.topic, message.payload)))
        .collect();
    let decode = |topic: Topic, bytes: &[u8]| {
        let Ok(body) = envelope::open(bytes) else { return };
        let (payload, format) = body.payload();
        match topic {
            Topic::KvMetrics => drop(black_box(ActiveLoad::decode(payload, format))),
            Topic::KvHitRate => drop(black_box(HitRate::decode(payload, format))),
            Topic::RequestTrace => drop(black_box(trace::decode(payload))),
            Topic::ActiveSequences => {
                let mut steps = Vec::new();
                let _ = black_box(active_sequence::decode(payload, format, &mut steps));
                black_box(steps);
            }
            _ => {}
        }
    };
    let topics = [Topic::KvMetrics, Topic::KvHitRate, Topic::ActiveSequences, Topic::RequestTrace];
    let row = |of: Topic| {
        let all: Vec<_> = messages.iter().filter(|(topic, _)| *topic == of).collect();
        let took = fastest(20, || all.iter().for_each(|(topic, payload)| decode(*topic, payload)));
        let value = took.as_secs_f64() * 1e9 / all.len().max(1) as f64;
        json!({"what": format!("{of:?}: {} messages decoded", all.len()), "value": value, "unit": "ns a message"})
    };
    topics.into_iter().map(row).collect()
}

/// The frontends' logs of all recordings: searched for lines that may matter, and read.
fn log_lines() -> Vec<Value> {
    let logs = Recording::all_in(&fixtures()).into_iter().filter(|recording| recording.has_log("frontend"));
    let lines: Vec<String> =
        logs.flat_map(|recording| recording.log("frontend").collect::<Vec<_>>()).collect();
    let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
    let search = || lines.iter().filter(|line| log_line::may_matter(line.as_bytes())).count();
    let decode = || lines.iter().filter(|line| log_line::decode(line.as_bytes()).is_ok()).count();
    let rate = |took: Duration| bytes as f64 / took.as_secs_f64() / 1e6;
    let row =
        |what: &str, took| json!({"what": format!("log lines, {what}"), "value": rate(took), "unit": "MB/s"});
    vec![
        row("searched", fastest(15, || _ = black_box(search()))),
        row("read", fastest(15, || _ = black_box(decode()))),
    ]
}

/// Ten minutes of the reference scenario.
fn simulation() -> Value {
    let took = fastest(3, || {
        let mut simulation =
            Simulation::new(Config::default(), START).expect("the reference scenario is valid");
        simulation.run_until(Millis(START.0 + 600_000), &mut |message| _ = black_box(message.payload.len()));
    });
    ms("simulate 600 s of the reference scenario".to_owned(), took)
}

struct Recorded {
    at_ms: Millis,
    isl_tokens: u32,
    blocks: Vec<u64>,
}

/// Many conversations over some starters, as fast as 16 workers can take them.
fn recorded() -> Vec<Recorded> {
    let config = Config { workers: 16, concurrency: 640, log: false, ..Config::default() };
    let mut simulation = Simulation::new(config, START).expect("valid");
    let mut recorded = Vec::new();
    simulation.run_until(Millis(START.0 + 700_000), &mut |message| {
        if !message.name.ends_with(".active_sequences_events") || recorded.len() == ARRIVALS {
            return;
        }
        let body = envelope::open(message.payload).expect("an envelope");
        let (payload, format) = body.payload();
        let mut reports = Vec::new();
        active_sequence::decode(payload, format, &mut reports).expect("understood");
        for report in reports {
            if let SequenceChange::Added(request) = report.step {
                recorded.push(Recorded {
                    at_ms: message.at_ms,
                    isl_tokens: request.isl.expect("in the message") as u32,
                    blocks: request.token_sequence.expect("in the message"),
                });
            }
        }
    });
    recorded
}

fn resimulation() -> Vec<Value> {
    let recorded = recorded();
    let arrivals = || {
        recorded.iter().map(|r| Arrival {
            at_ms: r.at_ms,
            isl_tokens: r.isl_tokens,
            osl_tokens: None,
            blocks: &r.blocks,
        })
    };
    let routers =
        [("KV-aware", KV, 16), ("round robin", RouterSettings::round_robin(), 16), ("KV-aware", KV, 1_024)];
    let row = |(name, router, workers): (&str, RouterSettings, u16)| {
        let settings = ResimulationSettings {
            router,
            workers,
            mean_output_tokens: 830,
            ..ResimulationSettings::default()
        };
        let took = fastest(3, || {
            let outcome = run(arrivals(), &settings, &mut |_| ControlFlow::Continue(()));
            drop(black_box(outcome.expect("it runs")));
        });
        ms(format!("simulate {} arrivals again, {name}, {workers} workers", recorded.len()), took)
    };
    routers.into_iter().map(row).collect()
}

/// The JSON of a tree of a hundred thousand blocks in one page.
fn tree_page() -> Value {
    let mut cluster = Cluster::default();
    let mut fold = |record: Record<'_>| {
        let seq = Seq(cluster.seq().0 + 1);
        cluster.fold(seq, &Entry { at_ms: Millis(START.0 + seq.0), record });
    };
    for ix in 0..8 {
        fold(Record::new_worker(WorkerIx(ix), Worker::new(u64::from(ix), 0), "dynamo", "backend"));
    }
    for prompt in 0..12_500 {
        let (shared, own) = (prompt % 50, 1_000 + prompt * 7);
        let tokens = std::iter::once(1 + shared).chain(own..own + 7);
        let block = |hash| Block { block_hash: BlockHash(hash), tokens_hash: TokensHash(hash) };
        let blocks: Vec<Block> = tokens.map(block).collect();
        fold(Record::Stored { worker: WorkerIx((prompt % 8) as u32), parent: None, blocks: blocks.into() });
    }
    let snapshot = TreeSnapshot::of(&cluster, PoolIx(0), cluster.now_ms());
    let page = Page { limit: 100_000, ..Page::default() };
    let took = fastest(50, || _ = black_box(snapshot.page(&page).expect("found").json()));
    ms(format!("a page of {} blocks as JSON", snapshot.tree().totals().nodes), took)
}
