//! Payloads of each version as JSON text, and the same as MessagePack: what Dynamo may send, put together by hand.

use radixscope_dynamo::envelope::Format;
use radixscope_dynamo::kv_event::{KvData, KvEvents, ResidencyDomain, StorageTier};
use radixscope_dynamo::load::{ActiveLoad, LoadOrigin};
use radixscope_model::id::{BlockHash, TokensHash, Worker};
use radixscope_model::record::Topic;
use serde_json::Value;

use crate::decoders::transcript;

/// Topic and payload of each shape; worker id and hashes use all 64 bits.
pub const SHAPES: &[(Topic, &str)] = &[
    (
        Topic::KvEvents,
        r#"{"worker_id":18446744073709551615,"event":{"event_id":7,"data":{"stored":{"parent_hash":18446744073709551614,"blocks":[{"block_hash":9007199254740993,"tokens_hash":9223372036854775809}]}}}}"#,
    ),
    (
        Topic::KvEvents,
        r#"{"worker_id":1,"event":{"event_id":7,"data":{"stored":{"parent_hash":null,"start_position":3,"blocks":[{"block_hash":1,"tokens_hash":2,"mm_extra_info":{"mm_objects":[{"mm_hash":42,"offsets":[[0,1]]}]}},{"block_hash":3,"tokens_hash":4,"mm_extra_info":null}]}},"dp_rank":4294967295}}"#,
    ),
    (
        Topic::KvEvents,
        r#"[{"worker_id":1,"storage_tier":"host_pinned","residency_domain":"cache_owner","event":{"event_id":1,"data":{"removed":{"block_hashes":[1,18446744073709551615]}},"dp_rank":1},"session_id":"s"},{"worker_id":1,"storage_tier":"disk","event":{"event_id":2,"data":"cleared","dp_rank":1}},{"worker_id":1,"storage_tier":"external","event":{"event_id":3,"data":{"stored":{"parent_hash":5,"blocks":[]}},"dp_rank":1}}]"#,
    ),
    (Topic::KvHitRate, r#"{"worker_id":18446744073709551615,"isl_blocks":243,"overlap_blocks":7}"#),
    (
        Topic::KvMetrics,
        r#"{"worker_id":18446744073709551615,"dp_rank":2,"active_decode_blocks":7,"active_prefill_tokens":122}"#,
    ),
    (
        Topic::KvMetrics,
        r#"{"worker_id":5,"active_decode_blocks":null,"active_prefill_tokens":null,"kv_used_blocks":8}"#,
    ),
    (
        Topic::ActiveSequences,
        r#"{"request_id":"r\u00e9-1","worker":{"worker_id":5,"dp_rank":1},"data":{"AddRequest":{"token_sequence":[1,18446744073709551615],"isl":32,"overlap":1,"expected_output_tokens":9,"track_prefill_tokens":false,"prefill_load_hint":{"initial_effective_prefill_tokens":16,"expected_prefill_duration":0.5}}},"router_id":"0198a-uuid"}"#,
    ),
    (
        Topic::ActiveSequences,
        r#"{"events":[{"request_id":"a","worker":{"worker_id":5},"data":"MarkPrefillCompleted","router_id":5},{"request_id":"b","worker":{"worker_id":5},"data":"Free","router_id":6,"lora_name":"x"}]}"#,
    ),
];

/// A payload in both formats.
pub fn both(json: &str) -> [(Vec<u8>, Format); 2] {
    let value: Value = serde_json::from_str(json).unwrap();
    [(json.as_bytes().to_vec(), Format::Json), (rmp_serde::to_vec(&value).unwrap(), Format::MsgPack)]
}

fn events(body: &[u8], format: Format) -> KvEvents {
    let mut events = KvEvents::default();
    events.decode(body, format).unwrap();
    events
}

#[test]
fn both_formats_of_every_shape_say_the_same() {
    for (topic, json) in SHAPES {
        let [text, binary] = both(json).map(|(body, format)| {
            let (text, errors) = transcript::payload(*topic, &body, format, None);
            assert!(errors.is_empty(), "{json}: {errors:?}");
            text
        });
        assert_eq!(text, binary);
        assert!(!text.is_empty());
    }
}

#[test]
fn ids_and_hashes_keep_all_64_bits() {
    for (body, format) in both(SHAPES[0].1) {
        let events = events(&body, format);
        assert_eq!(events.events[0].worker, Worker::new(u64::MAX, 0));
        assert_eq!(events.blocks[0].block_hash, BlockHash(9007199254740993));
        assert_eq!(events.blocks[0].tokens_hash, TokensHash(9223372036854775809));
        let KvData::Stored { parent, .. } = &events.events[0].data else { panic!("not stored") };
        assert_eq!(*parent, Some(BlockHash(u64::MAX - 1)));
    }
}

#[test]
fn hashes_given_as_negative_numbers_count_by_their_bits() {
    let json = r#"{"worker_id":1,"event":{"event_id":0,"data":{"stored":{"parent_hash":-9223372036854775808,"blocks":[{"block_hash":-1,"tokens_hash":-2}]}}}}"#;
    for (body, format) in both(json) {
        let events = events(&body, format);
        assert_eq!(events.blocks[0].block_hash, BlockHash(u64::MAX));
        assert_eq!(events.blocks[0].tokens_hash, TokensHash(u64::MAX - 1));
        let KvData::Stored { parent, .. } = &events.events[0].data else { panic!("not stored") };
        assert_eq!(*parent, Some(BlockHash(1 << 63)));
    }
}

#[test]
fn tiers_and_domains_that_are_new_to_us_are_kept_apart() {
    let json = r#"[{"worker_id":1,"storage_tier":"tape","residency_domain":"moon","event":{"event_id":1,"data":"cleared"}},{"worker_id":1,"event":{"event_id":1,"data":"cleared"}}]"#;
    for (body, format) in both(json) {
        let events = events(&body, format);
        assert!(events.batch);
        let tiers: Vec<_> = events.events.iter().map(|event| (event.tier, event.domain)).collect();
        let known = (StorageTier::Device, ResidencyDomain::Worker);
        assert_eq!(tiers, [(StorageTier::Unknown, ResidencyDomain::Unknown), known]);
    }
}

#[test]
fn white_space_and_unknown_keys_change_nothing() {
    let json = "\n { \"new\" : [ { } , [ ] , \"\\\"]}\" , -1.5e+3 , true , false , null ] , \"event\" : \t{ \"dp_rank\" : 2 , \"data\" : { \"removed\" : { \"block_hashes\" : [ 1 , 2 ] , \"x\" : 0 } } , \"event_id\" : 3 } , \"worker_id\" : 4 } \r\n";
    for (body, format) in both(json) {
        let events = events(&body, format);
        assert_eq!(events.events[0].worker, Worker::new(4, 2));
        assert_eq!(events.removed, [BlockHash(1), BlockHash(2)]);
    }
}

#[test]
fn the_scratch_forgets_the_message_before() {
    let mut events = KvEvents::default();
    for (body, format) in both(SHAPES[2].1).into_iter().chain(both(SHAPES[0].1)) {
        let _ = events.decode(&body, format);
    }
    assert_eq!((events.events.len(), events.blocks.len(), events.removed.len()), (1, 1, 0));
    assert!(!events.batch);
}

#[test]
fn a_load_is_the_engines_word_or_a_routers() {
    let worker = Worker::new(5, 0);
    let load = |active_decode_blocks, active_prefill_tokens, kv_used_blocks| ActiveLoad {
        worker,
        active_decode_blocks,
        active_prefill_tokens,
        kv_used_blocks,
    };
    let router = |decode, prefill| LoadOrigin::Router { decode_blocks: decode, prefill_tokens: prefill };
    // 0.9: the worker publishes under its own id and sets one field, a router sets both.
    assert_eq!(load(Some(8), None, None).origin(Some(5)), LoadOrigin::Engine { used_blocks: 8 });
    assert_eq!(load(Some(7), Some(122), None).origin(Some(9)), router(Some(7), Some(122)));
    // 0.8 names no publisher.
    assert_eq!(load(Some(8), None, None).origin(None), LoadOrigin::Engine { used_blocks: 8 });
    assert_eq!(load(Some(0), Some(0), None).origin(None), router(Some(0), Some(0)));
    // From 1.1 a publisher's id says nothing.
    assert_eq!(load(None, None, Some(0)).origin(Some(9)), LoadOrigin::Engine { used_blocks: 0 });
    assert_eq!(load(None, None, None).origin(Some(9)), LoadOrigin::Nothing);
}
