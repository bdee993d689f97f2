//! What the same decisions would have been under another setting, each judged on the very state it saw.
//!
//! *Frozen* because nothing that follows from a different choice is followed up: no cache warms elsewhere, no load
//! moves. That makes it exact for one decision and an estimate for many; what a setting does over time takes a
//! simulation of the arrivals. Must not know records, clusters or clocks.

mod evaluate;
mod expected;
mod noise;
mod outcome;
mod recommend;
mod sweep;

use serde::{Deserialize, Serialize};

use super::settings::{Formula, RouterSettings};
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::record::{Candidate, tree_sizes_blocks};

pub use evaluate::in_turn;
pub use expected::{Expected, LEAST_REQUESTS, slope};
pub use noise::{DRAWS, Interval, PARTS, Part};
pub use outcome::{ChangedChoice, LoadImbalance, MAX_FLIPS, Outcome, WorkerShare};
pub use recommend::{Recommendation, Suggestion, recommend};
pub use sweep::Grid;

/// Candidates of one decision that are kept; with more, a decision is left out.
pub const MAX_CANDIDATES: usize = 4_096;
/// Decisions that are kept.
pub const MAX_DECISIONS: usize = 1_000_000;
/// Candidates of all decisions together that are kept: a bound on memory, 40 bytes each.
pub const MAX_ROWS: usize = 16_000_000;

/// A decision as it was taken.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ReplayDecision {
    /// When it was taken.
    pub at_ms: Millis,
    /// How many decisions were taken before it among the same workers, judged or not.
    pub turn: u64,
    /// When the request ended, if that is known.
    pub ended_ms: Option<Millis>,
    /// Length of the prompt, if that is known.
    pub isl_tokens: Option<u64>,
    /// The router's block size, if that is known.
    pub block_size_tokens: Option<u32>,
    /// Time to the first token as measured, in milliseconds, if that is known.
    pub ttft_ms: Option<f64>,
    /// Index of the chosen worker among the candidates.
    pub actual: u16,
    /// What the router ran with. The recorded prefill blocks contain the credit, but not the factor of the prefill term.
    pub recorded: RouterSettings,
}

/// Why a decision is left out of the counterfactual.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum LeftOut {
    /// Only the chosen worker is known, or not even that.
    NotAllCandidates,
    /// The chosen worker is not among the candidates.
    ActualNotAmongCandidates,
    /// A term is negative, infinite or not a number.
    BadNumber,
    /// More decisions or candidates than are kept.
    TooMany,
}

impl LeftOut {
    /// All reasons.
    pub const ALL: [LeftOut; 4] =
        [LeftOut::NotAllCandidates, LeftOut::ActualNotAmongCandidates, LeftOut::BadNumber, LeftOut::TooMany];

    /// In words, after a number of decisions.
    pub const fn as_str(self) -> &'static str {
        match self {
            LeftOut::NotAllCandidates => "without all candidates",
            LeftOut::ActualNotAmongCandidates => "whose worker was not among the candidates",
            LeftOut::BadNumber => "with a term that is no cost",
            LeftOut::TooMany => "beyond the limit",
        }
    }

    const fn at(self) -> usize {
        self as usize
    }
}

/// Collects decisions in any order of time.
#[derive(Clone, Debug, Default)]
pub struct OfflineReplayBuilder {
    frozen: OfflineReplay,
}

/// Decisions with all their candidates, in columns.
#[derive(Clone, Debug, Default)]
pub struct OfflineReplay {
    /// Per decision.
    decisions: Vec<Row>,
    /// Per candidate: the columns that a cost is made of.
    overlap_blocks: Vec<f64>,
    prefill_blocks: Vec<f64>,
    decode_blocks: Vec<f64>,
    tree_size_blocks: Vec<u64>,
    /// Per candidate: its place in `workers`.
    slot: Vec<u16>,
    workers: Vec<WorkerIx>,
    /// Place in `workers` by worker index.
    slots: Vec<Vec<(WorkerIx, u16)>>,
    /// Decisions by time.
    by_start: Vec<u32>,
    /// Decisions that took some time, by their end.
    by_end: Vec<u32>,
    left_out: [u64; LeftOut::ALL.len()],
    /// What the latest decision was taken with, and when that was.
    latest: Option<(u64, RouterSettings)>,
    most_candidates: usize,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    first: u32,
    len: u16,
    actual: u16,
    at_ms: u64,
    turn: u64,
    /// `u64::MAX` where unknown.
    ended_ms: u64,
    /// Prompt length in blocks, 0 where unknown.
    isl_blocks: f64,
    /// Block size in tokens, 0 where unknown.
    block_size: f64,
    isl_tokens: Option<u64>,
    ttft_ms: Option<f64>,
    /// Factor of the prefill term, as recorded.
    prefill_factor: f64,
    /// Credit inside `prefill_blocks`.
    credit: f64,
}

impl Row {
    fn candidates(&self) -> std::ops::Range<usize> {
        self.first as usize..self.first as usize + usize::from(self.len)
    }

    /// Whether it is known from when to when the request ran, and that took some time.
    fn is_in_flight(&self) -> bool {
        self.ended_ms != u64::MAX && self.ended_ms > self.at_ms
    }
}

impl OfflineReplayBuilder {
    /// Adds a decision with all its candidates as they were logged or reconstructed. Preferred taints are not part of the
    /// counterfactual.
    ///
    /// # Errors
    /// Why it is left out; it is counted then.
    pub fn push(&mut self, decision: &ReplayDecision, candidates: &[Candidate]) -> Result<(), LeftOut> {
        let added = self.frozen.push(decision, candidates);
        if let Err(reason) = added {
            self.leave_out(reason);
        }
        added
    }

    /// Counts a decision that cannot be judged.
    pub fn leave_out(&mut self, reason: LeftOut) {
        self.frozen.left_out[reason.at()] += 1;
    }

    /// Ready to be asked.
    pub fn finish(mut self) -> OfflineReplay {
        let OfflineReplay { decisions, by_start, by_end, .. } = &mut self.frozen;
        by_start.extend(0..decisions.len() as u32);
        by_start.sort_by_key(|&at| decisions[at as usize].at_ms);
        by_end.extend((0..decisions.len() as u32).filter(|&at| decisions[at as usize].is_in_flight()));
        by_end.sort_by_key(|&at| decisions[at as usize].ended_ms);
        self.frozen
    }
}

impl OfflineReplay {
    /// Decisions that are judged.
    pub fn len(&self) -> usize {
        self.decisions.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.decisions.is_empty()
    }

    /// Decisions left out, by reason.
    pub fn left_out(&self) -> impl Iterator<Item = (LeftOut, u64)> + '_ {
        LeftOut::ALL.into_iter().zip(self.left_out)
    }

    /// Workers that were ever a candidate, in order of first sight.
    pub fn workers(&self) -> &[WorkerIx] {
        &self.workers
    }

    /// What the latest decision was taken with; the natural place to start trying from.
    pub fn recorded(&self) -> Option<RouterSettings> {
        self.latest.map(|(_, recorded)| recorded)
    }

    fn push(&mut self, decision: &ReplayDecision, candidates: &[Candidate]) -> Result<(), LeftOut> {
        if candidates.is_empty() {
            return Err(LeftOut::NotAllCandidates);
        }
        if usize::from(decision.actual) >= candidates.len() {
            return Err(LeftOut::ActualNotAmongCandidates);
        }
        if candidates.len() > MAX_CANDIDATES
            || self.decisions.len() >= MAX_DECISIONS
            || self.slot.len() + candidates.len() > MAX_ROWS
            || self.workers.len() + candidates.len() > usize::from(u16::MAX)
        {
            return Err(LeftOut::TooMany);
        }
        let is_cost = |value: f64| value.is_finite() && value >= 0.0;
        let recorded = decision.recorded;
        let candidate_fits = |c: &Candidate| is_cost(c.prefill_blocks) && is_cost(c.decode_blocks);
        if !candidates.iter().all(candidate_fits)
            || !is_cost(recorded.prefill_factor())
            || !is_cost(recorded.overlap_score_credit)
        {
            return Err(LeftOut::BadNumber);
        }
        let block_size = decision.block_size_tokens.filter(|&size| size > 0);
        let isl_blocks = match (decision.isl_tokens, block_size) {
            (Some(isl), Some(size)) => isl.div_ceil(size.into()) as f64,
            _ => 0.0,
        };
        self.decisions.push(Row {
            first: self.slot.len() as u32,
            len: candidates.len() as u16,
            actual: decision.actual,
            at_ms: decision.at_ms.0,
            turn: decision.turn,
            ended_ms: decision.ended_ms.map_or(u64::MAX, |at| at.0.max(decision.at_ms.0)),
            isl_blocks,
            block_size: block_size.map_or(0.0, f64::from),
            isl_tokens: decision.isl_tokens,
            ttft_ms: decision.ttft_ms.filter(|ms| ms.is_finite() && *ms >= 0.0),
            prefill_factor: recorded.prefill_factor(),
            credit: recorded.device_credit(),
        });
        if self.latest.is_none_or(|(at_ms, _)| at_ms <= decision.at_ms.0) {
            self.latest = Some((decision.at_ms.0, recorded));
        }
        for (candidate, tree_size) in candidates.iter().zip(tree_sizes_blocks(candidates)) {
            self.overlap_blocks.push(candidate.overlap_blocks.into());
            self.prefill_blocks.push(match (recorded.formula, block_size) {
                (Formula::A, Some(size)) => whole_tokens(candidate.prefill_blocks, size),
                _ => candidate.prefill_blocks,
            });
            self.decode_blocks.push(candidate.decode_blocks);
            self.tree_size_blocks.push(tree_size);
            let slot = self.slot_of(candidate.worker);
            self.slot.push(slot);
        }
        self.most_candidates = self.most_candidates.max(candidates.len());
        Ok(())
    }

    fn slot_of(&mut self, worker: WorkerIx) -> u16 {
        let at = worker.slot().at();
        if self.slots.len() <= at {
            self.slots.resize(at + 1, Vec::new());
        }
        // Few workers of one slot are in the retained decisions, mostly one.
        if let Some(&(_, known)) = self.slots[at].iter().find(|(known, _)| *known == worker) {
            return known;
        }
        let new = self.workers.len() as u16;
        self.workers.push(worker);
        self.slots[at].push((worker, new));
        new
    }
}

/// A log line rounds prefill blocks to three decimals, but they are whole tokens over the block size in formula A:
/// where that tells which, the exact value. Without it, workers that tied would seem not to.
fn whole_tokens(prefill_blocks: f64, block_size: u32) -> f64 {
    const ROUNDING: f64 = 0.000_501;
    let size = f64::from(block_size);
    let exact = (prefill_blocks * size).round() / size;
    if (exact - prefill_blocks).abs() <= ROUNDING && 2.0 * ROUNDING < 1.0 / size {
        exact
    } else {
        prefill_blocks
    }
}

#[cfg(test)]
mod tests;
