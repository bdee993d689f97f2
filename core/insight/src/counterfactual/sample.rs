//! Decisions with all their candidates, as their routers saw them: what every counterfactual judges. In columns, small
//! enough to travel to a worker, complete enough to be judged there without the state. Must not know where decisions come
//! from: `select` reads them out of the state.

use std::collections::HashMap;
use std::ops::Range;

use radixscope_model::id::{DecisionId, Millis, WorkerIx};
use radixscope_model::record::{Candidate, tree_sizes_blocks};
use radixscope_router::{Formula, RouterSettings};
use serde::{Deserialize, Serialize};

use super::report::About;

/// Most candidates of one decision; with more, a decision is left out.
pub const MAX_CANDIDATES: usize = 4_096;
/// Most decisions of a sample.
pub(super) const MAX_SAMPLED: usize = 1_000_000;
/// Most candidates of all decisions together: a bound on memory, 34 bytes each.
pub(super) const MAX_SAMPLED_CANDIDATES: usize = 16_000_000;
/// So many different settings of the recorded decisions are told apart.
const MAX_COUNTED_SETTINGS: usize = 8;

/// A decision as it was taken.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct SampledDecision {
    /// Which.
    pub id: DecisionId,
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
    pub chosen: u16,
}

impl SampledDecision {
    /// Length of the prompt in blocks, the begun one included.
    pub(super) fn isl_blocks(&self) -> Option<u64> {
        Some(self.isl_tokens?.div_ceil(self.block_size()?.into()))
    }

    pub(super) fn block_size(&self) -> Option<u32> {
        self.block_size_tokens.filter(|&size| size > 0)
    }

    /// Prompt tokens that a worker which holds `overlap_blocks` need not compute, if the block size is known.
    pub(super) fn cached_tokens(&self, overlap_blocks: f64) -> Option<f64> {
        let cached = overlap_blocks * f64::from(self.block_size()?);
        Some(self.isl_tokens.map_or(cached, |isl| cached.min(isl as f64)))
    }

    /// Whether it is known from when to when the request ran, and that took some time.
    pub(super) fn is_in_flight(&self) -> bool {
        self.ended_ms.is_some_and(|ended| ended > self.at_ms)
    }
}

/// Why a decision is left out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum LeftOut {
    /// Nothing is known of the workers that were not chosen.
    ChosenOnly,
    /// Its candidates were known, but are no longer retained.
    Forgotten,
    /// Its candidates are known, but not with which weight they were compared.
    WeightUnknown,
    /// The chosen worker is not among the candidates.
    ChosenNotAmong,
    /// A term is negative, infinite or not a number.
    BadNumber,
    /// More candidates than are judged.
    TooMany,
    /// Its candidates were computed on a tree that lacked blocks, so others may have cost less.
    PartialTree,
    /// Something else than the cost decided: the session, the client, another policy. No setting of the cost formula changes it.
    NotByCost,
    /// Another router than Dynamo's decided, by arithmetic that is not known here.
    OtherRouter,
}

impl LeftOut {
    /// As text, after a number of decisions.
    pub const fn as_str(self) -> &'static str {
        match self {
            LeftOut::ChosenOnly => "of which only the chosen worker is known",
            LeftOut::Forgotten => "whose candidates are no longer retained",
            LeftOut::WeightUnknown => "whose weight is unknown",
            LeftOut::ChosenNotAmong => "whose worker was not among the candidates",
            LeftOut::BadNumber => "with a term that is no cost",
            LeftOut::TooMany => "with more candidates than are judged",
            LeftOut::PartialTree => "whose costs were computed on a tree that lacked blocks",
            LeftOut::NotByCost => "that the cost did not decide",
            LeftOut::OtherRouter => "of another router than Dynamo's, whose cost formula alone is known here",
        }
    }
}

/// Decisions with all their candidates, and what was left out of them.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    pub(super) about: About,
    /// In the order in which they were added.
    pub(super) decisions: Vec<EvaluatedDecision>,
    /// By candidate, those of a decision in a row: the columns that a cost is made of.
    pub(super) overlap_blocks: Vec<f64>,
    pub(super) prefill_blocks: Vec<f64>,
    pub(super) decode_blocks: Vec<f64>,
    pub(super) tree_size_blocks: Vec<u64>,
    /// By candidate: its place in `workers`.
    pub(super) slots: Vec<u16>,
    /// Workers that were ever a candidate, in order of first appearance.
    pub(super) workers: Vec<WorkerIx>,
    /// Settings that the decisions were taken with.
    settings: Vec<RouterSettings>,
    /// Decisions by time.
    pub(super) by_start: Vec<u32>,
    /// Decisions that took some time, by their end.
    pub(super) by_end: Vec<u32>,
    /// Whether the decisions of one worker alone were selected: how workers are loaded beside each other is unknown then.
    pub(super) is_of_one_worker: bool,
}

/// A decision of a sample and where its candidates are.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct EvaluatedDecision {
    pub(super) decision: SampledDecision,
    first: u32,
    count: u16,
    settings: u32,
}

impl EvaluatedDecision {
    pub(super) fn candidates(&self) -> Range<usize> {
        self.first as usize..self.first as usize + usize::from(self.count)
    }
}

impl Sample {
    /// Decisions that are judged.
    pub fn len(&self) -> usize {
        self.decisions.len()
    }

    /// Whether nothing can be judged.
    pub fn is_empty(&self) -> bool {
        self.decisions.is_empty()
    }

    /// What the latest decision was taken with; the natural place to start trying from.
    pub fn recorded(&self) -> Option<RouterSettings> {
        self.about.recorded
    }

    /// What it is a sample of.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// What a decision was taken with.
    pub(super) fn settings_of(&self, judged: &EvaluatedDecision) -> &RouterSettings {
        &self.settings[judged.settings as usize]
    }
}

/// Collects decisions in any order of time.
#[derive(Clone, Debug, Default)]
pub struct SampleBuilder {
    sample: Sample,
    /// Place of each worker in `workers`.
    slots: HashMap<WorkerIx, u16>,
    /// When the latest decision was taken.
    latest_ms: Option<Millis>,
}

impl SampleBuilder {
    /// A sample about `about`, of which the figures that follow from the decisions are yet to come.
    pub(super) fn new(about: About, is_of_one_worker: bool) -> Self {
        let sample = Sample { about, is_of_one_worker, ..Sample::default() };
        Self { sample, ..Self::default() }
    }

    pub(super) fn about_mut(&mut self) -> &mut About {
        &mut self.sample.about
    }

    /// Adds a decision that was taken with `settings`, with all its candidates as they were logged or reconstructed.
    /// Preferred taints are not part of the counterfactual.
    ///
    /// # Errors
    /// Why it is left out; it is counted then.
    pub fn push(
        &mut self,
        decision: &SampledDecision,
        settings: &RouterSettings,
        candidates: &[Candidate],
    ) -> Result<(), LeftOut> {
        let added = self.add(decision, settings, candidates);
        if let Err(reason) = added {
            self.leave_out(reason);
        }
        added
    }

    /// Counts a decision that cannot be judged.
    pub fn leave_out(&mut self, reason: LeftOut) {
        let left_out = &mut self.sample.about.left_out;
        match left_out.binary_search_by_key(&reason, |(known, _)| *known) {
            Ok(at) => left_out[at].1 += 1,
            Err(at) => left_out.insert(at, (reason, 1)),
        }
    }

    /// Ready to be judged.
    pub fn finish(mut self) -> Sample {
        let Sample { decisions, by_start, by_end, about, settings, .. } = &mut self.sample;
        about.judged = decisions.len() as u64;
        about.recorded_settings = settings.len().min(MAX_COUNTED_SETTINGS) as u32;
        let decision = |at: u32| &decisions[at as usize].decision;
        by_start.extend(0..decisions.len() as u32);
        by_start.sort_by_key(|&at| decision(at).at_ms);
        by_end.extend((0..decisions.len() as u32).filter(|&at| decision(at).is_in_flight()));
        by_end.sort_by_key(|&at| decision(at).ended_ms);
        self.sample
    }

    fn add(
        &mut self,
        decision: &SampledDecision,
        settings: &RouterSettings,
        candidates: &[Candidate],
    ) -> Result<(), LeftOut> {
        if candidates.is_empty() {
            return Err(LeftOut::ChosenOnly);
        }
        if usize::from(decision.chosen) >= candidates.len() {
            return Err(LeftOut::ChosenNotAmong);
        }
        if candidates.len() > MAX_CANDIDATES
            || self.sample.decisions.len() >= MAX_SAMPLED
            || self.sample.slots.len() + candidates.len() > MAX_SAMPLED_CANDIDATES
            || self.sample.workers.len() + candidates.len() > usize::from(u16::MAX)
        {
            return Err(LeftOut::TooMany);
        }
        let is_cost = |value: f64| value.is_finite() && value >= 0.0;
        if !candidates.iter().all(|c| is_cost(c.prefill_blocks) && is_cost(c.decode_blocks))
            || !is_cost(settings.prefill_factor())
            || !is_cost(settings.overlap_score_credit)
        {
            return Err(LeftOut::BadNumber);
        }
        // Two decisions in a row mostly have the same candidates in the same order.
        let previous = self.sample.decisions.last().map_or(0..0, EvaluatedDecision::candidates);
        let judged = EvaluatedDecision {
            decision: SampledDecision {
                ttft_ms: decision.ttft_ms.filter(|ms| ms.is_finite() && *ms >= 0.0),
                ..*decision
            },
            first: self.sample.slots.len() as u32,
            count: candidates.len() as u16,
            settings: self.settings_at(settings),
        };
        self.sample.decisions.push(judged);
        if self.latest_ms.is_none_or(|latest| latest <= decision.at_ms) {
            self.latest_ms = Some(decision.at_ms);
            self.sample.about.recorded = Some(*settings);
        }
        let mut likely = previous;
        for (candidate, tree_size) in candidates.iter().zip(tree_sizes_blocks(candidates)) {
            let prefill_blocks = match (settings.formula, decision.block_size()) {
                (Formula::A, Some(size)) => whole_tokens(candidate.prefill_blocks, size),
                _ => candidate.prefill_blocks,
            };
            let slot = self.slot_of(candidate.worker, likely.next());
            let sample = &mut self.sample;
            sample.overlap_blocks.push(candidate.overlap_blocks.into());
            sample.prefill_blocks.push(prefill_blocks);
            sample.decode_blocks.push(candidate.decode_blocks);
            sample.tree_size_blocks.push(tree_size);
            sample.slots.push(slot);
        }
        Ok(())
    }

    /// Place of `settings`, which are nearly always those of a decision shortly before.
    fn settings_at(&mut self, settings: &RouterSettings) -> u32 {
        let known = &mut self.sample.settings;
        let recent = known.len().saturating_sub(MAX_COUNTED_SETTINGS);
        let place = known[recent..].iter().position(|known| known == settings);
        place.map_or_else(
            || {
                known.push(*settings);
                known.len() - 1
            },
            |place| recent + place,
        ) as u32
    }

    /// Place of `worker`, which is likely that of the candidate at `likely`.
    fn slot_of(&mut self, worker: WorkerIx, likely: Option<usize>) -> u16 {
        let Sample { slots, workers, .. } = &mut self.sample;
        let known = likely.and_then(|at| slots.get(at)).copied();
        if let Some(slot) = known.filter(|&slot| workers[usize::from(slot)] == worker) {
            return slot;
        }
        *self.slots.entry(worker).or_insert_with(|| {
            workers.push(worker);
            (workers.len() - 1) as u16
        })
    }
}

/// A log line rounds prefill blocks to three decimals, but they are whole tokens over the block size in formula A:
/// where that identifies the number, the exact value. Without it, workers that tied would seem not to.
pub(super) fn whole_tokens(prefill_blocks: f64, block_size: u32) -> f64 {
    const ROUNDING: f64 = 0.000_501;
    let size = f64::from(block_size);
    let exact = (prefill_blocks * size).round() / size;
    if (exact - prefill_blocks).abs() <= ROUNDING && 2.0 * ROUNDING < 1.0 / size {
        exact
    } else {
        prefill_blocks
    }
}
