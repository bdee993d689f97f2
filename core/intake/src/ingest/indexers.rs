//! Indexes that standalone KV indexers keep of the same engines, against the trees here, reading after reading. An index is read a little
//! before or after the events that both receive, so that only blocks that differ in two readings in a row count as differing for good.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};

use super::scrape::shortened;
use super::{Context, Ingest, Sink};
use radixscope_dynamo::indexer::{Index, Listener};
use radixscope_model::id::{BlockHash, PoolIx, Slot, Worker, WorkerIx};
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
        // Those that it holds blocks of may be listed no more.
        let mut all: Vec<Worker> = index.listeners.keys().chain(index.blocks.keys()).copied().collect();
        all.sort_unstable();
        all.dedup();
        let omitted_workers = all.len().saturating_sub(MAX_INDEXED_WORKERS) as u32;
        all.truncate(MAX_INDEXED_WORKERS);
        let blocks = |of: &Worker| index.blocks.get(of).map_or(&[][..], Vec::as_slice);
        let indexed = |of: &Worker| {
            let Listener { endpoint, status, .. } = index.listeners.get(of).cloned().unwrap_or_default();
            IndexedWorker {
                instance_id: of.id.0,
                dp_rank: of.dp_rank,
                worker: names.find(&endpoint, *of),
                endpoint,
                status,
                blocks: blocks(of).len() as u64,
                compared: None,
                load: index.loads.get(of).copied(),
            }
        };
        let mut workers: Vec<IndexedWorker> = all.iter().map(indexed).collect();
        let is_known =
            |worker: &WorkerIx| cluster.worker(*worker).is_some_and(|state| state.knowledge.is_complete());
        // An engine that is listed again is compared once, so that no more names are held than the tree and the index have.
        let mut compared = HashSet::new();
        let known = all
            .iter()
            .zip(&workers)
            .filter(|(_, indexed)| indexed.worker.is_none_or(|worker| compared.insert(worker)))
            .filter_map(|(of, indexed)| Some((*of, indexed.worker.filter(is_known)?, blocks(of))));
        let mut now = Differing::of_all(known, cluster);
        for (of, indexed) in all.iter().zip(&mut workers) {
            indexed.compared = now.get(of).map(|differing| differing.compare(indexed.blocks, before.get(of)));
        }
        now.values_mut().for_each(Differing::retain);
        *before = now;
        Some(IndexerReport { name: name.to_owned(), workers, omitted_workers })
    }
}

/// Workers of an index and their blocks in it, by who they are here.
type IndexedBlocks<'i> = HashMap<Slot, (Worker, &'i [BlockHash])>;

impl Differing {
    /// Of workers with their blocks in the index.
    fn of_all<'i>(
        known: impl Iterator<Item = (Worker, WorkerIx, &'i [BlockHash])>,
        cluster: &Cluster,
    ) -> BTreeMap<Worker, Self> {
        let mut all: BTreeMap<Worker, Self> = BTreeMap::new();
        // Those of which the tree has more: which blocks these are takes a walk over it, one for all workers of a pool.
        let mut more: BTreeMap<PoolIx, IndexedBlocks<'_>> = BTreeMap::new();
        for (id, worker, index) in known {
            let Some(pool) = cluster.pool_of(worker) else { continue };
            let (tree, slot) = (cluster.tree(pool), worker.slot());
            let not_in_tree = index.iter().filter(|&&name| tree.find(slot, name).is_none());
            let index_only: Vec<BlockHash> = not_in_tree.copied().collect();
            let holdings = tree.holdings(slot);
            if holdings.resident + holdings.further > (index.len() - index_only.len()) as u64 {
                more.entry(pool).or_default().insert(slot, (id, index));
            }
            all.insert(id, Self { index_only, tree_only: Vec::new() });
        }
        for (pool, workers) in more {
            let slots: Vec<Slot> = workers.keys().copied().collect();
            cluster.tree(pool).names_of_all(&slots, |slot, name| {
                if let Some((id, index)) = workers.get(&slot)
                    && index.binary_search(&name).is_err()
                    && let Some(of) = all.get_mut(id)
                {
                    of.tree_only.push(name);
                }
            });
        }
        all.values_mut().for_each(|of| of.tree_only.sort_unstable());
        all
    }

    /// The counts, with what differed `before` as it does now.
    fn compare(&self, index_blocks: u64, before: Option<&Self>) -> IndexComparison {
        let twice = |now: &[BlockHash], before: &[BlockHash]| {
            now.iter().filter(|name| before.binary_search(name).is_ok()).count() as u64
        };
        IndexComparison {
            same_blocks: index_blocks - self.index_only.len() as u64,
            index_only_blocks: self.index_only.len() as u64,
            tree_only_blocks: self.tree_only.len() as u64,
            index_only_twice_blocks: before.map_or(0, |of| twice(&self.index_only, &of.index_only)),
            tree_only_twice_blocks: before.map_or(0, |of| twice(&self.tree_only, &of.tree_only)),
        }
    }

    /// Keeps what the next reading is compared with.
    fn retain(&mut self) {
        for names in [&mut self.index_only, &mut self.tree_only] {
            names.truncate(MAX_RETAINED);
            names.shrink_to_fit();
        }
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
