//! The workers' memory as `GET /api/v1/memory` gives it.

use serde::Serialize;

use super::Decimal;
use radixscope_insight::memory::{Belief, CHURN_S, Memory};
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::record::LifetimeSums;
use radixscope_state::cluster::Cluster;

/// The memory of every worker, by ascending id. Counts are blocks; `null` is unknown.
#[derive(Serialize, Debug)]
pub struct MemoryDto {
    /// The last record folded.
    seq: u64,
    at_ms: u64,
    /// Churn is counted over so many seconds.
    churn_s: u64,
    workers: Vec<WorkerMemoryDto>,
}

#[derive(Serialize, Debug)]
struct WorkerMemoryDto {
    worker_id: Decimal,
    dp_rank: u32,
    block_size_tokens: Option<u32>,
    /// Who says so.
    block_size_source: Option<&'static str>,
    capacity_blocks: Option<u64>,
    /// Every source of the capacity, the best first.
    capacities: Vec<SaidDto>,
    /// Running requests, by the engine.
    used_blocks: Option<u64>,
    used_source: Option<&'static str>,
    used_at_ms: Option<u64>,
    /// Stored and not removed.
    mirror_blocks: Option<u64>,
    mirror_at_ms: Option<u64>,
    /// Mirror less used: belief.
    retained_blocks: Option<u64>,
    free_blocks: Option<u64>,
    /// `nothing`, `no_engine`, `no_events`, `plausible`, `engine_above` or `above_capacity`.
    belief: &'static str,
    /// The same in a sentence.
    belief_words: String,
    ages: Option<BlockLifetimesDto>,
    stored_blocks: Option<u64>,
    removed_blocks: Option<u64>,
    /// What is not known, each with what would tell.
    missing: Vec<&'static str>,
}

#[derive(Serialize, Debug)]
struct SaidDto {
    blocks: u64,
    source: &'static str,
    at_ms: Option<u64>,
}

/// Lifetimes over the last minute, of one block in `one_in`; milliseconds.
#[derive(Serialize, Debug)]
pub struct BlockLifetimesDto {
    one_in: u16,
    removed: u32,
    lifetime_p50_ms: Option<u64>,
    lifetime_p95_ms: Option<u64>,
    came_back: u32,
    came_back_p50_ms: Option<u64>,
    reuse_p50_ms: Option<u64>,
}

impl MemoryDto {
    /// The memory of the workers of `cluster` at `now`.
    pub fn of(cluster: &Cluster, now: Millis) -> Self {
        let worker = |ix: WorkerIx| {
            let id = cluster.worker(ix)?.id;
            Some(WorkerMemoryDto::of(Decimal(id.id.0), id.dp_rank, &Memory::of(cluster, ix, now)?))
        };
        Self {
            seq: cluster.seq().0,
            at_ms: now.0,
            churn_s: CHURN_S,
            workers: cluster.workers_by_id().into_iter().filter_map(worker).collect(),
        }
    }
}

impl WorkerMemoryDto {
    fn of(worker_id: Decimal, dp_rank: u32, memory: &Memory) -> Self {
        let said = memory.capacities.iter().map(|said| SaidDto {
            blocks: said.value,
            source: said.source.as_str(),
            at_ms: said.at_ms.map(|at| at.0),
        });
        Self {
            worker_id,
            dp_rank,
            block_size_tokens: memory.block_size.map(|size| size.value),
            block_size_source: memory.block_size.map(|size| size.source.as_str()),
            capacity_blocks: memory.capacity.map(|capacity| capacity.value),
            capacities: said.collect(),
            used_blocks: memory.used.map(|used| used.value),
            used_source: memory.used.map(|said| said.source.as_str()),
            used_at_ms: memory.used.and_then(|said| Some(said.at_ms?.0)),
            mirror_blocks: memory.mirror.map(|mirror| mirror.blocks),
            mirror_at_ms: memory.mirror.map(|mirror| mirror.at_ms.0),
            retained_blocks: memory.retained_blocks(),
            free_blocks: memory.free_blocks(),
            belief: belief(memory.belief()),
            belief_words: memory.belief_words(),
            ages: memory.ages.as_ref().map(BlockLifetimesDto::from),
            stored_blocks: memory.churn.map(|churn| churn.stored),
            removed_blocks: memory.churn.map(|churn| churn.removed),
            missing: memory.missing(),
        }
    }
}

const fn belief(belief: Belief) -> &'static str {
    match belief {
        Belief::Nothing => "nothing",
        Belief::NoEngine => "no_engine",
        Belief::NoEvents => "no_events",
        Belief::Plausible(_) => "plausible",
        Belief::EngineAbove(_) => "engine_above",
        Belief::AboveCapacity(_) => "above_capacity",
    }
}

impl From<&LifetimeSums> for BlockLifetimesDto {
    fn from(ages: &LifetimeSums) -> Self {
        Self {
            one_in: ages.one_in,
            removed: ages.removed,
            lifetime_p50_ms: ages.lifetime_p50_ms,
            lifetime_p95_ms: ages.lifetime_p95_ms,
            came_back: ages.came_back,
            came_back_p50_ms: ages.came_back_p50_ms,
            reuse_p50_ms: ages.reuse_p50_ms,
        }
    }
}
