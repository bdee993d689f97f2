//! Posted JSON bodies with a size limit. Errors name the field.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError};
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;

use crate::http::error::{ApiError, code};

/// A body of at most `MOST` bytes.
pub(super) struct Posted<T, const MOST: usize>(pub(super) T);

impl<S: Sync, T: DeserializeOwned, const MOST: usize> FromRequest<S> for Posted<T, MOST> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let body = within(request.into_body(), MOST).await?;
        read(&body).map(Self)
    }
}

/// How long a body may take.
const BODY_WITHIN: Duration = Duration::from_secs(20);

/// A body of at most `most` bytes.
pub(super) async fn within(body: Body, most: usize) -> Result<Bytes, ApiError> {
    let read = tokio::time::timeout(BODY_WITHIN, axum::body::to_bytes(body, most)).await;
    let read = read.map_err(|_| {
        let seconds = BODY_WITHIN.as_secs();
        ApiError::new(code::TOO_SLOW, format!("the body did not arrive within {seconds} s"))
    })?;
    read.map_err(|error| {
        let error = error.into_inner();
        match error.is::<LengthLimitError>() {
            true => {
                let message = format!("the body is too large; at most {most} bytes are accepted");
                ApiError::new(code::TOO_LARGE, message)
            }
            false => bad(format!("the body cannot be read: {error}")),
        }
    })
}

/// Reads and discards a body: many clients read no response before they have sent everything.
pub(crate) async fn unwanted(mut body: Body, most: usize) {
    let mut left = most;
    let all = async {
        while let Some(Ok(frame)) = body.frame().await {
            left = match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
                Some(left) => left,
                None => return,
            };
        }
    };
    let _ = tokio::time::timeout(BODY_WITHIN, all).await;
}

/// Reads `body`.
pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_slice(body)).map_err(|error| {
        let keys = error.path().iter().filter_map(|segment| match segment {
            Segment::Map { key } => Some(key.as_str()),
            _ => None,
        });
        let field = keys.collect::<Vec<_>>().join(".");
        // The error may quote a key of any length.
        let why: String = error.inner().to_string().chars().take(400).collect();
        match field.is_empty() {
            true => bad(format!("the body is not valid: {why}")),
            false => bad(format!("{field}: {why}")),
        }
    })
}

/// An invalid request.
pub(super) fn bad(message: impl Into<String>) -> ApiError {
    ApiError::new(code::BAD_PARAMETER, message)
}
