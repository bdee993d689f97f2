//! etcd's JSON: questions and answers of its gateway. Keys and values are Base64, 64-bit numbers are texts.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::super::Entry;

/// Entries of a page. A model card has some kilobytes, an entry at most 1.5 MiB.
pub(super) const PAGE: u32 = 200;
/// What Dynamo's keys begin with, and the first key behind them.
const PREFIX: (&str, &str) = ("v1/", "v10");

/// Text of Base64.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Encoded(Vec<u8>);

impl<'de> Deserialize<'de> for Encoded {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
        BASE64_STANDARD.decode(&*text).map(Self).map_err(serde::de::Error::custom)
    }
}

impl Serialize for Encoded {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&BASE64_STANDARD.encode(&self.0))
    }
}

/// A number as a text.
fn number<'de, D: serde::Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
    text.parse().map_err(serde::de::Error::custom)
}

/// Asks for a part of all entries.
#[derive(Serialize)]
pub(super) struct RangeRequest {
    key: Encoded,
    range_end: Encoded,
    limit: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    count_only: bool,
}

impl RangeRequest {
    /// The page behind the entry `after`, as of `revision`.
    pub(super) fn page(after: Option<(&[u8], i64)>) -> Self {
        let key = match after {
            // The next key that there can be.
            Some((key, _)) => [key, &[0]].concat(),
            None => PREFIX.0.into(),
        };
        Self {
            key: Encoded(key),
            range_end: Encoded(PREFIX.1.into()),
            limit: PAGE,
            revision: after.map(|(_, revision)| revision.to_string()),
            count_only: false,
        }
    }

    /// How many there are: a question that costs nothing.
    pub(super) fn count() -> Self {
        Self { count_only: true, limit: 1, ..Self::page(None) }
    }
}

/// Part of all entries.
#[derive(Deserialize)]
pub(super) struct RangeAnswer {
    #[serde(default)]
    pub(super) header: Header,
    #[serde(default)]
    pub(super) kvs: Vec<KeyValue>,
    #[serde(default)]
    pub(super) more: bool,
    /// How many there are in all.
    #[serde(default, deserialize_with = "number")]
    pub(super) count: i64,
}

#[derive(Deserialize, Default)]
pub(super) struct Header {
    #[serde(default, deserialize_with = "number")]
    pub(super) revision: i64,
}

#[derive(Deserialize)]
pub(super) struct KeyValue {
    pub(super) key: Encoded,
    #[serde(default)]
    value: Encoded,
    #[serde(default, deserialize_with = "number")]
    lease: i64,
}

impl KeyValue {
    /// `None`: its key is no text, so it is none of Dynamo's.
    pub(super) fn entry(self) -> Option<Entry> {
        let key = String::from_utf8(self.key.0).ok()?;
        let lease = u64::try_from(self.lease).ok().filter(|lease| *lease != 0);
        Some(Entry { key, value: Bytes::from(self.value.0), lease })
    }
}

impl Encoded {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Asks for changes from a revision on.
#[derive(Serialize)]
pub(super) struct WatchRequest {
    create_request: CreateRequest,
}

#[derive(Serialize)]
struct CreateRequest {
    key: Encoded,
    range_end: Encoded,
    start_revision: String,
    /// Large answers come in parts.
    fragment: bool,
}

impl WatchRequest {
    pub(super) fn from_revision(revision: i64) -> Self {
        let (key, range_end) = (Encoded(PREFIX.0.into()), Encoded(PREFIX.1.into()));
        let start_revision = revision.to_string();
        Self { create_request: CreateRequest { key, range_end, start_revision, fragment: true } }
    }
}

/// A line of a watch.
#[derive(Deserialize)]
pub(super) struct WatchLine {
    #[serde(default)]
    pub(super) result: Option<WatchResult>,
    #[serde(default)]
    pub(super) error: Option<serde_json::Value>,
}

#[derive(Deserialize)]
pub(super) struct WatchResult {
    #[serde(default)]
    pub(super) canceled: bool,
    /// Of a watch that was cancelled: what was asked for is no longer kept; or else why.
    #[serde(default, alias = "compactRevision", deserialize_with = "number")]
    pub(super) compact_revision: i64,
    #[serde(default, alias = "cancelReason")]
    pub(super) cancel_reason: String,
    #[serde(default)]
    pub(super) events: Vec<Event>,
}

#[derive(Deserialize)]
pub(super) struct Event {
    /// `DELETE`; else the entry was written.
    #[serde(default, rename = "type")]
    kind: String,
    kv: KeyValue,
}

/// What became of an entry.
pub(super) enum Change {
    Put(Entry),
    End(String),
}

impl Event {
    /// `None`: its key is no text.
    pub(super) fn change(self) -> Option<Change> {
        let is_end = self.kind == "DELETE";
        let entry = self.kv.entry()?;
        Some(if is_end { Change::End(entry.key) } else { Change::Put(entry) })
    }
}

/// Asks for a token.
#[derive(Serialize)]
pub(super) struct Login<'l> {
    pub(super) name: &'l str,
    pub(super) password: &'l str,
}

#[derive(Deserialize)]
pub(super) struct Token {
    pub(super) token: String,
}

/// Why a question got no answer, in etcd's words.
#[derive(Deserialize, Default)]
pub(super) struct Refusal {
    #[serde(default)]
    error: String,
    #[serde(default)]
    message: String,
}

impl Refusal {
    pub(super) fn words(&self) -> &str {
        if self.message.is_empty() { &self.error } else { &self.message }
    }
}
