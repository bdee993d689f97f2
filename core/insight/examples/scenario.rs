//! The reference scenario at its seven levels under both routers, each 300 s after 60 s of warm-up, the mean of some
//! seeds: `scenario [--json FILE]`.
#![expect(clippy::print_stdout, reason = "its table is what it is for")]

use std::error::Error;
use std::fmt::Write as _;

use radixscope_insight::baseline;
use radixscope_model::id::Millis;
use radixscope_router::{Formula, RouterSettings};
use radixscope_sim::{Config, ConfigError, Simulation, Summary};
use serde_json::{Value, json};

const LEVELS: [u32; 7] = [60, 80, 100, 120, 140, 160, 180];
const SEEDS: u64 = 3;
const START: Millis = Millis(1_767_225_600_000);
const FROM: Millis = Millis(START.0 + 60_000);
const UNTIL: Millis = Millis(START.0 + 360_000);

/// A column of the table.
struct Figure {
    name: &'static str,
    unit: &'static str,
    decimals: usize,
    of: fn(&Summary) -> f64,
}

const FIGURES: [Figure; 12] = [
    Figure { name: "TTFT p50", unit: "ms", decimals: 0, of: |s| s.ttft_ms.p50 },
    Figure { name: "TTFT p95", unit: "ms", decimals: 0, of: |s| s.ttft_ms.p95 },
    Figure { name: "hit rate", unit: "%", decimals: 1, of: |s| s.hit_rate * 100.0 },
    Figure { name: "output", unit: "tok/s", decimals: 0, of: |s| s.output_tokens_per_s },
    Figure { name: "requests", unit: "/s", decimals: 2, of: |s| s.requests_per_s },
    Figure { name: "ITL p50", unit: "ms", decimals: 0, of: |s| s.itl_ms.p50 },
    Figure { name: "ITL p95", unit: "ms", decimals: 0, of: |s| s.itl_ms.p95 },
    Figure { name: "E2E p50", unit: "s", decimals: 1, of: |s| s.e2e_ms.p50 / 1e3 },
    Figure { name: "E2E p95", unit: "s", decimals: 1, of: |s| s.e2e_ms.p95 / 1e3 },
    Figure { name: "input p95", unit: "tok", decimals: 0, of: |s| s.isl_tokens.p95 },
    Figure { name: "spread p95", unit: "", decimals: 0, of: |s| s.spread.p95 },
    Figure { name: "fullest p95", unit: "", decimals: 0, of: |s| s.fullest.p95 },
];

/// What one level came to under one router.
struct Level {
    concurrency: u32,
    is_kv: bool,
    /// In the order of [`FIGURES`].
    measured: Vec<f64>,
}

impl Level {
    fn run(concurrency: u32, is_kv: bool) -> Result<Self, ConfigError> {
        let router = if is_kv { RouterSettings::new(Formula::A) } else { RouterSettings::round_robin() };
        let sweep: Vec<Summary> = (1..=SEEDS)
            .map(|seed| {
                let config =
                    Config { concurrency, router, seed, log: false, metrics: false, ..Config::default() };
                let mut simulation = Simulation::new(config, START)?;
                simulation.run_until(UNTIL, &mut |_| {});
                Ok(simulation.report().summary(FROM, UNTIL))
            })
            .collect::<Result<_, ConfigError>>()?;
        let mean = |figure: &Figure| sweep.iter().map(figure.of).sum::<f64>() / SEEDS as f64;
        Ok(Self { concurrency, is_kv, measured: FIGURES.iter().map(mean).collect() })
    }

    fn router(&self) -> &'static str {
        if self.is_kv { "KV" } else { "RR" }
    }

    fn as_json(&self) -> Value {
        let figures = FIGURES.iter().zip(&self.measured);
        let figures: serde_json::Map<String, Value> =
            figures.map(|(figure, value)| (figure.name.to_owned(), json!(value))).collect();
        json!({"concurrency": self.concurrency, "router": self.router(), "figures": figures})
    }
}

/// What was measured of a figure on the real scenario.
fn reference(concurrency: u32, is_kv: bool, figure: &str) -> Option<f64> {
    let figure = match figure {
        "TTFT p50" => baseline::Figure::TtftP50,
        "TTFT p95" => baseline::Figure::TtftP95,
        "hit rate" => baseline::Figure::HitRate,
        "output" => baseline::Figure::OutputTokens,
        "requests" => baseline::Figure::Requests,
        "ITL p50" => baseline::Figure::ItlP50,
        "ITL p95" => baseline::Figure::ItlP95,
        "E2E p50" => baseline::Figure::E2eP50,
        "E2E p95" => baseline::Figure::E2eP95,
        _ => return None,
    };
    let router = if is_kv { baseline::Router::KvAware } else { baseline::Router::RoundRobin };
    let sweeps = baseline::reference();
    let sweep = sweeps.iter().find(|sweep| sweep.router() == router)?;
    sweep.interpolate(f64::from(concurrency), figure).map(|read| read.value)
}

/// The levels as a Markdown table, each figure with its reference in brackets.
fn table(levels: &[Level]) -> String {
    let mut text = String::from("| users | router |");
    for Figure { name, unit, .. } in &FIGURES {
        // Writing to a String cannot fail.
        let _ = write!(text, " {} |", format!("{name} {unit}").trim_end());
    }
    text.push_str("\n|---:|---|");
    text.push_str(&"---:|".repeat(FIGURES.len()));
    for level in levels {
        let _ = write!(text, "\n| {} | {} |", level.concurrency, level.router());
        for (figure, value) in FIGURES.iter().zip(&level.measured) {
            let decimals = figure.decimals;
            let _ = match reference(level.concurrency, level.is_kv, figure.name) {
                Some(reference) => write!(text, " {value:.decimals$} ({reference:.decimals$}) |"),
                None => write!(text, " {value:.decimals$} |"),
            };
        }
    }
    text
}

/// What of it goes into the table of all measurements: where the lesson shows.
fn rows(levels: &[Level]) -> Vec<Value> {
    let shown = |level: &&Level| matches!(level.concurrency, 120 | 180);
    let of_level = |level: &Level| -> Vec<Value> {
        let figures = FIGURES.iter().zip(&level.measured);
        let selected = figures.filter(|(f, _)| matches!(f.name, "TTFT p95" | "hit rate" | "spread p95"));
        let what = |figure: &Figure| {
            format!("simulated, {} users, {}: {}", level.concurrency, level.router(), figure.name)
        };
        selected
            .map(|(figure, value)| json!({"what": what(figure), "value": value, "unit": figure.unit}))
            .collect()
    };
    levels.iter().filter(shown).flat_map(of_level).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let file = args.iter().position(|arg| arg == "--json").and_then(|at| args.get(at + 1));
    let levels = LEVELS
        .into_iter()
        .flat_map(|concurrency| [(concurrency, false), (concurrency, true)])
        .map(|(concurrency, is_kv)| Level::run(concurrency, is_kv))
        .collect::<Result<Vec<Level>, ConfigError>>()?;
    println!("{}", table(&levels));
    if let Some(file) = file {
        let all: Vec<Value> = levels.iter().map(Level::as_json).collect();
        let report = json!({"rows": rows(&levels), "levels": all});
        std::fs::write(file, format!("{report:#}\n"))?;
    }
    Ok(())
}
