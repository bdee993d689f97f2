//! From messages to the state's records: [`Ingest`] and [`Routing`] in one, for whoever keeps the state.
//!
//! What is said of a request is joined and completed with what the state knows at that moment, and only then a record:
//! so the log, every viewer and every recording hold the finished decision, and no viewer needs the prompts.

use crate::ages::Ages;
use crate::check::Checks;
use crate::cluster::Cluster;
use crate::id::{Millis, Seq, SourceIx, WorkerIx};
use crate::ingest::{Ingest, Message, Missing, Out, Published, Sink, Told};
use crate::record::{Entry, MissedCause, Record, SourceKind, Topic};
use crate::routing::{Routing, returns};

/// Where records go: numbered, folded and kept by the one who owns the state.
pub trait Journal {
    /// The state after the last record accepted.
    fn cluster(&self) -> &Cluster;
    /// Takes the next record.
    fn accept(&mut self, entry: &Entry<'_>);
}

/// A state alone is a journal that keeps nothing but the state.
impl Journal for Cluster {
    fn cluster(&self) -> &Cluster {
        self
    }

    fn accept(&mut self, entry: &Entry<'_>) {
        self.fold(Seq(self.seq().0 + 1), entry);
    }
}

/// Turns messages into records of a journal.
#[derive(Default)]
pub struct Listener {
    ingest: Ingest,
    routing: Routing,
    ages: Ages,
    checks: Checks,
}

impl Listener {
    /// With the checks that the operator wants: they run here and nowhere else.
    pub fn new(checks: Checks) -> Self {
        Self { checks, ..Self::default() }
    }

    /// That keeps at most so many workers apart at a time; otherwise [`crate::cluster::MAX_WORKERS`].
    pub fn with_places(places: usize) -> Self {
        Self { ingest: Ingest::with_places(places), ..Self::default() }
    }

    /// Announces a source, see [`Ingest::source`].
    pub fn source(
        &mut self,
        name: &str,
        kind: SourceKind,
        at_ms: Millis,
        journal: &mut impl Journal,
    ) -> Option<SourceIx> {
        self.ingest.source(name, kind, at_ms, &mut |entry| journal.accept(&entry))
    }

    /// Takes one message, see [`Ingest::message`].
    pub fn message(&mut self, message: Message<'_>, journal: &mut impl Journal) {
        let Self { ingest, routing, ages, .. } = self;
        ingest.message(message, &mut Through { routing, ages, journal });
    }

    /// Loss that a source itself noticed, see [`Ingest::missed`].
    pub fn missed(&mut self, source: SourceIx, topic: Topic, cause: MissedCause, count: u64) {
        self.ingest.missed(source, topic, cause, count);
    }

    /// What a source knows to be missing before its next message, see [`Ingest::missing`].
    pub fn missing(&mut self, source: SourceIx, missing: &Missing) {
        self.ingest.missing(source, missing);
    }

    /// Says what was summed up, see [`Ingest::flush`] and [`Routing::flush`], and what the checks find now.
    pub fn flush(&mut self, at_ms: Millis, journal: &mut impl Journal) {
        let out: &mut Out<'_> = &mut |entry| journal.accept(&entry);
        self.ingest.flush(at_ms, out);
        for record in self.routing.flush(at_ms, self.ingest.now(at_ms), journal.cluster()) {
            let entry = Entry { at_ms, record };
            self.ages.see(at_ms, &entry.record, journal.cluster());
            self.routing.see(&entry, Published::default(), journal.cluster());
            journal.accept(&entry);
        }
        for record in self.ages.flush(at_ms) {
            journal.accept(&Entry { at_ms, record });
        }
        // After what this second said is summed up, so that a loss is judged at once.
        for record in self.checks.tick(journal.cluster(), at_ms) {
            journal.accept(&Entry { at_ms, record });
        }
    }

    /// How long blocks live.
    pub fn ages(&self) -> &Ages {
        &self.ages
    }

    /// What is known of requests beyond the state: their prompts, and the load they make.
    pub fn routing(&self) -> &Routing {
        &self.routing
    }
}

struct Through<'l, J> {
    routing: &'l mut Routing,
    ages: &'l mut Ages,
    journal: &'l mut J,
}

impl<J: Journal> Through<'_, J> {
    /// What is known now of decisions that waited for it.
    fn settle(&mut self, at_ms: Millis) {
        for record in self.routing.settle(at_ms, self.journal.cluster()) {
            self.journal.accept(&Entry { at_ms, record });
        }
    }
}

impl<J: Journal> Sink for Through<'_, J> {
    fn record(&mut self, entry: Entry<'_>) {
        self.kv_event(entry, Published::default());
    }

    fn kv_event(&mut self, entry: Entry<'_>, by: Published) {
        if let Some(worker) = returns(&entry, self.journal.cluster()) {
            self.journal.accept(&Entry { at_ms: entry.at_ms, record: Record::Returned { worker } });
        }
        self.ages.see(entry.at_ms, &entry.record, self.journal.cluster());
        self.routing.see(&entry, by, self.journal.cluster());
        self.journal.accept(&entry);
        self.settle(entry.at_ms);
    }

    fn vacate(&mut self, at: Millis, mentioned: &dyn Fn(WorkerIx) -> Millis) -> Vec<WorkerIx> {
        let workers = self.journal.cluster().to_vacate(at, mentioned);
        self.routing.vacate(&workers);
        self.ages.vacate(&workers);
        workers
    }

    fn told(&mut self, told: Told<'_>) {
        let at_ms = told.at_ms;
        for record in self.routing.told(&told, self.journal.cluster()) {
            self.journal.accept(&Entry { at_ms, record });
        }
    }
}
