//! `GET /api/v1/latency`: times and lengths of requests as the frontends' own histograms tell them, over the last seconds
//! and over the session. What no frontend offers is `null`.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde::Serialize;

use radixscope_core::cluster::{Cluster, Distribution, ProcessState, Quantile, SCRAPE_WINDOW_MS};
use radixscope_core::id::Millis;
use radixscope_core::record::{HistogramKind, ProcessRole};

use super::params::Params;
use crate::http::error::ApiError;
use crate::hub::{Hub, View};

const DEFAULT_WINDOW_S: u64 = 60;

/// The answer. Times are in the unit of their figure, which says it.
#[derive(Serialize)]
pub(super) struct LatencyDto {
    /// The last record folded.
    seq: u64,
    at_ms: u64,
    /// Length of every `window`, seconds.
    window_s: u64,
    ttft: Option<FigureDto>,
    itl: Option<FigureDto>,
    duration: Option<FigureDto>,
    input_tokens: Option<FigureDto>,
    output_tokens: Option<FigureDto>,
    cached_tokens: Option<FigureDto>,
    hit_rate: Option<FigureDto>,
    router_overhead: Option<FigureDto>,
}

/// One distribution, summed over the processes that offer it.
#[derive(Serialize)]
struct FigureDto {
    unit: &'static str,
    window: SamplesDto,
    /// Since each process was first scraped.
    session: SamplesDto,
    /// Names of the processes that are in it.
    sources: Vec<String>,
    /// Those whose buckets have other bounds than the first one's, and that are therefore not in it.
    left_out: Vec<String>,
}

#[derive(Serialize)]
struct SamplesDto {
    count: u64,
    /// `null` without a sample, as all that follow.
    mean: Option<f64>,
    p50: Option<QuantileDto>,
    p95: Option<QuantileDto>,
    p99: Option<QuantileDto>,
}

#[derive(Serialize)]
struct QuantileDto {
    /// As if samples lay evenly in their bucket.
    estimate: f64,
    /// The true value is above this …
    lower: f64,
    /// … and at most this; `null`: above every bound.
    upper: Option<f64>,
}

pub(super) async fn latency(State(hub): State<Hub>, uri: Uri) -> Result<Json<LatencyDto>, ApiError> {
    let params = Params::of(&uri, &["window_s"])?;
    let window_s = params.within("window_s", 1, SCRAPE_WINDOW_MS / 1_000)?.unwrap_or(DEFAULT_WINDOW_S);
    Ok(Json(hub.read(move |view| of(view, window_s)).await?))
}

fn of(view: &View<'_>, window_s: u64) -> LatencyDto {
    use HistogramKind::{
        CachedTokens, Duration, HitRate, InputTokens, Itl, OutputTokens, RouterOverheadMs, Ttft,
    };
    let after = Millis(view.at_ms.0.saturating_sub(window_s * 1_000));
    let figure = |kind, unit| figure(view.cluster, kind, unit, after, view.at_ms);
    LatencyDto {
        seq: view.cluster.seq().0,
        at_ms: view.at_ms.0,
        window_s,
        ttft: figure(Ttft, "s"),
        itl: figure(Itl, "s"),
        duration: figure(Duration, "s"),
        input_tokens: figure(InputTokens, "tokens"),
        output_tokens: figure(OutputTokens, "tokens"),
        cached_tokens: figure(CachedTokens, "tokens"),
        hit_rate: figure(HitRate, "share of the prompt's blocks"),
        router_overhead: figure(RouterOverheadMs, "ms"),
    }
}

fn figure(
    cluster: &Cluster,
    kind: HistogramKind,
    unit: &'static str,
    after: Millis,
    until: Millis,
) -> Option<FigureDto> {
    // What a worker measures of its part of a request would count every request twice.
    let is_asked = |process: &&ProcessState| process.role != ProcessRole::Worker;
    let mut sum: Option<(Distribution, Distribution)> = None;
    let (mut sources, mut left_out) = (Vec::new(), Vec::new());
    for process in cluster.processes().iter().filter(is_asked) {
        let pair = process.distribution(kind, after, until).zip(process.session(kind));
        let Some((window, session)) = pair else { continue };
        let is_in = match &mut sum {
            Some((windows, sessions)) => windows.merge(&window) && sessions.merge(&session),
            none => {
                *none = Some((window, session));
                true
            }
        };
        let names = if is_in { &mut sources } else { &mut left_out };
        names.push(process.name.clone());
    }
    let (window, session) = sum?;
    Some(FigureDto { unit, window: samples(&window), session: samples(&session), sources, left_out })
}

fn samples(of: &Distribution) -> SamplesDto {
    let quantile = |q| {
        let Quantile { estimate, lower, upper } = of.quantile(q)?;
        Some(QuantileDto { estimate, lower, upper })
    };
    SamplesDto {
        count: of.count(),
        mean: of.mean(),
        p50: quantile(0.5),
        p95: quantile(0.95),
        p99: quantile(0.99),
    }
}
