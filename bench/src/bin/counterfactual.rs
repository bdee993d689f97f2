//! Measures the counterfactual of 10,000 decisions over 16 workers: by this program itself, and in Chromium's worker as
//! the page shows it, with and without the way to the worker and back.
#![forbid(unsafe_code)]

use std::ops::ControlFlow;
use std::time::Instant;

use clap::Parser as _;
use radixscope_bench::report::{ReportFile, milliseconds};
use radixscope_insight::counterfactual::{DecisionRange, Sample, Selection, TEMPERATURES, weights_with};
use radixscope_router::RouterOverrides;
use radixscope_state::cluster::Cluster;
use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::viewer::Viewer;
use radixscope_tests::wait;
use serde_json::{Value, json};

/// Long enough for 10,000 decisions of 640 users.
const FLAGS: [&str; 9] =
    ["demo", "--workers", "16", "--concurrency", "640", "--warm-up", "600", "--speed", "0.000001"];
/// Most time of one setting in the browser, in milliseconds.
const BUDGET_MS: f64 = 50.0;

#[derive(clap::Parser)]
struct Options {
    #[command(flatten)]
    report: ReportFile,
    /// Address of a server; without one a simulated cluster is started
    #[arg(long)]
    url: Option<String>,
}

#[tokio::main]
async fn main() {
    let options = Options::parse();
    let mut own = None;
    let origin = match &options.url {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => {
            let server = Radixscope::start(FLAGS).await;
            server.until_source_is("live").await;
            own.insert(server).origin()
        }
    };
    let mut rows = natively(&origin).await;
    with_page(async |page| rows.extend(in_the_browser(page, &origin).await)).await;
    drop(own);
    let report = json!({"rows": rows});
    println!("{report:#}");
    options.report.write(&report);
}

/// Median of a few runs, in milliseconds.
fn timed<T>(mut run: impl FnMut() -> T) -> f64 {
    let mut all: Vec<f64> = (0..7)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(run());
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

async fn natively(origin: &str) -> Vec<Value> {
    let viewer = Viewer::connect(&format!("ws{}/ws", origin.strip_prefix("http").expect("http")), None).await;
    let look = |cluster: &Cluster| {
        let sample = Sample::of(cluster, Selection::of(DecisionRange::ALL));
        let tried = RouterOverrides {
            overlap_score_weight: Some(1.5),
            router_temperature: Some(0.2),
            ..RouterOverrides::default()
        };
        let judged = sample.evaluate(tried).about.judged;
        let weights = weights_with(sample.latest_weight());
        let go = |_: usize, _: usize| ControlFlow::Continue(());
        vec![
            milliseconds(
                &format!("copy {judged} decisions out of the state, natively"),
                timed(|| Sample::of(cluster, Selection::of(DecisionRange::ALL))),
                None,
            ),
            milliseconds(
                &format!("one setting, {judged} decisions, natively"),
                timed(|| sample.evaluate(tried)),
                None,
            ),
            milliseconds(
                &format!(
                    "sweep of {} settings, {judged} decisions, natively",
                    weights.len() * TEMPERATURES.len()
                ),
                timed(|| sample.sweep(&weights, &TEMPERATURES, None, go)),
                None,
            ),
        ]
    };
    viewer
        .until("the state is there", |seen| seen.state.as_ref().map(look).ok_or_else(|| "not yet".to_owned()))
        .await
}

/// Runs as a reader would and reads the times that the page says.
async fn in_the_browser(page: &Page, origin: &str) -> Vec<Value> {
    page.open(&format!("{origin}/?view=counterfactual")).await;
    let idle = async || {
        let idle = "!!document.querySelector('[data-testid=cf-grid]') && !document.querySelector('[data-testid=cf-cancel]')";
        page.until_true("nothing is under way", idle).await;
    };
    let read = async |id: &str| -> (f64, f64) {
        let ms = async |name: &str| {
            let text = page.attribute(&format!("[data-testid={id}]"), name).await.unwrap_or_default();
            text.parse().unwrap_or(f64::NAN)
        };
        (ms("data-worker-ms").await, ms("data-total-ms").await)
    };
    idle().await;
    page.eval("(e => { e.value = '10000'; e.dispatchEvent(new Event('input', {bubbles: true})); return true; })(document.querySelector('[data-testid=cf-last]'))").await;
    let mut frozen = Vec::new();
    for _ in 0..5 {
        page.eval("(document.querySelector('[data-testid=cf-compute]').click(), true)").await;
        idle().await;
        frozen.push(read("cf-stamp").await);
    }
    frozen.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (worker, total) = frozen[frozen.len() / 2];
    let stamp = page.text("cf-stamp").await.unwrap_or_default();
    page.click("cf-sweep").await;
    idle().await;
    let sweep = read("cf-sweep-stamp").await;
    page.click("cf-way-model").await;
    page.eval("(document.querySelector('[data-testid=cf-compute]').click(), true)").await;
    let assumptions = page
        .until("the model has run", async |page| {
            page.text("cf-assumptions").await.ok_or_else(|| "not yet".to_owned())
        })
        .await;
    idle().await;
    let model = read("cf-assumptions").await;
    let digits =
        |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>().parse::<f64>().ok();
    let arrivals = assumptions
        .split_once(" recorded arrivals")
        .and_then(|(before, _)| digits(before.rsplit('\n').next()?))
        .unwrap_or(f64::NAN);
    assert!(wait::expect(arrivals > 0.0, || assumptions.clone()).is_ok(), "{assumptions}");
    println!("{stamp}");
    vec![
        milliseconds(
            "one setting, 10,000 decisions × 16 workers, in the browser's worker",
            worker,
            Some(BUDGET_MS),
        ),
        milliseconds("the same with the way to the worker and back", total, None),
        milliseconds("sweep, in the browser's worker", sweep.0, None),
        milliseconds("the same with the way to the worker and back", sweep.1, None),
        // It plays them twice.
        milliseconds(
            "model, each 1,000 arrivals, in the browser's worker",
            model.0 / (2.0 * arrivals) * 1_000.0,
            None,
        ),
    ]
}
