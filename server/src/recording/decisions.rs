//! Decisions that are written out: each once, when its request ended or nothing more is expected of it.

use std::collections::VecDeque;

use radixscope_model::id::{DecisionId, Millis};
use radixscope_model::record::{Entry, Record};
use radixscope_state::cluster::{Cluster, DecisionEntry, MAX_DECISIONS};

/// A request that did not end for so long is written as it is.
const MAX_WAIT_MS: u64 = 120_000;

/// Decisions that are not written yet, oldest first.
#[derive(Default)]
pub(crate) struct FinishedDecisions(VecDeque<(DecisionId, Millis)>);

impl FinishedDecisions {
    /// Notes a decision when it is received.
    pub(crate) fn note(&mut self, entry: &Entry<'_>) {
        let Record::Decision(decision) = &entry.record else { return };
        // More about one that is known names an older id.
        if self.0.back().is_none_or(|&(last, _)| last < decision.id) {
            self.0.push_back((decision.id, entry.at_ms));
        }
        // Whoever decides faster than that has its oldest decisions forgotten by the state too.
        if self.0.len() > MAX_DECISIONS {
            self.0.pop_front();
        }
    }

    /// Gives those whose time has come.
    pub(crate) fn take(&mut self, now: Millis, cluster: &Cluster, mut each: impl FnMut(&DecisionEntry)) {
        self.0.retain(|&(id, at_ms)| {
            let Some(entry) = cluster.decisions().get(id) else { return false };
            let is_over = entry.progress.ended_ms.is_some() || now.since(at_ms) > MAX_WAIT_MS;
            if is_over {
                each(entry);
            }
            !is_over
        });
    }

    /// Gives those that are left at the end.
    pub(crate) fn take_all(&mut self, cluster: &Cluster, each: impl FnMut(&DecisionEntry)) {
        self.take(Millis(u64::MAX), cluster, each);
    }
}
