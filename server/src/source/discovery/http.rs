//! HTTP requests to a store, with bounds of time and size. Each store describes failures itself.

use std::error::Error;
use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::USER_AGENT;
use axum::http::{HeaderValue, Request, StatusCode};
use bytes::{Buf as _, Bytes};
use http_body_util::{BodyExt as _, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use radixscope_dynamo::discovery::pieces::{DocumentPart, Splitter};
use tokio::time::Instant;

use crate::source::cause::cause;

/// Timeout of a response, or of the next part of a streamed one.
pub(super) const WITHIN: Duration = Duration::from_secs(5);
/// Maximum size of a response that is read as a whole: a count, or a token.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// Maximum length of a watch line. etcd sends changes of 1.5 MiB at a time plus one, Kubernetes one object.
const MAX_LINE_BYTES: u64 = 64 * 1024 * 1024;
/// Maximum bytes of an error response.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// Bytes that are parsed before yielding to other tasks: one millisecond of work. Otherwise a fast store could starve the
/// server's own clients.
const TURN_BYTES: usize = 64 * 1024;

/// Why a request failed.
#[derive(Debug)]
pub(super) enum NoResponse {
    /// Not within [`WITHIN`].
    Silent,
    /// The response ended early.
    Broken(String),
    /// The response or a line exceeds its limit.
    Endless,
    /// The server closed the connection after a whole part.
    Ended,
    Refused(StatusCode, Bytes),
    /// A TLS error.
    Tls(String),
    NothingListens,
    Unreachable(String),
    NotHttp(String),
}

/// A client for all servers of a store.
pub(super) struct Http(HyperClient<HttpsConnector<HttpConnector>, Full<Bytes>>);

impl Http {
    pub(super) fn new(tls: rustls::ClientConfig) -> Self {
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        Self(HyperClient::builder(TokioExecutor::new()).build(connector))
    }

    /// Sends a request.
    pub(super) async fn ask(&self, question: Request<Full<Bytes>>) -> Result<Bytes, NoResponse> {
        let asked = async {
            let body = self.begin(question).await?;
            axum::body::to_bytes(body, MAX_ANSWER_BYTES).await.map_err(|e| NoResponse::Broken(e.to_string()))
        };
        tokio::time::timeout(WITHIN, asked).await.unwrap_or(Err(NoResponse::Silent))
    }

    /// Requests a list, which is parsed as it arrives. Beyond `max_bytes` or `until` it fails with
    /// [`Endless`](NoResponse::Endless).
    pub(super) async fn list(
        &self,
        question: Request<Full<Bytes>>,
        splitter: Splitter,
        (max_bytes, until): (u64, Instant),
    ) -> Result<Parts, NoResponse> {
        self.parts(question, Parts::new(splitter, max_bytes, Some(until))).await
    }

    /// Starts a request with an unlimited stream of lines as its response.
    pub(super) async fn lines(
        &self,
        question: Request<Full<Bytes>>,
        splitter: Splitter,
    ) -> Result<Parts, NoResponse> {
        self.parts(question, Parts::new(splitter, MAX_LINE_BYTES, None)).await
    }

    async fn parts(&self, question: Request<Full<Bytes>>, parts: Parts) -> Result<Parts, NoResponse> {
        let body = tokio::time::timeout(WITHIN, self.begin(question)).await;
        Ok(Parts { body: body.unwrap_or(Err(NoResponse::Silent))?, ..parts })
    }

    async fn begin(&self, mut question: Request<Full<Bytes>>) -> Result<Body, NoResponse> {
        let agent = HeaderValue::from_static(concat!("radixscope/", env!("CARGO_PKG_VERSION")));
        question.headers_mut().insert(USER_AGENT, agent);
        let response = self.0.request(question).await.map_err(|error| unreachable(&error))?;
        let (parts, body) = response.into_parts();
        if parts.status == StatusCode::OK {
            return Ok(Body::new(body));
        }
        let body = axum::body::to_bytes(Body::new(body), MAX_REFUSAL_BYTES).await.unwrap_or_default();
        Err(NoResponse::Refused(parts.status, body))
    }
}

/// A streamed response; at most one part is held in memory.
pub(super) struct Parts {
    body: Body,
    frame: Bytes,
    splitter: Splitter,
    max_document_bytes: u64,
    /// `None`: no timeout.
    until: Option<Instant>,
    received_bytes: u64,
    /// Bytes parsed since the last yield.
    turn_bytes: usize,
}

impl Parts {
    fn new(splitter: Splitter, max_document_bytes: u64, until: Option<Instant>) -> Self {
        Self {
            body: Body::empty(),
            frame: Bytes::new(),
            splitter,
            max_document_bytes,
            until,
            received_bytes: 0,
            turn_bytes: 0,
        }
    }

    /// The next part. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<DocumentPart, NoResponse> {
        let Some(until) = self.until else { return self.receive().await };
        let soon = Instant::now() + WITHIN;
        let late = if until < soon { NoResponse::Endless } else { NoResponse::Silent };
        tokio::time::timeout_at(until.min(soon), self.receive()).await.unwrap_or(Err(late))
    }

    /// What was received so far.
    pub(super) fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// The parser.
    pub(super) fn splitter(&self) -> &Splitter {
        &self.splitter
    }

    async fn receive(&mut self) -> Result<DocumentPart, NoResponse> {
        loop {
            if self.turn_bytes >= TURN_BYTES {
                self.turn_bytes = 0;
                tokio::task::yield_now().await;
            }
            let mut rest = &*self.frame;
            let part = self.splitter.read(&mut rest);
            let read = self.frame.len() - rest.len();
            self.frame.advance(read);
            self.turn_bytes += read;
            if let Some(part) = part {
                return Ok(part);
            }
            if self.splitter.document_bytes() > self.max_document_bytes {
                return Err(NoResponse::Endless);
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    self.frame = frame.into_data().unwrap_or_default();
                    self.received_bytes += self.frame.len() as u64;
                }
                Some(Err(error)) => return Err(NoResponse::Broken(error.to_string())),
                // An incomplete line is dropped; an incomplete list is parsed for a better error.
                None if self.until.is_none() => return Err(NoResponse::Ended),
                None => return self.splitter.finish().ok_or(NoResponse::Ended),
            }
        }
    }
}

fn unreachable(error: &hyper_util::client::legacy::Error) -> NoResponse {
    let mut inner: &dyn Error = error;
    let mut is_refused = false;
    while let Some(deeper) = inner.source() {
        inner = deeper;
        let io = inner.downcast_ref::<io::Error>();
        is_refused |= io.is_some_and(|io| io.kind() == io::ErrorKind::ConnectionRefused);
    }
    if let Some(tls) = cause::<rustls::Error>(error) {
        return NoResponse::Tls(tls.to_string());
    }
    match (is_refused, error.is_connect()) {
        (true, _) => NoResponse::NothingListens,
        (_, true) => NoResponse::Unreachable(inner.to_string()),
        _ => NoResponse::NotHttp(inner.to_string()),
    }
}
