//! The latest routing decisions, bounded, and totals over all of them.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::id::{Millis, Seq, WorkerIx};
use crate::record::{Decision, DecisionSource};

/// Decisions kept one by one; older ones live on in the totals.
pub const MAX_DECISIONS: usize = 10_000;

/// A decision as it is kept.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Decided {
    /// Its record.
    pub seq: Seq,
    /// When it was heard.
    pub at_ms: Millis,
    /// What was decided.
    pub decision: Decision<'static>,
}

impl Decided {
    /// Share of the prompt's blocks that the chosen worker held, 0 … 1; `None` where either number is unknown or the
    /// prompt has no block.
    pub fn overlap_share(&self) -> Option<f64> {
        let isl = self.decision.isl_blocks.filter(|&isl| isl > 0)?;
        Some(self.decision.overlap_blocks? as f64 / isl as f64)
    }
}

/// Sums over decisions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct DecisionTotals {
    /// Decisions.
    pub count: u64,
    /// Prompt blocks, of decisions that tell both numbers.
    pub isl_blocks: u64,
    /// Blocks the chosen workers held, of decisions that tell both numbers.
    pub overlap_blocks: u64,
}

impl DecisionTotals {
    fn add(&mut self, decision: &Decision<'_>) {
        self.count += 1;
        if let (Some(isl), Some(overlap)) = (decision.isl_blocks, decision.overlap_blocks) {
            self.isl_blocks = self.isl_blocks.saturating_add(isl);
            self.overlap_blocks = self.overlap_blocks.saturating_add(overlap);
        }
    }

    /// Overlap over prompt blocks, 0 … 1; `None` while no prompt block was counted.
    pub fn overlap_share(&self) -> Option<f64> {
        (self.isl_blocks > 0).then(|| self.overlap_blocks as f64 / self.isl_blocks as f64)
    }
}

/// Decisions and totals.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Decisions {
    latest: VecDeque<Decided>,
    totals: DecisionTotals,
    per_worker: Vec<DecisionTotals>,
}

impl Decisions {
    pub(super) fn push(&mut self, decided: Decided) {
        let worker = decided.decision.worker.at();
        if self.per_worker.len() <= worker {
            self.per_worker.resize(worker + 1, DecisionTotals::default());
        }
        self.totals.add(&decided.decision);
        self.per_worker[worker].add(&decided.decision);
        if self.latest.len() == MAX_DECISIONS {
            self.latest.pop_front();
        }
        self.latest.push_back(decided);
    }

    /// Whether decisions from `source` are known.
    pub(super) fn last_source(&self) -> Option<DecisionSource> {
        self.latest.back().map(|d| d.decision.source)
    }

    /// The latest ones, newest first.
    pub fn newest_first(&self) -> impl DoubleEndedIterator<Item = &Decided> + ExactSizeIterator {
        self.latest.iter().rev()
    }

    /// Sums over all decisions ever heard.
    pub fn totals(&self) -> DecisionTotals {
        self.totals
    }

    /// Sums over all decisions ever heard for one worker.
    pub fn totals_of(&self, worker: WorkerIx) -> DecisionTotals {
        self.per_worker.get(worker.at()).copied().unwrap_or_default()
    }

    /// Sums over the decisions of the `window_ms` before `now`, as far as they are kept one by one.
    pub fn window(&self, now: Millis, window_ms: u64) -> DecisionTotals {
        let mut totals = DecisionTotals::default();
        for decided in self.newest_first().take_while(|d| now.since(d.at_ms) <= window_ms) {
            totals.add(&decided.decision);
        }
        totals
    }
}
