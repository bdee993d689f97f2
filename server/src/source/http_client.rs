//! A plain HTTP client for a few small servers: one request, with bounds of time and size, and what went wrong in words.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, USER_AGENT};
use axum::http::request::Builder;
use axum::http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use url::Url;

use super::SourceStatus;
use super::http_tls::client_config;
use super::link::seconds;
use crate::config::InvalidOption;

/// Sends requests.
#[derive(Clone)]
pub(crate) struct HttpClient(Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

/// How long a response may take, and how large it may be.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) within: Duration,
    pub(crate) most_bytes: usize,
}

impl HttpClient {
    pub(crate) fn new() -> Result<Self, InvalidOption> {
        Self::trusting(None)
    }

    /// `ca`: the trusted CAs, as an option and its file; `None`: the system's.
    pub(crate) fn trusting(ca: Option<(&'static str, &Path)>) -> Result<Self, InvalidOption> {
        let tls = client_config(ca, None)?;
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        Ok(Self(Client::builder(TokioExecutor::new()).build(connector)))
    }

    /// The status and body of `url`. Errors are without a full stop.
    pub(super) async fn get(&self, url: &Url, bounds: Bounds) -> Result<(StatusCode, Bytes), SourceStatus> {
        self.get_with(url, &[], bounds).await
    }

    /// The same with `headers`.
    pub(crate) async fn get_with(
        &self,
        url: &Url,
        headers: &[(HeaderName, HeaderValue)],
        bounds: Bounds,
    ) -> Result<(StatusCode, Bytes), SourceStatus> {
        let request = with_headers(Request::get(url.as_str()), headers);
        self.response(url, request.body(Full::default()), bounds).await
    }

    /// The same after sending `body`, with `headers` beside its type.
    #[cfg_attr(not(feature = "otlp-export"), allow(dead_code, reason = "only decisions are sent by POST"))]
    pub(super) async fn post(
        &self,
        url: &Url,
        content_type: HeaderValue,
        headers: &[(HeaderName, HeaderValue)],
        body: Bytes,
        bounds: Bounds,
    ) -> Result<(StatusCode, Bytes), SourceStatus> {
        let request = Request::builder().method(Method::POST).uri(url.as_str());
        let request = request.header(CONTENT_TYPE, content_type);
        let request = with_headers(request, headers);
        self.response(url, request.body(Full::new(body)), bounds).await
    }

    async fn response(
        &self,
        url: &Url,
        request: Result<Request<Full<Bytes>>, axum::http::Error>,
        bounds: Bounds,
    ) -> Result<(StatusCode, Bytes), SourceStatus> {
        match tokio::time::timeout(bounds.within, self.send(url, request, bounds.most_bytes)).await {
            Ok(response) => response,
            Err(_) => {
                let seconds = seconds(bounds.within);
                Err(SourceStatus::connecting(format!("{url} did not respond within {seconds}")))
            }
        }
    }

    /// The response to `request` as soon as its head is there; the caller bounds it. Redirects are not followed, proxies of the environment
    /// not used.
    pub(crate) async fn open(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, hyper_util::client::legacy::Error> {
        let agent = HeaderValue::from_static(concat!("radixscope/", env!("CARGO_PKG_VERSION")));
        request.headers_mut().insert(USER_AGENT, agent);
        self.0.request(request).await
    }

    async fn send(
        &self,
        url: &Url,
        request: Result<Request<Full<Bytes>>, axum::http::Error>,
        most_bytes: usize,
    ) -> Result<(StatusCode, Bytes), SourceStatus> {
        let request = request.map_err(|error| SourceStatus::refused(format!("{url}: {error}")))?;
        let response = self
            .open(request)
            .await
            .map_err(|error| SourceStatus::connecting(format!("{url}: {}", innermost(&error))))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), most_bytes).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                let most = match most_bytes >> 20 {
                    0 => format!("{} KiB", most_bytes >> 10),
                    mib => format!("{mib} MiB"),
                };
                SourceStatus::refused(format!("the response of {url} is larger than {most}"))
            } else {
                SourceStatus::connecting(format!("the response of {url} cannot be read: {error}"))
            }
        })?;
        Ok((status, body.to_bytes()))
    }
}

/// The text of the error that others wrap: `Connection refused`, not that a connection failed.
pub(crate) fn innermost(error: &dyn Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

fn with_headers(request: Builder, headers: &[(HeaderName, HeaderValue)]) -> Builder {
    headers.iter().fold(request, |request, (name, value)| request.header(name, value))
}
