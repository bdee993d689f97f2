//! What the publishers of vLLM and SGLang send, of each encoding, against what their blocks are by the count of who made them.

use std::collections::BTreeSet;

use radixscope_captures::EngineRecording;
use radixscope_dynamo::engine::{
    CacheGroups, EngineBatch, EngineEvent, REPLAY_END, TokensHasher, open_live, open_replay,
};
use radixscope_dynamo::kv_event::{KvData, StorageTier};
use radixscope_dynamo::zmtp::{Frames, Inbound, Unit, message};
use radixscope_dynamo::{DecodeError, Reason};
use radixscope_model::id::TokensHash;
use radixscope_model::record::{EventForm, HashForm};

/// Names content by content.
#[derive(Default)]
struct Contents {
    of: String,
    seen: BTreeSet<String>,
}

impl TokensHasher for Contents {
    fn begin(&mut self, lora_name: Option<&str>, cache_salt: Option<&str>) {
        self.of = format!("{lora_name:?} {cache_salt:?}");
    }

    fn block(&mut self, tokens: &[u32], multimodal: &[&[u8]]) -> TokensHash {
        assert_eq!(tokens.len(), 16);
        self.seen.insert(format!("{} {multimodal:?}", self.of));
        TokensHash(u64::from(tokens[0]))
    }
}

fn opened<T>(
    frames: &[impl AsRef<[u8]>],
    open: impl FnOnce(Frames<'_>) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    let mut inbound = Inbound::default();
    let frames: Vec<&[u8]> = frames.iter().map(AsRef::as_ref).collect();
    inbound.room().extend_from_slice(&message(&frames));
    let Ok(Some(Unit::Message(frames))) = inbound.next() else { panic!("a whole message") };
    open(frames)
}

/// What is held after these payloads, by hash.
struct Held {
    device: BTreeSet<u64>,
    copied: BTreeSet<u64>,
    stored: u64,
    removed: u64,
    forms: (Option<EventForm>, Option<EventForm>, Option<HashForm>),
    contents: Contents,
}

fn held_after<'a>(payloads: impl Iterator<Item = &'a [u8]>) -> Held {
    let (mut batch, mut groups) = (EngineBatch::default(), CacheGroups::default());
    let mut held = Held {
        device: BTreeSet::new(),
        copied: BTreeSet::new(),
        stored: 0,
        removed: 0,
        forms: (None, None, None),
        contents: Contents::default(),
    };
    for (at, payload) in payloads.enumerate() {
        batch.decode(payload, &mut groups, &mut held.contents).unwrap();
        assert_eq!(batch.at_ms.map(|at| at.0), Some(1_800_000_000_000 + 1_000 * at as u64));
        assert_eq!(batch.rank, Some(0));
        held.forms = (batch.form, batch.event_form, batch.hash_form.or(held.forms.2));
        for event in &batch.events {
            match event {
                EngineEvent::Kv(event) => match &event.data {
                    KvData::Stored { blocks, parent, .. } if event.tier == StorageTier::Device => {
                        assert!(parent.is_none_or(|parent| held.device.contains(&parent.0)));
                        let blocks = batch.kv.blocks_of(blocks);
                        held.stored += blocks.len() as u64;
                        held.device.extend(blocks.iter().map(|block| block.block_hash.0));
                        assert_eq!(batch.block_size_tokens, Some(16));
                    }
                    KvData::Stored { blocks, .. } => {
                        assert_eq!(event.tier, StorageTier::HostPinned);
                        held.copied.extend(batch.kv.blocks_of(blocks).iter().map(|block| block.block_hash.0));
                    }
                    KvData::Removed { hashes } => {
                        for hash in batch.kv.removed_of(hashes) {
                            held.removed += 1;
                            assert!(held.device.remove(&hash.0));
                        }
                    }
                    KvData::Cleared => held.device.clear(),
                },
                EngineEvent::Copied { tier, hashes } => {
                    assert_eq!(*tier, StorageTier::HostPinned);
                    held.copied.extend(batch.kv.removed_of(hashes).iter().map(|hash| hash.0));
                }
            }
        }
    }
    held
}

#[test]
fn every_encoding_gives_the_blocks_that_were_published() {
    use EventForm::{Array, Map};
    for name in EngineRecording::ALL {
        let recorded = EngineRecording::of(name);
        let expected = &recorded.expected;
        for (at, frames) in recorded.live.iter().enumerate() {
            let sequence = opened(frames, |frames| open_live(frames).map(|open| open.sequence)).unwrap();
            assert_eq!(sequence, at as u64);
        }
        let held = held_after(recorded.live.iter().map(|frames| &frames[2][..]));
        let hashes: BTreeSet<u64> = expected.hashes.iter().map(|hash| hash.parse().unwrap()).collect();
        assert_eq!(held.device, hashes, "{name}");
        assert_eq!((held.stored, held.removed), (expected.stored, expected.removed), "{name}");
        assert_eq!((held.device.len(), held.copied.len()), (expected.held, expected.host), "{name}");
        let events = if matches!(name, "vllm-0.23.0" | "sglang-0.5.18") { Array } else { Map };
        let hashes = if name.ends_with("bytes") { HashForm::Bytes } else { HashForm::Integer };
        assert_eq!(held.forms, (Some(Array), Some(events), Some(hashes)), "{name}");
    }
}

#[test]
fn adapters_salts_and_images_are_part_of_what_a_block_is() {
    let contents = |name| {
        let recorded = EngineRecording::of(name);
        let seen = held_after(recorded.live.iter().map(|frames| &frames[2][..])).contents.seen;
        seen.into_iter().collect::<Vec<_>>()
    };
    let image = format!("None None [{:?}]", "a3".repeat(32).as_bytes());
    for name in ["vllm-0.23.0", "vllm-0.32.0"] {
        let expected = [&image, "None None []", "None Some(\"tenant-a\") []", "Some(\"adapter-a\") None []"];
        assert_eq!(contents(name), expected, "{name}");
    }
    let last = contents("sglang-0.5.23");
    assert_eq!(last, ["None None []", "None Some(\"tenant-a\") []", "Some(\"adapter-a\") None []"]);
    // Earlier ones name adapters by number alone.
    let before = contents("sglang-0.5.18");
    assert_eq!(before, ["None None []", "None Some(\"tenant-a\") []", "Some(\"lora_id 1\") None []"]);
}

#[test]
fn what_is_sent_again_is_what_was_published() {
    for name in EngineRecording::ALL {
        let EngineRecording { live, replay, tail, .. } = EngineRecording::of(name);
        for (replies, from) in [(&replay, 0), (&tail, 25)] {
            let (end, replies) = replies.split_last().unwrap();
            assert_eq!(replies.len(), live.len() - from, "{name}");
            for (reply, frames) in replies.iter().zip(&live[from..]) {
                let sequence = opened(frames, |live| open_live(live).map(|live| live.sequence)).unwrap();
                opened(reply, |reply| {
                    let reply = open_replay(reply)?;
                    assert_eq!((reply.sequence, reply.payload), (sequence, &frames[2][..]), "{name}");
                    Ok(())
                })
                .unwrap();
            }
            opened(end, |end| open_replay(end).map(|end| assert_eq!(end.sequence, REPLAY_END))).unwrap();
        }
    }
}

/// A batch of these events, which are MessagePack already.
fn batch_of(events: &[&[u8]]) -> Vec<u8> {
    let mut bytes = b"\x92\xcb\x41\xda\xd2\x74\x80\0\0\0".to_vec();
    bytes.push(0x90 | events.len() as u8);
    events.iter().for_each(|event| bytes.extend_from_slice(event));
    bytes
}

fn decode(payload: &[u8]) -> (EngineBatch, Vec<(Reason, String)>) {
    let mut batch = EngineBatch::default();
    struct Any;
    impl TokensHasher for Any {
        fn begin(&mut self, _: Option<&str>, _: Option<&str>) {}
        fn block(&mut self, tokens: &[u32], _: &[&[u8]]) -> TokensHash {
            TokensHash(tokens.iter().fold(0, |all, &token| all << 8 | u64::from(token)))
        }
    }
    let faults = batch.decode(payload, &mut CacheGroups::default(), &mut Any).err();
    let faults = faults.iter().flat_map(|faults| faults.iter()).map(|(e, _)| (e.reason, e.detail.clone()));
    let faults = faults.collect();
    (batch, faults)
}

fn to_msgpack(value: &serde_json::Value) -> Vec<u8> {
    rmp_serde::to_vec(value).unwrap()
}

#[test]
fn tokens_in_pairs_cover_the_token_after_the_block() {
    let event = serde_json::json!({"type": "BlockStored", "block_hashes": [1, -2], "parent_block_hash": null,
        "token_ids": [[1, 2], [2, 3], [3, 4], [4, 5]], "block_size": 2, "lora_id": null});
    let (batch, faults) = decode(&batch_of(&[&to_msgpack(&event)]));
    assert_eq!(faults, []);
    let blocks: Vec<_> = batch.kv.blocks.iter().map(|b| (b.block_hash.0, b.tokens_hash.0)).collect();
    assert_eq!(blocks, [(1, 0x010203), (u64::MAX - 1, 0x030405)]);
}

#[test]
fn a_batch_may_be_a_map_and_events_in_it_of_both_kinds() {
    let batch = serde_json::json!({"events": [["AllBlocksCleared"], {"type": "AllBlocksCleared"},
        ["BlockRemoved", [7], "CPU", 0]], "ts": 5, "data_parallel_rank": 3, "more": {"a": [1]}});
    let (batch, faults) = decode(&to_msgpack(&batch));
    assert_eq!(faults, []);
    assert_eq!((batch.events.len(), batch.rank, batch.at_ms.map(|at| at.0)), (3, Some(3), Some(5_000)));
    assert_eq!((batch.form, batch.event_form), (Some(EventForm::Map), Some(EventForm::Array)));
}

#[test]
fn other_groups_and_remote_blocks_are_not_the_engines_cache() {
    let stored = |group: u32, kind: &str, locality: &str| {
        to_msgpack(&serde_json::json!({"type": "BlockStored", "block_hashes": [1], "parent_block_hash": null,
            "token_ids": [1, 2], "block_size": 2, "lora_id": null, "medium": "GPU", "lora_name": null,
            "group_idx": group, "kv_cache_spec_kind": kind, "locality": locality, "ownership": "tier-2"}))
    };
    let removed = to_msgpack(&serde_json::json!(["BlockRemoved", [1], "GPU", 1]));
    let (batch, faults) = decode(&batch_of(&[
        &stored(0, "full_attention", "LOCAL"),
        &stored(1, "sliding_window", "LOCAL"),
        &removed,
        &stored(0, "full_attention", "REMOTE"),
    ]));
    assert_eq!((faults, batch.other_groups), (Vec::new(), 2));
    let own: Vec<bool> = batch
        .events
        .iter()
        .map(|event| matches!(event, EngineEvent::Kv(event) if event.is_in_device_memory()))
        .collect();
    assert_eq!(own, [true, false]);
}

#[test]
fn what_is_unknown_is_named_and_costs_no_neighbour() {
    let cleared = to_msgpack(&serde_json::json!(["AllBlocksCleared"]));
    let of = |event: serde_json::Value| {
        let (batch, faults) = decode(&batch_of(&[&to_msgpack(&event), &cleared]));
        assert_eq!(batch.events.len(), 1, "{event}");
        let [(reason, detail)] = <[_; 1]>::try_from(faults).unwrap();
        (reason, detail)
    };
    let (reason, detail) = of(serde_json::json!(["BlockMoved", [1]]));
    assert!(reason == Reason::UnknownKind && detail.contains("expected BlockStored"), "{detail}");
    let (reason, detail) = of(serde_json::json!("BlockStored"));
    assert!(
        reason == Reason::WrongType
            && detail.contains("expected an event as a map or as an array, found text")
    );
    let (reason, detail) = of(serde_json::json!({"type": "BlockStored", "block_hashes": [1, 2],
        "token_ids": [1, 2, 3], "block_size": 2}));
    assert!(reason == Reason::WrongType && detail.contains("token_ids: has fewer tokens"), "{detail}");
    let (reason, detail) =
        of(serde_json::json!({"type": "BlockStored", "block_hashes": [1], "token_ids": [],
        "block_size": 2}));
    assert!(reason == Reason::MissingField && detail.contains("token_ids: has no tokens"), "{detail}");
    let (_, detail) = of(serde_json::json!({"block_hashes": [1]}));
    assert!(detail.contains("type: is missing"), "{detail}");
    for batch in [&b"\xc0"[..], b"\x90", b"\x80", b"", b"\x92\x01\xdd\xff\xff\xff\xff", b"{}"] {
        assert_eq!(decode(batch).1.len(), 1, "{batch:?}");
    }
}

#[test]
fn a_block_costs_no_allocation_once_there_is_room() {
    let recorded = EngineRecording::of("vllm-0.32.0");
    // Text alone: what is rare may cost something.
    let payload = &recorded.live[0][2];
    let (mut batch, mut groups) = (EngineBatch::default(), CacheGroups::default());
    struct First;
    impl TokensHasher for First {
        fn begin(&mut self, _: Option<&str>, _: Option<&str>) {}
        fn block(&mut self, tokens: &[u32], _: &[&[u8]]) -> TokensHash {
            TokensHash(u64::from(tokens[0]))
        }
    }
    batch.decode(payload, &mut groups, &mut First).unwrap();
    assert!(batch.kv.blocks.len() > 5);
    let cost = allocation_counter::measure(|| batch.decode(payload, &mut groups, &mut First).unwrap());
    assert_eq!(cost.count_total, 0);
}
