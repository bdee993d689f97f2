//! History: `/history` lists the retained segments and a timeline row per second, `/history/segment` returns the keyframe and
//! the records up to a moment, in the format of `/snapshot`.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use bytes::Bytes;

use radixscope_model::frame::Frame;
use radixscope_model::id::{Decimal, Millis, Seq};
use radixscope_replay::{Index, Retention};

use super::App;
use super::api::params::Params;
use super::error::{ApiError, code};
use super::origin::AllowedPage;
use super::snapshot;
use crate::hub::{Hub, QueryError};

pub(super) async fn index(_: AllowedPage, State(hub): State<Hub>, uri: Uri) -> Result<Json<Index>, ApiError> {
    let after = Millis(Params::of(&uri, &["after_ms"])?.u64("after_ms")?.unwrap_or(0));
    let index = hub.read(move |view| {
        let (segments, rows) = view.timeline(after);
        Index {
            epoch: Decimal(view.epoch),
            at_ms: view.at_ms,
            replay: view.is_replay,
            retention: view.history(),
            segments,
            rows,
        }
    });
    Ok(Json(index.await?))
}

pub(super) async fn segment(
    _: AllowedPage,
    State(app): State<App>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    let params = Params::of(&uri, &["at_ms", "after", "until_ms"])?;
    let (after, until) = (params.u64("after")?.map(Seq), params.u64("until_ms")?.map(Millis));
    let missing = || ApiError::bad_parameter("at_ms", "", "a time in Unix milliseconds");
    let at = Millis(params.u64("at_ms")?.ok_or_else(missing)?);
    let _permit = snapshot::permit(&app).await?;
    let found = app.hub.read(move |view| {
        let hello = |from_ms, seq| {
            let server = env!("CARGO_PKG_VERSION").into();
            Frame::Hello { epoch: view.epoch, seq, at_ms: from_ms, server }.encode()
        };
        let Some(found) = view.segment_at(at, after, until) else { return Ok(Err(view.history())) };
        let hello = Bytes::from(hello(found.from_ms, found.seq)?);
        Ok(Ok(std::iter::once(hello).chain(found.frames).collect()))
    });
    let frames: Result<Vec<Bytes>, Option<Retention>> = found
        .await?
        .map_err(|error: radixscope_model::frame::FrameError| QueryError::Encode(error.into()))?;
    let frames = frames.map_err(|retained| ApiError::new(code::NOT_FOUND, not_retained(at, retained)))?;
    snapshot::respond(&headers, frames).await
}

fn not_retained(at: Millis, retained: Option<Retention>) -> String {
    match retained {
        None => "no history is retained (--history 0)".to_owned(),
        Some(Retention { from_ms: None, .. }) => {
            "no history is retained yet; a state larger than --history-mib is never retained".to_owned()
        }
        Some(Retention { from_ms: Some(from), .. }) => {
            format!("{at} is not retained; the history begins at {from} (--history, --history-mib)")
        }
    }
}
