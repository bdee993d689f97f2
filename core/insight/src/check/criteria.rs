//! What the operator has latency judged by: targets, and measured sweeps to compare with.

use crate::baseline::Baseline;
use radixscope_model::record::{Engine, LatencyTargets};

/// All of it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Criteria {
    /// Latency targets.
    pub targets: LatencyTargets,
    /// The engine whose settings are advised; `None`: those that the workers' metrics and logs show.
    pub engine: Option<Engine>,
    /// Sweeps; empty: none.
    pub baselines: Vec<Baseline>,
}
