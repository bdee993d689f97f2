//! `GET /api/v1/decisions`: the latest routing decisions, newest first, as far as their source tells them.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde::Serialize;

use radixscope_core::cluster::{Cluster, Decided, DecisionTotals, MAX_DECISIONS};
use radixscope_core::id::WorkerIx;
use radixscope_core::record::{DecisionSource, Outcome};

use super::json::{Decimal, finite};
use super::params::{Params, WorkerFilter};
use crate::http::error::ApiError;
use crate::hub::Hub;

const DEFAULT_LIMIT: usize = 1_000;

#[derive(Serialize)]
pub(super) struct DecisionsDto {
    seq: u64,
    decisions: Vec<DecisionDto>,
    totals: TotalsDto,
    /// Which setting would show decisions, where none was heard.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
}

/// A routing decision: everything that all sources told of it.
#[derive(Serialize)]
pub(super) struct DecisionDto {
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
    isl_tokens: Option<u64>,
    isl_blocks: Option<u64>,
    block_size_tokens: Option<u32>,
    /// Blocks of the prompt that the chosen worker held: the router's own count, else as reconstructed here.
    overlap_blocks: Option<u64>,
    /// Letter of the cost formula that `candidates` were computed with.
    formula: Option<&'static str>,
    /// Its overlap score weight or prefill load scale.
    weight: Option<f64>,
    /// Cost of the chosen worker as the router gave it.
    logit: Option<f64>,
    /// Whether the router said that several workers cost the same.
    tied: bool,
    candidates: Vec<CandidateDto>,
    /// Candidates were known, but are no longer kept.
    candidates_forgotten: bool,
    /// The last block of the prompt that any worker held when the decision was heard.
    path: Option<PathDto>,
    progress: ProgressDto,
    /// The source that told of it first.
    source: &'static str,
    /// Every source that told something of it.
    sources: Vec<&'static str>,
    completeness: &'static str,
}

#[derive(Serialize)]
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

#[derive(Serialize)]
struct PathDto {
    worker_id: Decimal,
    dp_rank: u32,
    block_hash: Decimal,
    blocks: u32,
}

/// How the request went on.
#[derive(Serialize)]
struct ProgressDto {
    first_token_ms: Option<u64>,
    ended_ms: Option<u64>,
    outcome: Option<&'static str>,
    ttft_ms: Option<f64>,
    itl_ms: Option<f64>,
    output_tokens: Option<u64>,
    cached_tokens: Option<u64>,
}

/// Sums over all decisions ever heard, of the filtered workers if there is a filter.
#[derive(Serialize)]
struct TotalsDto {
    count: u64,
    isl_blocks: u64,
    overlap_blocks: u64,
    /// `overlap_blocks` over `isl_blocks`, 0 … 1.
    overlap_share: Option<f64>,
}

pub(super) async fn decisions(State(hub): State<Hub>, uri: Uri) -> Result<Json<DecisionsDto>, ApiError> {
    let params = Params::of(&uri, &["limit", "worker"])?;
    let limit = params.within("limit", 1, MAX_DECISIONS as u64)?.map_or(DEFAULT_LIMIT, |n| n as usize);
    let filter = params.worker()?;
    Ok(Json(hub.read(move |view| of(view.cluster, limit, filter)).await??))
}

fn of(cluster: &Cluster, limit: usize, filter: Option<WorkerFilter>) -> Result<DecisionsDto, ApiError> {
    let workers = filter.map(|filter| filter.among(cluster)).transpose()?;
    let decisions = cluster.decisions();
    let is_meant = |worker: WorkerIx| workers.as_ref().is_none_or(|workers| workers.contains(&worker));
    let totals = match &workers {
        Some(workers) => {
            workers.iter().map(|&w| decisions.totals_of(w)).fold(DecisionTotals::default(), plus)
        }
        None => decisions.totals(),
    };
    Ok(DecisionsDto {
        seq: cluster.seq().0,
        decisions: decisions
            .newest_first()
            .filter(|decided| is_meant(decided.decision.worker))
            .take(limit)
            .filter_map(|decided| decision(cluster, decided))
            .collect(),
        totals: TotalsDto {
            count: totals.count,
            isl_blocks: totals.isl_blocks,
            overlap_blocks: totals.overlap_blocks,
            overlap_share: totals.overlap_share(),
        },
        hint: cluster.decisions_hint(),
    })
}

fn plus(a: DecisionTotals, b: DecisionTotals) -> DecisionTotals {
    DecisionTotals {
        count: a.count + b.count,
        isl_blocks: a.isl_blocks + b.isl_blocks,
        overlap_blocks: a.overlap_blocks + b.overlap_blocks,
    }
}

fn decision(cluster: &Cluster, decided: &Decided) -> Option<DecisionDto> {
    let decision = &decided.decision;
    let worker = cluster.worker(decision.worker)?.id;
    let candidates = if decision.candidates.is_empty() {
        vec![CandidateDto {
            worker_id: Decimal(worker.id.0),
            dp_rank: worker.dp_rank,
            overlap_blocks: decided.overlap_blocks(),
            prefill_blocks: None,
            decode_blocks: None,
            cost: decision.logit,
            probability: None,
            selected: true,
        }]
    } else {
        let known = decision.candidates.iter().filter_map(|candidate| {
            let id = cluster.worker(candidate.worker)?.id;
            Some(CandidateDto {
                worker_id: Decimal(id.id.0),
                dp_rank: id.dp_rank,
                overlap_blocks: Some(candidate.overlap_blocks.into()),
                prefill_blocks: finite(candidate.prefill_blocks),
                decode_blocks: finite(candidate.decode_blocks),
                cost: finite(candidate.cost),
                probability: None,
                selected: candidate.worker == decision.worker,
            })
        });
        known.collect()
    };
    let path = decision.path.and_then(|end| {
        let id = cluster.worker(end.worker)?.id;
        let (worker_id, block_hash) = (Decimal(id.id.0), Decimal(end.block_hash.0));
        Some(PathDto { worker_id, dp_rank: id.dp_rank, block_hash, blocks: end.blocks })
    });
    let progress = &decided.progress;
    let ms = |us: u64| us as f64 / 1_000.0;
    Some(DecisionDto {
        id: Decimal(decision.id.0),
        seq: decided.seq.0,
        at_ms: decided.at_ms.0,
        decided_ms: decision.decided_ms.map(|at| at.0),
        request_id: decision.request_id.as_ref().map(|id| id.to_string()),
        router_id: decision.router.map(Decimal),
        worker_id: Decimal(worker.id.0),
        dp_rank: worker.dp_rank,
        isl_tokens: decision.isl_tokens,
        isl_blocks: decision.isl_blocks,
        block_size_tokens: decision.block_size_tokens,
        overlap_blocks: decided.overlap_blocks(),
        formula: decision.scoring.map(|scoring| scoring.formula.as_str()),
        weight: decision.scoring.and_then(|scoring| finite(scoring.weight)),
        logit: decision.logit.and_then(finite),
        tied: decision.tied,
        candidates,
        candidates_forgotten: decided.candidates_forgotten(),
        path,
        progress: ProgressDto {
            first_token_ms: progress.first_token_ms.map(|at| at.0),
            ended_ms: progress.ended_ms.map(|at| at.0),
            outcome: progress.outcome.map(Outcome::as_str),
            ttft_ms: progress.ttft_us.map(ms),
            itl_ms: progress.itl_us.map(ms),
            output_tokens: progress.output_tokens,
            cached_tokens: progress.cached_tokens,
        },
        source: decision.source.as_str(),
        sources: decided.sources().map(DecisionSource::as_str).collect(),
        completeness: decision.completeness.as_str(),
    })
}
