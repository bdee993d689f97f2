//! A plain HTTP client for a few small servers: one request, with bounds of time and size, and what went wrong in words.

use std::error::Error as _;
use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, USER_AGENT};
use axum::http::{HeaderName, HeaderValue, Method, Request, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use url::Url;

use super::SourceStatus;
use super::http_tls::client_config;
use crate::config::InvalidOption;

/// Sends requests.
#[derive(Clone)]
pub(super) struct HttpClient(Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

/// How long a response may take, and how large it may be.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) within: Duration,
    pub(super) most_bytes: usize,
}

impl HttpClient {
    pub(super) fn new() -> Result<Self, InvalidOption> {
        let tls = client_config(None, None)?;
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        Ok(Self(Client::builder(TokioExecutor::new()).build(connector)))
    }

    /// The status and body of `url`. Errors are without a full stop.
    pub(super) async fn get(&self, url: &Url, bounds: Bounds) -> Result<(StatusCode, Bytes), SourceStatus> {
        self.response(url, Request::get(url.as_str()).body(Full::default()), bounds).await
    }

    /// The same after sending `body`, with `headers` beside its type.
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
        let with = |request: axum::http::request::Builder, (name, value): &(HeaderName, HeaderValue)| {
            request.header(name, value)
        };
        let request = headers.iter().fold(request, with);
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
                let seconds = bounds.within.as_secs();
                Err(SourceStatus::connecting(format!("{url} did not respond within {seconds} s")))
            }
        }
    }

    async fn send(
        &self,
        url: &Url,
        request: Result<Request<Full<Bytes>>, axum::http::Error>,
        most_bytes: usize,
    ) -> Result<(StatusCode, Bytes), SourceStatus> {
        let mut request = request.map_err(|error| SourceStatus::refused(format!("{url}: {error}")))?;
        let agent = HeaderValue::from_static(concat!("radixscope/", env!("CARGO_PKG_VERSION")));
        request.headers_mut().insert(USER_AGENT, agent);
        let response = self.0.request(request).await.map_err(|error| {
            let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            SourceStatus::connecting(format!("{url}: {why}"))
        })?;
        let status = response.status();
        let body = Limited::new(response.into_body(), most_bytes).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                let mib = most_bytes >> 20;
                SourceStatus::refused(format!("the response of {url} is larger than {mib} MiB"))
            } else {
                SourceStatus::connecting(format!("the response of {url} cannot be read: {error}"))
            }
        })?;
        Ok((status, body.to_bytes()))
    }
}
