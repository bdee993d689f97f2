//! `GET /api/v1/latency`: latencies and lengths of requests over the last seconds and over the session, from the frontends'
//! histograms and, if logs or traces report single requests, from those; and which of the two the page and the checks use.
//! Values that are not reported are `null`.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde::Serialize;

use radixscope_insight::latency::{self, ClientTimes, Quantity, Times, TimingSource};
use radixscope_model::id::{Millis, Seq};
use radixscope_model::range::Range;
use radixscope_model::record::HistogramKind;
use radixscope_state::cluster::{Cluster, Distribution, ProcessState, Quantile, SCRAPE_WINDOW_MS};

use super::params::Params;
use crate::http::error::ApiError;
use crate::hub::{Hub, View};

const DEFAULT_WINDOW_S: u64 = 60;
/// Maximum target, as in the page: ten minutes.
const MAX_TARGET_MS: u64 = 600_000;

/// The response. A figure's values are in its `unit`.
#[derive(Serialize)]
pub(super) struct LatencyResponse {
    /// The last record folded.
    seq: Seq,
    at_ms: Millis,
    /// Length of every `window`, seconds.
    window_s: u64,
    ttft: Figure,
    itl: Figure,
    duration: Figure,
    input_tokens: Figure,
    output_tokens: Figure,
    cached_tokens: Figure,
    hit_rate: Figure,
    router_overhead: Figure,
    /// Results of clients (`--client-results`), since the server started.
    client_results: ClientResults,
}

#[derive(Serialize)]
struct ClientResults {
    /// Results joined with a decision.
    joined: u64,
    /// Results of requests that are not known here.
    unknown: u64,
    /// `joined` over both, 0 … 1; `null`: there is none.
    joined_share: Option<f64>,
}

#[derive(Serialize)]
struct Figure {
    unit: &'static str,
    /// The displayed figure: from single requests if they cover nearly all that the frontends count, else from the histogram;
    /// `null`: not reported.
    figure: Option<DisplayedFigure>,
    /// From histograms; `null`: no scraped process has one.
    histogram: Option<Histogram>,
    /// From single requests in logs and traces; `null`: not reported.
    requests: Option<Window>,
    /// From what clients measured; `null`: not reported.
    client: Option<Window>,
}

/// One distribution, summed over processes.
#[derive(Serialize)]
struct Histogram {
    window: Samples,
    /// Since each process was first scraped.
    session: Samples,
    /// Names of the included processes.
    sources: Vec<String>,
    /// Excluded processes, whose buckets have different bounds.
    left_out: Vec<String>,
}

#[derive(Serialize)]
struct Samples {
    count: u64,
    /// `null` without a sample, like the following fields.
    mean: Option<f64>,
    #[serde(flatten)]
    percentiles: Percentiles<Quantile>,
}

#[derive(Serialize)]
struct Percentiles<T> {
    p50: Option<T>,
    p95: Option<T>,
    p99: Option<T>,
}

/// The figure of the window.
#[derive(Serialize)]
struct DisplayedFigure {
    /// `requests` or `histogram`.
    by: &'static str,
    #[serde(flatten)]
    window: Window,
    /// The window: after the first, up to the second.
    from_ms: Millis,
    until_ms: Millis,
    /// The target in the figure's unit: `ttft_slo` or `tpot_slo`, else that of the checks; `null`: the quantity has none.
    target: Option<f64>,
    /// `p95` compared with the target: `within`, `above`, or `unknown` if the target lies between its bounds or samples are
    /// few; `null` without a target.
    standing: Option<&'static str>,
}

/// Samples of the window. If some of `of` are missing, a percentile is a range, because they may be on either side.
#[derive(Serialize)]
struct Window {
    /// Samples known.
    count: u64,
    /// All samples, from the frontends' counters.
    of: u64,
    #[serde(flatten)]
    percentiles: Percentiles<Range>,
    /// Source of the samples, as text.
    source: String,
}

pub(super) async fn latency(State(hub): State<Hub>, uri: Uri) -> Result<Json<LatencyResponse>, ApiError> {
    let params = Params::of(&uri, &["window_s", "ttft_slo", "tpot_slo"])?;
    let window_s = params.within("window_s", 1, SCRAPE_WINDOW_MS / 1_000)?.unwrap_or(DEFAULT_WINDOW_S);
    let target = |name| -> Result<Option<f64>, ApiError> {
        Ok(params.within(name, 1, MAX_TARGET_MS)?.map(|ms| ms as f64))
    };
    let targets = [target("ttft_slo")?, target("tpot_slo")?];
    Ok(Json(hub.read(move |view| of(view, window_s, targets)).await?))
}

fn of(view: &View<'_>, window_s: u64, [ttft_ms, itl_ms]: [Option<f64>; 2]) -> LatencyResponse {
    use HistogramKind::{
        CachedTokens, Duration, HitRate, InputTokens, Itl, OutputTokens, RouterOverheadMs, Ttft,
    };
    let (cluster, now, window_ms) = (view.cluster, view.at_ms, window_s * 1_000);
    let targets = cluster.targets();
    let figure = |unit, kind, quantity: Option<Quantity>| Figure {
        unit,
        figure: quantity.and_then(|quantity| {
            let target = match quantity {
                Quantity::Ttft => Some(ttft_ms.unwrap_or(targets.ttft_ms)),
                Quantity::Tpot => Some(itl_ms.unwrap_or(targets.itl_ms)),
                _ => None,
            };
            displayed_figure(cluster, quantity, now, window_ms, target)
        }),
        histogram: histogram(cluster, kind, now, window_ms),
        requests: quantity.and_then(|quantity| {
            Some(window(&latency::requests(cluster, quantity, now, window_ms)?, quantity))
        }),
        client: quantity.and_then(|quantity| {
            Some(client_window(&latency::client(cluster, quantity, now, window_ms)?, quantity))
        }),
    };
    LatencyResponse {
        seq: cluster.seq(),
        at_ms: now,
        window_s,
        ttft: figure("s", Ttft, Some(Quantity::Ttft)),
        itl: figure("s", Itl, Some(Quantity::Tpot)),
        duration: figure("s", Duration, Some(Quantity::EndToEnd)),
        input_tokens: figure("tokens", InputTokens, Some(Quantity::InputTokens)),
        output_tokens: figure("tokens", OutputTokens, Some(Quantity::OutputTokens)),
        cached_tokens: figure("tokens", CachedTokens, None),
        hit_rate: figure("share of the prompt's blocks", HitRate, None),
        router_overhead: figure("ms", RouterOverheadMs, Some(Quantity::RouterOverhead)),
        client_results: ClientResults {
            joined: cluster.clients().joined(),
            unknown: cluster.clients().unknown(),
            joined_share: cluster.clients().joined_share(),
        },
    }
}

fn histogram(cluster: &Cluster, kind: HistogramKind, now: Millis, window_ms: u64) -> Option<Histogram> {
    let after = Millis(now.0.saturating_sub(window_ms));
    let (window, source) =
        latency::merged(cluster, kind, |process, kind| process.distribution(kind, after, now))?;
    let (session, _) = latency::merged(cluster, kind, ProcessState::session)?;
    let TimingSource::Histograms { processes, left_out } = source else { return None };
    Some(Histogram { window: samples(&window), session: samples(&session), sources: processes, left_out })
}

fn samples(of: &Distribution) -> Samples {
    let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|q| of.quantile(q));
    Samples { count: of.count(), mean: of.mean(), percentiles: Percentiles { p50, p95, p99 } }
}

fn displayed_figure(
    cluster: &Cluster,
    quantity: Quantity,
    now: Millis,
    window_ms: u64,
    target_ms: Option<f64>,
) -> Option<DisplayedFigure> {
    let all = latency::within(cluster, quantity, now, window_ms);
    let times = all.into_iter().find(|times| times.samples > 0)?;
    Some(DisplayedFigure {
        by: if matches!(times.source, TimingSource::Histograms { .. }) { "histogram" } else { "requests" },
        from_ms: times.window.0,
        until_ms: times.window.1,
        target: target_ms.map(|ms| ms * scale(quantity)),
        standing: target_ms.map(|ms| times.standing(ms).as_str()),
        window: window(&times, quantity),
    })
}

fn window(times: &Times, quantity: Quantity) -> Window {
    let percentiles = percentiles(times.quantiles, quantity);
    Window { count: times.samples, of: times.of, percentiles, source: times.source.to_text() }
}

/// Clients report each of their requests.
fn client_window(times: &ClientTimes, quantity: Quantity) -> Window {
    let percentiles = percentiles(times.quantiles, quantity);
    let count = times.samples;
    Window { count, of: count, percentiles, source: ClientTimes::SOURCE.to_owned() }
}

fn percentiles(quantiles: Option<[Range; 3]>, quantity: Quantity) -> Percentiles<Range> {
    let [p50, p95, p99] = match quantiles {
        Some(all) => all.map(|range| Some(range.times(scale(quantity)))),
        None => [None; 3],
    };
    Percentiles { p50, p95, p99 }
}

/// Core returns milliseconds; the response uses seconds, the unit of Dynamo's histograms.
const fn scale(quantity: Quantity) -> f64 {
    match quantity {
        Quantity::Ttft | Quantity::Tpot | Quantity::EndToEnd => 1e-3,
        Quantity::InputTokens | Quantity::OutputTokens | Quantity::RouterOverhead => 1.0,
    }
}
