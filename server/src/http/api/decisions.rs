//! `GET /api/v1/decisions`: the latest routing decisions, newest first, as far as their source tells them.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde::Serialize;

use radixscope_core::cluster::{Cluster, Decided, DecisionTotals, MAX_DECISIONS};
use radixscope_core::id::WorkerIx;

use super::json::Decimal;
use super::params::{Params, WorkerFilter};
use crate::http::error::ApiError;
use crate::hub::Hub;

const DEFAULT_LIMIT: usize = 1_000;

/// What every source that is read today tells: the chosen worker, not the others nor what they cost.
const COMPLETENESS: &str = "chosen only";

#[derive(Serialize)]
pub(super) struct DecisionsDto {
    seq: u64,
    decisions: Vec<DecisionDto>,
    totals: TotalsDto,
    /// Which setting would show decisions, where none was heard.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
}

#[derive(Serialize)]
struct DecisionDto {
    seq: u64,
    at_ms: u64,
    request_id: Option<String>,
    router_id: Option<Decimal>,
    worker_id: Decimal,
    dp_rank: u32,
    isl_tokens: Option<u64>,
    isl_blocks: Option<u64>,
    overlap_blocks: Option<u64>,
    formula: Option<&'static str>,
    candidates: Vec<CandidateDto>,
    source: &'static str,
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
    probability: Option<f64>,
    selected: bool,
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
    let chosen = CandidateDto {
        worker_id: Decimal(worker.id.0),
        dp_rank: worker.dp_rank,
        overlap_blocks: decision.overlap_blocks,
        prefill_blocks: None,
        decode_blocks: None,
        cost: None,
        probability: None,
        selected: true,
    };
    Some(DecisionDto {
        seq: decided.seq.0,
        at_ms: decided.at_ms.0,
        request_id: decision.request_id.as_ref().map(|id| id.to_string()),
        router_id: decision.router.map(Decimal),
        worker_id: Decimal(worker.id.0),
        dp_rank: worker.dp_rank,
        isl_tokens: decision.isl_tokens,
        isl_blocks: decision.isl_blocks,
        overlap_blocks: decision.overlap_blocks,
        formula: None,
        candidates: vec![chosen],
        source: decision.source.as_str(),
        completeness: COMPLETENESS,
    })
}
