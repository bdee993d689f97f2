//! What a setting makes of the decisions, in figures.

use serde::{Deserialize, Serialize};

use super::noise::Part;
use radixscope_model::id::{DecisionId, WorkerIx};
use radixscope_router::RouterSettings;

/// Changed decisions that are listed one by one.
pub const MAX_LISTED_CHANGES: usize = 256;

/// What would have become of the decisions under a setting.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FixedStateOutcome {
    /// The settings; `None` for what really happened.
    pub settings: Option<RouterSettings>,
    /// Decisions judged.
    pub decisions: u64,
    /// Decisions whose actual worker this setting would not have chosen whatever it had drawn.
    pub certain_changes: u64,
    /// Expected number of decisions that go elsewhere; at temperature 0 without ties equal to `certain_changes`.
    pub expected_changes: f64,
    /// The first [`MAX_LISTED_CHANGES`] decisions whose actual worker is not among the most likely.
    pub changed: Vec<ChangedDecision>,
    /// Decisions whose lowest cost two or more workers share exactly.
    pub ties: u64,
    /// Expected overlap of the chosen workers over blocks of the prompts, 0 … 1, over `overlap_decisions`; `None`
    /// where no prompt's length is known.
    pub overlap_share: Option<f64>,
    /// Decisions whose prompt length in blocks is known.
    pub overlap_decisions: u64,
    /// Prompt tokens that need no prefill, more than with the actual choices (below 0: fewer), over
    /// `prefill_decisions`; `None` where no block size is known.
    pub prefill_saved_tokens: Option<f64>,
    /// Decisions whose block size is known.
    pub prefill_decisions: u64,
    /// Expected share of the decisions by worker, 0 … 1, in order of first sight.
    pub shares: Vec<WorkerShare>,
    /// How far workers are apart in requests in flight; `None` where no request's end is known.
    pub imbalance: Option<LoadImbalance>,
    /// Consecutive parts of the window, for what of a difference is chance. Does not travel.
    #[serde(skip)]
    pub parts: Vec<Part>,
}

impl FixedStateOutcome {
    /// Without what only a recommendation needs and what does not travel.
    pub fn without_parts(self) -> Self {
        let imbalance = self.imbalance.map(|imbalance| LoadImbalance { p95_halves: [0; 2], ..imbalance });
        Self { parts: Vec::new(), imbalance, ..self }
    }
}

/// A decision that would have gone elsewhere.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ChangedDecision {
    /// Which.
    pub decision: DecisionId,
    /// The worker that served it.
    pub from: WorkerIx,
    /// The likeliest worker now; the first of several.
    pub to: WorkerIx,
    /// Chance that the actual worker is chosen now, 0 … 1.
    pub actual_probability: f64,
    /// Cost of the actual worker in blocks under the setting tried; under round-robin, as recorded.
    pub from_cost: f64,
    /// Cost of the other one likewise.
    pub to_cost: f64,
}

/// A worker's share of the decisions.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerShare {
    /// The worker.
    pub worker: WorkerIx,
    /// Expected share, 0 … 1.
    pub share: f64,
}

/// Most less fewest requests in flight over a decision's candidates, taken right after each decision.
///
/// Where a setting leaves a choice to chance, one draw is followed; it uses the same random numbers for every setting,
/// so that differences come from the setting. A request counts from its decision to the end it really had.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct LoadImbalance {
    /// Requests, mean over decisions.
    pub mean: f64,
    /// Requests, 95th percentile over decisions.
    pub p95: u32,
    /// Requests, most ever.
    pub most: u32,
    /// Decisions whose end is known; the others are in flight nowhere.
    pub ended_decisions: u64,
    /// The 95th percentile of the earlier and of the later half. Does not travel.
    #[serde(skip)]
    pub p95_halves: [u32; 2],
}
