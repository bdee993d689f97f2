//! The workers' memory as `GET /api/v1/memory` gives it.

use serde::Serialize;

use radixscope_insight::memory::{CHURN_S, EstimateStatus, Memory};
use radixscope_model::id::{Millis, Seq, Worker, WorkerIx};
use radixscope_model::record::BlockResidency;
use radixscope_state::cluster::Cluster;

/// The memory of every worker, by ascending id. Counts are blocks; `null` is unknown.
#[derive(Serialize, Debug)]
pub struct Memories {
    /// The last record folded.
    seq: Seq,
    at_ms: Millis,
    /// Churn is counted over so many seconds.
    churn_s: u64,
    workers: Vec<WorkerMemory>,
}

/// One worker's, flat, with what follows from its figures.
#[derive(Serialize, Debug)]
struct WorkerMemory {
    #[serde(flatten)]
    worker: Worker,
    block_size_tokens: Option<u32>,
    /// Its source.
    block_size_source: Option<&'static str>,
    capacity_blocks: Option<u64>,
    /// Every source of the capacity, the best first.
    capacities: Vec<Capacity>,
    /// Running requests, by the engine.
    used_blocks: Option<u64>,
    used_source: Option<&'static str>,
    used_at_ms: Option<Millis>,
    /// Stored and not removed.
    mirror_blocks: Option<u64>,
    mirror_at_ms: Option<Millis>,
    /// Mirror less used: belief.
    retained_blocks: Option<u64>,
    free_blocks: Option<u64>,
    /// `gone`, `nothing`, `no_engine`, `no_events`, `partial`, `plausible`, `engine_above` or `above_capacity`.
    belief: &'static str,
    /// The same in a sentence.
    #[serde(rename = "belief_words")]
    estimate_status_text: String,
    ages: Option<BlockResidency>,
    stored_blocks: Option<u64>,
    removed_blocks: Option<u64>,
    /// Missing figures, each with the source that would report it.
    missing: Vec<&'static str>,
}

#[derive(Serialize, Debug)]
struct Capacity {
    blocks: u64,
    source: &'static str,
    at_ms: Option<Millis>,
}

impl Memories {
    /// The memory of the workers of `cluster` at `now`.
    pub fn of(cluster: &Cluster, now: Millis) -> Self {
        let worker =
            |ix: WorkerIx| Some(WorkerMemory::of(cluster.worker(ix)?.id, Memory::of(cluster, ix, now)?));
        Self {
            seq: cluster.seq(),
            at_ms: now,
            churn_s: CHURN_S,
            workers: cluster.workers_by_id().into_iter().filter_map(worker).collect(),
        }
    }
}

impl WorkerMemory {
    fn of(worker: Worker, memory: Memory) -> Self {
        let capacities = memory.capacities.iter().map(|capacity| Capacity {
            blocks: capacity.value,
            source: capacity.source.as_str(),
            at_ms: capacity.at_ms,
        });
        Self {
            worker,
            block_size_tokens: memory.block_size.map(|size| size.value),
            block_size_source: memory.block_size.map(|size| size.source.as_str()),
            capacity_blocks: memory.capacity.map(|capacity| capacity.value),
            capacities: capacities.collect(),
            used_blocks: memory.used.map(|used| used.value),
            used_source: memory.used.map(|used| used.source.as_str()),
            used_at_ms: memory.used.and_then(|used| used.at_ms),
            mirror_blocks: memory.mirror.map(|mirror| mirror.blocks),
            mirror_at_ms: memory.mirror.map(|mirror| mirror.at_ms),
            retained_blocks: memory.retained_blocks(),
            free_blocks: memory.free_blocks(),
            belief: belief(memory.belief()),
            estimate_status_text: memory.estimate_status_text(),
            ages: memory.ages,
            stored_blocks: memory.churn.map(|churn| churn.stored),
            removed_blocks: memory.churn.map(|churn| churn.removed),
            missing: memory.missing(),
        }
    }
}

const fn belief(belief: EstimateStatus) -> &'static str {
    match belief {
        EstimateStatus::Left => "gone",
        EstimateStatus::Nothing => "nothing",
        EstimateStatus::NoEngine => "no_engine",
        EstimateStatus::NoEvents => "no_events",
        EstimateStatus::Partial => "partial",
        EstimateStatus::Plausible(_) => "plausible",
        EstimateStatus::EngineAbove(_) => "engine_above",
        EstimateStatus::AboveCapacity(_) => "above_capacity",
    }
}
