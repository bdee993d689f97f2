//! Messages of a real Dynamo 0.9.1, reproduced.

use super::super::shape::ChainHashes;
use super::*;
use radixscope_model::id::TokensHash;

const WORKER: u64 = 1099996435276239473;
const ROUTER: u64 = 0x2897_7750_e0a7_b54f;

/// The bytes that `say` publishes, with the ids of the messages recorded from a real Dynamo.
fn published(events: EventTransport, say: impl FnOnce(&mut Wire, WireOut<'_>)) -> (String, Vec<u8>) {
    let config = Config { workers: 1, events, ..Config::default() };
    let mut wire = Wire::new(&config.pools()[0]);
    wire.workers[0].id = WORKER;
    wire.routers[0].id = ROUTER;
    let mut messages = Vec::new();
    say(&mut wire, &mut |m| messages.push((m.name.to_owned(), m.payload.to_owned())));
    assert_eq!(messages.len(), 1);
    messages.remove(0)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn blocks(hashes: [(u64, u64); 2]) -> Vec<Block> {
    let block = |(b, t)| Block { block_hash: BlockHash(b), tokens_hash: TokensHash(t) };
    hashes.into_iter().map(block).collect()
}

#[test]
fn a_decision_equals_the_recorded_bytes() {
    let (subject, bytes) = published(EventTransport::JetStream, |wire, out| {
        wire.hit_rate(Millis(0x1a1_fa23_d3dc), 0, 0, 3, 0, out)
    });
    assert_eq!(subject, "namespace.dynamo.kv-hit-rate");
    assert_eq!(
        hex(&bytes),
        "85ac7075626c69736865725f6964cf28977750e0a7b54fa873657175656e636500ac7075626c69736865645f6174cf000001a1\
         fa23d3dca5746f706963ab6b762d6869742d72617465a77061796c6f6164c43984a9776f726b65725f6964cf0f43f8ee0ad612\
         71a764705f72616e6b00aa69736c5f626c6f636b7303ae6f7665726c61705f626c6f636b7300"
    );
}

#[test]
fn a_load_of_the_router_equals_the_recorded_bytes() {
    let (subject, bytes) = published(EventTransport::JetStream, |wire, out| {
        wire.router_load(Millis(0x1a1_fa23_d3dd), 0, 0, (2, 42), out)
    });
    assert_eq!(subject, "namespace.dynamo.kv_metrics");
    assert_eq!(
        hex(&bytes),
        "85ac7075626c69736865725f6964cf28977750e0a7b54fa873657175656e636500ac7075626c69736865645f6174cf000001a1\
         fa23d3dda5746f706963aa6b765f6d657472696373a77061796c6f6164c44a84a9776f726b65725f6964cf0f43f8ee0ad61271\
         a764705f72616e6b00b46163746976655f6465636f64655f626c6f636b7302b56163746976655f70726566696c6c5f746f6b65\
         6e732a"
    );
}

/// The payload of an envelope: Dynamo's serialiser writes `bin` with its length in one byte, up to 255.
fn payload_of(bytes: &[u8]) -> &[u8] {
    let key = b"\xa7payload\xc4";
    let at = bytes.windows(key.len()).position(|w| w == key).expect("a payload");
    &bytes[at + key.len() + 1..]
}

#[test]
fn the_life_of_a_request_has_the_fields_of_dynamo_in_its_order() {
    let say = |step: fn(&[Block]) -> Step<'_>| {
        let blocks = blocks([(7585370176810793920, 0), (0x9b3e_eddc_fd32_dfef, 0)]);
        let (subject, bytes) = published(EventTransport::JetStream, |wire, out| {
            wire.sequence(Millis(0), (Reporter::Router, 0), "e9980da3", step(&blocks), out);
        });
        assert_eq!(subject, "namespace.dynamo.component.backend.active_sequences_events");
        hex(payload_of(&bytes))
    };
    let text = |text: &str| format!("{:02x}{}", 0xa0 + text.len(), hex(text.as_bytes()));
    let around = |data: &str| {
        let worker = format!("82{}cf0f43f8ee0ad61271{}00", text("worker_id"), text("dp_rank"));
        let parts = [
            "84",
            &text("request_id"),
            &text("e9980da3"),
            &text("worker"),
            &worker,
            &text("data"),
            data,
            &text("router_id"),
            "cf28977750e0a7b54f",
        ];
        parts.concat()
    };
    let added = [
        "81",
        &text("AddRequest"),
        "84",
        &text("token_sequence"),
        "92cf6944a5fc9ea63bc0cf9b3eeddcfd32dfef",
        &text("isl"),
        "2a",
        &text("overlap"),
        "01",
        &text("expected_output_tokens"),
        "c0",
    ];
    let bytes = say(|blocks| Step::AddRequest {
        token_sequence: Some(ChainHashes(blocks)),
        isl: 42,
        overlap: 1,
        expected_output_tokens: None,
    });
    assert_eq!(bytes, around(&added.concat()));
    assert_eq!(say(|_| Step::MarkPrefillCompleted), around(&text("MarkPrefillCompleted")));
    assert_eq!(say(|_| Step::Free), around(&text("Free")));
}

#[test]
fn a_stored_event_in_an_envelope_equals_the_recorded_bytes() {
    let blocks =
        blocks([(7585370176810793920, 7585370176810793920), (0x9b3e_eddc_fd32_dfef, 0xc1d4_e735_5a1a_9907)]);
    let (subject, bytes) = published(EventTransport::LocalIndexer, |wire, out| {
        wire.stored((Millis(1795198014434), 0, Tier::Device), (None, 0, &blocks), Delivery::Whole, out);
    });
    assert_eq!(subject, "namespace.dynamo.component.backend.kv-events");
    assert_eq!(bytes.len(), 276);
    assert_eq!(
        hex(&bytes),
        "85ac7075626c69736865725f6964cf0f43f8ee0ad61271a873657175656e636500ac7075626c69736865645f6174cf000001a1\
         fa23d3e2a5746f706963a96b762d6576656e7473a77061796c6f6164c4c382a9776f726b65725f6964cf0f43f8ee0ad61271a5\
         6576656e7483a86576656e745f696400a46461746181a673746f72656482ab706172656e745f68617368c0a6626c6f636b7392\
         83aa626c6f636b5f68617368cf6944a5fc9ea63bc0ab746f6b656e735f68617368cf6944a5fc9ea63bc0ad6d6d5f6578747261\
         5f696e666fc083aa626c6f636b5f68617368cf9b3eeddcfd32dfefab746f6b656e735f68617368cfc1d4e7355a1a9907ad6d6d\
         5f65787472615f696e666fc0a764705f72616e6b00"
    );
}

#[test]
fn a_stored_event_on_jetstream_equals_the_recorded_text() {
    let blocks =
        blocks([(7585370176810793920, 7585370176810793920), (5214045902298629111, 8781325924315300312)]);
    let (subject, bytes) = published(EventTransport::JetStream, |wire, out| {
        wire.stored((Millis(0), 0, Tier::Device), (None, 0, &blocks), Delivery::Whole, out)
    });
    assert_eq!(subject, "namespace-dynamo-component-backend-kv-events.kv-events");
    assert_eq!(
        String::from_utf8(bytes).expect("JSON is UTF-8"),
        r#"{"worker_id":1099996435276239473,"event":{"event_id":0,"data":{"stored":{"parent_hash":null,"blocks":[{"block_hash":7585370176810793920,"tokens_hash":7585370176810793920,"mm_extra_info":null},{"block_hash":5214045902298629111,"tokens_hash":8781325924315300312,"mm_extra_info":null}]}},"dp_rank":0}}"#
    );
}

#[test]
fn a_removed_event_names_one_block() {
    let (_, bytes) = published(EventTransport::JetStream, |wire, out| {
        wire.removed((Millis(0), 0, Tier::Device), BlockHash(u64::MAX), Delivery::Whole, out)
    });
    assert_eq!(
        String::from_utf8(bytes).expect("JSON is UTF-8"),
        r#"{"worker_id":1099996435276239473,"event":{"event_id":0,"data":{"removed":{"block_hashes":[18446744073709551615]}},"dp_rank":0}}"#
    );
}

#[test]
fn a_stream_is_named_as_dynamo_names_it() {
    assert_eq!(stream_name("dynamo", "backend"), "namespace-dynamo-component-backend-kv-events");
    assert_eq!(stream_name("My_Team", "pre-fill"), "namespace-my-team-component-pre-fill-kv-events");
}
