//! What a test shows: a handful of records, folded by the page as frames of a server are.

use std::ops::RangeInclusive;

use radixscope_model::frame::{BatchWriter, Bytes, Frame};
use radixscope_model::id::{BlockHash, Millis, Seq, TokensHash, Worker, WorkerIx};
use radixscope_model::record::{Block, Entry, Record};
use radixscope_state::cluster::Cluster;

use crate::store::Store;

/// When the state begins.
pub(super) const START: Millis = Millis(1_767_225_600_000);
/// From one batch to the next.
const STEP_MS: u64 = 1_000;

/// Sends frames into a store, and keeps them: they are also what a server would retain.
pub(super) struct Feed {
    store: Store,
    cluster: Cluster,
    writer: BatchWriter,
    now: Millis,
    frames: Vec<Vec<u8>>,
}

impl Feed {
    /// A state with so many workers that hold nothing.
    pub(super) fn begin(store: Store, workers: u32) -> Self {
        let mut cluster = Cluster::default();
        for slot in 0..workers {
            let record = new_worker(slot);
            cluster.fold(Seq(u64::from(slot) + 1), &Entry { at_ms: START, record });
        }
        let seq = cluster.seq();
        let hello = Frame::Hello { epoch: 7, seq, at_ms: START, server: "test".into() };
        let mut frames = vec![hello.encode().unwrap()];
        let mut parts = Vec::new();
        cluster.snapshot(|part| parts.push(part)).unwrap();
        for (part, bytes) in (0..).zip(&parts) {
            let frame = Frame::Snapshot { seq, part, parts: parts.len() as u32, bytes: Bytes(bytes) };
            frames.push(frame.encode().unwrap());
        }
        frames.iter().for_each(|frame| store.apply_frame(frame).unwrap());
        Self { store, cluster, writer: BatchWriter::new(Seq(seq.0 + 1)), now: START, frames }
    }

    /// Two workers and two prompts: worker 0 and worker 1 share the first four blocks of one and go on each in its own way, worker 0
    /// has the other to itself. 22 distinct blocks, 12 deep.
    pub(super) fn two_prompts(store: Store) -> Self {
        let mut feed = Self::begin(store, 2);
        feed.send([
            stored(0, None, 1..=4),
            stored(1, None, 1..=4),
            stored(0, Some(4), 10..=15),
            stored(1, Some(4), 20..=27),
            stored(0, None, 40..=43),
        ]);
        feed
    }

    /// A second passes, and these come in one batch.
    pub(super) fn send(&mut self, records: impl IntoIterator<Item = Record<'static>>) {
        self.now = Millis(self.now.0 + STEP_MS);
        for record in records {
            let entry = Entry { at_ms: self.now, record };
            self.writer.push(&entry).unwrap();
            self.cluster.fold(Seq(self.cluster.seq().0 + 1), &entry);
        }
        let frame = self.writer.finish(self.now, None).unwrap();
        self.store.apply_frame(&frame).unwrap();
        self.frames.push(frame);
    }

    /// The time of the last batch.
    pub(super) fn now(&self) -> Millis {
        self.now
    }

    /// All of it as a server gives what it retained.
    pub(super) fn retained(&self) -> Vec<u8> {
        self.frames
            .iter()
            .flat_map(|frame| [&(frame.len() as u32).to_le_bytes(), frame.as_slice()].concat())
            .collect()
    }
}

/// The worker of a slot is seen.
pub(super) fn new_worker(slot: u32) -> Record<'static> {
    Record::new_worker(WorkerIx(slot), worker(slot), "dynamo", "backend")
}

/// Who that is.
pub(super) fn worker(slot: u32) -> Worker {
    Worker::new(u64::from(slot) + 0x1000, 0)
}

/// A worker stores a run of blocks.
pub(super) fn stored(slot: u32, parent: Option<u64>, hashes: RangeInclusive<u64>) -> Record<'static> {
    let block = |hash| Block { block_hash: BlockHash(hash), tokens_hash: TokensHash(hash) };
    Record::Stored {
        worker: WorkerIx(slot),
        parent: parent.map(BlockHash),
        blocks: hashes.map(block).collect(),
    }
}

/// A worker drops blocks.
pub(super) fn removed(slot: u32, hashes: RangeInclusive<u64>) -> Record<'static> {
    Record::Removed { worker: WorkerIx(slot), hashes: hashes.map(BlockHash).collect() }
}
