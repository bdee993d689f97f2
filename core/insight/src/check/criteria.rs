//! What the operator has latency judged by: targets, and measured sweeps to compare with.

use crate::baseline::Baseline;
use radixscope_model::record::Engine;

/// Latency targets, milliseconds, of the 95th percentile.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Targets {
    /// Time to first token.
    pub ttft_ms: f64,
    /// Time between output tokens (ITL).
    pub tpot_ms: f64,
}

impl Default for Targets {
    fn default() -> Self {
        Self { ttft_ms: 600.0, tpot_ms: 60.0 }
    }
}

/// All of it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Criteria {
    /// Latency targets.
    pub targets: Targets,
    /// The engine whose settings are advised; `None`: those that the workers' metrics and logs show.
    pub engine: Option<Engine>,
    /// Sweeps; empty: none.
    pub baselines: Vec<Baseline>,
}
