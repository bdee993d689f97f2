//! Reports on the fixed state of each decision: one setting against what really happened, or many.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize, Serializer};

use super::MAX_AXIS;
use super::fixed_state::{FixedStateOutcome, Grid, Recommendation, recommend};
use super::sample::{LeftOut, Sample};
use radixscope_model::id::{Millis, Seq};
use radixscope_router::{RouterOverrides, RouterSettings};

/// Weights of a sweep, unless given otherwise.
pub const WEIGHTS: [f64; 15] =
    [0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0, 12.0];
/// Temperatures of a sweep, unless given otherwise.
pub const TEMPERATURES: [f64; 11] = [0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0];

/// [`WEIGHTS`] with the one in force, so that its cell is there to compare with.
pub fn weights_with(present: Option<f64>) -> Vec<f64> {
    let mut weights = WEIGHTS.to_vec();
    if let Some(present) = present.filter(|w| w.is_finite() && *w >= 0.0 && !WEIGHTS.contains(w)) {
        let at = weights.partition_point(|&weight| weight < present);
        weights.insert(at, present);
        debug_assert!(weights.len() <= MAX_AXIS);
    }
    weights
}

/// What a report is about.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct About {
    /// State that the decisions were taken from.
    pub seq: Seq,
    /// Decisions looked at.
    pub considered: u64,
    /// Of these, decisions judged; the others are in `left_out`.
    pub judged: u64,
    /// Decisions left out, by reason; only reasons that occurred, in the order of [`LeftOut`].
    #[serde(serialize_with = "by_reason")]
    pub left_out: Vec<(LeftOut, u64)>,
    /// Earliest decision looked at.
    pub from_ms: Option<Millis>,
    /// Latest decision looked at.
    pub to_ms: Option<Millis>,
    /// Of those with candidates, the ones whose candidates were computed here and not written by the router.
    pub reconstructed: u64,
    /// Of those with candidates, the ones whose requests are in flight, or ended unreported less than 300 s ago.
    pub running: u64,
    /// What the latest decision judged was taken with; `None` where none is judged.
    #[serde(rename = "settings")]
    pub recorded: Option<RouterSettings>,
    /// Different formulas and weights among those judged, counted up to 8.
    pub recorded_settings: u32,
}

/// In JSON as objects, the reasons as text.
fn by_reason<S: Serializer>(left_out: &Vec<(LeftOut, u64)>, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Counted {
        reason: &'static str,
        count: u64,
    }
    if to.is_human_readable() {
        to.collect_seq(left_out.iter().map(|&(reason, count)| Counted { reason: reason.as_str(), count }))
    } else {
        left_out.serialize(to)
    }
}

/// One setting, each decision on the state it saw.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OfflineReplayReport {
    /// Which decisions.
    pub about: About,
    /// What was tried; `None` where no decision could be judged.
    pub settings: Option<RouterSettings>,
    /// What happened, as recorded.
    pub actual: FixedStateOutcome,
    /// What the setting makes of it.
    pub tried: FixedStateOutcome,
}

/// Many settings, each decision on the state it saw.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SweepReport {
    /// Which decisions.
    pub about: About,
    /// An outcome a setting; `None` where no decision could be judged.
    pub grid: Option<Grid>,
    /// What the grid suggests.
    pub recommendation: Option<Recommendation>,
}

impl Sample {
    /// What `overrides` over the recorded settings make of these decisions, each on the state it saw.
    pub fn evaluate(&self, overrides: RouterOverrides) -> OfflineReplayReport {
        let settings = self.recorded().map(|recorded| overrides.over(recorded));
        OfflineReplayReport {
            about: self.about.clone(),
            settings,
            actual: self.actual().without_parts(),
            tried: self.outcome(&settings.unwrap_or_default()).without_parts(),
        }
    }

    /// Tries every weight at every temperature. `previous` are weight and temperature that were recommended last, of an
    /// earlier window. `progress(done, total)` is called after each; `None` if it breaks.
    pub fn sweep(
        &self,
        weights: &[f64],
        temperatures: &[f64],
        previous: Option<(f64, f64)>,
        progress: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Option<SweepReport> {
        let about = self.about.clone();
        if self.is_empty() {
            return Some(SweepReport { about, grid: None, recommendation: None });
        }
        let mut grid = self.grid(weights, temperatures, progress)?;
        let mut advice = recommend(&grid, previous);
        let expected = |at: usize| {
            let outcome = &grid.outcomes[at];
            self.expected(&outcome.settings?, outcome, &grid.actual)
        };
        advice.expected = advice.outcome.and_then(expected);
        let plain = |outcome: FixedStateOutcome| outcome.without_parts();
        grid.outcomes = grid.outcomes.into_iter().map(plain).collect();
        (grid.actual, grid.round_robin) = (plain(grid.actual), plain(grid.round_robin));
        Some(SweepReport { about, grid: Some(grid), recommendation: Some(advice) })
    }

    /// Weight or scale that the latest decision was made with.
    pub fn latest_weight(&self) -> Option<f64> {
        self.recorded().map(|recorded| recorded.prefill_factor())
    }
}
