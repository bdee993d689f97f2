//! The span of a routed request, `kv_router.route_request`: from when the worker was given the request to its end. It says what the
//! line `route request completed` of a log says, with the trace that it belongs to.

use std::borrow::Cow;

use radixscope_model::id::{Millis, Worker};
use radixscope_model::record::Role;

use super::wire::{Fields, Value};
use super::{AttributeValue, attribute};
use crate::error::Reason;
use crate::log_line::{Ending, Level, LogEvent, LogRecord, RouteDone};
use crate::wire::Fault;

/// Longest id of a request that is read, in bytes. Dynamo's have 36.
const MAX_REQUEST_ID_BYTES: usize = 512;

/// Longest word of how a request ended; Dynamo's have at most twenty letters.
const MAX_OUTCOME_BYTES: usize = 64;

/// A routed request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteSpan {
    /// The id of its trace, 32 hexadecimal digits.
    pub trace_id: Option<String>,
    /// When the worker was given it, in microseconds of Unix time.
    pub started_us: Option<i64>,
    /// When it ended.
    pub ended_us: Option<i64>,
    /// Where it ran, and how it ended.
    pub done: RouteDone<'static>,
}

impl RouteSpan {
    /// When the worker was given it.
    pub fn started_ms(&self) -> Option<Millis> {
        self.started_us.and_then(|us| u64::try_from(us / 1_000).ok()).map(Millis)
    }

    /// The line of a log that says the same.
    pub fn line(&self) -> LogRecord<'_> {
        LogRecord {
            at_us: self.ended_us,
            level: Level::Info,
            trace_id: self.trace_id.as_deref().map(Cow::Borrowed),
            client_id: None,
            event: LogEvent::RouteDone(self.done.clone()),
        }
    }
}

/// `None`: it names no worker.
pub(super) fn decode(span: &[u8]) -> Result<Option<RouteSpan>, Fault> {
    let (mut trace_id, mut started_us, mut ended_us, mut ending) = (None, None, None, None);
    let (mut request_id, mut worker, mut dp_rank) = (None, None, None);
    let (mut overlap_blocks, mut phase, mut outcome) = (None, None, None);
    for field in Fields::of(span) {
        match field? {
            (1, Value::Bytes(id)) => trace_id = hexadecimal(id),
            (7, Value::Fixed64(at)) => started_us = micros(at),
            (8, Value::Fixed64(at)) => ended_us = micros(at),
            (9, Value::Bytes(bytes)) => {
                let (key, value) = attribute(bytes)?;
                let Some(value) = value else { continue };
                match key {
                    b"request_id" => request_id = Some(text(value)?),
                    b"worker_id" => worker = integer(value)?,
                    b"dp_rank" => dp_rank = integer(value)?,
                    b"overlap_blocks" => overlap_blocks = integer(value)?,
                    b"phase" => phase = Role::of(text(value)?),
                    b"request.outcome" => outcome = Some(text(value)?),
                    _ => {}
                }
            }
            (11, Value::Bytes(event)) => ending = ending.or(ending_of(event)?),
            _ => {}
        }
    }
    let Some(id) = worker else { return Ok(None) };
    let request_id = request_id.filter(|id| !id.is_empty()).ok_or(Fault::missing("request_id", 0))?;
    if request_id.len() > MAX_REQUEST_ID_BYTES {
        return Err(Fault::new(Reason::TooLarge, "expected a request_id of at most 512 bytes", 0));
    }
    let dp_rank = u32::try_from(dp_rank.unwrap_or(0))
        .map_err(|_| Fault::new(Reason::WrongType, "expected a dp_rank below 2^32", 0))?;
    // The event has its own time, the one of the line; a span of a request that was dropped has none.
    let (event_us, ending) = ending.unzip();
    let ending = ending.unwrap_or(match outcome {
        Some("success") => Ending::Completed,
        Some("cancelled") => Ending::Cancelled,
        _ => Ending::Failed,
    });
    Ok(Some(RouteSpan {
        trace_id,
        started_us,
        ended_us: event_us.flatten().or(ended_us),
        done: RouteDone {
            request_id: Cow::Owned(request_id.to_owned()),
            http_id: None,
            worker: Worker::new(id, dp_rank),
            overlap_blocks,
            phase,
            ending,
            outcome: outcome
                .filter(|outcome| outcome.len() <= MAX_OUTCOME_BYTES)
                .map(|outcome| Cow::Owned(outcome.to_owned())),
        },
    }))
}

/// How and when a request ended, if an event of its span says it.
fn ending_of(event: &[u8]) -> Result<Option<(Option<i64>, Ending)>, Fault> {
    let (mut at_us, mut ending) = (None, None);
    for field in Fields::of(event) {
        match field? {
            (1, Value::Fixed64(at)) => at_us = micros(at),
            (2, Value::Bytes(b"route request completed")) => ending = Some(Ending::Completed),
            (2, Value::Bytes(b"route request cancelled")) => ending = Some(Ending::Cancelled),
            (2, Value::Bytes(b"route request failed")) => ending = Some(Ending::Failed),
            _ => {}
        }
    }
    Ok(ending.map(|ending| (at_us, ending)))
}

/// Microseconds of nanoseconds; 0 is an unknown time.
fn micros(nanos: u64) -> Option<i64> {
    i64::try_from(nanos / 1_000).ok().filter(|&us| us > 0)
}

/// The digits of a trace's id. `None`: it is none, or all zero, which is invalid.
fn hexadecimal(id: &[u8]) -> Option<String> {
    let id = u128::from_be_bytes(id.try_into().ok()?);
    (id != 0).then(|| format!("{id:032x}"))
}

fn text(value: AttributeValue<'_>) -> Result<&str, Fault> {
    match value {
        AttributeValue::Text(bytes) => std::str::from_utf8(bytes)
            .map_err(|error| Fault::new(Reason::Malformed, "expected text in UTF-8", error.valid_up_to())),
        AttributeValue::Integer(_) => Err(Fault::new(Reason::WrongType, "expected text in an attribute", 0)),
    }
}

/// A number, which Dynamo writes as text; `None`: the empty text of a field that was not filled.
fn integer(value: AttributeValue<'_>) -> Result<Option<u64>, Fault> {
    match value {
        AttributeValue::Integer(integer) => Ok(Some(integer)),
        AttributeValue::Text(b"") => Ok(None),
        AttributeValue::Text(_) => {
            let parsed = text(value)?.parse();
            parsed
                .map(Some)
                .map_err(|_| Fault::new(Reason::WrongType, "expected an integer in an attribute", 0))
        }
    }
}
