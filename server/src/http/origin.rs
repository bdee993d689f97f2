//! Checks the `Origin` of WebSockets and computations. Browsers do not apply the same-origin policy to WebSockets, so this is
//! the only protection.

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::error::{ApiError, code};
use super::{App, Front};
use crate::config::AllowedOrigin;

/// Max-Age of preflight responses in seconds, short, so that changed options take effect soon.
const PREFLIGHT_S: &str = "600";

/// Rejects pages of other origins, before the body is read.
pub(super) struct AllowedPage;

impl FromRequestParts<App> for AllowedPage {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        if is_allowed(&parts.headers, &app.options.allow_origin) {
            return Ok(Self);
        }
        let message = "pages of this origin are not allowed; to allow them, start the server with --allow-origin ORIGIN";
        Err(ApiError::new(code::FOREIGN_ORIGIN, message))
    }
}

/// Rejects pages of all other origins, also those of `--allow-origin`, before the body is read: who may read may not steer.
pub(super) struct OwnPage;

impl FromRequestParts<App> for OwnPage {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        if is_allowed(&parts.headers, &[]) {
            return Ok(Self);
        }
        Err(ApiError::new(code::FOREIGN_ORIGIN, "only this server's own page steers the stage"))
    }
}

/// Whether the origin is allowed: no `Origin` (not a browser), this server's own, or a listed one. The host was checked before.
fn is_allowed(headers: &HeaderMap, allowed: &[AllowedOrigin]) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let Some(origin) = origins.next() else { return true };
    let (Ok(origin), None) = (origin.to_str(), origins.next()) else { return false };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let is_ours = origin.split_once("://").is_some_and(|(scheme, authority)| {
        matches!(scheme, "http" | "https") && host.is_some_and(|host| host.eq_ignore_ascii_case(authority))
    });
    is_ours || allowed.iter().any(|allowed| allowed.as_str().eq_ignore_ascii_case(origin))
}

/// CORS for allowed origins, without cookies.
pub(super) async fn share(State(front): State<Front>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(header::ORIGIN).cloned();
    let is_listed = |origin: &HeaderValue| {
        let allowed = &front.options.allow_origin;
        allowed.iter().any(|allowed| allowed.as_str().as_bytes().eq_ignore_ascii_case(origin.as_bytes()))
    };
    let origin = origin.filter(is_listed);
    // Browsers send preflight requests without a token, so they are answered before authentication.
    let mut response = match origin.is_some() && is_preflight(&request) {
        true => preflight(),
        false => next.run(request).await,
    };
    if let Some(origin) = origin {
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        response.headers_mut().append(header::VARY, HeaderValue::from_static("origin"));
    }
    response
}

/// Whether it is a preflight request.
fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Allows the methods and headers of the API.
fn preflight() -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, POST"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type"),
        (header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_S),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(origin: Option<&str>, host: &str, list: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        let list: Vec<AllowedOrigin> = list.iter().map(|o| o.parse().unwrap()).collect();
        is_allowed(&headers, &list)
    }

    #[test]
    fn a_client_without_an_origin_may() {
        assert!(allowed(None, "127.0.0.1:8321", &[]));
    }

    #[test]
    fn our_own_page_may() {
        assert!(allowed(Some("http://127.0.0.1:8321"), "127.0.0.1:8321", &[]));
        assert!(allowed(Some("https://dash.example"), "Dash.example", &[]));
    }

    #[test]
    fn another_host_or_port_may_not() {
        assert!(!allowed(Some("http://evil.example"), "127.0.0.1:8321", &[]));
        assert!(!allowed(Some("http://127.0.0.1:9000"), "127.0.0.1:8321", &[]));
        assert!(!allowed(Some("null"), "127.0.0.1:8321", &[]));
        assert!(!allowed(Some("file://127.0.0.1:8321"), "127.0.0.1:8321", &[]));
        assert!(!allowed(Some("file://"), "", &[]));
    }

    #[test]
    fn a_listed_origin_may() {
        assert!(allowed(Some("https://portal.example"), "radixscope:8321", &["https://portal.example"]));
        assert!(!allowed(Some("http://portal.example"), "radixscope:8321", &["https://portal.example"]));
    }
}
