//! Standalone KV indexers, whose indexes are compared with the trees.

use serde::{Deserialize, Serialize};

use super::Cluster;
use radixscope_model::id::Millis;
use radixscope_model::record::IndexerReport;

/// Most indexers that are kept.
pub const MAX_INDEXERS: usize = 16;

/// What an indexer held when it was read last.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IndexerState {
    /// What it held.
    pub report: IndexerReport,
    /// When that was.
    pub read_ms: Millis,
    /// Readings until now.
    pub readings: u64,
}

impl Cluster {
    /// Indexers, in the order in which they were first read.
    pub fn indexers(&self) -> &[IndexerState] {
        &self.head.indexers
    }

    pub(super) fn fold_indexer(&mut self, at: Millis, report: &IndexerReport) {
        let workers = &self.head.workers;
        let mut report = report.clone();
        for of in &mut report.workers {
            of.worker = of.worker.filter(|&worker| workers.get(worker).is_some());
        }
        let indexers = &mut self.head.indexers;
        match indexers.iter().position(|known| known.report.name == report.name) {
            Some(known) => {
                let readings = indexers[known].readings + 1;
                indexers[known] = IndexerState { report, read_ms: at, readings };
            }
            None if indexers.len() < MAX_INDEXERS => {
                indexers.push(IndexerState { report, read_ms: at, readings: 1 });
            }
            None => {}
        }
    }
}
