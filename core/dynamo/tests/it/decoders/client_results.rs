//! What aiperf measured of requests, as 0.13.0 wrote it, and what damaged or other records do.

use proptest::prelude::*;
use radixscope_dynamo::client_result::decode;
use radixscope_dynamo::error::Reason;
use radixscope_dynamo::log_line;
use radixscope_model::id::Millis;
use radixscope_model::record::{ClientMeasured, Outcome};

const RECORDED: &str = include_str!("../../../../../tests/fixtures/aiperf/0.13.0/profile_export.jsonl");
const LOG: &str = include_str!("../../../../../tests/fixtures/aiperf/0.13.0/frontend.log");

fn refused(line: &str) -> (Reason, String) {
    let error = decode(line.as_bytes()).expect_err(line);
    (error.reason, error.detail)
}

#[test]
fn recorded_results_say() {
    let first = decode(RECORDED.lines().next().unwrap().as_bytes()).unwrap();
    assert_eq!(first.x_request_id.as_deref(), Some("8f0a6e03-3f30-4d8b-98bc-4262136832c8"));
    let expected = ClientMeasured {
        sent_ms: Millis(1_795_762_399_366),
        ended_ms: Millis(1_795_762_399_529),
        ttft_us: Some(49_127),
        itl_us: Some(4_667),
        duration_us: Some(161_125),
        outcome: Outcome::Success,
        status: None,
        output_tokens: Some(25),
    };
    assert_eq!(first.measured, expected);
    let failed = decode(RECORDED.lines().next_back().unwrap().as_bytes()).unwrap().measured;
    assert_eq!((failed.outcome, failed.status), (Outcome::Failed, Some(404)));
    assert_eq!((failed.ttft_us, failed.itl_us, failed.duration_us), (None, None, None), "unknown, not 0");
}

#[test]
fn what_is_no_record_is_refused_in_words() {
    let (reason, text) = refused(r#"{"schema_version":"2.0","request":{"id":"a"}}"#);
    assert_eq!(reason, Reason::UnknownKind);
    assert!(text.contains("profile_export.jsonl"), "{text}");
    let with = |ttft: &str| {
        format!(
            r#"{{"metadata":{{"request_start_ns":1,"request_end_ns":2}},"metrics":{{"time_to_first_token":{ttft}}}}}"#
        )
    };
    let (reason, text) = refused(&with(r#"{"value":1,"unit":"tokens"}"#));
    assert_eq!(reason, Reason::WrongType);
    assert!(text.contains("time_to_first_token") && text.contains("unit"), "{text}");
    assert_eq!(refused(&with(r#"{"value":-1,"unit":"ms"}"#)).0, Reason::WrongType);
    assert_eq!(refused(&with(r#"{"value":1e300,"unit":"ms"}"#)).0, Reason::WrongType);
    assert_eq!(refused(&with(r#"{"value":"1","unit":"ms"}"#)).0, Reason::WrongType);
    assert_eq!(refused(r#"{"metadata":{},"metrics":{}}"#).0, Reason::MissingField);
    let seconds = with(r#"{"value":0.25,"unit":"sec"}"#);
    assert_eq!(decode(seconds.as_bytes()).unwrap().measured.ttft_us, Some(250_000));
}

#[test]
fn a_cut_line_is_truncated() {
    for line in RECORDED.lines() {
        for end in 1..line.len() {
            assert_eq!(refused(&line[..end]).0, Reason::Truncated, "{end}");
        }
    }
}

#[test]
fn the_frontend_s_log_has_the_id_that_the_client_sent() {
    let ids: Vec<_> = RECORDED.lines().take(3).map(|line| decode(line.as_bytes()).unwrap()).collect();
    for id in ids.iter().map(|of| of.x_request_id.as_deref()) {
        let named = LOG.lines().filter_map(|line| log_line::decode(line.as_bytes()).unwrap());
        let of_request = named.filter(|record| record.client_id.as_deref() == id);
        let ids: Vec<_> =
            of_request.filter_map(|record| Some(record.event.request_ids().0?.to_owned())).collect();
        assert!(ids.len() >= 3 && ids.windows(2).all(|pair| pair[0] == pair[1]), "{id:?}: {ids:?}");
    }
}

#[test]
fn a_client_id_of_json_is_read_and_one_that_is_too_long_is_not() {
    let with = |id: &str| {
        format!(
            r#"{{"time":"2026-11-20T18:19:41.618457Z","level":"INFO","target":"dynamo_llm::http::service::metrics","message":"request received","request_id":"r","model":"m","x_request_id":"{id}"}}"#
        )
    };
    let id_of = |line: String| {
        let record = log_line::decode(line.as_bytes()).unwrap().map(log_line::LogRecord::into_owned);
        record.expect("a line about routing").client_id.map(String::from)
    };
    assert_eq!(id_of(with("c-1")).as_deref(), Some("c-1"));
    assert_eq!(id_of(with(&"x".repeat(129))), None);
}

proptest! {
    #[test]
    fn no_line_panics(line in any::<Vec<u8>>()) {
        let _ = decode(&line);
    }
}
