//! Decisions whose costs are not known yet: their log lines, or the events that were published before them, are still
//! on the way.
//!
//! A decision is recorded at once as far as it is known. Its costs follow when the publishers' clocks have passed its time.
//! It stays here a little longer, so that reports of other sources can be compared with them.

use std::collections::VecDeque;

use super::Length;
use super::reconstruct::{AFTER_MS, Asked};
use radixscope_model::id::{DecisionId, Millis, WorkerIx};
use radixscope_model::moment::Moment;
use radixscope_model::record::{DecisionSource, NotReconstructed, same_cost};
use radixscope_router::{Formula, RouterSettings};
use radixscope_state::requests::Prompt;

/// Longest that a decision waits for what was published before it: half a second by the clock of who receives. Events
/// are rarely later, and who looks on does not want to wait longer.
const WAIT_MS: u64 = 500;
/// How long the reports of other sources are awaited: logs are read up to half a second late.
const LINGER_MS: u64 = 2_000;
/// Time by publishers' clocks from the first attempt to the second; the third is the last.
const AGAIN_MS: u64 = 100;
/// Decisions that wait: two seconds of 1,000 a second.
const MAX_DECISIONS: usize = 2_048;
/// Blocks of their prompts together: 16 MiB.
const MAX_BLOCKS: usize = 1 << 21;

/// A prompt's hashes, kept.
pub(super) enum Kept {
    Chain(Box<[u64]>),
    Local(Box<[u64]>),
}

impl Kept {
    /// As it is read.
    pub(super) fn prompt(&self) -> Prompt<'_> {
        match self {
            Kept::Chain(hashes) => Prompt::Chain(hashes),
            Kept::Local(hashes) => Prompt::Local(hashes),
        }
    }
}

/// What one source reports of a decision, as far as its costs depend on it.
pub(super) struct ChoiceReport {
    pub(super) decision: DecisionId,
    pub(super) worker: WorkerIx,
    pub(super) source: DecisionSource,
    /// When the router decided, by its clock.
    pub(super) at: Moment,
    pub(super) received_ms: Millis,
    pub(super) prompt: Option<Kept>,
    pub(super) length: Length,
    /// As the source shows it; of several the first counts.
    pub(super) formula: Option<Formula>,
    /// Blocks that the chosen worker held.
    pub(super) overlap_blocks: Option<u64>,
    /// Blocks beyond those that it held below its device, where the log tells.
    pub(super) lower_tier_blocks: Option<u64>,
    /// What it cost.
    pub(super) logit: Option<f64>,
    /// Whether this is all that this source reports at the time of a decision.
    pub(super) is_whole: bool,
}

impl ChoiceReport {
    /// Whether the router's log gave the time of the choice.
    pub(super) fn is_logged(&self) -> bool {
        self.source == DecisionSource::Log
    }
}

/// What became of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Reconstruction {
    /// Overlap and cost of the chosen worker, as computed.
    Found {
        overlap_blocks: u64,
        cost: f64,
    },
    Not(NotReconstructed),
}

/// A decision that waits.
pub(super) struct Case {
    report: ChoiceReport,
    verdict: Option<Reconstruction>,
    /// After a failed attempt: tried again when the publishers' clocks have come so far.
    again: Moment,
}

/// What is due, in order of arrival.
#[derive(Default)]
pub(super) struct Waiting {
    cases: VecDeque<Case>,
    blocks: usize,
    /// Cases without a verdict: usually there is none, and every record asks.
    open: usize,
    /// Latest time that a publisher reported.
    clock: Moment,
}

impl Waiting {
    /// A publisher reported its time.
    #[inline]
    pub(super) fn pass(&mut self, clock: Moment) {
        self.clock = self.clock.max(clock);
    }

    /// Whether any decision waits for its costs.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.open > 0
    }

    /// Takes what a source reports of a decision.
    pub(super) fn take(&mut self, report: ChoiceReport) {
        match self.cases.iter_mut().rev().find(|case| case.report.decision == report.decision) {
            Some(case) => case.more(report),
            None => self.cases.push_back(Case { report, verdict: None, again: Moment::default() }),
        }
        self.count();
    }

    /// When the router decided, of a decision that is here.
    pub(super) fn placed(&self, decision: DecisionId) -> Option<Moment> {
        let case = self.cases.iter().rev().find(|case| case.report.decision == decision)?;
        Some(case.report.at)
    }

    /// A better word on what the chosen worker held of a prompt and how long it is.
    pub(super) fn correct(&mut self, decision: DecisionId, length: Length) {
        if let Some(case) = self.cases.iter_mut().rev().find(|case| case.report.decision == decision) {
            let known = &mut case.report;
            if (known.length.isl_tokens, known.overlap_blocks) != (length.isl_tokens, length.overlap_blocks) {
                (known.length, known.overlap_blocks) = (length, length.overlap_blocks);
                (case.verdict, case.again) = (None, Moment::default());
            }
        }
        self.count();
    }

    /// More that is reported of a decision that is here.
    pub(super) fn add_report(&mut self, decision: DecisionId, overlap_blocks: Option<u64>, is_whole: bool) {
        if let Some(case) = self.cases.iter_mut().rev().find(|case| case.report.decision == decision) {
            case.report.overlap_blocks = case.report.overlap_blocks.or(overlap_blocks);
            case.report.is_whole |= is_whole;
            case.check_against_report();
        }
        self.count();
    }

    /// Tries every decision that is due at `now`: `attempt` gives its verdict and learns whether it is the last one.
    pub(super) fn settle(&mut self, now: Millis, mut attempt: impl FnMut(&Case, bool) -> Reconstruction) {
        let (clock, too_many) = (self.clock, self.too_many());
        let mut changed = too_many > 0;
        for (n, case) in self.cases.iter_mut().enumerate().filter(|(_, case)| case.is_open()) {
            let report = &case.report;
            let is_last = now.since(report.received_ms) >= WAIT_MS || n < too_many;
            let is_due = report.is_whole && clock >= report.at.plus_ms(AFTER_MS).max(case.again);
            if !is_last && !is_due {
                continue;
            }
            changed = true;
            let verdict = attempt(case, is_last);
            // Events of a slower publisher may still come.
            if is_last || matches!(verdict, Reconstruction::Found { .. }) {
                case.verdict = Some(verdict);
            } else {
                let is_first = case.again == Moment::default();
                case.again = if is_first { clock.plus_ms(AGAIN_MS) } else { Moment(u64::MAX) };
            }
        }
        self.cases.drain(..too_many);
        while self.cases.front().is_some_and(|oldest| now.since(oldest.report.received_ms) > LINGER_MS) {
            self.cases.pop_front();
            changed = true;
        }
        if changed {
            self.count();
        }
    }

    /// How many of the oldest have to go.
    fn too_many(&self) -> usize {
        let mut blocks = self.blocks;
        let mut cases = self.cases.iter();
        let mut count = self.cases.len().saturating_sub(MAX_DECISIONS);
        blocks -= cases.by_ref().take(count).map(Case::blocks).sum::<usize>();
        while blocks > MAX_BLOCKS {
            blocks -= cases.next().map_or(blocks, Case::blocks);
            count += 1;
        }
        count
    }

    fn count(&mut self) {
        self.open = self.cases.iter().filter(|case| case.is_open()).count();
        self.blocks = self.cases.iter().map(Case::blocks).sum();
    }
}

impl Case {
    /// What is asked, if the prompt is known.
    /// `formula` is the deployed one, where the case does not show its own; `settings` gives what the router runs with.
    pub(super) fn asked(
        &self,
        formula: Formula,
        settings: impl FnOnce(Formula) -> RouterSettings,
    ) -> Option<Asked<'_>> {
        let report = &self.report;
        let prompt = report.prompt.as_ref()?.prompt();
        Some(Asked { report, prompt, settings: settings(report.formula.unwrap_or(formula)) })
    }

    /// What is reported of it.
    pub(super) fn report(&self) -> &ChoiceReport {
        &self.report
    }

    fn is_open(&self) -> bool {
        self.verdict.is_none() && self.report.prompt.is_some()
    }

    fn blocks(&self) -> usize {
        self.report.prompt.as_ref().map_or(0, |kept| kept.prompt().len())
    }

    /// Adds what another source reports. The line of a log is nearer to the decision than a message of it, and its hashes
    /// name each block.
    fn more(&mut self, more: ChoiceReport) {
        let known = &mut self.report;
        let is_nearer = more.is_logged() && !known.is_logged();
        if is_nearer && known.at != more.at {
            // What was found is of another moment.
            known.at = more.at;
            (self.verdict, self.again) = (None, Moment::default());
        }
        known.source = if is_nearer { more.source } else { known.source };
        known.formula = known.formula.or(more.formula);
        known.overlap_blocks = known.overlap_blocks.or(more.overlap_blocks);
        known.lower_tier_blocks = known.lower_tier_blocks.or(more.lower_tier_blocks);
        known.logit = known.logit.or(more.logit);
        known.is_whole |= more.is_whole;
        known.length.fill(more.length);
        if known.prompt.is_none() || matches!(more.prompt, Some(Kept::Local(_))) {
            known.prompt = more.prompt;
        }
        self.check_against_report();
    }

    /// What was found does not stand against a report that contradicts it.
    fn check_against_report(&mut self) {
        let Some(Reconstruction::Found { overlap_blocks, cost }) = self.verdict else { return };
        let differs = self.report.overlap_blocks.is_some_and(|reported| reported != overlap_blocks)
            || self.report.logit.is_some_and(|reported| !same_cost(reported, cost));
        if differs {
            self.verdict = None;
        }
    }
}
