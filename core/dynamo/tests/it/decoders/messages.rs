//! A few real messages of each shape, and what they say.

use expect_test::{Expect, expect, expect_file};
use radixscope_captures::Message;
use radixscope_dynamo::discovery::ModelCard;
use radixscope_dynamo::subject;

use crate::decoders::transcript;

pub const MESSAGES: &str = include_str!("../../fixtures/messages.jsonl");
pub const DISCOVERY: &str = include_str!("../../fixtures/discovery.jsonl");

/// The messages of the fixture.
pub fn real() -> Vec<Message> {
    MESSAGES.lines().map(Message::read).collect()
}

fn check(subject: &str, body: &[u8], expected: Expect) {
    let (decoded, errors) = transcript::message(subject, body);
    assert!(errors.is_empty(), "{errors:?}");
    expected.assert_eq(&decoded);
}

#[test]
fn real_messages_of_each_shape_say() {
    let mut all = String::new();
    for message in real() {
        let (decoded, errors) = transcript::message(&message.subject, &message.payload);
        assert!(errors.is_empty(), "{errors:?}");
        let copy = if subject::is_delivery_copy(message.reply.as_deref()) { " (delivery copy)" } else { "" };
        all.push_str(&format!("{}{copy}\n{decoded}\n", message.subject));
    }
    expect_file!["../../fixtures/messages.txt"].assert_eq(&all);
}

#[test]
fn real_values_of_discovery_say() {
    let mut all = String::new();
    for value in DISCOVERY.lines() {
        let card = ModelCard::decode(value.as_bytes()).unwrap();
        all.push_str(&format!("{card:#?}\n"));
    }
    expect_file!["../../fixtures/discovery.txt"].assert_eq(&all);
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

#[test]
fn the_jetstream_body_of_reference_2_5() {
    check(
        "namespace-dynamo-component-backend-kv-events.kv-events",
        br#"{"worker_id":834387485938330940,"event":{"event_id":0,"data":{"stored":{"parent_hash":null,"blocks":[{"block_hash":7585370176810793920,"tokens_hash":7585370176810793920,"mm_extra_info":null},{"block_hash":5214045902298629111,"tokens_hash":8781325924315300312,"mm_extra_info":null}]}},"dp_rank":0}}"#,
        expect![[r#"
            834387485938330940/0 #0 Device stored under root: 7585370176810793920=7585370176810793920 5214045902298629111=8781325924315300312
        "#]],
    );
}

#[test]
fn two_stored_blocks_in_an_envelope_of_0_9_reference_2_5() {
    let block = |block: &str, tokens: &str| {
        let keys =
            ["aa626c6f636b5f68617368cf", "ab746f6b656e735f68617368cf", "ad6d6d5f65787472615f696e666fc0"];
        format!("83{}{block}{}{tokens}{}", keys[0], keys[1], keys[2])
    };
    let message = hex(&format!(
        "85 ac7075626c69736865725f6964 cf0f43f8ee0ad61271 a873657175656e6365 00 ac7075626c69736865645f6174
         cf000001a1fa23d3e2 a5746f706963 a96b762d6576656e7473 a77061796c6f6164 c4c3
         82a9776f726b65725f6964 cf0f43f8ee0ad61271 a56576656e74 83 a86576656e745f6964 00 a464617461 81
         a673746f726564 82 ab706172656e745f68617368 c0 a6626c6f636b73 92 {} {} a764705f72616e6b 00",
        block("6944a5fc9ea63bc0", "6944a5fc9ea63bc0"),
        block("9b3eeddcfd32dfef", "c1d4e7355a1a9907"),
    ));
    assert_eq!(message.len(), 276);
    check(
        "namespace.dynamo.component.backend.kv-events",
        &message,
        expect![[r#"
            1099996435276239473/0 #0 Device stored under root: 7585370176810793920=7585370176810793920 11186640057831448559=13967042560713726215
        "#]],
    );
}

#[test]
fn one_removed_block_of_1_6_reference_2_5() {
    let message = hex(
        "85ac7075626c69736865725f6964cf0006eec294882362a873657175656e636543ac7075626c69736865645f6174cf000001a1fa231e47
         a5746f706963a96b762d6576656e7473a77061796c6f6164c4819184a9776f726b65725f6964cf6a6ca1fa22d56d06ac73746f726167655f
         74696572a6646576696365b07265736964656e63795f646f6d61696ea6776f726b6572a56576656e7483a86576656e745f69644aa4646174
         6181a772656d6f76656481ac626c6f636b5f68617368657391cf63211cde6fcc9d9ba764705f72616e6b00",
    );
    check(
        "namespace.dynamo.component.backend.endpoint.generate.kv-events",
        &message,
        expect![[r#"
        7668682361203420422/0 #74 Device removed 7143022225670315419
    "#]],
    );
}

#[test]
fn the_hit_rate_of_reference_3_1() {
    let message = hex(
        "85ac7075626c69736865725f6964cf28977750e0a7b54fa873657175656e636500ac7075626c69736865645f6174cf000001a1fa23d3dc
         a5746f706963ab6b762d6869742d72617465a77061796c6f6164c43984a9776f726b65725f6964cf0f43f8ee0ad61271a764705f72616e6b
         00aa69736c5f626c6f636b7303ae6f7665726c61705f626c6f636b7300",
    );
    check(
        "namespace.dynamo.kv-hit-rate",
        &message,
        expect![[r#"
        1099996435276239473/0 overlap 0 of 3
    "#]],
    );
}

#[test]
fn the_routers_load_of_reference_3_2() {
    let message = hex(
        "85ac7075626c69736865725f6964cf28977750e0a7b54fa873657175656e636500ac7075626c69736865645f6174cf000001a1fa23d3dd
         a5746f706963aa6b765f6d657472696373a77061796c6f6164c44a84a9776f726b65725f6964cf0f43f8ee0ad61271a764705f72616e6b
         00b46163746976655f6465636f64655f626c6f636b7302b56163746976655f70726566696c6c5f746f6b656e732a",
    );
    check(
        "namespace.dynamo.kv_metrics",
        &message,
        expect![[r#"
        1099996435276239473/0 Router { decode_blocks: Some(2), prefill_tokens: Some(42) }
    "#]],
    );
}

#[test]
fn the_workers_load_of_1_6_reference_3_2() {
    check(
        "namespace.dynamo.component.backend.endpoint.generate.kv_metrics",
        br#"{"worker_id":9231963812737957267,"dp_rank":0,"active_decode_blocks":null,"active_prefill_tokens":null,"kv_used_blocks":8}"#,
        expect![[r#"
            9231963812737957267/0 Engine { used_blocks: 8 }
        "#]],
    );
}

#[test]
fn the_steps_of_requests_of_reference_3_3() {
    let subject = "namespace.dynamo.component.backend.endpoint.generate.active_sequences_events";
    let worker = r#""worker":{"worker_id":9231963812737957267,"dp_rank":0}"#;
    let id = r#""request_id":"e9980da3-4ed7-4633-91a4-7491c23661a4""#;
    let completed = format!(
        r#"{{{id},{worker},"data":"MarkPrefillCompleted","router_id":9231963812737957267,"lora_name":null}}"#
    );
    check(
        subject,
        completed.as_bytes(),
        expect![[r#"
        e9980da3-4ed7-4633-91a4-7491c23661a4 on 9231963812737957267/0 by worker: PrefillCompleted
    "#]],
    );
    let added = r#"{"AddRequest":{"token_sequence":[7585370176810793920,11186640057831448559],"track_prefill_tokens":true,"expected_output_tokens":null,"prefill_load_hint":{"initial_effective_prefill_tokens":42,"expected_prefill_duration":null}}}"#;
    let added = format!(r#"{{{id},{worker},"data":{added},"router_id":5,"lora_name":null}}"#);
    check(
        subject,
        added.as_bytes(),
        expect![[r#"
        e9980da3-4ed7-4633-91a4-7491c23661a4 on 9231963812737957267/0: AddRequest { token_sequence: Some([7585370176810793920, 11186640057831448559]), isl: None, overlap: None, expected_output_tokens: None, track_prefill_tokens: Some(true), initial_effective_prefill_tokens: Some(42) }
    "#]],
    );
    let added = r#"{"AddRequest":{"token_sequence":[1,18446744073709551615],"isl":3899,"overlap":2,"expected_output_tokens":null}}"#;
    let added = format!(r#"{{{id},{worker},"data":{added},"router_id":"a-uuid"}}"#);
    check(
        subject,
        added.as_bytes(),
        expect![[r#"
        e9980da3-4ed7-4633-91a4-7491c23661a4 on 9231963812737957267/0: AddRequest { token_sequence: Some([1, 18446744073709551615]), isl: Some(3899), overlap: Some(2), expected_output_tokens: None, track_prefill_tokens: None, initial_effective_prefill_tokens: None }
    "#]],
    );
    let freed = format!(r#"{{{id},{worker},"data":"Free","router_id":5}}"#);
    check(
        subject,
        freed.as_bytes(),
        expect![[r#"
        e9980da3-4ed7-4633-91a4-7491c23661a4 on 9231963812737957267/0: Freed
    "#]],
    );
    check(
        subject,
        format!(r#"{{"events":[{freed},{completed}]}}"#).as_bytes(),
        expect![[r#"
        e9980da3-4ed7-4633-91a4-7491c23661a4 on 9231963812737957267/0: Freed
        e9980da3-4ed7-4633-91a4-7491c23661a4 on 9231963812737957267/0 by worker: PrefillCompleted
    "#]],
    );
    check(subject, br#"{"events":[]}"#, expect![]);
}
