//! Attaching to workers that run already: how much is known of each worker's blocks, whom to ask for them, and how an answer
//! and the events that go on arriving become one tree.
//!
//! Pure: it sees the events on their way to the state, answers, and what discovery says, and gives commands. Does no I/O.
//!
//! # How it works
//!
//! A worker whose first event is its first of all is complete. Any other is asked for its blocks over the request plane, once it
//! is certain that every later event will be received: after the first event of it, or after its source says that it listens.
//! While the answer is awaited events are applied as they come, and kept. The answer is then replayed into trees of its own,
//! the kept events after it, and what differs from the tree is recorded (`target`): the answer holds *at least* the
//! events up to the number that it names, and replaying any run of events that begins no later than its end gives what the
//! worker holds. Until events behind that end have surely passed the state counts no unknown removals.
//!
//! Lost events are asked for by number and replayed over the tree; what is older than the worker keeps (1,024 events) is
//! answered with all blocks. An answer counts only if it is of the publisher whose events are received. A comparison now
//! and then finds what no number tells; a difference counts if the next answer has it too.

mod answer;
mod endpoints;
mod live;
mod queue;
mod schedule;
mod target;
mod watched;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use radixscope_dynamo::discovery::{ChannelTransport, DiscoveryEntry};
use radixscope_dynamo::request_plane::QueryEndpoint;
use radixscope_dynamo::subject::{self, Subject};
use radixscope_model::id::{Millis, SourceIx, Worker, WorkerIx};
use radixscope_model::record::{Entry, KnowledgeWhy, MissedCause, Record, Topic, TreeKnowledge};
use radixscope_state::per_worker::PerWorker;

use crate::command::{Command, NamedSubject, ZmqChannel};
use crate::ingest::Sink;
use endpoints::{Endpoints, Told};
pub(crate) use live::Live;
use watched::{Gap, Loss, Want, Watched};

/// Most publishers that are remembered, and most commands that wait.
const MAX_PUBLISHERS: usize = 40_000;

/// Which workers are asked for their blocks.
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

/// Time between two comparisons of a worker's blocks with its answer, unless set otherwise.
const VERIFY_MS: u64 = 30 * 60_000;

/// See the module.
pub(crate) struct Attach {
    workers: PerWorker<Watched>,
    endpoints: Endpoints,
    mode: TreeDumps,
    verify_every_ms: Option<u64>,
    /// Worker of each publisher of KV events, by discovery.
    publishers: BTreeMap<u64, Worker>,
    /// Publishers of KV events with a ZeroMQ socket of their own.
    direct: BTreeSet<u64>,
    /// Addresses that were said to be listened to, by entry of discovery.
    channels: BTreeMap<Box<str>, (String, u64)>,
    /// Entries of discovery that name a publisher's worker.
    named_by: BTreeMap<Box<str>, u64>,
    /// Publishers whose messages are received.
    subscribed: BTreeSet<u64>,
    /// Sources that receive all that is published, and those by which anything published came.
    open: BTreeSet<SourceIx>,
    heard: BTreeSet<SourceIx>,
    running: BTreeMap<u64, WorkerIx>,
    last_query: u64,
    /// Gaps in what publishers said, so far.
    gaps: u64,
    next_slot: Millis,
    /// Most workers that waited to be asked for all their blocks, since none did.
    wave: usize,
    now: Millis,
    /// Whether other workers may be asked than before.
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
            named_by: BTreeMap::new(),
            subscribed: BTreeSet::new(),
            open: BTreeSet::new(),
            heard: BTreeSet::new(),
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
    /// Which workers are asked from now on.
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

    /// Looks at everything with the next [`Attach::tick`]: workers may have been met that can be asked.
    pub(crate) fn look_around(&mut self) {
        self.meets = true;
    }

    /// Whether it is time to [`Attach::tick`] before the next flush.
    #[inline]
    pub(crate) fn is_due(&self, at: Millis) -> bool {
        self.due.is_some_and(|due| due <= at.max(self.now))
    }

    /// Has a worker asked. `false`: nothing tells where, or nobody may be asked.
    pub(crate) fn request_dump(&mut self, ix: WorkerIx, worker: Worker) -> bool {
        self.endpoints.settle();
        let watched = self.workers.of(ix);
        watched.id = Some(worker);
        if self.mode == TreeDumps::Off || self.endpoints.of(worker, watched.publisher_id).is_none() {
            return false;
        }
        if watched.query.is_none() {
            let is_whole = watched.is_complete() && watched.want == Want::Nothing;
            watched.want = if is_whole { Want::Verify } else { Want::Dump };
        }
        watched.is_requested = true;
        watched.next_ms = None;
        watched.failures = 0;
        self.due = Some(Millis(0));
        true
    }

    /// An entry of discovery is so now.
    pub(crate) fn discovered(&mut self, key: &str, entry: &DiscoveryEntry) {
        match entry {
            DiscoveryEntry::Instance(instance) => {
                let endpoint = instance.query_endpoint().map(|endpoint| (Told::Instance, endpoint));
                self.endpoints.entry(key, endpoint);
            }
            DiscoveryEntry::EventSource(source) if source.subject.topic == Topic::KvEvents => {
                if let Some(worker) = source.worker
                    && self.publishers.len() < MAX_PUBLISHERS
                {
                    self.publishers.insert(source.publisher_id, worker);
                    self.named_by.insert(key.into(), source.publisher_id);
                }
                let endpoint = source.recovery.clone().map(|endpoint| (Told::Source, endpoint));
                self.endpoints.entry(key, endpoint);
            }
            DiscoveryEntry::EventChannel(channel) => match &channel.transport {
                ChannelTransport::Zmq { endpoint } => {
                    self.listen(key, endpoint, channel.publisher_id, &channel.subject);
                }
                ChannelTransport::Nats { subject_prefix } => {
                    self.subscribe(&format!("{subject_prefix}.{}", channel.topic), &channel.subject);
                }
                ChannelTransport::ZmqBroker { .. } | ChannelTransport::Other => {}
            },
            DiscoveryEntry::EventSource(_) | DiscoveryEntry::ModelCard(_) | DiscoveryEntry::Other => {}
        }
        self.meets = true;
        self.due = Some(Millis(0));
    }

    fn listen(&mut self, key: &str, endpoint: &str, publisher_id: u64, subject: &Subject) {
        if subject.topic == Topic::KvEvents {
            self.direct.insert(publisher_id);
        }
        let is_full = self.channels.len() == MAX_PUBLISHERS && !self.channels.contains_key(key);
        // What is of no topic that is decoded costs traffic and tells nothing.
        if is_full || subject.topic == Topic::Other {
            return;
        }
        let channel = (endpoint.to_owned(), publisher_id);
        if let Some(before) = self.channels.insert(key.into(), channel.clone()) {
            if before == channel {
                return;
            }
            let (endpoint, publisher_id) = before;
            self.commands.push(Command::Unlisten { endpoint, publisher_id });
        }
        let (endpoint, subject) = (endpoint.to_owned(), Arc::new(subject.clone()));
        self.commands.push(Command::Listen(ZmqChannel { endpoint, publisher_id, subject }));
    }

    /// Every subject that is built as Dynamo builds them is subscribed to anyway; discovery may name others.
    fn subscribe(&mut self, text: &str, subject: &Subject) {
        let is_usual = subject::parse(text).as_ref() == Some(subject);
        if !is_usual && subject.topic != Topic::Other && subject::can_be_subscribed_to(text) {
            let subject = Arc::new(subject.clone());
            self.commands.push(Command::Subscribe(NamedSubject { text: text.to_owned(), subject }));
        }
    }

    /// An entry of discovery is gone.
    pub(crate) fn vanished(&mut self, key: &str) {
        self.endpoints.entry(key, None);
        if let Some((endpoint, publisher_id)) = self.channels.remove(key) {
            self.commands.push(Command::Unlisten { endpoint, publisher_id });
        }
        if let Some(publisher_id) = self.named_by.remove(key) {
            self.publishers.remove(&publisher_id);
            self.direct.remove(&publisher_id);
            self.subscribed.remove(&publisher_id);
        }
        self.due = Some(Millis(0));
    }

    /// A frontend lists these endpoints.
    pub(crate) fn query_endpoints(&mut self, frontend: &str, endpoints: &[QueryEndpoint]) {
        self.endpoints.listed(frontend, endpoints);
        self.meets = true;
        self.due = Some(Millis(0));
    }

    /// A source receives everything that this publisher says from now on, or all that any does.
    pub(crate) fn subscribed(&mut self, source: SourceIx, publisher_id: Option<u64>) {
        match publisher_id {
            None => {
                self.open.insert(source);
            }
            Some(publisher_id) if self.subscribed.len() < MAX_PUBLISHERS => {
                let is_again = !self.subscribed.insert(publisher_id);
                for (_, watched) in self.workers.iter_mut() {
                    if is_again && watched.publisher_id == Some(publisher_id) {
                        broke(watched);
                    }
                }
            }
            Some(_) => {}
        }
        for (_, watched) in self.workers.iter_mut() {
            let is_its = match publisher_id {
                // A stream is read on from where it was: its next event tells.
                None => watched.source == Some(source) && !watched.is_stream,
                Some(id) => watched.publisher_id == Some(id),
            };
            if is_its {
                watched.is_broken = false;
            }
        }
        self.due = Some(Millis(0));
    }

    /// Something that was published came by this source, with its number.
    #[inline]
    pub(crate) fn heard(&mut self, source: SourceIx) {
        if !self.heard.contains(&source) {
            self.heard.insert(source);
            self.due = Some(Millis(0));
        }
    }

    /// A source receives nothing more, for now: of all publishers, or of this one.
    pub(crate) fn unsubscribed(&mut self, source: SourceIx, publisher_id: Option<u64>) {
        match publisher_id {
            None => self.broke(source),
            Some(publisher_id) => {
                self.subscribed.remove(&publisher_id);
                self.broke_of(publisher_id);
            }
        }
    }

    /// A source's connection broke, or did and is there again: anything may have been missed.
    pub(crate) fn broke(&mut self, source: SourceIx) {
        self.open.remove(&source);
        let direct = &self.direct;
        let is_its = |watched: &Watched| match watched.source {
            Some(its) => its == source,
            None => !watched.publisher_id.is_some_and(|id| direct.contains(&id)),
        };
        for (_, watched) in self.workers.iter_mut().filter(|(_, watched)| is_its(watched)) {
            broke(watched);
        }
        self.due = Some(Millis(0));
    }

    /// The connection to one publisher broke, or did and is there again.
    pub(crate) fn broke_of(&mut self, publisher_id: u64) {
        for (_, watched) in self.workers.iter_mut() {
            if watched.publisher_id == Some(publisher_id) {
                broke(watched);
            }
        }
        self.due = Some(Millis(0));
    }

    /// The first message of a publisher after a break follows the one before it: nothing of it was missed.
    pub(crate) fn unbroken(&mut self, source: SourceIx, publisher_id: u64) {
        let its = |watched: &Watched| {
            watched.source == Some(source)
                && watched.publisher_id == Some(publisher_id)
                && !watched.is_contiguous
        };
        for (_, watched) in self.workers.iter_mut().filter(|(_, watched)| its(watched)) {
            if watched.known.1 == KnowledgeWhy::ConnectionBroke {
                watched.went_on();
            }
        }
        self.due = Some(Millis(0));
    }

    /// Messages of a publisher are missing before the next one. They may come late, but not across a break. Gives the number
    /// of the gap, which is told with [`Attach::lost_of`] once it is certain.
    pub(crate) fn gap_of(&mut self, publisher_id: u64) -> u64 {
        self.gaps += 1;
        let last = self.gaps;
        for (_, watched) in self.workers.iter_mut().filter(|(_, w)| w.publisher_id == Some(publisher_id)) {
            // Else its ids tell.
            if !watched.is_contiguous && watched.source.is_some() {
                // Several events may share an id, so that the last is asked for again.
                let before = watched.last_event_id.unwrap_or(0);
                let from = watched.gap.map_or(before, |gap| gap.from.min(before));
                watched.gap = Some(Gap { from, last });
                watched.kept_since = None;
                if watched.known.1 == KnowledgeWhy::ConnectionBroke {
                    watched.has_gap = true;
                    watched.lost_since(Some(from), KnowledgeWhy::EventsLost);
                }
            }
        }
        self.due = Some(Millis(0));
        last
    }

    /// So much of what a publisher said is lost, and counted; it was missing since gap number `gap`.
    pub(crate) fn lost_of(
        &mut self,
        publisher_id: u64,
        source: SourceIx,
        cause: MissedCause,
        (gap, count): (u64, u64),
    ) {
        for (_, watched) in self.workers.iter_mut() {
            if watched.publisher_id != Some(publisher_id) {
                continue;
            }
            watched.lose(Loss { source, topic: Topic::KvEvents, cause, count });
            // An answer that was asked for later holds it.
            if watched.is_contiguous || watched.source.is_none() || gap <= watched.covered {
                continue;
            }
            watched.has_gap = true;
            let from = watched.gap.map(|gap| gap.from).or(watched.last_event_id);
            let is_before = watched.query.as_ref().map(|query| gap <= query.gap);
            // Events are kept only since the latest gap.
            match (is_before.unwrap_or(watched.kept_since.is_some()), from) {
                (true, Some(from)) if watched.query.is_none() => {
                    watched.lost_from(from);
                    watched.doubt(KnowledgeWhy::EventsLost);
                }
                (true, _) => watched.doubt(KnowledgeWhy::EventsLost),
                (false, from) => watched.lost_since(from, KnowledgeWhy::EventsLost),
            }
        }
        self.due = Some(Millis(0));
    }

    /// A source lost events, and nothing will tell of whom.
    pub(crate) fn lost_for_good(&mut self, source: SourceIx) {
        for (_, watched) in self.workers.iter_mut().filter(|(_, w)| w.source == Some(source)) {
            watched.has_gap = true;
            watched.lost_since(watched.next_event(), KnowledgeWhy::EventsLost);
        }
        self.due = Some(Millis(0));
    }

    /// Events of a worker are lost, and counted.
    pub(crate) fn lost(&mut self, worker: WorkerIx, source: SourceIx, cause: MissedCause, count: u64) {
        self.workers.of(worker).lose(Loss { source, topic: Topic::KvEvents, cause, count });
    }

    /// Other workers take these places.
    pub(crate) fn vacate(&mut self, workers: &[WorkerIx]) {
        for &worker in workers {
            if let Some(query) = self.workers.get_mut(worker).and_then(Watched::forget) {
                self.cancel(query.id);
            }
        }
        self.workers.vacate(workers);
    }

    fn cancel(&mut self, id: u64) {
        self.running.remove(&id);
        self.commands.push(Command::CancelQuery { id });
    }

    /// Whether every event of a worker is received from now on, as far as anything tells.
    fn is_received(&self, watched: &Watched) -> bool {
        if watched.is_broken {
            return false;
        }
        let publisher_id = watched.publisher_id;
        watched.source.is_some()
            || publisher_id.is_some_and(|id| self.subscribed.contains(&id))
            || (self.open.intersection(&self.heard).next().is_some()
                && !publisher_id.is_some_and(|id| self.direct.contains(&id)))
    }

    /// Whether it may be, so that it is worth while to ask.
    fn may_be_received(&self, watched: &Watched) -> bool {
        let is_direct = watched.publisher_id.is_some_and(|id| self.direct.contains(&id));
        self.is_received(watched) || (!watched.is_broken && !is_direct && !self.open.is_empty())
    }

    /// Records how much is known of a worker, if that changed.
    fn tell(&mut self, ix: WorkerIx, at_ms: Millis, out: &mut dyn Sink) {
        let Some(watched) = self.workers.get(ix) else { return };
        let (knowledge, why) = watched.known;
        let state = out.cluster().worker(ix).map(|state| (state.knowledge.state, state.knowledge.why));
        if state.is_some_and(|state| state != watched.known) {
            out.record(Entry { at_ms, record: Record::Knowledge { worker: ix, knowledge, why } });
        }
    }
}

/// Anything of a worker may have been missed.
fn broke(watched: &mut Watched) {
    if watched.source.is_none() {
        // What it answered is true no more once its events do not come.
        let is_asked = watched.query.is_some() || watched.known.1 == KnowledgeWhy::NoEvents;
        if watched.is_complete() || (is_asked && watched.known.0 == TreeKnowledge::Partial) {
            watched.lost_since(None, KnowledgeWhy::ConnectionBroke);
        } else if let Some(query) = &mut watched.query {
            query.is_overtaken = true;
        }
        return;
    }
    watched.is_broken = true;
    watched.lost_since(watched.next_event(), KnowledgeWhy::ConnectionBroke);
}
