//! A plain HTTP client for a few small servers: one request, with bounds of time and size, and what went wrong in words.

use std::error::Error as _;
use std::time::Duration;

use axum::http::header::USER_AGENT;
use axum::http::{Request, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, LengthLimitError, Limited};
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
pub(super) struct HttpGet(Client<HttpsConnector<HttpConnector>, Empty<Bytes>>);

/// How long a response may take, and how large it may be.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) within: Duration,
    pub(super) most_bytes: usize,
}

impl HttpGet {
    pub(super) fn new() -> Result<Self, InvalidOption> {
        let tls = client_config(None, None)?;
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        Ok(Self(Client::builder(TokioExecutor::new()).build(connector)))
    }

    /// The status and body of `url`. Errors are without a full stop.
    pub(super) async fn get(&self, url: &Url, bounds: Bounds) -> Result<(StatusCode, Bytes), SourceStatus> {
        match tokio::time::timeout(bounds.within, self.send(url, bounds.most_bytes)).await {
            Ok(response) => response,
            Err(_) => {
                let seconds = bounds.within.as_secs();
                Err(SourceStatus::connecting(format!("{url} did not respond within {seconds} s")))
            }
        }
    }

    async fn send(&self, url: &Url, most_bytes: usize) -> Result<(StatusCode, Bytes), SourceStatus> {
        let request = Request::get(url.as_str())
            .header(USER_AGENT, concat!("radixscope/", env!("CARGO_PKG_VERSION")))
            .body(Empty::new())
            .map_err(|error| SourceStatus::refused(format!("{url}: {error}")))?;
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
