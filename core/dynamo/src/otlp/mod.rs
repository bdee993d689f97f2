//! OpenTelemetry's protocol (OTLP) in Protocol Buffers: which of the records of one request are Dynamo's request traces and the spans of
//! routed requests. A collector sends everything that it has, so all others are counted without being opened, and nothing is
//! allocated for them: decoded whole, two bytes of an empty record would take some two hundred of memory.
//!
//! Dynamo's own form, in 1.6.1 and 1.7.0.dev20261026: with `otel` in `DYN_REQUEST_TRACE_SINKS` a request trace is a log record of the scope
//! `dynamo.request_trace`, its JSON the attribute `payload`. The span of a routed request is `kv_router.route_request`.

mod route_span;
mod wire;

use crate::error::{DecodeError, Reason};
use crate::wire::Fault;
pub use route_span::RouteSpan;
use wire::{Fields, Value};

/// The scope of request traces.
const TRACE_SCOPE: &[u8] = b"dynamo.request_trace";
/// The attribute with a trace's JSON.
const PAYLOAD: &[u8] = b"payload";
/// The name of the span of a routed request.
const ROUTE_SPAN: &[u8] = b"kv_router.route_request";

/// Most records that are read of one request. Exporters send 512 by default, collectors 8,192.
pub const MAX_READ: usize = 65_536;

/// What a request carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Signal {
    /// `ExportLogsServiceRequest`
    Logs,
    /// `ExportTraceServiceRequest`
    Traces,
    /// `ExportMetricsServiceRequest`, of which nothing is read.
    Metrics,
}

impl Signal {
    /// OpenTelemetry's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Logs => "logs",
            Self::Traces => "traces",
            Self::Metrics => "metrics",
        }
    }
}

/// What is in a request.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Export<'a> {
    /// JSON of request traces, see [`crate::trace::decode`].
    pub traces: Vec<&'a [u8]>,
    /// Routed requests.
    pub routes: Vec<RouteSpan>,
    /// Records of other kinds.
    pub not_read: u64,
    /// Records of these kinds that were not understood, or beyond [`MAX_READ`].
    pub refused: u64,
    /// What is wrong with the first of them.
    pub fault: Option<DecodeError>,
}

/// Reads the body of a request. The three signals have the same form: resources, their scopes, and records.
///
/// # Errors
/// The bytes are no such request. Of a faulty request nothing is read.
pub fn read(signal: Signal, body: &[u8]) -> Result<Export<'_>, DecodeError> {
    let mut export = Export::default();
    for resource in Fields::of(body).of_number(1) {
        for scope in Fields::of(resource.map_err(described)?).of_number(2) {
            export.scope(signal, scope.map_err(described)?).map_err(described)?;
        }
    }
    Ok(export)
}

impl<'a> Export<'a> {
    fn scope(&mut self, signal: Signal, records: &'a [u8]) -> Result<(), Fault> {
        let has_traces = signal == Signal::Logs && scope_name(records)? == TRACE_SCOPE;
        for record in Fields::of(records).of_number(2) {
            let record = record?;
            match signal {
                Signal::Logs if has_traces => match payload(record)? {
                    Some(json) if self.has_room() => self.traces.push(json),
                    Some(_) => self.refuse(too_many()),
                    None => self.refuse(Fault::missing("payload", 0)),
                },
                Signal::Traces if span_name(record)? == ROUTE_SPAN => match route_span::decode(record) {
                    Ok(Some(span)) if self.has_room() => self.routes.push(span),
                    Ok(Some(_)) => self.refuse(too_many()),
                    // It names no worker: none was chosen.
                    Ok(None) => self.not_read += 1,
                    Err(fault) => self.refuse(fault),
                },
                Signal::Logs | Signal::Traces | Signal::Metrics => self.not_read += 1,
            }
        }
        Ok(())
    }

    fn has_room(&self) -> bool {
        self.traces.len() + self.routes.len() < MAX_READ
    }

    fn refuse(&mut self, fault: Fault) {
        self.refused += 1;
        self.fault.get_or_insert_with(|| described(fault));
    }
}

fn too_many() -> Fault {
    Fault::new(Reason::TooLarge, "expected at most 65,536 records to read in one request", 0)
}

fn described(fault: Fault) -> DecodeError {
    fault.into_error("OTLP")
}

/// The name of the scope of records; it may follow them.
fn scope_name(records: &[u8]) -> Result<&[u8], Fault> {
    let mut name: &[u8] = b"";
    for scope in Fields::of(records).of_number(1) {
        for found in Fields::of(scope?).of_number(1) {
            name = found?;
        }
    }
    Ok(name)
}

fn span_name(span: &[u8]) -> Result<&[u8], Fault> {
    Fields::of(span).of_number(5).next().unwrap_or(Ok(b""))
}

/// The JSON of a request trace.
fn payload(record: &[u8]) -> Result<Option<&[u8]>, Fault> {
    for attribute in Fields::of(record).of_number(6) {
        if let (PAYLOAD, Some(AttributeValue::Text(json))) = self::attribute(attribute?)? {
            return Ok(Some(json));
        }
    }
    Ok(None)
}

/// The value of an attribute, of the kinds that Dynamo uses for what is read.
#[derive(Clone, Copy)]
enum AttributeValue<'a> {
    Text(&'a [u8]),
    Integer(u64),
}

/// A `KeyValue`.
fn attribute(bytes: &[u8]) -> Result<(&[u8], Option<AttributeValue<'_>>), Fault> {
    let (mut key, mut value): (&[u8], _) = (b"", None);
    for field in Fields::of(bytes) {
        match field? {
            (1, Value::Bytes(name)) => key = name,
            (2, Value::Bytes(any)) => {
                for field in Fields::of(any) {
                    match field? {
                        (1, Value::Bytes(text)) => value = Some(AttributeValue::Text(text)),
                        (3, Value::Varint(integer)) => value = Some(AttributeValue::Integer(integer)),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Ok((key, value))
}

/// The body of a response to a request of which some records were refused, and why: an `Export…ServiceResponse`.
pub fn partial_success(refused: u64, why: &str) -> Vec<u8> {
    let (mut partial, mut response) = (Vec::new(), Vec::new());
    wire::put_number(1, refused, &mut partial);
    wire::put_text(2, why, &mut partial);
    wire::put_bytes(1, &partial, &mut response);
    response
}

/// The body of a response to a request that failed: a `google.rpc.Status`.
pub fn status(code: u32, message: &str) -> Vec<u8> {
    let mut status = Vec::new();
    wire::put_number(1, code.into(), &mut status);
    wire::put_text(2, message, &mut status);
    status
}

#[cfg(test)]
mod tests;
