//! Events in the bytes of Dynamo from 1.4 on: batches in the envelope of the event plane (reference §2.3, §2.4).

use radixscope_model::record::Block;
use radixscope_tests::envelope::envelope;
use serde::Serialize;

use super::{Change, Event};

/// Subject of the workers' events.
pub const SUBJECT: &str = "namespace.dynamo.component.backend.endpoint.generate.kv-events";
/// Largest batch that Dynamo makes (reference §2.3).
const BATCH_EVENTS: usize = 128;
const BATCH_BLOCKS: usize = 8_192;
/// Ids as discovery hands them out, far above what a JavaScript number holds.
const FIRST_WORKER: u64 = 7_668_682_361_203_420_160;
/// Ids of publishers are others, of 53 bits.
const FIRST_PUBLISHER: u64 = 1_950_000_000_000_000;

/// A worker's id.
pub fn worker_id(worker: u16) -> u64 {
    FIRST_WORKER + 6 * u64::from(worker)
}

/// The publishers of all workers: they number events and messages.
pub struct Wire {
    lines: Vec<Line>,
}

#[derive(Default)]
struct Line {
    waiting: Vec<Event>,
    waiting_blocks: usize,
    events: u64,
    messages: u64,
}

impl Wire {
    /// For workers numbered from 0.
    pub fn new(workers: u16) -> Self {
        Self { lines: (0..workers).map(|_| Line::default()).collect() }
    }

    /// Takes an event; gives the message that it would not fit into any more, if there is such.
    pub fn take(&mut self, event: Event) -> Option<Vec<u8>> {
        let worker = event.worker;
        let blocks = match &event.change {
            Change::Stored { blocks, .. } => blocks.len(),
            Change::Removed(hashes) => hashes.len(),
        };
        let line = &mut self.lines[usize::from(worker)];
        let is_full = line.waiting.len() == BATCH_EVENTS || line.waiting_blocks + blocks > BATCH_BLOCKS;
        let message = if is_full { self.message(worker) } else { None };
        let line = &mut self.lines[usize::from(worker)];
        line.waiting_blocks += blocks;
        line.waiting.push(event);
        message
    }

    /// What waits, a message for each worker that has something to tell.
    pub fn flush(&mut self) -> Vec<Vec<u8>> {
        (0..self.lines.len() as u16).filter_map(|worker| self.message(worker)).collect()
    }

    fn message(&mut self, worker: u16) -> Option<Vec<u8>> {
        let line = &mut self.lines[usize::from(worker)];
        if line.waiting.is_empty() {
            return None;
        }
        line.waiting_blocks = 0;
        let events: Vec<RouterEvent> = (line.waiting.iter())
            .map(|event| {
                // Ids count from 1 without a hole.
                line.events += 1;
                RouterEvent::new(worker_id(worker), line.events, &event.change)
            })
            .collect();
        let message = envelope(FIRST_PUBLISHER + u64::from(worker), line.messages, "kv-events", &events);
        line.messages += 1;
        line.waiting.clear();
        Some(message)
    }
}

fn data(change: &Change) -> Data {
    match change {
        Change::Stored { parent, blocks } => Data::Stored {
            parent_hash: parent.map(|hash| hash.0),
            start_position: None,
            blocks: blocks.iter().map(stored_block).collect(),
        },
        Change::Removed(hashes) => Data::Removed { block_hashes: hashes.iter().map(|hash| hash.0).collect() },
    }
}

fn stored_block(block: &Block) -> StoredBlock {
    StoredBlock { block_hash: block.block_hash.0, tokens_hash: block.tokens_hash.0, mm_extra_info: None }
}

/// An event as Dynamo 1.6 writes it: what it encodes depends on the order of its fields.
#[derive(Serialize)]
pub struct RouterEvent {
    worker_id: u64,
    storage_tier: &'static str,
    residency_domain: &'static str,
    event: KvCacheEvent,
}

impl RouterEvent {
    /// What a worker did to its device's blocks.
    pub fn new(worker_id: u64, event_id: u64, change: &Change) -> Self {
        Self {
            worker_id,
            storage_tier: "device",
            residency_domain: "worker",
            event: KvCacheEvent { event_id, data: data(change), dp_rank: 0 },
        }
    }
}

#[derive(Serialize)]
struct KvCacheEvent {
    event_id: u64,
    data: Data,
    dp_rank: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Data {
    Stored { parent_hash: Option<u64>, start_position: Option<u32>, blocks: Vec<StoredBlock> },
    Removed { block_hashes: Vec<u64> },
}

#[derive(Serialize)]
struct StoredBlock {
    block_hash: u64,
    tokens_hash: u64,
    mm_extra_info: Option<()>,
}
