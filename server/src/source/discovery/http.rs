//! One question to a store over HTTP, within bounds of time and size. Each store says in its own words why there was no answer.

use std::error::Error;
use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::USER_AGENT;
use axum::http::{HeaderValue, Request, StatusCode};
use bytes::{Buf as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::source::nats::tls::find as find_tls;

/// How long an answer may take.
pub(super) const WITHIN: Duration = Duration::from_secs(5);
/// Largest answer: a page of entries, most of which have a few kilobytes.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;
/// Most of a refusal that is read or shown.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// Not within [`WITHIN`].
    Silent,
    /// It ended early.
    Broken(String),
    /// A line of it does not end.
    Endless,
    /// The server closed the connection after a whole line.
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

    /// Asks what is answered line by line, for as long as one likes.
    pub(super) async fn lines(&self, question: Request<Full<Bytes>>) -> Result<Lines, NoAnswer> {
        let body = tokio::time::timeout(WITHIN, self.begin(question)).await;
        Ok(Lines { body: body.unwrap_or(Err(NoAnswer::Silent))?, read: BytesMut::new(), searched: 0 })
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

/// Lines of an answer that goes on.
pub(super) struct Lines {
    body: Body,
    read: BytesMut,
    /// Bytes in which there is no line feed.
    searched: usize,
}

impl Lines {
    /// The next line. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Bytes, NoAnswer> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.read[self.searched..]) {
                let line = self.read.split_to(self.searched + at);
                self.read.advance(1);
                self.searched = 0;
                return Ok(line.freeze());
            }
            self.searched = self.read.len();
            if self.read.len() > MAX_ANSWER_BYTES {
                return Err(NoAnswer::Endless);
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.read.extend_from_slice(&data);
                    }
                }
                Some(Err(error)) => return Err(NoAnswer::Broken(error.to_string())),
                None => return Err(NoAnswer::Ended),
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
