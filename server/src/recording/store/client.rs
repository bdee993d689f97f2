//! The requests of the library for object storage, sent through the HTTP client that the rest of the server uses.

use std::time::Duration;

use async_trait::async_trait;
use axum::http::{HeaderValue, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as Tcp;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse,
    HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};
use rustls::ClientConfig;

use crate::config::InvalidOption;
use crate::source::http_tls::client_config;

/// How long a connection may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How long a request without a body may take.
const REQUEST_WITHIN: Duration = Duration::from_secs(30);
/// Slower than that, a body counts as stuck. A part of an upload then takes two minutes.
const LEAST_BYTES_PER_SECOND: u64 = 64 << 10;
/// Largest response: a range of an object, or a list of names.
const MAX_RESPONSE_BYTES: usize = 16 << 20;
/// Connections that stay open for the next request.
const MAX_IDLE: usize = 8;

/// Makes clients.
#[derive(Clone)]
pub(super) struct Connector(ClientConfig);

impl Connector {
    pub(super) fn new() -> Result<Self, InvalidOption> {
        client_config(None, None).map(Self)
    }
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connector")
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let mut tcp = Tcp::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_WITHIN));
        let connector = HttpsConnectorBuilder::new().with_tls_config(self.0.clone());
        // The library allows its own requests to the metadata services of clouds, which have no TLS.
        let is_http_allowed =
            options.get_config_value(&ClientConfigKey::AllowHttp).as_deref() == Some("true");
        let connector = if is_http_allowed { connector.https_or_http() } else { connector.https_only() };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(MAX_IDLE)
            .build(connector.enable_http1().wrap_connector(tcp));
        Ok(HttpClient::new(Requests(client)))
    }
}

/// Sends requests, each within a time that depends on its size.
#[derive(Debug)]
struct Requests(Client<HttpsConnector<Tcp>, HttpRequestBody>);

#[async_trait]
impl HttpService for Requests {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        // A response may have a body that takes as long as the largest.
        let is_read = request.headers().contains_key(header::RANGE);
        let bytes = if is_read { MAX_RESPONSE_BYTES } else { request.body().content_length() };
        let within = REQUEST_WITHIN + Duration::from_secs(bytes as u64 / LEAST_BYTES_PER_SECOND);
        let timed_out = |_| {
            let text = format!("no response within {} s", within.as_secs());
            HttpError::new(HttpErrorKind::Timeout, std::io::Error::new(std::io::ErrorKind::TimedOut, text))
        };
        tokio::time::timeout(within, self.send(request)).await.map_err(timed_out)?
    }
}

impl Requests {
    async fn send(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let agent = HeaderValue::from_static(concat!("radixscope/", env!("CARGO_PKG_VERSION")));
        request.headers_mut().insert(header::USER_AGENT, agent);
        let response = self.0.request(request).await.map_err(|error| {
            let kind = if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Interrupted };
            HttpError::new(kind, error)
        })?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await.map_err(|error| {
            let is_too_large = error.is::<LengthLimitError>();
            let kind = if is_too_large { HttpErrorKind::Decode } else { HttpErrorKind::Interrupted };
            HttpError::new(kind, std::io::Error::other(error))
        })?;
        Ok(HttpResponse::from_parts(head, body.to_bytes().into()))
    }
}
