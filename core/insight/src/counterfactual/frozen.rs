//! Reports on the frozen state: one setting against what really happened, or many.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize, Serializer};

use super::MAX_AXIS;
use super::sample::{Reason, Sample};
use radixscope_model::id::{DecisionId, Millis, Seq, WorkerIx};
use radixscope_router::frozen::{Grid, OfflineReplay, Outcome, Recommendation, recommend};
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
    /// Decisions left out, by reason; only reasons that occurred, in the order of [`Reason::ALL`].
    #[serde(serialize_with = "by_reason")]
    pub left_out: Vec<(Reason, u64)>,
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

/// In JSON as objects, the reasons in words.
fn by_reason<S: Serializer>(left_out: &Vec<(Reason, u64)>, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct LeftOut {
        reason: &'static str,
        count: u64,
    }
    if to.is_human_readable() {
        to.collect_seq(left_out.iter().map(|&(reason, count)| LeftOut { reason: reason.as_str(), count }))
    } else {
        left_out.serialize(to)
    }
}

impl About {
    pub(super) fn leave_out(&mut self, reason: Reason) {
        match self.left_out.binary_search_by_key(&reason, |(known, _)| *known) {
            Ok(at) => self.left_out[at].1 += 1,
            Err(at) => self.left_out.insert(at, (reason, 1)),
        }
    }
}

/// A decision that would have gone elsewhere.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ChangedDecision {
    /// Which.
    pub decision: DecisionId,
    /// Who served it.
    pub from: WorkerIx,
    /// The likeliest worker now.
    pub to: WorkerIx,
    /// Chance that the actual worker is chosen now, 0 … 1.
    pub actual_probability: f64,
    /// Cost of the actual worker in blocks under the setting tried; under round-robin, as recorded.
    pub from_cost: f64,
    /// Cost of the other one likewise.
    pub to_cost: f64,
}

/// One setting on the frozen state.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OfflineReplayReport {
    /// Which decisions.
    pub about: About,
    /// What was tried; `None` where no decision could be judged.
    pub settings: Option<RouterSettings>,
    /// What happened, as recorded.
    pub actual: Outcome,
    /// What the setting makes of it; its list of flips is in `flips`.
    pub tried: Outcome,
    /// The first flips, see [`radixscope_router::frozen::MAX_FLIPS`].
    pub flips: Vec<ChangedDecision>,
}

/// Many settings on the frozen state.
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
        let (frozen, about, ids) = self.frozen();
        let settings = about.recorded.map(|recorded| overrides.over(recorded));
        let actual = self.seen(frozen.actual()).without_parts();
        let mut tried = self.seen(frozen.evaluate(&settings.unwrap_or_default())).without_parts();
        let flips = std::mem::take(&mut tried.flips);
        let flipped = |flip: &radixscope_router::frozen::ChangedChoice| {
            let at = flip.decision as usize;
            let (from_cost, to_cost) = costs(&frozen, flip.decision, &settings?, flip.from, flip.to)?;
            Some(ChangedDecision {
                decision: *ids.get(at)?,
                from: flip.from,
                to: flip.to,
                actual_probability: flip.actual_probability,
                from_cost,
                to_cost,
            })
        };
        OfflineReplayReport {
            about,
            settings,
            actual,
            flips: flips.iter().filter_map(flipped).collect(),
            tried,
        }
    }

    /// Tries every weight at every temperature. `held` are weight and temperature that were recommended last, of an earlier
    /// window. `progress(done, total)` is called after each; `None` if it breaks.
    pub fn sweep(
        &self,
        weights: &[f64],
        temperatures: &[f64],
        held: Option<(f64, f64)>,
        progress: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Option<SweepReport> {
        let (frozen, about, _) = self.frozen();
        if frozen.is_empty() {
            return Some(SweepReport { about, grid: None, recommendation: None });
        }
        let mut grid = frozen.sweep(weights, temperatures, progress)?;
        grid.actual = self.seen(grid.actual);
        grid.round_robin = self.seen(grid.round_robin);
        grid.outcomes = grid.outcomes.into_iter().map(|outcome| self.seen(outcome)).collect();
        let mut advice = recommend(&grid, held);
        let expected = |at: usize| {
            let outcome = &grid.outcomes[at];
            frozen.expected(&outcome.settings?, outcome, &grid.actual)
        };
        advice.expected = advice.outcome.and_then(expected);
        let recommendation = Some(advice);
        let plain = |outcome: Outcome| outcome.without_parts();
        grid.outcomes = grid.outcomes.into_iter().map(plain).collect();
        (grid.actual, grid.round_robin) = (plain(grid.actual), plain(grid.round_robin));
        Some(SweepReport { about, grid: Some(grid), recommendation })
    }

    /// Of the requests of one worker alone nothing follows about loads beside each other.
    fn seen(&self, outcome: Outcome) -> Outcome {
        Outcome { spread: outcome.spread.filter(|_| self.is_whole()), ..outcome }
    }
}

fn costs(
    frozen: &OfflineReplay,
    decision: u32,
    settings: &RouterSettings,
    from: WorkerIx,
    to: WorkerIx,
) -> Option<(f64, f64)> {
    let all = frozen.costs_of(decision, settings)?;
    let cost = |worker| all.iter().find(|(known, _)| *known == worker).map(|(_, cost)| *cost);
    Some((cost(from)?, cost(to)?))
}
