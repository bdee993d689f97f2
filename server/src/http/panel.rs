//! `GET /panel/NAME.svg`: a panel of the page as a picture, for places that allow neither frames nor scripts.
//!
//! # How it works
//! The hub copies the figures; the picture is drawn on a blocking thread, a few at a time. Requests for the same picture in the
//! same second share the bytes and the `ETag`. Errors are pictures too, because an image element can show nothing else.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use tokio::sync::OnceCell;

use radixscope_export::panel::svg::{Panel, PanelKind, PanelRequest as Drawing, refusal};
use radixscope_export::tree::svg::SIZE_PX;
use radixscope_insight::time_range::{TimePoint, TimeRange};
use radixscope_insight::view_context::{ShownPools, ViewContext};

use super::api::params::{Params, PoolFilter, WorkerFilter};
use super::assets::is_known;
use super::error::{ApiError, code};
use super::{App, Front};
use crate::hub::View;

/// Known parameters.
const KNOWN: [&str; 11] =
    ["theme", "width", "height", "worker", "pool", "model", "from", "to", "ttft_slo", "tpot_slo", "refresh"];
const THEMES: [(&str, bool); 2] = [("light", false), ("dark", true)];
/// Default width and height.
const SIZE: (u32, u32) = (800, 400);
/// Maximum target, as on the page: ten minutes.
const MAX_TARGET_MS: u64 = 600_000;
/// Maximum refresh interval: a day.
const MAX_REFRESH_S: u64 = 86_400;

/// Maximum cached pictures.
const MAX_CACHED: usize = 32;
/// Larger pictures are not cached, so that the cache stays below 16 MiB.
const MAX_CACHED_BYTES: usize = 512 * 1024;

/// A rendered picture.
struct RenderedPanel {
    svg: Bytes,
    etag: String,
}

/// A picture of this second, rendered or in progress.
struct CachedPanel {
    key: [u8; 32],
    second: u64,
    rendered: Arc<OnceCell<Arc<RenderedPanel>>>,
}

/// The pictures of this second.
#[derive(Default)]
pub(super) struct Panels(Mutex<Vec<CachedPanel>>);

impl Panels {
    /// The cache cell of a picture in this second; the first request renders it.
    fn of(&self, key: [u8; 32], second: u64) -> Arc<OnceCell<Arc<RenderedPanel>>> {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cached.retain(|cached| cached.second == second);
        if let Some(known) = cached.iter().find(|cached| cached.key == key) {
            return Arc::clone(&known.rendered);
        }
        if cached.len() == MAX_CACHED {
            cached.remove(0);
        }
        let rendered = Arc::default();
        cached.push(CachedPanel { key, second, rendered: Arc::clone(&rendered) });
        rendered
    }

    fn drop_large(&self, key: [u8; 32]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|cached| cached.key != key);
    }
}

/// The validated parameters.
struct PanelRequest {
    kind: PanelKind,
    is_dark: bool,
    size: (u32, u32),
    pools: PoolFilter,
    worker: Option<WorkerFilter>,
    range: TimeRange,
    targets_ms: [Option<f64>; 2],
    refresh_s: Option<u64>,
}

pub(super) async fn panel(
    State(app): State<App>,
    Path(name): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    match respond(&app, &name, &uri, &headers).await {
        Ok(response) => response,
        Err(error) if wants_picture(&headers) => refused(&app, &uri, &error),
        Err(error) => error.into_response(),
    }
}

async fn respond(app: &App, name: &str, uri: &Uri, headers: &HeaderMap) -> Result<Response, ApiError> {
    let params = Params::of(uri, &KNOWN)?;
    let request = PanelRequest::of(name, &params)?;
    let refresh = request.refresh_s;
    let (key, second) = (key(name, uri), now_s());
    let place = app.panels.of(key, second);
    let rendered = Arc::clone(place.get_or_try_init(|| draw(app, request)).await?);
    if rendered.svg.len() > MAX_CACHED_BYTES {
        app.panels.drop_large(key);
    }
    let mut response = match is_known(headers, &rendered.etag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => rendered.svg.clone().into_response(),
    };
    let to = response.headers_mut();
    if let Ok(etag) = HeaderValue::from_str(&rendered.etag) {
        to.insert(header::ETAG, etag);
    }
    // Fresh for one second; then revalidated by ETag.
    to.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=1, must-revalidate"));
    if let Some(seconds) = refresh {
        to.insert(HeaderName::from_static("refresh"), HeaderValue::from(seconds));
    }
    picture_headers(app, to);
    Ok(response)
}

/// Headers of pictures: no scripts, nothing to load, and framing as for the page.
fn picture_headers(front: &Front, to: &mut HeaderMap) {
    to.insert(header::CONTENT_TYPE, HeaderValue::from_static("image/svg+xml"));
    let policy = format!("default-src 'none'; frame-ancestors {}", front.options.frame_ancestors.as_str());
    let policy = HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"));
    to.insert(header::CONTENT_SECURITY_POLICY, policy);
}

/// Whether the client is a browser that shows an image or a document, not a script.
pub(super) fn wants_picture(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.contains("image/") || accepted.contains("text/html")
}

/// An error as a picture, in the requested size and theme if these are valid.
pub(super) fn refused(front: &Front, uri: &Uri, error: &ApiError) -> Response {
    let params = Params::of(uri, &KNOWN).ok();
    let is_dark = params.as_ref().and_then(|params| params.one_of("theme", &THEMES).ok()?).unwrap_or(false);
    let px = |name, standard| params.as_ref().and_then(|params| px(params, name).ok()?).unwrap_or(standard);
    let svg = refusal(is_dark, (px("width", SIZE.0), px("height", SIZE.1)), error.message());
    let mut response = (error.status(), svg).into_response();
    let to = response.headers_mut();
    to.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    picture_headers(front, to);
    response
}

impl PanelRequest {
    fn of(name: &str, params: &Params) -> Result<Self, ApiError> {
        let kind = PanelKind::ALL.into_iter().find(|kind| name.strip_suffix(".svg") == Some(kind.as_str()));
        let kind = kind.ok_or_else(|| {
            let known: Vec<String> =
                PanelKind::ALL.iter().map(|kind| format!("{}.svg", kind.as_str())).collect();
            let name: String = name.chars().take(80).collect();
            ApiError::new(
                code::NOT_FOUND,
                format!("panel {name:?} does not exist; there are {}", known.join(", ")),
            )
        })?;
        let target = |name| Ok::<_, ApiError>(params.within(name, 1, MAX_TARGET_MS)?.map(|ms| ms as f64));
        Ok(Self {
            kind,
            is_dark: params.one_of("theme", &THEMES)?.unwrap_or(false),
            size: (px(params, "width")?.unwrap_or(SIZE.0), px(params, "height")?.unwrap_or(SIZE.1)),
            pools: params.pools(),
            worker: params.worker()?,
            range: range(params)?,
            targets_ms: [target("ttft_slo")?, target("tpot_slo")?],
            refresh_s: refresh(params)?,
        })
    }

    /// Copies the figures.
    fn read(self, view: &mut View<'_>) -> Result<Panel, ApiError> {
        let cluster = view.cluster;
        let worker = self.worker.map(|worker| worker.among(cluster)).transpose()?;
        let worker = worker.and_then(|all| all.first().copied());
        let pool = self.pools.one_of(cluster)?;
        let only = self.pools.is_named().then_some(pool);
        let picture = self.kind.needs_tree().then(|| view.picture(pool));
        let shown = ViewContext::new(cluster, ShownPools { pool, only, tier: None });
        let [ttft, itl] = self.targets_ms;
        let targets = cluster.targets();
        let asked = Drawing {
            kind: self.kind,
            is_dark: self.is_dark,
            width_px: self.size.0,
            height_px: self.size.1,
            worker,
            span: self.range.span(view.at_ms),
            targets_ms: [ttft.unwrap_or(targets.ttft_ms), itl.unwrap_or(targets.itl_ms)],
        };
        Ok(Panel::of(&shown, picture, asked, view.at_ms))
    }
}

async fn draw(app: &App, request: PanelRequest) -> Result<Arc<RenderedPanel>, ApiError> {
    let ended = || ApiError::new(code::SHUTTING_DOWN, "the server is shutting down");
    let permit = Arc::clone(&app.tree_reads).acquire_owned().await.map_err(|_| ended())?;
    let panel = app.hub.read(move |view| request.read(view)).await??;
    let run = tokio::task::spawn_blocking(move || {
        let svg = Bytes::from(panel.svg());
        drop((panel, permit));
        let hash = Sha256::digest(&svg);
        Arc::new(RenderedPanel { svg, etag: format!("\"{}\"", URL_SAFE_NO_PAD.encode(&hash[..16])) })
    });
    run.await.map_err(|error| {
        tracing::error!(%error, "drawing a panel failed");
        ApiError::new(code::INTERNAL, "drawing the panel failed")
    })
}

/// The cache key: the panel and its parameters, in any order.
fn key(name: &str, uri: &Uri) -> [u8; 32] {
    let mut pairs: Vec<&str> = uri.query().unwrap_or_default().split('&').collect();
    pairs.sort_unstable();
    let mut hash = Sha256::new_with_prefix(name.as_bytes());
    for pair in pairs {
        hash.update(b"&");
        hash.update(pair.as_bytes());
    }
    hash.finalize().into()
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn px(params: &Params, name: &str) -> Result<Option<u32>, ApiError> {
    let px = params.within(name, (*SIZE_PX.start()).into(), (*SIZE_PX.end()).into())?;
    Ok(px.map(|px| px as u32))
}

fn range(params: &Params) -> Result<TimeRange, ApiError> {
    let moment = |name, standard| match params.get(name) {
        None => Ok(standard),
        Some(text) => TimePoint::parse(text)
            .ok_or_else(|| ApiError::bad_parameter(name, text, "now, now-15m or Unix milliseconds")),
    };
    let standard = TimeRange::default();
    let range = TimeRange { from: moment("from", standard.from)?, to: moment("to", standard.to)? };
    if range.is_forward() {
        return Ok(range);
    }
    let message = format!("from={} is not before to={}", range.from, range.to);
    Err(ApiError::new(code::BAD_PARAMETER, message))
}

/// A refresh interval as Grafana writes it, `5s`, `1m`, `1h` or `1d`, or seconds.
fn refresh(params: &Params) -> Result<Option<u64>, ApiError> {
    let Some(text) = params.get("refresh") else { return Ok(None) };
    let unit_s = match text.chars().last() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3_600,
        Some('d') => 86_400,
        _ => 0,
    };
    let (digits, unit_s) = match unit_s {
        0 => (text, 1),
        unit_s => (&text[..text.len() - 1], unit_s),
    };
    let seconds = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit_s));
    let seconds = seconds.filter(|seconds| (1..=MAX_REFRESH_S).contains(seconds));
    let expected = "a time from 1s to 1d, such as 5s, 1m or 1h";
    seconds.map(Some).ok_or_else(|| ApiError::bad_parameter("refresh", text, expected))
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::Millis;

    fn request(name: &str, query: &str) -> Result<PanelRequest, ApiError> {
        let uri: Uri = format!("/panel/{name}?{query}").parse().unwrap();
        PanelRequest::of(name, &Params::of(&uri, &KNOWN)?)
    }

    #[test]
    fn invalid_requests_are_rejected_with_a_reason() {
        let cases = [
            ("tree.png", "", "there are tree.svg"),
            ("tree.svg", "theme=blue", "light, dark"),
            ("tree.svg", "width=1", "from 240"),
            ("tree.svg", "height=99999999999999999999", "decimal number"),
            ("tree.svg", "wdith=300", "unknown parameter"),
            ("tree.svg", "theme=dark&theme=dark", "twice"),
            ("rates.svg", "from=soon", "Unix milliseconds"),
            ("rates.svg", "from=now&to=now-5m", "not before"),
            ("rates.svg", "refresh=0s", "from 1s to 1d"),
            ("rates.svg", "refresh=5%C3%A4", "from 1s to 1d"),
            ("rates.svg", "worker=x", "ID/RANK"),
        ];
        for (name, query, text) in cases {
            let error = request(name, query).err().unwrap_or_else(|| panic!("{name}?{query} is taken"));
            assert!(error.message().contains(text), "{query}: {}", error.message());
        }
    }

    #[test]
    fn grafanas_placeholders_are_understood() {
        let of = request("spread.svg", "refresh=1m&worker=%24__all&from=1800000000000&to=now").unwrap();
        assert_eq!((of.refresh_s, of.worker), (Some(60), None));
        assert_eq!(of.range.span(Millis(1_800_000_300_000)).from, Millis(1_800_000_000_000));
        assert_eq!(request("spread.svg", "refresh=30").unwrap().refresh_s, Some(30));
        for all in ["All", "%24__all", ".*", ""] {
            let of = request("spread.svg", &format!("pool={all}&model={all}&worker={all}")).unwrap();
            assert!(!of.pools.is_named() && of.worker.is_none(), "{all}");
        }
    }

    #[test]
    fn the_same_picture_of_one_second_is_drawn_once_and_few_are_kept() {
        let panels = Panels::default();
        let of = |query: &str| key("tree.svg", &format!("/panel/tree.svg?{query}").parse().unwrap());
        let first = panels.of(of("width=300&theme=dark"), 1);
        assert!(Arc::ptr_eq(&first, &panels.of(of("theme=dark&width=300"), 1)));
        assert!(!Arc::ptr_eq(&first, &panels.of(of("theme=light&width=300"), 1)));
        assert!(!Arc::ptr_eq(&first, &panels.of(of("width=300&theme=dark"), 2)), "a second later");
        for width in 0..1_000 {
            panels.of(of(&format!("width={width}")), 2);
        }
        assert_eq!(panels.0.lock().unwrap().len(), MAX_CACHED);
    }
}
