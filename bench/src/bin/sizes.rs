//! Sizes of what the browser loads, raw and compressed as the server sends it: two rows for each program's WASM and for each other
//! kind of file, one for each part of the page.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser as _;
use radixscope_bench::report::ReportFile;
use radixscope_compress::{Effort, brotli};
use radixscope_tests::paths;
use serde_json::{Value, json};

/// What every viewer loads first, compressed.
const PAGE_BUDGET_BYTES: usize = 450_000;
/// A part of the page that is loaded when it is opened, compressed.
const PART_BUDGET_BYTES: usize = 250_000;
/// The page's programs, the one with the budget first; the others are loaded when they are needed.
const PROGRAMS: [&str; 4] = ["page", "worker", "player", "tokenizer"];
/// What else the browser loads.
const OTHERS: [&str; 3] =
    ["JavaScript of all programs", "HTML, styles, icon", "charts, loaded when first shown"];

/// What a file counts as.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// Index in [`PROGRAMS`] and then [`OTHERS`].
    Summed(usize),
    /// A part of the page, by its name.
    Part(String),
}

#[derive(clap::Parser)]
struct Options {
    #[command(flatten)]
    report: ReportFile,
}

fn main() {
    let options = Options::parse();
    let rows = rows(&paths::checkout().join("app/dist"));
    println!("{:#}", json!(rows));
    options.report.write(&json!({"rows": rows}));
}

/// The rows of the page that is built in a folder.
fn rows(dist: &Path) -> Vec<Value> {
    let mut sums = [(0, 0); PROGRAMS.len() + OTHERS.len()];
    let mut parts = Vec::new();
    for path in files(dist) {
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let compressed = brotli(&bytes, Effort::Most).expect("memory is written to").len();
        match kind(path.strip_prefix(dist).expect("a file in it")) {
            Kind::Summed(at) => {
                sums[at].0 += bytes.len();
                sums[at].1 += compressed;
            }
            Kind::Part(name) => parts.push(json!({
                "what": format!("part of the page, {name}, brotli"), "value": kilobytes(compressed), "unit": "kB",
                "budget": format!("≤ {} kB", PART_BUDGET_BYTES / 1000), "within": compressed <= PART_BUDGET_BYTES
            })),
        }
    }
    for (name, (raw, _)) in PROGRAMS.iter().zip(sums) {
        assert!(raw > 0, "{} holds no WASM of the program {name}", dist.display());
    }
    let mut rows = Vec::new();
    let names = PROGRAMS.iter().map(|name| format!("{name}, WASM"));
    for (what, (raw, compressed)) in names.chain(OTHERS.map(str::to_owned)).zip(sums) {
        rows.push(json!({"what": format!("{what}, raw"), "value": kilobytes(raw), "unit": "kB"}));
        rows.push(json!({"what": format!("{what}, brotli"), "value": kilobytes(compressed), "unit": "kB"}));
    }
    rows[1]["budget"] = format!("≤ {} kB", PAGE_BUDGET_BYTES / 1000).into();
    rows[1]["within"] = (sums[0].1 <= PAGE_BUDGET_BYTES).into();
    rows.append(&mut parts);
    rows
}

/// All files in a folder and below, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    found.sort();
    found.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// A file's kind, by its path in the page.
///
/// # Panics
/// When it is the WASM of no program that is known.
fn kind(path: &Path) -> Kind {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let part = name.strip_prefix("split_").unwrap_or(name).split('-').next().unwrap_or_default();
    match path.extension().and_then(|extension| extension.to_str()) {
        _ if path.starts_with("vendor") => Kind::Summed(PROGRAMS.len() + 2),
        Some("bin") => Kind::Part(part.to_owned()),
        Some("wasm") if name.starts_with("split_") => Kind::Part(part.to_owned()),
        Some("wasm") => {
            let program = name.split(['-', '_']).next().unwrap_or_default();
            let of = PROGRAMS.iter().position(|known| *known == program);
            Kind::Summed(of.unwrap_or_else(|| panic!("{name} belongs to no program that is measured")))
        }
        Some("js") => Kind::Summed(PROGRAMS.len()),
        _ => Kind::Summed(PROGRAMS.len() + 1),
    }
}

fn kilobytes(bytes: usize) -> f64 {
    bytes as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_counted_where_it_belongs() {
        let kind = |path: &str| kind(Path::new(path));
        let summed = Kind::Summed;
        assert_eq!(kind("page-00_bg.wasm"), summed(0));
        assert_eq!(kind("worker_bg.wasm"), summed(1));
        assert_eq!(kind("player_bg.wasm"), summed(2));
        assert_eq!(kind("tokenizer_bg.wasm"), summed(3));
        assert_eq!(kind("split_whatif-00.wasm"), Kind::Part("whatif".to_owned()));
        assert_eq!(kind("shared-00.bin"), Kind::Part("shared".to_owned()));
        assert_eq!(kind("page-00.js"), summed(4));
        assert_eq!(kind("index.html"), summed(5));
        assert_eq!(kind("vendor/echarts-5.6.0.min.js"), summed(6), "a vendored script is not the page's");
    }
}
