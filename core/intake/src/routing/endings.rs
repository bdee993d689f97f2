//! Ends of requests that wait: for the decision of their request, or for the block size that turns its tokens into blocks.
//!
//! Two logs, or a log and messages, are read one after the other: an end may be read before its choice.

use std::collections::VecDeque;

use super::joiner::Placed;
use radixscope_model::id::Millis;
use radixscope_model::record::Ended;

/// Ends whose decision has not come.
const MAX_WAITING: usize = 1 << 12;
/// So long an end waits for its decision: sources lag behind each other by less.
const HOLD_MS: u64 = 10_000;
/// Lengths in tokens that wait for a block size: as many as decisions are kept.
const MAX_UNSIZED: usize = radixscope_state::cluster::MAX_DECISIONS;

/// The end of a request, with what it is called.
pub(super) struct Ending {
    pub(super) request_id: Box<str>,
    pub(super) http_id: Option<Box<str>>,
    /// Whether the request ran nothing.
    pub(super) is_query: bool,
    pub(super) ended: Ended,
}

/// What waits.
#[derive(Default)]
pub(super) struct Endings {
    /// With the time at which each was read.
    waiting: VecDeque<(Millis, Ending)>,
    sizeless: VecDeque<(Placed, u64)>,
}

impl Endings {
    /// Keeps an end until its decision comes. Gives the one that has to make room.
    pub(super) fn wait(&mut self, read_ms: Millis, ending: Ending) -> Option<Ending> {
        let is_full = self.waiting.len() == MAX_WAITING;
        let oldest = is_full.then(|| self.waiting.pop_front()).flatten();
        self.waiting.push_back((read_ms, ending));
        oldest.map(|(_, ending)| ending)
    }

    /// The ends that `is_known` finds a decision of.
    pub(super) fn known(&mut self, is_known: impl Fn(&Ending) -> bool) -> Vec<Ending> {
        let mut known = Vec::new();
        let mut at = 0;
        while let Some((_, ending)) = self.waiting.get(at) {
            if is_known(ending) {
                known.extend(self.waiting.remove(at).map(|(_, ending)| ending));
            } else {
                at += 1;
            }
        }
        known
    }

    /// Whether any waits for its decision.
    pub(super) fn are_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Those that have waited long enough.
    pub(super) fn given_up(&mut self, at: Millis) -> Vec<Ending> {
        let still = self.waiting.iter().position(|(read, _)| at.since(*read) <= HOLD_MS);
        self.waiting.drain(..still.unwrap_or(self.waiting.len())).map(|(_, ending)| ending).collect()
    }

    /// Keeps a length in tokens until the block size is known.
    pub(super) fn without_size(&mut self, placed: Placed, isl_tokens: u64) {
        if self.sizeless.len() == MAX_UNSIZED {
            self.sizeless.pop_front();
        }
        self.sizeless.push_back((placed, isl_tokens));
    }

    /// Takes the lengths whose block size is known by now.
    pub(super) fn sized(&mut self, mut size: impl FnMut(Placed) -> Option<u32>) -> Vec<(Placed, u64, u32)> {
        let mut found = Vec::new();
        self.sizeless.retain(|&(placed, isl_tokens)| match size(placed) {
            Some(size) => {
                found.push((placed, isl_tokens, size));
                false
            }
            None => true,
        });
        found
    }
}
