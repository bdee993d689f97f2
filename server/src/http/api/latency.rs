//! `GET /api/v1/latency`: times and lengths of requests over the last seconds and over the session, by the frontends'
//! histograms and, where logs or traces tell of requests one by one, by those. What nobody tells is `null`.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde::Serialize;

use radixscope_core::cluster::{Cluster, Distribution, ProcessState, Quantile, SCRAPE_WINDOW_MS};
use radixscope_core::id::Millis;
use radixscope_core::latency::{self, Quantity, Source, Times};
use radixscope_core::record::HistogramKind;

use super::params::Params;
use crate::http::error::ApiError;
use crate::hub::{Hub, View};

const DEFAULT_WINDOW_S: u64 = 60;

/// The answer. A figure's values are in its own `unit`.
#[derive(Serialize)]
pub(super) struct LatencyDto {
    /// The last record folded.
    seq: u64,
    at_ms: u64,
    /// Length of every `window`, seconds.
    window_s: u64,
    ttft: FigureDto,
    itl: FigureDto,
    duration: FigureDto,
    input_tokens: FigureDto,
    output_tokens: FigureDto,
    cached_tokens: FigureDto,
    hit_rate: FigureDto,
    router_overhead: FigureDto,
}

#[derive(Serialize)]
struct FigureDto {
    unit: &'static str,
    /// By histograms, which know a value by its bucket; `null`: no scraped process offers one.
    histogram: Option<HistogramDto>,
    /// By requests that logs or traces tell one by one, exact; `null`: none do.
    requests: Option<RequestsDto>,
}

/// One distribution, summed over the processes that offer it.
#[derive(Serialize)]
struct HistogramDto {
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

/// Requests of the window.
#[derive(Serialize)]
struct RequestsDto {
    count: u64,
    p50: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    /// Who measured, in words.
    source: String,
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
    let (cluster, now, window_ms) = (view.cluster, view.at_ms, window_s * 1_000);
    let figure = |unit, kind, quantity: Option<Quantity>| FigureDto {
        unit,
        histogram: histogram(cluster, kind, now, window_ms),
        requests: quantity.and_then(|quantity| requests(cluster, quantity, now, window_ms)),
    };
    LatencyDto {
        seq: cluster.seq().0,
        at_ms: now.0,
        window_s,
        ttft: figure("s", Ttft, Some(Quantity::Ttft)),
        itl: figure("s", Itl, Some(Quantity::Tpot)),
        duration: figure("s", Duration, None),
        input_tokens: figure("tokens", InputTokens, Some(Quantity::InputTokens)),
        output_tokens: figure("tokens", OutputTokens, Some(Quantity::OutputTokens)),
        cached_tokens: figure("tokens", CachedTokens, None),
        hit_rate: figure("share of the prompt's blocks", HitRate, None),
        router_overhead: figure("ms", RouterOverheadMs, None),
    }
}

fn histogram(cluster: &Cluster, kind: HistogramKind, now: Millis, window_ms: u64) -> Option<HistogramDto> {
    let after = Millis(now.0.saturating_sub(window_ms));
    let (window, source) =
        latency::merged(cluster, kind, |process, kind| process.distribution(kind, after, now))?;
    let (session, _) = latency::merged(cluster, kind, ProcessState::session)?;
    let Source::Histograms { processes, left_out } = source else { return None };
    Some(HistogramDto { window: samples(&window), session: samples(&session), sources: processes, left_out })
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

fn requests(cluster: &Cluster, quantity: Quantity, now: Millis, window_ms: u64) -> Option<RequestsDto> {
    let Times { source, samples, quantiles } = latency::requests(cluster, quantity, now, window_ms)?;
    // Times of single requests come in milliseconds, those of Dynamo's histograms in seconds.
    let scale = match quantity {
        Quantity::Ttft | Quantity::Tpot | Quantity::EndToEnd => 1e-3,
        Quantity::InputTokens | Quantity::OutputTokens | Quantity::RouterOverhead => 1.0,
    };
    let [p50, p95, p99] = match quantiles {
        Some(readings) => readings.map(|reading| Some(reading.value * scale)),
        None => [None; 3],
    };
    Some(RequestsDto { count: samples, p50, p95, p99, source: source.words() })
}
