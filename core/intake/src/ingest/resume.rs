//! Going on from a state that was kept while nothing was received: the state is there, and what was known beyond it is
//! forgotten. So nothing that was complete is complete any more until its own words or a response say so.

use radixscope_model::id::{Millis, SourceIx, WorkerIx};
use radixscope_model::record::{
    DecisionSource, DepartureCause, Entry, EventTransport, LinkState, Record, SourceKind, Topic,
    WorkerIdentity,
};
use radixscope_state::cluster::{Cluster, WorkerState};

use super::engines::record_end;
use super::interner::Presence;
use super::{Break, Ingest, RecordOut, Sink, Tally};

/// After this time a worker that discovery or a frontend would list, and does not, has left while nothing was received: their
/// lists are there within seconds of the start.
pub(super) const LISTED_WITHIN_MS: u64 = 30_000;
const NOT_OF_THIS_RUN: &str = "not among the sources since Radixscope was started again";

/// Workers that did not leave.
pub(crate) fn present(cluster: &Cluster) -> impl Iterator<Item = (WorkerIx, &WorkerState)> {
    cluster.workers().indexed().filter(|(_, state)| state.departure.is_none())
}

impl Ingest {
    /// Goes on from a state; gives what is to be recorded of it.
    pub(crate) fn resume(&mut self, away: Break, cluster: &Cluster) -> Vec<Record<'static>> {
        self.interner.resume(away.since_ms, cluster);
        self.attach.resume(cluster);
        self.engines.resume(cluster);
        self.away = Some(away);
        for (source, state) in (0..).map(SourceIx).zip(cluster.sources()) {
            self.tallies.push(Tally::default());
            self.kept_sources.push((state.name.clone(), state.kind, source));
            state.all_gaps().iter().for_each(|gaps| self.gaps.resume(source, gaps));
            if state.kind.is_event_plane() {
                missed_topics(cluster).for_each(|topic| self.gaps.unknown(source, topic, away));
            }
        }
        let doubted = present(cluster).filter_map(|(worker, state)| {
            let (knowledge, why) = self.attach.known(worker)?;
            let is_recorded = (knowledge, why) == (state.knowledge.state, state.knowledge.why);
            (!is_recorded).then_some(Record::Knowledge { worker, knowledge, why })
        });
        doubted.collect()
    }

    /// Takes in the workers and sources of a recording.
    pub(crate) fn adopt(&mut self, at_ms: Millis, cluster: &Cluster) {
        self.interner.resume(at_ms, cluster);
        self.tallies.resize_with(cluster.sources().len(), Tally::default);
    }

    /// The index of a worker that a recording introduces or names, and whether that is news. `None`: there are too many.
    pub(crate) fn adopt_worker(
        &mut self,
        at_ms: Millis,
        identity: &WorkerIdentity<'_>,
        cluster: &Cluster,
    ) -> Option<(WorkerIx, bool)> {
        let name = (&*identity.namespace, &*identity.component);
        self.interner.intern(identity.id, name, false, Presence { cluster, at: Some(at_ms) })
    }

    /// The place of a source that was there before.
    pub(super) fn kept_source(&mut self, name: &str, kind: SourceKind) -> Option<SourceIx> {
        let at = self.kept_sources.iter().position(|(known, of, _)| known == name && *of == kind)?;
        Some(self.kept_sources.remove(at).2)
    }

    /// Those that were not announced again have ended.
    pub(crate) fn end_other_sources(&mut self, at_ms: Millis, out: &mut RecordOut<'_>) {
        for (_, _, source) in std::mem::take(&mut self.kept_sources) {
            let (state, detail) = (LinkState::Ended, NOT_OF_THIS_RUN.into());
            out(Entry { at_ms, record: Record::SourceState { source, state, detail } });
        }
    }

    /// Records who left while nothing was received: engines that are not listened to any more, and workers on no list, although others
    /// are, that sent nothing since.
    pub(super) fn record_departures(&mut self, at_ms: Millis, out: &mut dyn Sink) {
        let Some(away) = self.away.take_if(|away| at_ms.since(away.until_ms) > LISTED_WITHIN_MS) else {
            return;
        };
        for gone in self.engines.take_gone() {
            record_end(at_ms, gone, out);
        }
        let why = match (self.discovered.is_empty(), self.instances.is_empty()) {
            (false, _) => DepartureCause::Discovery,
            (true, false) => DepartureCause::Health,
            (true, true) => return,
        };
        let present = present(out.cluster()).map(|(worker, _)| worker);
        let silent: Vec<_> =
            present.filter(|&worker| self.interner.mentioned(worker) <= away.since_ms).collect();
        for worker in silent {
            out.record(Entry { at_ms, record: Record::Left { worker, why } });
        }
    }
}

/// What messages that were missed may have been about, as far as nothing brings them again.
fn missed_topics(cluster: &Cluster) -> impl Iterator<Item = Topic> {
    let lines = || cluster.workers().iter().flat_map(|state| &state.lines);
    let is_read_again =
        lines().next().is_some() && lines().all(|line| line.line == EventTransport::JetStream);
    let newest = cluster.decisions().newest(0);
    let decisions = newest.into_iter().flat_map(|decided| decided.sources()).filter_map(|by| match by {
        DecisionSource::KvHitRate => Some(Topic::KvHitRate),
        DecisionSource::ActiveSequences => Some(Topic::ActiveSequences),
        DecisionSource::RequestTrace => Some(Topic::RequestTrace),
        // It names no choice: what was missed is known by the next message of the session.
        DecisionSource::SessionAffinity => Some(Topic::SessionAffinity),
        // A log is read from its beginning.
        DecisionSource::Log => None,
    });
    (!is_read_again).then_some(Topic::KvEvents).into_iter().chain(decisions)
}
