//! One decision worked out: every worker's cost, who can be chosen and how likely. What is only shown (terms, ranking) is
//! worked out when it is wanted.

use super::cost::{Common, RoutedRequest, Terms, WorkerInput, cost, terms};
use super::pick;
use super::settings::RouterSettings;

/// What [`score`] found; meant to be used again, it then allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct Scores {
    /// What the costs were computed with.
    settings: RouterSettings,
    request: RoutedRequest,
    common: Common,
    costs: Vec<f64>,
    probabilities: Vec<f64>,
    choices: usize,
}

impl Scores {
    /// Candidates scored.
    pub fn len(&self) -> usize {
        self.costs.len()
    }

    /// Whether there was no candidate.
    pub fn is_empty(&self) -> bool {
        self.costs.is_empty()
    }

    /// What the cost of `worker`, one of the candidates, is made of.
    pub fn terms_of(&self, worker: &WorkerInput) -> Terms {
        terms(&self.settings, &self.request, self.common, worker)
    }

    /// Costs in blocks, in the input's order.
    pub fn costs(&self) -> &[f64] {
        &self.costs
    }

    /// Chances, in the input's order; their sum is 1, or 0 if no candidate can be chosen.
    pub fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }

    /// Writes the candidates by cost into `ranking`, lowest first; equal costs in the input's order.
    pub fn rank(&self, ranking: &mut Vec<u32>) {
        ranking.clear();
        ranking.extend(0..self.costs.len() as u32);
        let cost = |at: u32| self.costs[at as usize];
        ranking.sort_unstable_by(|&a, &b| cost(a).total_cmp(&cost(b)).then(a.cmp(&b)));
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
        let (mut best, mut second): (Option<f64>, Option<f64>) = (None, None);
        for &cost in &self.costs {
            if best.is_none_or(|best| cost.total_cmp(&best).is_lt()) {
                (best, second) = (Some(cost), best);
            } else if second.is_none_or(|second| cost.total_cmp(&second).is_lt()) {
                second = Some(cost);
            }
        }
        let (best, second) = (best?, second?);
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
pub fn score(options: &RouterSettings, request: &RoutedRequest, inputs: &[WorkerInput], out: &mut Scores) {
    out.settings = *options;
    out.request = *request;
    out.common = Common::of(options.formula, inputs);
    let common = out.common;
    out.costs.clear();
    out.costs.extend(inputs.iter().map(|worker| cost(options, request, common, worker)));
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
}

#[cfg(test)]
#[path = "score_tests.rs"]
mod tests;
