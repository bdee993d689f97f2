//! One decision worked out in full: every worker's terms, who can be chosen, how likely, and by what margin.

use super::cost::{Common, Request, Terms, WorkerInput, terms};
use super::pick;
use super::settings::RouterSettings;

/// One worker's part in a decision.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Score {
    /// Cost and what it is made of.
    pub terms: Terms,
    /// Chance to be chosen, 0 … 1.
    pub probability: f64,
}

/// What [`score`] found; meant to be used again, it then allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct Scores {
    terms: Vec<Terms>,
    costs: Vec<f64>,
    probabilities: Vec<f64>,
    ranking: Vec<u32>,
    choices: usize,
}

impl Scores {
    /// Candidates scored.
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// Whether there was no candidate.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Candidate `at`, counted as in the input.
    pub fn get(&self, at: usize) -> Option<Score> {
        Some(Score { terms: *self.terms.get(at)?, probability: self.probabilities[at] })
    }

    /// Terms of every candidate, in the input's order.
    pub fn terms(&self) -> &[Terms] {
        &self.terms
    }

    /// Costs in blocks, in the input's order.
    pub fn costs(&self) -> &[f64] {
        &self.costs
    }

    /// Chances, in the input's order; their sum is 1, or 0 if no candidate can be chosen.
    pub fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }

    /// Candidates by cost, lowest first; equal costs in the input's order.
    pub fn ranking(&self) -> &[u32] {
        &self.ranking
    }

    /// Candidates that can be chosen, in the input's order.
    pub fn choices(&self) -> impl Iterator<Item = usize> + '_ {
        self.probabilities.iter().enumerate().filter(|(_, chance)| **chance > 0.0).map(|(at, _)| at)
    }

    /// How many candidates can be chosen.
    pub fn choice_count(&self) -> usize {
        self.choices
    }

    /// Second lowest cost less the lowest, in blocks: 0 in a tie, `None` with fewer than two candidates.
    pub fn cost_gap_blocks(&self) -> Option<f64> {
        let cost = |place: usize| self.ranking.get(place).map(|&at| self.costs[at as usize]);
        let (best, second) = (cost(0)?, cost(1)?);
        // Two infinite costs tie too, though their difference is not a number.
        Some(if best == second { 0.0 } else { second - best })
    }

    /// Whether two or more share the lowest cost exactly.
    pub fn is_tie(&self) -> bool {
        self.cost_gap_blocks() == Some(0.0)
    }

    /// The candidate that a draw `u` in `[0, 1)` takes.
    pub fn draw(&self, u: f64) -> Option<usize> {
        pick::draw(&self.probabilities, u)
    }
}

/// Scores all eligible workers for a request.
///
/// Which are eligible is decided before: overloaded and excluded ones are not among `inputs`. A pinned worker is not
/// chosen at all; its cost is that of the only input, without preferred taints (reference §5.5, §5.8).
pub fn score(options: &RouterSettings, request: &Request, inputs: &[WorkerInput], out: &mut Scores) {
    let common = Common::of(options.formula, inputs);
    out.terms.clear();
    out.terms.extend(inputs.iter().map(|worker| terms(options, request, common, worker)));
    out.costs.clear();
    out.costs.extend(out.terms.iter().map(|terms| terms.cost));
    out.probabilities.clear();
    out.probabilities.resize(inputs.len(), 0.0);
    let tree_size = |at: usize| inputs[at].tree_size_blocks;
    out.choices = pick::probabilities(
        &out.costs,
        options.router_temperature,
        options.tie_break,
        tree_size,
        &mut out.probabilities,
    );
    out.ranking.clear();
    out.ranking.extend(0..inputs.len() as u32);
    let costs = &out.costs;
    out.ranking.sort_unstable_by(|&a, &b| costs[a as usize].total_cmp(&costs[b as usize]).then(a.cmp(&b)));
}

#[cfg(test)]
#[path = "score_tests.rs"]
mod tests;
