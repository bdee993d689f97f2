//! The columns of a decision in tables: names, types and values, for CSV and Parquet. Unknown is `None`.

use std::borrow::Cow;

use radixscope_insight::reuse::{LossCause, PromptReuse};
use radixscope_model::formula::Formula;
use radixscope_model::id::Worker;
use radixscope_model::record::{DecidedBy, DecisionSource, Outcome, ScoredCandidate};
use radixscope_state::cluster::{Cluster, DecisionEntry};

use super::{overlap_score_weight, prefill_load_scale};

/// A decision and the id of the chosen worker.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "a whole state prints as nothing that could be read")]
pub struct DecisionFields<'a> {
    entry: &'a DecisionEntry,
    worker: Worker,
    /// How another router names the chosen worker.
    endpoint: Option<&'a str>,
    cluster: &'a Cluster,
}

impl<'a> DecisionFields<'a> {
    /// `None` if the state does not know the worker, as in the API.
    pub fn of(cluster: &'a Cluster, entry: &'a DecisionEntry) -> Option<Self> {
        let worker = entry.decision.worker;
        Some(Self {
            entry,
            worker: cluster.worker(worker)?.id,
            endpoint: cluster.endpoint_of(worker),
            cluster,
        })
    }
}

/// How a column's value is read, which determines its type.
#[derive(Clone, Copy, Debug)]
pub enum ReadColumn {
    /// A whole number, or an id.
    Whole(fn(DecisionFields<'_>) -> Option<u64>),
    /// Any number; infinity and NaN are unknown, as in JSON.
    Real(fn(DecisionFields<'_>) -> Option<f64>),
    /// Text as received.
    Text(fn(DecisionFields<'_>) -> Option<Cow<'_, str>>),
    /// Always known.
    Flag(fn(DecisionFields<'_>) -> bool),
}

use ReadColumn::{Flag, Real, Text, Whole};

/// All columns in their order.
pub const DECISION_COLUMNS: [(&str, ReadColumn); 54] = [
    ("decision_id", Whole(|of| Some(of.entry.decision.id.0))),
    ("seq", Whole(|of| Some(of.entry.seq.0))),
    ("at_ms", Whole(|of| Some(of.entry.at_ms.0))),
    ("decided_ms", Whole(|of| of.entry.decision.decided_ms.map(|at| at.0))),
    ("request_id", Text(|of| of.entry.decision.request_id.as_deref().map(Cow::Borrowed))),
    ("router_id", Whole(|of| of.entry.decision.router)),
    ("worker_id", Whole(|of| Some(of.worker.id.0))),
    ("dp_rank", Whole(|of| Some(of.worker.dp_rank.into()))),
    ("isl_tokens", Whole(|of| of.entry.decision.isl_tokens)),
    ("isl_blocks", Whole(|of| of.entry.decision.isl_blocks)),
    ("block_size_tokens", Whole(|of| of.entry.decision.block_size_tokens.map(u64::from))),
    ("overlap_blocks", Whole(|of| of.entry.overlap_blocks())),
    ("overlap_share", Real(|of| of.entry.overlap_share())),
    ("verdict", Text(|of| Some(of.entry.cache_outcome().as_str().into()))),
    ("tie", Flag(|of| of.entry.is_tie())),
    ("lost_affinity_blocks", Whole(|of| of.entry.lost_affinity().map(|lost| lost.more_blocks.into()))),
    ("cost_blocks", Real(|of| of.entry.chosen_cost())),
    ("margin_blocks", Real(|of| of.entry.cost_gap_blocks().ok())),
    ("formula", Text(|of| of.entry.decision.formula.map(Formula::as_str).map(Cow::Borrowed))),
    ("overlap_score_weight", Real(|of| overlap_score_weight(&of.entry.decision))),
    ("prefill_load_scale", Real(|of| prefill_load_scale(&of.entry.decision))),
    ("candidates", Whole(|of| Some(of.entry.decision.candidates.len() as u64).filter(|&count| count > 0))),
    ("completeness", Text(|of| Some(of.entry.decision.completeness.as_str().into()))),
    ("partial_tree", Flag(|of| of.entry.partial)),
    ("sources", Text(|of| Some(sources(of.entry).into()))),
    ("first_token_ms", Whole(|of| of.entry.progress.first_token_ms.map(|at| at.0))),
    ("ended_ms", Whole(|of| of.entry.progress.ended_ms.map(|at| at.0))),
    ("outcome", Text(|of| of.entry.progress.outcome.map(Outcome::as_str).map(Cow::Borrowed))),
    ("ttft_ms", Real(|of| ms(of.entry.progress.ttft_us))),
    ("queue_ms", Real(|of| ms(of.entry.progress.queue_us))),
    ("prefill_ms", Real(|of| ms(of.entry.progress.prefill_us))),
    ("itl_ms", Real(|of| ms(of.entry.progress.itl_us))),
    ("output_tokens", Whole(|of| of.entry.progress.output_tokens)),
    ("cached_tokens", Whole(|of| of.entry.progress.cached_tokens)),
    ("session", Text(|of| of.entry.decision.session.as_deref().map(Cow::Borrowed))),
    ("decided_by", Text(|of| of.entry.decision.decided_by.map(DecidedBy::as_str).map(Cow::Borrowed))),
    ("prompt_blocks", Whole(|of| of.entry.reuse.map(|reuse| reuse.prompt_blocks.into()))),
    ("seen_blocks", Whole(|of| of.entry.reuse.map(|reuse| reuse.seen_blocks.into()))),
    ("held_blocks", Whole(|of| of.entry.reuse.map(|reuse| reuse.held_blocks.into()))),
    ("eligible_blocks", Whole(|of| of.entry.reuse.map(|reuse| reuse.eligible_blocks.into()))),
    ("chosen_blocks", Whole(|of| of.entry.reuse.map(|reuse| reuse.chosen_blocks.into()))),
    ("worst_cause", Text(|of| worst(of.entry).map(|(cause, _)| cause.as_str().into()))),
    ("worst_cause_tokens", Whole(|of| worst(of.entry).map(|(_, tokens)| tokens))),
    ("prefill_bypassed", Text(|of| of.entry.decision.prefill_bypassed.map(|is| is.to_string().into()))),
    ("arithmetic", Text(|of| Some(of.entry.decision.arithmetic.as_str().into()))),
    ("endpoint", Text(|of| of.endpoint.map(Cow::Borrowed))),
    ("score", Real(|of| of.entry.decision.scores.as_ref()?.of(of.entry.decision.worker)?.score)),
    ("next_best_score", Real(|of| next_best_score(of.entry))),
    ("scores", Text(|of| scores(of).map(Cow::Owned))),
    ("client_ttft_ms", Real(|of| ms(of.entry.client?.ttft_us))),
    ("client_itl_ms", Real(|of| ms(of.entry.client?.itl_us))),
    ("client_duration_ms", Real(|of| ms(of.entry.client?.duration_us))),
    ("client_outcome", Text(|of| of.entry.client.map(|client| client.outcome.as_str().into()))),
    ("client_output_tokens", Whole(|of| of.entry.client?.output_tokens.map(u64::from))),
];

/// What most tokens of the prompt were computed for.
fn worst(entry: &DecisionEntry) -> Option<(LossCause, u64)> {
    PromptReuse::of(entry).ok()?.worst()
}

/// The best score of a worker that was not chosen.
fn next_best_score(entry: &DecisionEntry) -> Option<f64> {
    let (scores, worker) = (entry.decision.scores.as_ref()?, entry.decision.worker);
    let (_, more) = scores.next_best(worker)?;
    Some(scores.of(worker)?.score? + more)
}

/// What each scorer gave each worker: `ENDPOINT SCORE SCORER=VALUE …; …`, by falling score.
fn scores(of: DecisionFields<'_>) -> Option<String> {
    let scores = of.entry.decision.scores.as_deref().filter(|scores| !scores.candidates.is_empty())?;
    let number = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), |value| value.to_string());
    let one = |candidate: &ScoredCandidate| {
        let id = || of.cluster.worker(candidate.worker).map(|worker| worker.id.to_string());
        let name =
            of.cluster.endpoint_of(candidate.worker).map(str::to_owned).or_else(id).unwrap_or_default();
        let by = scores.scorers.iter().zip(&candidate.by_scorer);
        let by = by.map(|(scorer, value)| format!(" {scorer}={}", number(*value))).collect::<String>();
        format!("{name} {}{by}", number(candidate.score))
    };
    Some(scores.candidates.iter().map(one).collect::<Vec<_>>().join("; "))
}

fn sources(entry: &DecisionEntry) -> String {
    entry.sources().map(DecisionSource::as_str).collect::<Vec<_>>().join(" ")
}

fn ms(us: Option<u64>) -> Option<f64> {
    us.map(|us| us as f64 / 1_000.0)
}
