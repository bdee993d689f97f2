//! The response: every candidate with its terms, by rank, and what changed from a decision that was really taken.

use std::fmt::Write as _;

use super::load::LoadFrom;
use super::request::{CandidateRef, WhatIfRequest};
use super::{CandidateMeta, WhatIf};
use radixscope_model::id::{DecisionId, Millis, Seq};
use radixscope_model::record::Candidate;
use radixscope_router::explain::Short;
use radixscope_router::{Load, RoutedRequest, RouterSettings, Scores, Terms, WorkerInput};
use radixscope_state::cluster::Cluster;

/// A response; valid until the next question.
#[derive(Clone, Copy, Debug)]
pub struct WhatIfResponse<'a> {
    /// The last record of the state.
    pub seq: Seq,
    /// When it was computed, by the state's clock.
    pub at_ms: Millis,
    /// What was routed.
    pub request: RoutedRequest,
    /// What the router ran with.
    pub options: RouterSettings,
    /// What changed from the decision compared with, if there is one.
    pub versus: Option<Versus>,
    /// What was assumed, in sentences.
    pub notes: &'a [String],
    /// Why it may be wrong: the tree it rests on lacks blocks. In a sentence; `None`: it lacks none.
    pub partial: Option<&'a str>,
    /// Cost gap, ties, chances: candidates by their index.
    pub scores: &'a Scores,
    pub(super) ranking: &'a [u32],
    pub(super) rows: &'a [CandidateMeta],
    pub(super) inputs: &'a [WorkerInput],
}

/// A candidate with its place in the response.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RankedCandidate {
    /// Who, and the numbers that are compared.
    pub candidate: Candidate<CandidateRef>,
    /// From 1, by cost; equal costs in the order in which they were first seen.
    pub rank: u32,
    /// How busy it is, the blocks of this prompt included.
    pub load: Load,
    /// Where that is from.
    pub load_from: LoadFrom,
    /// Whether the question changed its load.
    pub is_changed: bool,
    /// All that its cost is made of.
    pub terms: Terms,
    /// Chance to be chosen, 0 … 1.
    pub probability: f64,
    /// Whether it was really chosen in the decision compared with.
    pub is_actual: bool,
}

/// The really chosen worker in this response.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Versus {
    /// The decision compared with.
    pub decision: DecisionId,
    /// Who was chosen.
    pub actual: CandidateRef,
    /// Its rank here from 1; `None`: it cannot be chosen here.
    pub rank: Option<u32>,
    /// Its cost less the lowest, in blocks; 0 if it is (among) the cheapest.
    pub above_best_blocks: Option<f64>,
    /// Its chance here, 0 … 1.
    pub probability: f64,
    /// Who costs least here; of several, the first seen.
    pub best: CandidateRef,
    /// How many could be chosen here.
    pub choices: usize,
    /// Whether the choice would fall on another worker: at temperature 0 certainly, above it likelier than not.
    pub changes_worker: bool,
    /// Lowest cost to second lowest, in blocks.
    pub cost_gap_blocks: Option<f64>,
    /// Candidates.
    pub of: usize,
}

impl<'a> WhatIfResponse<'a> {
    /// Candidates by cost, lowest first.
    pub fn ranked(&self) -> impl ExactSizeIterator<Item = RankedCandidate> + use<'a> {
        let response = *self;
        let actual = self.versus.map(|versus| versus.actual);
        let ranking = self.ranking.iter().enumerate();
        ranking.map(move |(place, &at)| response.at(place as u32 + 1, at as usize, actual))
    }

    fn at(&self, rank: u32, at: usize, actual: Option<CandidateRef>) -> RankedCandidate {
        let (row, input) = (self.rows[at], &self.inputs[at]);
        let terms = self.scores.terms_of(input);
        RankedCandidate {
            candidate: terms.candidate(row.who, input.overlap, Some(input.tree_size_blocks)),
            rank,
            load: input.load.unwrap_or_default(),
            load_from: row.load_from,
            is_changed: row.is_changed,
            terms,
            probability: self.scores.probabilities()[at],
            is_actual: actual == Some(row.who),
        }
    }
}

impl Versus {
    /// In a sentence or two; `name` names a candidate.
    pub fn sentence(&self, name: impl Fn(CandidateRef) -> String) -> String {
        let (actual, best) = (name(self.actual), name(self.best));
        let mut sentence = format!("The router chose {actual}. ");
        let _ = match (self.rank, self.above_best_blocks) {
            (Some(_), Some(above)) if above > 0.0 => write!(
                sentence,
                "Here {best} costs least: {actual} is number {} of {}, {} blocks above it",
                self.rank.unwrap_or_default(),
                self.of,
                Short(above)
            ),
            (Some(_), Some(_)) if self.cost_gap_blocks == Some(0.0) => {
                write!(sentence, "Here it shares the lowest cost with others")
            }
            (Some(_), _) => match self.cost_gap_blocks {
                Some(gap) => write!(sentence, "Here it costs least too, by {} blocks", Short(gap)),
                None => write!(sentence, "Here it is the only one"),
            },
            (None, _) => write!(sentence, "It cannot be chosen here, and {best} costs least"),
        };
        let tenths = (self.probability * 1_000.0).round();
        let _ = match (self.rank, self.choices) {
            (Some(_), 2..) => {
                write!(sentence, "; it would be chosen with a probability of {} %.", tenths / 10.0)
            }
            _ => write!(sentence, "."),
        };
        sentence
    }
}

impl WhatIf {
    pub(super) fn versus(&self, cluster: &Cluster, question: &WhatIfRequest) -> Option<Versus> {
        let decided = cluster.decisions().get(question.actual?)?;
        let actual = CandidateRef::Worker(decided.decision.worker);
        let ranking = &self.ranking;
        let best_at = *ranking.first()? as usize;
        let at = self.rows.iter().position(|row| row.who == actual);
        let place = at.and_then(|at| ranking.iter().position(|&ranked| ranked as usize == at));
        let costs = self.scores.costs();
        let above = |cost: f64| if cost == costs[best_at] { 0.0 } else { cost - costs[best_at] };
        let probability = at.map_or(0.0, |at| self.scores.probabilities()[at]);
        Some(Versus {
            decision: decided.decision.id,
            actual,
            rank: place.map(|place| place as u32 + 1),
            above_best_blocks: at.map(|at| above(costs[at])),
            probability,
            best: self.rows[best_at].who,
            choices: self.scores.choice_count(),
            changes_worker: at.is_none_or(|at| costs[at] > costs[best_at]) && probability < 0.5,
            cost_gap_blocks: self.scores.cost_gap_blocks(),
            of: self.rows.len(),
        })
    }
}
