//! Measures how long a viewer waits for the first figures: from the request of the address until a tile of the summary shows a
//! number, in a headless Chromium with an empty cache, over loopback and over an emulated line of 5 Mbit/s and 50 ms.
//! The server is `radixscope demo` with a minute of traffic behind it. Each line is opened several times, in turn.
#![forbid(unsafe_code)]

use clap::Parser as _;
use radixscope_bench::report::ReportFile;
use radixscope_tests::browser::{Page, with_unrecorded_page};
use radixscope_tests::radixscope::Radixscope;
use serde_json::{Value, json};

/// Notes when the first painted frame shows a number in the summary, in milliseconds since the request of the document, and
/// when anything was painted at all.
const WATCH: &str = r"
    const look = () => {
        const tiles = document.querySelectorAll('[data-testid=summary] .tile b');
        if ([...tiles].some(tile => /\d/.test(tile.innerText))) window.firstFigureMs = performance.now();
        else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
";

/// A line between server and viewer.
struct Line {
    name: &'static str,
    /// What DevTools emulate; absent: nothing.
    emulated: Option<(f64, f64)>,
    /// Budget in milliseconds.
    budget_ms: f64,
}

/// Megabits a second and milliseconds there and back.
const LINES: [Line; 2] = [
    Line { name: "loopback", emulated: None, budget_ms: 500.0 },
    Line { name: "5 Mbit/s and 50 ms", emulated: Some((5.0, 50.0)), budget_ms: 2_000.0 },
];

#[derive(clap::Parser)]
struct Options {
    #[command(flatten)]
    report: ReportFile,
    /// How often each line is measured
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    times: u64,
}

#[tokio::main]
async fn main() {
    let options = Options::parse();
    let server = Radixscope::start(["demo", "--warm-up", "60"]).await;
    server.until_source_is("live").await;
    let mut measured = [const { Vec::new() }; LINES.len()];
    for _ in 0..options.times {
        for (line, measured) in LINES.iter().zip(&mut measured) {
            with_unrecorded_page(async |page| {
                let (painted_ms, figure_ms) = open(page, &server, line).await;
                println!("{}: first paint {painted_ms:.0} ms, first figure {figure_ms:.0} ms", line.name);
                measured.push((painted_ms, figure_ms));
            })
            .await;
        }
    }
    let rows: Vec<Value> =
        LINES.iter().zip(&mut measured).flat_map(|(line, times)| rows(line, times)).collect();
    options.report.write(&json!({"rows": rows}));
}

/// Opens the page over a line; gives milliseconds until the first paint and until the first figure.
async fn open(page: &Page, server: &Radixscope, line: &Line) -> (f64, f64) {
    page.devtools("Network.enable", json!({})).await;
    if let Some((mbit_per_s, round_trip_ms)) = line.emulated {
        let bytes_per_s = mbit_per_s * 125_000.0;
        let conditions = json!({
            "offline": false, "latency": round_trip_ms,
            "downloadThroughput": bytes_per_s, "uploadThroughput": bytes_per_s,
        });
        page.devtools("Network.emulateNetworkConditions", conditions).await;
    }
    page.devtools("Page.addScriptToEvaluateOnNewDocument", json!({"source": WATCH})).await;
    page.open(&server.url("/")).await;
    page.until_true("a figure is shown", "window.firstFigureMs > 0").await;
    let painted = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime";
    let ms = async |expression: &str| page.eval(expression).await.as_f64().unwrap_or(f64::NAN);
    (ms(painted).await, ms("window.firstFigureMs").await)
}

/// The rows of a line; the median is what has to keep the budget.
fn rows(line: &Line, times: &mut [(f64, f64)]) -> [Value; 2] {
    let of = |at: fn(&(f64, f64)) -> f64| {
        let mut all: Vec<f64> = times.iter().map(at).collect();
        all.sort_unstable_by(f64::total_cmp);
        all
    };
    let (painted, figures) = (of(|&(painted, _)| painted), of(|&(_, figure)| figure));
    let [median, max] = [figures[figures.len() / 2], figures[figures.len() - 1]];
    let name = line.name;
    [
        json!({"what": format!("first paint over {name}, median of {}", painted.len()), "value": painted[painted.len() / 2], "unit": "ms"}),
        json!({
            "what": format!("first figure over {name}, median of {} ({:.0} to {max:.0})", figures.len(), figures[0]),
            "value": median, "unit": "ms",
            "budget": format!("≤ {:.0} ms", line.budget_ms), "within": median <= line.budget_ms,
        }),
    ]
}
