//! Bodies that Dynamo's exporter sent, and what OpenTelemetry's own library makes of records.

use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsServiceRequest, ExportLogsServiceResponse};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, span::Event};
use proptest::prelude::*;
use prost::Message as _;
use radixscope_model::id::Worker;
use radixscope_model::record::Role;

use super::*;
use crate::log_line::{Ending, LogEvent};
use crate::trace::{self, TraceRecord};

const TRACE_161: &[u8] = include_bytes!("../../../../tests/fixtures/otlp/1.6.1/request-trace.pb");
const SPAN_161: &[u8] = include_bytes!("../../../../tests/fixtures/otlp/1.6.1/route-span.pb");
const OTHER_161: &[u8] = include_bytes!("../../../../tests/fixtures/otlp/1.6.1/other-log.pb");
const TRACE_170: &[u8] = include_bytes!("../../../../tests/fixtures/otlp/1.7.0.dev20261026/request-trace.pb");
const SPAN_170: &[u8] = include_bytes!("../../../../tests/fixtures/otlp/1.7.0.dev20261026/route-span.pb");

#[test]
fn a_request_trace_of_dynamo_is_the_json_that_its_files_have() {
    for (body, id) in [
        (TRACE_161, "1a06484d-75fe-450f-8715-fdaba508e0fa"),
        (TRACE_170, "42324763-69f6-401e-a595-e8e6c7c49342"),
    ] {
        let export = read(Signal::Logs, body).unwrap();
        assert_eq!((export.traces.len(), export.not_read, export.refused), (1, 0, 0));
        let Some(TraceRecord::Ended(trace)) = trace::decode(export.traces[0]).unwrap() else {
            panic!("an end")
        };
        assert_eq!((&*trace.request_id, trace.input_tokens, trace.output_tokens), (id, Some(3795), Some(34)));
        assert_eq!(trace.input_sequence_hashes.map(|hashes| hashes.len()), Some(238));
    }
}

#[test]
fn a_span_of_dynamo_says_trace_worker_and_when_the_request_was_routed() {
    let export = read(Signal::Traces, SPAN_161).unwrap();
    let [span] = export.routes.as_slice() else { panic!("one span: {export:?}") };
    assert_eq!(span.trace_id.as_deref(), Some("ffebd37af653197ab67f40ca44fdc9fb"));
    assert_eq!(span.started_us, Some(1_795_745_996_995_829));
    // Of the event that ends it, not of the span.
    assert_eq!(span.ended_us, Some(1_795_745_997_515_839));
    let done = &span.done;
    assert_eq!(done.request_id, "1a06484d-75fe-450f-8715-fdaba508e0fa");
    assert_eq!(done.worker, Worker::new(7_668_682_501_501_432_326, 0));
    assert_eq!(
        (done.overlap_blocks, done.phase, done.ending),
        (Some(0), Some(Role::Aggregated), Ending::Completed)
    );
    assert!(matches!(span.line().event, LogEvent::RouteDone(_)));
    // Those of look-up and selection, and the HTTP request around them.
    assert!(export.not_read > 0 && export.refused == 0);
    assert_eq!(read(Signal::Traces, SPAN_170).unwrap().routes.len(), 1);
}

#[test]
fn other_records_are_counted_and_not_opened() {
    let export = read(Signal::Logs, OTHER_161).unwrap();
    assert_eq!(export, Export { not_read: 1, ..Export::default() });
    // Spans as metrics: of the same form, and none of them is looked into.
    let spans = ExportTraceServiceRequest::decode(SPAN_161).unwrap();
    let spans = spans.resource_spans.iter().flat_map(|of| &of.scope_spans).map(|of| of.spans.len() as u64);
    assert_eq!(read(Signal::Metrics, SPAN_161).unwrap().not_read, spans.sum::<u64>());
}

#[test]
fn what_is_cut_off_is_refused_whole() {
    for len in 1..TRACE_161.len() {
        assert!(read(Signal::Logs, &TRACE_161[..len]).is_err(), "{len}");
    }
    for len in 1..SPAN_161.len() {
        assert!(read(Signal::Traces, &SPAN_161[..len]).is_err(), "{len}");
    }
}

#[test]
fn a_group_and_a_length_beyond_the_end_are_faults() {
    for body in
        [&[0x0b, 0x0c][..], &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], &[0xff; 12]]
    {
        assert!(read(Signal::Logs, body).is_err(), "{body:?}");
    }
}

#[test]
fn a_record_without_its_payload_is_refused_beside_others() {
    let whole = log(vec![pair("payload", text("{}"))]);
    let export = logs("dynamo.request_trace", vec![log(vec![pair("schema", text("x"))]), whole]);
    let read = read(Signal::Logs, &export).unwrap();
    assert_eq!((read.traces, read.refused), (vec![&b"{}"[..]], 1));
    assert_eq!(read.fault.unwrap().detail, "OTLP: payload: is missing (byte 0)");
}

#[test]
fn no_more_records_than_the_limit_are_read_of_a_request() {
    let export = logs("dynamo.request_trace", vec![log(vec![pair("payload", text(""))]); MAX_READ + 3]);
    let read = read(Signal::Logs, &export).unwrap();
    assert_eq!((read.traces.len(), read.refused), (MAX_READ, 3));
}

#[test]
fn records_that_are_not_read_allocate_nothing() {
    let body = logs("a.scope", vec![LogRecord::default(); 100_000]);
    let used = allocation_counter::measure(|| {
        assert_eq!(read(Signal::Logs, &body).unwrap().not_read, 100_000);
    });
    assert_eq!(used.count_total, 0);
}

#[test]
fn responses_are_what_opentelemetry_reads() {
    let response = ExportLogsServiceResponse::decode(&*partial_success(300, "why")).unwrap();
    let partial = response.partial_success.unwrap();
    assert_eq!((partial.rejected_log_records, &*partial.error_message), (300, "why"));
}

#[test]
fn a_span_that_names_no_worker_is_not_read_and_one_with_a_wrong_number_is_refused() {
    let route = |worker: Any| Span {
        name: "kv_router.route_request".to_owned(),
        attributes: vec![pair("request_id", text("r")), pair("worker_id", worker)],
        ..Span::default()
    };
    for (worker, read_as) in [
        (text("7"), (1, 0, 0)),
        (Any::IntValue(7), (1, 0, 0)),
        (text(""), (0, 1, 0)),
        (Any::BoolValue(true), (0, 1, 0)),
        (text("seven"), (0, 0, 1)),
    ] {
        let export = spans(vec![route(worker)]);
        let export = read(Signal::Traces, &export).unwrap();
        assert_eq!((export.routes.len(), export.not_read, export.refused), read_as, "{:?}", export.fault);
    }
}

#[test]
fn a_span_holds_no_long_text() {
    let of = |id: &str, outcome: &str| Span {
        name: "kv_router.route_request".to_owned(),
        attributes: vec![
            pair("request_id", text(id)),
            pair("worker_id", text("7")),
            pair("request.outcome", text(outcome)),
        ],
        ..Span::default()
    };
    let body = spans(vec![of("r", &"x".repeat(1_000)), of(&"r".repeat(513), "success")]);
    let export = read(Signal::Traces, &body).unwrap();
    assert_eq!((export.routes.len(), export.refused), (1, 1));
    assert_eq!((&export.routes[0].done.outcome, export.routes[0].done.ending), (&None, Ending::Failed));
    assert_eq!(export.fault.unwrap().reason, Reason::TooLarge);
}

proptest! {
    #[test]
    fn whatever_opentelemetry_writes_is_read_the_same(
        payloads in prop::collection::vec(prop::option::of(".{0,40}"), 0..8),
        scope in prop::sample::select(vec!["dynamo.request_trace", "other", ""]),
        time in any::<u64>(),
        nested in any::<bool>(),
    ) {
        let record = |payload: &Option<String>| {
            let mut attributes = vec![pair("payload_complete", Any::BoolValue(true))];
            if nested {
                let values = vec![AnyValue { value: Some(text("inner")) }; 3];
                attributes.push(pair("list", Any::ArrayValue(ArrayValue { values })));
            }
            attributes.extend(payload.as_deref().map(|json| pair("payload", text(json))));
            LogRecord { time_unix_nano: time, body: Some(AnyValue { value: Some(text("request_end")) }), ..log(attributes) }
        };
        let body = logs(scope, payloads.iter().map(record).collect());
        let export = read(Signal::Logs, &body).unwrap();
        let is_read = scope == "dynamo.request_trace";
        let expected: Vec<&[u8]> =
            payloads.iter().flatten().map(|json| json.as_bytes()).filter(|_| is_read).collect();
        prop_assert_eq!(export.traces, expected);
        let others = if is_read { 0 } else { payloads.len() as u64 };
        prop_assert_eq!(export.not_read, others);
    }

    #[test]
    fn whatever_span_opentelemetry_writes_is_read_the_same(
        id in any::<u128>(), worker in any::<u64>(), rank in any::<u32>(), start in 1_000..u64::MAX / 2, overlap in any::<u64>(),
    ) {
        let span = Span {
            trace_id: id.to_be_bytes().to_vec(),
            name: "kv_router.route_request".to_owned(),
            start_time_unix_nano: start,
            attributes: vec![
                pair("request_id", text("r")),
                pair("worker_id", text(&worker.to_string())),
                pair("dp_rank", text(&rank.to_string())),
                pair("overlap_blocks", text(&overlap.to_string())),
            ],
            events: vec![Event { time_unix_nano: start + 5_000, name: "route request cancelled".to_owned(), ..Event::default() }],
            ..Span::default()
        };
        let body = spans(vec![span, Span::default()]);
        let export = read(Signal::Traces, &body).unwrap();
        prop_assert_eq!(export.not_read, 1);
        let [span] = export.routes.as_slice() else { panic!("one span") };
        prop_assert_eq!(span.trace_id.clone(), (id != 0).then(|| format!("{id:032x}")));
        prop_assert_eq!(span.done.worker, Worker::new(worker, rank));
        prop_assert_eq!(span.done.overlap_blocks, Some(overlap));
        prop_assert_eq!(span.started_us, Some((start / 1_000) as i64));
        prop_assert_eq!(span.ended_us, Some(((start + 5_000) / 1_000) as i64));
        prop_assert_eq!(span.done.ending, Ending::Cancelled);
    }
}

fn text(text: &str) -> Any {
    Any::StringValue(text.to_owned())
}

fn pair(key: &str, value: Any) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn log(attributes: Vec<KeyValue>) -> LogRecord {
    LogRecord { attributes, ..LogRecord::default() }
}

fn logs(scope: &str, log_records: Vec<LogRecord>) -> Vec<u8> {
    let scope = Some(InstrumentationScope { name: scope.to_owned(), ..InstrumentationScope::default() });
    let scope_logs = vec![ScopeLogs { scope, log_records, ..ScopeLogs::default() }];
    let resource_logs = vec![ResourceLogs { scope_logs, ..ResourceLogs::default() }];
    ExportLogsServiceRequest { resource_logs }.encode_to_vec()
}

fn spans(spans: Vec<Span>) -> Vec<u8> {
    let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
    let resource_spans = vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }];
    ExportTraceServiceRequest { resource_spans }.encode_to_vec()
}
