//! Events written exactly as Dynamo writes them take a short way through the decoder: it must lead to the same place
//! as the long one, which anything else takes.

use proptest::prelude::*;
use radixscope_dynamo::envelope::Format;
use radixscope_dynamo::kv_event::KvEvents;

/// One event as JSON; `space` after each comma and colon sends it the long way.
fn json(event: &Plain, space: &str) -> String {
    let (worker, id, parent, blocks, rank, is_store) = event;
    let parent = parent.map_or("null".to_owned(), |p| p.to_string());
    let data = if *is_store {
        let block = |(b, t): &(u64, u64)| {
            format!(r#"{{"block_hash":{space}{b},{space}"tokens_hash":{t},"mm_extra_info":null}}"#)
        };
        let blocks: Vec<String> = blocks.iter().map(block).collect();
        format!(
            r#"{{"stored":{{"parent_hash":{parent},{space}"blocks":[{}]}}}}"#,
            blocks.join(&format!(",{space}"))
        )
    } else {
        let hashes: Vec<String> = blocks.iter().map(|b| format!("{}{space}", b.0)).collect();
        format!(r#"{{"removed":{{"block_hashes":{space}[{}]}}}}"#, hashes.join(","))
    };
    format!(
        r#"{{"worker_id":{space}{worker},"event":{{"event_id":{id},"data":{data},"dp_rank":{rank}}}}}{space}"#
    )
}

/// Worker, event id, parent, blocks, rank, and whether they are stored (or removed).
type Plain = (u64, u64, Option<u64>, Vec<(u64, u64)>, u32, bool);

fn event() -> impl Strategy<Value = Plain> {
    let number = || prop_oneof![0u64..300, any::<u64>()];
    let blocks = proptest::collection::vec((number(), number()), 0..6);
    (number(), number(), proptest::option::of(number()), blocks, any::<u32>(), any::<bool>())
}

/// The same value as MessagePack, from the JSON. `is_ordered`: fields as Dynamo orders them, else by the alphabet.
fn msgpack(json: &str, is_batch: bool, is_ordered: bool) -> Vec<u8> {
    let value: serde_json::Value = serde_json::from_str(json).unwrap();
    let mut out = Vec::new();
    if is_batch {
        out.push(0x91);
    }
    write(&mut out, &value, is_batch, is_ordered);
    out
}

const ORDER: [&str; 12] = [
    "worker_id",
    "storage_tier",
    "residency_domain",
    "event",
    "event_id",
    "data",
    "dp_rank",
    "parent_hash",
    "start_position",
    "blocks",
    "block_hash",
    "tokens_hash",
];

fn write(out: &mut Vec<u8>, value: &serde_json::Value, is_batch: bool, is_ordered: bool) {
    use serde_json::Value::*;
    match value {
        Null => out.push(0xc0),
        Number(n) => out.extend(rmp_serde::to_vec(&n.as_u64().unwrap()).unwrap()),
        String(s) => out.extend(rmp_serde::to_vec(s).unwrap()),
        Array(items) => {
            out.push(0x90 | items.len() as u8);
            items.iter().for_each(|item| write(out, item, is_batch, is_ordered));
        }
        Object(fields) => {
            let mut fields = fields.clone();
            if is_batch && fields.contains_key("worker_id") {
                fields.insert("storage_tier".into(), "device".into());
                fields.insert("residency_domain".into(), "worker".into());
            }
            if is_batch && fields.contains_key("parent_hash") {
                fields.insert("start_position".into(), 7.into());
            }
            let mut keys: Vec<_> = fields.keys().cloned().collect();
            keys.sort();
            if is_ordered {
                let place =
                    |key: &std::string::String| ORDER.iter().position(|o| o == key).unwrap_or(ORDER.len());
                keys.sort_by_key(place);
            }
            out.push(0x80 | keys.len() as u8);
            for key in keys {
                out.extend(rmp_serde::to_vec(&key).unwrap());
                write(out, &fields[&key], is_batch, is_ordered);
            }
        }
        other => panic!("{other} is in no event"),
    }
}

fn decoded(bytes: &[u8], format: Format) -> (bool, KvEvents) {
    let mut events = KvEvents::default();
    let understood = events.decode(bytes, format).is_ok();
    (understood, events)
}

fn assert_same(one: &(bool, KvEvents), other: &(bool, KvEvents)) {
    assert_eq!(one.0, other.0);
    assert_eq!(one.1.events, other.1.events);
    assert_eq!(one.1.blocks, other.1.blocks);
    assert_eq!(one.1.removed, other.1.removed);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn json_as_dynamo_writes_it_reads_as_json_with_spaces(event in event()) {
        let plain = decoded(json(&event, "").as_bytes(), Format::Json);
        prop_assert!(plain.0 && plain.1.events.len() == 1);
        assert_same(&plain, &decoded(json(&event, " ").as_bytes(), Format::Json));
    }

    #[test]
    fn messagepack_in_dynamos_order_reads_as_in_any_other(event in event(), is_batch in any::<bool>()) {
        let json = json(&event, "");
        let plain = decoded(&msgpack(&json, is_batch, true), Format::MsgPack);
        prop_assert!(plain.0 && plain.1.events.len() == 1);
        assert_same(&plain, &decoded(&msgpack(&json, is_batch, false), Format::MsgPack));
    }

    #[test]
    fn a_damaged_event_is_read_alike_with_and_without_spaces_in_front(
        event in event(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut bytes = json(&event, "").into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        // A space in front sends the whole event the long way.
        let spaced = [b" ".as_slice(), &bytes].concat();
        assert_same(&decoded(&bytes, Format::Json), &decoded(&spaced, Format::Json));
    }
}
