//! Reports as JSON: ids as strings, numbers finite or `null`.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use radixscope_insight::counterfactual::{
    About, FROZEN_LIMITS, Fact, Figures, Flipped, FrozenReport, Measured, ModelReport, NO_CANDIDATES_HINT,
    SweepReport, Times, headline, present_setting,
};
use radixscope_model::id::{Worker, WorkerIx};
use radixscope_router::frozen::{Outcome, Suggestion};
use radixscope_state::cluster::Cluster;

use radixscope_export::{Decimal, finite, settings};

/// Settings by Dynamo's names.
type SettingsJson = BTreeMap<&'static str, Value>;

/// Who the workers are.
pub(super) struct Workers(Vec<Worker>);

impl Workers {
    pub(super) fn of(cluster: &Cluster) -> Self {
        Self(cluster.workers().iter().map(|worker| worker.id).collect())
    }

    fn get(&self, worker: WorkerIx) -> Option<WorkerDto> {
        let id = self.0.get(worker.at())?;
        Some(WorkerDto { worker_id: Decimal(id.id.0), dp_rank: id.dp_rank })
    }
}

#[derive(Clone, Copy, Serialize)]
struct WorkerDto {
    worker_id: Decimal,
    dp_rank: u32,
}

/// The answer.
#[derive(Serialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub(super) enum Answer {
    /// One setting on the frozen state.
    Frozen(Box<FrozenDto>),
    /// Many.
    Sweep(Box<SweepDto>),
    /// The model.
    Resimulated(Box<ModelDto>),
}

#[derive(Serialize)]
pub(super) struct FrozenDto {
    headline: String,
    decisions: AboutDto,
    settings: Option<SettingsJson>,
    actual: OutcomeDto,
    tried: OutcomeDto,
    flips: Vec<FlipDto>,
    limits: [&'static str; 4],
}

#[derive(Serialize)]
pub(super) struct SweepDto {
    decisions: AboutDto,
    overlap_score_weight: Vec<f64>,
    router_temperature: Vec<f64>,
    /// By weight, then temperature.
    outcomes: Vec<OutcomeDto>,
    actual: Option<OutcomeDto>,
    round_robin: Option<OutcomeDto>,
    present: Option<String>,
    recommendation: Option<RecommendationDto>,
    limits: [&'static str; 4],
}

#[derive(Serialize)]
struct RecommendationDto {
    verdict: &'static str,
    settings: Option<SettingsJson>,
    why: String,
}

/// Which decisions, and what is not judged.
#[derive(Serialize)]
struct AboutDto {
    seq: u64,
    considered: u64,
    judged: u64,
    left_out: Vec<LeftOutDto>,
    from_ms: Option<u64>,
    to_ms: Option<u64>,
    /// Candidates computed here, not written by the router.
    reconstructed: u64,
    /// Requests that still run.
    running: u64,
    /// What the latest decision judged was taken with.
    settings: Option<SettingsJson>,
    /// Different formulas and weights among those judged.
    recorded_settings: u32,
    /// What would make decisions judgeable, where none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
}

#[derive(Serialize)]
struct LeftOutDto {
    reason: &'static str,
    count: u64,
}

#[derive(Serialize)]
struct OutcomeDto {
    decisions: u64,
    flips_certain: u64,
    /// At temperature 0 without ties the same.
    flips_expected: Option<f64>,
    ties: u64,
    overlap_share: Option<f64>,
    overlap_decisions: u64,
    prefill_saved_tokens: Option<f64>,
    prefill_saved_tokens_per_request: Option<f64>,
    prefill_decisions: u64,
    spread: Option<SpreadDto>,
    shares: Vec<ShareDto>,
}

/// Most less fewest requests in flight on a worker, right after each decision.
#[derive(Serialize)]
struct SpreadDto {
    mean: Option<f64>,
    p95: u32,
    most: u32,
    ended_decisions: u64,
}

#[derive(Serialize)]
struct ShareDto {
    #[serde(flatten)]
    worker: WorkerDto,
    share: Option<f64>,
}

#[derive(Serialize)]
struct FlipDto {
    decision: Decimal,
    from: WorkerDto,
    to: WorkerDto,
    actual_probability: Option<f64>,
    from_cost: Option<f64>,
    to_cost: Option<f64>,
}

#[derive(Serialize)]
pub(super) struct ModelDto {
    settings: SettingsJson,
    arrivals: u64,
    arrivals_left_out: u64,
    from_ms: u64,
    to_ms: u64,
    recorded_router: String,
    tried_router: String,
    recorded: FiguresDto,
    tried: FiguresDto,
    prefill_saved_tokens: i64,
    measured: MeasuredDto,
    facts: Vec<FactDto>,
    assumptions: Vec<String>,
}

#[derive(Serialize)]
struct FiguresDto {
    requests: u64,
    refused_requests: u64,
    overlap_share: Option<f64>,
    hit_rate: Option<f64>,
    prompt_tokens: u64,
    prefill_tokens: u64,
    spread_mean: Option<f64>,
    spread_p95: Option<f64>,
    /// Largest first: the model's workers are not the real ones.
    shares: Vec<f64>,
    ttft_ms: Option<TimesDto>,
    e2e_ms: Option<TimesDto>,
}

#[derive(Serialize)]
struct TimesDto {
    requests: u64,
    p50: f64,
    p95: f64,
}

#[derive(Serialize)]
struct MeasuredDto {
    ttft_ms: Option<TimesDto>,
    e2e_ms: Option<TimesDto>,
}

#[derive(Serialize)]
struct FactDto {
    name: String,
    value: f64,
    unit: String,
    from: &'static str,
}

impl Answer {
    pub(super) fn frozen(report: &FrozenReport, workers: &Workers) -> Self {
        Answer::Frozen(Box::new(FrozenDto {
            headline: headline(report),
            decisions: about(&report.about),
            settings: report.settings.map(|tried| settings(&tried)),
            actual: outcome(&report.actual, workers),
            tried: outcome(&report.tried, workers),
            flips: report.flips.iter().filter_map(|flipped| flip(flipped, workers)).collect(),
            limits: FROZEN_LIMITS,
        }))
    }

    pub(super) fn sweep(report: &SweepReport, workers: &Workers) -> Self {
        let grid = report.grid.as_ref();
        Answer::Sweep(Box::new(SweepDto {
            decisions: about(&report.about),
            overlap_score_weight: grid.map(|grid| grid.prefill_factors.clone()).unwrap_or_default(),
            router_temperature: grid.map(|grid| grid.temperatures.clone()).unwrap_or_default(),
            outcomes: grid.iter().flat_map(|grid| &grid.outcomes).map(|o| outcome(o, workers)).collect(),
            actual: grid.map(|grid| outcome(&grid.actual, workers)),
            round_robin: grid.map(|grid| outcome(&grid.round_robin, workers)),
            present: present_setting(report),
            recommendation: report.recommendation.as_ref().map(|advice| RecommendationDto {
                verdict: match advice.verdict {
                    Suggestion::MoreOverlap => "more_overlap",
                    Suggestion::MoreEven => "more_even",
                    Suggestion::Keep => "keep",
                    Suggestion::Unknown => "unknown",
                },
                settings: advice
                    .outcome
                    .and_then(|at| grid?.outcomes.get(at)?.settings)
                    .map(|tried| settings(&tried)),
                why: advice.why.clone(),
            }),
            limits: FROZEN_LIMITS,
        }))
    }

    pub(super) fn model(report: &ModelReport) -> Self {
        Answer::Resimulated(Box::new(ModelDto {
            settings: settings(&report.tried_settings),
            arrivals: report.arrivals,
            arrivals_left_out: report.arrivals_left_out,
            from_ms: report.from_ms.0,
            to_ms: report.to_ms.0,
            recorded_router: report.recorded_router.clone(),
            tried_router: report.tried_router.clone(),
            recorded: figures(&report.recorded),
            tried: figures(&report.tried),
            prefill_saved_tokens: report.prefill_saved_tokens(),
            measured: measured(report.measured),
            facts: report.facts.iter().map(fact).collect(),
            assumptions: report.assumptions.clone(),
        }))
    }
}

fn about(about: &About) -> AboutDto {
    AboutDto {
        seq: about.seq.0,
        considered: about.considered,
        judged: about.judged,
        left_out: about
            .left_out
            .iter()
            .map(|&(reason, count)| LeftOutDto { reason: reason.as_str(), count })
            .collect(),
        from_ms: about.from_ms.map(|at| at.0),
        to_ms: about.to_ms.map(|at| at.0),
        reconstructed: about.reconstructed,
        running: about.running,
        settings: about.recorded.map(|recorded| settings(&recorded)),
        recorded_settings: about.recorded_settings,
        hint: (about.judged == 0).then_some(NO_CANDIDATES_HINT),
    }
}

fn outcome(outcome: &Outcome, workers: &Workers) -> OutcomeDto {
    let saved = outcome.prefill_saved_tokens.and_then(finite);
    OutcomeDto {
        decisions: outcome.decisions,
        flips_certain: outcome.flips_certain,
        flips_expected: finite(outcome.flips_expected),
        ties: outcome.ties,
        overlap_share: outcome.overlap_share.and_then(finite),
        overlap_decisions: outcome.overlap_decisions,
        prefill_saved_tokens: saved,
        prefill_saved_tokens_per_request: saved.map(|saved| saved / outcome.prefill_decisions.max(1) as f64),
        prefill_decisions: outcome.prefill_decisions,
        spread: outcome.spread.map(|spread| SpreadDto {
            mean: finite(spread.mean),
            p95: spread.p95,
            most: spread.most,
            ended_decisions: spread.ended_decisions,
        }),
        shares: outcome
            .shares
            .iter()
            .filter_map(|of| Some(ShareDto { worker: workers.get(of.worker)?, share: finite(of.share) }))
            .collect(),
    }
}

fn flip(flip: &Flipped, workers: &Workers) -> Option<FlipDto> {
    Some(FlipDto {
        decision: Decimal(flip.decision.0),
        from: workers.get(flip.from)?,
        to: workers.get(flip.to)?,
        actual_probability: finite(flip.actual_probability),
        from_cost: finite(flip.from_cost),
        to_cost: finite(flip.to_cost),
    })
}

fn figures(of: &Figures) -> FiguresDto {
    FiguresDto {
        requests: of.requests,
        refused_requests: of.refused_requests,
        overlap_share: of.overlap_share.and_then(finite),
        hit_rate: of.hit_rate.and_then(finite),
        prompt_tokens: of.prompt_tokens,
        prefill_tokens: of.prefill_tokens,
        spread_mean: of.spread_mean.and_then(finite),
        spread_p95: of.spread_p95.and_then(finite),
        shares: of.shares.clone(),
        ttft_ms: of.ttft_ms.map(times),
        e2e_ms: of.e2e_ms.map(times),
    }
}

fn times(of: Times) -> TimesDto {
    TimesDto { requests: of.requests, p50: of.p50_ms, p95: of.p95_ms }
}

fn measured(of: Measured) -> MeasuredDto {
    MeasuredDto { ttft_ms: of.ttft_ms.map(times), e2e_ms: of.e2e_ms.map(times) }
}

fn fact(fact: &Fact) -> FactDto {
    FactDto { name: fact.name.clone(), value: fact.value, unit: fact.unit.clone(), from: fact.from.as_str() }
}
