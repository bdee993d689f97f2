//! Where the blocks in use of a worker are known from, and which source wins.

use radixscope_model::id::WorkerIx;
use radixscope_state::cluster::{Cluster, Sourced, WorkerState};

/// Where the number of blocks that running requests use is known from.
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

/// The later of the two reports that the engine gives.
pub(super) fn used(
    cluster: &Cluster,
    worker: WorkerIx,
    state: &WorkerState,
) -> Option<Sourced<u64, UsedSource>> {
    let event = state.engine_used_blocks.map(|value| Sourced {
        value,
        source: UsedSource::KvMetrics,
        at_ms: state.engine_used_ms,
    });
    let gauge = cluster.rank_of(worker).and_then(|(process, rank)| {
        let at_ms = Some(process.last_ms);
        let share = || Some((rank.kv_usage?, rank.total_blocks?));
        match rank.used_blocks {
            Some(value) => Some(Sourced { value, source: UsedSource::Gauge, at_ms }),
            None => share().map(|(share, total)| {
                let value = (share.max(0.0) * total as f64).round() as u64;
                Sourced { value, source: UsedSource::GaugeShare, at_ms }
            }),
        }
    });
    match (event, gauge) {
        (Some(event), Some(gauge)) if gauge.at_ms > event.at_ms => Some(gauge),
        (event, gauge) => event.or(gauge),
    }
}
