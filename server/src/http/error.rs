//! Errors in responses: `{"error":{"code","message"}}` with the right status.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::hub::QueryError;

/// A kind of error: status and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code(pub(super) StatusCode, pub(super) &'static str);

/// All kinds of error.
pub(super) mod code {
    use super::{Code, StatusCode};

    pub(in crate::http) const BAD_PARAMETER: Code = Code(StatusCode::BAD_REQUEST, "bad_parameter");
    pub(in crate::http) const FOREIGN_ORIGIN: Code = Code(StatusCode::FORBIDDEN, "foreign_origin");
    pub(in crate::http) const BAD_HOST: Code = Code(StatusCode::BAD_REQUEST, "bad_host");
    pub(in crate::http) const FOREIGN_HOST: Code = Code(StatusCode::FORBIDDEN, "foreign_host");
    pub(in crate::http) const UNAUTHORIZED: Code = Code(StatusCode::UNAUTHORIZED, "unauthorized");
    pub(in crate::http) const NOT_BY_PROXY: Code = Code(StatusCode::FORBIDDEN, "not_by_proxy");
    pub(in crate::http) const TOO_SLOW: Code = Code(StatusCode::REQUEST_TIMEOUT, "too_slow");
    pub(in crate::http) const TOO_MANY_POSTS: Code = Code(StatusCode::SERVICE_UNAVAILABLE, "too_many_posts");
    pub(in crate::http) const TOO_LARGE: Code = Code(StatusCode::PAYLOAD_TOO_LARGE, "too_large");
    pub(in crate::http) const NOT_FOUND: Code = Code(StatusCode::NOT_FOUND, "not_found");
    pub(in crate::http) const METHOD_NOT_ALLOWED: Code =
        Code(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed");
    pub(in crate::http) const UPGRADE_REQUIRED: Code = Code(StatusCode::UPGRADE_REQUIRED, "upgrade_required");
    pub(in crate::http) const INTERNAL: Code = Code(StatusCode::INTERNAL_SERVER_ERROR, "internal");
    pub(in crate::http) const BUSY: Code = Code(StatusCode::SERVICE_UNAVAILABLE, "busy");
    pub(in crate::http) const TOO_MANY_VIEWERS: Code =
        Code(StatusCode::SERVICE_UNAVAILABLE, "too_many_viewers");
    pub(in crate::http) const TOO_MANY_RUNS: Code = Code(StatusCode::SERVICE_UNAVAILABLE, "too_many_runs");
    pub(in crate::http) const NOT_COMPUTABLE: Code = Code(StatusCode::UNPROCESSABLE_ENTITY, "not_computable");
    pub(in crate::http) const SHUTTING_DOWN: Code = Code(StatusCode::SERVICE_UNAVAILABLE, "shutting_down");
}

/// An error as the client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApiError {
    code: Code,
    message: String,
    retry_after_s: Option<u32>,
}

impl ApiError {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retry_after_s: None }
    }

    /// The response's status.
    pub(super) const fn status(&self) -> StatusCode {
        self.code.0
    }

    /// The message.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// Adds `Retry-After`.
    pub(super) fn retry_after(self, seconds: u32) -> Self {
        Self { retry_after_s: Some(seconds), ..self }
    }

    /// An invalid value of a query parameter.
    pub(super) fn bad_parameter(name: &str, value: &str, expected: &str) -> Self {
        let value: String = value.chars().take(80).collect();
        Self::new(code::BAD_PARAMETER, format!("{name}={value:?} is invalid; expected {expected}"))
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        #[derive(Serialize)]
        struct Body<'a> {
            error: Inner<'a>,
        }
        #[derive(Serialize)]
        struct Inner<'a> {
            code: &'a str,
            message: &'a str,
        }
        let Code(status, code) = self.code;
        let retry = self.retry_after_s.map(|seconds| [(header::RETRY_AFTER, HeaderValue::from(seconds))]);
        let body = Json(Body { error: Inner { code, message: &self.message } });
        match retry {
            Some(retry) => (status, retry, body).into_response(),
            None => (status, body).into_response(),
        }
    }
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> Self {
        let code = match &error {
            QueryError::Ended => code::SHUTTING_DOWN,
            QueryError::Busy => code::BUSY,
            QueryError::Encode(cause) => {
                tracing::error!(%cause, "the state cannot be encoded");
                code::INTERNAL
            }
        };
        Self::new(code, error.to_string())
    }
}
