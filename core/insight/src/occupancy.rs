//! How full workers are with cached blocks. The same for the page and for pictures.

use radixscope_model::id::WorkerIx;
use radixscope_model::number_format::{UNKNOWN, count, percent, short};
use radixscope_state::cluster::{CapacitySource, Cluster, Sourced};

/// What a worker holds, beside what there is room for. `None` is unknown.
#[derive(Clone, PartialEq, Debug)]
pub struct Occupancy {
    /// Cached blocks.
    pub blocks: Option<u64>,
    /// Capacity in blocks, and its source.
    pub capacity: Option<Sourced<u64, CapacitySource>>,
    /// How far its bar is filled, 0 … 1: a share of the capacity; where that is unknown, of what the worker of its pool with
    /// most blocks holds.
    pub share: Option<f64>,
    /// What reports its capacity.
    pub reports_capacity: &'static str,
}

/// What reports the capacity of workers of Dynamo, and of engines without it.
const OF_DYNAMO: &str = "its model card (total_kv_blocks), read from discovery, reports it";
const OF_ENGINE: &str =
    "the engine's own metrics report it: metrics=URL of --engine-events, or found with --kubernetes";

impl Occupancy {
    /// Of a worker.
    pub fn of(cluster: &Cluster, worker: WorkerIx) -> Self {
        let blocks = cluster.blocks(worker);
        let capacity = cluster.capacity(worker);
        let most = || {
            let pool = cluster.pool_of(worker).unwrap_or_default();
            cluster.workers_in(pool).filter_map(|worker| cluster.blocks(worker)).max().unwrap_or(0).max(1)
        };
        let of = |blocks: u64| blocks as f64 / capacity.as_ref().map_or_else(most, |all| all.value) as f64;
        let share = blocks.map(of);
        let reports_capacity = if cluster.engine_of(worker).is_some() { OF_ENGINE } else { OF_DYNAMO };
        Self { blocks, capacity, share, reports_capacity }
    }

    /// `3,631 / 12.3k`, `3,631`, `–`.
    pub fn to_text(&self) -> String {
        match (self.blocks, &self.capacity) {
            (None, _) => UNKNOWN.to_owned(),
            (Some(blocks), Some(all)) => format!("{} / {}", short(blocks), short(all.value)),
            (Some(blocks), None) => count(blocks),
        }
    }

    /// The same with its source.
    pub fn explain(&self) -> String {
        match (self.blocks, &self.capacity) {
            (None, _) => "No KV event of this worker was received, so what is cached is unknown".to_owned(),
            (Some(blocks), Some(Sourced { value: all, source, .. })) => format!(
                "{} of {} blocks ({}), capacity: {}",
                count(blocks),
                count(*all),
                percent(blocks as f64 / *all as f64),
                source.label()
            ),
            (Some(blocks), None) => format!(
                "{} blocks. Capacity unknown: {}. The bar compares with the worker with most blocks",
                count(blocks),
                self.reports_capacity
            ),
        }
    }
}
