//! What is known of a worker's KV events, and which of their faults another cause explains.

use super::{View, WINDOW, WINDOW_MS};
use crate::check::Totals;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::record::{EventTransport, MissedCause, Topic, TreeKnowledge};
use radixscope_state::cluster::{UnknownGaps, WorkerState};

/// A worker of which nothing was received for so long while others published has no current data.
const STALE_MS: u64 = 300_000;

impl View<'_> {
    /// What is known of a worker's KV events lately, and since when: the last minute if it sent any in it, else all since
    /// we listen, so that an idle hour does not make a fault look mended.
    pub(in crate::check) fn lately(&self, worker: WorkerIx) -> (Totals, &'static str) {
        let rise = self.rise(worker, WINDOW_MS);
        if rise.store_events + rise.remove_events > 0 {
            return (rise, WINDOW);
        }
        let own = self.worker(worker).and_then(|w| w.last_event_ms);
        let latest = self.history.latest_event_ms().zip(own);
        if latest.is_none_or(|(latest, own)| latest.since(own) > STALE_MS) {
            return (Totals { chosen: rise.chosen, ..Totals::default() }, WINDOW);
        }
        (self.session(worker), "since we listen")
    }

    /// Whether every block of every worker that publishes is known, whatever was lost on the way: it was got back.
    pub(in crate::check) fn is_all_known(&self) -> bool {
        let coverage = self.cluster.coverage(self.cluster.pools_in_use());
        coverage.workers > 0 && coverage.complete == coverage.workers
    }

    /// Whether the stream had lost its beginning when we read it.
    pub(in crate::check) fn is_history_expired(&self) -> bool {
        let mut missed = self.cluster.sources().iter().flat_map(|source| &source.missed);
        missed.any(|missed| missed.cause == MissedCause::HistoryExpired)
    }

    /// Whether events of a worker were lost within the last `ms` and all were got back by asking it: what came between was of
    /// blocks that were not known yet, and is in its place now.
    pub(in crate::check) fn has_got_back(&self, worker: WorkerIx, ms: u64) -> bool {
        let Some(state) = self.worker(worker) else { return false };
        let mut missed = self.cluster.sources().iter().flat_map(|source| &source.missed);
        state.knowledge.state == TreeKnowledge::Complete
            && state.recovered_total > 0
            && missed
                .any(|m| m.topic == Topic::KvEvents && m.recovered > 0 && self.now.since(m.last_ms) <= ms)
    }

    /// The finding that reports KV events lost within the last `ms`, on whatever way, be it an unknown number; `None`:
    /// none were, as far as is known.
    pub(in crate::check) fn lost_events(&self, ms: u64) -> Option<&'static str> {
        let sources = self.cluster.sources();
        let missed = sources.iter().flat_map(|source| &source.missed);
        let from = Millis(self.now.0.saturating_sub(ms));
        let mut recent = missed.filter(|m| m.topic == Topic::KvEvents && m.lost_since(from) > 0);
        let counted = recent.next().map(|missed| match missed.cause {
            MissedCause::EnvelopeGap | MissedCause::EventIdGap | MissedCause::EventsInLost => "event_gaps",
            MissedCause::HistoryExpired => "tree_partial",
            _ => "own_losses",
        });
        let is_recent = |gap: &UnknownGaps| {
            let is_lost = gap.topic == Topic::KvEvents && !self.is_all_known();
            is_lost && self.now.since(gap.until_ms) <= ms
        };
        let has_gap = || sources.iter().flat_map(|source| source.unknown_gaps()).any(is_recent);
        counted.or_else(|| has_gap().then_some("own_losses"))
    }
}

/// Whether we came after its first events, so that it holds blocks that were never reported to us. Also where that is not
/// known.
pub(in crate::check) fn is_joined_late(worker: &WorkerState) -> bool {
    let publishers_begin_at = 1;
    worker.knowledge.state == TreeKnowledge::Partial
        || worker.returned_ms.is_some()
        || worker.lines.is_empty()
        || worker.lines.iter().any(|line| line.first_event_id > publishers_begin_at)
}

/// The event plane that a worker's KV events came by last.
pub(in crate::check) fn event_transport(worker: &WorkerState) -> Option<EventTransport> {
    worker.lines.last().map(|line| line.line)
}
