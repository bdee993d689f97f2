//! Decisions as `GET /api/v1/decisions` gives them.

use serde::Serialize;

use super::Decimal;
use radixscope_model::formula::Formula;
use radixscope_model::id::WorkerIx;
use radixscope_model::record::{Candidate, DecisionSource, NotReconstructed, Outcome, PathEnd, Progress};
use radixscope_state::cluster::{Cluster, DecisionEntry, DecisionTotals, Hint};

/// The latest decisions, newest first, and what they add up to.
#[derive(Serialize, Debug)]
pub struct DecisionsDto {
    seq: u64,
    decisions: Vec<DecisionDto>,
    totals: TotalsDto,
    /// Which setting would show decisions, where none was received.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<Hint>,
}

impl DecisionsDto {
    /// `decisions` as they are, with sums over all ever heard of `workers`, or of all.
    pub fn of<'a>(
        cluster: &Cluster,
        decisions: impl Iterator<Item = &'a DecisionEntry>,
        workers: Option<&[WorkerIx]>,
    ) -> Self {
        let of_worker = |&worker: &WorkerIx| cluster.decisions().totals_of(worker);
        let totals = match workers {
            Some(workers) => {
                workers.iter().map(of_worker).fold(DecisionTotals::default(), DecisionTotals::plus)
            }
            None => cluster.decisions().totals(),
        };
        Self {
            seq: cluster.seq().0,
            decisions: decisions.filter_map(|decided| DecisionDto::of(cluster, decided)).collect(),
            totals: totals.into(),
            hint: cluster.decisions_hint(),
        }
    }
}

/// A routing decision: everything that all sources told of it.
#[derive(Serialize, Debug)]
pub struct DecisionDto {
    /// Running number within this run of the server.
    id: Decimal,
    /// The first record of it.
    seq: u64,
    /// When it was first heard.
    at_ms: u64,
    /// When the router decided, by its own clock.
    decided_ms: Option<u64>,
    request_id: Option<String>,
    router_id: Option<Decimal>,
    worker_id: Decimal,
    dp_rank: u32,
    /// Whether the worker was given the request; `false`: a query that runs nothing, `null`: nobody said.
    dispatched: Option<bool>,
    isl_tokens: Option<u64>,
    isl_blocks: Option<u64>,
    block_size_tokens: Option<u32>,
    /// Blocks of the prompt that the chosen worker held: the router's own count, else as reconstructed here.
    overlap_blocks: Option<u64>,
    /// Letter of the cost formula that `candidates` were computed with.
    formula: Option<&'static str>,
    /// Factor of its prefill term, in formula A.
    overlap_score_weight: Option<f64>,
    /// The same from formula B on.
    prefill_load_scale: Option<f64>,
    /// Cost of the chosen worker as the router gave it.
    logit: Option<f64>,
    /// Whether the router said that several workers cost the same.
    tied: bool,
    candidates: Vec<CandidateDto>,
    /// Candidates were known, but are no longer kept.
    candidates_forgotten: bool,
    /// The last block of the prompt that any worker held when the decision was received.
    path: Option<PathDto>,
    progress: ProgressDto,
    /// The source that told of it first.
    source: &'static str,
    /// Every source that told something of it.
    sources: Vec<&'static str>,
    completeness: &'static str,
    /// Why the costs of all workers could not be computed though the prompt is known: `block_size_unknown`,
    /// `state_unknown` (what workers held and did at that time), `overlap_differs` or `cost_differs` (computed, they
    /// are not what the router reported).
    not_reconstructed: Option<&'static str>,
    /// How much of the prompt the chosen worker held: `hit`, `partial`, `miss` or `unknown`.
    verdict: &'static str,
    /// Cost of the next best less that of the chosen one, in blocks.
    margin_blocks: Option<f64>,
    /// Blocks of the prompt that another candidate held beyond those of the chosen one; absent where none did.
    lost_affinity_blocks: Option<u32>,
}

#[derive(Serialize, Debug)]
struct CandidateDto {
    worker_id: Decimal,
    dp_rank: u32,
    overlap_blocks: Option<u64>,
    prefill_blocks: Option<f64>,
    decode_blocks: Option<f64>,
    cost: Option<f64>,
    /// Not known of a decision that was made: no source tells the temperature.
    probability: Option<f64>,
    selected: bool,
}

#[derive(Serialize, Debug)]
struct PathDto {
    worker_id: Decimal,
    dp_rank: u32,
    block_hash: Decimal,
    blocks: u32,
}

/// How the request went on.
#[derive(Serialize, Debug)]
struct ProgressDto {
    first_token_ms: Option<u64>,
    ended_ms: Option<u64>,
    outcome: Option<&'static str>,
    ttft_ms: Option<f64>,
    itl_ms: Option<f64>,
    output_tokens: Option<u64>,
    cached_tokens: Option<u64>,
}

/// Sums over decisions. All but `count` are of those whose prompt length and overlap are both known and that were no
/// mere queries.
#[derive(Serialize, Debug)]
pub struct TotalsDto {
    count: u64,
    /// Decisions that the following are of.
    with_blocks: u64,
    isl_blocks: u64,
    overlap_blocks: u64,
    /// `overlap_blocks` over `isl_blocks`, 0 … 1.
    overlap_share: Option<f64>,
    /// Mean of each request's hit rate, 0 … 1: the router's own `kv_hit_rate`.
    mean_hit_rate: Option<f64>,
}

impl From<DecisionTotals> for TotalsDto {
    fn from(totals: DecisionTotals) -> Self {
        Self {
            count: totals.count,
            with_blocks: totals.with_blocks,
            isl_blocks: totals.isl_blocks,
            overlap_blocks: totals.overlap_blocks,
            overlap_share: totals.overlap_share(),
            mean_hit_rate: totals.mean_hit_rate(),
        }
    }
}

impl DecisionDto {
    /// `None` if the state does not know its worker.
    fn of(cluster: &Cluster, decided: &DecisionEntry) -> Option<Self> {
        let decision = &decided.decision;
        let worker = cluster.worker(decision.worker)?.id;
        let candidates = if decision.candidates.is_empty() {
            vec![CandidateDto {
                worker_id: Decimal(worker.id.0),
                dp_rank: worker.dp_rank,
                overlap_blocks: decided.overlap_blocks(),
                prefill_blocks: None,
                decode_blocks: None,
                cost: decision.logit.and_then(finite),
                probability: None,
                selected: true,
            }]
        } else {
            let of = |candidate| CandidateDto::of(cluster, candidate, decision.worker);
            decision.candidates.iter().filter_map(of).collect()
        };
        Some(Self {
            id: Decimal(decision.id.0),
            seq: decided.seq.0,
            at_ms: decided.at_ms.0,
            decided_ms: decision.decided_ms.map(|at| at.0),
            request_id: decision.request_id.as_ref().map(|id| id.to_string()),
            router_id: decision.router.map(Decimal),
            worker_id: Decimal(worker.id.0),
            dp_rank: worker.dp_rank,
            dispatched: decision.dispatched,
            isl_tokens: decision.isl_tokens,
            isl_blocks: decision.isl_blocks,
            block_size_tokens: decision.block_size_tokens,
            overlap_blocks: decided.overlap_blocks(),
            formula: decision.formula.map(Formula::as_str),
            overlap_score_weight: decision.prefill_factor.filter(|_| decision.formula == Some(Formula::A)),
            prefill_load_scale: decision.prefill_factor.filter(|_| decision.formula != Some(Formula::A)),
            logit: decision.logit.and_then(finite),
            tied: decision.tied,
            candidates,
            candidates_forgotten: decided.candidates_forgotten(),
            path: decision.path.and_then(|end| PathDto::of(cluster, end)),
            progress: ProgressDto::of(&decided.progress),
            source: decision.source.as_str(),
            sources: decided.sources().map(DecisionSource::as_str).collect(),
            completeness: decision.completeness.as_str(),
            not_reconstructed: decision.not_reconstructed.map(NotReconstructed::as_str),
            verdict: decided.cache_outcome().as_str(),
            margin_blocks: decided.margin_blocks().ok().and_then(finite),
            lost_affinity_blocks: decided.lost_affinity().map(|lost| lost.more_blocks),
        })
    }
}

impl CandidateDto {
    fn of(cluster: &Cluster, candidate: &Candidate, chosen: WorkerIx) -> Option<Self> {
        let id = cluster.worker(candidate.worker)?.id;
        Some(Self {
            worker_id: Decimal(id.id.0),
            dp_rank: id.dp_rank,
            overlap_blocks: Some(candidate.overlap_blocks.into()),
            prefill_blocks: finite(candidate.prefill_blocks),
            decode_blocks: finite(candidate.decode_blocks),
            cost: finite(candidate.cost),
            probability: None,
            selected: candidate.worker == chosen,
        })
    }
}

impl PathDto {
    fn of(cluster: &Cluster, end: PathEnd) -> Option<Self> {
        let id = cluster.worker(end.worker)?.id;
        let (worker_id, block_hash) = (Decimal(id.id.0), end.block_hash.into());
        Some(Self { worker_id, dp_rank: id.dp_rank, block_hash, blocks: end.blocks })
    }
}

impl ProgressDto {
    fn of(progress: &Progress) -> Self {
        Self {
            first_token_ms: progress.first_token_ms.map(|at| at.0),
            ended_ms: progress.ended_ms.map(|at| at.0),
            outcome: progress.outcome.map(Outcome::as_str),
            ttft_ms: progress.ttft_us.map(ms),
            itl_ms: progress.itl_us.map(ms),
            output_tokens: progress.output_tokens,
            cached_tokens: progress.cached_tokens,
        }
    }
}

pub(super) fn ms(us: u64) -> f64 {
    us as f64 / 1_000.0
}

/// JSON has no word for other numbers.
pub fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
