//! Measures the page with prefix trees of 10,000 to a million blocks: a real NATS server, a real `radixscope serve`, a
//! headless Chromium without a GPU, 1920 × 1080 pixels. What counts is the work of the page's main thread, by Chromium's own
//! trace: frames come late on a busy machine whatever the page does.
#![forbid(unsafe_code)]

mod gestures;
mod page;
mod rivals;
mod stage;
mod table;
mod trace;

use std::time::Duration;

use clap::Parser as _;
use radixscope_bench::report::ReportFile;
use radixscope_bench::synthetic_tree::blocks_of;
use radixscope_tests::browser::with_unrecorded_page;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use page::{Lived, Measured, Viewer};
use stage::{Stage, WORKERS};
use table::{Table, millions, quantile};

/// Most work of the main thread in a frame in which a reader moves, 95 of 100 times, at the size that it is for.
const BUDGET_FRAME_MS: f64 = 6.0;
const BUDGET_FRAME_BLOCKS: u64 = 1_000_000;
/// Most memory of WebAssembly.
const BUDGET_HEAP_MB: f64 = 300.0;
/// Rates of live events, and the largest share of the main thread at the largest of them.
const EVENTS_PER_S: [u64; 2] = [1_000, 10_000];
const BUDGET_SHARE_PERCENT: f64 = 19.0;
/// How long a reader moves.
const MOVING: Duration = Duration::from_secs(10);
/// Of a hundred inputs, those that at least have to be followed by a picture: a slow page has two for each, and one that does
/// not follow has some all the same.
const FOLLOWED_PERCENT: f64 = 30.0;

#[derive(clap::Parser)]
struct Options {
    #[command(flatten)]
    report: ReportFile,
    /// Blocks of the trees
    #[arg(long, value_parser = blocks_of, value_delimiter = ',', default_values = ["10k", "100k", "1m"])]
    blocks: Vec<u64>,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 15)]
    seconds: u64,
    /// Show a tree of so many blocks to a person instead, until this program is ended
    #[arg(long, value_parser = blocks_of, value_name = "BLOCKS")]
    serve: Option<u64>,
    /// Port of the server that shows it
    #[arg(long, default_value_t = 8400)]
    port: u16,
    /// Events a second of the tree that is shown
    #[arg(long, default_value_t = 0)]
    events_per_s: u64,
}

#[tokio::main]
async fn main() {
    let options = Options::parse();
    if let Some(blocks) = options.serve {
        return serve(blocks, options.port, options.events_per_s).await;
    }
    let mut table = Table::default();
    for &blocks in &options.blocks {
        measure(&mut table, blocks, options.seconds).await;
    }
    options.report.write(&json!({
        "rows": table.rows, "details": table.details, "workers": WORKERS, "window": [page::WINDOW.0, page::WINDOW.1],
        "seconds": options.seconds,
    }));
}

/// Shows a tree until somebody ends this program.
async fn serve(blocks: u64, port: u16, events_per_s: u64) {
    let mut stage = Stage::with(blocks, port).await;
    println!("{} blocks of {WORKERS} workers on {}", millions(blocks), stage.server.url("/?view=tree"));
    let mut ended = signal(SignalKind::terminate()).expect("the system tells when to end");
    let live = async {
        if events_per_s > 0 {
            stage.live(events_per_s, u64::from(u32::MAX)).await;
        }
        std::future::pending::<()>().await;
    };
    // The servers end with what holds them.
    tokio::select! {
        () = live => {}
        _ = ended.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

/// Everything about a tree of one size.
async fn measure(table: &mut Table, blocks: u64, seconds: u64) {
    let mut stage = Stage::with(blocks, 0).await;
    let boxes = stage.tree.boxes();
    let size = millions(blocks);
    println!("{size} blocks, {} held, {} boxes", stage.tree.held_blocks(), boxes.len());
    table.detail(&size, "held blocks", stage.tree.held_blocks());
    table.detail(&size, "boxes", boxes.len());
    with_unrecorded_page(async |page| {
        let viewer = Viewer::new(page).await;
        let openings = viewer.open(&stage.server).await;
        let shown: Vec<f64> = openings.iter().map(|opening| opening.shown_ms).collect();
        let steps: Vec<_> = openings.iter().map(|opening| &opening.steps).collect();
        table.detail(&size, "openings", &steps);
        table.row(&size, "first picture, median of 3 openings", quantile(&shown, 0.5), "ms");
        table.row(&size, "on the socket until then", openings[0].socket_bytes / 1e6, "MB");
        let (percent, frames_ms) = viewer.idle().await;
        table.row(&size, "idle, share of the main thread", percent, "%");
        table.row(&size, "idle, time between frames, p95", quantile(&frames_ms, 0.95), "ms");
        let (measured, inputs) = viewer.moved(MOVING).await;
        moving(table, &size, blocks, &measured, inputs);
        let canvas = viewer.canvas().await;
        for rate in EVENTS_PER_S {
            let lived = viewer.live(&mut stage, rate, seconds).await;
            living(table, &size, rate, &lived);
        }
        table.row(&size, "load of the machine, of the last minute", load(), "");
        let (wasm, script) = viewer.heap_bytes().await;
        table.budget(&size, "WebAssembly memory", wasm / 1e6, "MB", BUDGET_HEAP_MB);
        table.row(&size, "JavaScript heap", script / 1e6, "MB");
        for figure in rivals::measure(page, &viewer.devtools, &boxes, canvas).await {
            match figure.took {
                Ok((p50, p95)) => {
                    table.detail(&size, &format!("{}, p95 ms", figure.what), p95);
                    table.row(&size, &format!("{}, p50", figure.what), p50, "ms");
                }
                Err(why) => table.failed(&size, &figure.what, &why),
            }
        }
    })
    .await;
}

/// How many programs wanted a processor: with more than there are, times by the clock are those of others too.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(f64::NAN)
}

/// What a reader who moves costs.
fn moving(table: &mut Table, size: &str, blocks: u64, measured: &Measured, inputs: u64) {
    let work = measured.trace.drawn_frames_ms();
    let details = json!({
        "inputs": inputs, "pictures": measured.draws, "frames with a picture": work.len(),
        "frames": measured.frames_ms.len(), "tasks by Chromium's counters, ms": measured.tasks_ms,
        "scripts by Chromium's counters, ms": measured.scripts_ms,
        "tasks by the trace, ms": measured.trace.all_ms(),
    });
    table.detail(size, "moving", &details);
    println!("{size} moving: {details}");
    let followed = work.len() as f64 / inputs as f64 * 100.0;
    table.row(size, "moving, inputs followed by a picture", followed, "%");
    if followed < FOLLOWED_PERCENT {
        let why = format!("the page does not follow: pictures in {} frames for {inputs} inputs", work.len());
        table.failed(size, "moving, main thread per frame, p95", &why);
        return;
    }
    for (whose, took) in by_clock_and_processor(&work) {
        table.row(size, &format!("moving, main thread per frame{whose}, p50"), quantile(&took, 0.5), "ms");
        let (what, p95) = (format!("moving, main thread per frame{whose}, p95"), quantile(&took, 0.95));
        if blocks == BUDGET_FRAME_BLOCKS {
            table.budget(size, &what, p95, "ms", BUDGET_FRAME_MS);
        } else {
            table.row(size, &what, p95, "ms");
        }
    }
    table.row(size, "moving, time between frames, p95", quantile(&measured.frames_ms, 0.95), "ms");
}

/// The same work by the clock, as the reader feels it, and by the processor, which others on the machine do not lengthen.
fn by_clock_and_processor(work: &[(f64, f64)]) -> [(&'static str, Vec<f64>); 2] {
    let (clock, processor) = work.iter().copied().unzip();
    [("", clock), (" (processor time)", processor)]
}

/// What events that come cost.
fn living(table: &mut Table, size: &str, rate: u64, lived: &Lived) {
    let measured = &lived.measured;
    let details = json!({
        "events": lived.events, "pictures": measured.draws, "tasks by Chromium's counters, ms": measured.tasks_ms,
        "scripts by Chromium's counters, ms": measured.scripts_ms, "tasks by the trace, ms": measured.trace.all_ms(),
        "complaint": lived.complaint,
    });
    let what = |figure: &str| format!("{} events/s, {figure}", millions(rate));
    table.detail(size, &what("live"), &details);
    println!("{size} {}: {details}", what("live"));
    if let Some(why) = &lived.complaint {
        table.failed(size, &what("page and server agree"), why);
    }
    if measured.draws == 0 {
        table.failed(size, &what("pictures"), "nothing was drawn");
    }
    let (by_clock, of_processor) = measured.trace.percent();
    let percents = [by_clock, of_processor];
    for ((whose, took), percent) in
        by_clock_and_processor(&measured.trace.windows_ms()).into_iter().zip(percents)
    {
        let name = |figure: &str| what(&format!("main thread{whose}, {figure}"));
        table.row(size, &name("per 100 ms, p50"), quantile(&took, 0.5), "ms");
        table.row(size, &name("per 100 ms, p95"), quantile(&took, 0.95), "ms");
        if rate == EVENTS_PER_S[1] {
            table.budget(size, &name("share"), percent, "%", BUDGET_SHARE_PERCENT);
        } else {
            table.row(size, &name("share"), percent, "%");
        }
    }
    table.row(size, &what("pictures"), measured.draws as f64 / measured.trace.seconds(), "a second");
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn sizes_are_named_as_people_write_them() {
        assert_eq!([millions(10_000), millions(1_000_000), millions(2_500)], ["10 k", "1 M", "2500"]);
    }

    #[test]
    fn a_page_that_does_not_follow_has_no_figure() {
        let mark = |name: &str| json!({"name": name, "ph": "I", "pid": 1, "tid": 7, "ts": 5});
        let measured = Measured {
            trace: trace::Trace::of([mark("radixscope-begin"), mark("radixscope-end")].iter(), 0.0),
            tasks_ms: 1.0,
            scripts_ms: 1.0,
            frames_ms: vec![16.0],
            draws: 3,
        };
        let mut table = Table::default();
        moving(&mut table, "1 M", BUDGET_FRAME_BLOCKS, &measured, 600);
        let row = table.rows.last().expect("a row");
        assert_eq!((&row["value"], &row["within"]), (&Value::Null, &json!(false)));
        assert!(row["unit"].as_str().is_some_and(|why| why.contains("does not follow")), "{row}");
    }
}
