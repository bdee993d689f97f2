//! `/snapshot`: the first frames of a viewer's WebSocket as one body: hello, snapshot and the records after it. A page without
//! a state fetches it before it opens its WebSocket, because a body can be compressed, by a third or more, which matters on
//! slow connections.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use tokio::sync::{Semaphore, SemaphorePermit};

use radixscope_compress::{Effort, brotli, gzip};
use radixscope_replay::append_frame;

use super::App;
use super::assets::accepts;
use super::error::{ApiError, code};
use super::origin::AllowedPage;
use crate::hub::Joined;

/// Maximum concurrent compressions; others wait.
const MAX_PACKED: usize = 2;
/// Hashes are half of the bytes and do not compress, so more effort does not help.
const EFFORT: Effort = Effort::Least;

/// Permits for compression.
pub(super) fn permits() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(MAX_PACKED))
}

pub(super) async fn snapshot(
    _: AllowedPage,
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    // Taken after waiting for the permit, so that it is current.
    let _permit = permit(&app).await?;
    let Joined { hello, backlog, .. } = app.hub.join(None).await?;
    respond(&headers, std::iter::once(hello).chain(backlog).collect()).await
}

fn failed() -> ApiError {
    ApiError::new(code::INTERNAL, "the state could not be compressed")
}

/// A permit for compression.
pub(super) async fn permit(app: &App) -> Result<SemaphorePermit<'_>, ApiError> {
    app.snapshots.acquire().await.map_err(|_| failed())
}

/// The frames as one body, compressed if the client accepts it. Call it with a permit.
pub(super) async fn respond(headers: &HeaderMap, frames: Vec<Bytes>) -> Result<Response, ApiError> {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let accepted = accepted.to_owned();
    let packed = tokio::task::spawn_blocking(move || packed(&body(frames.iter()), &accepted));
    let (body, encoding) = packed.await.map_err(|_| failed())?;
    let common = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::CACHE_CONTROL, "no-store"),
        (header::VARY, "accept-encoding"),
    ];
    let mut response = (common, body).into_response();
    if let Some(encoding) = encoding {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    Ok(response)
}

/// Frames, each after its length in four bytes, little-endian.
fn body<'f>(frames: impl Iterator<Item = &'f Bytes>) -> Vec<u8> {
    let mut body = Vec::new();
    for frame in frames {
        append_frame(&mut body, frame);
    }
    body
}

fn packed(body: &[u8], accepted: &str) -> (Vec<u8>, Option<&'static str>) {
    let by_brotli = || accepts(accepted, "br").then(|| Some((brotli(body, EFFORT)?, Some("br"))));
    let by_gzip = || accepts(accepted, "gzip").then(|| Some((gzip(body, EFFORT)?, Some("gzip"))));
    let packed = by_brotli().flatten().or_else(|| by_gzip().flatten());
    packed.unwrap_or_else(|| (body.to_vec(), None))
}

#[cfg(test)]
mod tests {
    use super::{Bytes, body, packed};

    #[test]
    fn each_frame_stands_after_its_length() {
        let frames = [Bytes::from_static(b"hello"), Bytes::from_static(b""), Bytes::from_static(b"state")];
        assert_eq!(body(frames.iter()), b"\x05\0\0\0hello\0\0\0\0\x05\0\0\0state");
    }

    #[test]
    fn the_smallest_form_that_is_taken_is_sent() {
        let body = b"a prefix tree ".repeat(1_000);
        assert_eq!(packed(&body, "gzip, deflate, br").1, Some("br"));
        assert_eq!(packed(&body, "gzip, deflate").1, Some("gzip"));
        assert_eq!(packed(&body, "identity"), (body, None));
    }
}
