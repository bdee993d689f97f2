//! Which workers and which source a record names: the one place that lists where their indices stand.

use super::{Decision, Record, Reuse};
use crate::id::{SourceIx, WorkerIx};

/// The place of the worker that a record is about; `$mutable` is `mut` or nothing.
macro_rules! subject {
    ($record:expr, $($mutable:tt)?) => {
        match $record {
            Record::Worker(identity) => Some(&$($mutable)? identity.worker),
            Record::Stored { worker, .. }
            | Record::MultimodalInputs { worker, .. }
            | Record::Removed { worker, .. }
            | Record::Cleared { worker, .. }
            | Record::TierStored { worker, .. }
            | Record::TierRemoved { worker, .. }
            | Record::TierCleared { worker, .. }
            | Record::OtherTier { worker, .. }
            | Record::TreeDumpBegan { worker }
            | Record::TreeDumpStored { worker, .. }
            | Record::TreeDumpRemoved { worker, .. }
            | Record::SkippedEvent { worker, .. }
            | Record::Knowledge { worker, .. }
            | Record::QueryState { worker, .. }
            | Record::Divergence { worker, .. }
            | Record::Recovered { worker, .. }
            | Record::EngineLoad { worker, .. }
            | Record::RouterLoad { worker, .. }
            | Record::Sequence { worker, .. }
            | Record::ModelCard { worker, .. }
            | Record::Role { worker, .. }
            | Record::Model { worker, .. }
            | Record::EventTransport { worker, .. }
            | Record::Endpoint { worker, .. }
            | Record::Left { worker, .. }
            | Record::Rejoined { worker }
            | Record::InFlight { worker, .. }
            | Record::BlockResidency { worker, .. } => Some(worker),
            Record::Missed { worker, .. } | Record::LogSignal { worker, .. } => worker.into(),
            Record::Decision(decision) => Some(&$($mutable)? decision.worker),
            Record::EngineFeed(feed) => (&$($mutable)? feed.worker).into(),
            Record::Source { .. }
            | Record::SourceState { .. }
            | Record::Traffic { .. }
            | Record::Progress { .. }
            | Record::Request(_)
            | Record::Scrape(_)
            | Record::Finding(_)
            | Record::Checked(_)
            | Record::Gaps { .. }
            | Record::Rejected { .. }
            | Record::Reuse(_)
            | Record::Settings(_)
            | Record::PolicyClasses(_)
            | Record::Indexer(_)
            | Record::ClientResult(_)
            | Record::Targets(_) => None,
        }
    };
}

impl Record<'_> {
    /// The source that the record is about, if it is about a known one.
    pub fn source_mut(&mut self) -> Option<&mut SourceIx> {
        match self {
            Record::SourceState { source, .. }
            | Record::Traffic { source, .. }
            | Record::Recovered { source, .. }
            | Record::Missed { source, .. }
            | Record::Gaps { source, .. }
            | Record::Rejected { source, .. } => Some(source),
            _ => None,
        }
    }

    /// The worker that the record is about, if it is about one.
    pub fn worker(&self) -> Option<WorkerIx> {
        subject!(self,).copied()
    }

    /// Calls `change` with every worker that the record names.
    pub fn each_worker_mut(&mut self, change: &mut dyn FnMut(&mut WorkerIx)) {
        match self {
            Record::Decision(decision) => decision.each_worker_mut(change),
            Record::Scrape(scrape) => {
                scrape.workers.iter_mut().for_each(|figures| change(&mut figures.worker));
            }
            Record::Finding(finding) => finding.workers.iter_mut().for_each(change),
            Record::Reuse(reuse) => reuse.each_worker_mut(change),
            other => subject!(other, mut).into_iter().for_each(change),
        }
    }
}

impl Decision {
    /// Calls `change` with every worker that the decision names.
    pub fn each_worker_mut(&mut self, change: &mut dyn FnMut(&mut WorkerIx)) {
        change(&mut self.worker);
        self.candidates.iter_mut().for_each(|candidate| change(&mut candidate.worker));
        let scored = self.scores.iter_mut().flat_map(|scores| &mut scores.candidates);
        scored.for_each(|candidate| change(&mut candidate.worker));
        if let Some(path) = &mut self.path {
            change(&mut path.worker);
        }
    }
}

impl Reuse {
    /// Calls `change` with every worker that is named.
    pub fn each_worker_mut(&mut self, change: &mut dyn FnMut(&mut WorkerIx)) {
        self.holder.iter_mut().for_each(&mut *change);
        self.gone.iter_mut().for_each(|gone| change(&mut gone.worker));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::DecisionId;
    use crate::record::{BlockHash, DecisionSource, PathEnd, ScoredCandidate, Scores};

    #[test]
    fn every_worker_of_a_decision_is_named() {
        let mut decision = Decision::new(DecisionId(1), WorkerIx(1), DecisionSource::Log);
        decision.path = Some(PathEnd { worker: WorkerIx(2), block_hash: BlockHash(3), blocks: 4 });
        let candidate = ScoredCandidate {
            worker: WorkerIx(5),
            score: None,
            by_scorer: Vec::new(),
            running: None,
            waiting: None,
            kv_usage: None,
        };
        decision.scores = Some(Box::new(Scores { candidates: vec![candidate], ..Scores::default() }));
        let mut record = Record::Decision(Box::new(decision));
        let mut named = Vec::new();
        record.each_worker_mut(&mut |worker| {
            named.push(*worker);
            worker.0 += 10;
        });
        assert_eq!(
            (named, record.worker()),
            (vec![WorkerIx(1), WorkerIx(5), WorkerIx(2)], Some(WorkerIx(11)))
        );
    }

    #[test]
    fn a_record_may_be_about_no_worker() {
        let mut record = Record::Rejoined { worker: WorkerIx(3) };
        record.each_worker_mut(&mut |worker| worker.0 += 1);
        assert_eq!(record.worker(), Some(WorkerIx(4)));
        assert_eq!(Record::Checked(Vec::new()).worker(), None);
    }
}
