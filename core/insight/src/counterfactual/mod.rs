//! What would have become of the latest decisions under other settings: from the state to a report.
//!
//! Two ways, never mixed. *Offline replay* judges each decision on the very state it saw and follows nothing up; it is exact
//! for one decision. *Re-simulated* plays the recorded arrivals through a model in which caches and loads react; its
//! times are fitted to the window first, and if that fails, only which setting is better is reported.
//! Server and page use the same functions. Must not know how a report is shown or sent.
//!
//! # How it works
//!
//! *Offline replay*: a `Sample` copies decisions with all candidates out of the state, in columns; each is judged on the state
//! that it saw, and nothing is followed up. Prefill blocks read from a log are rounded there to three decimals and are brought
//! back to whole tokens where that is certain. A sweep recommends what is better beyond noise, by drawing parts of the window
//! again and again (`fixed_state/noise.rs`). *Re-simulated*: `Arrivals` are played through the simulation's router and
//! engines, some 40 times to fit prefill, decode and output lengths (`calibration.rs`), then under the recorded setting and
//! under the one tried. The page
//! makes the sample from its own state and computes in its worker; `POST /api/v1/counterfactual` runs the same
//! functions on a thread for long work, two at a time, and breaks off when the client goes away. What is left out is
//! counted by reason, assumptions are listed beside the figures.

mod calibration;
mod fixed_state;
mod model;
mod observed;
mod played;
mod rank;
mod report;
mod sample;
mod select;
#[cfg(test)]
mod tests;
mod text;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use radixscope_model::id::{DecisionId, PoolIx, WorkerIx};
use radixscope_router::numbers::{OVERLAP_SCORE_WEIGHT, RefusedNumber, TEMPERATURE};
use radixscope_state::cluster::{Cluster, MAX_DECISIONS};
use radixscope_state::requests::Arrivals;

pub use calibration::{Calibration, Compared, HIT_RATE_TOLERANCE, P50_TOLERANCE, P95_TOLERANCE};
pub use fixed_state::{
    ChangedDecision, Expected, FixedStateOutcome, Grid, Interval, LEAST_REQUESTS, LoadImbalance,
    MAX_LISTED_CHANGES, Part, Recommendation, Suggestion, WorkerShare, slope,
};
pub use model::{Fact, Facts, Figures, Measured, ModelError, ModelReport, Provenance, Times, resimulate};
pub use played::arrivals_needed;
pub use rank::Rank;
pub use report::{About, OfflineReplayReport, SweepReport, TEMPERATURES, WEIGHTS, weights_with};
pub use sample::{LeftOut, MAX_CANDIDATES, Sample, SampleBuilder, SampledDecision};
pub(crate) use select::RecordedDecision;
pub use text::{
    FIXED_STATE_LIMITS, NO_ARRIVALS_HINT, calibration_to_text, expected_to_text, headline, hint, not_judged,
    options_to_set, present_setting,
};

/// Most weights, and most temperatures, of one sweep.
pub const MAX_AXIS: usize = 21;
/// Most settings of one sweep.
pub const MAX_SETTINGS: usize = 21 * 15;

/// Which decisions are selected: the latest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum DecisionRange {
    /// So many.
    Last(u32),
    /// Those of so many milliseconds before the latest record.
    Ms(u64),
}

impl DecisionRange {
    /// All that are retained.
    pub const ALL: DecisionRange = DecisionRange::Last(MAX_DECISIONS as u32);
}

/// Which decisions are selected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Selection {
    /// How far back.
    pub span: DecisionRange,
    /// Only those that went to this worker. How workers are loaded beside each other is unknown then.
    pub worker: Option<WorkerIx>,
    /// The pool that was chosen from: decisions of two pools have neither workers nor settings in common. `None`: there is
    /// one pool.
    pub pool: Option<PoolIx>,
}

impl Selection {
    /// The latest decisions in the one pool there is.
    pub const fn of(span: DecisionRange) -> Self {
        Self { span, worker: None, pool: None }
    }
}

/// The requests of `arrivals` that were placed in `pool`, the last `count` of them; `None`: all that are retained. Where prefill
/// and decode are apart, a request has two decisions, and its prompt may be retained with either.
pub fn arrivals_in(cluster: &Cluster, arrivals: &Arrivals, pool: Option<PoolIx>, count: usize) -> Arrivals {
    let Some(pool) = pool else { return arrivals.latest(count) };
    let decided = |id: DecisionId| cluster.decisions().get(id);
    arrivals.latest_of(count, |arrival| {
        decided(arrival.decision).is_some_and(|of| {
            let other = of.decision.other_part.filter(|&id| arrivals.of(id).is_none());
            of.pool == pool || other.and_then(decided).is_some_and(|other| other.pool == pool)
        })
    })
}

/// A sweep that cannot be run.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum BadSweep {
    /// Dynamo would refuse a value.
    #[error(transparent)]
    Value(#[from] RefusedNumber),
    /// An axis has no or too many values.
    #[error("{name} has {count} values; a sweep takes 1 to {MAX_AXIS}, {MAX_SETTINGS} settings together")]
    Axis {
        /// Which.
        name: &'static str,
        /// How many there are.
        count: usize,
    },
}

/// Checks the axes of a sweep.
///
/// # Errors
/// What cannot be tried.
pub fn validate_axes(weights: &[f64], temperatures: &[f64]) -> Result<(), BadSweep> {
    let together = weights.len() * temperatures.len();
    for (name, count) in [(OVERLAP_SCORE_WEIGHT.name, weights.len()), (TEMPERATURE.name, temperatures.len())]
    {
        if count == 0 || count > MAX_AXIS || together > MAX_SETTINGS {
            return Err(BadSweep::Axis { name, count });
        }
    }
    weights.iter().try_for_each(|&weight| OVERLAP_SCORE_WEIGHT.check(weight))?;
    Ok(temperatures.iter().try_for_each(|&temperature| TEMPERATURE.check(temperature))?)
}
