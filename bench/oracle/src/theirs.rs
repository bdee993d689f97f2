//! Dynamo's `RadixTree` and the decoding in front of it, with the benchmark's interface.

use dynamo_kv_router::RadixTree;
use dynamo_kv_router::protocols::{
    ExternalSequenceBlockHash, KvCacheEvent, KvCacheEventData, KvCacheRemoveData, KvCacheStoreData,
    KvCacheStoredBlockData, LocalBlockHash, RouterEvent, WorkerWithDpRank,
};
use radixscope_model::id::Worker;

use crate::{Change, Event};
use radixscope_captures::Message;

/// The event as Dynamo's types have it. A worker's index is its id.
pub fn router_event(event: &Event, event_id: u64) -> RouterEvent {
    let data = match &event.change {
        Change::Stored { parent, blocks } => KvCacheEventData::Stored(KvCacheStoreData {
            parent_hash: parent.map(ExternalSequenceBlockHash),
            start_position: None,
            blocks: blocks.iter().map(|&(hash, tokens)| stored_block(hash, tokens)).collect(),
        }),
        Change::Removed(hashes) => KvCacheEventData::Removed(KvCacheRemoveData {
            block_hashes: hashes.iter().copied().map(ExternalSequenceBlockHash).collect(),
        }),
        Change::Cleared => KvCacheEventData::Cleared,
    };
    RouterEvent::new(u64::from(event.worker), KvCacheEvent { event_id, data, dp_rank: 0 })
}

fn stored_block(hash: u64, tokens: u64) -> KvCacheStoredBlockData {
    KvCacheStoredBlockData {
        block_hash: ExternalSequenceBlockHash(hash),
        tokens_hash: LocalBlockHash(tokens),
        mm_extra_info: None,
    }
}

/// Overlap of `prompt` with `worker` by Dynamo's tree, in blocks.
pub fn overlap(tree: &RadixTree, prompt: &[u64], workers: &[Worker]) -> Vec<u32> {
    let prompt = prompt.iter().copied().map(LocalBlockHash).collect();
    let scores = tree.find_matches(prompt, false).scores;
    let score = |w: &Worker| scores.get(&WorkerWithDpRank::new(w.id.0, w.dp_rank)).copied().unwrap_or(0);
    workers.iter().map(score).collect()
}

/// The envelope of the event plane, as far as its payload is concerned; borrowed, so that it costs as little as it
/// can.
#[derive(serde::Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    payload: &'a serde_bytes::Bytes,
}

/// What a message of a capture is, as Dynamo's own types are decoded from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wire {
    /// JSON of one event (0.9, JetStream).
    Json,
    /// One event in an envelope (0.9, local indexer).
    Enveloped,
    /// A batch of events in an envelope (from 1.4 on).
    Batches,
}

/// Finds out how a capture's KV events are written.
pub fn wire_of(messages: &[Message]) -> Option<Wire> {
    let first = &messages.first()?.payload;
    if first.first() == Some(&b'{') {
        return Some(Wire::Json);
    }
    let envelope: Envelope<'_> = rmp_serde::from_slice(first).ok()?;
    let is_array = matches!(envelope.payload.first(), Some(0x90..=0x9f | 0xdc | 0xdd));
    Some(if is_array { Wire::Batches } else { Wire::Enveloped })
}

/// Decodes a message into Dynamo's own types and hands over each event.
pub fn decode(wire: Wire, payload: &[u8], mut each: impl FnMut(RouterEvent)) -> anyhow::Result<()> {
    if wire == Wire::Json {
        each(serde_json::from_slice(payload)?);
        return Ok(());
    }
    let envelope: Envelope<'_> = rmp_serde::from_slice(payload)?;
    if wire == Wire::Enveloped {
        each(rmp_serde::from_slice(envelope.payload)?);
    } else {
        let batch: Vec<RouterEvent> = rmp_serde::from_slice(envelope.payload)?;
        batch.into_iter().for_each(each);
    }
    Ok(())
}

/// The event in our terms; the worker's id must be an index.
pub fn event(event: &RouterEvent) -> Event {
    let change = match &event.event.data {
        KvCacheEventData::Stored(stored) => Change::Stored {
            parent: stored.parent_hash.map(|hash| hash.0),
            blocks: stored.blocks.iter().map(|b| (b.block_hash.0, b.tokens_hash.0)).collect(),
        },
        KvCacheEventData::Removed(removed) => {
            Change::Removed(removed.block_hashes.iter().map(|hash| hash.0).collect())
        }
        KvCacheEventData::Cleared => Change::Cleared,
    };
    Event { worker: event.worker_id as u16, change }
}
