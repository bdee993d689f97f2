//! Fields of a structured line: `key=value` behind the message in text, members of the object in JSONL. Values stay
//! text until they are asked for, because JSONL gives numbers as numbers or as text.

use std::borrow::Cow;
use std::fmt;

use super::event::RequestIds;
use super::printed::Printed;
use crate::active_sequence::MAX_TOKEN_SEQUENCE;
use crate::envelope::Format;
use crate::error::{DecodeError, Reason};
use crate::typed::{self, Text};
use crate::wire::{Fault, InField};
use radixscope_model::id::{Worker, WorkerId};
use radixscope_model::record::{Role, Topic};
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

macro_rules! keys {
    ($($key:ident = $name:literal),* $(,)?) => {
        /// Fields that are looked at.
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub(super) enum FieldKey { $($key),* }

        impl FieldKey {
            const ALL: &'static [Self] = &[$(Self::$key),*];

            const fn name(self) -> &'static str {
                match self { $(Self::$key => $name),* }
            }

            fn of(name: &[u8]) -> Option<Self> {
                Self::ALL.iter().copied().find(|key| key.name().as_bytes() == name)
            }
        }
    };
}
keys! {
    // Of every line of JSONL; in text they have places of their own.
    Time = "time", Level = "level", Target = "target", Message = "message", SpanName = "span_name",
    RequestId = "request_id", Method = "method", Uri = "uri", Version = "version", RouterMode = "router_mode", WorkerId = "worker_id", WorkerType = "worker_type",
    DpRank = "dp_rank", Logit = "logit", EffectiveCachedBlocks = "effective_cached_blocks",
    HostPinnedBlocks = "host_pinned_blocks", DiskBlocks = "disk_blocks", TotalKvBlocks = "total_kv_blocks",
    IslTokens = "isl_tokens", BlockSize = "block_size", NumBlocks = "num_blocks", LocalHashes = "local_hashes",
    OverlapBlocks = "overlap_blocks", Phase = "phase", Outcome = "request.outcome", OtelKind = "otel.kind",
    Status = "status", Model = "model", InputTokens = "input_tokens", OutputTokens = "output_tokens",
    TtftMs = "ttft_ms", AvgItlMs = "avg_itl_ms", ElapsedMs = "elapsed_ms",
    PrefillWorkerId = "prefill_worker_id", DecodeWorkerId = "decode_worker_id",
    CandidateCount = "candidate_count", Occupancy = "occupancy", UseKvEvents = "use_kv_events", TtlSecs = "ttl_secs",
    SessionId = "session_id", TraceId = "trace_id", WaitMs = "wait_ms", KvTuning = "kv_tuning", XRequestId = "x_request_id",
}

/// The fields of one line.
pub(super) struct Fields<'a> {
    values: [Option<Cow<'a, str>>; FieldKey::ALL.len()],
    /// The HTTP span's id of the request, in text.
    http_id: Option<Cow<'a, str>>,
}

impl Default for Fields<'_> {
    fn default() -> Self {
        Self { values: [const { None }; FieldKey::ALL.len()], http_id: None }
    }
}

impl<'a> Fields<'a> {
    /// Fields behind a message. Of a field that comes twice the first counts: an event's own fields come before those
    /// of the spans around it (reference §7.2). Only a request's id depends on where it stands: the event's own,
    /// then that of the HTTP span, which follows the method, then that of a span within, which is the router's again.
    pub(super) fn of_text(text: &'a str) -> Self {
        let mut fields = Self::default();
        let mut is_in_span = false;
        for (key, value, _) in InText(text) {
            let value = Cow::Borrowed(value);
            match key {
                FieldKey::RequestId if is_in_span && fields.http_id.is_none() => fields.http_id = Some(value),
                _ => _ = fields.values[key as usize].get_or_insert(value),
            }
            is_in_span |= matches!(key, FieldKey::Method | FieldKey::Uri | FieldKey::Version);
        }
        fields
    }

    /// Fields of a line of the router's span alone: what comes after `otel.kind="client"`, before which stand those of
    /// the HTTP span with another request id. The outcome is the event's own.
    pub(super) fn of_route_text(text: &'a str) -> Self {
        let is_client =
            |&(key, value, _): &(FieldKey, &str, &str)| key == FieldKey::OtelKind && value == "client";
        let Some((_, _, span)) = InText(text).find(is_client) else { return Self::of_text(text) };
        let mut fields = Self::of_text(span);
        let mut whole = Self::of_text(text);
        fields.values[FieldKey::Outcome as usize] = whole.take(FieldKey::Outcome);
        fields.http_id = whole.http_id;
        fields
    }

    /// Members of an object. Other members are read over, whatever they are.
    pub(super) fn of_json(line: &'a str) -> Result<Self, DecodeError> {
        typed::decode(Topic::Log.as_str(), line.as_bytes(), Format::Json)
    }

    pub(super) fn take(&mut self, key: FieldKey) -> Option<Cow<'a, str>> {
        self.values[key as usize].take()
    }

    /// The ids of the line's request; taken out.
    pub(super) fn take_ids(&mut self) -> RequestIds<'a> {
        RequestIds { router: self.take(FieldKey::RequestId), http: self.take_http_id() }
    }

    pub(super) fn take_http_id(&mut self) -> Option<Cow<'a, str>> {
        self.http_id.take()
    }

    /// A required text.
    pub(super) fn need(&mut self, key: FieldKey) -> Result<Cow<'a, str>, Fault> {
        self.take(key).ok_or(Fault::missing(key.name(), 0))
    }

    pub(super) fn get(&self, key: FieldKey) -> Option<&str> {
        self.values[key as usize].as_deref()
    }

    /// An integer; `Some(7)` counts as 7 and `None` as missing, as Rust prints optional ones.
    pub(super) fn u64(&self, key: FieldKey) -> Result<Option<u64>, Fault> {
        let Some(text) = self.present(key) else { return Ok(None) };
        let is_digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = text.parse().ok().filter(|_| is_digits);
        number
            .map(Some)
            .ok_or(Fault::new(Reason::WrongType, "expected an integer of 64 bits", 0))
            .field(key.name())
    }

    pub(super) fn need_u64(&self, key: FieldKey) -> Result<u64, Fault> {
        self.u64(key)?.ok_or(Fault::missing(key.name(), 0))
    }

    /// A finite number.
    pub(super) fn number(&self, key: FieldKey) -> Result<Option<Printed>, Fault> {
        let Some(text) = self.present(key) else { return Ok(None) };
        let number = Printed::parse(text).map(Some);
        number.ok_or(Fault::new(Reason::WrongType, "expected a finite number", 0)).field(key.name())
    }

    pub(super) fn need_number(&self, key: FieldKey) -> Result<Printed, Fault> {
        self.number(key)?.ok_or(Fault::missing(key.name(), 0))
    }

    /// Milliseconds.
    pub(super) fn ms(&self, key: FieldKey) -> Result<Option<f64>, Fault> {
        Ok(self.number(key)?.map(|number| number.value))
    }

    /// A role; `None` also for a word that is none.
    pub(super) fn role(&self, key: FieldKey) -> Option<Role> {
        self.get(key).and_then(Role::of)
    }

    pub(super) fn worker_id(&self, key: FieldKey) -> Result<Option<WorkerId>, Fault> {
        Ok(self.u64(key)?.map(WorkerId))
    }

    pub(super) fn worker(&self) -> Result<Worker, Fault> {
        let rank = u32::try_from(self.u64(FieldKey::DpRank)?.unwrap_or(0))
            .map_err(|_| Fault::new(Reason::WrongType, "expected an integer below 2^32", 0))
            .field(FieldKey::DpRank.name())?;
        Ok(Worker::new(self.need_u64(FieldKey::WorkerId)?, rank))
    }

    /// `[1, 2, 3]`.
    pub(super) fn hashes(&self, key: FieldKey) -> Result<Vec<u64>, Fault> {
        let text = self.get(key).ok_or(Fault::missing(key.name(), 0))?;
        hashes(text).field(key.name())
    }

    fn present(&self, key: FieldKey) -> Option<&str> {
        let text = self.get(key).filter(|text| *text != "None")?;
        Some(text.strip_prefix("Some(").and_then(|text| text.strip_suffix(')')).unwrap_or(text))
    }
}

fn hashes(text: &str) -> Result<Vec<u64>, Fault> {
    let inside = text.strip_prefix('[').ok_or(Fault::new(Reason::WrongType, "expected a list", 0))?;
    let inside =
        inside.strip_suffix(']').ok_or(Fault::new(Reason::Truncated, "the list has no end", text.len()))?;
    let mut hashes = Vec::new();
    if inside.trim().is_empty() {
        return Ok(hashes);
    }
    for hash in inside.split(',') {
        if hashes.len() == MAX_TOKEN_SEQUENCE {
            return Err(Fault::new(Reason::TooLarge, "more than 2^20 hashes in a request", 0));
        }
        let hash = hash.trim().parse();
        hashes.push(hash.map_err(|_| Fault::new(Reason::WrongType, "expected integers of 64 bits", 0))?);
    }
    Ok(hashes)
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Fields::default();
                while let Some(Text(name)) = from.next_key()? {
                    let Some(key) = FieldKey::of(name.as_bytes()) else {
                        from.next_value::<IgnoredAny>()?;
                        continue;
                    };
                    let Some(value) = text_of(from.next_value()?, key).map_err(A::Error::custom)? else {
                        continue;
                    };
                    if fields.values[key as usize].replace(value).is_some() {
                        return Err(A::Error::duplicate_field(key.name()));
                    }
                }
                Ok(fields)
            }
        }
        from.deserialize_map(Members)
    }
}

/// The value of a field as text, numbers as they are printed; `None` for null and for what no field of ours is.
fn text_of(value: &RawValue, key: FieldKey) -> Result<Option<Cow<'_, str>>, serde_json::Error> {
    let raw = value.get();
    let is_wanted = match raw.as_bytes().first() {
        Some(b'"') => return serde_json::from_str(raw).map(|Text(text)| Some(text)),
        Some(b'-' | b'0'..=b'9') => true,
        Some(b't' | b'f') => key == FieldKey::UseKvEvents,
        Some(b'[') => key == FieldKey::LocalHashes,
        _ => false,
    };
    Ok(is_wanted.then_some(Cow::Borrowed(raw)))
}

/// The client's own id in a line of text: a field of the HTTP span around it, which every event in it repeats.
pub(super) fn client_id(text: &str) -> Option<Cow<'_, str>> {
    let at = text.find(" x_request_id=")?;
    let (value, _) = text_value(&text[at + " x_request_id=".len()..]);
    Some(Cow::Borrowed(value))
}

/// Known fields of a text with their values, and the text behind each.
struct InText<'a>(&'a str);

impl<'a> Iterator for InText<'a> {
    type Item = (FieldKey, &'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.0 = self.0.trim_start_matches(' ');
            if self.0.is_empty() {
                return None;
            }
            let end = self.0.find([' ', '=']).unwrap_or(self.0.len());
            let (name, rest) = self.0.split_at(end);
            let Some(rest) = rest.strip_prefix('=') else {
                self.0 = rest;
                continue;
            };
            let (value, rest) = text_value(rest);
            self.0 = rest;
            if let Some(key) = FieldKey::of(name.as_bytes()) {
                return Some((key, value, rest));
            }
        }
    }
}

/// A value and what follows it: in quotes, in brackets (which stay), or up to a space. One that is cut has no end.
fn text_value(text: &str) -> (&str, &str) {
    if let Some(quoted) = text.strip_prefix('"') {
        let mut is_escaped = false;
        let end = quoted.bytes().position(|b| {
            let is_end = b == b'"' && !is_escaped;
            is_escaped = b == b'\\' && !is_escaped;
            is_end
        });
        return end.map_or((quoted, ""), |end| (&quoted[..end], &quoted[end + 1..]));
    }
    let end = match text.starts_with('[') {
        true => text.find(']').map(|end| end + 1),
        false => text.find(' '),
    };
    text.split_at(end.unwrap_or(text.len()))
}
