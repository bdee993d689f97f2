//! Posted JSON bodies with a size limit. Errors name the field.

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;

use crate::http::body::{BODY_WITHIN, BodyError, read_body};
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

/// A body of at most `most` bytes.
pub(super) async fn within(body: Body, most: usize) -> Result<Bytes, ApiError> {
    read_body(body, most).await.map_err(|error| match error {
        BodyError::TooLarge => {
            let message = format!("the body is too large; at most {most} bytes are accepted");
            ApiError::new(code::TOO_LARGE, message)
        }
        BodyError::TooSlow => {
            let seconds = BODY_WITHIN.as_secs();
            ApiError::new(code::TOO_SLOW, format!("the body did not arrive within {seconds} s"))
        }
        BodyError::Broken(error) => bad(format!("the body cannot be read: {error}")),
    })
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
