//! Measures going to moments of a long recording: an hour at a thousand events a second, with trees of 100,000 and a million
//! blocks that keep their size, opened in a headless Chromium by the page. Beside it, what fifteen minutes of history cost a
//! server in memory.
//!
//! `moments [--json FILE] [--blocks 100k,1m] [--events N] [--moments N] [--folder DIR] [--only-page | --only-memory]`: `--folder`
//! keeps the recordings there and uses those that are there.
#![forbid(unsafe_code)]

mod memory;
mod page;
mod recording;

use std::path::PathBuf;

use radixscope_tests::grown::blocks_of;
use serde_json::{Value, json};

/// An hour.
const EVENTS: u64 = 3_600_000;

struct Options {
    json: Option<String>,
    blocks: Vec<u64>,
    events: u64,
    moments: usize,
    folder: Option<PathBuf>,
    is_page: bool,
    is_memory: bool,
}

fn options() -> Options {
    let mut options = Options {
        json: std::env::var("RADIXSCOPE_BENCH_OUT").ok(),
        blocks: vec![100_000, 1_000_000],
        events: EVENTS,
        moments: 100,
        folder: None,
        is_page: true,
        is_memory: true,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap_or_else(|| panic!("{arg} needs a value"));
        match arg.as_str() {
            "--json" => options.json = Some(value()),
            "--blocks" => options.blocks = value().split(',').map(blocks_of).collect(),
            "--events" => options.events = value().parse().expect("--events takes a number"),
            "--moments" => options.moments = value().parse().expect("--moments takes a number"),
            "--folder" => options.folder = Some(value().into()),
            "--only-page" => options.is_memory = false,
            "--only-memory" => options.is_page = false,
            other => panic!(
                "unknown option {other}; there are --json, --blocks, --events, --moments, --folder, --only-page and --only-memory"
            ),
        }
    }
    options
}

#[tokio::main]
async fn main() {
    let options = options();
    let own = tempfile::tempdir().expect("a writable folder");
    let folder = options.folder.clone().unwrap_or_else(|| own.path().to_owned());
    // The browser opens files from a folder of its own.
    let folder = folder.canonicalize().expect("the folder is there");
    let mut rows = Vec::new();
    if options.is_page {
        for &blocks in &options.blocks {
            let hour = recording::Hour::of(&folder, blocks, options.events);
            rows.extend(hour.rows());
            rows.extend(page::measure(&hour, options.moments).await);
        }
    }
    if options.is_memory {
        rows.extend(memory::measure().await);
    }
    if let Some(file) = options.json {
        let text = format!("{:#}\n", json!({"rows": rows}));
        std::fs::write(&file, text).unwrap_or_else(|e| panic!("{file}: {e}"));
    }
}

/// A figure, with its budget where there is one.
fn row(what: &str, value: f64, unit: &str, budget: Option<(String, bool)>) -> Value {
    println!("{what}: {value:.2} {unit}");
    let mut row = json!({"what": what, "value": value, "unit": unit});
    if let Some((words, is_within)) = budget {
        row["budget"] = words.into();
        row["within"] = is_within.into();
    }
    row
}

/// A figure that is to be at most `most`.
fn at_most(what: &str, value: f64, unit: &str, most: f64) -> Value {
    row(what, value, unit, Some((format!("≤ {most} {unit}"), value <= most)))
}

/// The value that the share `q` does not exceed; NaN of nothing.
fn quantile(values: &[f64], q: f64) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    radixscope_tests::traffic::quantile(&sorted, q)
}
