//! The two choices of one request where messages name no request (`kv-hit-rate` of a disaggregated 0.8 or 0.9): the router
//! chooses a decode worker some milliseconds after the prefill worker, for a prompt of the same length. Only what can be
//! of one request alone is joined.

use std::collections::VecDeque;

use radixscope_model::id::{DecisionId, Millis, WorkerIx};

/// Longest time from the choice of the prefill worker to that of the decode worker, by the router's clock: measured, some
/// 5 ms where the prefill router does not wait for the prefill.
const WITHIN_MS: u64 = 100;
/// Prefill choices that wait for theirs: as many as a router makes in that time.
const MAX_WAITING: usize = 256;

/// A choice among prefill workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PrefillChoice {
    pub(super) id: DecisionId,
    pub(super) worker: WorkerIx,
    pub(super) at_ms: Millis,
    pub(super) isl_blocks: u64,
}

/// Prefill choices whose decode choices have not come.
#[derive(Default)]
pub(super) struct Pairs(VecDeque<PrefillChoice>);

impl Pairs {
    /// A prefill worker was chosen.
    pub(super) fn prefill(&mut self, choice: PrefillChoice) {
        if self.0.iter().any(|known| known.id == choice.id) {
            return;
        }
        if self.0.len() == MAX_WAITING {
            self.0.pop_front();
        }
        self.0.push_back(choice);
    }

    /// A decode worker was chosen at `at` for a prompt of so many blocks: the prefill choice of the same request, if only one
    /// can be it.
    pub(super) fn decode(&mut self, at: Millis, isl_blocks: u64) -> Option<PrefillChoice> {
        self.0.retain(|choice| at.since(choice.at_ms) <= WITHIN_MS);
        let is_it = |choice: &PrefillChoice| choice.isl_blocks == isl_blocks && choice.at_ms <= at;
        let mut fitting = self.0.iter().enumerate().filter(|(_, choice)| is_it(choice));
        let (place, _) = fitting.next()?;
        if fitting.next().is_some() {
            // Which belongs to which is ambiguous, so none of them is matched later.
            self.0.retain(|choice| !is_it(choice));
            return None;
        }
        self.0.remove(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(id: u64, at_ms: u64, isl_blocks: u64) -> PrefillChoice {
        PrefillChoice { id: DecisionId(id), worker: WorkerIx(0), at_ms: Millis(at_ms), isl_blocks }
    }

    #[test]
    fn only_what_can_be_of_one_request_is_joined() {
        let mut pairs = Pairs::default();
        pairs.prefill(choice(1, 100, 246));
        pairs.prefill(choice(2, 101, 242));
        assert_eq!(pairs.decode(Millis(105), 242).map(|choice| choice.id), Some(DecisionId(2)));
        assert_eq!(pairs.decode(Millis(105), 242), None, "it has its own");
        pairs.prefill(choice(3, 106, 246));
        assert_eq!(pairs.decode(Millis(107), 246), None, "either could be it");
        assert_eq!(pairs.decode(Millis(108), 246), None, "and neither is what is left");
        pairs.prefill(choice(4, 110, 9));
        assert_eq!(pairs.decode(Millis(111 + WITHIN_MS), 9), None, "too long ago");
    }
}
