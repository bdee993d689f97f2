//! Which pieces are of one decision.
//!
//! Where a request id is told it decides. `kv-hit-rate` and the logs of Dynamo up to 1.3 tell none: their pieces are of
//! one decision if worker, overlap and prompt length agree and the router's clock says nearly the same in both.

use std::collections::VecDeque;

use hashbrown::HashMap;

use crate::id::{DecisionId, Millis, WorkerIx};
use crate::record::DecisionSource;

/// Most by which the times of two pieces of one decision differ. Both are the frontend's clock: what lies between is
/// the time from its decision to its publishing or logging it, under load some tens of milliseconds.
const WINDOW_MS: u64 = 1_000;
/// Decisions that pieces without a request id may still belong to.
const MAX_RECENT: usize = 2_048;
/// Request ids remembered.
const MAX_REQUESTS: usize = 1 << 16;

/// What a piece tells that shows which decision it is of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks<'a> {
    /// What kind of piece. A decision has one of each.
    pub(super) source: DecisionSource,
    /// When the router decided, as the piece tells it.
    pub(super) at_ms: Millis,
    /// The chosen worker.
    pub(super) worker: WorkerIx,
    /// The router's id of the request.
    pub(super) request_id: Option<&'a str>,
    /// Blocks that the worker held, by the router's count.
    pub(super) overlap_blocks: Option<u64>,
    /// Prompt length in blocks, rounded up.
    pub(super) isl_blocks: Option<u64>,
}

struct Recent {
    id: DecisionId,
    at_ms: Millis,
    worker: WorkerIx,
    overlap_blocks: Option<u64>,
    isl_blocks: Option<u64>,
    sources: u8,
    has_request_id: bool,
}

/// Gives every piece the id of its decision.
#[derive(Default)]
pub(super) struct Joiner {
    last: u64,
    by_request: HashMap<Box<str>, DecisionId>,
    requests: VecDeque<Box<str>>,
    recent: VecDeque<Recent>,
}

impl Joiner {
    /// Other workers take these places: nothing that is said of those continues what was said of these.
    pub(super) fn vacate(&mut self, workers: &[WorkerIx]) {
        self.recent.retain(|recent| !workers.contains(&recent.worker));
    }

    /// The decision of a request, if one is known.
    pub(super) fn of_request(&self, request_id: &str) -> Option<DecisionId> {
        self.by_request.get(request_id).copied()
    }

    /// The decision that a piece is of: one that is known, or a new one.
    pub(super) fn decision(&mut self, marks: &Marks<'_>) -> DecisionId {
        let known = marks.request_id.and_then(|id| self.of_request(id)).or_else(|| self.anonymous(marks));
        let id = known.unwrap_or_else(|| self.begin(marks));
        if let Some(request_id) = marks.request_id {
            self.remember(request_id, id);
        }
        id
    }

    fn anonymous(&mut self, marks: &Marks<'_>) -> Option<DecisionId> {
        let bit = 1 << marks.source as u8;
        let agree = |a: Option<u64>, b: Option<u64>| a.is_none() || b.is_none() || a == b;
        // Up to 1.3 only the second line of a choice names the request.
        let later_line = marks.source == DecisionSource::Log && marks.request_id.is_some();
        let far = |recent: &Recent| recent.at_ms.0.abs_diff(marks.at_ms.0);
        let nearest = self
            .recent
            .iter_mut()
            .filter(|recent| {
                recent.worker == marks.worker
                    && (recent.sources & bit == 0 || later_line)
                    && !(recent.has_request_id && marks.request_id.is_some())
                    && agree(recent.overlap_blocks, marks.overlap_blocks)
                    && agree(recent.isl_blocks, marks.isl_blocks)
                    && far(recent) <= WINDOW_MS
            })
            .min_by_key(|recent| far(recent))?;
        nearest.sources |= bit;
        nearest.has_request_id |= marks.request_id.is_some();
        nearest.overlap_blocks = nearest.overlap_blocks.or(marks.overlap_blocks);
        nearest.isl_blocks = nearest.isl_blocks.or(marks.isl_blocks);
        Some(nearest.id)
    }

    fn begin(&mut self, marks: &Marks<'_>) -> DecisionId {
        self.last += 1;
        let id = DecisionId(self.last);
        if self.recent.len() == MAX_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(Recent {
            id,
            at_ms: marks.at_ms,
            worker: marks.worker,
            overlap_blocks: marks.overlap_blocks,
            isl_blocks: marks.isl_blocks,
            sources: 1 << marks.source as u8,
            has_request_id: marks.request_id.is_some(),
        });
        id
    }

    fn remember(&mut self, request_id: &str, id: DecisionId) {
        if self.by_request.contains_key(request_id) {
            return;
        }
        if self.requests.len() == MAX_REQUESTS
            && let Some(oldest) = self.requests.pop_front()
        {
            self.by_request.remove(&oldest);
        }
        self.requests.push_back(request_id.into());
        self.by_request.insert(request_id.into(), id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DecisionSource::{ActiveSequences, KvHitRate, Log};

    fn marks(source: DecisionSource, at_ms: u64) -> Marks<'static> {
        Marks {
            source,
            at_ms: Millis(at_ms),
            worker: WorkerIx(0),
            request_id: None,
            overlap_blocks: Some(3),
            isl_blocks: None,
        }
    }

    #[test]
    fn a_log_line_and_a_message_of_one_decision_meet_in_either_order() {
        let mut joiner = Joiner::default();
        let a = joiner.decision(&marks(KvHitRate, 1_000));
        assert_eq!(joiner.decision(&marks(Log, 1_003)), a);
        let b = joiner.decision(&marks(Log, 5_000));
        assert_ne!(a, b);
        assert_eq!(joiner.decision(&Marks { isl_blocks: Some(9), ..marks(KvHitRate, 4_990) }), b);
    }

    #[test]
    fn two_alike_decisions_stay_two() {
        let mut joiner = Joiner::default();
        let a = joiner.decision(&marks(KvHitRate, 1_000));
        let b = joiner.decision(&marks(KvHitRate, 1_100));
        assert_ne!(a, b);
        assert_eq!(joiner.decision(&marks(Log, 1_101)), b, "the nearer one");
        assert_eq!(joiner.decision(&marks(Log, 1_001)), a);
    }

    #[test]
    fn pieces_that_contradict_each_other_or_lie_far_apart_are_of_two_decisions() {
        let mut joiner = Joiner::default();
        let a = joiner.decision(&marks(KvHitRate, 1_000));
        assert_ne!(joiner.decision(&Marks { overlap_blocks: Some(4), ..marks(Log, 1_000) }), a);
        assert_ne!(joiner.decision(&Marks { worker: WorkerIx(1), ..marks(Log, 1_000) }), a);
        assert_ne!(joiner.decision(&marks(Log, 1_000 + WINDOW_MS + 1)), a);
    }

    #[test]
    fn a_request_id_decides_over_everything_else() {
        let mut joiner = Joiner::default();
        let with = |source, at_ms, id| Marks { request_id: Some(id), ..marks(source, at_ms) };
        let a = joiner.decision(&with(Log, 1_000, "a"));
        let b = joiner.decision(&with(ActiveSequences, 1_001, "b"));
        assert_ne!(a, b);
        assert_eq!(joiner.decision(&with(ActiveSequences, 90_000, "a")), a);
        assert_eq!(joiner.of_request("b"), Some(b));
        assert_eq!(joiner.of_request("c"), None);
    }
}
