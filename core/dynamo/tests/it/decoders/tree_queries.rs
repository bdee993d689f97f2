//! Queries for a worker's blocks and their responses: recorded exchanges with 0.9.1 and 1.6.1 byte for byte, and answers
//! that were tampered with.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use expect_test::expect_file;
use radixscope_dynamo::error::Reason;
use radixscope_dynamo::kv_event::{KvData, KvEvents};
use radixscope_dynamo::request_plane::{
    Call, Codec, Control, MAX_HEADER_BYTES, PRELUDE_BYTES, PartSize, call_home, frame,
};
use radixscope_dynamo::tree_query::{TreeRequest, TreeResponse, decode_response};
use radixscope_model::id::Worker;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::decoders::shapes::both;
use crate::decoders::transcript;

const RECORDED: &str = include_str!("../../fixtures/tree_queries.jsonl");
const ASKED: Worker = Worker::new(7, 1);

#[derive(Deserialize)]
struct Exchange {
    name: String,
    /// `None`: over NATS.
    path: Option<String>,
    worker_id: u64,
    dp_rank: u32,
    start: Option<u64>,
    codec: String,
    frames: Vec<Frame>,
}

#[derive(Deserialize)]
struct Frame {
    what: String,
    p: String,
}

impl Exchange {
    fn codec(&self) -> Codec {
        if self.codec == "json" { Codec::Json } else { Codec::MsgPack }
    }

    fn worker(&self) -> Worker {
        Worker::new(self.worker_id, self.dp_rank)
    }

    fn bytes(&self, what: &str) -> Vec<Vec<u8>> {
        let frames = self.frames.iter().filter(|frame| frame.what == what);
        frames.map(|frame| BASE64_STANDARD.decode(&frame.p).unwrap()).collect()
    }
}

fn recorded() -> Vec<Exchange> {
    RECORDED.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Header and data of a part.
fn part(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (prelude, rest) = bytes.split_first_chunk::<PRELUDE_BYTES>().unwrap();
    let size = PartSize::read(prelude, 1 << 20).unwrap();
    assert_eq!(rest.len(), size.header + size.data);
    rest.split_at(size.header)
}

/// What a recorded request names.
fn named(request: &[u8]) -> (Value, Value) {
    let start = request.windows(6).position(|window| window == br#"{"id":"#).unwrap();
    let mut header = serde_json::Deserializer::from_slice(&request[start..]).into_iter::<Value>();
    let header = header.next().unwrap().unwrap();
    let info = header["connection_info"]["info"].as_str().unwrap();
    (header.clone(), serde_json::from_str(info).unwrap())
}

#[test]
fn calls_are_what_a_real_worker_took_byte_for_byte() {
    for exchange in recorded().iter().filter(|exchange| exchange.codec == "msgpack") {
        let request = exchange.bytes("request").remove(0);
        let (header, info) = named(&request);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (id, subject, callback) = (text(&header["id"]), text(&info["subject"]), text(&info["address"]));
        let call = Call { id: &id, subject: &subject, callback: &callback, codec: exchange.codec() };
        let question = TreeRequest { worker: exchange.worker(), start_event_id: exchange.start };
        let message = call.message(&question.encode(exchange.codec()));
        let sent = match &exchange.path {
            Some(path) => frame(path, &message).unwrap(),
            None => message,
        };
        assert_eq!(sent, request, "{}", exchange.name);
    }
}

#[test]
fn a_call_in_json_says_no_codec_and_all_that_later_versions_want() {
    let exchange = recorded().into_iter().find(|exchange| exchange.codec == "json").unwrap();
    let request = exchange.bytes("request").remove(0);
    let (header, info) = named(&request);
    let question = TreeRequest { worker: exchange.worker(), start_event_id: exchange.start };
    let body = question.encode(Codec::Json);
    let call = Call { id: "one \"1\"", subject: "two", callback: "[::1]:3", codec: Codec::Json };
    let (ours, our_info) = named(&call.message(&body));
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&ours), keys(&header));
    assert_eq!(keys(&our_info), keys(&info));
    assert_eq!((&ours["id"], &our_info["context"]), (&json!("one \"1\""), &json!("one \"1\"")));
    assert_eq!(
        serde_json::from_slice::<Value>(&body).unwrap(),
        json!({
            "worker_id": exchange.worker_id, "dp_rank": 0, "start_event_id": exchange.start,
            "end_event_id": null, "supports_tree_dump_failed": true, "kind": "recovery"
        })
    );
}

#[test]
fn recorded_responses_say() {
    let mut text = String::new();
    for exchange in recorded() {
        text.push_str(&format!("# {}\n", exchange.name));
        let handshake = exchange.bytes("handshake").remove(0);
        let (_, info) = named(&exchange.bytes("request")[0]);
        assert_eq!(call_home(part(&handshake).0).unwrap(), info["subject"].as_str().unwrap());
        let prologue = exchange.bytes("prologue").remove(0);
        assert_eq!(Control::decode(part(&prologue).0).unwrap(), Control::Prologue { error: None });
        let sentinel = exchange.bytes("control").remove(0);
        assert_eq!(Control::decode(part(&sentinel).0).unwrap(), Control::Sentinel);
        for data in exchange.bytes("data") {
            match decode_response(part(&data).1, exchange.codec(), exchange.worker()).unwrap() {
                Some(response) => write_response(&response, &mut text),
                None => text.push_str("the end\n"),
            }
        }
    }
    expect_file!["../../fixtures/tree_queries.txt"].assert_eq(&text);
}

fn write_response(response: &TreeResponse, text: &mut String) {
    match response {
        TreeResponse::TreeDump { events, last_event_id } => {
            text.push_str(&format!("a tree of {} events, last {last_event_id:?}\n", events.events.len()));
            transcript::kv_events(events, text);
        }
        TreeResponse::Events { events, last_event_id } => {
            text.push_str(&format!("{} events, last {last_event_id:?}\n", events.events.len()));
            transcript::kv_events(events, text);
        }
        other => text.push_str(&format!("{other:?}\n")),
    }
}

fn event(worker_id: u64, dp_rank: u32, hash: u64) -> Value {
    json!({
        "worker_id": worker_id,
        "event": {
            "event_id": 1, "dp_rank": dp_rank,
            "data": {"stored": {"parent_hash": null, "blocks": [{"block_hash": hash, "tokens_hash": 1}]}}
        }
    })
}

fn item(response: Value) -> String {
    json!({"data": response, "complete_final": false}).to_string()
}

/// What a response is read as, in both codecs alike.
fn read(item: &str) -> Result<Option<TreeResponse>, (Reason, String)> {
    let mut all = both(item).into_iter().map(|(body, format)| {
        let codec = if format == radixscope_dynamo::Format::Json { Codec::Json } else { Codec::MsgPack };
        decode_response(&body, codec, ASKED).map_err(|error| (error.reason, error.detail))
    });
    let first = all.next().unwrap();
    for other in all {
        match (&first, &other) {
            (Ok(first), Ok(other)) => assert_eq!(first, other, "{item}"),
            (first, other) => {
                assert_eq!(
                    first.as_ref().map_err(|error| error.0),
                    other.as_ref().map_err(|error| error.0),
                    "{item}"
                );
            }
        }
    }
    first
}

fn hashes(events: &KvEvents) -> Vec<u64> {
    events.blocks.iter().map(|block| block.block_hash.0).collect()
}

#[test]
fn trees_of_every_version_are_read() {
    let events = json!([event(7, 1, u64::MAX), {"worker_id": 7, "event": {"event_id": 9, "dp_rank": 1, "data": {"removed": {"block_hashes": [5]}}}}]);
    for (content, last) in [
        (events.clone(), None),
        (json!({"events": events, "last_event_id": 30}), Some(30)),
        (json!({"last_event_id": 30, "events": events, "reset_scope": "all"}), Some(30)),
        (json!({"events": events, "last_event_id": null, "reset_scope": null, "more": [1]}), None),
    ] {
        let Some(TreeResponse::TreeDump { events, last_event_id }) =
            read(&item(json!({"TreeDump": content}))).unwrap()
        else {
            panic!("no tree");
        };
        assert_eq!((hashes(&events), last_event_id), (vec![u64::MAX], last));
        assert!(matches!(events.events[1].data, KvData::Removed { .. }), "removals of a kept dump stay");
        let Some(TreeResponse::Events { last_event_id, .. }) =
            read(&item(json!({"Events": content}))).unwrap()
        else {
            panic!("no events");
        };
        assert_eq!(last_event_id, last);
    }
}

#[test]
fn a_tree_of_which_only_a_part_is_replaced_is_not_read() {
    let (reason, text) =
        read(&item(json!({"TreeDump": {"events": [], "last_event_id": 1, "reset_scope": {"rank": 1}}})))
            .unwrap_err();
    assert_eq!(reason, Reason::UnknownKind);
    assert!(text.contains("reset_scope"), "{text}");
}

#[test]
fn one_event_of_another_worker_or_rank_spoils_all() {
    for (worker, rank) in [(8, 1), (7, 0)] {
        for kind in ["TreeDump", "Events"] {
            let events = json!([event(7, 1, 1), event(worker, rank, 2)]);
            let (reason, text) = read(&item(json!({kind: events}))).unwrap_err();
            assert_eq!(reason, Reason::Malformed);
            assert!(
                text.contains(&format!("worker {worker} rank {rank}; worker 7 rank 1 was asked")),
                "{text}"
            );
        }
    }
}

#[test]
fn one_bad_event_spoils_all() {
    let bad = json!({"worker_id": 7, "event": {"event_id": 2, "dp_rank": 1, "data": {"stored": {"blocks": [{"block_hash": 1}]}}}});
    assert!(read(&item(json!({"TreeDump": [event(7, 1, 1), bad, event(7, 1, 3)]}))).is_err());
}

#[test]
fn refusals_are_read_and_the_right_rank_with_them() {
    let text = "WorkerKvQueryEngine::generate dp_rank mismatch: request.dp_rank=0 this.dp_rank=12";
    assert_eq!(
        read(&item(json!({"Error": text}))).unwrap(),
        Some(TreeResponse::Error { message: text.to_owned(), rank: Some(12) })
    );
    let other = read(&item(json!({"Error": "x".repeat(5_000)}))).unwrap();
    assert!(matches!(other, Some(TreeResponse::Error { message, rank: None }) if message.len() == 300));
    assert_eq!(
        read(&item(json!({"InvalidRange": {"start_id": 10, "end_id": 5}}))).unwrap(),
        Some(TreeResponse::InvalidRange)
    );
    assert_eq!(
        read(&item(json!({"TreeDumpFailed": {"last_event_id": 5, "message": "busy"}}))).unwrap(),
        Some(TreeResponse::TreeDumpFailed { message: "busy".to_owned() })
    );
    assert_eq!(
        read(&item(
            json!({"TooNew": {"requested_start": 9, "requested_end": null, "newest_available": u64::MAX}})
        ))
        .unwrap(),
        Some(TreeResponse::TooNew { newest_available: u64::MAX })
    );
}

#[test]
fn invalid_responses_are_rejected() {
    for (item, reason) in [
        ("{}", Reason::MissingField),
        (r#"{"data":null,"complete_final":false}"#, Reason::MissingField),
        (r#"{"data":{"Status":{}},"complete_final":false}"#, Reason::UnknownKind),
        (r#"{"data":"TreeDump","complete_final":false}"#, Reason::UnknownKind),
        (r#"{"data":{},"complete_final":false}"#, Reason::UnknownKind),
        (r#"{"data":{"TreeDump":{"last_event_id":1}},"complete_final":false}"#, Reason::MissingField),
        (r#"{"data":{"TreeDump":7},"complete_final":false}"#, Reason::WrongType),
        ("[]", Reason::WrongType),
    ] {
        assert_eq!(read(item).unwrap_err().0, reason, "{item}");
    }
    assert_eq!(read(r#"{"complete_final":true}"#).unwrap(), None);
}

#[test]
fn every_truncation_of_a_recorded_response_is_truncated() {
    for exchange in recorded() {
        for data in exchange.bytes("data").iter().filter(|data| data.len() < 8_000) {
            let data = part(data).1;
            for end in 0..data.len() {
                let error = decode_response(&data[..end], exchange.codec(), exchange.worker()).unwrap_err();
                assert_eq!(error.reason, Reason::Truncated, "{} cut at {end}: {error}", exchange.name);
            }
        }
    }
}

#[test]
fn sizes_are_believed_within_bounds_only() {
    let size = |header: u64, data: u64| {
        let mut prelude = [0; PRELUDE_BYTES];
        prelude[..8].copy_from_slice(&header.to_be_bytes());
        prelude[8..16].copy_from_slice(&data.to_be_bytes());
        PartSize::read(&prelude, 1_000).map_err(|error| error.reason)
    };
    assert_eq!(size(MAX_HEADER_BYTES as u64, 0), Ok(PartSize { header: MAX_HEADER_BYTES, data: 0 }));
    assert_eq!(size(0, 1_000), Ok(PartSize { header: 0, data: 1_000 }));
    assert_eq!(size(MAX_HEADER_BYTES as u64 + 1, 0), Err(Reason::TooLarge));
    assert_eq!(size(0, 1_001), Err(Reason::TooLarge));
    assert_eq!(size(u64::MAX, u64::MAX), Err(Reason::TooLarge));
    assert_eq!(size(1, 1), Err(Reason::Malformed));
}

#[test]
fn a_connection_is_known_by_its_subject_only_if_it_brings_a_response() {
    let header = |stream: &str| format!(r#"{{"subject":"s","stream_type":"{stream}"}}"#);
    assert_eq!(call_home(header("response").as_bytes()).unwrap(), "s");
    assert_eq!(call_home(header("request").as_bytes()).unwrap_err().reason, Reason::UnknownKind);
    assert_eq!(call_home(br#"{"stream_type":"response"}"#).unwrap_err().reason, Reason::MissingField);
    assert!(call_home(b"\"sentinel\"").is_err());
}

#[test]
fn a_prologue_may_hold_a_refusal() {
    let prologue = br#"{"error":"response plane mismatch","typed_error":{"code":1}}"#;
    assert_eq!(
        Control::decode(prologue).unwrap(),
        Control::Prologue { error: Some("response plane mismatch".to_owned()) }
    );
    assert_eq!(Control::decode(b"\"stop\"").unwrap(), Control::Other);
    assert!(Control::decode(b"{}").is_err());
}

#[test]
fn a_path_that_is_too_long_is_not_sent() {
    assert!(frame(&"x".repeat(70_000), b"").is_none());
}
