//! HTTP client of scrapes, with bounds of time and size, and descriptions of failures.

use std::io::{self, Read as _};
use std::time::Duration;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use url::Url;

use axum::http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, LOCATION, USER_AGENT};
use axum::http::{HeaderValue, Request, StatusCode};

use radixscope_intake::MAX_PAYLOAD_BYTES;

use crate::config::{InvalidOption, Prometheus, without_query};
use crate::source::SourceStatus;
use crate::source::http_tls::client_config;

/// A client for all processes.
#[derive(Clone)]
pub(super) struct Client {
    http: HyperClient<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    authorization: Option<HeaderValue>,
    within: Duration,
}

/// A response.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
    /// Target of a redirect.
    pub(super) location: Option<String>,
}

impl Client {
    pub(super) fn new(options: &Prometheus) -> Result<Self, InvalidOption> {
        let authorization = options.prometheus_token.as_ref().map(|token| {
            let mut value = HeaderValue::try_from(format!("Bearer {}", token.reveal())).map_err(|_| {
                InvalidOption::new(
                    "--prometheus-token",
                    "it contains characters that are not allowed in a header",
                )
            })?;
            value.set_sensitive(true);
            Ok::<_, InvalidOption>(value)
        });
        let ca = options.prometheus_tls_ca.as_deref().map(|path| ("--prometheus-tls-ca", path));
        let tls = client_config(ca, None)?;
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        let http = HyperClient::builder(TokioExecutor::new()).build(connector);
        Ok(Self { http, authorization: authorization.transpose()?, within: options.prometheus_timeout })
    }

    /// Sends one request.
    pub(super) async fn get(&self, url: &Url) -> Result<Response, SourceStatus> {
        let shown = &without_query(url);
        match tokio::time::timeout(self.within, self.send(url, shown)).await {
            Ok(response) => response,
            Err(_) => Err(SourceStatus::connecting(format!(
                "{shown} did not respond within {} s. Check the address, firewalls and network policies, or increase \
                 --prometheus-timeout.",
                self.within.as_secs_f64()
            ))),
        }
    }

    /// Errors name `url`, which is `from` without its query.
    async fn send(&self, from: &Url, url: &Url) -> Result<Response, SourceStatus> {
        let mut request = Request::get(from.as_str())
            .header(ACCEPT, "text/plain;version=0.0.4, */*;q=0.1")
            .header(ACCEPT_ENCODING, "gzip")
            .header(USER_AGENT, concat!("radixscope/", env!("CARGO_PKG_VERSION")));
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        let request = request
            .body(Empty::new())
            .map_err(|error| SourceStatus::refused(format!("{url} is not a valid HTTP address: {error}.")))?;
        let response = self.http.request(request).await.map_err(|error| unreachable(url, &error))?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, MAX_PAYLOAD_BYTES).collect().await.map_err(|error| {
            if error.is::<http_body_util::LengthLimitError>() {
                too_large(url)
            } else {
                SourceStatus::connecting(format!("The response of {url} ended early: {error}."))
            }
        })?;
        let body = match parts.headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
            None | Some(b"" | b"identity") => body.to_bytes(),
            Some(b"gzip") => unzipped(url, &body.to_bytes())?,
            Some(other) => {
                let other = String::from_utf8_lossy(other);
                return Err(SourceStatus::refused(format!(
                    "{url} responds with encoding {other:?}, which was not requested."
                )));
            }
        };
        let location = parts.headers.get(LOCATION).and_then(|to| to.to_str().ok()).map(str::to_owned);
        Ok(Response { status: parts.status, body, location })
    }
}

/// Decompresses a body, with the same bound as for an uncompressed one.
fn unzipped(url: &Url, zipped: &[u8]) -> Result<Bytes, SourceStatus> {
    let mut body = Vec::new();
    let most = MAX_PAYLOAD_BYTES as u64 + 1;
    MultiGzDecoder::new(zipped).take(most).read_to_end(&mut body).map_err(|error| {
        SourceStatus::connecting(format!("The response of {url} cannot be decompressed: {error}."))
    })?;
    if body.len() as u64 == most { Err(too_large(url)) } else { Ok(body.into()) }
}

fn unreachable(url: &Url, error: &hyper_util::client::legacy::Error) -> SourceStatus {
    let mut cause: &dyn std::error::Error = error;
    let mut is_tls = false;
    let mut is_refused = false;
    while let Some(deeper) = cause.source() {
        cause = deeper;
        if let Some(io) = cause.downcast_ref::<io::Error>() {
            is_refused |= io.kind() == io::ErrorKind::ConnectionRefused;
            is_tls |= io.get_ref().is_some_and(|inner| inner.is::<rustls::Error>());
        }
    }
    if is_tls {
        return SourceStatus::refused(format!(
            "TLS with {url} fails: {cause}. If its certificate is signed by a private CA, set --prometheus-tls-ca \
             (RADIXSCOPE_PROMETHEUS_TLS_CA)."
        ));
    }
    if is_refused {
        return SourceStatus::connecting(format!(
            "Nothing listens at {url}. Is the process running, and is the port right? A frontend serves metrics on its HTTP \
             port, a worker on DYN_SYSTEM_PORT."
        ));
    }
    if error.is_connect() {
        return SourceStatus::connecting(format!(
            "{url} cannot be reached: {cause}. Check --prometheus (RADIXSCOPE_PROMETHEUS)."
        ));
    }
    SourceStatus::connecting(format!("{url} does not respond with valid HTTP: {cause}."))
}

fn too_large(url: &Url) -> SourceStatus {
    let mib = MAX_PAYLOAD_BYTES / (1024 * 1024);
    SourceStatus::refused(format!(
        "The response of {url} is larger than {mib} MiB, more than the metrics of a Dynamo process."
    ))
}
