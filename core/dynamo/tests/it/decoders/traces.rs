//! Records of finished requests (reference §3.5): what a recorded one says, and what damaged ones do.

use proptest::prelude::*;
use radixscope_dynamo::active_sequence::MAX_TOKEN_SEQUENCE;
use radixscope_dynamo::error::Reason;
use radixscope_dynamo::trace::{MAX_CANDIDATES, RequestTrace, TraceRecord, TracedSelection, decode};
use radixscope_model::id::Worker;
use serde_json::{Value, json};

const REAL: &str = r#"{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":1795198083929,"request":{"request_id":"b3887018-0c7f-4f94-b117-bfccec1b854a","input_tokens":122,"output_tokens":8,"cached_tokens":112,"request_received_ms":1795198083917,"prefill_wait_time_ms":1.045258,"prefill_time_ms":2.563967,"ttft_ms":3.609225,"total_time_ms":12.360378,"avg_itl_ms":1.2501647142857142,"kv_hit_rate":0.875,"queue_depth":0,"worker":{"prefill_worker_id":9231963812737957267,"prefill_dp_rank":0,"decode_worker_id":9231963812737957267,"decode_dp_rank":0},"replay":{"trace_block_size":16,"input_length":122,"input_sequence_hashes":[7585370176810793920,5214045902298629111,11251714421823650919,2657608401742381948,17722738961137020821,17751910831491268224,938045547881740595,7957427564462484134]}}}"#;

fn error(body: &str) -> (Reason, String) {
    let error = decode(body.as_bytes()).expect_err(body);
    (error.reason, error.detail)
}

fn ended(body: &str) -> RequestTrace<'_> {
    match decode(body.as_bytes()).unwrap() {
        Some(TraceRecord::Ended(trace)) => *trace,
        other => panic!("{other:?}"),
    }
}

/// As 1.7.0.dev20261026 published it.
const SELECTION: &str = r#"{"schema":"dynamo.request.trace.v1","event_type":"router_selection","event_time_unix_ms":1795719906508,"event_source":"dynamo","selection":{"request_id":"0f5dd476-6efc-42bb-accb-5631b294e09b","worker_type":"decode","pinned":false,"candidate_count":3,"candidates":[[7668682494822155811,0,486.6875],[7668682494822155782,1,486.6875],[7668682494822155797,0,727.6875]]}}"#;

#[test]
fn a_recorded_choice_says_what_each_candidate_cost() {
    let expected = TracedSelection {
        event_time_ms: Some(1_795_719_906_508),
        request_id: "0f5dd476-6efc-42bb-accb-5631b294e09b".into(),
        is_pinned: false,
        candidate_count: 3,
        candidates: vec![
            (Worker::new(7_668_682_494_822_155_811, 0), 486.6875),
            (Worker::new(7_668_682_494_822_155_782, 1), 486.6875),
            (Worker::new(7_668_682_494_822_155_797, 0), 727.6875),
        ],
    };
    assert_eq!(decode(SELECTION.as_bytes()), Ok(Some(TraceRecord::Selected(expected))));
    for end in 0..SELECTION.len() {
        assert_eq!(error(&SELECTION[..end]).0, Reason::Truncated, "{end}");
    }
    let with = |candidates: &str| {
        format!(
            r#"{{"schema":"dynamo.request.trace.v1","event_type":"router_selection","selection":{{"request_id":"a","candidates":[{candidates}]}}}}"#
        )
    };
    assert_eq!(error(&with("[1,0]")).0, Reason::WrongType);
    assert_eq!(error(&with("[1,0,1e999]")).0, Reason::WrongType);
    assert_eq!(error(&with("[-1,0,2.5]")).0, Reason::WrongType);
    let many = vec!["[1,0,2.5]"; MAX_CANDIDATES + 1].join(",");
    assert_eq!(error(&with(&many)).0, Reason::TooLarge);
    let missing = r#"{"schema":"dynamo.request.trace.v1","event_type":"router_selection"}"#;
    assert_eq!(error(missing).0, Reason::MissingField);
}

#[test]
fn a_recorded_trace_says() {
    let worker = Some(Worker::new(9_231_963_812_737_957_267, 0));
    let expected = RequestTrace {
        event_time_ms: Some(1_795_198_083_929),
        request_id: "b3887018-0c7f-4f94-b117-bfccec1b854a".into(),
        input_tokens: Some(122),
        output_tokens: Some(8),
        cached_tokens: Some(112),
        request_received_ms: Some(1_795_198_083_917),
        prefill_wait_time_ms: Some(1.045258),
        prefill_time_ms: Some(2.563967),
        ttft_ms: Some(3.609225),
        total_time_ms: Some(12.360378),
        avg_itl_ms: Some(1.2501647142857142),
        kv_hit_rate: Some(0.875),
        queue_depth: Some(0),
        prefill_worker: worker,
        decode_worker: worker,
        trace_block_size_tokens: Some(16),
        input_length_tokens: Some(122),
        input_sequence_hashes: Some(vec![
            7585370176810793920,
            5214045902298629111,
            11251714421823650919,
            2657608401742381948,
            17722738961137020821,
            17751910831491268224,
            938045547881740595,
            7957427564462484134,
        ]),
        ..RequestTrace::default()
    };
    assert_eq!(ended(REAL), expected);
}

#[test]
fn only_the_id_is_needed_and_fields_come_in_any_order() {
    let body = r#"{"request":{"model":null,"request_id":"a","x_request_id":"caf\u00e9","new":[{}]},"event_type":"request_end","schema":"dynamo.request.trace.v1","trace":{"x":1}}"#;
    let trace = ended(body);
    let expected =
        RequestTrace {
            request_id: "a".into(), x_request_id: Some("café".into()), ..RequestTrace::default()
        };
    assert_eq!(trace, expected);
}

#[test]
fn other_records_say_nothing_whatever_is_in_them() {
    for kind in ["request_payload", "tool"] {
        let body = format!(r#"{{"schema":"dynamo.request.trace.v1","event_type":"{kind}","request":7}}"#);
        assert_eq!(decode(body.as_bytes()), Ok(None));
    }
}

#[test]
fn faults_of_traces_read_well() {
    let in_request = |fields: &str| {
        error(&format!(
            r#"{{"schema":"dynamo.request.trace.v1","event_type":"request_end","request":{fields}}}"#
        ))
    };
    let (reason, detail) = in_request(r#"{"input_tokens":1}"#);
    assert_eq!(reason, Reason::MissingField);
    assert_eq!(detail, "dynamo.request_trace.v1: request_id: is missing (byte 91)");
    assert_eq!(in_request(r#"{"request_id":"a","ttft_ms":"1"}"#).0, Reason::WrongType);
    assert_eq!(in_request(r#"{"request_id":"a","ttft_ms":1e999}"#).0, Reason::WrongType);
    assert_eq!(in_request(r#"{"request_id":"a","ttft_ms":NaN}"#).0, Reason::Malformed);
    assert_eq!(in_request(r#"{"request_id":"a","request_id":"b"}"#).0, Reason::Malformed);
    assert_eq!(
        in_request(r#"{"request_id":"a","replay":{"input_sequence_hashes":[-1.5]}}"#).0,
        Reason::WrongType
    );
    assert_eq!(
        error(r#"{"schema":"dynamo.request.trace.v2","event_type":"request_end"}"#).0,
        Reason::UnknownKind
    );
    assert_eq!(error(r#"{"event_type":"request_end"}"#).0, Reason::MissingField);
    assert_eq!(error(r#"{"event":{"event":{"schema":"dynamo.request.trace.v1"}}}"#).0, Reason::MissingField);
    assert_eq!(error("[]").0, Reason::WrongType);
}

#[test]
fn every_truncation_of_a_trace_is_truncated() {
    for end in 0..REAL.len() {
        assert_eq!(error(&REAL[..end]).0, Reason::Truncated, "{end}");
    }
}

#[test]
fn more_hashes_than_a_prompt_of_a_million_blocks_are_refused() {
    let with = |count: usize| {
        let hashes = vec!["7"; count].join(",");
        format!(
            r#"{{"schema":"dynamo.request.trace.v1","event_type":"request_end","request":{{"request_id":"a","replay":{{"input_sequence_hashes":[{hashes}]}}}}}}"#
        )
    };
    let most = with(MAX_TOKEN_SEQUENCE);
    assert_eq!(ended(&most).input_sequence_hashes.unwrap().len(), MAX_TOKEN_SEQUENCE);
    assert_eq!(error(&with(MAX_TOKEN_SEQUENCE + 1)).0, Reason::TooLarge);
}

proptest! {
    #[test]
    fn numbers_of_a_trace_are_exact(tokens in any::<u64>(), ms in 0.0..1e9_f64, hashes in prop::collection::vec(any::<u64>(), 0..9)) {
        let mut record: Value = serde_json::from_str(REAL).unwrap();
        record["request"]["input_tokens"] = json!(tokens);
        record["request"]["ttft_ms"] = json!(ms);
        record["request"]["replay"]["input_sequence_hashes"] = json!(hashes);
        let body = record.to_string();
        let trace = ended(&body);
        prop_assert_eq!(trace.input_tokens, Some(tokens));
        prop_assert_eq!(trace.ttft_ms, Some(ms));
        prop_assert_eq!(trace.input_sequence_hashes, Some(hashes));
    }

    #[test]
    fn a_damaged_trace_never_panics(damage in prop::collection::vec((0..REAL.len(), any::<u8>()), 1..4)) {
        let mut body = REAL.as_bytes().to_vec();
        for (at, byte) in damage {
            body[at] = byte;
        }
        let _ = decode(&body);
    }
}

/// A line of a file has the record under `event`.
#[test]
fn a_line_of_a_file_is_the_record_that_is_in_it() {
    let line = format!(r#"{{"timestamp":4746,"event":{REAL}}}"#);
    assert_eq!(decode(line.as_bytes()), decode(REAL.as_bytes()));
}
