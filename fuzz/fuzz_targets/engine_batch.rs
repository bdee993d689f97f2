//! What engines publish of their KV caches themselves: batches, and the frames around them. Every block that is read is counted, and what is
//! read does not take much more memory than was sent.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::engine::{
    CacheGroups, EngineBatch, EngineEvent, TokensHasher, open_live, open_replay,
};
use radixscope_dynamo::kv_event::KvData;
use radixscope_dynamo::zmtp::{Inbound, Unit};
use radixscope_model::id::TokensHash;

struct Sums;

impl TokensHasher for Sums {
    fn begin(&mut self, _: Option<&str>, _: Option<&str>) {}

    fn block(&mut self, tokens: &[u32], multimodal: &[&[u8]]) -> TokensHash {
        let bytes = multimodal.iter().map(|name| name.len() as u64).sum::<u64>();
        TokensHash(tokens.iter().fold(bytes, |sum, &token| sum.wrapping_add(token.into())))
    }
}

fn decode(payload: &[u8]) {
    let (mut batch, mut groups) = (EngineBatch::default(), CacheGroups::default());
    // The same bytes again: what is kept from one batch for the next must not show.
    for _ in 0..2 {
        let _ = batch.decode(payload, &mut groups, &mut Sums);
        assert!(batch.kv.blocks.len() + batch.kv.removed.len() <= payload.len());
        for event in &batch.events {
            match event {
                EngineEvent::Kv(event) => match &event.data {
                    KvData::Stored { blocks, .. } => {
                        assert_eq!(batch.kv.blocks_of(blocks).len(), blocks.len());
                    }
                    KvData::Removed { hashes } => {
                        assert_eq!(batch.kv.removed_of(hashes).len(), hashes.len());
                    }
                    KvData::Cleared => {}
                },
                EngineEvent::Copied { hashes, .. } => {
                    assert_eq!(batch.kv.removed_of(hashes).len(), hashes.len());
                }
            }
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    decode(bytes);
    let mut inbound = Inbound::default();
    inbound.room().extend_from_slice(bytes);
    while let Ok(Some(unit)) = inbound.next() {
        if let Unit::Message(frames) = unit {
            let _ = open_replay(frames);
            if let Ok(message) = open_live(frames) {
                decode(message.payload);
            }
        }
    }
});
