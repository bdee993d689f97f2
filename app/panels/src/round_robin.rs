//! What the last simulation of round-robin found: the one figure that every panel shows of it. Knows no panel.

use radixscope_model::id::{Millis, PoolIx};

/// Round-robin in the model, which replayed recorded arrivals under the recorded setting too.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RoundRobinRun {
    /// The pool whose arrivals were replayed; `None`: there was one.
    pub pool: Option<PoolIx>,
    /// The time that was shown then, Unix milliseconds; 0: the present.
    pub shown_at: u64,
    /// Server's time at which its input was taken.
    pub at_ms: Millis,
    /// Requests counted.
    pub requests: u64,
    /// Prompt tokens found in the engines' caches ÷ prompt tokens, 0 … 1.
    pub hit_rate: f64,
    /// The same under the recorded setting.
    pub recorded_hit_rate: f64,
}
