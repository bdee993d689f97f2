//! Indexes that standalone KV indexers keep of the same engines, against the trees here, reading after reading. An index is read a little
//! before or after the events that both receive, so that only blocks that differ in two readings in a row count as differing for good.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::scrape::shortened;
use super::{Context, Ingest, Sink};
use radixscope_dynamo::indexer::{Index, Listener};
use radixscope_model::id::{BlockHash, Worker, WorkerIx};
use radixscope_model::record::{IndexComparison, IndexedWorker, IndexerReport, MAX_INDEXED_WORKERS, Record};
use radixscope_state::cluster::{Cluster, MAX_INDEXERS};

/// Most blocks of a worker and side whose names are retained until the next reading: beyond it fewer are found to differ twice.
const MAX_RETAINED: usize = 1 << 16;

/// What differed at the last reading of each indexer.
#[derive(Default)]
pub(super) struct Indexers {
    read: BTreeMap<String, BTreeMap<Worker, Differing>>,
}

/// Blocks of a worker that only one side holds, sorted.
#[derive(Default, PartialEq, Debug)]
struct Differing {
    index_only: Vec<BlockHash>,
    tree_only: Vec<BlockHash>,
}

impl Indexers {
    /// Takes a reading. `None`: of one indexer too many.
    fn read(&mut self, name: &str, index: &Index, cluster: &Cluster) -> Option<IndexerReport> {
        if !self.read.contains_key(name) && self.read.len() == MAX_INDEXERS {
            return None;
        }
        let before = self.read.entry(name.to_owned()).or_default();
        let names = Names::of(cluster);
        let mut now = BTreeMap::new();
        let mut workers = Vec::new();
        // Those that it holds blocks of may be listed no more.
        let mut all: Vec<Worker> = index.listeners.keys().chain(index.blocks.keys()).copied().collect();
        all.sort_unstable();
        all.dedup();
        for &of in all.iter().take(MAX_INDEXED_WORKERS) {
            let Listener { endpoint, status } = index.listeners.get(&of).cloned().unwrap_or_default();
            let blocks = index.blocks.get(&of).map_or(&[][..], Vec::as_slice);
            let worker = names.find(&endpoint, of);
            let is_known = |&worker: &WorkerIx| {
                cluster.worker(worker).is_some_and(|state| state.knowledge.is_complete())
            };
            let compared = worker.filter(is_known).map(|worker| {
                let differing = Differing::between(blocks, worker, cluster);
                let compared = differing.compare(blocks.len(), before.get(&of));
                now.insert(of, differing.retained());
                compared
            });
            workers.push(IndexedWorker {
                instance_id: of.id.0,
                dp_rank: of.dp_rank,
                endpoint,
                status,
                worker,
                blocks: blocks.len() as u64,
                compared,
            });
        }
        *before = now;
        let omitted_workers = all.len().saturating_sub(MAX_INDEXED_WORKERS) as u32;
        Some(IndexerReport { name: name.to_owned(), workers, omitted_workers })
    }
}

impl Differing {
    fn between(index: &[BlockHash], worker: WorkerIx, cluster: &Cluster) -> Self {
        let slot = worker.slot();
        let Some(pool) = cluster.pool_of(worker) else { return Self::default() };
        let tree = cluster.tree(pool);
        let not_in_tree = index.iter().filter(|&&name| tree.find(slot, name).is_none());
        let index_only: Vec<BlockHash> = not_in_tree.copied().collect();
        let holdings = tree.holdings(slot);
        let same = (index.len() - index_only.len()) as u64;
        // Finding out which they are takes a walk over the tree.
        if holdings.resident + holdings.further == same {
            return Self { index_only, tree_only: Vec::new() };
        }
        let mut tree_only = tree.names_of(slot);
        tree_only.retain(|name| index.binary_search(name).is_err());
        tree_only.sort_unstable();
        Self { index_only, tree_only }
    }

    /// The counts, with what differed `before` as it does now.
    fn compare(&self, index_blocks: usize, before: Option<&Self>) -> IndexComparison {
        let twice = |now: &[BlockHash], before: &[BlockHash]| {
            now.iter().filter(|name| before.binary_search(name).is_ok()).count() as u64
        };
        IndexComparison {
            same_blocks: (index_blocks - self.index_only.len()) as u64,
            index_only_blocks: self.index_only.len() as u64,
            tree_only_blocks: self.tree_only.len() as u64,
            index_only_twice_blocks: before.map_or(0, |of| twice(&self.index_only, &of.index_only)),
            tree_only_twice_blocks: before.map_or(0, |of| twice(&self.tree_only, &of.tree_only)),
        }
    }

    fn retained(mut self) -> Self {
        for names in [&mut self.index_only, &mut self.tree_only] {
            names.truncate(MAX_RETAINED);
            names.shrink_to_fit();
        }
        self
    }
}

/// Workers that are there, by where they publish and by id.
struct Names<'c> {
    by_endpoint: HashMap<&'c str, WorkerIx>,
    by_id: HashMap<Worker, WorkerIx>,
}

impl<'c> Names<'c> {
    fn of(cluster: &'c Cluster) -> Self {
        let is_there = |ix: WorkerIx| cluster.worker(ix).is_some_and(|state| state.departure.is_none());
        // Of an engine in a pod the name goes on behind the address.
        let address = |name: &'c str| name.split(' ').next().unwrap_or_default();
        let engines = cluster.engines().iter();
        let by_endpoint = engines.filter_map(|feed| Some((address(&feed.name), feed.worker?)));
        let present = cluster.workers().indexed().filter(|&(ix, _)| is_there(ix));
        Self {
            by_endpoint: by_endpoint.filter(|&(_, ix)| is_there(ix)).collect(),
            by_id: present.map(|(ix, state)| (state.id, ix)).collect(),
        }
    }

    /// By its endpoint; else it may be one of Dynamo's, whose ids are the same everywhere.
    fn find(&self, endpoint: &str, of: Worker) -> Option<WorkerIx> {
        self.by_endpoint.get(endpoint).or_else(|| self.by_id.get(&of)).copied()
    }
}

impl Ingest {
    pub(super) fn indexer(&mut self, context: &Context<'_>, name: &str, index: &Index, out: &mut dyn Sink) {
        if let Some(report) = self.indexers.read(shortened(name), index, out.cluster()) {
            out.record(context.entry(Record::Indexer(Box::new(report))));
        }
    }
}
