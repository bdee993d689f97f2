//! What a standalone KV indexer holds: an index of the same engines' blocks that another process keeps, compared with the trees here.

use serde::{Deserialize, Serialize};

use crate::id::WorkerIx;

/// Most workers that are recorded of an indexer.
pub const MAX_INDEXED_WORKERS: usize = 4_096;

/// The index of one indexer (`dynamo.indexer`), as it was read last; replaces what was recorded of the same name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IndexerReport {
    /// Its address.
    pub name: String,
    /// The workers that it lists or holds blocks of, by id and rank; at most [`MAX_INDEXED_WORKERS`].
    pub workers: Vec<IndexedWorker>,
    /// Workers beyond that.
    pub omitted_workers: u32,
}

/// One data-parallel rank of a worker in an index.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IndexedWorker {
    /// The indexer's id of the worker.
    pub instance_id: u64,
    /// Its rank.
    pub dp_rank: u32,
    /// Where the indexer listens to it; empty: not reported.
    pub endpoint: String,
    /// How the indexer says that this goes (`active`, `pending`, `paused`, `failed`); empty: not reported.
    pub status: String,
    /// The worker here. `None`: it is not listened to here.
    pub worker: Option<WorkerIx>,
    /// Blocks in device memory by the index.
    pub blocks: u64,
    /// What comparing them with the tree here gave. `None`: it is not listened to here, or what it holds is not known completely.
    pub compared: Option<IndexComparison>,
    /// What runs there by the count of a selection service. `None`: not reported, as by an indexer.
    pub load: Option<IndexedLoad>,
}

/// What a selection service has reserved on a worker's rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct IndexedLoad {
    /// Prompt tokens that are not computed yet.
    pub prefill_tokens: u64,
    /// Blocks of running requests.
    pub decode_blocks: u64,
    /// Running requests.
    pub requests: u64,
}

/// An index against the tree: counts of a worker's blocks in device memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct IndexComparison {
    /// In both.
    pub same_blocks: u64,
    /// In the index alone.
    pub index_only_blocks: u64,
    /// In the tree alone.
    pub tree_only_blocks: u64,
    /// Of those in the index alone, the ones that were there alone at the reading before, too: events on their way cannot explain them.
    pub index_only_twice_blocks: u64,
    /// The same of those in the tree alone.
    pub tree_only_twice_blocks: u64,
}

impl IndexComparison {
    /// Blocks that differed in two readings in a row.
    pub const fn lasting_blocks(&self) -> u64 {
        self.index_only_twice_blocks + self.tree_only_twice_blocks
    }
}
