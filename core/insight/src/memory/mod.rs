//! What a worker's KV memory is filled with: blocks of running requests as the engine reports them, cached blocks that can be
//! evicted, by estimate, and what is free. A pure reading of the state; each figure with its source and time.
//!
//! The engine counts what running requests hold, part-filled blocks included, and does not report what else is cached.
//! Radixscope counts full blocks that were stored and not removed, running or cached. So *retained* is a difference of two
//! sources: an estimate, not a measurement.
//!
//! # How it works
//!
//! An engine reports what running requests use, not what it caches; Radixscope knows what was stored and not removed,
//! not what runs. *Cached, evictable* is their difference and an estimate; where the two do not fit together it is
//! unknown, and the sentence names the one that cannot be right. `Cluster::capacity` and `Cluster::block_size`
//! (`cluster/sizes`) decide for panels, rules and API which source gives a worker's capacity (engine, model card, frontends)
//! and its block size (model card, frontends, its requests, then those of its component); where capacities contradict
//! each other both are named. What is typed into the calculator is kept in the address (`cap.…`) and nowhere else.
//! Live figures come from single requests where nearly all are reported, else from the frontends' histograms; concurrency
//! is the mean in flight by Little's law from the requests' durations, else an upper bound of it. Baselines are read
//! at that concurrency between their levels, never beyond. The reader's own ones are CSV text in the page's local
//! storage.

#[cfg(test)]
mod tests;
mod text;
mod used;

pub use radixscope_state::cluster::{BlockSizeSource, CapacitySource, Sourced};
pub use text::seconds;
pub use used::UsedSource;

use crate::capacity::CurrentUsage;
use crate::completeness::Trust;
use radixscope_model::id::{Millis, PoolIx, WorkerIx};
use radixscope_model::record::{BlockResidency, Finding, Gauge, Phase};
use radixscope_state::cluster::Cluster;

/// Churn is counted over so many seconds.
pub const CHURN_S: u64 = 60;

/// The memory of one worker, in blocks. `None` is unknown.
#[derive(Clone, PartialEq, Debug)]
pub struct Memory {
    /// Whose.
    pub worker: WorkerIx,
    /// Whether it has left: then it has no memory that could be used or free.
    pub has_left: bool,
    /// Tokens per block.
    pub block_size: Option<Sourced<u32, BlockSizeSource>>,
    /// Blocks there are, by the best source.
    pub capacity: Option<Sourced<u64, CapacitySource>>,
    /// The same by every source that knows it, the best first.
    pub capacities: Vec<Sourced<u64, CapacitySource>>,
    /// Blocks of running requests, by the engine's last word.
    pub used: Option<Sourced<u64, UsedSource>>,
    /// Blocks that Radixscope's tree has for it, used or cached, and the last KV event.
    pub mirror: Option<Mirror>,
    /// Whether so much of what it holds is missing from the mirror that nothing follows from that.
    pub is_partial: bool,
    /// How long its blocks live, of one in `ages.one_in`.
    pub ages: Option<BlockResidency>,
    /// Blocks stored and removed in the last [`CHURN_S`] seconds.
    pub churn: Option<EvictionRatio>,
}

/// Blocks in Radixscope's tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mirror {
    /// Blocks stored and not removed.
    pub blocks: u64,
    /// The last KV event that changed them.
    pub at_ms: Millis,
}

/// Blocks that came and went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EvictionRatio {
    /// Stored.
    pub stored: u64,
    /// Removed.
    pub removed: u64,
}

impl EvictionRatio {
    /// Removed for one stored; `None` where nothing was stored.
    pub fn ratio(&self) -> Option<f64> {
        (self.stored > 0).then(|| self.removed as f64 / self.stored as f64)
    }
}

/// A stretch of the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemorySegment {
    /// Running requests.
    Used,
    /// Cached, evictable.
    Retained,
    /// Running or kept: the engine's own figure is missing or does not fit the mirror's.
    UsedOrCached,
    /// Neither used nor held.
    Free,
    /// Cached or free: unknown without KV events.
    Rest,
}

impl MemorySegment {
    /// Name on screen.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Used => "used by running requests",
            Self::Retained => "cached, evictable",
            Self::UsedOrCached => "used or cached",
            Self::Free => "free",
            Self::Rest => "cached or free",
        }
    }
}

/// How the mirror's figure stands to the engine's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EstimateStatus {
    /// The worker has left.
    Left,
    /// Neither engine metrics nor KV events.
    Nothing,
    /// The engine never reported its figure.
    NoEngine,
    /// No KV event was received.
    NoEvents,
    /// The mirror lacks blocks: what is beyond it may be kept or free.
    Partial,
    /// The mirror holds so many more: kept for re-use.
    Plausible(u64),
    /// The engine uses so many more than the mirror knows.
    EngineAbove(u64),
    /// Radixscope's tree exceeds the capacity by so many blocks.
    AboveCapacity(u64),
}

impl Memory {
    /// The memory of `worker` at `now`; `None`: there is no such worker.
    pub fn of(cluster: &Cluster, worker: WorkerIx, now: Millis) -> Option<Self> {
        let state = cluster.worker(worker)?;
        let capacities: Vec<_> = cluster.capacities(worker).into_iter().flatten().collect();
        Some(Self {
            worker,
            has_left: state.departure.is_some(),
            block_size: cluster.block_size(worker),
            capacity: capacities.first().copied(),
            capacities,
            used: used::used(cluster, worker, state),
            mirror: cluster
                .blocks(worker)
                .zip(state.last_event_ms)
                .map(|(blocks, at_ms)| Mirror { blocks, at_ms }),
            is_partial: lacks_much(cluster, worker),
            ages: state.lifetimes,
            churn: churn(cluster, worker, now),
        })
    }

    /// How the mirror's figure stands to the engine's.
    pub fn belief(&self) -> EstimateStatus {
        let (used, mirror) = (self.used.map(|used| used.value), self.mirror.map(|mirror| mirror.blocks));
        match (used, mirror, self.capacity.map(|capacity| capacity.value)) {
            _ if self.has_left => EstimateStatus::Left,
            (_, Some(mirror), Some(capacity)) if mirror > capacity => {
                EstimateStatus::AboveCapacity(mirror - capacity)
            }
            (_, Some(_), _) if self.is_partial => EstimateStatus::Partial,
            (None, None, _) => EstimateStatus::Nothing,
            (None, Some(_), _) => EstimateStatus::NoEngine,
            (Some(_), None, _) => EstimateStatus::NoEvents,
            (Some(used), Some(mirror), _) if used > mirror => EstimateStatus::EngineAbove(used - mirror),
            (Some(used), Some(mirror), _) => EstimateStatus::Plausible(mirror - used),
        }
    }

    /// Blocks kept for re-use: what the mirror holds beyond what running requests use. `None` where either is unknown or
    /// the two do not fit together.
    pub fn retained_blocks(&self) -> Option<u64> {
        match self.belief() {
            EstimateStatus::Plausible(retained) => Some(retained),
            _ => None,
        }
    }

    /// Blocks that are neither used nor held. `None` where capacity or mirror is unknown, the mirror cannot be right, or the
    /// worker has left.
    pub fn free_blocks(&self) -> Option<u64> {
        if self.is_partial || self.has_left {
            return None;
        }
        let taken = self.mirror?.blocks.max(self.used.map_or(0, |used| used.value));
        self.capacity?.value.checked_sub(taken)
    }

    /// The memory in stretches, in blocks, in the order in which they are drawn; empty: nothing is known, or the worker has left.
    pub fn parts(&self) -> Vec<(MemorySegment, u64)> {
        let used = self.used.map(|used| used.value);
        let capacity = self.capacity.map(|capacity| capacity.value);
        let mut parts = match (self.belief(), used, self.mirror) {
            (EstimateStatus::Plausible(retained), Some(used), _) => {
                vec![(MemorySegment::Used, used), (MemorySegment::Retained, retained)]
            }
            (
                EstimateStatus::EngineAbove(_) | EstimateStatus::NoEvents | EstimateStatus::Partial,
                Some(used),
                _,
            ) => {
                vec![(MemorySegment::Used, used)]
            }
            (
                EstimateStatus::NoEngine | EstimateStatus::AboveCapacity(_) | EstimateStatus::Partial,
                _,
                Some(mirror),
            ) => {
                vec![(MemorySegment::UsedOrCached, mirror.blocks)]
            }
            _ => Vec::new(),
        };
        if let Some(capacity) = capacity.filter(|_| !parts.is_empty()) {
            let taken = parts.iter().map(|(_, blocks)| blocks).sum();
            let rest = if self.mirror.is_some() && !self.is_partial {
                MemorySegment::Free
            } else {
                MemorySegment::Rest
            };
            parts.push((rest, capacity.saturating_sub(taken)));
        }
        parts
    }
}

/// Whether figures of the worker's pool are withheld because it lacks blocks, among others or alone.
fn lacks_much(cluster: &Cluster, worker: WorkerIx) -> bool {
    let pool = cluster.pool_of(worker).filter(|_| cluster.is_incomplete(worker));
    pool.is_some_and(|pool| matches!(Trust::of(cluster, pool), Trust::Withheld(_)))
}

/// All workers of a pool that have not left, summed for [`crate::capacity::remedies`]; a sum is unknown as soon as one worker's
/// figure is.
pub fn live(cluster: &Cluster, pool: PoolIx, now: Millis) -> CurrentUsage {
    let there = there(cluster, pool);
    let all: Vec<Memory> = there.filter_map(|ix| Memory::of(cluster, ix, now)).collect();
    let sum = |of: &dyn Fn(&Memory) -> Option<u64>| {
        let each = all.iter().map(of).collect::<Option<Vec<u64>>>();
        each?.into_iter().reduce(u64::saturating_add)
    };
    let waiting =
        cluster.processes().iter().filter_map(|process| process.gauge(Gauge::EngineWaitingRequests));
    let waiting: Vec<f64> = waiting.collect();
    CurrentUsage {
        used_blocks: sum(&|memory| memory.used.map(|used| used.value)),
        retained_blocks: sum(&Memory::retained_blocks),
        capacity_blocks: sum(&|memory| memory.capacity.map(|capacity| capacity.value)),
        waiting_sequences: (!waiting.is_empty()).then(|| waiting.iter().sum::<f64>().max(0.0) as u64),
        is_short: is_short(cluster),
    }
}

/// Whether a finding about memory shortage is active.
fn is_short(cluster: &Cluster) -> bool {
    let is_active = |finding: &Finding| matches!(finding.phase, Phase::Warn | Phase::Recheck);
    let of_memory = |finding: &&Finding| matches!(&*finding.code, "memory_full" | "churn");
    cluster.findings().iter().filter(of_memory).any(is_active)
}

/// Over the seconds that are known; `None`: none is.
fn churn(cluster: &Cluster, worker: WorkerIx, now: Millis) -> Option<EvictionRatio> {
    let known = cluster.rates(worker, now, CHURN_S).filter_map(|(_, bucket)| bucket);
    known.map(|bucket| EvictionRatio { stored: bucket.stored.into(), removed: bucket.removed.into() }).reduce(
        |sum, more| EvictionRatio { stored: sum.stored + more.stored, removed: sum.removed + more.removed },
    )
}

/// The calculator's inputs as the deployment reports them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// Tokens of a block, where all workers agree.
    pub block_size_tokens: Option<u32>,
    /// Workers that are there.
    pub workers: Option<u64>,
    /// Most sequences at once on a worker, by the model that it serves.
    pub max_num_seqs: Option<u64>,
    /// Least and most blocks of a worker that is there.
    pub blocks_per_worker: Option<(u64, u64)>,
}

/// The workers of a pool that have not left.
fn there(cluster: &Cluster, pool: PoolIx) -> impl Iterator<Item = WorkerIx> {
    let all = cluster.workers().indexed();
    all.filter(move |(_, state)| state.pool == pool && state.departure.is_none()).map(|(worker, _)| worker)
}

/// A pool's inputs for the calculator, as the deployment reports them.
pub fn live_facts(cluster: &Cluster, pool: PoolIx) -> Facts {
    let there = || there(cluster, pool);
    let blocks: Vec<u64> = there().filter_map(|ix| Some(cluster.capacity(ix)?.value)).collect();
    let workers = there().count() as u64;
    Facts {
        block_size_tokens: cluster.block_tokens(pool),
        workers: (workers > 0).then_some(workers),
        max_num_seqs: there().find_map(|ix| cluster.model_figure(ix, |model| model.max_num_seqs)),
        blocks_per_worker: blocks.iter().min().copied().zip(blocks.iter().max().copied()),
    }
}
