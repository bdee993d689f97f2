//! `GET /api/v1/tree.svg`: the tree as a picture.

use std::time::{Duration, UNIX_EPOCH};

use axum::extract::State;
use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};

use radixscope_export::tree::DrawOptions;
use radixscope_export::tree::svg::{Heat, SIZE_PX};
use radixscope_model::id::BlockHash;
use radixscope_state::tree::forest::{Order, Width};

use super::super::params::Params;
use super::{read, window_ms, workers};
use crate::http::App;
use crate::http::error::ApiError;

const ORDERS: [(&str, Order); 2] = [("left-heavy", Order::LeftHeavy), ("stable", Order::Stable)];
const WIDTHS: [(&str, Width); 2] = [("blocks", Width::Blocks), ("hits", Width::Hits)];
const THEMES: [(&str, bool); 2] = [("light", false), ("dark", true)];
const YES_OR_NO: [(&str, bool); 2] = [("1", true), ("0", false)];

pub(in crate::http::api) async fn svg(State(app): State<App>, uri: Uri) -> Result<Response, ApiError> {
    let known = [
        "pool", "model", "root", "worker", "width", "height", "theme", "order", "by", "heat", "window_s",
        "download",
    ];
    let params = Params::of(&uri, &known)?;
    let standard = DrawOptions::default();
    let px = |name| params.within(name, (*SIZE_PX.start()).into(), (*SIZE_PX.end()).into());
    let shown = DrawOptions {
        root: params.u64("root")?.map(BlockHash),
        width_px: px("width")?.map_or(standard.width_px, |px| px as u32),
        height_px: px("height")?.map_or(standard.height_px, |px| px as u32),
        is_dark: params.one_of("theme", &THEMES)?.unwrap_or(standard.is_dark),
        order: params.one_of("order", &ORDERS)?.unwrap_or(standard.order),
        width: params.one_of("by", &WIDTHS)?.unwrap_or(standard.width),
        heat: params
            .one_of("heat", &Heat::OF_TREE.map(|heat| (heat.as_str(), heat)))?
            .unwrap_or(standard.heat),
        hits_window_ms: window_ms(&params)?,
        workers: workers(&app.hub, params.worker()?).await?,
        ..standard
    };
    let is_download = params.one_of("download", &YES_OR_NO)?.unwrap_or(false);
    let svg = read(&app, params.pools(), move |picture| {
        let at = UNIX_EPOCH + Duration::from_millis(picture.at_ms().0);
        picture.svg(&DrawOptions { at: humantime::format_rfc3339_seconds(at).to_string(), ..shown })
    });
    let svg = svg.await??;
    let kind = [
        (header::CONTENT_TYPE, HeaderValue::from_static("image/svg+xml")),
        // It has no scripts and loads nothing.
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    let name = HeaderValue::from_static("attachment; filename=\"radixscope-tree.svg\"");
    let download = is_download.then_some([(header::CONTENT_DISPOSITION, name)]);
    Ok(match download {
        Some(download) => (kind, download, svg).into_response(),
        None => (kind, svg).into_response(),
    })
}
