//! One question to a store over HTTP, within bounds of time and size. Each store says in its own words why there was no answer.

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

use crate::source::nats::tls::find as find_tls;

/// How long an answer may take, or the next part of one that is taken apart.
pub(super) const WITHIN: Duration = Duration::from_secs(5);
/// Largest answer that is read as a whole: a number of entries, or a token.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// Longest line of a watch. etcd sends changes of 1.5 MiB at a time and one more, Kubernetes one object.
const MAX_LINE_BYTES: u64 = 64 * 1024 * 1024;
/// Most of a refusal that is read or shown.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// Bytes of an answer that are taken apart before other tasks get their turn: one millisecond's work. A store that sends faster
/// than it is read would keep a thread from the server's own clients.
const TURN_BYTES: usize = 64 * 1024;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// Not within [`WITHIN`].
    Silent,
    /// It ended early.
    Broken(String),
    /// It is longer than it may be, or a line of it is.
    Endless,
    /// The server closed the connection after a whole part.
    Ended,
    Refused(StatusCode, Bytes),
    /// What is wrong with TLS.
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

    /// Asks once.
    pub(super) async fn ask(&self, question: Request<Full<Bytes>>) -> Result<Bytes, NoAnswer> {
        let asked = async {
            let body = self.begin(question).await?;
            axum::body::to_bytes(body, MAX_ANSWER_BYTES).await.map_err(|e| NoAnswer::Broken(e.to_string()))
        };
        tokio::time::timeout(WITHIN, asked).await.unwrap_or(Err(NoAnswer::Silent))
    }

    /// Asks for a list, which is taken apart as it arrives. Longer than `max_bytes`, or after `until`, it is
    /// [`Endless`](NoAnswer::Endless).
    pub(super) async fn list(
        &self,
        question: Request<Full<Bytes>>,
        splitter: Splitter,
        (max_bytes, until): (u64, Instant),
    ) -> Result<Parts, NoAnswer> {
        self.parts(question, Parts::new(splitter, max_bytes, Some(until))).await
    }

    /// Asks what is answered line by line, for as long as one likes.
    pub(super) async fn lines(
        &self,
        question: Request<Full<Bytes>>,
        splitter: Splitter,
    ) -> Result<Parts, NoAnswer> {
        self.parts(question, Parts::new(splitter, MAX_LINE_BYTES, None)).await
    }

    async fn parts(&self, question: Request<Full<Bytes>>, parts: Parts) -> Result<Parts, NoAnswer> {
        let body = tokio::time::timeout(WITHIN, self.begin(question)).await;
        Ok(Parts { body: body.unwrap_or(Err(NoAnswer::Silent))?, ..parts })
    }

    async fn begin(&self, mut question: Request<Full<Bytes>>) -> Result<Body, NoAnswer> {
        let agent = HeaderValue::from_static(concat!("radixscope/", env!("CARGO_PKG_VERSION")));
        question.headers_mut().insert(USER_AGENT, agent);
        let response = self.0.request(question).await.map_err(|error| unreachable(&error))?;
        let (parts, body) = response.into_parts();
        if parts.status == StatusCode::OK {
            return Ok(Body::new(body));
        }
        let said = axum::body::to_bytes(Body::new(body), MAX_REFUSAL_BYTES).await.unwrap_or_default();
        Err(NoAnswer::Refused(parts.status, said))
    }
}

/// An answer in parts, of which no more is held than one.
pub(super) struct Parts {
    body: Body,
    frame: Bytes,
    splitter: Splitter,
    max_document_bytes: u64,
    /// `None`: the next part may take as long as it likes.
    until: Option<Instant>,
    received_bytes: u64,
    /// Bytes of this turn.
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
    pub(super) async fn next(&mut self) -> Result<DocumentPart, NoAnswer> {
        let Some(until) = self.until else { return self.receive().await };
        let soon = Instant::now() + WITHIN;
        let late = if until < soon { NoAnswer::Endless } else { NoAnswer::Silent };
        tokio::time::timeout_at(until.min(soon), self.receive()).await.unwrap_or(Err(late))
    }

    /// What was received so far.
    pub(super) fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// What takes it apart.
    pub(super) fn splitter(&self) -> &Splitter {
        &self.splitter
    }

    async fn receive(&mut self) -> Result<DocumentPart, NoAnswer> {
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
                return Err(NoAnswer::Endless);
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    self.frame = frame.into_data().unwrap_or_default();
                    self.received_bytes += self.frame.len() as u64;
                }
                Some(Err(error)) => return Err(NoAnswer::Broken(error.to_string())),
                // Half a line is not read; half a list is, so that its fault can be named.
                None if self.until.is_none() => return Err(NoAnswer::Ended),
                None => return self.splitter.finish().ok_or(NoAnswer::Ended),
            }
        }
    }
}

fn unreachable(error: &hyper_util::client::legacy::Error) -> NoAnswer {
    let mut cause: &dyn Error = error;
    let mut is_refused = false;
    while let Some(deeper) = cause.source() {
        cause = deeper;
        let io = cause.downcast_ref::<io::Error>();
        is_refused |= io.is_some_and(|io| io.kind() == io::ErrorKind::ConnectionRefused);
    }
    if let Some(tls) = find_tls(error) {
        return NoAnswer::Tls(tls.to_string());
    }
    match (is_refused, error.is_connect()) {
        (true, _) => NoAnswer::NothingListens,
        (_, true) => NoAnswer::Unreachable(cause.to_string()),
        _ => NoAnswer::NotHttp(cause.to_string()),
    }
}
