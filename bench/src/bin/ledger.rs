//! Measures the page while the ledger is open: 1,000 decisions a second through a real NATS server and a real
//! `radixscope serve`, in a headless Chromium. What counts is the work of the page's main thread in each tenth of a
//! second: a frame is not held up while that stays below 16 ms.
#![forbid(unsafe_code)]

use std::time::Duration;

use async_nats::Client;
use clap::Parser as _;
use radixscope_bench::report::ReportFile;
use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::envelope::envelope;
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;
use serde_json::{Value, json};

/// Decisions published per second.
const DECISIONS_PER_S: u64 = 1_000;
/// Workers they are for.
const WORKERS: u64 = 8;
/// Seconds before measuring: by then the ledger is full.
const WARM_UP_S: u64 = 11;
/// Time between two looks at the counters.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Most main-thread work per tenth of a second, 95 of 100 times, in milliseconds.
const BUDGET_P95_MS: f64 = 16.0;

/// The page's counters, as DevTools give them.
#[derive(Clone, Copy)]
struct Counters {
    at_s: f64,
    task_s: f64,
    nodes: f64,
    heap_bytes: f64,
}

#[derive(clap::Parser)]
struct Options {
    #[command(flatten)]
    report: ReportFile,
    /// Seconds measured of each view
    #[arg(long, default_value_t = 15)]
    seconds: u64,
}

#[tokio::main]
async fn main() {
    let Options { report, seconds } = Options::parse();
    let nats = Nats::start().await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    let client = nats.client().await;
    let publishing = tokio::spawn(async move { publish(&client, WARM_UP_S + seconds + 60).await });
    with_page(async |page| {
        let mut rows = Vec::new();
        for (what, more) in [("following", ""), ("scrolled down", "&worker=1"), ("paused", "")] {
            page.open(&server.url(&format!("/?view=decisions{more}"))).await;
            page.until_true("there are lines", "!!document.querySelector('[data-testid=ledger-row][data-decision]')").await;
            if rows.is_empty() {
                tokio::time::sleep(Duration::from_secs(WARM_UP_S)).await;
            }
            match what {
                "scrolled down" => {
                    let scroll = "(document.querySelector('[data-testid=ledger-grid]').scrollTop = 5200, 0)";
                    page.eval(scroll).await;
                }
                "paused" => page.press("p").await,
                _ => {}
            }
            rows.extend(measure(page, what, seconds).await);
        }
        report.write(&json!({"rows": rows, "seconds": seconds, "decisions_per_s": DECISIONS_PER_S, "workers": WORKERS}));
    })
    .await;
    publishing.abort();
}

async fn measure(page: &Page, what: &str, seconds: u64) -> Vec<Value> {
    page.devtools("Performance.enable", json!({})).await;
    let mut before = counters(page).await;
    let (mut work_ms, end_s) = (Vec::new(), before.at_s + seconds as f64);
    while before.at_s < end_s {
        tokio::time::sleep(LOOK_EVERY).await;
        let now = counters(page).await;
        // Looks are not exactly a tenth of a second apart: work is scaled to one.
        work_ms.push((now.task_s - before.task_s) / (now.at_s - before.at_s) * 100.0);
        before = now;
    }
    work_ms.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| work_ms[((work_ms.len() as f64 * share) as usize).min(work_ms.len() - 1)];
    let (p50, p95, max) = (at(0.50), at(0.95), at(1.0));
    let ever = page.text("ledger-summary").await.unwrap_or_default();
    println!(
        "{what}: main thread per 100 ms: p50 {p50:.1} ms, p95 {p95:.1} ms, max {max:.1} ms; {} nodes, heap {:.1} MiB; {ever}",
        before.nodes,
        before.heap_bytes / 1_048_576.0
    );
    let name = |figure: &str| format!("{figure}, ledger {what}, {DECISIONS_PER_S} decisions/s");
    vec![
        json!({"what": name("main thread per 100 ms, p50"), "value": p50, "unit": "ms"}),
        json!({
            "what": name("main thread per 100 ms, p95"), "value": p95, "unit": "ms",
            "budget": format!("≤ {BUDGET_P95_MS} ms"), "within": p95 <= BUDGET_P95_MS,
        }),
        json!({"what": name("DOM nodes"), "value": before.nodes, "unit": ""}),
        json!({"what": name("JavaScript heap"), "value": before.heap_bytes / 1_048_576.0, "unit": "MiB"}),
    ]
}

async fn counters(page: &Page) -> Counters {
    let response = page.devtools("Performance.getMetrics", json!({})).await;
    let metrics = response["metrics"].as_array().expect("a list of metrics");
    let metric = |name: &str| {
        let found = metrics.iter().find(|metric| metric["name"] == name);
        found.and_then(|metric| metric["value"].as_f64()).unwrap_or_else(|| panic!("no {name}"))
    };
    Counters {
        at_s: metric("Timestamp"),
        task_s: metric("TaskDuration"),
        nodes: metric("Nodes"),
        heap_bytes: metric("JSHeapUsedSize"),
    }
}

/// Publishes at a steady rate, in steps of ten milliseconds.
async fn publish(client: &Client, seconds: u64) {
    const STEPS_PER_S: u64 = 100;
    let mut tick = tokio::time::interval(Duration::from_millis(1000 / STEPS_PER_S));
    for step in 0..seconds * STEPS_PER_S {
        tick.tick().await;
        for n in 0..DECISIONS_PER_S / STEPS_PER_S {
            let at = step * (DECISIONS_PER_S / STEPS_PER_S) + n;
            let payload = selection(at);
            client
                .publish("namespace.dynamo.kv-hit-rate", payload.into())
                .await
                .expect("NATS takes what it is sent");
        }
        client.flush().await.expect("NATS takes what it is sent");
    }
}

/// One selection as Dynamo 0.9 publishes it.
fn selection(sequence: u64) -> Vec<u8> {
    let isl_blocks = 40 + sequence * 7 % 300;
    let selection = json!({
        "worker_id": sequence * 5 % WORKERS + 1, "dp_rank": 0, "isl_blocks": isl_blocks,
        "overlap_blocks": isl_blocks * (sequence * 3 % 11) / 10 % (isl_blocks + 1),
    });
    envelope(1_000_000, sequence, "kv-hit-rate", &selection)
}
