//! Measures going to moments of a long recording: an hour at a thousand events a second, with trees of 100,000 and a million
//! blocks that keep their size, opened in a headless Chromium by the page. Beside it, what fifteen minutes of history cost a
//! server in memory.
#![forbid(unsafe_code)]

mod memory;
mod page;
mod recording;

use std::path::PathBuf;

use clap::Parser as _;
use radixscope_bench::report::ReportFile;
use radixscope_bench::synthetic_tree::blocks_of;
use serde_json::{Value, json};

/// An hour.
const EVENTS: u64 = 3_600_000;

#[derive(clap::Parser)]
struct Options {
    #[command(flatten)]
    report: ReportFile,
    /// Blocks of the trees
    #[arg(long, value_parser = blocks_of, value_delimiter = ',', default_values = ["100k", "1m"])]
    blocks: Vec<u64>,
    /// Events of the recording
    #[arg(long, default_value_t = EVENTS)]
    events: u64,
    /// Moments gone to
    #[arg(long, default_value_t = 100)]
    moments: usize,
    /// Keep the recordings in this folder, and use those that are there
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Leave out the server's memory
    #[arg(long, conflicts_with = "only_memory")]
    only_page: bool,
    /// Leave out the page
    #[arg(long)]
    only_memory: bool,
}

#[tokio::main]
async fn main() {
    let options = Options::parse();
    let own = tempfile::tempdir().expect("a writable folder");
    let folder = options.folder.clone().unwrap_or_else(|| own.path().to_owned());
    // The browser opens files from a folder of its own.
    let folder = folder.canonicalize().expect("the folder is there");
    let mut rows = Vec::new();
    if !options.only_memory {
        for &blocks in &options.blocks {
            let hour = recording::Hour::of(&folder, blocks, options.events);
            rows.extend(hour.rows());
            rows.extend(page::measure(&hour, options.moments).await);
        }
    }
    if !options.only_page {
        rows.extend(memory::measure().await);
    }
    options.report.write(&json!({"rows": rows}));
}

/// A figure, with its budget where there is one.
fn row(what: &str, value: f64, unit: &str, budget: Option<(String, bool)>) -> Value {
    println!("{what}: {value:.2} {unit}");
    let mut row = json!({"what": what, "value": value, "unit": unit});
    if let Some((text, is_within)) = budget {
        row["budget"] = text.into();
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
