//! Lines of Dynamo's log that say something about routing or about the path of KV events to the router (reference §7.2,
//! §7.3, §9.1), as text or JSONL, of 0.8 to 1.7; of frontends and workers.
//!
//! The log names all candidates of a decision (up to 1.5) and joins request, decision and outcome (from 1.5), which
//! no message does. By far the most lines say nothing about routing and are turned away by a search for fixed phrases.
//!
//! # How it works
//!
//! A frontend's log contains what no message does: the cost of every candidate (0.8 to 1.5), and request, decision and
//! outcome under one id (from 1.1 on, in text by way of the HTTP span). A file is asked for more five times a second
//! and followed through renaming and emptying; a pipe is read as fast as it comes. A worker's log says what it does
//! not publish, and why. A line reaches the hub like a message, with the subject `log/NAME`, but only if it holds one
//! of some twenty fixed phrases, because by far the most lines say nothing of use; how many were read and handed over
//! stands in the state of the source. Text, coloured or behind a container runtime's prefix, and JSONL are read by
//! one set of scanners, and every printed number keeps its digits, so that a cost can be held against its printed
//! terms. A line longer than 256 KiB is cut, counted as too large, and passed over to its end.

mod clock;
mod endpoint_picker;
mod event;
mod fields;
mod printed;
mod read;
mod scan;
mod sglang_gateway;
mod sign;
mod started;
mod text;

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;

pub use endpoint_picker::{Endpoint, EndpointName, MAX_ENDPOINTS, PickerLine, PickerStep, ScoredEndpoint};
pub use event::{
    Dispatched, Ending, Formula, LogEvent, OverlapRefreshed, PrefillBypassed, RequestDone, RequestIds,
    RequestReceived, RouteDone, RoutedDirectly, RoutingBest, RoutingInput, Selected, SelectedWithoutKv,
    SessionLookup, StartedWith, Terms, Tie, Unreachable, UnreachableWhy,
};
pub use printed::Printed;
pub use sglang_gateway::GatewayChoice;

use super::error::{DecodeError, Reason};
use super::wire::Fault;
use fields::{FieldKey, Fields};
use radixscope_model::id::Millis;
use radixscope_model::record::{MAX_CLIENT_ID_BYTES, MAX_TRACE_ID_BYTES, Topic};
use read::{LogMessage, event};

/// A line about routing.
#[derive(Clone, PartialEq, Debug)]
pub struct LogRecord<'a> {
    /// When it was written, in microseconds of Unix time, by the clock of the machine that wrote it. `None`: the line
    /// bears no time that can be read.
    pub at_us: Option<i64>,
    /// How important it was to who wrote it.
    pub level: Level,
    /// The id of the trace that it was written in; only JSON has it.
    pub trace_id: Option<Cow<'a, str>>,
    /// The id that the client gave the line's request (`x-request-id`), which the HTTP span around it has.
    pub client_id: Option<Cow<'a, str>>,
    /// Its contents.
    pub event: LogEvent<'a>,
}

/// Level of a line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// `TRACE`
    Trace,
    /// `DEBUG`
    Debug,
    /// `INFO`
    Info,
    /// `WARN`
    Warn,
    /// `ERROR`
    Error,
}

impl Level {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "TRACE" => Self::Trace,
            "DEBUG" => Self::Debug,
            "INFO" => Self::Info,
            "WARN" => Self::Warn,
            "ERROR" => Self::Error,
            _ => return None,
        })
    }
}

/// One of these is in every line about routing; none has a character that JSON escapes or that
/// could be coloured.
const PHRASES: [&str; 35] = [
    sglang_gateway::PHRASE,
    endpoint_picker::PHRASES[0],
    endpoint_picker::PHRASES[1],
    endpoint_picker::PHRASES[2],
    endpoint_picker::PHRASES[3],
    endpoint_picker::PHRASES[4],
    "ormula for worker_id=",
    "Multiple workers tied with same logit",
    "Selected worker",
    "Selected pinned worker",
    "ession affinity ",
    "[ROUTING",
    "route request ",
    "request completed",
    "request received",
    "ing worker WorkerWithDpRank",
    "endpoint instance removed, removing worker",
    "Failed to find ",
    "block_hash mismatch: sequence",
    "Block not published.",
    "which is greater than kv_block_size",
    "prefill_tokens < 0",
    "Router block size mismatch",
    "Checksum for new model",
    "Event ID gap detected",
    "does not have local indexer",
    "using JetStream subscription",
    "KV Routing initialized",
    "Runtime shutdown initiated",
    "Skipping KV event subscription",
    "predict-on-route side indexer",
    "Conditional disagg routing to decode worker",
    "refreshed overlap scores",
    "CONFIG_DUMP: ",
    "Activating prefill router",
];

/// Whether a line can say something about routing: a cheap search for fixed phrases, for a source that wants to hand
/// over no others. [`decode`] gives `None` for every line of which this is false.
pub fn may_matter(line: &[u8]) -> bool {
    static FINDERS: LazyLock<[Finder<'static>; PHRASES.len()]> = LazyLock::new(|| PHRASES.map(Finder::new));
    FINDERS.iter().any(|finder| finder.find(line).is_some())
}

/// Reads a line, without its line feed: text, coloured or not, or JSONL, also behind the prefix of a container
/// runtime. `None`: it is not about routing.
///
/// # Errors
/// The line begins like one about routing, but the rest was not understood.
pub fn decode(line: &[u8]) -> Result<Option<LogRecord<'_>>, DecodeError> {
    if !may_matter(line) {
        return Ok(None);
    }
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let text = std::str::from_utf8(line).map_err(|error| {
        described(Fault::new(Reason::Malformed, "expected text in UTF-8", error.valid_up_to()))
    })?;
    if text.contains('\x1b') {
        return Ok(text_or_json(&text::without_colours(text))?.map(LogRecord::into_owned));
    }
    text_or_json(text)
}

fn described(fault: Fault) -> DecodeError {
    fault.into_error(Topic::Log.as_str())
}

fn text_or_json(line: &str) -> Result<Option<LogRecord<'_>>, DecodeError> {
    if let Some(record) = endpoint_picker::decode(line)? {
        return Ok(Some(record));
    }
    if let Some(record) = sglang_gateway::decode(line)? {
        return Ok(Some(record));
    }
    match text::object(line) {
        Some(object) => in_json(Fields::of_json(object)?).map_err(described),
        None => in_text(line).map_err(described),
    }
}

fn in_text(line: &str) -> Result<Option<LogRecord<'_>>, Fault> {
    let Some(text::TextLine { at_us, level, scope, message }) = text::head(line) else { return Ok(None) };
    let event = event(LogMessage { scope, text: message, fields: None })?;
    Ok(event.map(|event| {
        let client_id = fields::client_id(message).and_then(bounded_client_id);
        LogRecord { at_us, level, trace_id: None, client_id, event }
    }))
}

fn in_json(mut fields: Fields<'_>) -> Result<Option<LogRecord<'_>>, Fault> {
    let Some(message) = fields.take(FieldKey::Message) else { return Ok(None) };
    let at_us = fields.get(FieldKey::Time).and_then(clock::unix_us);
    let level = fields.get(FieldKey::Level).and_then(Level::of);
    let scope = fields.take(FieldKey::Target).unwrap_or_default();
    let trace_id = fields.take(FieldKey::TraceId).and_then(bounded_trace_id);
    let client_id = fields.take(FieldKey::XRequestId).and_then(bounded_client_id);
    let event = match (&message, &scope) {
        (Cow::Borrowed(text), Cow::Borrowed(scope)) => {
            event(LogMessage { scope, text, fields: Some(fields) })?
        }
        _ => event(LogMessage { scope: &scope, text: &message, fields: Some(fields) })?
            .map(LogEvent::into_owned),
    };
    let Some(event) = event else { return Ok(None) };
    let level = level.ok_or(Fault::missing("level", 0))?;
    Ok(Some(LogRecord { at_us, level, trace_id, client_id, event }))
}

/// An id of a trace, if it is one.
fn bounded_trace_id(id: Cow<'_, str>) -> Option<Cow<'_, str>> {
    (!id.is_empty() && id.len() <= MAX_TRACE_ID_BYTES).then_some(id)
}

/// An id that a client gave, if it is one.
fn bounded_client_id(id: Cow<'_, str>) -> Option<Cow<'_, str>> {
    (!id.is_empty() && id.len() <= MAX_CLIENT_ID_BYTES).then_some(id)
}

impl LogRecord<'_> {
    /// When it was written, in milliseconds of Unix time.
    pub fn at_ms(&self) -> Option<Millis> {
        self.at_us.and_then(|us| u64::try_from(us / 1_000).ok()).map(Millis)
    }

    /// The same without the line it was read from.
    pub fn into_owned(self) -> LogRecord<'static> {
        LogRecord {
            at_us: self.at_us,
            level: self.level,
            trace_id: self.trace_id.map(|id| Cow::Owned(id.into_owned())),
            client_id: self.client_id.map(|id| Cow::Owned(id.into_owned())),
            event: self.event.into_owned(),
        }
    }
}
