//! What guidellm writes as JSON: a report of several benchmarks, each of one level, with all requests, which are passed over.
//! Report version 2, as of the source of guidellm 0.8.1.

use serde::Deserialize;
use serde_json::value::Number;

use super::super::problem::quoted;
use super::{Figure, Figures, ImportError, Measured, Run, allowed, count, is_known, json};

const TOOL: &str = "guidellm";
const KNOWN: &str = "report version 2";

#[derive(Deserialize)]
struct Report {
    metadata: Metadata,
    benchmarks: Vec<Benchmark>,
}

#[derive(Deserialize)]
struct Metadata {
    version: Option<Number>,
}

#[derive(Deserialize)]
struct Benchmark {
    config: Config,
    metrics: Metrics,
    scheduler_metrics: Option<SchedulerMetrics>,
}

#[derive(Deserialize)]
struct Config {
    id_: Option<String>,
    strategy: Strategy,
}

#[derive(Deserialize)]
struct Strategy {
    streams: Option<f64>,
}

#[derive(Deserialize)]
struct SchedulerMetrics {
    measure_start_time: Option<f64>,
    measure_end_time: Option<f64>,
}

#[derive(Deserialize)]
struct Metrics {
    requests_per_second: Option<ByStatus>,
    request_concurrency: Option<ByStatus>,
    /// In seconds.
    request_latency: Option<ByStatus>,
    time_to_first_token_ms: Option<ByStatus>,
    inter_token_latency_ms: Option<ByStatus>,
    output_tokens_per_second: Option<ByStatus>,
}

#[derive(Deserialize)]
struct ByStatus {
    successful: Option<Distribution>,
}

#[derive(Deserialize)]
struct Distribution {
    mean: Option<f64>,
    count: Option<f64>,
    percentiles: Option<Percentiles>,
}

#[derive(Deserialize)]
struct Percentiles {
    p50: Option<f64>,
    p95: Option<f64>,
}

/// A run for each benchmark.
pub(super) fn report(text: &str) -> Result<Vec<Run>, ImportError> {
    let report: Report = json(text)?;
    if report.metadata.version.as_ref().and_then(Number::as_u64) != Some(2) {
        let found =
            report.metadata.version.map_or_else(|| "none".to_owned(), |version| quoted(&version.to_string()));
        return Err(ImportError::Version { tool: TOOL, found, known: KNOWN });
    }
    let runs: Vec<Run> = report.benchmarks.into_iter().map(run).collect::<Result<_, _>>()?;
    if runs.is_empty() {
        return Err(ImportError::NothingMeasured);
    }
    Ok(runs)
}

fn run(benchmark: Benchmark) -> Result<Run, ImportError> {
    let Benchmark { config, metrics, scheduler_metrics } = benchmark;
    let mean = |of: &Option<ByStatus>| of.as_ref()?.successful.as_ref()?.mean;
    let percentile = |of: &Option<ByStatus>, which: fn(&Percentiles) -> Option<f64>| {
        which(of.as_ref()?.successful.as_ref()?.percentiles.as_ref()?)
    };
    let figures = allowed(Figures::from_fn(|figure| match figure {
        Figure::TtftP50 => percentile(&metrics.time_to_first_token_ms, |all| all.p50),
        Figure::TtftP95 => percentile(&metrics.time_to_first_token_ms, |all| all.p95),
        Figure::ItlP50 => percentile(&metrics.inter_token_latency_ms, |all| all.p50),
        Figure::ItlP95 => percentile(&metrics.inter_token_latency_ms, |all| all.p95),
        Figure::E2eP50 => percentile(&metrics.request_latency, |all| all.p50),
        Figure::E2eP95 => percentile(&metrics.request_latency, |all| all.p95),
        Figure::OutputTokens => mean(&metrics.output_tokens_per_second),
        Figure::Requests => mean(&metrics.requests_per_second),
        Figure::HitRate => None,
    }));
    if !is_known(&figures) {
        return Err(ImportError::NothingMeasured);
    }
    let samples = [&metrics.time_to_first_token_ms, &metrics.request_latency]
        .into_iter()
        .filter_map(|of| of.as_ref()?.successful.as_ref()?.count)
        .min_by(f64::total_cmp);
    // Benchmarks at a rate have no streams: what was in flight on average is their level.
    let in_flight = mean(&metrics.request_concurrency).map(|mean| mean.round().max(1.0));
    let measured = scheduler_metrics.and_then(|at| Some(at.measure_end_time? - at.measure_start_time?));
    Ok(Run {
        id: config.id_,
        concurrency: config.strategy.streams.or(in_flight).ok_or(ImportError::NoLevel)?,
        measured: Some(Measured {
            figures,
            duration_s: measured.filter(|seconds| *seconds >= 0.0),
            samples: count(samples),
        }),
        plan: None,
    })
}
