//! What aiperf writes: `profile_export_aiperf.json` of a run (schema 1.x), `profile_export_aiperf_aggregate.json` of the runs of
//! a level (schema 1.x), `profile_export_aiperf_sweep.json` of a sweep (without a version), and `run_config.json` of a run that
//! has begun. Read in aiperf 0.13.0.

use serde::Deserialize;
use std::collections::BTreeMap;

use super::super::problem::quoted;
use super::{
    Bounds, Figure, Figures, ImportError, Measured, Plan, Run, Runs, SpreadKind, SweepLevel, allowed, count,
    is_known, json,
};

const TOOL: &str = "aiperf";
/// The schema versions that are read.
pub(super) const KNOWN: &str = "schema versions 1.x";
/// Most levels that a command names.
const MAX_PLANNED: usize = 200;
/// Most runs of a level; aiperf takes ten.
const MAX_PLANNED_RUNS: u64 = 1_000;

/// A metric of a run.
#[derive(Deserialize)]
struct Metric {
    unit: Option<String>,
    avg: Option<f64>,
    p50: Option<f64>,
    p95: Option<f64>,
    count: Option<f64>,
}

/// A metric of several runs.
#[derive(Deserialize)]
struct Aggregate {
    unit: Option<String>,
    mean: Option<f64>,
    ci_low: Option<f64>,
    ci_high: Option<f64>,
}

/// The model is left out: a baseline names none.
#[derive(Deserialize)]
struct RunFile {
    schema_version: Option<String>,
    time_to_first_token: Option<Metric>,
    inter_token_latency: Option<Metric>,
    request_latency: Option<Metric>,
    output_token_throughput: Option<Metric>,
    request_throughput: Option<Metric>,
    request_count: Option<Metric>,
    benchmark_duration: Option<Metric>,
    overall_usage_prompt_cache_read_pct: Option<Metric>,
    effective_concurrency: Option<Metric>,
    benchmark_id: Option<String>,
    input_config: Option<Config>,
    run_info: Option<RunInfo>,
    was_cancelled: Option<bool>,
    is_complete: Option<bool>,
}

#[derive(Deserialize)]
struct RunInfo {
    cli_command: Option<String>,
}

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    phases: Vec<Phase>,
}

#[derive(Deserialize)]
struct Phase {
    kind: Option<String>,
    concurrency: Option<f64>,
}

#[derive(Deserialize)]
struct RunConfig {
    benchmark_id: Option<String>,
    cfg: Config,
    cli_command: Option<String>,
}

/// `profile_export_aiperf.json`.
pub(super) fn run(text: &str) -> Result<Run, ImportError> {
    let file: RunFile = json(text)?;
    check_version(file.schema_version.as_deref())?;
    if file.was_cancelled == Some(true) || file.is_complete == Some(false) {
        return Err(ImportError::Unfinished);
    }
    let ms = |metric: &Option<Metric>, of: fn(&Metric) -> Option<f64>| {
        let metric = metric.as_ref()?;
        in_unit(of(metric)?, metric.unit.as_deref(), "ms")
    };
    let average = |metric: &Option<Metric>, unit| {
        let metric = metric.as_ref()?;
        in_unit(metric.avg?, metric.unit.as_deref(), unit)
    };
    let seconds = |value: Option<f64>| value.map(|ms| ms / 1e3);
    let figures = Figures::from_fn(|figure| match figure {
        Figure::TtftP50 => ms(&file.time_to_first_token, |metric| metric.p50),
        Figure::TtftP95 => ms(&file.time_to_first_token, |metric| metric.p95),
        Figure::ItlP50 => ms(&file.inter_token_latency, |metric| metric.p50),
        Figure::ItlP95 => ms(&file.inter_token_latency, |metric| metric.p95),
        Figure::E2eP50 => seconds(ms(&file.request_latency, |metric| metric.p50)),
        Figure::E2eP95 => seconds(ms(&file.request_latency, |metric| metric.p95)),
        Figure::OutputTokens => average(&file.output_token_throughput, "tokens/sec"),
        Figure::Requests => average(&file.request_throughput, "requests/sec"),
        Figure::HitRate => average(&file.overall_usage_prompt_cache_read_pct, "%"),
    });
    let figures = allowed(figures);
    if !is_known(&figures) {
        return Err(ImportError::NothingMeasured);
    }
    let counts = [&file.time_to_first_token, &file.inter_token_latency, &file.request_latency];
    let counts = counts.into_iter().flatten().filter_map(|metric| metric.count);
    let samples = counts.min_by(f64::total_cmp).or_else(|| average(&file.request_count, "requests"));
    // Without a fixed concurrency, as with a request rate, what was in flight on average is the level, as it is for live traffic.
    let fixed = file.input_config.as_ref().and_then(concurrency);
    let concurrency =
        fixed.or_else(|| average(&file.effective_concurrency, "requests").map(|mean| mean.round().max(1.0)));
    let command = file.run_info.and_then(|info| info.cli_command);
    Ok(Run {
        id: file.benchmark_id,
        concurrency: concurrency.ok_or(ImportError::NoLevel)?,
        measured: Some(Measured {
            figures,
            duration_s: average(&file.benchmark_duration, "ms").map(|ms| ms / 1e3),
            samples: count(samples),
        }),
        plan: command.as_deref().and_then(plan),
    })
}

/// `run_config.json`: a run that has begun.
pub(super) fn run_config(text: &str) -> Result<Run, ImportError> {
    let file: RunConfig = json(text)?;
    Ok(Run {
        id: file.benchmark_id,
        concurrency: concurrency(&file.cfg).ok_or(ImportError::NoLevel)?,
        measured: None,
        plan: file.cli_command.as_deref().and_then(plan),
    })
}

/// The concurrency of the phase that is measured.
fn concurrency(config: &Config) -> Option<f64> {
    let measured = |phase: &&Phase| phase.kind.as_deref().is_none_or(|kind| kind == "profiling");
    config.phases.iter().rev().find(measured)?.concurrency
}

/// Levels and runs that the command of a sweep names: `--concurrency '60,80' --num-profile-runs 6`.
fn plan(command: &str) -> Option<Plan> {
    let value = |option: &str| {
        let (_, rest) = command.split_once(&format!(" {option} "))?;
        Some(rest.split_whitespace().next()?.trim_matches(['\'', '"']))
    };
    let levels: Result<Vec<f64>, _> = value("--concurrency")?
        .split(',')
        .take(MAX_PLANNED)
        .map(|level| level.trim().parse::<f64>())
        .collect();
    let levels = levels.ok()?;
    let is_valid = levels.iter().all(|&level| super::is_concurrency(level));
    let runs = value("--num-profile-runs").map_or(Some(1), |runs| runs.parse().ok())?;
    (is_valid && (1..=MAX_PLANNED_RUNS).contains(&runs)).then_some(Plan { levels, runs })
}

/// The metrics of several runs that are figures here.
#[derive(Deserialize)]
struct Aggregates {
    time_to_first_token_p50: Option<Aggregate>,
    time_to_first_token_p95: Option<Aggregate>,
    inter_token_latency_p50: Option<Aggregate>,
    inter_token_latency_p95: Option<Aggregate>,
    request_latency_p50: Option<Aggregate>,
    request_latency_p95: Option<Aggregate>,
    output_token_throughput_avg: Option<Aggregate>,
    request_throughput_avg: Option<Aggregate>,
    request_count_avg: Option<Aggregate>,
    benchmark_duration_avg: Option<Aggregate>,
    overall_usage_prompt_cache_read_pct_avg: Option<Aggregate>,
}

impl Aggregates {
    /// The metric of a figure and the unit in which aiperf writes it.
    fn of(&self, figure: Figure) -> (Option<&Aggregate>, &'static str) {
        let (metric, unit) = match figure {
            Figure::TtftP50 => (&self.time_to_first_token_p50, "ms"),
            Figure::TtftP95 => (&self.time_to_first_token_p95, "ms"),
            Figure::ItlP50 => (&self.inter_token_latency_p50, "ms"),
            Figure::ItlP95 => (&self.inter_token_latency_p95, "ms"),
            Figure::E2eP50 => (&self.request_latency_p50, "ms"),
            Figure::E2eP95 => (&self.request_latency_p95, "ms"),
            Figure::OutputTokens => (&self.output_token_throughput_avg, "tokens/sec"),
            Figure::Requests => (&self.request_throughput_avg, "requests/sec"),
            Figure::HitRate => (&self.overall_usage_prompt_cache_read_pct_avg, "%"),
        };
        (metric.as_ref(), unit)
    }

    /// As a level of `runs` runs, each value the mean over the runs; intervals only of more than one run.
    fn level(
        &self,
        concurrency: f64,
        runs: Option<u64>,
        confidence: Option<f64>,
    ) -> Result<SweepLevel, ImportError> {
        let mut level = SweepLevel::new(concurrency);
        let scale = |figure| if matches!(figure, Figure::E2eP50 | Figure::E2eP95) { 1e-3 } else { 1.0 };
        let value = |figure: Figure, of: fn(&Aggregate) -> Option<f64>| {
            let (metric, unit) = self.of(figure);
            let metric = metric?;
            Some(in_unit(of(metric)?, metric.unit.as_deref(), unit)? * scale(figure))
        };
        level.figures = allowed(Figures::from_fn(|figure| value(figure, |metric| metric.mean)));
        if !is_known(&level.figures) {
            return Err(ImportError::NothingMeasured);
        }
        level.spread = confidence
            .filter(|_| runs.is_some_and(|runs| runs > 1))
            .map(|share| SpreadKind::Confidence { percent: (share * 1e6).round() / 1e4 })
            .filter(SpreadKind::is_valid);
        if level.spread.is_some() {
            for figure in Figure::ALL {
                let ends = value(figure, |metric| metric.ci_low).zip(value(figure, |metric| metric.ci_high));
                let bounds = ends.filter(|(low, high)| low <= high && low.is_finite() && high.is_finite());
                level.bounds.set(figure, bounds.map(|(low, high)| Bounds { low, high }.cut(figure)));
            }
        }
        let mean = |metric: &Option<Aggregate>, unit| {
            let metric = metric.as_ref()?;
            in_unit(metric.mean?, metric.unit.as_deref(), unit)
        };
        level.duration_s = mean(&self.benchmark_duration_avg, "ms").map(|ms| ms / 1e3);
        let requests = mean(&self.request_count_avg, "requests");
        level.samples = count(requests.zip(runs).map(|(mean, runs)| mean * runs as f64));
        level.runs = Runs { finished: runs, ..Runs::default() };
        Ok(level)
    }
}

#[derive(Deserialize)]
struct AggregateFile {
    schema_version: Option<String>,
    metadata: AggregateMetadata,
    metrics: Aggregates,
}

#[derive(Deserialize)]
struct AggregateMetadata {
    num_successful_runs: Option<u64>,
    confidence_level: Option<f64>,
    #[serde(default)]
    variation_values: BTreeMap<String, serde_json::Value>,
}

/// `profile_export_aiperf_aggregate.json`: the runs of one level.
pub(super) fn aggregate(text: &str) -> Result<SweepLevel, ImportError> {
    let file: AggregateFile = json(text)?;
    check_version(file.schema_version.as_deref())?;
    let AggregateMetadata { num_successful_runs, confidence_level, variation_values } = file.metadata;
    file.metrics.level(level_of(&variation_values)?, num_successful_runs, confidence_level)
}

#[derive(Deserialize)]
struct SweepFile {
    schema_version: Option<String>,
    #[serde(default)]
    failed_runs: Vec<serde::de::IgnoredAny>,
    metadata: SweepMetadata,
    per_combination_metrics: Vec<Combination>,
}

#[derive(Deserialize)]
struct SweepMetadata {
    confidence_level: Option<f64>,
    num_trials_per_value: Option<u64>,
}

#[derive(Deserialize)]
struct Combination {
    parameters: BTreeMap<String, serde_json::Value>,
    metrics: Aggregates,
}

/// `profile_export_aiperf_sweep.json`: all levels of a sweep.
pub(super) fn sweep(text: &str) -> Result<Vec<SweepLevel>, ImportError> {
    let file: SweepFile = json(text)?;
    // 0.13 writes none here.
    if file.schema_version.is_some() {
        check_version(file.schema_version.as_deref())?;
    }
    let SweepMetadata { confidence_level, num_trials_per_value } = file.metadata;
    // Which level a failed run belongs to is not written: that level has fewer runs.
    let runs = num_trials_per_value.filter(|_| file.failed_runs.is_empty());
    let level = |of: &Combination| {
        let concurrency = level_of(&of.parameters)?;
        let mut level = of.metrics.level(concurrency, num_trials_per_value, confidence_level)?;
        level.runs.finished = runs;
        Ok(level)
    };
    let levels: Vec<SweepLevel> = file.per_combination_metrics.iter().map(level).collect::<Result<_, _>>()?;
    if levels.is_empty() {
        return Err(ImportError::NothingMeasured);
    }
    Ok(levels)
}

/// The concurrency, which must be all that a sweep varies: levels of other prompts, say, cannot be told apart by it.
fn level_of(parameters: &BTreeMap<String, serde_json::Value>) -> Result<f64, ImportError> {
    let is_concurrency = |name: &str| name.rsplit('.').next() == Some("concurrency");
    let others: Vec<String> =
        parameters.keys().filter(|name| !is_concurrency(name)).take(4).map(|name| quoted(name)).collect();
    if !others.is_empty() {
        return Err(ImportError::VariesMore { names: others.join(", ") });
    }
    let value = parameters.values().next().and_then(serde_json::Value::as_f64);
    value.filter(|&value| super::is_concurrency(value)).ok_or(ImportError::NoLevel)
}

fn check_version(version: Option<&str>) -> Result<(), ImportError> {
    let major = version.and_then(|version| version.split('.').next());
    if major == Some("1") {
        return Ok(());
    }
    let found = version.map_or_else(|| "none".to_owned(), quoted);
    Err(ImportError::Version { tool: TOOL, found, known: KNOWN })
}

/// `value` in `wanted`; `None` if its unit is another that does not convert.
fn in_unit(value: f64, unit: Option<&str>, wanted: &str) -> Option<f64> {
    let unit = unit?;
    if unit == wanted {
        return Some(value);
    }
    let factor = match (unit, wanted) {
        ("s" | "sec" | "seconds", "ms") => 1e3,
        ("us" | "µs", "ms") => 1e-3,
        ("ns", "ms") => 1e-6,
        _ => return None,
    };
    Some(value * factor)
}
