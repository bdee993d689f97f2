//! From payloads to the state's records: [`Ingest`] and [`Routing`] in one, for whoever keeps the state.
//!
//! What is observed of a request is joined and completed with what the state knows at that moment, and only then a record:
//! so the log, every viewer and every recording hold the finished decision, and no viewer needs the prompts.

use crate::attach::TreeDumps;
use crate::block_lifetime::BlockLifetimes;
use crate::command::Command;
use crate::ingest::{Break, Ingest, Missing, Published, RequestObservation, Sink, present};
use crate::payload::Received;
use crate::routing::{Routing, is_known, returns, said_ms};
use radixscope_model::id::{Millis, SourceIx, Worker, WorkerIx};
use radixscope_model::record::{
    Entry, MissedCause, Record, ReportedSettings, RouterRef, SettingsSource, SourceKind, Topic,
    WorkerIdentity,
};
use radixscope_state::cluster::{Cluster, Follow};
use radixscope_state::sink::RecordSink;

/// Turns what sources received into records of a sink.
#[derive(Default)]
pub struct Intake {
    ingest: Ingest,
    routing: Routing,
    block_lifetimes: BlockLifetimes,
    /// What trees note.
    follow: Follow,
}

impl Intake {
    /// That keeps at most so many workers apart at a time; otherwise [`radixscope_state::cluster::MAX_WORKERS`].
    pub fn with_slots(slots: usize) -> Self {
        Self { ingest: Ingest::with_slots(slots), ..Self::default() }
    }

    /// Goes on from the state of `sink`: the state is there, and what was known beyond it is forgotten. Of what happened during
    /// `away` nothing is known. To be called before anything else.
    pub fn resume(&mut self, away: Break, sink: &mut impl RecordSink) {
        let Self { ingest, routing, .. } = self;
        let doubted = ingest.resume(away, sink.cluster());
        routing.resume(sink.cluster());
        // Requests in flight are counted from the choices that are received from now on.
        let in_flight: Vec<_> = present(sink.cluster())
            .filter(|(_, state)| state.in_flight.now().is_some_and(|now| now > 0))
            .map(|(worker, _)| Record::InFlight { worker, now: 0, most: 0 })
            .collect();
        for record in doubted.into_iter().chain(in_flight) {
            sink.append(&Entry { at_ms: away.since_ms, record });
        }
    }

    /// Goes on from the state of a recording whose records follow, see [`Self::replay`]: nothing was missed, and the workers and sources
    /// of that state keep their indices.
    pub fn adopt(&mut self, at_ms: Millis, cluster: &Cluster) {
        self.ingest.adopt(at_ms, cluster);
    }

    /// Takes in a worker that a recording introduces or names; gives its index here. `None`: there are too many.
    pub fn adopt_worker(
        &mut self,
        at_ms: Millis,
        identity: &WorkerIdentity<'_>,
        sink: &mut impl RecordSink,
    ) -> Option<WorkerIx> {
        let (worker, is_news) = self.ingest.adopt_worker(at_ms, identity, sink.cluster())?;
        if is_news {
            let record = Record::Worker(Box::new(WorkerIdentity { worker, ..identity.clone() }));
            self.replay(&Entry { at_ms, record }, sink);
        }
        Some(worker)
    }

    /// Takes a record of a recording as it is, between what sources bring. Indices of workers are those here.
    pub fn replay(&mut self, entry: &Entry<'_>, sink: &mut impl RecordSink) {
        self.follow_blocks(sink);
        let Self { routing, block_lifetimes, .. } = self;
        RoutingSink { routing, block_lifetimes, sink }.published(entry, Published::default());
        self.routing.begin_to_remember(entry.at_ms);
    }

    /// Records that sources of a restored state, which were not announced again, have ended.
    pub fn end_other_sources(&mut self, at_ms: Millis, sink: &mut impl RecordSink) {
        self.ingest.end_other_sources(at_ms, &mut |entry| sink.append(&entry));
    }

    /// Announces a source, see `Ingest::source`.
    pub fn source(
        &mut self,
        name: &str,
        kind: SourceKind,
        at_ms: Millis,
        sink: &mut impl RecordSink,
    ) -> Option<SourceIx> {
        if kind == SourceKind::Logs {
            self.routing.expect_logs();
        }
        self.ingest.source(name, kind, at_ms, &mut |entry| sink.append(&entry))
    }

    /// Takes what the operator's policy file has. What an earlier one had for a router is over.
    pub fn policy_file(
        &mut self,
        settings: Vec<ReportedSettings>,
        at_ms: Millis,
        sink: &mut impl RecordSink,
    ) {
        let source = SettingsSource::PolicyFile;
        let is_given = |of: &RouterRef| settings.iter().any(|given| given.of == *of);
        let former = sink.cluster().settings().iter();
        let former = former.filter(|of| of.source == source && of.left_ms.is_none() && !is_given(&of.of));
        let over = former.map(|state| ReportedSettings {
            source,
            of: state.of.clone(),
            revision: None,
            numbers: None,
            after_ms: None,
            by_ms: at_ms,
        });
        for report in over.collect::<Vec<_>>().into_iter().chain(settings) {
            let entry = Entry { at_ms, record: Record::Settings(Box::new(report)) };
            self.routing.observe_record(&entry, Published::default(), sink.cluster());
            sink.append(&entry);
        }
    }

    /// Takes what a source received, see `Ingest::take`.
    pub fn handle(&mut self, received: &Received, sink: &mut impl RecordSink) {
        self.follow_blocks(sink);
        let Self { ingest, routing, block_lifetimes, .. } = self;
        ingest.handle(received, &mut RoutingSink { routing, block_lifetimes, sink });
        self.routing.begin_to_remember(received.at_ms);
    }

    /// Has the trees note what requests that were observed need of the past. No KV event changes what that is.
    #[inline]
    fn follow_blocks(&mut self, sink: &mut impl RecordSink) {
        let follow = self.routing.follow();
        if follow != self.follow {
            self.follow = follow;
            sink.follow_blocks(follow);
        }
    }

    /// The clock that wrote what a source brings is ahead by so many milliseconds, as far as anybody knows: times in its lines and
    /// records are put right by them. The time of receipt is the caller's. Without a call they are taken as they are.
    pub fn set_clock_ahead(&mut self, source: SourceIx, ahead_ms: i64) {
        self.ingest.set_clock_ahead(source, ahead_ms);
    }

    /// Loss that a source itself noticed, see `Ingest::missed`.
    pub fn missed(&mut self, source: SourceIx, topic: Topic, cause: MissedCause, count: u64) {
        self.ingest.missed(source, topic, cause, count);
    }

    /// What a source knows to be missing before its next message, see `Ingest::missing`.
    pub fn missing(&mut self, source: SourceIx, missing: &Missing) {
        self.ingest.missing(source, missing);
    }

    /// Records what was summed up, see `Ingest::flush` and `Routing::flush`.
    pub fn flush(&mut self, at_ms: Millis, sink: &mut impl RecordSink) {
        self.follow_blocks(sink);
        let Self { ingest, routing, block_lifetimes, .. } = self;
        ingest.flush(at_ms, &mut RoutingSink { routing, block_lifetimes, sink });
        for record in self.routing.flush(at_ms, self.ingest.now(at_ms), sink.cluster()) {
            let entry = Entry { at_ms, record };
            self.block_lifetimes.observe(at_ms, &entry.record, sink.cluster());
            self.routing.observe_record(&entry, Published::default(), sink.cluster());
            sink.append(&entry);
        }
        for record in self.block_lifetimes.flush(at_ms) {
            sink.append(&Entry { at_ms, record });
        }
        let Self { ingest, routing, block_lifetimes, .. } = self;
        ingest.attend(at_ms, &mut RoutingSink { routing, block_lifetimes, sink });
    }

    /// What sources are to do, since the last call.
    pub fn commands(&mut self) -> Vec<Command> {
        self.ingest.commands()
    }

    /// Queries a worker for its blocks. `false`: its endpoint is unknown, or queries are off.
    pub fn request_dump(&mut self, worker: Worker) -> bool {
        self.ingest.request_dump(worker)
    }

    /// Which workers are asked for their blocks from now on.
    pub fn set_tree_dumps(&mut self, mode: TreeDumps) {
        self.ingest.set_tree_dumps(mode);
    }

    /// How often the tree is compared with what workers answer, in milliseconds; `None`: never.
    pub fn set_verify_every(&mut self, every_ms: Option<u64>) {
        self.ingest.set_verify_every(every_ms);
    }

    #[cfg(test)]
    pub(crate) fn ingest(&self) -> &Ingest {
        &self.ingest
    }

    /// How long blocks live.
    pub fn block_lifetimes(&self) -> &BlockLifetimes {
        &self.block_lifetimes
    }

    /// What is known of requests beyond the state: their prompts, and the load they make.
    pub fn routing(&self) -> &Routing {
        &self.routing
    }
}

struct RoutingSink<'l, J> {
    routing: &'l mut Routing,
    block_lifetimes: &'l mut BlockLifetimes,
    sink: &'l mut J,
}

impl<J: RecordSink> RoutingSink<'_, J> {
    /// Whether a record is of blocks that a worker which is there stored or removed, as nearly all are: then it is news, and the
    /// worker did not have to come back for it.
    #[inline]
    fn is_of_present(&self, record: &Record<'_>) -> bool {
        let (Record::Stored { worker, .. } | Record::Removed { worker, .. }) = record else { return false };
        self.sink.cluster().workers().get(*worker).is_some_and(|state| state.departure.is_none())
    }

    /// Records what has become known of pending decisions.
    fn publish_resolved(&mut self, at_ms: Millis) {
        let records = self.routing.resolve_due(at_ms, self.sink.cluster());
        if records.is_empty() {
            return;
        }
        for record in records {
            self.sink.append(&Entry { at_ms, record });
        }
    }
}

impl<J: RecordSink> Sink for RoutingSink<'_, J> {
    fn cluster(&self) -> &Cluster {
        self.sink.cluster()
    }

    fn record(&mut self, entry: Entry<'_>) {
        self.published(&entry, Published::default());
    }

    #[inline]
    fn published(&mut self, entry: &Entry<'_>, by: Published) {
        if !self.is_of_present(&entry.record) {
            if is_known(&entry.record, self.sink.cluster()) {
                return;
            }
            let said_ms = said_ms(by.at_ms, entry.at_ms);
            if let Some(worker) = returns(entry, said_ms, self.sink.cluster()) {
                self.routing.returned(worker, said_ms);
                self.sink.append(&Entry { at_ms: entry.at_ms, record: Record::Rejoined { worker } });
            }
        }
        self.block_lifetimes.observe(entry.at_ms, &entry.record, self.sink.cluster());
        self.routing.observe_record(entry, by, self.sink.cluster());
        self.sink.append(entry);
        self.routing.observe_folded(&entry.record, self.sink.cluster());
        self.publish_resolved(entry.at_ms);
    }

    fn observe(&mut self, observation: RequestObservation<'_>) {
        let at_ms = observation.at_ms;
        for record in self.routing.observe(&observation, self.sink.cluster()) {
            self.sink.append(&Entry { at_ms, record });
        }
    }
}
