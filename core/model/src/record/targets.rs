//! What latency is judged by.

use serde::{Deserialize, Serialize};

/// Targets of the 95th percentile, milliseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct LatencyTargets {
    /// Time to first token.
    pub ttft_ms: f64,
    /// Time between output tokens (ITL).
    pub itl_ms: f64,
}

impl LatencyTargets {
    /// Of the time to first token, in microseconds.
    pub fn ttft_us(self) -> u64 {
        (self.ttft_ms * 1_000.0).round() as u64
    }
}

impl Default for LatencyTargets {
    fn default() -> Self {
        Self { ttft_ms: 600.0, itl_ms: 60.0 }
    }
}
