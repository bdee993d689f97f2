//! The response as JSON: candidates as in `/api/v1/decisions`, with terms, loads and ranks.

use serde::Serialize;

use radixscope_insight::whatif::{CandidateRef, RankedCandidate, Versus, WhatIfResponse};
use radixscope_model::id::{DecisionId, Seq, WorkerId};
use radixscope_model::record::Candidate;
use radixscope_router::{Load, RouterSettings};
use radixscope_state::cluster::Cluster;

#[derive(Serialize)]
pub(in crate::http::api) struct ScoreResponse {
    /// The last record of the state.
    seq: Seq,
    at_ms: u64,
    isl_tokens: u64,
    isl_blocks: u64,
    block_size_tokens: u32,
    /// The router's settings under Dynamo's names; only those that the formula uses.
    options: RouterSettings,
    /// By cost, lowest first.
    candidates: Vec<CandidateRow>,
    /// Cost gap: second lowest cost minus the lowest; null with one candidate.
    #[serde(rename = "margin_blocks")]
    cost_gap_blocks: Option<f64>,
    /// Whether several candidates have exactly the lowest cost.
    tied: bool,
    /// Number of candidates that can be chosen.
    choices: usize,
    /// Comparison with a recorded decision.
    versus: Option<VersusRow>,
    /// Assumptions, as sentences.
    notes: Vec<String>,
    /// Why it may be wrong: the tree is or was incomplete; null: it is complete.
    partial: Option<String>,
}

#[derive(Serialize)]
struct CandidateRow {
    /// Null for a worker that the request adds, or of the example.
    worker_id: Option<WorkerId>,
    dp_rank: Option<u32>,
    /// Display name.
    name: String,
    rank: u32,
    overlap_blocks: u32,
    host_blocks: u32,
    disk_blocks: u32,
    prefill_blocks: f64,
    decode_blocks: f64,
    cost: f64,
    probability: f64,
    /// Whether it has the highest probability.
    selected: bool,
    /// Whether it was chosen in the recorded decision.
    actual: bool,
    terms: TermsRow,
    load: LoadRow,
}

#[derive(Serialize)]
struct TermsRow {
    raw_prefill_blocks: f64,
    credit_blocks: f64,
    credit_decay: f64,
    prefill_factor: f64,
    active_request_blocks: f64,
    /// `30 = 1.0 × 25 prefill + 5 decode`
    sum: String,
}

#[derive(Serialize)]
struct LoadRow {
    /// Includes the blocks of this prompt.
    #[serde(flatten)]
    load: Load,
    /// Source of the load.
    from: &'static str,
    /// Whether the request changed it.
    changed: bool,
}

#[derive(Serialize)]
struct VersusRow {
    decision: DecisionId,
    actual: String,
    rank: Option<u32>,
    above_best_blocks: Option<f64>,
    probability: f64,
    #[serde(rename = "flips")]
    changes_worker: bool,
    sentence: String,
}

impl ScoreResponse {
    pub(super) fn of(cluster: &Cluster, response: &WhatIfResponse<'_>) -> Self {
        let scores = response.scores;
        let likeliest = scores.probabilities().iter().copied().fold(0.0, f64::max);
        Self {
            seq: response.seq,
            at_ms: response.at_ms.0,
            isl_tokens: response.request.isl_tokens,
            isl_blocks: response.request.blocks(),
            block_size_tokens: response.request.block_size_tokens,
            options: response.options,
            candidates: response.ranked().map(|ranked| of_one(cluster, &ranked, likeliest)).collect(),
            cost_gap_blocks: scores.cost_gap_blocks(),
            tied: scores.is_tie(),
            choices: scores.choice_count(),
            versus: response.versus.map(|versus| of_versus(cluster, &versus)),
            notes: response.notes.to_vec(),
            partial: response.partial.map(str::to_owned),
        }
    }
}

fn name(cluster: &Cluster, who: CandidateRef) -> String {
    match who {
        CandidateRef::Worker(worker) => {
            cluster.worker(worker).map_or_else(|| "unknown".to_owned(), |worker| worker.id.to_string())
        }
        CandidateRef::Added(number) => format!("added {}", number + 1),
        CandidateRef::Example(number) => format!("example {}", number + 1),
    }
}

fn of_one(cluster: &Cluster, ranked: &RankedCandidate, likeliest: f64) -> CandidateRow {
    let Candidate {
        worker,
        overlap_blocks,
        host_blocks,
        disk_blocks,
        prefill_blocks,
        decode_blocks,
        cost,
        ..
    } = ranked.candidate;
    let id = match worker {
        CandidateRef::Worker(worker) => cluster.worker(worker).map(|worker| worker.id),
        CandidateRef::Added(_) | CandidateRef::Example(_) => None,
    };
    CandidateRow {
        worker_id: id.map(|id| id.id),
        dp_rank: id.map(|id| id.dp_rank),
        name: name(cluster, worker),
        rank: ranked.rank,
        overlap_blocks,
        host_blocks,
        disk_blocks,
        prefill_blocks,
        decode_blocks,
        cost,
        probability: ranked.probability,
        selected: ranked.probability > 0.0 && ranked.probability >= likeliest,
        actual: ranked.is_actual,
        terms: TermsRow {
            raw_prefill_blocks: ranked.terms.raw_prefill_blocks,
            credit_blocks: ranked.terms.credit_blocks,
            credit_decay: ranked.terms.credit_decay,
            prefill_factor: ranked.terms.prefill_factor,
            active_request_blocks: ranked.terms.active_request_blocks,
            sum: ranked.terms.sum().to_string(),
        },
        load: LoadRow { load: ranked.load, from: ranked.load_from.as_str(), changed: ranked.is_changed },
    }
}

fn of_versus(cluster: &Cluster, versus: &Versus) -> VersusRow {
    VersusRow {
        decision: versus.decision,
        actual: name(cluster, versus.actual),
        rank: versus.rank,
        above_best_blocks: versus.above_best_blocks,
        probability: versus.probability,
        changes_worker: versus.changes_worker,
        sentence: versus.sentence(|who| name(cluster, who)),
    }
}
