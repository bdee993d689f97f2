//! Reports as JSON, with worker ids, which only the state knows, and figures computed from them.

use std::collections::HashMap;

use serde::Serialize;

use radixscope_insight::counterfactual::{
    About, ChangedDecision, Expected, FIXED_STATE_LIMITS, FixedStateOutcome, LoadImbalance, ModelReport,
    OfflineReplayReport, Suggestion, SweepReport, headline, hint, options_to_set, present_setting,
};
use radixscope_model::id::{DecisionId, Worker, WorkerIx};
use radixscope_router::RouterSettings;
use radixscope_state::cluster::Cluster;

/// Worker ids by index.
pub(super) struct Workers(HashMap<WorkerIx, Worker>);

impl Workers {
    pub(super) fn of(cluster: &Cluster) -> Self {
        let all = cluster.workers().indexed().chain(cluster.departed());
        Self(all.map(|(worker, state)| (worker, state.id)).collect())
    }

    fn get(&self, worker: WorkerIx) -> Option<Worker> {
        self.0.get(&worker).copied()
    }
}

/// The response body.
#[derive(Serialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub(super) enum CounterfactualResponse {
    /// One setting, on the fixed state of each decision.
    #[serde(rename = "frozen")]
    FixedState(Box<FixedStateResponse>),
    /// A grid of settings, on fixed states.
    Sweep(Box<SweepResponse>),
    /// One setting, simulated.
    Resimulated(Box<SimulatedResponse>),
}

#[derive(Serialize)]
pub(super) struct FixedStateResponse {
    headline: String,
    decisions: Decisions,
    settings: Option<RouterSettings>,
    actual: OutcomeRow,
    tried: OutcomeRow,
    #[serde(rename = "flips")]
    changed_choices: Vec<ChangedChoice>,
    limits: [&'static str; 4],
}

#[derive(Serialize)]
pub(super) struct SweepResponse {
    decisions: Decisions,
    overlap_score_weight: Vec<f64>,
    router_temperature: Vec<f64>,
    /// By weight, then temperature.
    outcomes: Vec<OutcomeRow>,
    actual: Option<OutcomeRow>,
    round_robin: Option<OutcomeRow>,
    present: Option<String>,
    recommendation: Option<RecommendationRow>,
    limits: [&'static str; 4],
}

/// A recommendation with its settings.
#[derive(Serialize)]
struct RecommendationRow {
    verdict: Suggestion,
    settings: Option<RouterSettings>,
    /// Flags to set, or variables if the version has no flag.
    set: Vec<String>,
    expected: Option<Expected>,
    why: String,
    method: String,
}

/// The evaluated and excluded decisions.
#[derive(Serialize)]
struct Decisions {
    #[serde(flatten)]
    about: About,
    /// How to get evaluable decisions, if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
}

/// An outcome with worker ids, without its settings and changed choices.
#[derive(Serialize)]
struct OutcomeRow {
    decisions: u64,
    flips_certain: u64,
    /// Equal to `flips_certain` at temperature 0 without ties.
    flips_expected: f64,
    ties: u64,
    overlap_share: Option<f64>,
    overlap_decisions: u64,
    prefill_saved_tokens: Option<f64>,
    prefill_saved_tokens_per_request: Option<f64>,
    prefill_decisions: u64,
    /// In-flight imbalance: maximum minus minimum requests in flight on a worker, right after each decision.
    spread: Option<LoadImbalance>,
    shares: Vec<ShareRow>,
}

#[derive(Serialize)]
struct ShareRow {
    #[serde(flatten)]
    worker: Worker,
    share: f64,
}

#[derive(Serialize)]
struct ChangedChoice {
    decision: DecisionId,
    from: Worker,
    to: Worker,
    actual_probability: f64,
    from_cost: f64,
    to_cost: f64,
}

#[derive(Serialize)]
pub(super) struct SimulatedResponse {
    #[serde(flatten)]
    report: ModelReport,
    prefill_saved_tokens: i64,
    /// Whether the model fits this cluster, so that absolute figures are valid.
    fits: bool,
    /// Deviations that are too large, as text.
    misfits: Vec<String>,
}

impl CounterfactualResponse {
    pub(super) fn fixed_state(report: OfflineReplayReport, workers: &Workers) -> Self {
        CounterfactualResponse::FixedState(Box::new(FixedStateResponse {
            headline: headline(&report),
            decisions: Decisions::of(report.about),
            settings: report.settings,
            actual: OutcomeRow::of(&report.actual, workers),
            tried: OutcomeRow::of(&report.tried, workers),
            changed_choices: report
                .tried
                .changed
                .iter()
                .filter_map(|changed| ChangedChoice::of(changed, workers))
                .collect(),
            limits: FIXED_STATE_LIMITS,
        }))
    }

    pub(super) fn sweep(report: SweepReport, workers: &Workers) -> Self {
        let present = present_setting(&report);
        let grid = report.grid.as_ref();
        let advice = report.recommendation.map(|advice| RecommendationRow {
            verdict: advice.verdict,
            settings: grid.and_then(|grid| advice.settings(grid)),
            set: grid
                .and_then(|grid| Some(options_to_set(&advice.settings(grid)?, &grid.recorded)))
                .unwrap_or_default(),
            expected: advice.expected,
            why: advice.why,
            method: advice.method,
        });
        CounterfactualResponse::Sweep(Box::new(SweepResponse {
            decisions: Decisions::of(report.about),
            overlap_score_weight: grid.map(|grid| grid.prefill_factors.clone()).unwrap_or_default(),
            router_temperature: grid.map(|grid| grid.temperatures.clone()).unwrap_or_default(),
            outcomes: grid
                .iter()
                .flat_map(|grid| &grid.outcomes)
                .map(|o| OutcomeRow::of(o, workers))
                .collect(),
            actual: grid.map(|grid| OutcomeRow::of(&grid.actual, workers)),
            round_robin: grid.map(|grid| OutcomeRow::of(&grid.round_robin, workers)),
            present,
            recommendation: advice,
            limits: FIXED_STATE_LIMITS,
        }))
    }

    pub(super) fn model(report: ModelReport) -> Self {
        let prefill_saved_tokens = report.prefill_saved_tokens();
        let (fits, misfits) = (report.calibration.fits(), report.calibration.misfits());
        CounterfactualResponse::Resimulated(Box::new(SimulatedResponse {
            report,
            prefill_saved_tokens,
            fits,
            misfits,
        }))
    }
}

impl Decisions {
    fn of(about: About) -> Self {
        Self { hint: hint(&about), about }
    }
}

impl OutcomeRow {
    fn of(outcome: &FixedStateOutcome, workers: &Workers) -> Self {
        let saved = outcome.prefill_saved_tokens;
        let shares = outcome.shares.iter();
        Self {
            decisions: outcome.decisions,
            flips_certain: outcome.certain_changes,
            flips_expected: outcome.expected_changes,
            ties: outcome.ties,
            overlap_share: outcome.overlap_share,
            overlap_decisions: outcome.overlap_decisions,
            prefill_saved_tokens: saved,
            prefill_saved_tokens_per_request: saved
                .map(|saved| saved / outcome.prefill_decisions.max(1) as f64),
            prefill_decisions: outcome.prefill_decisions,
            spread: outcome.imbalance,
            shares: shares
                .filter_map(|of| Some(ShareRow { worker: workers.get(of.worker)?, share: of.share }))
                .collect(),
        }
    }
}

impl ChangedChoice {
    fn of(changed: &ChangedDecision, workers: &Workers) -> Option<Self> {
        Some(Self {
            decision: changed.decision,
            from: workers.get(changed.from)?,
            to: workers.get(changed.to)?,
            actual_probability: changed.actual_probability,
            from_cost: changed.from_cost,
            to_cost: changed.to_cost,
        })
    }
}
