//! Attaching to workers that run already: how much is known of each worker's blocks, whom to ask for them, and how a response
//! and the events that go on arriving become one tree.
//!
//! Pure: its inputs are events on their way to the state, responses and discovery; its outputs are commands. Does no I/O.
//!
//! # How it works
//!
//! A worker whose first event is its first of all is complete. Any other is queried for its blocks over the request plane, once it
//! is certain that every later event will be received: after the first event of it, or after its source is subscribed.
//! While the response is awaited events are applied as they come, and kept. The response is then replayed into trees of its own,
//! the kept events after it, and what differs from the tree is recorded (`target`): the response holds *at least* the
//! events up to the number that it names, and replaying any run of events that begins no later than its end gives what the
//! worker holds. Until events behind that end have surely passed the state counts no unknown removals.
//!
//! Lost events are requested by number and replayed over the tree; what is older than the worker keeps (1,024 events) is
//! answered with all blocks. A response counts only if it is of the publisher whose events are received. A comparison now
//! and then finds what sequence numbers cannot show; a difference counts if the next response has it too.

mod discovery;
mod endpoints;
mod event_context;
mod holes;
mod queue;
mod response;
mod schedule;
mod target;
mod watched;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use radixscope_model::id::{Millis, SourceIx, Worker, WorkerIx};
use radixscope_model::record::{Entry, KnowledgeWhy, Record, TreeKnowledge};
use radixscope_state::cluster::Cluster;
use radixscope_state::per_worker::PerWorker;

use crate::command::Command;
use crate::ingest::{Sink, present};
use endpoints::Endpoints;
pub(crate) use event_context::EventContext;
use watched::{AttachState, WantedQuery};

/// Most publishers that are remembered, and most commands that wait.
const MAX_PUBLISHERS: usize = 40_000;
/// Most entries of brokers; a deployment has one or two.
const MAX_BROKERS: usize = 64;

/// Which workers are queried for their blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TreeDumps {
    /// Those of which not everything is known; of 0.9, which answers where it works, those that somebody requests.
    #[default]
    Auto,
    /// Those that somebody requests.
    OnRequest,
    /// None.
    Off,
}

/// Time between two comparisons of a worker's blocks with its response, unless set otherwise.
const VERIFY_MS: u64 = 30 * 60_000;

/// See the module.
pub(crate) struct Attach {
    workers: PerWorker<AttachState>,
    endpoints: Endpoints,
    mode: TreeDumps,
    verify_every_ms: Option<u64>,
    /// Worker of each publisher of KV events, by discovery.
    publishers: BTreeMap<u64, Worker>,
    /// Publishers of KV events with a ZeroMQ socket of their own.
    direct: BTreeSet<u64>,
    /// Addresses that are subscribed to, by entry of discovery.
    channels: BTreeMap<Box<str>, (String, u64)>,
    /// Sockets of brokers, by entry of discovery.
    brokers: BTreeMap<Box<str>, Vec<String>>,
    /// Entries of discovery that name a publisher's worker.
    named_by: BTreeMap<Box<str>, u64>,
    /// Publishers whose messages are received.
    subscribed: BTreeSet<u64>,
    /// Sources that receive all that is published, and those by which anything published came.
    open: BTreeSet<SourceIx>,
    received_from: BTreeSet<SourceIx>,
    running: BTreeMap<u64, WorkerIx>,
    last_query: u64,
    /// Gaps in the publishers' messages so far.
    gaps: u64,
    next_slot: Millis,
    /// Most workers that waited to be queried for all their blocks, since none did.
    wave: usize,
    now: Millis,
    /// Whether other workers may be queried than before.
    meets: bool,
    /// When to look again. `None`: at the next flush is early enough.
    due: Option<Millis>,
    commands: Vec<Command>,
}

impl Default for Attach {
    fn default() -> Self {
        Self {
            workers: PerWorker::default(),
            endpoints: Endpoints::default(),
            mode: TreeDumps::default(),
            verify_every_ms: Some(VERIFY_MS),
            publishers: BTreeMap::new(),
            direct: BTreeSet::new(),
            channels: BTreeMap::new(),
            brokers: BTreeMap::new(),
            named_by: BTreeMap::new(),
            subscribed: BTreeSet::new(),
            open: BTreeSet::new(),
            received_from: BTreeSet::new(),
            running: BTreeMap::new(),
            last_query: 0,
            gaps: 0,
            next_slot: Millis(0),
            wave: 0,
            now: Millis(0),
            meets: false,
            due: None,
            commands: Vec::new(),
        }
    }
}

impl Attach {
    /// Which workers are queried from now on.
    pub(crate) fn set_tree_dumps(&mut self, mode: TreeDumps) {
        self.mode = mode;
        self.due = Some(Millis(0));
    }

    /// How often blocks are compared; `None`: never.
    pub(crate) fn set_verify_every(&mut self, every_ms: Option<u64>) {
        self.verify_every_ms = every_ms;
        self.workers.iter_mut().for_each(|(_, worker)| worker.verify_ms = None);
    }

    /// What sources are to do, since the last call.
    pub(crate) fn commands(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.commands)
    }

    /// Looks at everything with the next [`Attach::tick`]: workers may have been met that can be queried.
    pub(crate) fn look_around(&mut self) {
        self.meets = true;
    }

    /// Whether it is time to [`Attach::tick`] before the next flush.
    #[inline]
    pub(crate) fn is_due(&self, at: Millis) -> bool {
        self.due.is_some_and(|due| due <= at.max(self.now))
    }

    /// Goes on from a state that was kept: of whoever is there anything may have been missed.
    pub(crate) fn resume(&mut self, cluster: &Cluster) {
        for (ix, state) in present(cluster) {
            let known = &state.knowledge;
            let watched = self.workers.of(ix);
            watched.id = Some(state.id);
            watched.recorded = (known.asking, known.asking_detail.clone());
            if known.state == TreeKnowledge::Unknown {
                continue;
            }
            let why = match (known.state, known.why) {
                (TreeKnowledge::Partial, why) if why != KnowledgeWhy::NoEvents => why,
                _ => KnowledgeWhy::ConnectionBroke,
            };
            watched.known = (TreeKnowledge::Partial, why);
            watched.want = WantedQuery::Dump;
            watched.is_resumed = true;
        }
        self.due = Some(Millis(0));
    }

    /// How much is known of a worker of which a state was kept. `None`: nothing was.
    pub(crate) fn known(&self, worker: WorkerIx) -> Option<(TreeKnowledge, KnowledgeWhy)> {
        self.workers.get(worker).filter(|watched| watched.is_resumed).map(|watched| watched.known)
    }

    /// Queries a worker. `false`: its endpoint is unknown, or queries are off.
    pub(crate) fn request_dump(&mut self, ix: WorkerIx, worker: Worker) -> bool {
        self.endpoints.refresh();
        let watched = self.workers.of(ix);
        watched.id = Some(worker);
        if self.mode == TreeDumps::Off || self.endpoints.of(worker, watched.publisher_id).is_none() {
            return false;
        }
        if watched.query.is_none() {
            let is_whole = watched.is_complete() && watched.want == WantedQuery::Nothing;
            watched.want = if is_whole { WantedQuery::Verify } else { WantedQuery::Dump };
        }
        watched.is_requested = true;
        watched.next_ms = None;
        watched.failures = 0;
        self.due = Some(Millis(0));
        true
    }

    /// Entries in each store that is to be as large as the workers that are there or left last.
    #[cfg(test)]
    pub(crate) fn sizes(&self) -> Vec<(&'static str, usize)> {
        let Self { publishers, direct, channels, named_by, subscribed, running, .. } = self;
        let tables = [
            ("publishers by discovery", publishers.len()),
            ("direct publishers", direct.len()),
            ("channels", channels.len()),
            ("entries of publishers", named_by.len()),
            ("subscribed publishers", subscribed.len()),
            ("queries", running.len()),
        ];
        tables.into_iter().chain(self.endpoints.sizes()).collect()
    }

    fn cancel(&mut self, id: u64) {
        self.running.remove(&id);
        self.commands.push(Command::CancelQuery { id });
    }

    /// Whether every event of a worker is received from now on, as far as is known.
    fn is_received(&self, watched: &AttachState) -> bool {
        if watched.is_broken {
            return false;
        }
        let publisher_id = watched.publisher_id;
        watched.source.is_some()
            || publisher_id.is_some_and(|id| self.subscribed.contains(&id))
            || (self.open.intersection(&self.received_from).next().is_some()
                && !publisher_id.is_some_and(|id| self.direct.contains(&id)))
    }

    /// Whether it may be, so that it is worth while to ask.
    fn may_be_received(&self, watched: &AttachState) -> bool {
        let is_direct = watched.publisher_id.is_some_and(|id| self.direct.contains(&id));
        self.is_received(watched) || (!watched.is_broken && !is_direct && !self.open.is_empty())
    }

    /// Records how much is known of a worker, if that changed.
    fn record_knowledge(&mut self, ix: WorkerIx, at_ms: Millis, out: &mut dyn Sink) {
        let Some(watched) = self.workers.get(ix) else { return };
        let (knowledge, why) = watched.known;
        let state = out.cluster().worker(ix).map(|state| (state.knowledge.state, state.knowledge.why));
        if state.is_some_and(|state| state != watched.known) {
            out.record(Entry { at_ms, record: Record::Knowledge { worker: ix, knowledge, why } });
        }
    }
}
