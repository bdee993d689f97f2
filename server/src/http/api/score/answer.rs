//! The answer as JSON: candidates in the shape of `/api/v1/decisions`, with terms, loads and ranks.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use radixscope_insight::whatif::{Answer, RankedCandidate, Versus, Who};
use radixscope_model::record::Candidate;
use radixscope_state::cluster::Cluster;

use radixscope_export::{Decimal, finite};

#[derive(Serialize)]
pub(in crate::http::api) struct AnswerDto {
    /// The last record of the state that was asked.
    seq: u64,
    at_ms: u64,
    isl_tokens: u64,
    isl_blocks: u64,
    block_size_tokens: u32,
    /// What the router ran with, by Dynamo's names; of the numbers those that the formula knows.
    options: BTreeMap<&'static str, Value>,
    /// By cost, lowest first.
    candidates: Vec<CandidateDto>,
    /// Second lowest cost less the lowest; null with one candidate.
    margin_blocks: Option<f64>,
    /// Whether several share the lowest cost exactly.
    tied: bool,
    /// How many can be chosen.
    choices: usize,
    /// What changed from the decision compared with.
    versus: Option<VersusDto>,
    /// What was assumed, in sentences.
    notes: Vec<String>,
}

#[derive(Serialize)]
struct CandidateDto {
    /// Null for a worker that the question adds, or of the example.
    worker_id: Option<Decimal>,
    dp_rank: Option<u32>,
    /// For people.
    name: String,
    rank: u32,
    overlap_blocks: u32,
    prefill_blocks: Option<f64>,
    decode_blocks: Option<f64>,
    cost: Option<f64>,
    probability: Option<f64>,
    /// Whether nobody is likelier to be chosen.
    selected: bool,
    /// Whether it was really chosen in the decision compared with.
    actual: bool,
    terms: TermsDto,
    load: LoadDto,
}

#[derive(Serialize)]
struct TermsDto {
    raw_prefill_blocks: Option<f64>,
    credit_blocks: Option<f64>,
    credit_decay: Option<f64>,
    prefill_factor: Option<f64>,
    active_request_blocks: Option<f64>,
    /// `30 = 1.0 × 25 prefill + 5 decode`
    sum: String,
}

#[derive(Serialize)]
struct LoadDto {
    prefill_tokens: u64,
    /// Those of this prompt included.
    decode_blocks: u64,
    active_requests: u64,
    /// Where the load is from.
    from: &'static str,
    /// Whether the question changed it.
    changed: bool,
}

#[derive(Serialize)]
struct VersusDto {
    decision: Decimal,
    actual: String,
    rank: Option<u32>,
    above_best_blocks: Option<f64>,
    probability: Option<f64>,
    flips: bool,
    sentence: String,
}

impl AnswerDto {
    pub(super) fn of(cluster: &Cluster, answer: &Answer<'_>) -> Self {
        let scores = answer.scores;
        let likeliest = scores.probabilities().iter().copied().fold(0.0, f64::max);
        Self {
            seq: answer.seq.0,
            at_ms: answer.at_ms.0,
            isl_tokens: answer.request.isl_tokens,
            isl_blocks: answer.request.blocks(),
            block_size_tokens: answer.request.block_size_tokens,
            options: radixscope_export::settings(&answer.options),
            candidates: answer.ranked().map(|ranked| of_one(cluster, &ranked, likeliest)).collect(),
            margin_blocks: scores.margin_blocks().and_then(finite),
            tied: scores.is_tie(),
            choices: scores.choice_count(),
            versus: answer.versus.map(|versus| of_versus(cluster, &versus)),
            notes: answer.notes.to_vec(),
        }
    }
}

fn name(cluster: &Cluster, who: Who) -> String {
    match who {
        Who::Worker(worker) => {
            cluster.worker(worker).map_or_else(|| "unknown".to_owned(), |worker| worker.id.to_string())
        }
        Who::Added(number) => format!("added {}", number + 1),
        Who::Example(number) => format!("example {}", number + 1),
    }
}

fn of_one(cluster: &Cluster, ranked: &RankedCandidate, likeliest: f64) -> CandidateDto {
    let Candidate { worker, overlap_blocks, prefill_blocks, decode_blocks, cost, .. } = ranked.candidate;
    let id = match worker {
        Who::Worker(worker) => cluster.worker(worker).map(|worker| worker.id),
        Who::Added(_) | Who::Example(_) => None,
    };
    let terms = &ranked.terms;
    CandidateDto {
        worker_id: id.map(|id| Decimal(id.id.0)),
        dp_rank: id.map(|id| id.dp_rank),
        name: name(cluster, worker),
        rank: ranked.rank,
        overlap_blocks,
        prefill_blocks: finite(prefill_blocks),
        decode_blocks: finite(decode_blocks),
        cost: finite(cost),
        probability: finite(ranked.probability),
        selected: ranked.probability > 0.0 && ranked.probability >= likeliest,
        actual: ranked.is_actual,
        terms: TermsDto {
            raw_prefill_blocks: finite(terms.raw_prefill_blocks),
            credit_blocks: finite(terms.credit_blocks),
            credit_decay: finite(terms.credit_decay),
            prefill_factor: finite(terms.prefill_factor),
            active_request_blocks: finite(terms.active_request_blocks),
            sum: terms.sum().to_string(),
        },
        load: LoadDto {
            prefill_tokens: ranked.load.active_prefill_tokens,
            decode_blocks: ranked.load.decode_blocks,
            active_requests: ranked.load.active_requests,
            from: ranked.load_from.as_str(),
            changed: ranked.is_changed,
        },
    }
}

fn of_versus(cluster: &Cluster, versus: &Versus) -> VersusDto {
    VersusDto {
        decision: Decimal(versus.decision.0),
        actual: name(cluster, versus.actual),
        rank: versus.rank,
        above_best_blocks: versus.above_best_blocks.and_then(finite),
        probability: finite(versus.probability),
        flips: versus.flips,
        sentence: versus.sentence(|who| name(cluster, who)),
    }
}
