//! What a decision came to: how much of the prompt was held, the cost gap, and who was passed over. Pure.

use super::DecisionEntry;
use radixscope_model::record::{Arithmetic, Candidate, Completeness};

/// A decision is a hit when the chosen worker held at least this share of the prompt's full blocks. Below 1, because
/// the last blocks of a prompt are new in nearly every request.
pub const HIT_SHARE: f64 = 0.9;

/// How much of the prompt the chosen worker held.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CacheOutcome {
    /// [`HIT_SHARE`] of the full blocks or more.
    Hit,
    /// Some.
    Partial,
    /// Nothing.
    Miss,
    /// The prompt's length or its cached part is unknown.
    Unknown,
    /// Not applicable: choices among decode workers, or by another mode than KV, ignore cached blocks.
    Ignored,
}

impl CacheOutcome {
    /// Name in the API, the address and exports.
    pub const fn as_str(self) -> &'static str {
        match self {
            CacheOutcome::Hit => "hit",
            CacheOutcome::Partial => "partial",
            CacheOutcome::Miss => "miss",
            CacheOutcome::Unknown => "unknown",
            CacheOutcome::Ignored => "ignored",
        }
    }
}

/// Another candidate held more of the prompt than the chosen one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LostAffinity {
    /// The one that held most; of several the cheapest.
    pub candidate: Candidate,
    /// Blocks of the prompt that it held beyond those of the chosen one; at least 1.
    pub more_blocks: u32,
}

/// Why there is no cost gap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoCostGap {
    /// Only the chosen worker is known.
    ChosenOnly,
    /// The candidates were known, but are no longer kept.
    Forgotten,
    /// There was no other candidate.
    Alone,
    /// The chosen worker is not among the known candidates.
    ChosenUnknown,
    /// Candidates were computed on a tree that lacked blocks: others may have held more and cost less.
    PartialTree,
    /// Another router than Dynamo's decided, and not by costs in blocks.
    OtherRouter,
}

impl NoCostGap {
    /// In words.
    pub const fn as_str(self) -> &'static str {
        match self {
            NoCostGap::ChosenOnly => "only the chosen worker's part is known",
            NoCostGap::Forgotten => "the candidates of this decision are no longer retained",
            NoCostGap::Alone => "there was one candidate",
            NoCostGap::PartialTree => {
                "the tree lacked blocks, so others may have had more cached and cost less"
            }
            NoCostGap::OtherRouter => "another router than Dynamo's decided, by scores of its own",
            NoCostGap::ChosenUnknown => "the chosen worker is not among the known candidates",
        }
    }
}

impl DecisionEntry {
    /// Full blocks of the prompt, as far as its length in tokens is known; else its blocks, the begun one included.
    pub fn full_blocks(&self) -> Option<u64> {
        let decision = &self.decision;
        let size = decision.block_size_tokens.map(u64::from).filter(|&size| size > 0);
        let full = decision.isl_tokens.zip(size).map(|(tokens, size)| tokens / size);
        full.or(decision.isl_blocks)
    }

    /// How much of the prompt the chosen worker held.
    pub fn cache_outcome(&self) -> CacheOutcome {
        match (self.held_blocks(), self.full_blocks()) {
            _ if self.ignores_cache => CacheOutcome::Ignored,
            (Some(0), _) => CacheOutcome::Miss,
            (Some(held), Some(full)) if held as f64 >= HIT_SHARE * full as f64 => CacheOutcome::Hit,
            (Some(_), Some(_)) => CacheOutcome::Partial,
            _ => CacheOutcome::Unknown,
        }
    }

    /// Whether the router reported that several workers tied, or several share the lowest known cost. What else than the cost
    /// decided is no tie.
    pub fn is_tie(&self) -> bool {
        if !self.is_by_cost() {
            return false;
        }
        self.decision.tied || (!self.partial && self.tied_at_lowest() > 1)
    }

    /// How many candidates share the lowest cost.
    pub fn tied_at_lowest(&self) -> usize {
        let costs = || self.decision.candidates.iter().map(|candidate| candidate.cost);
        let least = costs().fold(f64::INFINITY, f64::min);
        costs().filter(|&cost| cost == least).count()
    }

    /// The candidate that held more of the prompt than the chosen one, if there is one. `None` if the tree lacked blocks, because by
    /// how much, and of whom, would be a guess; and if the cost did not decide, because nothing was weighed against those blocks.
    pub fn lost_affinity(&self) -> Option<LostAffinity> {
        if self.ignores_cache || self.partial || !self.is_by_cost() {
            return None;
        }
        let held = self.chosen()?.overlap_blocks;
        let most = self.decision.candidates.iter().max_by(|a, b| {
            a.overlap_blocks
                .cmp(&b.overlap_blocks)
                .then(b.cost.total_cmp(&a.cost))
                .then(b.worker.cmp(&a.worker))
        })?;
        let more_blocks = most.overlap_blocks.checked_sub(held).filter(|&more| more > 0)?;
        Some(LostAffinity { candidate: *most, more_blocks })
    }

    /// Lowest cost of the others less the chosen one's, in blocks. 0 in a tie; below 0 where a cheaper one was passed
    /// over.
    ///
    /// # Errors
    /// What is missing.
    pub fn cost_gap_blocks(&self) -> Result<f64, NoCostGap> {
        let next = self.next_best()?;
        let chosen = self.chosen().ok_or(NoCostGap::ChosenUnknown)?;
        // Two infinite costs tie, though their difference is no number.
        Ok(if next.cost == chosen.cost { 0.0 } else { next.cost - chosen.cost })
    }

    /// The cheapest candidate but the chosen one.
    ///
    /// # Errors
    /// What is missing.
    pub fn next_best(&self) -> Result<&Candidate, NoCostGap> {
        if self.decision.arithmetic != Arithmetic::Dynamo {
            return Err(NoCostGap::OtherRouter);
        }
        if self.candidates_forgotten() {
            return Err(NoCostGap::Forgotten);
        }
        if self.decision.completeness == Completeness::ChosenOnly || self.decision.candidates.is_empty() {
            return Err(NoCostGap::ChosenOnly);
        }
        if self.partial {
            return Err(NoCostGap::PartialTree);
        }
        let others = self.decision.candidates.iter().filter(|c| c.worker != self.decision.worker);
        others.min_by(|a, b| a.cost.total_cmp(&b.cost).then(a.worker.cmp(&b.worker))).ok_or(NoCostGap::Alone)
    }

    /// Cost of the chosen worker in blocks: among the candidates, else as the router gave it, else as its messages add up.
    pub fn chosen_cost(&self) -> Option<f64> {
        let chosen = self.chosen().map(|chosen| chosen.cost);
        chosen.or(self.decision.logit).or(self.decision.chosen_cost)
    }
}

#[cfg(test)]
#[path = "cache_outcome_tests.rs"]
pub(super) mod tests;
