//! Decisions as `GET /api/v1/decisions` gives them.

use serde::Serialize;

use radixscope_model::formula::Formula;
use radixscope_model::id::{BlockHash, DecisionId, Millis, PoolIx, Seq, Worker, WorkerIx, optional_decimal};
use radixscope_model::record::{
    Arithmetic, Candidate, ClientMeasured, Completeness, DecidedBy, DecisionSource, NotReconstructed,
    PathEnd, Progress, Role, RoutingMode, ScoredCandidate, Scores,
};
use radixscope_state::cluster::{Cluster, DecisionEntry, DecisionTotals, Hint, PoolState};

use crate::TraceUrl;
use crate::reuse::ReuseRow;

use super::{overlap_score_weight, prefill_load_scale};

/// The latest decisions, newest first, and what they add up to.
#[derive(Serialize, Debug)]
pub struct Decisions {
    seq: Seq,
    decisions: Vec<DecisionRow>,
    totals: Totals,
    /// Which setting would show decisions, where none was received.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<Hint>,
}

/// Whose decisions are summed: of these workers, in these pools; `None`: of all.
#[derive(Clone, Copy, Debug, Default)]
pub struct DecisionsOf<'a> {
    /// Chosen.
    pub workers: Option<&'a [WorkerIx]>,
    /// Chosen from; asked only where no worker is named.
    pub pools: Option<&'a [PoolIx]>,
    /// Template of the links to their traces.
    pub trace_url: Option<&'a TraceUrl>,
}

impl Decisions {
    /// `decisions` as they are, with sums over all ever received of those that are meant.
    pub fn of<'a>(
        cluster: &Cluster,
        decisions: impl Iterator<Item = &'a DecisionEntry>,
        of: DecisionsOf<'_>,
    ) -> Self {
        let of_worker = |&worker: &WorkerIx| cluster.decisions().totals_of(worker);
        let of_pool = |&pool: &PoolIx| cluster.decisions().totals_in(pool);
        let none = DecisionTotals::default();
        let totals = match of {
            DecisionsOf { workers: Some(workers), .. } => {
                workers.iter().map(of_worker).fold(none, DecisionTotals::plus)
            }
            DecisionsOf { pools: Some(pools), .. } => {
                pools.iter().map(of_pool).fold(none, DecisionTotals::plus)
            }
            _ => cluster.decisions().totals(),
        };
        Self {
            seq: cluster.seq(),
            decisions: decisions
                .filter_map(|decided| DecisionRow::of(cluster, decided, of.trace_url))
                .collect(),
            totals: totals.into(),
            hint: cluster.decisions_hint(),
        }
    }
}

/// One decision as `GET /api/v1/decisions` gives it; `None` if the state does not know its worker.
pub fn decision_row(cluster: &Cluster, decided: &DecisionEntry) -> Option<impl Serialize> {
    DecisionRow::of(cluster, decided, None)
}

/// A routing decision: the merged report of all sources, with worker ids in place of indices.
#[derive(Serialize, Debug)]
struct DecisionRow {
    /// Running number within this run of the server.
    id: DecisionId,
    /// The first record of it.
    seq: Seq,
    /// When it was first received.
    at_ms: Millis,
    /// When the router decided, by its own clock.
    decided_ms: Option<Millis>,
    request_id: Option<String>,
    #[serde(serialize_with = "optional_decimal")]
    router_id: Option<u64>,
    #[serde(flatten)]
    worker: Worker,
    /// The pool that was chosen from, as `NAMESPACE/COMPONENT`, and what its workers do.
    pool: String,
    role: Option<Role>,
    /// The adapter (LoRA) that it asked for; `null`: none, or not reported.
    adapter: Option<String>,
    /// The choice for the same request in the other pool, where prefill and decode are apart.
    other_part: Option<DecisionId>,
    /// Whether the router skipped the prefill pool, so that the decode worker computes the prompt; `null`: not reported, or prefill and
    /// decode are not apart.
    prefill_bypassed: Option<bool>,
    /// Dynamo's name of the mode that chose, where a log names another one than by cached blocks and load: then no overlap is
    /// known. `null`: by those, or not reported.
    routing_mode: Option<RoutingMode>,
    /// The session that the request is of, as its client named it; `null`: none, or not reported.
    session: Option<String>,
    /// The id of its trace, as its router's log has it; `null`: not reported.
    trace_id: Option<String>,
    /// Link to its trace, by the template that the server was started with (`--trace-url`); `null`: there is none, or a value of it is not
    /// reported.
    trace_url: Option<String>,
    /// What decided: `cost`, `session_affinity`, `pinned` (bound to the worker by its session, its client or a gateway), `policy`
    /// (another worker-selection policy than the cost formula), `mode` (see `routing_mode`), `scores` (of another router, see `scores`). `null`: not reported.
    decided_by: Option<DecidedBy>,
    /// The router whose arithmetic it shows: `dynamo`, `endpoint_picker` (an EPP, as llm-d's) or `sglang_gateway`. All that is in blocks,
    /// and costs, are of Dynamo's alone.
    arithmetic: Arithmetic,
    /// What another router than Dynamo's gave each worker; `null` of Dynamo's.
    scores: Option<ScoresRow>,
    /// Whether the worker was given the request; `false`: a query that runs nothing, `null`: not reported.
    dispatched: Option<bool>,
    isl_tokens: Option<u64>,
    isl_blocks: Option<u64>,
    block_size_tokens: Option<u32>,
    /// Blocks of the prompt that the chosen worker held: the router's own count, else as reconstructed here.
    overlap_blocks: Option<u64>,
    /// Blocks beyond those that it held in host memory, on disk or outside.
    lower_tier_blocks: u64,
    /// Letter of the cost formula that `candidates` were computed with.
    formula: Option<Formula>,
    /// Factor of its prefill term, in formula A.
    overlap_score_weight: Option<f64>,
    /// The same from formula B on.
    prefill_load_scale: Option<f64>,
    /// Cost of the chosen worker as the router gave it.
    logit: Option<f64>,
    /// The same by the best source there is: among `candidates`, else `logit`, else as the router's messages add up.
    cost: Option<f64>,
    /// Whether the router reported that several workers cost the same.
    tied: bool,
    candidates: Vec<CandidateRow>,
    /// Candidates were known, but are no longer kept.
    candidates_forgotten: bool,
    /// The last block of the prompt that any worker held when the decision was received.
    path: Option<Path>,
    /// How the request went on.
    progress: Progress,
    /// The source that reported it first.
    source: DecisionSource,
    /// Every source that reported it.
    sources: Vec<DecisionSource>,
    completeness: Completeness,
    /// What was computed here rests on a tree that lacked blocks: overlaps of `candidates` may be too small and their costs too
    /// high, so there is no cost gap (`cost_gap_blocks`) and no better-cached worker skipped (`lost_affinity_blocks`).
    partial: bool,
    /// Why the costs of all workers could not be computed though the prompt is known: `block_size_unknown`,
    /// `state_unknown` (what workers held and did at that time), `overlap_differs` or `cost_differs` (computed, they
    /// are not what the router reported).
    not_reconstructed: Option<NotReconstructed>,
    /// How much of the prompt the chosen worker held: `hit`, `partial`, `miss`, `unknown`, or `ignored` among decode
    /// workers and in other modes than KV, where the choice does not depend on it.
    verdict: &'static str,
    /// Cost of the next best candidate less that of the chosen one, in blocks.
    #[serde(rename = "margin_blocks")]
    cost_gap_blocks: Option<f64>,
    /// Blocks of the prompt that another candidate held beyond those of the chosen one; absent where none did, and where the cost
    /// did not decide (`decided_by`).
    lost_affinity_blocks: Option<u32>,
    /// How much of the prompt was cached where when the router decided, and why the rest had to be computed; `null`: no source reports
    /// the blocks of the prompt, or what workers held then is not known.
    reuse: Option<ReuseRow>,
    /// What its client measured, by the client's clock; `null`: no result of a client is joined with it.
    client: Option<ClientMeasured>,
}

/// Scores of another router than Dynamo's.
#[derive(Serialize, Debug)]
struct ScoresRow {
    /// The scheduling profile that ran; `null`: not reported.
    profile: Option<String>,
    /// What chose among the scored; `null`: not reported.
    picker: Option<String>,
    /// Names of the scorers, in the order in which they ran.
    scorers: Vec<String>,
    /// By falling score; empty where only the chosen worker is known, or they are no longer retained.
    candidates: Vec<ScoredRow>,
    /// Workers that were scored and are not among them, because there was no room.
    omitted: u32,
}

#[derive(Serialize, Debug)]
struct ScoredRow {
    #[serde(flatten)]
    worker: Worker,
    /// How the router names it.
    endpoint: Option<String>,
    /// The weighted sum, the highest of which wins.
    score: Option<f64>,
    /// What each scorer gave it before its weight, in the order of `scorers`.
    by_scorer: Vec<Option<f64>>,
    /// Requests that ran there, as the router knew it.
    running: Option<u32>,
    /// Requests that waited there, as the router knew it.
    waiting: Option<u32>,
    /// Share of its KV cache in use, 0 … 1, as the router knew it.
    kv_usage: Option<f64>,
    selected: bool,
}

impl ScoresRow {
    fn of(cluster: &Cluster, scores: &Scores, chosen: WorkerIx) -> Self {
        let row = |of: &ScoredCandidate| {
            Some(ScoredRow {
                worker: cluster.worker(of.worker)?.id,
                endpoint: cluster.endpoint_of(of.worker).map(str::to_owned),
                score: of.score,
                by_scorer: of.by_scorer.clone(),
                running: of.running,
                waiting: of.waiting,
                kv_usage: of.kv_usage,
                selected: of.worker == chosen,
            })
        };
        Self {
            profile: scores.profile.clone(),
            picker: scores.picker.clone(),
            scorers: scores.scorers.clone(),
            candidates: scores.candidates.iter().filter_map(row).collect(),
            omitted: scores.omitted,
        }
    }
}

#[derive(Serialize, Debug)]
struct CandidateRow {
    #[serde(flatten)]
    worker: Worker,
    overlap_blocks: Option<u64>,
    host_blocks: Option<u64>,
    disk_blocks: Option<u64>,
    prefill_blocks: Option<f64>,
    decode_blocks: Option<f64>,
    cost: Option<f64>,
    /// Not known of a decision that was made: the temperature is not reported.
    probability: Option<f64>,
    selected: bool,
}

#[derive(Serialize, Debug)]
struct Path {
    #[serde(flatten)]
    worker: Worker,
    block_hash: BlockHash,
    blocks: u32,
}

/// Sums over decisions. All but `count` are of those whose prompt length and overlap are both known and that were no
/// mere queries.
#[derive(Serialize, Debug)]
pub struct Totals {
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

impl From<DecisionTotals> for Totals {
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

impl DecisionRow {
    /// `None` if the state does not know its worker.
    fn of(cluster: &Cluster, decided: &DecisionEntry, trace_url: Option<&TraceUrl>) -> Option<Self> {
        let decision = &decided.decision;
        let worker = cluster.worker(decision.worker)?.id;
        let candidates = if decision.candidates.is_empty() {
            vec![CandidateRow {
                worker,
                overlap_blocks: decided.overlap_blocks(),
                host_blocks: None,
                disk_blocks: None,
                prefill_blocks: None,
                decode_blocks: None,
                cost: decision.logit,
                probability: None,
                selected: true,
            }]
        } else {
            let of = |candidate| CandidateRow::of(cluster, candidate, decision.worker);
            decision.candidates.iter().filter_map(of).collect()
        };
        Some(Self {
            id: decision.id,
            seq: decided.seq,
            at_ms: decided.at_ms,
            decided_ms: decision.decided_ms,
            request_id: decision.request_id.as_ref().map(|id| id.to_string()),
            router_id: decision.router,
            worker,
            pool: cluster.pool(decided.pool).map(PoolState::name).unwrap_or_default(),
            role: cluster.role(decided.pool).map(|(role, _)| role),
            adapter: decision.adapter.clone(),
            other_part: decision.other_part,
            prefill_bypassed: decision.prefill_bypassed,
            routing_mode: decision.mode,
            session: decision.session.clone(),
            trace_id: decision.trace_id.clone(),
            trace_url: trace_url.and_then(|template| template.of(decided)),
            decided_by: decision.decided_by,
            arithmetic: decision.arithmetic,
            scores: decision.scores.as_deref().map(|scores| ScoresRow::of(cluster, scores, decision.worker)),
            dispatched: decision.dispatched,
            isl_tokens: decision.isl_tokens,
            isl_blocks: decision.isl_blocks,
            block_size_tokens: decision.block_size_tokens,
            overlap_blocks: decided.overlap_blocks(),
            lower_tier_blocks: decided.lower_tier_blocks(),
            formula: decision.formula,
            overlap_score_weight: overlap_score_weight(decision),
            prefill_load_scale: prefill_load_scale(decision),
            logit: decision.logit,
            cost: decided.chosen_cost(),
            tied: decision.tied,
            candidates,
            candidates_forgotten: decided.candidates_forgotten(),
            path: decision.path.and_then(|end| Path::of(cluster, end)),
            progress: decided.progress,
            source: decision.source,
            sources: decided.sources().collect(),
            completeness: decision.completeness,
            partial: decided.partial,
            not_reconstructed: decision.not_reconstructed,
            verdict: decided.cache_outcome().as_str(),
            cost_gap_blocks: decided.cost_gap_blocks().ok(),
            lost_affinity_blocks: decided.lost_affinity().map(|lost| lost.more_blocks),
            reuse: ReuseRow::of(cluster, decided),
            client: decided.client,
        })
    }
}

impl CandidateRow {
    fn of(cluster: &Cluster, candidate: &Candidate, chosen: WorkerIx) -> Option<Self> {
        Some(Self {
            worker: cluster.worker(candidate.worker)?.id,
            overlap_blocks: Some(candidate.overlap_blocks.into()),
            host_blocks: Some(candidate.host_blocks.into()),
            disk_blocks: Some(candidate.disk_blocks.into()),
            prefill_blocks: Some(candidate.prefill_blocks),
            decode_blocks: Some(candidate.decode_blocks),
            cost: Some(candidate.cost),
            probability: None,
            selected: candidate.worker == chosen,
        })
    }
}

impl Path {
    fn of(cluster: &Cluster, end: PathEnd) -> Option<Self> {
        Some(Self { worker: cluster.worker(end.worker)?.id, block_hash: end.block_hash, blocks: end.blocks })
    }
}
