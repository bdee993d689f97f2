//! Lines of SGLang's model gateway (smg) about one choice of its policy `cache_aware`, at DEBUG: text, coloured or not, and JSON
//! (`--log-json`). Seen of smg 1.13.0.
//!
//! `Cache-aware selection` names the chosen worker by its URL, the branch of the policy, and how much of the prompt the gateway's own tree
//! matched. Other workers are not in it.

use std::borrow::Cow;

use serde::Deserialize;

use super::{Level, LogEvent, LogRecord, clock, text};
use crate::error::{DecodeError, Reason};
use crate::typed::{self, Text};
use radixscope_model::record::{MAX_ENDPOINT_BYTES, Topic};

/// The message of every line that is read here.
pub(super) const PHRASE: &str = "Cache-aware selection";
/// Longest name of a branch, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// A choice.
#[derive(Clone, PartialEq, Debug)]
pub struct GatewayChoice<'a> {
    /// The request, as its client or the gateway names it.
    pub request_id: Option<Cow<'a, str>>,
    /// URL of the chosen worker.
    pub worker: Cow<'a, str>,
    /// The branch of the policy: `tree_match`, `spill`, `expected_wait_fallback` …
    pub branch: Option<Cow<'a, str>>,
    /// The model, as the gateway names it.
    pub model: Option<Cow<'a, str>>,
    /// Share of the prompt that the gateway's tree matched, 0 … 1. `None`: not reported, as in branches that do not look.
    pub matched_share: Option<f64>,
}

impl GatewayChoice<'_> {
    /// The same without the line it was read from.
    pub fn into_owned(self) -> GatewayChoice<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        GatewayChoice {
            request_id: self.request_id.map(own),
            worker: own(self.worker),
            branch: self.branch.map(own),
            model: self.model.map(own),
            matched_share: self.matched_share,
        }
    }
}

/// Reads a line without colours. `None`: it is none of these.
pub(super) fn decode(line: &str) -> Result<Option<LogRecord<'_>>, DecodeError> {
    let Some(at) = line.find(PHRASE) else { return Ok(None) };
    match text::object(line) {
        Some(object) => in_json(line, object),
        None => in_text(line, at),
    }
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    timestamp: Option<Text<'a>>,
    level: Option<Text<'a>>,
    message: Option<Text<'a>>,
    branch: Option<Text<'a>>,
    worker: Option<Text<'a>>,
    model_id: Option<Text<'a>>,
    matched_ratio: Option<f64>,
    span: Option<SpanFields<'a>>,
}

#[derive(Deserialize)]
struct SpanFields<'a> {
    #[serde(borrow)]
    request_id: Option<Text<'a>>,
}

fn in_json<'a>(line: &'a str, object: &'a str) -> Result<Option<LogRecord<'a>>, DecodeError> {
    let fields: Fields<'a> = typed::decode_json(Topic::Log.as_str(), object.as_bytes(), line.as_bytes())?;
    let text = |of: Option<Text<'a>>| of.map(|Text(text)| text);
    if text(fields.message).as_deref() != Some(PHRASE) {
        return Ok(None);
    }
    let at_us = text(fields.timestamp).and_then(|time| clock::utc_us(&time));
    let level = text(fields.level).and_then(|word| Level::of(&word)).unwrap_or(Level::Debug);
    let choice = GatewayChoice {
        request_id: fields.span.and_then(|span| text(span.request_id)),
        worker: text(fields.worker).unwrap_or_default(),
        branch: text(fields.branch),
        model: text(fields.model_id),
        matched_share: fields.matched_ratio,
    };
    record(at_us, level, choice)
}

/// `DATE TIME LEVEL http_request{… request_id="ID"}: TARGET: FILE:LINE: Cache-aware selection branch="…" worker="…" …`
fn in_text(line: &str, at: usize) -> Result<Option<LogRecord<'_>>, DecodeError> {
    let (head, behind) = (&line[..at], &line[at + PHRASE.len()..]);
    // A message that only contains the words stands behind others.
    if !head.trim_end().ends_with(':') || !(behind.is_empty() || behind.starts_with(' ')) {
        return Ok(None);
    }
    let mut words = head.split_whitespace();
    let mut before = ("", "");
    let found = words.find_map(|word| {
        let level = Level::of(word);
        if level.is_none() {
            before = (before.1, word);
        }
        level
    });
    let Some(level) = found else { return Ok(None) };
    let at_us = clock::utc_us(&format!("{} {}", before.0, before.1));
    let choice = GatewayChoice {
        request_id: value(head, "request_id").map(Cow::Borrowed),
        worker: value(behind, "worker").map(Cow::Borrowed).unwrap_or_default(),
        branch: value(behind, "branch").map(Cow::Borrowed),
        model: value(behind, "model_id").map(Cow::Borrowed),
        matched_share: value(behind, "matched_ratio").and_then(|number| number.parse().ok()),
    };
    record(at_us, level, choice)
}

/// The value of `name=value` or `name="value"`; of several the last one, which is of the innermost span.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut found = None;
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let is_word = rest[..at].ends_with([' ', '{']) || at == 0;
        rest = &rest[at + name.len()..];
        let Some(value) = rest.strip_prefix('=').filter(|_| is_word) else { continue };
        found = Some(match value.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next().unwrap_or_default(),
            None => value.split([' ', '}']).next().unwrap_or_default(),
        });
    }
    found.filter(|value| !value.is_empty())
}

fn record(
    at_us: Option<i64>,
    level: Level,
    choice: GatewayChoice<'_>,
) -> Result<Option<LogRecord<'_>>, DecodeError> {
    let fault = |reason, what: &str| DecodeError::new(reason, format!("{}: {what}", Topic::Log.as_str()));
    // No worker was eligible.
    if choice.worker == "none" {
        return Ok(None);
    }
    if choice.worker.is_empty() {
        return Err(fault(Reason::MissingField, "worker: is missing"));
    }
    let is_long = choice.worker.len() > MAX_ENDPOINT_BYTES
        || choice.branch.as_ref().is_some_and(|branch| branch.len() > MAX_NAME_BYTES)
        || choice.model.as_ref().is_some_and(|model| model.len() > MAX_ENDPOINT_BYTES);
    if is_long {
        return Err(fault(Reason::TooLarge, "a name of more bytes than names have"));
    }
    let matched_share = choice.matched_share.filter(|share| (0.0..=1.0).contains(share));
    let request_id = choice.request_id.filter(|id| !id.is_empty());
    let choice = GatewayChoice { request_id, matched_share, ..choice };
    Ok(Some(LogRecord {
        at_us,
        level,
        trace_id: None,
        client_id: None,
        event: LogEvent::GatewayChoice(choice),
    }))
}
