//! Standalone KV indexers and how their indexes compare with the trees, one row a worker: the same in the API and in text.

use serde::Serialize;

use radixscope_model::id::{Decimal, Millis, Worker};
use radixscope_model::record::{IndexComparison, IndexedLoad, IndexedWorker};
use radixscope_state::cluster::{Cluster, IndexerState};

/// An indexer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct IndexerRow {
    /// Its address.
    pub name: String,
    /// When it was read last.
    pub read_ms: Millis,
    /// Readings until now.
    pub readings: u64,
    /// The workers that it lists or holds blocks of.
    pub workers: Vec<IndexedWorkerRow>,
    /// Workers that are left out.
    pub omitted_workers: u32,
}

/// A worker's rank in an index.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct IndexedWorkerRow {
    /// The indexer's id of the worker.
    pub instance_id: Decimal,
    /// Its rank.
    pub dp_rank: u32,
    /// Where the indexer listens to it; empty: not reported.
    pub endpoint: String,
    /// How that goes, by the indexer; empty: not reported.
    pub status: String,
    /// The same worker here; `null`: it is not listened to here.
    pub worker: Option<Worker>,
    /// Blocks in device memory by the index.
    pub blocks: u64,
    /// Against the tree here; `null`: it is not listened to here, or not known completely.
    pub compared: Option<IndexComparison>,
    /// What a selection service has reserved there; `null`: not reported, as by an indexer.
    pub load: Option<IndexedLoad>,
}

impl IndexerRow {
    /// All indexers, in the order in which they were first read.
    pub fn all(cluster: &Cluster) -> Vec<Self> {
        cluster.indexers().iter().map(|state| Self::of(cluster, state)).collect()
    }

    fn of(cluster: &Cluster, state: &IndexerState) -> Self {
        let IndexerState { report, read_ms, readings } = state;
        let worker = |of: &IndexedWorker| IndexedWorkerRow {
            instance_id: Decimal(of.instance_id),
            dp_rank: of.dp_rank,
            endpoint: of.endpoint.clone(),
            status: of.status.clone(),
            worker: of.worker.and_then(|ix| cluster.worker(ix)).map(|state| state.id),
            blocks: of.blocks,
            compared: of.compared,
            load: of.load,
        };
        Self {
            name: report.name.clone(),
            read_ms: *read_ms,
            readings: *readings,
            workers: report.workers.iter().map(worker).collect(),
            omitted_workers: report.omitted_workers,
        }
    }
}
