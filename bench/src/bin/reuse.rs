//! Measures how long the page takes for the funnel of 10,000 decisions: by this program itself, and in Chromium as the panel shows it.
#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use clap::Parser as _;
use radixscope_bench::report::{ReportFile, milliseconds};
use radixscope_export::panel::reuse::ReusePanel;
use radixscope_insight::time_range::TimeSpan;
use radixscope_insight::view_context::{PoolQuery, ShownPools, ViewContext};
use radixscope_model::id::Millis;
use radixscope_state::cluster::Cluster;
use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::traffic::quantile;
use radixscope_tests::viewer::Viewer;
use serde_json::{Value, json};

/// Long enough for 10,000 decisions of 640 users.
const FLAGS: [&str; 9] =
    ["demo", "--workers", "16", "--concurrency", "640", "--warm-up", "600", "--speed", "0.000001"];
/// Most time of one look in the browser, 95 of 100 times, in milliseconds.
const BUDGET_P95_MS: f64 = 4.0;
/// Looks that are timed. The panel looks once a second while its cluster stands still.
const LOOKS: usize = 40;

#[derive(clap::Parser)]
struct Options {
    #[command(flatten)]
    report: ReportFile,
}

#[tokio::main]
async fn main() {
    let options = Options::parse();
    let server = Radixscope::start(FLAGS).await;
    server.until_source_is("live").await;
    let mut rows = natively(&server.origin()).await;
    with_page(async |page| rows.extend(in_the_browser(page, &server).await)).await;
    let report = json!({"rows": rows});
    println!("{report:#}");
    options.report.write(&report);
}

async fn natively(origin: &str) -> Vec<Value> {
    let viewer = Viewer::connect(&format!("ws{}/ws", origin.strip_prefix("http").expect("http")), None).await;
    let look = |cluster: &Cluster| {
        let span = TimeSpan { from: Millis(0), until: Millis(u64::MAX / 2) };
        let of = || {
            let shown = ViewContext::new(cluster, ShownPools::of(cluster, &PoolQuery::default()));
            ReusePanel::of(&shown, span, |_| true, |_| String::new())
        };
        let mut all: Vec<f64> = (0..LOOKS)
            .map(|_| {
                let start = Instant::now();
                std::hint::black_box(of());
                start.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        vec![milliseconds(
            &format!("funnel of {} decisions, natively, p95", of().decisions),
            p95(&mut all),
            None,
        )]
    };
    viewer
        .until("the state is there", |seen| seen.state.as_ref().map(look).ok_or_else(|| "not yet".to_owned()))
        .await
}

async fn in_the_browser(page: &Page, server: &Radixscope) -> Vec<Value> {
    page.open(&server.url("/?view=reuse&from=now-6h&to=now")).await;
    page.until_true("there are causes", "!!document.querySelector('[data-testid=reuse-losses] tbody tr')")
        .await;
    let mut all = Vec::new();
    for _ in 0..LOOKS {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let took = page.attribute("[data-testid=reuse]", "data-took-ms").await.unwrap_or_default();
        all.push(took.parse().unwrap_or(f64::NAN));
    }
    let shown = page.text("reuse").await.unwrap_or_default();
    println!("{}", shown.lines().find(|line| line.contains("Of the prompts of")).unwrap_or_default());
    vec![milliseconds(
        "funnel of the retained decisions, in the browser, p95",
        p95(&mut all),
        Some(BUDGET_P95_MS),
    )]
}

fn p95(all: &mut [f64]) -> f64 {
    all.sort_by(f64::total_cmp);
    quantile(all, 0.95)
}
