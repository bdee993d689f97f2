//! Decisions for a recording: each is written once, when its request has ended or timed out.

use std::collections::VecDeque;

use radixscope_model::id::{DecisionId, Millis};
use radixscope_model::record::{Entry, Record};
use radixscope_state::cluster::{Cluster, DecisionEntry, MAX_DECISIONS};

/// Timeout after which a decision is written although its request has not ended.
const MAX_WAIT_MS: u64 = 120_000;

/// Decisions that are not written yet, oldest first.
#[derive(Default)]
pub(crate) struct FinishedDecisions(VecDeque<(DecisionId, Millis)>);

impl FinishedDecisions {
    /// Notes a decision when it is received.
    pub(crate) fn note(&mut self, entry: &Entry<'_>) {
        let Record::Decision(decision) = &entry.record else { return };
        // Updates have an older id.
        if self.0.back().is_none_or(|&(last, _)| last < decision.id) {
            self.push(decision.id, entry.at_ms);
        }
    }

    /// Notes a decision that is later than all noted before.
    pub(crate) fn push(&mut self, id: DecisionId, at_ms: Millis) {
        self.0.push_back((id, at_ms));
        // The state drops the oldest decisions too.
        if self.0.len() > MAX_DECISIONS {
            self.0.pop_front();
        }
    }

    /// Calls `each` for decisions that are complete. Gives how many were forgotten by the state before they were.
    pub(crate) fn drain_finished(
        &mut self,
        now: Millis,
        cluster: &Cluster,
        mut each: impl FnMut(&DecisionEntry),
    ) -> u64 {
        let mut forgotten = 0;
        self.0.retain(|&(id, at_ms)| {
            let Some(entry) = cluster.decisions().get(id) else {
                forgotten += 1;
                return false;
            };
            let is_over = entry.progress.ended_ms.is_some() || now.since(at_ms) > MAX_WAIT_MS;
            if is_over {
                each(entry);
            }
            !is_over
        });
        forgotten
    }

    /// Calls `each` for all remaining decisions.
    pub(crate) fn drain_all(&mut self, cluster: &Cluster, each: impl FnMut(&DecisionEntry)) {
        self.drain_finished(Millis(u64::MAX), cluster, each);
    }
}
