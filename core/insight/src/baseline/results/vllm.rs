//! What `vllm bench serve --save-result` writes: one run, one level, which is its `--max-concurrency`. The 95th percentiles are in
//! the file if `--metric-percentiles` asks for them, whole requests if `--percentile-metrics` does. Fields as of vLLM 0.32's source.

use serde::Deserialize;

use super::{Figure, Figures, ImportError, Measured, Run, allowed, count, is_known, json};

#[derive(Deserialize)]
struct File {
    max_concurrency: Option<f64>,
    duration: Option<f64>,
    completed: Option<f64>,
    request_throughput: Option<f64>,
    output_throughput: Option<f64>,
    median_ttft_ms: Option<f64>,
    p95_ttft_ms: Option<f64>,
    // Its ITL is each gap between two chunks; the mean gap of a request, which is ITL here, it calls TPOT.
    median_tpot_ms: Option<f64>,
    p95_tpot_ms: Option<f64>,
    median_e2el_ms: Option<f64>,
    p95_e2el_ms: Option<f64>,
}

/// The one run of the file.
pub(super) fn run(text: &str) -> Result<Run, ImportError> {
    let file: File = json(text)?;
    let seconds = |ms: Option<f64>| ms.map(|ms| ms / 1e3);
    let figures = allowed(Figures::from_fn(|figure| match figure {
        Figure::TtftP50 => file.median_ttft_ms,
        Figure::TtftP95 => file.p95_ttft_ms,
        Figure::ItlP50 => file.median_tpot_ms,
        Figure::ItlP95 => file.p95_tpot_ms,
        Figure::E2eP50 => seconds(file.median_e2el_ms),
        Figure::E2eP95 => seconds(file.p95_e2el_ms),
        Figure::OutputTokens => file.output_throughput,
        Figure::Requests => file.request_throughput,
        Figure::HitRate => None,
    }));
    if file.completed == Some(0.0) || !is_known(&figures) {
        return Err(ImportError::NothingMeasured);
    }
    Ok(Run {
        id: None,
        concurrency: file.max_concurrency.ok_or(ImportError::NoLevel)?,
        measured: Some(Measured { figures, duration_s: file.duration, samples: count(file.completed) }),
        plan: None,
    })
}
