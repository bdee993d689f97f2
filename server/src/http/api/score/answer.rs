//! The answer as JSON: candidates in the shape of `/api/v1/decisions`, with terms, loads and ranks.

use serde::Serialize;

use radixscope_insight::whatif::{CandidateRef, RankedCandidate, Versus, WhatIfResponse};
use radixscope_model::id::{DecisionId, Seq, WorkerId};
use radixscope_model::record::Candidate;
use radixscope_router::{Load, RouterSettings};
use radixscope_state::cluster::Cluster;

#[derive(Serialize)]
pub(in crate::http::api) struct ScoreAnswer {
    /// The last record of the state that was asked.
    seq: Seq,
    at_ms: u64,
    isl_tokens: u64,
    isl_blocks: u64,
    block_size_tokens: u32,
    /// What the router ran with, by Dynamo's names; of the numbers those that the formula knows.
    options: RouterSettings,
    /// By cost, lowest first.
    candidates: Vec<CandidateRow>,
    /// Second lowest cost less the lowest; null with one candidate.
    #[serde(rename = "margin_blocks")]
    cost_gap_blocks: Option<f64>,
    /// Whether several share the lowest cost exactly.
    tied: bool,
    /// How many can be chosen.
    choices: usize,
    /// What changed from the decision compared with.
    versus: Option<VersusRow>,
    /// What was assumed, in sentences.
    notes: Vec<String>,
    /// Why it may be wrong: the tree lacks blocks, or did when the decision was made; null: it does not.
    partial: Option<String>,
}

#[derive(Serialize)]
struct CandidateRow {
    /// Null for a worker that the question adds, or of the example.
    worker_id: Option<WorkerId>,
    dp_rank: Option<u32>,
    /// For people.
    name: String,
    rank: u32,
    overlap_blocks: u32,
    host_blocks: u32,
    disk_blocks: u32,
    prefill_blocks: f64,
    decode_blocks: f64,
    cost: f64,
    probability: f64,
    /// Whether nobody is likelier to be chosen.
    selected: bool,
    /// Whether it was really chosen in the decision compared with.
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
    /// The blocks of this prompt included.
    #[serde(flatten)]
    load: Load,
    /// Where the load is from.
    from: &'static str,
    /// Whether the question changed it.
    changed: bool,
}

#[derive(Serialize)]
struct VersusRow {
    decision: DecisionId,
    actual: String,
    rank: Option<u32>,
    above_best_blocks: Option<f64>,
    probability: f64,
    flips: bool,
    sentence: String,
}

impl ScoreAnswer {
    pub(super) fn of(cluster: &Cluster, answer: &WhatIfResponse<'_>) -> Self {
        let scores = answer.scores;
        let likeliest = scores.probabilities().iter().copied().fold(0.0, f64::max);
        Self {
            seq: answer.seq,
            at_ms: answer.at_ms.0,
            isl_tokens: answer.request.isl_tokens,
            isl_blocks: answer.request.blocks(),
            block_size_tokens: answer.request.block_size_tokens,
            options: answer.options,
            candidates: answer.ranked().map(|ranked| of_one(cluster, &ranked, likeliest)).collect(),
            cost_gap_blocks: scores.cost_gap_blocks(),
            tied: scores.is_tie(),
            choices: scores.choice_count(),
            versus: answer.versus.map(|versus| of_versus(cluster, &versus)),
            notes: answer.notes.to_vec(),
            partial: answer.partial.map(str::to_owned),
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
        flips: versus.flips,
        sentence: versus.sentence(|who| name(cluster, who)),
    }
}
