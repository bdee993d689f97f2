//! One request and its answer, with their times. Every answer is untrusted: its bytes, lines and time are bounded, and nothing in it makes
//! another request.

use std::fmt;
use std::time::Duration;

use axum::http::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderName, HeaderValue, Request};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyDataStream, BodyExt as _, Full, Limited};
use serde::Serialize;
use tokio::time::Instant;
use url::Url;

use radixscope_dynamo::chat_chunk::{self, ChatError, Usage};
use radixscope_model::id::Millis;

use super::conversation::Message;
use super::events::{EventFault, Events};
use crate::source::http_client::{HttpClient, innermost};
use crate::time::now;

/// How long the head of a response may take: in it, a request may wait in the router's queue.
const HEAD_WITHIN: Duration = Duration::from_secs(60);
/// How long a stream may be silent.
const SILENT_FOR: Duration = Duration::from_secs(60);
/// How long a whole request may take.
const WHOLE_WITHIN: Duration = Duration::from_secs(300);
/// Largest body of an error that is read.
const MAX_ERROR_BYTES: usize = 8 * 1024;
/// Largest quote of what the target says, in characters.
const MAX_QUOTE_CHARS: usize = 160;
/// The id that joins a request with the router's decision for it.
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Sends requests to one endpoint.
pub(super) struct Endpoint {
    client: HttpClient,
    url: Url,
    model: String,
    max_tokens: u32,
}

/// A request that is over.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) sent_ms: Millis,
    pub(super) ended_ms: Millis,
    /// From sending it to the first token with text.
    pub(super) first: Option<Duration>,
    /// From sending it to the last token with text.
    pub(super) last: Option<Duration>,
    pub(super) outcome: Result<Response, Failure>,
}

/// A complete answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Response {
    pub(super) text: String,
    pub(super) usage: Option<Usage>,
}

/// Why there is no complete answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Failure {
    pub(super) reason: Reason,
    /// What the target or the system says of it, quoted and bounded.
    pub(super) detail: String,
}

/// Kinds of failure, as they are counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Reason {
    /// No connection.
    Unreachable,
    /// Nothing came in time.
    TimedOut,
    /// The connection ended, or the stream did without its end.
    Cut,
    /// An error in the stream, after its status.
    InStream,
    /// The response is none that can be read.
    Invalid,
    /// Another status than 200.
    Status(u16),
}

impl Reason {
    /// Whether the same request would fail again: its model, its length, its address.
    pub(super) fn is_of_the_request(self) -> bool {
        match self {
            // Timeout and too many requests.
            Self::Status(408 | 429) => false,
            Self::Status(status) => (300..500).contains(&status),
            Self::Invalid => true,
            Self::Unreachable | Self::TimedOut | Self::Cut | Self::InStream => false,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable => f.write_str("no connection"),
            Self::TimedOut => f.write_str("no response in time"),
            Self::Cut => f.write_str("cut off"),
            Self::InStream => f.write_str("error in the stream"),
            Self::Invalid => f.write_str("response not understood"),
            Self::Status(status) => write!(f, "status {status}"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.detail.as_str() {
            "" => self.reason.fmt(f),
            detail => write!(f, "{}: {detail}", self.reason),
        }
    }
}

impl Failure {
    pub(super) fn new(reason: Reason, detail: &str) -> Self {
        Self { reason, detail: quoted(detail) }
    }
}

/// What others say, on one line and bounded.
fn quoted(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let line = words.collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_QUOTE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.trim_end_matches('.').to_owned(),
    }
}

#[derive(Serialize)]
struct Asked<'a> {
    model: &'a str,
    messages: &'a [Message],
    stream: bool,
    stream_options: StreamOptions,
    max_tokens: u32,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// What is read of a stream so far.
#[derive(Default)]
struct Read {
    text: String,
    usage: Option<Usage>,
    is_finished: bool,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Endpoint {
    pub(super) fn new(client: HttpClient, url: Url, model: String, max_tokens: u32) -> Self {
        Self { client, url, model, max_tokens }
    }

    /// Sends a request and reads its answer.
    pub(super) async fn send(&self, id: &str, messages: &[Message]) -> Exchange {
        let request = self.request(id, messages);
        let (sent_ms, sent) = (now(), Instant::now());
        let mut read = Read::default();
        let result = match request {
            Ok(request) => {
                match tokio::time::timeout(WHOLE_WITHIN, self.exchange(request, &mut read)).await {
                    Ok(result) => result,
                    Err(_) => Err(late("a whole answer", WHOLE_WITHIN)),
                }
            }
            Err(failure) => Err(failure),
        };
        let Read { text, usage, first, last, .. } = read;
        let since = |at: Instant| at.duration_since(sent);
        Exchange {
            sent_ms,
            ended_ms: now(),
            first: first.map(since),
            last: last.map(since),
            outcome: result.map(|()| Response { text, usage }),
        }
    }

    fn request(&self, id: &str, messages: &[Message]) -> Result<Request<Full<Bytes>>, Failure> {
        let invalid = |error: &dyn fmt::Display| Failure::new(Reason::Invalid, &error.to_string());
        let asked = Asked {
            model: &self.model,
            messages,
            stream: true,
            stream_options: StreamOptions { include_usage: true },
            max_tokens: self.max_tokens,
        };
        let body = serde_json::to_vec(&asked).map_err(|error| invalid(&error))?;
        Request::post(self.url.as_str())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(ACCEPT, HeaderValue::from_static("text/event-stream"))
            .header(X_REQUEST_ID, id)
            .body(Full::new(body.into()))
            .map_err(|error| invalid(&error))
    }

    async fn exchange(&self, request: Request<Full<Bytes>>, read: &mut Read) -> Result<(), Failure> {
        let opened = tokio::time::timeout(HEAD_WITHIN, self.client.open(request)).await;
        let response = match opened {
            Err(_) => return Err(late("the head of a response", HEAD_WITHIN)),
            Ok(Err(error)) => {
                let reason = if error.is_connect() { Reason::Unreachable } else { Reason::Cut };
                return Err(Failure::new(reason, &innermost(&error)));
            }
            Ok(Ok(response)) => response,
        };
        let (head, body) = response.into_parts();
        if head.status.is_redirection() {
            let to = head.headers.get(LOCATION).map(|to| String::from_utf8_lossy(to.as_bytes()));
            let detail = format!(
                "it names another address, {}, to which nothing is sent; if it is the right one, give it as --target",
                to.as_deref().map_or_else(|| "none".to_owned(), quoted)
            );
            return Err(Failure { reason: Reason::Status(head.status.as_u16()), detail });
        }
        if head.status != axum::http::StatusCode::OK {
            let body = Limited::new(body, MAX_ERROR_BYTES).collect();
            let body = tokio::time::timeout(SILENT_FOR, body).await;
            let body =
                body.ok().and_then(Result::ok).map(http_body_util::Collected::to_bytes).unwrap_or_default();
            let ChatError { message, .. } = chat_chunk::decode_error(&body);
            let message = message.unwrap_or_else(|| String::from_utf8_lossy(&body));
            return Err(Failure::new(Reason::Status(head.status.as_u16()), &message));
        }
        let is_stream =
            head.headers.get(CONTENT_TYPE).is_some_and(|of| of.as_bytes().starts_with(b"text/event-stream"));
        if !is_stream {
            return Err(Failure::new(Reason::Invalid, "it is no event stream (text/event-stream)"));
        }
        read.all(Events::new(BodyDataStream::new(body), self.max_tokens)).await
    }
}

fn late(what: &str, within: Duration) -> Failure {
    Failure { reason: Reason::TimedOut, detail: format!("{what} did not come within {} s", within.as_secs()) }
}

impl Read {
    /// Reads to the end of the stream, so that its connection can be used again.
    async fn all(&mut self, mut events: Events) -> Result<(), Failure> {
        let mut is_done = false;
        loop {
            let event = match tokio::time::timeout(SILENT_FOR, events.next()).await {
                Err(_) if is_done => return Ok(()),
                Err(_) => return Err(late("the next part of a stream", SILENT_FOR)),
                Ok(event) => event,
            };
            match event {
                Some(Ok(data)) if data == chat_chunk::DONE => is_done = true,
                // What follows the end is not part of the answer.
                Some(Ok(_)) if is_done => {}
                Some(Ok(data)) => self.chunk(&data)?,
                _ if is_done => return Ok(()),
                Some(Err(fault)) => return Err(fault.into()),
                None if self.is_finished => return Ok(()),
                None => return Err(Failure::new(Reason::Cut, "the stream ended without its end")),
            }
        }
    }

    fn chunk(&mut self, data: &str) -> Result<(), Failure> {
        let chunk = chat_chunk::decode(data.as_bytes())
            .map_err(|error| Failure::new(Reason::Invalid, &error.detail))?;
        if let Some(ChatError { message, status }) = chunk.error {
            let status = status.map(|status| format!("status {status}: ")).unwrap_or_default();
            let message = message.as_deref().unwrap_or("without words");
            return Err(Failure::new(Reason::InStream, &format!("{status}{message}")));
        }
        if !chunk.text.is_empty() {
            let at = Instant::now();
            self.first.get_or_insert(at);
            self.last = Some(at);
            self.text.push_str(&chunk.text);
        }
        self.is_finished |= chunk.is_finished;
        self.usage = chunk.usage.or(self.usage);
        Ok(())
    }
}

impl From<EventFault> for Failure {
    fn from(fault: EventFault) -> Self {
        let reason = match fault {
            EventFault::Body(_) => Reason::Cut,
            EventFault::Reported => Reason::InStream,
            EventFault::LongLine | EventFault::TooLarge(_) | EventFault::NotUtf8 => Reason::Invalid,
        };
        Self::new(reason, &fault.to_string())
    }
}

/// What a stream that arrives in these pieces says: its text, and its tokens if it tells them. For tests and the fuzzer, which have no
/// endpoint.
///
/// # Errors
/// Why it is no complete answer, in words.
pub async fn read(pieces: Vec<Bytes>, max_tokens: u32) -> Result<(String, Option<Usage>), String> {
    let body = stream::iter(pieces.into_iter().map(Ok::<_, std::io::Error>));
    let mut read = Read::default();
    read.all(Events::new(body, max_tokens)).await.map_err(|failure| failure.to_string())?;
    Ok((read.text, read.usage))
}

#[cfg(test)]
#[path = "exchange_tests.rs"]
mod tests;
