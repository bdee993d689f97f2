//! Who tells the blocks in use of a worker, and whose word counts most.

use radixscope_model::id::WorkerIx;
use radixscope_state::cluster::{CapacitySource, Cluster, Said, WorkerState};

/// Who tells how many blocks running requests use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UsedSource {
    /// The worker's `kv_metrics` (reference §3.2).
    KvMetrics,
    /// A gauge of its metrics, in blocks.
    Gauge,
    /// A gauge of its metrics as a share of its total.
    GaugeShare,
}

impl UsedSource {
    /// Name on screen.
    pub const fn label(self) -> &'static str {
        match self {
            Self::KvMetrics => "kv_metrics",
            Self::Gauge => "engine's gauge",
            Self::GaugeShare => "engine's gauge, share × total",
        }
    }

    /// Name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::KvMetrics => "kv_metrics",
            Self::Gauge => "engine_gauge",
            Self::GaugeShare => "engine_gauge_share",
        }
    }
}

/// Every source that tells the capacity, the best first.
pub(super) fn capacities(cluster: &Cluster, worker: WorkerIx) -> Vec<Said<CapacitySource>> {
    cluster.capacities(worker).into_iter().flatten().collect()
}

/// The later word of the two that the engine gives.
pub(super) fn used(cluster: &Cluster, worker: WorkerIx, state: &WorkerState) -> Option<Said<UsedSource>> {
    let told = state.engine_used_blocks.map(|blocks| Said {
        blocks,
        source: UsedSource::KvMetrics,
        at_ms: state.engine_used_ms,
    });
    let gauge = cluster.rank_of(worker).and_then(|(process, rank)| {
        let at_ms = Some(process.last_ms);
        let share = || Some((rank.kv_usage?, rank.total_blocks?));
        match rank.used_blocks {
            Some(blocks) => Some(Said { blocks, source: UsedSource::Gauge, at_ms }),
            None => share().map(|(share, total)| {
                let blocks = (share.max(0.0) * total as f64).round() as u64;
                Said { blocks, source: UsedSource::GaugeShare, at_ms }
            }),
        }
    });
    match (told, gauge) {
        (Some(told), Some(gauge)) if gauge.at_ms > told.at_ms => Some(gauge),
        (told, gauge) => told.or(gauge),
    }
}
