//! etcd's JSON: questions and answers of its gateway. Keys and values are Base64, 64-bit numbers are texts.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use radixscope_dynamo::discovery::pieces::{Array, Limits};

use super::super::budget::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use super::super::entries::{EntryValue, Found};

/// What the keys begin with that are read, and the first key behind them: what else is under `v1/` is not requested.
pub(super) const RANGES: [(&str, &str); 4] = [
    ("v1/event_channels/", "v1/event_channels0"),
    ("v1/event_sources/", "v1/event_sources0"),
    ("v1/instances/", "v1/instances0"),
    ("v1/mdc/", "v1/mdc0"),
];
/// Entries of a page, and events of a line of a watch.
pub(super) const KVS: Array = Array { field: "\"kvs\"", depth: 1 };
pub(super) const EVENTS: Array = Array { field: "\"events\"", depth: 2 };
/// An entry with the longest value and key that are read, in Base64, and its numbers.
pub(super) const LIMITS: Limits = Limits {
    text_bytes: MAX_VALUE_BYTES.div_ceil(3) * 4,
    piece_bytes: (MAX_VALUE_BYTES + MAX_KEY_BYTES) / 3 * 4 + 4 * 1024,
};

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

/// Asks for a part of the entries of a range.
#[derive(Serialize)]
pub(super) struct RangeRequest {
    key: Encoded,
    range_end: Encoded,
    limit: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    count_only: bool,
}

impl RangeRequest {
    /// A page of `limit` entries behind the key `after`, as of `revision`.
    pub(super) fn page(range: (&str, &str), after: Option<&[u8]>, limit: usize, revision: i64) -> Self {
        let key = match after {
            // The next key that there can be.
            Some(key) => [key, &[0]].concat(),
            None => range.0.into(),
        };
        Self {
            key: Encoded(key),
            range_end: Encoded(range.1.into()),
            limit,
            revision: Some(revision.to_string()),
            count_only: false,
        }
    }

    /// How many there are, as of `revision` or now: a question that costs nothing.
    pub(super) fn count(range: (&str, &str), revision: Option<i64>) -> Self {
        let (revision, page) = (revision.map(|revision| revision.to_string()), Self::page(range, None, 1, 0));
        Self { count_only: true, revision, ..page }
    }
}

/// What is around the entries of a page.
#[derive(Deserialize)]
pub(super) struct RangeResponse {
    #[serde(default)]
    pub(super) header: Header,
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
    #[serde(default, alias = "createRevision", deserialize_with = "number")]
    create_revision: i64,
    #[serde(default, alias = "modRevision", deserialize_with = "number")]
    mod_revision: i64,
}

impl KeyValue {
    /// `None`: its key is no text, so it is none of Dynamo's. `left_out_bytes`: length of the entry as it was sent, if its value
    /// is left out.
    pub(super) fn found(self, left_out_bytes: Option<u64>) -> Option<Found> {
        let key = String::from_utf8(self.key.0).ok()?;
        let lease = u64::try_from(self.lease).ok().filter(|lease| *lease != 0);
        let value = match left_out_bytes {
            // Three bytes are four characters of Base64.
            Some(bytes) => EntryValue::TooLarge { bytes: bytes / 4 * 3 },
            None => EntryValue::of(self.value.0.len(), || Bytes::from(self.value.0)),
        };
        Some(Found { key, value, lease })
    }
}

impl Encoded {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Asks for changes of a range from a revision on.
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
    /// One for each range.
    pub(super) fn from_revision(revision: i64) -> [Self; 4] {
        RANGES.map(|(key, end)| {
            let (key, range_end) = (Encoded(key.into()), Encoded(end.into()));
            let start_revision = revision.to_string();
            Self { create_request: CreateRequest { key, range_end, start_revision, fragment: true } }
        })
    }
}

/// What is around the events of a line of a watch.
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
    Put(Found),
    End(String),
}

impl Event {
    /// By how many the entries are more, or fewer.
    pub(super) fn adds(&self) -> i64 {
        match self.is_end() {
            true => -1,
            false => i64::from(self.kv.create_revision == self.kv.mod_revision),
        }
    }

    /// `None`: its key is no text. `left_out_bytes`: as for [`KeyValue::found`].
    pub(super) fn change(self, left_out_bytes: Option<u64>) -> Option<Change> {
        let is_end = self.is_end();
        let found = self.kv.found(left_out_bytes)?;
        Some(if is_end { Change::End(found.key) } else { Change::Put(found) })
    }

    fn is_end(&self) -> bool {
        self.kind == "DELETE"
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

/// Why a question got no response, in etcd's words.
#[derive(Deserialize, Default)]
pub(super) struct Refusal {
    #[serde(default)]
    error: String,
    #[serde(default)]
    message: String,
}

impl Refusal {
    pub(super) fn to_text(&self) -> &str {
        if self.message.is_empty() { &self.error } else { &self.message }
    }
}
