//! What a frontend's router of 1.6 counts of one pool.

use super::super::router::{Choice, Router};
use super::frontend::INPUT;
use super::histogram::Histogram;

/// Counters of a router; see the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct Routed {
    pub(super) input: Histogram,
    /// Prompt tokens that lay on the chosen worker's device.
    pub(super) selected_tokens: u64,
    /// The same of the worker on which most of them lay.
    pub(super) best_tokens: u64,
    /// Found share of each prompt, in millionths.
    pub(super) hit_rate: Histogram,
    pub(super) stored_events: u64,
    /// Stored events below a block that the index does not know.
    pub(super) unknown_parents: u64,
    pub(super) removed_events: u64,
}

impl Default for Routed {
    fn default() -> Self {
        Self {
            input: Histogram::of_tokens(INPUT),
            selected_tokens: 0,
            best_tokens: 0,
            hit_rate: Histogram::of_shares(),
            stored_events: 0,
            unknown_parents: 0,
            removed_events: 0,
        }
    }
}

impl Routed {
    pub(super) fn decided(&mut self, isl_tokens: u32, choice: &Choice, router: &Router) {
        self.input.observe(isl_tokens.into(), 1);
        let best = router.candidates().iter().map(|of| of.candidate.overlap_blocks).max();
        let tokens = |blocks: u32| u64::from(blocks) * u64::from(router.block_size_tokens());
        let found = tokens(choice.overlap_blocks).min(isl_tokens.into());
        self.hit_rate.observe(found * 1_000_000 / u64::from(isl_tokens.max(1)), 1);
        self.selected_tokens += tokens(choice.overlap_blocks);
        self.best_tokens += tokens(best.unwrap_or(0));
        // What a router predicts it counts as an event that it applied.
        self.stored_events += u64::from(router.predicts());
    }

    /// An event that was counted as applied could not be.
    pub(super) fn rejected(&mut self) {
        self.stored_events = self.stored_events.saturating_sub(1);
        self.unknown_parents += 1;
    }

    pub(super) fn event(&mut self, is_stored: bool) {
        if is_stored {
            self.stored_events += 1;
        } else {
            self.removed_events += 1;
        }
    }
}
