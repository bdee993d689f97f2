//! The three JetStream requests that are used: list streams, stream info, message by sequence number. They are plain requests:
//! no consumer is created, nothing is acknowledged, nothing is written (reference §2.2).

use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::{Client, Request};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use radixscope_model::id::Millis;

/// Response timeout. JetStream responds in milliseconds or not at all.
const RESPONSE_WITHIN: Duration = Duration::from_secs(5);
/// Maximum streams that are listed: a deployment has one per serving component.
const MAX_STREAMS: usize = 4_096;
/// Error codes for a missing stream and a missing message.
const STREAM_NOT_FOUND: u32 = 10_059;
const NO_MESSAGE_FOUND: u32 = 10_037;

/// Why a JetStream request failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum JetStreamError {
    /// It is disabled on this server or for this account.
    #[error("JetStream is disabled")]
    Off,
    /// No response; usually the user lacks the permission.
    #[error("JetStream did not respond within {} s; this user may lack the permission for requests to it", RESPONSE_WITHIN.as_secs())]
    TimedOut,
    /// The stream does not exist.
    #[error("stream not found")]
    NoStream,
    /// The stream no longer has the message.
    #[error("message not found")]
    NoMessage,
    /// Another error of JetStream.
    #[error("JetStream error: {0}")]
    ApiError(String),
    /// The connection failed.
    #[error("the request failed: {0}")]
    Request(String),
    /// The response is not JetStream's.
    #[error("JetStream's response cannot be parsed: {0}")]
    Unreadable(String),
}

/// The range of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct StreamRange {
    /// Creation time; it distinguishes streams of the same name.
    pub(super) created: String,
    /// First message still in the stream.
    pub(super) first_seq: u64,
    /// Last message.
    pub(super) last_seq: u64,
    /// The broker's clock at the response; `None` before nats-server 2.10.
    pub(super) at_ms: Option<Millis>,
}

/// A stored message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct StoredMessage {
    pub(super) subject: String,
    pub(super) at_ms: Millis,
    pub(super) payload: Bytes,
}

#[derive(Deserialize)]
struct ApiError {
    #[serde(default)]
    code: u32,
    #[serde(default)]
    err_code: u32,
    #[serde(default)]
    description: String,
}

#[derive(Deserialize)]
struct Names {
    total: usize,
    streams: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Info {
    created: String,
    state: InfoState,
    ts: Option<String>,
}

#[derive(Deserialize)]
struct InfoState {
    first_seq: u64,
    last_seq: u64,
    #[serde(default)]
    messages: u64,
}

#[derive(Deserialize)]
struct Got {
    message: GotMessage,
}

#[derive(Deserialize)]
struct GotMessage {
    subject: String,
    #[serde(default)]
    data: String,
    time: String,
}

/// Names of all visible streams.
pub(super) async fn stream_names(client: &Client) -> Result<Vec<String>, JetStreamError> {
    let mut names = Vec::new();
    loop {
        let page: Names =
            ask(client, "STREAM.NAMES".to_owned(), format!("{{\"offset\":{}}}", names.len())).await?;
        let streams = page.streams.unwrap_or_default();
        if streams.is_empty() {
            return Ok(names);
        }
        names.extend(streams);
        if names.len() >= page.total || names.len() >= MAX_STREAMS {
            return Ok(names);
        }
    }
}

/// The range of `stream`.
pub(super) async fn range(client: &Client, stream: &str) -> Result<StreamRange, JetStreamError> {
    let info: Info = ask(client, format!("STREAM.INFO.{stream}"), String::new()).await?;
    Ok(StreamRange {
        created: info.created,
        first_seq: info.state.first_seq.max(1),
        last_seq: info.state.last_seq,
        at_ms: info.ts.as_deref().and_then(millis),
    })
}

/// Number of messages in `stream`.
pub(crate) async fn message_count(client: &Client, stream: &str) -> Result<Option<u64>, String> {
    match ask::<Info>(client, format!("STREAM.INFO.{stream}"), String::new()).await {
        Ok(info) => Ok(Some(info.state.messages)),
        Err(JetStreamError::NoStream) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Creates `stream` as Dynamo's publishers do (reference §2.2).
pub(crate) async fn create(client: &Client, stream: &str, max_age: Duration) -> Result<(), String> {
    let config = serde_json::json!({
        "name": stream,
        "subjects": [format!("{stream}.*")],
        "max_age": max_age.as_nanos() as u64,
    });
    let created =
        ask::<serde_json::Value>(client, format!("STREAM.CREATE.{stream}"), config.to_string()).await;
    created.map(|_| ()).map_err(|error| error.to_string())
}

/// Message `seq` of `stream`; `None` if it no longer exists.
pub(super) async fn message(
    client: &Client,
    stream: &str,
    seq: u64,
) -> Result<Option<StoredMessage>, JetStreamError> {
    let got: Result<Got, _> =
        ask(client, format!("STREAM.MSG.GET.{stream}"), format!("{{\"seq\":{seq}}}")).await;
    let message = match got {
        Ok(got) => got.message,
        Err(JetStreamError::NoMessage) => return Ok(None),
        Err(error) => return Err(error),
    };
    let payload = STANDARD.decode(&message.data).map_err(|e| JetStreamError::Unreadable(e.to_string()))?;
    let at_ms = millis(&message.time)
        .ok_or_else(|| JetStreamError::Unreadable(format!("time {:?}", message.time)))?;
    Ok(Some(StoredMessage { subject: message.subject, at_ms, payload: payload.into() }))
}

async fn ask<T: DeserializeOwned>(client: &Client, what: String, with: String) -> Result<T, JetStreamError> {
    let request = Request::new().payload(with.into()).timeout(Some(RESPONSE_WITHIN));
    let response =
        client.send_request(format!("$JS.API.{what}"), request).await.map_err(|error| {
            match error.kind() {
                RequestErrorKind::NoResponders => JetStreamError::Off,
                RequestErrorKind::TimedOut => JetStreamError::TimedOut,
                _ => JetStreamError::Request(error.to_string()),
            }
        })?;
    read(&response.payload)
}

fn read<T: DeserializeOwned>(response: &[u8]) -> Result<T, JetStreamError> {
    let unreadable = |error: serde_json::Error| JetStreamError::Unreadable(error.to_string());
    #[derive(Deserialize)]
    struct Failure {
        error: Option<ApiError>,
    }
    let failure: Failure = serde_json::from_slice(response).map_err(unreadable)?;
    match failure.error {
        None => serde_json::from_slice(response).map_err(unreadable),
        Some(error) => Err(match (error.code, error.err_code) {
            (_, STREAM_NOT_FOUND) => JetStreamError::NoStream,
            (_, NO_MESSAGE_FOUND) => JetStreamError::NoMessage,
            // JetStream not enabled, for the server or for the account.
            (503, _) => JetStreamError::Off,
            _ => JetStreamError::ApiError(error.description),
        }),
    }
}

fn millis(text: &str) -> Option<Millis> {
    let at = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    u64::try_from(at.unix_timestamp_nanos() / 1_000_000).ok().map(Millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_read() {
        let text = br#"{"type":"x","total":0,"created":"2026-01-01T00:00:00.5Z","config":{"name":"s"},
            "state":{"messages":3,"first_seq":2,"last_seq":4},"ts":"2026-01-01T00:00:01Z"}"#;
        let info: Info = read(text).unwrap();
        assert_eq!((info.state.first_seq, info.state.last_seq, info.state.messages), (2, 4, 3));
        assert_eq!(millis(&info.created), Some(Millis(1_767_225_600_500)));
    }

    #[test]
    fn errors_are_distinguished() {
        let error = |code: u32, err_code: u32| {
            let text = format!(r#"{{"error":{{"code":{code},"err_code":{err_code},"description":"d"}}}}"#);
            read::<Info>(text.as_bytes()).err().unwrap()
        };
        assert!(matches!(error(404, STREAM_NOT_FOUND), JetStreamError::NoStream));
        assert!(matches!(error(404, NO_MESSAGE_FOUND), JetStreamError::NoMessage));
        assert!(matches!(error(503, 10_039), JetStreamError::Off));
        assert!(matches!(error(400, 1), JetStreamError::ApiError(d) if d == "d"));
        assert!(matches!(read::<Info>(b"no").err().unwrap(), JetStreamError::Unreadable(_)));
    }
}
