//! What another router than Dynamo's gave every worker: its score as a bar, and what each scorer gave it.

use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::WorkerIx;
use radixscope_model::record::{Arithmetic, ScoredCandidate};
use radixscope_router::explain::Short;
use radixscope_state::cluster::DecisionEntry;

use super::candidates::{BEST, MANY, show_all_text};
use crate::format::{self, UNKNOWN};

/// Scores of a decision.
#[derive(Clone, PartialEq, Debug)]
pub struct Scores {
    /// What they are.
    pub note: &'static str,
    /// Highest first.
    pub rows: Vec<ScoreRow>,
    /// What shows all of them; `None`: all are shown.
    pub show_all: Option<String>,
}

/// A worker with what it scored, and how the router names it.
#[derive(Clone, PartialEq, Debug)]
pub struct ScoreRow {
    /// Which.
    pub worker: WorkerIx,
    /// Its score.
    pub score: Option<f64>,
    /// The same as text.
    pub score_text: Option<String>,
    /// Width of its bar for the style sheet; `None`: it has none.
    pub bar: Option<String>,
    /// Whether it was chosen.
    pub is_chosen: bool,
    /// What each scorer gave it.
    pub by_scorer: String,
    /// How the router names it.
    pub endpoint: Option<String>,
    /// What it ran then.
    pub load: String,
    /// Whether it is shown before all are asked for.
    pub is_first: bool,
}

impl Scores {
    /// Of a decision; `None`: none is reported.
    pub fn of(shown: &ViewContext<'_>, decided: &DecisionEntry) -> Option<Self> {
        let scores = decided.decision.scores.as_ref().filter(|scores| !scores.candidates.is_empty())?;
        let most = scores.candidates.iter().filter_map(|of| of.score).fold(0.0, f64::max);
        let most = (most > 0.0).then_some(most);
        let has_many = scores.candidates.len() > MANY;
        let row = |(at, of): (usize, &ScoredCandidate)| {
            let is_chosen = of.worker == decided.decision.worker;
            ScoreRow {
                endpoint: shown.endpoint_of(of.worker).map(str::to_owned),
                is_chosen,
                is_first: !has_many || at < BEST || is_chosen,
                ..row(of, &scores.scorers, most)
            }
        };
        Some(Self {
            note: match decided.decision.arithmetic {
                Arithmetic::SglangGateway => "Only the chosen worker is logged.",
                Arithmetic::EndpointPicker | Arithmetic::Dynamo => {
                    "Each scorer gives 0 to 1; a worker's score is their weighted sum. What-if and counterfactual know Dynamo's cost \
                     formula alone and leave this decision out."
                }
            },
            rows: scores.candidates.iter().enumerate().map(row).collect(),
            show_all: has_many.then(|| show_all_text(scores.candidates.len())),
        })
    }
}

fn row(of: &ScoredCandidate, scorers: &[String], most: Option<f64>) -> ScoreRow {
    let number = |value: Option<f64>| value.map_or(UNKNOWN.to_owned(), |value| Short(value).to_string());
    let by_scorer: Vec<String> = scorers
        .iter()
        .zip(&of.by_scorer)
        .map(|(scorer, value)| format!("{scorer} {}", number(*value)))
        .collect();
    let load = [
        of.running.map(|n| format!("{n} running")),
        of.waiting.map(|n| format!("{n} waiting")),
        of.kv_usage.map(|share| format!("KV cache {:.0} % in use", share * 100.0)),
    ];
    let load: Vec<String> = load.into_iter().flatten().collect();
    ScoreRow {
        worker: of.worker,
        score: of.score,
        score_text: of.score.map(|score| format!("score {}", Short(score))),
        bar: of.score.zip(most).map(|(score, most)| format::width((score / most).clamp(0.0, 1.0))),
        is_chosen: false,
        by_scorer: by_scorer.join(" · "),
        endpoint: None,
        load: load.join(", "),
        is_first: true,
    }
}
