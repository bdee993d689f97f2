//! An item of a worker's response, after a byte that says in which codec.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::kv_event::KvData;
use radixscope_dynamo::request_plane::Codec;
use radixscope_dynamo::tree_query::{MAX_TREE_HASHES, TreeResponse, decode_response};
use radixscope_fuzz::check_error;
use radixscope_model::id::Worker;

/// Of the seeds, so that their responses are read to the end.
const SEEDED: [Worker; 3] =
    [Worker::new(5_671_409_806_691_607_721, 0), Worker::new(7_668_682_384_990_368_006, 0), Worker::new(7, 0)];

fuzz_target!(|input: &[u8]| {
    let Some((codec, item)) = input.split_first() else { return };
    let codec = if codec & 1 == 0 { Codec::Json } else { Codec::MsgPack };
    for asked in SEEDED {
        let events = match decode_response(item, codec, asked) {
            Ok(Some(TreeResponse::TreeDump { events, .. } | TreeResponse::Events { events, .. })) => events,
            Ok(Some(TreeResponse::Error { message, .. } | TreeResponse::TreeDumpFailed { message })) => {
                assert!(message.chars().count() <= 300);
                continue;
            }
            Ok(_) => continue,
            Err(error) => {
                check_error(&error);
                continue;
            }
        };
        assert!(events.events.len() + events.blocks.len() + events.removed.len() <= MAX_TREE_HASHES + 1);
        for event in &events.events {
            assert_eq!(event.worker, asked);
            match &event.data {
                KvData::Stored { blocks, .. } => assert_eq!(events.blocks_of(blocks).len(), blocks.len()),
                KvData::Removed { hashes } => assert_eq!(events.removed_of(hashes).len(), hashes.len()),
                KvData::Cleared => {}
            }
        }
    }
});
