//! Memory: none once the scratch is warm, and never much more than the message takes itself.

use allocation_counter::measure;
use radixscope_dynamo::active_sequence;
use radixscope_dynamo::envelope::{Format, open};
use radixscope_dynamo::kv_event::{KvEvents, MAX_HASHES};
use radixscope_dynamo::subject;
use radixscope_model::record::Topic;

use crate::decoders::messages;
use crate::decoders::shapes::{SHAPES, both};

#[test]
fn a_warm_scratch_allocates_nothing() {
    let mut payloads: Vec<(Vec<u8>, Format)> =
        SHAPES.iter().take(3).flat_map(|(_, json)| both(json)).collect();
    for message in messages::real() {
        if subject::parse(&message.subject).unwrap().topic == Topic::KvEvents {
            let (payload, format) = open(&message.payload).unwrap().payload();
            payloads.push((payload.to_vec(), format));
        }
    }
    let mut events = KvEvents::default();
    let mut decode_all = || {
        for (payload, format) in &payloads {
            events.decode(payload, *format).unwrap();
        }
    };
    decode_all();
    assert_eq!(measure(decode_all).count_total, 0);
}

#[test]
fn opening_an_envelope_allocates_nothing() {
    let real = messages::real();
    let open_all = || {
        for message in &real {
            let body = open(&message.payload).unwrap();
            assert!(!body.payload().0.is_empty());
        }
    };
    assert_eq!(measure(open_all).count_total, 0);
}

/// `83 … "block_hashes": [1, 1, …]` claiming `claimed` hashes and holding `held`.
fn removed(claimed: u32, held: usize) -> Vec<u8> {
    let mut body =
        b"\x82\xa9worker_id\x01\xa5event\x82\xa8event_id\x00\xa4data\x81\xa7removed\x81\xacblock_hashes\xdd"
            .to_vec();
    body.extend(claimed.to_be_bytes());
    body.resize(body.len() + held, 1);
    body
}

#[test]
fn a_claimed_length_reserves_nothing() {
    let body = removed(u32::MAX, 3);
    let mut events = KvEvents::default();
    let used = measure(|| assert!(events.decode(&body, Format::MsgPack).is_err()));
    assert!(used.bytes_max < 4096, "{used:?}");

    let body = [b"\x81\xa6events\xdd".as_slice(), &u32::MAX.to_be_bytes(), b"\x80"].concat();
    let mut steps = Vec::new();
    let used = measure(|| assert!(active_sequence::decode(&body, Format::MsgPack, &mut steps).is_err()));
    assert!(used.bytes_max < 4096, "{used:?}");
}

#[test]
fn sixteen_mebibytes_of_hashes_of_one_byte_are_refused_in_bounded_memory() {
    let body = removed(16 << 20, 16 << 20);
    let mut events = KvEvents::default();
    let used = measure(|| {
        let faults = events.decode(&body, Format::MsgPack).unwrap_err();
        let detail = faults.to_string();
        assert!(
            detail.starts_with("kv-events: block_hashes: more than 2^20 blocks in a message"),
            "{detail}"
        );
    });
    assert!(events.removed.is_empty());
    // Two copies while the last doubling moves.
    assert!(used.bytes_max <= 2 * 8 * MAX_HASHES as u64 + 4096, "{used:?}");
}

#[test]
fn a_million_bad_events_cost_one_sample() {
    let count: u32 = 1 << 20;
    let mut body = vec![0xdd];
    body.extend(count.to_be_bytes());
    body.resize(body.len() + count as usize, 0xc0);
    let mut events = KvEvents::default();
    let used = measure(|| {
        let faults = events.decode(&body, Format::MsgPack).unwrap_err();
        assert_eq!((faults.total(), faults.iter().count()), (u64::from(count), 1));
    });
    assert!(used.bytes_max < 4096, "{used:?}");
}
