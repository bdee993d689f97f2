//! Damaged and malicious input: never a panic, the right reason, an error that names the place.

use expect_test::expect;
use proptest::prelude::*;
use radixscope_dynamo::discovery::{self, DiscoveryEntry, ModelCard};
use radixscope_dynamo::envelope::{Format, open};
use radixscope_dynamo::error::{DecodeError, Reason};
use radixscope_dynamo::kv_event::KvEvents;
use radixscope_dynamo::subject;
use radixscope_model::record::Topic;
use serde_json::{Value, json};

use crate::decoders::captures::assert_same_events;
use crate::decoders::shapes::{SHAPES, both};
use crate::decoders::{messages, plain, transcript};

const TOPICS: [Topic; 4] = [Topic::KvEvents, Topic::KvHitRate, Topic::KvMetrics, Topic::ActiveSequences];

fn errors(topic: Topic, body: &[u8], format: Format) -> Vec<DecodeError> {
    transcript::payload(topic, body, format, None).1
}

fn error(topic: Topic, body: &[u8], format: Format) -> String {
    let errors = errors(topic, body, format);
    assert_eq!(errors.len(), 1, "{errors:?}");
    format!("{}: {}", errors[0].reason.as_str(), errors[0])
}

#[test]
fn every_truncation_of_a_real_message_is_truncated() {
    for message in messages::real() {
        for end in 0..message.payload.len() {
            let (_, errors) = transcript::message(&message.subject, &message.payload[..end]);
            assert!(!errors.is_empty(), "{} cut at {end} decodes", message.subject);
            assert!(errors.iter().all(|error| error.reason == Reason::Truncated), "{end}: {errors:?}");
        }
    }
}

#[test]
fn every_truncation_of_every_shape_is_truncated() {
    for (topic, json) in SHAPES {
        for (body, format) in both(json) {
            for end in 0..body.len() {
                let errors = errors(*topic, &body[..end], format);
                assert!(!errors.is_empty(), "{json} cut at {end} decodes as {format:?}");
                assert!(errors.iter().all(|error| error.reason == Reason::Truncated), "{end}: {errors:?}");
            }
        }
    }
}

#[test]
fn every_truncation_of_a_model_card_is_truncated() {
    for value in messages::DISCOVERY.lines() {
        for end in 0..value.len() {
            let error = ModelCard::decode(&value.as_bytes()[..end]).unwrap_err();
            assert_eq!(error.reason, Reason::Truncated, "{error}");
        }
    }
}

const ENTRIES: [(&str, &str); 3] = [
    (
        "v1/instances/dynamo/backend/generate/7",
        r#"{"type":"Endpoint","component":"backend","endpoint":"generate","namespace":"dynamo","instance_id":7,"transport":{"tcp":"h:1/7/x"},"request_plane_codec":"msgpack"}"#,
    ),
    (
        "v1/event_channels/namespace/d/component/b/topic/kv-events/7",
        r#"{"type":"EventChannel","topic":"kv-events","instance_id":7,"transport":{"kind":"ZmqBroker","config":{"endpoint":"tcp://h:1","xpub_endpoints":["tcp://h:2"]}}}"#,
    ),
    (
        "v1/event_sources/namespace/d/component/b/topic/kv-events/7",
        r#"{"type":"EventSource","publisher_id":7,"topic":"kv-events","metadata":{"worker":{"worker_id":3,"dp_rank":1},"recovery_target":{"component":"b","endpoint":"worker_kv_query_source_7","namespace":"d","instance_id":3,"transport":{"tcp":"h:1/3/x"}}}}"#,
    ),
];

#[test]
fn every_truncation_of_an_entry_of_discovery_is_truncated_and_every_wrong_value_is_a_fault_or_nothing() {
    for (key, value) in ENTRIES {
        assert_ne!(discovery::decode(key, value.as_bytes()), Ok(DiscoveryEntry::Other), "{key}");
        assert_eq!(discovery::decode("v1/else/a", value.as_bytes()), Ok(DiscoveryEntry::Other), "not opened");
        for end in 0..value.len() {
            let error = discovery::decode(key, &value.as_bytes()[..end]).unwrap_err();
            assert_eq!(error.reason, Reason::Truncated, "{error}");
        }
        let entry: Value = serde_json::from_str(value).unwrap();
        let mut all = Vec::new();
        paths(&entry, "", &mut all);
        for path in all {
            for wrong in [json!(null), json!([]), json!({}), json!(-1), json!("x".repeat(2_000))] {
                let mut changed = entry.clone();
                *changed.pointer_mut(&path).unwrap() = wrong;
                // It must not panic; where a name is too long it is not kept.
                let _ = discovery::decode(key, changed.to_string().as_bytes());
            }
        }
        let long = value.replace("kv-events", &"x".repeat(2_000)).replace("backend", &"y".repeat(2_000));
        assert_eq!(discovery::decode(key, long.as_bytes()).unwrap_err().reason, Reason::TooLarge);
    }
}

/// All paths to values inside `value`, itself left out.
fn paths(value: &Value, base: &str, into: &mut Vec<String>) {
    let mut each = |key: String, inner: &Value| {
        let path = format!("{base}/{key}");
        into.push(path.clone());
        paths(inner, &path, into);
    };
    match value {
        Value::Array(list) => list.iter().enumerate().for_each(|(i, inner)| each(i.to_string(), inner)),
        Value::Object(map) => map.iter().for_each(|(key, inner)| each(key.clone(), inner)),
        _ => {}
    }
}

fn wrong_values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(1.5),
        json!(f64::MAX),
        json!(-1),
        json!(4_294_967_296_u64),
        json!("text"),
        json!([]),
        json!([[1]]),
        json!({}),
        json!({"a": {"b": 1}}),
    ]
}

#[test]
fn a_wrong_type_at_any_field_is_reported_with_topic_and_field() {
    for (topic, json) in SHAPES {
        let good: Value = serde_json::from_str(json).unwrap();
        let mut places = Vec::new();
        paths(&good, "", &mut places);
        for place in places {
            for wrong in wrong_values() {
                let mut bad = good.clone();
                *bad.pointer_mut(&place).unwrap() = wrong;
                for (body, format) in both(&bad.to_string()) {
                    for error in errors(*topic, &body, format) {
                        assert!(error.detail.starts_with(topic.as_str()), "{error}");
                        assert!(error.detail.contains("(byte "), "{error}");
                        assert!(!matches!(error.reason, Reason::Truncated | Reason::TooLarge), "{error}");
                        let name = place.rsplit('/').find(|part| part.parse::<usize>().is_err());
                        let Some(name) = name else { continue };
                        let known =
                            error.reason == Reason::WrongType && !matches!(name, "stored" | "removed");
                        assert!(!known || error.detail.contains(name), "{place}: {error}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_missing_field_is_named() {
    for (topic, json) in SHAPES {
        let good: Value = serde_json::from_str(json).unwrap();
        let mut places = Vec::new();
        paths(&good, "", &mut places);
        for place in places {
            let (parent, key) = place.rsplit_once('/').unwrap();
            let mut bad = good.clone();
            let Some(map) = bad.pointer_mut(parent).and_then(Value::as_object_mut) else { continue };
            map.remove(key);
            let needed = matches!(
                key,
                "worker_id"
                    | "event"
                    | "event_id"
                    | "data"
                    | "blocks"
                    | "block_hash"
                    | "tokens_hash"
                    | "block_hashes"
                    | "isl_blocks"
                    | "overlap_blocks"
                    | "request_id"
                    | "worker"
            );
            for (body, format) in both(&bad.to_string()) {
                let errors = errors(*topic, &body, format);
                assert_eq!(!errors.is_empty() && needed, needed, "{place} may be left out");
                if needed {
                    assert_eq!(errors[0].reason, Reason::MissingField);
                    assert!(errors[0].detail.contains(&format!("{key}: is missing")), "{}", errors[0]);
                }
            }
        }
    }
}

#[test]
fn a_bad_event_costs_none_of_its_neighbours() {
    let good = |id: u32| {
        format!(
            r#"{{"worker_id":1,"event":{{"event_id":{id},"data":{{"removed":{{"block_hashes":[{id}]}}}}}}}}"#
        )
    };
    let bad = r#"{"worker_id":1,"event":{"event_id":2,"data":{"stored":{"parent_hash":null,"blocks":[{"block_hash":1,"tokens_hash":2},{"block_hash":"x"}]}}}}"#;
    let later = r#"{"worker_id":1,"event":{"event_id":3,"data":{"defragmented":{}}}}"#;
    let json = format!("[{},{bad},7,{},{later},{bad}]", good(1), good(4));
    for (body, format) in both(&json) {
        let mut events = KvEvents::default();
        let faults = events.decode(&body, format).unwrap_err();
        assert_eq!(events.events.iter().map(|event| event.event_id).collect::<Vec<_>>(), [1, 4]);
        assert_eq!(events.removed.len(), 2);
        assert!(events.blocks.is_empty(), "blocks of an event that was refused stay");
        let counts: Vec<_> = faults.iter().map(|(error, count)| (error.reason, count)).collect();
        assert_eq!(counts, [(Reason::WrongType, 3), (Reason::UnknownKind, 1)]);
        assert_eq!(faults.total(), 4);
    }
}

#[test]
fn what_was_understood_before_the_end_stays() {
    let (body, _) = &both(SHAPES[2].1)[1];
    let mut events = KvEvents::default();
    let faults = events.decode(&body[..body.len() - 40], Format::MsgPack).unwrap_err();
    assert_eq!(faults.iter().next().unwrap().0.reason, Reason::Truncated);
    assert_eq!(events.events.len(), 2);
    let trailing = [body.as_slice(), b"\x00"].concat();
    let faults = events.decode(&trailing, Format::MsgPack).unwrap_err();
    assert_eq!(faults.iter().next().unwrap().0.reason, Reason::Malformed);
    assert_eq!(events.events.len(), 3);
}

#[test]
fn nesting_without_end_is_refused_or_skipped_but_never_followed() {
    const DEEP: usize = 100_000;
    for topic in TOPICS {
        let is_own_reader = topic == Topic::KvEvents;
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
            let closed = format!("{}1{}", open.repeat(DEEP), close.repeat(DEEP));
            for (body, skipped) in [(open.repeat(DEEP), "malformed: "), (closed, "missing_field: ")] {
                let unknown = format!(r#"{{"unknown":{body}}}"#);
                assert!(!errors(topic, body.as_bytes(), Format::Json).is_empty());
                let error = error(topic, unknown.as_bytes(), Format::Json);
                // serde_json keeps a byte for each level of what it skips.
                assert!(error.starts_with(if is_own_reader { "too_large: " } else { skipped }), "{error}");
            }
        }
        for nested in [b"\x91".as_slice(), b"\x81\xa1a".as_slice()] {
            let body = nested.repeat(DEEP);
            assert!(!errors(topic, &body, Format::MsgPack).is_empty());
            let unknown = [b"\x81\xa7unknown".as_slice(), &body].concat();
            let ended = [unknown.as_slice(), b"\xc0"].concat();
            for (body, skipped) in [(unknown, "truncated: "), (ended, "missing_field: ")] {
                let error = error(topic, &body, Format::MsgPack);
                // MessagePack has no closing brackets: the own reader counts what is to come.
                assert!(error.starts_with(if is_own_reader { skipped } else { "too_large: " }), "{error}");
            }
        }
    }
}

#[test]
fn claimed_lengths_of_32_bits_are_not_believed() {
    for marker in [0xc6, 0xc9, 0xdb, 0xdd, 0xdf_u8] {
        let huge = [&[marker][..], &[0xff; 4], b"abc"].concat();
        for topic in TOPICS {
            for body in [
                huge.clone(),
                [b"\x81".as_slice(), &huge].concat(),
                [b"\x81\xa1a".as_slice(), &huge].concat(),
            ] {
                assert!(!errors(topic, &body, Format::MsgPack).is_empty());
            }
        }
        assert!(open(&huge).is_err());
        let reason = if marker == 0xc6 { Reason::Truncated } else { Reason::WrongType };
        assert_eq!(open(&[b"\x81\xa7payload".as_slice(), &huge].concat()).unwrap_err().reason, reason);
    }
}

#[test]
fn faults_read_well() {
    let event = |json: &str| error(Topic::KvEvents, json.as_bytes(), Format::Json);
    assert_eq!(
        event(r#"{"worker_id":"7"}"#),
        "wrong_type: kv-events: worker_id: expected an integer, found text (byte 13)"
    );
    assert_eq!(
        event(r#"{"worker_id":1.0}"#),
        "wrong_type: kv-events: worker_id: expected an integer, found a fraction (byte 13)"
    );
    assert_eq!(
        event(r#"{"worker_id":18446744073709551616}"#),
        "wrong_type: kv-events: worker_id: expected an integer of 64 bits (byte 13)"
    );
    assert_eq!(
        event(r#"{"worker_id":-1}"#),
        "wrong_type: kv-events: worker_id: expected an integer that is not negative (byte 13)"
    );
    assert_eq!(
        event(r#"{"worker_id":1,"worker_id":1}"#),
        "malformed: kv-events: worker_id: is given twice (byte 27)"
    );
    assert_eq!(event(r#"{"worker_id":1}"#), "missing_field: kv-events: event: is missing (byte 0)");
    assert_eq!(event(r#"{"worker_id":NaN}"#), "malformed: kv-events: worker_id: no JSON (byte 13)");
    assert_eq!(
        event(r#"{"worker_id":1,}"#),
        "malformed: kv-events: expected something after the comma (byte 15)"
    );
    assert_eq!(event(r#"{"worker_id" 1}"#), "malformed: kv-events: expected a colon (byte 13)");
    assert_eq!(event("{\"a\nb\":1}"), "malformed: kv-events: control character in a text (byte 3)");
    assert_eq!(event(r#"{"worker_id":01}"#), "malformed: kv-events: worker_id: no number of JSON (byte 13)");
    assert_eq!(event("7"), "wrong_type: kv-events: expected a map, found an integer (byte 0)");
    assert_eq!(event(""), "truncated: kv-events: the message ends here (byte 0)");
}

#[test]
fn faults_found_by_serde_read_well() {
    let hit = |json: &str| error(Topic::KvHitRate, json.as_bytes(), Format::Json);
    let faults = [
        r#"{"worker_id":"7"}"#,
        r#"{"worker_id":1.0}"#,
        r#"{"worker_id":18446744073709551616}"#,
        r#"{"worker_id":-1}"#,
        r#"{"worker_id":1,"worker_id":1}"#,
        r#"{"dp_rank":4294967296}"#,
        r#"{"worker_id":1}"#,
        r#"{"worker_id":NaN}"#,
        r#"{"worker_id":1,}"#,
        r#"{"worker_id" 1}"#,
        "{\"a\nb\":1}",
        r#"{"worker_id":01}"#,
        "[]",
        "",
    ]
    .map(hit)
    .join("\n");
    expect![[r#"
        wrong_type: kv-hit-rate: worker_id: invalid type: string "7", expected u64 (byte 16)
        wrong_type: kv-hit-rate: worker_id: invalid type: floating point `1.0`, expected u64 (byte 16)
        wrong_type: kv-hit-rate: worker_id: invalid type: floating point `1.8446744073709552e+19`, expected u64 (byte 33)
        wrong_type: kv-hit-rate: worker_id: invalid value: integer `-1`, expected u64 (byte 15)
        malformed: kv-hit-rate: worker_id: is given twice (byte 26)
        wrong_type: kv-hit-rate: dp_rank: invalid value: integer `4294967296`, expected u32 (byte 21)
        missing_field: kv-hit-rate: isl_blocks: is missing (byte 15)
        malformed: kv-hit-rate: worker_id: expected value (byte 14)
        malformed: kv-hit-rate: trailing comma (byte 16)
        malformed: kv-hit-rate: expected `:` (byte 14)
        malformed: kv-hit-rate: control character (\u0000-\u001F) found while parsing a string (byte 4)
        malformed: kv-hit-rate: worker_id: invalid number (byte 15)
        wrong_type: kv-hit-rate: invalid length 0, expected struct Message with 4 elements (byte 2)
        truncated: kv-hit-rate: the message ends here (byte 0)"#]].assert_eq(&faults);
    let binary = |json: &str| error(Topic::KvHitRate, &both(json)[1].0, Format::MsgPack);
    let faults = [r#"{"worker_id":"7"}"#, r#"{"worker_id":-1}"#, r#"{"worker_id":1}"#, "[]", "7"]
        .map(binary)
        .join("\n");
    expect![[r#"
        wrong_type: kv-hit-rate: worker_id: wrong msgpack marker FixStr(1) (byte 12)
        wrong_type: kv-hit-rate: worker_id: invalid value: integer `-1`, expected u64 (byte 12)
        missing_field: kv-hit-rate: isl_blocks: is missing (byte 12)
        wrong_type: kv-hit-rate: invalid length 0, expected struct Message with 4 elements (byte 1)
        wrong_type: kv-hit-rate: invalid type: integer `7`, expected struct Message (byte 1)"#]]
    .assert_eq(&faults);
}

#[test]
fn text_that_is_not_utf_8_is_malformed() {
    let json = b"{\"request_id\":\"\xff\",\"worker\":{\"worker_id\":1},\"data\":\"Free\"}";
    let binary = b"\x81\xaarequest_id\xa1\xff";
    for (body, format) in [(&json[..], Format::Json), (&binary[..], Format::MsgPack)] {
        let error = error(Topic::ActiveSequences, body, format);
        assert!(error.starts_with("malformed: active_sequences_events: request_id: "), "{error}");
    }
    for lone in [r#"{"request_id":"\ud800"}"#, r#"{"request_id":"\u12g4"}"#, r#"{"request_id":"\x"}"#] {
        assert!(error(Topic::ActiveSequences, lone.as_bytes(), Format::Json).starts_with("malformed: "));
    }
}

#[test]
fn messages_of_sixteen_mebibytes_are_read_or_refused() {
    let filler = "x".repeat(16 << 20);
    let json = format!(r#"{{"unknown":"{filler}","worker_id":1,"isl_blocks":2,"overlap_blocks":1}}"#);
    for (body, format) in both(&json) {
        assert_eq!(transcript::payload(Topic::KvHitRate, &body, format, None).0, "1/0 overlap 1 of 2\n");
    }
    for (body, format) in both(&format!(r#"{{"events":["{filler}"]}}"#)) {
        assert!(error(Topic::ActiveSequences, &body, format).starts_with("wrong_type: "));
    }
    for byte in [b'[', b'{', b'"', b' ', 0x91, 0x81, 0xc1, 0xff] {
        let body = vec![byte; 16 << 20];
        assert!(open(&body).map_or(true, |opened| opened.envelope().is_none()));
        for topic in TOPICS {
            assert!(!errors(topic, &body, Format::Json).is_empty());
            assert!(!errors(topic, &body, Format::MsgPack).is_empty());
        }
    }
}

/// Whatever owned structs accept, the decoder accepts, and it says the same.
fn agree_with_plain(body: &[u8], format: Format) {
    let mut events = KvEvents::default();
    let result = events.decode(body, format);
    if plain::decode::<plain::Payload>(body, format).is_ok() {
        // rmp-serde and serde_json accept bytes after MessagePack and structs as arrays; Dynamo sends neither.
        if result.is_ok() {
            assert_same_events(&events, body, format);
        } else {
            assert_eq!(format, Format::MsgPack, "{result:?}");
        }
    }
}

fn damaged() -> impl Strategy<Value = (usize, Vec<(prop::sample::Index, u8)>)> {
    (0..1000_usize, prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes_never_panic(body in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = open(&body);
        let _ = ModelCard::decode(&body);
        let _ = discovery::decode("v1/event_channels/a/b/c/1", &body);
        let _ = subject::parse(&String::from_utf8_lossy(&body));
        for topic in TOPICS {
            errors(topic, &body, Format::Json);
            errors(topic, &body, Format::MsgPack);
        }
    }

    #[test]
    fn random_text_of_json_never_panics(body in r#"[\[\]{}",:0-9a-z\\ .eE-]{0,80}"#) {
        for topic in TOPICS {
            let errors = errors(topic, body.as_bytes(), Format::Json);
            prop_assert!(serde_json::from_str::<Value>(&body).is_ok() || !errors.is_empty());
        }
        agree_with_plain(body.as_bytes(), Format::Json);
    }

    #[test]
    fn a_damaged_message_is_read_as_plain_structs_read_it((which, damage) in damaged()) {
        let (topic, json) = SHAPES[which % SHAPES.len()];
        for (mut body, format) in both(json) {
            for (at, byte) in &damage {
                let at = at.index(body.len());
                body[at] = *byte;
            }
            errors(topic, &body, format);
            agree_with_plain(&body, format);
        }
    }

    #[test]
    fn a_damaged_real_message_never_panics((which, damage) in damaged()) {
        let real = messages::real();
        let message = &real[which % real.len()];
        let mut body = message.payload.to_vec();
        for (at, byte) in damage {
            let at = at.index(body.len());
            body[at] = byte;
        }
        transcript::message(&message.subject, &body);
    }

    #[test]
    fn integers_of_json_are_exact(number in any::<u64>(), zeros in 0..3_usize) {
        let number = number >> (zeros * 20);
        let json = format!(r#"{{"worker_id":{number},"isl_blocks":0,"overlap_blocks":{number}}}"#);
        let text = transcript::payload(Topic::KvHitRate, json.as_bytes(), Format::Json, None).0;
        prop_assert_eq!(text, format!("{number}/0 overlap {number} of 0\n"));
    }
}
