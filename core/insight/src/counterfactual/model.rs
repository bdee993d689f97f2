//! Recorded arrivals through a model of the cluster: what it is made of and where each part is known from, and its
//! outcome under the recorded setting and under another. Its times are fitted to what was measured first.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize, Serializer};
use thiserror::Error;

use super::calibration::{Calibration, Fit, RUNS};
use super::observed::{Clock, Observed, e2e_ms, observed};
use super::played::Played;
use super::rank::Rank;
use super::select::selected;
use super::{DecisionRange, Selection};
use crate::capacity::reference_blocks_per_worker;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::record::Role;
use radixscope_router::numbers::TEMPERATURE;
use radixscope_router::{Formula, RouterOverrides, RouterSettings};
use radixscope_sim::resimulation::{
    MAX_REQUEST_TOKENS, Percentiles, ResimulationError, ResimulationSettings, ServedTimes, SimulatedOutcome,
    run,
};
use radixscope_state::cluster::{BlockSizeSource, Cluster};
use radixscope_state::requests::Arrivals;

/// Tokens per block where no source knows it: the frontend's default.
const USUAL_BLOCK_SIZE_TOKENS: u32 = 16;

/// Where a part of the model is known from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub enum Provenance {
    /// The workers' model cards.
    ModelCard,
    /// The frontends' metrics.
    Frontend,
    /// The recorded requests and decisions.
    Recorded,
    /// No source knows it.
    Assumed,
    /// The engines' own KV events.
    Events,
}

impl Provenance {
    const fn of(source: BlockSizeSource) -> Self {
        match source {
            BlockSizeSource::ModelCard | BlockSizeSource::Component => Self::ModelCard,
            BlockSizeSource::Events => Self::Events,
            BlockSizeSource::Frontend => Self::Frontend,
            BlockSizeSource::Requests | BlockSizeSource::ComponentRequests => Self::Recorded,
        }
    }

    /// In words, after a value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Provenance::ModelCard => "from the model cards",
            Provenance::Frontend => "from the frontends' metrics",
            Provenance::Recorded => "from the recorded decisions",
            Provenance::Assumed => "assumed",
            Provenance::Events => "from the engines' KV events",
        }
    }
}

/// Its number in binary forms, its words in JSON.
impl Serialize for Provenance {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_unit_variant("Provenance", *self as u32, self.as_str())
    }
}

/// A value and where it is known from.
type WithProvenance<T> = (T, Provenance);

/// What of the state a model needs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Facts {
    workers: WithProvenance<u16>,
    blocks_per_worker: Option<u32>,
    block_size_tokens: Option<WithProvenance<u32>>,
    recorded: Option<RouterSettings>,
    /// What the workers do.
    role: Option<Role>,
    measured: Measured,
    /// In order of decision, with those before the selected ones.
    observed: Vec<Observed>,
}

/// What was really measured of the selected decisions.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Measured {
    /// To the first token: as the frontend measured it, else from the router's decision on.
    pub ttft_ms: Option<Times>,
    /// From the router's decision to the request's end.
    pub e2e_ms: Option<Times>,
}

/// How long something took, in milliseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Times {
    /// Requests that it is known of.
    pub requests: u64,
    /// Half took at most this.
    #[serde(rename = "p50")]
    pub p50_ms: f64,
    /// 95 of 100 took at most this.
    #[serde(rename = "p95")]
    pub p95_ms: f64,
}

impl Times {
    pub(super) fn of(values: &[f64]) -> Option<Self> {
        let found = Percentiles::of(values.iter().copied());
        let times = Times { requests: values.len() as u64, p50_ms: found.p50, p95_ms: found.p95 };
        (!values.is_empty()).then_some(times)
    }
}

impl Facts {
    /// As the state knows them now, for the selected decisions.
    pub fn of(cluster: &Cluster, selection: Selection) -> Self {
        let mut workers = std::collections::BTreeSet::new();
        let mut recorded = None;
        let clock = Clock::of(cluster, selection);
        let (mut ttft, mut e2e) = (Vec::new(), Vec::new());
        for decided in selected(cluster, selection) {
            let decision = &decided.decision;
            workers.insert(decision.worker);
            workers.extend(decision.candidates.iter().map(|candidate| candidate.worker));
            recorded = recorded.or_else(|| cluster.settings_of_decision(decision));
            ttft.extend(clock.ttft_ms(decided));
            e2e.extend(e2e_ms(decided));
        }
        let from = if workers.is_empty() { Provenance::Assumed } else { Provenance::Recorded };
        let is_meant = |ix: &WorkerIx| selection.pool.is_none_or(|pool| cluster.pool_of(*ix) == Some(pool));
        let all = cluster.workers().indices().filter(is_meant);
        let count = if workers.is_empty() { all.clone().count() } else { workers.len() };
        let modelled = || all.clone().filter(|ix| workers.is_empty() || workers.contains(ix));
        Self {
            workers: (u16::try_from(count).unwrap_or(u16::MAX), from),
            // The smallest: a larger worker then keeps less than it could, never more.
            blocks_per_worker: modelled()
                .filter_map(|worker| cluster.worker(worker)?.capacity_blocks)
                .min()
                .and_then(|blocks| u32::try_from(blocks).ok()),
            block_size_tokens: modelled()
                .find_map(|worker| cluster.block_size(worker))
                .map(|size| (size.value, Provenance::of(size.source))),
            recorded,
            role: selection.pool.and_then(|pool| Some(cluster.role(pool)?.0)),
            measured: Measured { ttft_ms: Times::of(&ttft), e2e_ms: Times::of(&e2e) },
            observed: observed(cluster, selection, clock),
        }
    }

    pub(super) fn settings(&self, arrivals: &Arrivals) -> (ResimulationSettings, Vec<Fact>) {
        let size = self.block_size_tokens.unwrap_or((USUAL_BLOCK_SIZE_TOKENS, Provenance::Assumed));
        let card = self.blocks_per_worker.map(|blocks| (blocks, Provenance::ModelCard));
        let capacity =
            card.unwrap_or_else(|| (reference_blocks_per_worker(size.0.max(1)), Provenance::Assumed));
        let outputs: Vec<u64> = arrivals.iter().filter_map(|arrival| arrival.output_tokens).collect();
        let mut settings = ResimulationSettings {
            workers: self.workers.0,
            blocks_per_worker: capacity.0,
            block_size_tokens: size.0,
            ..ResimulationSettings::default()
        };
        let output_from = if let Some(mean) = outputs.iter().sum::<u64>().checked_div(outputs.len() as u64) {
            settings.mean_output_tokens =
                u32::try_from(mean).unwrap_or(u32::MAX).clamp(1, MAX_REQUEST_TOKENS);
            Provenance::Recorded
        } else {
            Provenance::Assumed
        };
        let recorded = self.recorded.unwrap_or_default();
        let weight_from = if self.recorded.is_some() { Provenance::Recorded } else { Provenance::Assumed };
        // A decision does not have it; that it is not Dynamo's default was reported.
        let is_reported = recorded.router_temperature != TEMPERATURE.default;
        let temperature_from = if is_reported { Provenance::Recorded } else { Provenance::Assumed };
        let fact = |name: &str, (value, from): WithProvenance<f64>, unit: &str| Fact {
            name: name.to_owned(),
            value,
            unit: unit.to_owned(),
            from,
        };
        let number = |known: WithProvenance<u32>| (f64::from(known.0), known.1);
        let facts = vec![
            fact("workers", (f64::from(self.workers.0), self.workers.1), ""),
            fact("KV capacity a worker", number(capacity), "blocks"),
            fact("block size", number(size), "tokens"),
            fact(recorded.prefill_factor_number().name, (recorded.prefill_factor(), weight_from), ""),
            fact(TEMPERATURE.name, (recorded.router_temperature, temperature_from), ""),
            fact("batch limit", (f64::from(settings.max_batch), Provenance::Assumed), "requests"),
            fact("token limit a step", (f64::from(settings.max_num_tokens), Provenance::Assumed), "tokens"),
            fact(
                "outputs of unknown length",
                (f64::from(settings.mean_output_tokens), output_from),
                "tokens",
            ),
        ];
        (settings, facts)
    }
}

/// A part of the model.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Fact {
    /// What.
    pub name: String,
    /// How much.
    pub value: f64,
    /// Of what; empty for plain numbers.
    pub unit: String,
    /// Where it is known from.
    pub from: Provenance,
}

/// What came of one run of the model, warm-up left out.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// Requests counted.
    pub requests: u64,
    /// Requests that no worker of the model could run, warm-up included.
    pub refused_requests: u64,
    /// Blocks that the router saw on the chosen workers over blocks of the prompts, 0 … 1; `None` where the router
    /// keeps no index.
    pub overlap_share: Option<f64>,
    /// Prompt tokens found in the engines' caches over prompt tokens, 0 … 1.
    pub hit_rate: Option<f64>,
    /// Prompt tokens.
    pub prompt_tokens: u64,
    /// Prompt tokens computed.
    pub prefill_tokens: u64,
    /// Most less fewest requests in flight, mean over samples in time.
    pub spread_mean: Option<f64>,
    /// The same, 95th percentile.
    pub spread_p95: Option<f64>,
    /// Shares of the requests by worker of the model, 0 … 1, largest first: they are not the real workers.
    pub shares: Vec<f64>,
    /// To the first token at the user, frontend and way back included.
    pub ttft_ms: Option<Times>,
    /// To the last token at the user.
    pub e2e_ms: Option<Times>,
}

impl Figures {
    fn of(outcome: &SimulatedOutcome) -> Self {
        let times = |found: Option<Percentiles>| {
            found.map(|found| Times { requests: outcome.requests, p50_ms: found.p50, p95_ms: found.p95 })
        };
        let workers = 0..outcome.requests_by_worker.len() as u16;
        let mut shares: Vec<f64> = workers.filter_map(|worker| outcome.share(worker)).collect();
        shares.sort_by(|a, b| b.total_cmp(a));
        Self {
            requests: outcome.requests,
            refused_requests: outcome.refused_requests,
            overlap_share: outcome.overlap_share,
            hit_rate: outcome.hit_rate,
            prompt_tokens: outcome.prompt_tokens,
            prefill_tokens: outcome.prefill_tokens,
            spread_mean: outcome.spread.map(|spread| spread.requests.mean),
            spread_p95: outcome.spread.map(|spread| spread.requests.p95),
            shares,
            ttft_ms: times(outcome.ttft_ms),
            e2e_ms: times(outcome.e2e_ms),
        }
    }
}

/// Model against model.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ModelReport {
    /// Arrivals played, warm-up included.
    pub arrivals: u64,
    /// Arrivals selected but not played, because their prompts together are too long.
    pub arrivals_left_out: u64,
    /// First arrival played.
    pub from_ms: Millis,
    /// Last arrival played.
    pub to_ms: Millis,
    /// What was tried.
    #[serde(rename = "settings")]
    pub tried_settings: RouterSettings,
    /// The router of `recorded`, in words.
    pub recorded_router: String,
    /// The router of `tried`, in words.
    pub tried_router: String,
    /// The model under the recorded setting.
    pub recorded: Figures,
    /// The model under the setting tried.
    pub tried: Figures,
    /// What was really measured.
    pub measured: Measured,
    /// How well the model fits that.
    pub calibration: Calibration,
    /// Which setting has the shorter times to the first token.
    pub ttft_rank: Rank,
    /// To the last token.
    pub e2e_rank: Rank,
    /// Which finds more of the prompts in the engines' caches.
    pub hit_rate_rank: Rank,
    /// What the model is made of.
    pub facts: Vec<Fact>,
    /// What every figure rests on, as whole sentences.
    pub assumptions: Vec<String>,
}

impl ModelReport {
    /// Prompt tokens that need no computing in the model, more than under the recorded setting (below 0: fewer).
    pub fn prefill_saved_tokens(&self) -> i64 {
        let signed = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        signed(self.recorded.prefill_tokens).saturating_sub(signed(self.tried.prefill_tokens))
    }
}

/// Why there is no report.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum ModelError {
    /// No prompt is known.
    #[error("no prompt is known, so there is nothing to play again")]
    NoArrivals,
    /// The model's router is that of Dynamo 0.9.
    #[error("the model's router is that of Dynamo 0.9, which knows no overlap score credit; leave it at 1")]
    Credit,
    /// The model cannot be run like that.
    #[error(transparent)]
    Run(#[from] ResimulationError),
}

/// Plays the latest arrivals twice, under the recorded settings and with `overrides` over
/// them. `progress(done, total)` is called now
/// and then and says whether to go on; both count requests of both runs.
///
/// The caches of the model are filled by the arrivals before the selected ones, which are not counted: as many again, as
/// far as they are retained, at least a fifth.
///
/// # Errors
/// What cannot be played, or that `progress` broke off.
pub fn resimulate(
    arrivals: &Arrivals,
    facts: &Facts,
    span: DecisionRange,
    overrides: RouterOverrides,
    mut progress: impl FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<ModelReport, ModelError> {
    if overrides.overlap_score_credit.is_some_and(|credit| credit != 1.0) {
        return Err(ModelError::Credit);
    }
    let (mut settings, known) = facts.settings(arrivals);
    let mut played = Played::of(arrivals, span, settings.block_size_tokens);
    let (Some(first), Some(last)) = (played.heads.first(), played.heads.last()) else {
        return Err(ModelError::NoArrivals);
    };
    let (from_ms, to_ms) = (first.at_ms, last.at_ms);
    settings.warm_up_percent = played.warm_up_percent;
    settings.router = facts.recorded.unwrap_or_default();
    let count = played.heads.len();
    let mut runs = 0;
    let mut play = |played: &Played, settings: &ResimulationSettings| {
        let before = runs * count;
        runs += 1;
        run(played.arrivals(), settings, &mut |now| progress(before + now.done, (RUNS + 2) * count))
    };
    let calibration =
        Fit { played: &mut played, settings: &mut settings, observed: &facts.observed, play: &mut play }
            .fit()?;
    let recorded = settings;
    let router = overrides.over(recorded.router);
    let tried = ResimulationSettings { router, ..recorded.clone() };
    let (of_recorded, of_tried) = (play(&played, &recorded)?, play(&played, &tried)?);
    let counted = |outcome: &SimulatedOutcome| {
        let warm_up = count * recorded.warm_up_percent as usize / 100;
        outcome.times.get(warm_up..).unwrap_or_default().to_vec()
    };
    let times = (counted(&of_tried), counted(&of_recorded));
    let rank = |figure: &dyn Fn(&ServedTimes) -> f64| Rank::of(&times.0, &times.1, figure);
    let mut assumptions = tried.assumptions();
    let tried_router = assumptions.pop().unwrap_or_default();
    let recorded_router = recorded.assumptions().pop().unwrap_or_default();
    if facts.recorded.is_some_and(|recorded| recorded.formula != Formula::A) {
        assumptions.push(
            "The recorded router is of Dynamo 1.2 or later; with its default options its costs are those of the \
             model's router."
                .to_owned(),
        );
    }
    if let Some(role @ (Role::Prefill | Role::Decode)) = facts.role {
        assumptions.push(format!(
            "The workers of this pool do {} alone; the model's workers compute prompts and generate outputs.",
            role.as_str()
        ));
    }
    assumptions
        .push("The recorded temperature is not reported: the model takes Dynamo's default, 0.".to_owned());
    Ok(ModelReport {
        arrivals: count as u64,
        arrivals_left_out: played.left_out,
        from_ms,
        to_ms,
        tried_settings: tried.router,
        recorded_router,
        tried_router,
        recorded: Figures::of(&of_recorded),
        tried: Figures::of(&of_tried),
        measured: facts.measured,
        calibration,
        ttft_rank: rank(&|times| times.ttft_us as f64),
        e2e_rank: rank(&|times| times.e2e_us as f64),
        hit_rate_rank: rank(&|times| -f64::from(times.cached_tokens)),
        facts: known,
        assumptions,
    })
}
