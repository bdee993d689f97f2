//! From payloads to records: the one place where Dynamo's words become ours.
//!
//! Sources hand over what they received, byte for byte ([`Payload`]); [`Ingest`] decodes it, gives workers their indices, follows
//! the publishers' sequence numbers and sums up what was lost or not understood. Stateful but pure: the same payloads
//! give the same records. It does no I/O and knows nothing of the state that the records are folded into.
//!
//! # How it works
//!
//! Envelopes count up per publisher; ids may be shared by several publishers or start again, so each has a few tracks
//! and a message continues the one it fits. Event ids are followed only where Dynamo makes them contiguous (batches,
//! ≥ 1.4). Losses, bad input and delays are summed up and recorded once a second, and so are the signs that logs give of
//! the path of KV events. A log is read from its beginning, so a sign counts only if its line is at most a minute
//! older than the latest time that any message or line reported; our own clock would call all recorded traffic old. Sizes
//! that a log names stay true.

mod attaching;
mod discovered;
mod discovery;
mod endpoints;
mod engines;
mod gaps;
mod indexers;
mod instances;
mod interner;
mod log_signals;
mod missing;
mod observation;
mod publishers;
mod real_names;
mod resume;
mod router_policies;
mod scrape;
mod scrapes;
mod tally;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use radixscope_dynamo::DecodeError;
use radixscope_dynamo::active_sequence::{self, ActiveSequence};
use radixscope_dynamo::client_result;
use radixscope_dynamo::envelope::{self, Envelope, Format};
use radixscope_dynamo::error::{Faults, Reason};
use radixscope_dynamo::hit_rate::HitRate;
use radixscope_dynamo::kv_event::{KvData, KvEvent, KvEvents, ResidencyDomain, StorageTier};
use radixscope_dynamo::load::{ActiveLoad, LoadOrigin};
use radixscope_dynamo::log_line::{self, LogEvent};
use radixscope_dynamo::otlp::RouteSpan;
use radixscope_dynamo::session_affinity::SessionAffinity;
use radixscope_dynamo::subject::{Subject, Transport};
use radixscope_dynamo::trace::{self, TraceRecord};
use radixscope_model::id::{Millis, SourceIx, Worker, WorkerIx};
use radixscope_model::record::{
    DepartureCause, Entry, EventTransport, LinkState, MissedCause, Record, Role, RoleEvidence, SourceKind,
    Tier, Topic,
};
use radixscope_state::cluster::{Cluster, MAX_SOURCES};
use radixscope_state::per_worker::PerWorker;

use crate::attach::{Attach, EventContext};
use crate::payload::{MAX_LOG_LINE_BYTES, MAX_PAYLOAD_BYTES, Payload, Received};
use discovered::Discovered;
use endpoints::Endpoints;
use engines::Engines;
use gaps::Gaps;
use indexers::Indexers;
use instances::Instances;
use interner::{Interner, Presence};
use log_signals::LogSignals;
pub use missing::{Break, Missing};
pub(crate) use observation::{Published, RecordOut, RequestObservation, RequestSignal, Sink};
use publishers::{Continuity, Lost, Publishers, SequencePosition, Stream};
use real_names::RealNames;
pub(crate) use resume::present;
use router_policies::RouterPolicies;
use scrapes::Scrapes;
use tally::Tally;

/// Publishers whose connection broke before their first message; beyond it their break is not remembered, and they count as
/// joined late.
const MAX_EARLY_BREAKS: usize = 16_384;
/// A line is about the present unless it is older than this. A log is read from its beginning: faults of
/// yesterday are none of today.
pub(crate) const FRESH_MS: u64 = 60_000;
/// Turns payloads into records.
#[derive(Default)]
pub(crate) struct Ingest {
    interner: Interner,
    real_names: RealNames,
    /// Where the last message was published, apart from streams: its namespace's name is known.
    last_subject: Option<Arc<Subject>>,
    publishers: Publishers,
    gaps: Gaps,
    /// The last break of each source's connection.
    last_breaks: BTreeMap<SourceIx, Break>,
    /// The same of publishers with a connection of their own that had not spoken yet.
    early_breaks: BTreeMap<Stream, Break>,
    /// Payloads taken so far.
    taken: u64,
    /// When the last one was received.
    taken_ms: Millis,
    instances: Instances,
    discovered: Discovered,
    router_policies: RouterPolicies,
    indexers: Indexers,
    scrapes: Scrapes,
    attach: Attach,
    tallies: Vec<Tally>,
    /// By how many milliseconds the clock is ahead that wrote the times which a source brings, if that is known.
    ahead_ms: BTreeMap<SourceIx, i64>,
    signs: LogSignals,
    /// What was recorded of roles.
    roles: PerWorker<BTreeSet<(RoleEvidence, Role)>>,
    /// Latest time that a message or a line reported.
    clock: Option<Millis>,
    /// Sources of the state that was gone on from, as long as they were not announced again.
    kept_sources: Vec<(String, SourceKind, SourceIx)>,
    /// When nothing was received before it was gone on from that state, until the workers that left meanwhile are reported.
    away: Option<Break>,
    kv: Option<Box<KvEvents>>,
    engines: Engines,
    endpoints: Endpoints,
}

/// How a message mentions a worker.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MentionKind {
    /// The worker itself, or who sends it requests or lists it as present: it is there.
    Present,
    /// A gauge that may outlive its worker: reclaims no slot.
    Weak,
}

impl Ingest {
    /// That keeps at most so many workers apart at a time; otherwise [`radixscope_state::cluster::MAX_WORKERS`].
    pub(crate) fn with_slots(places: usize) -> Self {
        Self { interner: Interner::with_slots(places), ..Self::default() }
    }

    /// Announces a source; must come before anything else about it. `None`: there are [`MAX_SOURCES`] already.
    pub(crate) fn source(
        &mut self,
        name: &str,
        kind: SourceKind,
        at_ms: Millis,
        out: &mut RecordOut<'_>,
    ) -> Option<SourceIx> {
        if let Some(source) = self.kept_source(name, kind) {
            let (state, detail) = (LinkState::Connecting, "".into());
            out(Entry { at_ms, record: Record::SourceState { source, state, detail } });
            return Some(source);
        }
        if self.tallies.len() == MAX_SOURCES {
            return None;
        }
        let source = SourceIx(self.tallies.len() as u8);
        self.tallies.push(Tally::default());
        out(Entry { at_ms, record: Record::Source { source, name: name.into(), kind } });
        Some(source)
    }

    /// Takes what a source received.
    ///
    /// KV events are nearly all of it, so their way to the sink is compiled for each kind of sink, in one piece; everything else
    /// takes a `dyn Sink`.
    pub(crate) fn handle<S: Sink>(&mut self, received: &Received, out: &mut S) {
        if received.source.at() >= self.tallies.len() {
            return;
        }
        // A source's own status is no message.
        let is_message = !received.payload.is_of_the_source();
        self.tallies[received.source.at()].received += u64::from(is_message);
        self.taken += 1;
        self.taken_ms = received.at_ms;
        let understood = match &received.payload {
            Payload::Nats { subject, message } if subject.topic == Topic::KvEvents => {
                self.kv_message(received, subject, message, out)
            }
            Payload::Engine { publisher, input } => self.engine(received, publisher, input, out),
            _ => self.open(received, out),
        };
        if let Err(faults) = understood {
            self.reject(received, &faults);
        }
        if self.attach.is_due(received.at_ms) {
            self.send_queries(received.at_ms, out);
        }
    }

    #[cold]
    fn reject(&mut self, received: &Received, faults: &Faults) {
        for (error, count) in faults.iter() {
            self.tallies[received.source.at()].reject(received.payload.topic(), error, count);
        }
    }

    /// The clock that wrote what a source brings is ahead by so many milliseconds: its times are put right by them.
    pub(crate) fn set_clock_ahead(&mut self, source: SourceIx, ahead_ms: i64) {
        self.ahead_ms.insert(source, ahead_ms);
    }

    fn ahead_ms(&self, source: SourceIx) -> i64 {
        self.ahead_ms.get(&source).copied().unwrap_or(0)
    }

    /// Loss that a source itself noticed.
    pub(crate) fn missed(&mut self, source: SourceIx, topic: Topic, cause: MissedCause, count: u64) {
        if let Some(tally) = self.tallies.get_mut(source.at()) {
            tally.miss(None, topic, cause, count);
        }
    }

    /// What a source knows to be missing before the next message it hands over. A loss counts once: what has a number
    /// by the publisher's numbers, what was dropped here where it was dropped, and what our client dropped on a topic
    /// with numbers not at all, because the numbers show losses.
    pub(crate) fn missing(&mut self, source: SourceIx, missing: &Missing) {
        if source.at() >= self.tallies.len() {
            return;
        }
        for (&(topic, publisher_id), runs) in &missing.runs {
            for run in runs {
                self.skipped(Stream { source, topic, publisher_id }, run.from, run.to);
            }
        }
        for (&(topic, cause), &count) in &missing.counts {
            let is_told_by_numbers =
                cause == MissedCause::SlowConsumer && self.gaps.is_numbered(source, topic);
            if !is_told_by_numbers {
                self.tallies[source.at()].miss(None, topic, cause, count);
            }
        }
        for &at in &missing.breaks {
            let Self { publishers, gaps, .. } = self;
            publishers.broke(source);
            gaps.broke(source, at, |topic| publishers.count(source, topic));
            self.attach.broke(source);
            self.last_breaks.insert(source, at);
        }
        for (&(topic, publisher_id), &at) in &missing.of_publishers {
            if topic == Topic::KvEvents {
                self.attach.broke_of(publisher_id);
            }
            self.broke_of(Stream { source, topic, publisher_id }, at);
        }
        for &topic in &missing.uncounted {
            let at = Break { since_ms: self.taken_ms, until_ms: self.taken_ms };
            self.gaps.at_least(source, topic, at);
        }
        for &(topic, at) in &missing.unknown {
            self.gaps.unknown(source, topic, at);
            if topic == Topic::KvEvents {
                self.attach.lost_for_good(source);
            }
        }
    }

    /// The connection to one publisher broke and is there again.
    fn broke_of(&mut self, stream: Stream, at: Break) {
        if self.publishers.broke_of(stream) {
            self.gaps.broke_of(stream.source, stream.topic, at);
        } else if !self.publishers.knows(stream) && self.early_breaks.len() < MAX_EARLY_BREAKS {
            self.early_breaks.insert(stream, at);
        }
    }

    fn skipped(&mut self, stream: Stream, from: u64, to: u64) {
        let place = self.publishers.skipped(stream, from, to, self.taken + 1);
        self.placed(stream, &place, None);
        if let Some(last) = self.missed_before(stream, &place, from) {
            self.gaps.begins_late(stream.source, stream.topic, last);
        }
        // Up to 0.9 a worker publishes under its own id.
        let publisher = radixscope_model::id::WorkerId(stream.publisher_id);
        let is_own = stream.topic == Topic::KvEvents;
        let worker = if is_own { self.interner.only_rank(publisher) } else { None };
        let worker = worker.or_else(|| self.engines.worker_of(stream.publisher_id));
        self.tallies[stream.source.at()].miss(worker, stream.topic, MissedCause::QueueFull, to - from);
        if stream.topic == Topic::KvEvents {
            let gap = self.attach.gap_of(stream.publisher_id);
            self.attach.lost_of(stream.publisher_id, stream.source, MissedCause::QueueFull, (gap, to - from));
        }
    }

    /// Entries in each store that is to be as large as the workers that are there or left last.
    #[cfg(test)]
    pub(crate) fn sizes(&self) -> Vec<(&'static str, usize)> {
        let own = [("early breaks", self.early_breaks.len())];
        let (interner, discovered) = (self.interner.sizes(), self.discovered.sizes());
        own.into_iter().chain(interner).chain(discovered).chain(self.attach.sizes()).collect()
    }

    /// Publishers that are followed.
    #[cfg(test)]
    pub(crate) fn publishers(&self) -> usize {
        self.publishers.len()
    }

    /// Records what was summed up since the last call: traffic, losses, what was not understood. Call it about once a
    /// second; it records nothing when nothing changed. A gap between two messages counts as loss at the second call
    /// after it: until then the missing ones may come late.
    pub(crate) fn flush(&mut self, at_ms: Millis, out: &mut dyn Sink) {
        for lost in self.publishers.close_gaps() {
            self.lost(&lost);
        }
        for (i, tally) in self.tallies.iter_mut().enumerate() {
            tally.flush(SourceIx(i as u8), &mut |record| out.record(Entry { at_ms, record }));
        }
        self.gaps.flush(&mut |record| out.record(Entry { at_ms, record }));
        self.engines.flush(at_ms, &mut |record| out.record(Entry { at_ms, record }));
        let (received_ms, signs) = self.signs.flush(self.now(at_ms));
        let at_ms = received_ms.min(at_ms);
        for ((sign, id), count) in signs {
            let worker = id.and_then(|id| {
                let presence = Presence { cluster: out.cluster(), at: None };
                let (worker, is_new) = self.interner.intern(id, ("", ""), false, presence)?;
                if is_new {
                    introduce(worker, id, ("", ""), at_ms, out);
                }
                Some(worker)
            });
            out.record(Entry { at_ms, record: Record::LogSignal { worker, sign, count } });
        }
    }

    /// The latest time that any message or line reported, else `at_ms`: the present of the deployment. Recorded traffic has
    /// another than we have.
    pub(crate) fn now(&self, at_ms: Millis) -> Millis {
        self.clock.unwrap_or(at_ms)
    }

    /// Takes a time that a publisher reported. One that is ahead of ours by more than clocks are is passed over: it would make
    /// everything else old.
    fn note_time(&mut self, reported: Millis, at_ms: Millis) {
        if reported.0 <= at_ms.0.saturating_add(FRESH_MS) {
            self.clock = self.clock.max(Some(reported));
        }
    }

    fn open(&mut self, received: &Received, out: &mut dyn Sink) -> Result<(), Faults> {
        let context = || Context::new(received);
        match &received.payload {
            Payload::Nats { subject, message } => self.nats(received, subject, message, out),
            Payload::OtherNats { subject, .. } => {
                let text = format!("subject {subject:?} is none of Dynamo's");
                Err(DecodeError::new(Reason::UnknownKind, text).into())
            }
            Payload::Discovery { key, value, lease } => {
                Ok(self.discovery(&context(), key, value.as_deref(), *lease, out)?)
            }
            Payload::TreeResponse { query, outcome, .. } => {
                self.tree_response(&context(), *query, outcome, out);
                Ok(())
            }
            Payload::Subscribed { publisher_id } => {
                self.attach.subscribed(received.source, *publisher_id);
                Ok(())
            }
            Payload::Unsubscribed { publisher_id } => {
                self.attach.unsubscribed(received.source, *publisher_id);
                Ok(())
            }
            Payload::LogLine { log, line } => Ok(self.log_line(&context(), log, line, out)?),
            Payload::RouteSpan(span) => {
                self.route_span(&context(), span, out);
                Ok(())
            }
            Payload::Scrape { process, text } => self.scrape(&context(), process, text, out),
            Payload::Unreadable { error, .. } => Err((**error).clone().into()),
            // Taken before.
            Payload::Engine { .. } => Ok(()),
            Payload::Health { frontend, response } => Ok(self.health(&context(), frontend, response, out)?),
            Payload::RouterPolicy { frontend, response } => {
                Ok(self.router_policy(&context(), frontend, response, out)?)
            }
            Payload::ClientResult { line } => {
                within_bounds(line)?;
                let mut result = client_result::decode(line)?;
                let ahead_ms = self.ahead_ms(received.source);
                let measured = &mut result.measured;
                measured.sent_ms = put_right(measured.sent_ms, ahead_ms);
                measured.ended_ms = put_right(measured.ended_ms, ahead_ms);
                out.observe(context().observed(self, RequestSignal::ClientResult { result: &result }));
                Ok(())
            }
            Payload::ClientMeasured(result) => {
                out.observe(context().observed(self, RequestSignal::ClientResult { result }));
                Ok(())
            }
            Payload::Indexer { name, index, .. } => {
                self.indexer(&context(), name, index, out);
                Ok(())
            }
        }
    }

    fn nats(
        &mut self,
        received: &Received,
        subject: &Arc<Subject>,
        message: &[u8],
        out: &mut dyn Sink,
    ) -> Result<(), Faults> {
        within_bounds(message)?;
        if subject.topic == Topic::RequestTrace {
            return Ok(self.trace(&Context::new(received), message, out)?);
        }
        let body = envelope::open(message)?;
        let (payload, format) = body.payload();
        let real = self.real_name(subject);
        let context = Context::published(received, subject, real.as_deref(), body.envelope());
        // Decode, follow the publisher's count whatever came of it, then take what was understood.
        match subject.topic {
            Topic::KvHitRate => {
                let hit_rate = HitRate::decode(payload, format);
                self.follow(&context, None, out);
                self.hit_rate(&context, &hit_rate?, out);
                Ok(())
            }
            Topic::KvMetrics => {
                let load = ActiveLoad::decode(payload, format);
                self.follow(&context, load.as_ref().ok().map(|load| load.worker), out);
                self.load(&context, &load?, out);
                Ok(())
            }
            Topic::ActiveSequences => {
                let mut steps = Vec::new();
                let understood = active_sequence::decode(payload, format, &mut steps);
                self.follow(&context, steps.first().filter(|s| s.by_worker).map(|s| s.worker), out);
                self.sequences(&context, &steps, out);
                understood
            }
            Topic::SessionAffinity => {
                let affinity = SessionAffinity::decode(payload, format);
                self.follow(&context, None, out);
                let affinity = affinity?;
                if let Some(worker) = self.worker(&context, affinity.worker, out) {
                    let signal = RequestSignal::SessionAffinity { worker, affinity: &affinity };
                    out.observe(context.observed(self, signal));
                }
                Ok(())
            }
            Topic::KvEvents
            | Topic::Discovery
            | Topic::TreeDump
            | Topic::RequestTrace
            | Topic::Log
            | Topic::Metrics
            | Topic::Health
            | Topic::RouterPolicy
            | Topic::Indexer
            | Topic::ClientResult
            | Topic::Other => Ok(()),
        }
    }

    /// A message with KV events, in the same order: decode, follow, take.
    fn kv_message<S: Sink>(
        &mut self,
        received: &Received,
        subject: &Arc<Subject>,
        message: &[u8],
        out: &mut S,
    ) -> Result<(), Faults> {
        within_bounds(message)?;
        let plain = envelope::open_plain(message);
        let other;
        let (envelope, payload, format) = match &plain {
            Some(envelope) => (Some(envelope), envelope.payload, Format::MsgPack),
            None => {
                other = envelope::open(message)?;
                let (payload, format) = other.payload();
                (other.envelope(), payload, format)
            }
        };
        let real = self.real_name(subject);
        let context = Context::published(received, subject, real.as_deref(), envelope);
        // The scratch leaves `self` while records borrow from it.
        let mut kv = self.kv.take().unwrap_or_default();
        let understood = kv.decode(payload, format);
        self.follow(&context, kv.events.first().map(|event| event.worker), out);
        self.kv_events(&context, &kv, out);
        self.kv = Some(kv);
        understood
    }

    /// The real name of the namespace of a stream; notes the names of namespaces that are published elsewhere.
    #[inline]
    fn real_name(&mut self, subject: &Arc<Subject>) -> Option<Box<str>> {
        if subject.transport == Transport::JetStream {
            return self.real_names.of(&subject.namespace).map(Box::from);
        }
        if !self.last_subject.as_ref().is_some_and(|last| Arc::ptr_eq(last, subject)) {
            self.real_names.learn(&subject.namespace);
            self.last_subject = Some(Arc::clone(subject));
        }
        None
    }

    #[inline]
    fn kv_events<S: Sink>(&mut self, context: &Context<'_>, kv: &KvEvents, out: &mut S) {
        let line = match context.transport {
            Transport::JetStream => EventTransport::JetStream,
            Transport::Core => EventTransport::Core,
            Transport::Zmq => EventTransport::Zmq,
            Transport::Engine => EventTransport::Engine,
        };
        for event in &kv.events {
            let Some(worker) = self.applicable(context, event, kv, line, out) else { continue };
            let (by, at_ms) = (context.published_by(event.worker), context.received.at_ms);
            // Of what nearly all events are the record is made where it is taken, which spares moving it and looking what of it
            // is to be dropped.
            match &event.data {
                KvData::Stored { parent, blocks, .. } if event.is_in_device_memory() => {
                    let blocks = Cow::Borrowed(kv.blocks_of(blocks));
                    let entry = Entry { at_ms, record: Record::Stored { worker, parent: *parent, blocks } };
                    out.published(&entry, by);
                    forget_borrowed(entry);
                }
                KvData::Removed { hashes } if event.is_in_device_memory() => {
                    let hashes = Cow::Borrowed(kv.removed_of(hashes));
                    let entry = Entry { at_ms, record: Record::Removed { worker, hashes } };
                    out.published(&entry, by);
                    forget_borrowed(entry);
                }
                _ => out.published(&context.entry(kv_record(worker, event, kv)), by),
            }
            if let KvData::Stored { multimodal_inputs: count @ 1.., .. } = event.data {
                out.record(context.entry(Record::MultimodalInputs { worker, count: count.into() }));
            }
        }
    }

    /// Takes in what an event shows of its worker and of how much is known of it. `None`: it is not to be applied.
    #[inline]
    fn applicable<S: Sink>(
        &mut self,
        context: &Context<'_>,
        event: &KvEvent,
        kv: &KvEvents,
        line: EventTransport,
        out: &mut S,
    ) -> Option<WorkerIx> {
        let (source, publisher_id) = (context.received.source, context.publisher_id());
        let sequence = context.envelope.map(|envelope| envelope.sequence);
        let worker = self.event_worker(context, event, line, out)?;
        if kv.batch {
            self.event_id(context, worker, event);
        }
        let applies = self.attach.goes_on(worker, source, publisher_id, sequence, event, kv.batch)
            || self.attached(context, worker, event, kv, line, out);
        applies.then_some(worker)
    }

    /// Index of the worker of an event, after all was recorded that the event shows of it.
    #[inline]
    fn event_worker<S: Sink>(
        &mut self,
        context: &Context<'_>,
        event: &KvEvent,
        line: EventTransport,
        out: &mut S,
    ) -> Option<WorkerIx> {
        let at = context.received.at_ms;
        let known = context.subject.and_then(|subject| {
            self.interner.known_of_event(event.worker, (subject, context.is_slug), line, at, out.cluster())
        });
        known.or_else(|| self.new_event_worker(context, event, line, out))
    }

    #[cold]
    fn new_event_worker(
        &mut self,
        context: &Context<'_>,
        event: &KvEvent,
        line: EventTransport,
        out: &mut dyn Sink,
    ) -> Option<WorkerIx> {
        let worker = self.worker(context, event.worker, out)?;
        if self.interner.comes_newly_by(worker, line) {
            let first_event_id = event.event_id;
            out.record(context.entry(Record::EventTransport { worker, line, first_event_id }));
        }
        Some(worker)
    }

    /// Takes in what an event that is not just the next one changes in what is known of its worker. `false`: it is not to be applied,
    /// which is recorded.
    #[cold]
    fn attached(
        &mut self,
        context: &Context<'_>,
        worker: WorkerIx,
        event: &KvEvent,
        kv: &KvEvents,
        line: EventTransport,
        out: &mut dyn Sink,
    ) -> bool {
        let Received { source, at_ms, .. } = *context.received;
        let sequence = context.envelope.map(|envelope| envelope.sequence);
        let (id, publisher_id) = (event.worker, context.publisher_id());
        let live = EventContext { worker, id, source, at_ms, line, publisher_id, sequence };
        let applies = self.attach.event(&live, event, kv, out);
        if !applies {
            out.record(context.entry(attaching::skipped_event(worker, event)));
        }
        applies
    }

    fn hit_rate(&mut self, context: &Context<'_>, hit_rate: &HitRate, out: &mut dyn Sink) {
        let &HitRate { worker, isl_blocks, overlap_blocks, .. } = hit_rate;
        if let Some(worker) = self.worker(context, worker, out) {
            let router = context.publisher_id();
            let signal = RequestSignal::HitRate { worker, router, isl_blocks, overlap_blocks };
            out.observe(context.observed(self, signal));
        }
    }

    fn load(&mut self, context: &Context<'_>, load: &ActiveLoad, out: &mut dyn Sink) {
        let origin = load.origin(context.publisher_id());
        let mention =
            if let LoadOrigin::Engine { .. } = origin { MentionKind::Present } else { MentionKind::Weak };
        let at = context.received.at_ms;
        let Some(worker) = self.mentioned(context, load.worker, at, mention, out) else { return };
        let record = match origin {
            LoadOrigin::Engine { used_blocks } => Record::EngineLoad { worker, used_blocks },
            LoadOrigin::Router { decode_blocks, prefill_tokens } => {
                Record::RouterLoad { worker, router: context.publisher_id(), decode_blocks, prefill_tokens }
            }
            LoadOrigin::Nothing => return,
        };
        out.published(&context.entry(record), context.by_time());
    }

    fn sequences(&mut self, context: &Context<'_>, steps: &[ActiveSequence<'_>], out: &mut dyn Sink) {
        for step in steps {
            if let Some(worker) = self.worker(context, step.worker, out) {
                let record = Record::Sequence { worker, step: step.step.kind(), by_worker: step.by_worker };
                out.published(&context.entry(record), context.by_time());
                out.observe(context.observed(self, RequestSignal::Sequence { worker, step }));
            }
        }
    }

    fn log_line(
        &mut self,
        context: &Context<'_>,
        log: &str,
        line: &[u8],
        out: &mut dyn Sink,
    ) -> Result<(), DecodeError> {
        if line.len() > MAX_LOG_LINE_BYTES {
            let text = format!("more than {MAX_LOG_LINE_BYTES} bytes without a line feed");
            return Err(DecodeError::new(Reason::TooLarge, text));
        }
        let Some(mut record) = log_line::decode(line)? else { return Ok(()) };
        let ahead_us = self.ahead_ms(context.received.source).saturating_mul(1_000);
        record.at_us = record.at_us.map(|at_us| at_us.saturating_sub(ahead_us));
        let received_ms = context.received.at_ms;
        let at_ms = record.at_ms().unwrap_or(received_ms);
        self.note_time(at_ms, received_ms);
        if let LogEvent::Signal { sign, worker } = record.event {
            self.signs.add(at_ms, received_ms, sign, worker);
            return Ok(());
        }
        if let LogEvent::GatewayChoice(choice) = &record.event {
            self.gateway_choice(context, (&record, choice), at_ms, out);
            return Ok(());
        }
        if let LogEvent::Picker(line) = &record.event {
            self.picker_line(context, log, (&record, line), at_ms, out);
            return Ok(());
        }
        // Of the line's own time: who is named in an old line takes no place from who is there now.
        let mut mentioned = |id| self.mentioned(context, id, at_ms, MentionKind::Present, out);
        let worker = record.event.worker().and_then(&mut mentioned);
        out.observe(context.observed(self, RequestSignal::Log { log, record: &record, worker }));
        Ok(())
    }

    fn route_span(&mut self, context: &Context<'_>, span: &RouteSpan, out: &mut dyn Sink) {
        let record = span.line();
        let received_ms = context.received.at_ms;
        let at_ms = record.at_ms().unwrap_or(received_ms);
        self.note_time(at_ms, received_ms);
        // As of a line: spans of an exporter that was behind name workers that may be gone.
        let worker = self.mentioned(context, span.done.worker, at_ms, MentionKind::Present, out);
        if let Some(worker) = worker {
            let signal = RequestSignal::RouteSpan { span, record: &record, worker };
            out.observe(context.observed(self, signal));
        }
    }

    fn trace(
        &mut self,
        context: &Context<'_>,
        message: &[u8],
        out: &mut dyn Sink,
    ) -> Result<(), DecodeError> {
        let ahead_ms = self.ahead_ms(context.received.source);
        let right = |at: Option<u64>| at.map(|at| put_right(Millis(at), ahead_ms).0);
        let trace = match trace::decode(message)? {
            None => return Ok(()),
            Some(TraceRecord::Ended(mut trace)) => {
                trace.event_time_ms = right(trace.event_time_ms);
                trace.request_received_ms = right(trace.request_received_ms);
                trace
            }
            Some(TraceRecord::Selected(mut selection)) => {
                selection.event_time_ms = right(selection.event_time_ms);
                // Of the choice's own time: old records name workers that may be gone.
                let at_ms = selection.event_time_ms.map_or(context.received.at_ms, Millis);
                let named = selection.candidates.iter().filter_map(|&(id, cost)| {
                    Some((self.mentioned(context, id, at_ms, MentionKind::Present, out)?, cost))
                });
                let candidates: Vec<(WorkerIx, f64)> = named.collect();
                let (selection, candidates) = (&selection, &*candidates);
                out.observe(context.observed(self, RequestSignal::TracedSelection { selection, candidates }));
                return Ok(());
            }
        };
        // The prefill worker's cache is the one that was matched.
        let id = trace.prefill_worker.or(trace.decode_worker);
        let worker = id.and_then(|id| self.worker(context, id, out));
        let decode = trace.decode_worker.and_then(|id| self.worker(context, id, out));
        out.observe(context.observed(self, RequestSignal::Trace { trace: &trace, worker, decode }));
        Ok(())
    }

    /// Records what the pool of a worker does, once.
    fn role(
        &mut self,
        context: &Context<'_>,
        worker: WorkerIx,
        role: Role,
        evidence: RoleEvidence,
        out: &mut dyn Sink,
    ) {
        if self.roles.of(worker).insert((evidence, role)) {
            out.record(context.entry(Record::Role { worker, role, evidence }));
        }
    }

    /// Index of a worker, introduced if it is new. `None`: there are too many, which is counted.
    fn worker(&mut self, context: &Context<'_>, id: Worker, out: &mut dyn Sink) -> Option<WorkerIx> {
        self.mentioned(context, id, context.received.at_ms, MentionKind::Present, out)
    }

    /// Index of a worker that a message named at `at`; see [`Self::worker`].
    fn mentioned(
        &mut self,
        context: &Context<'_>,
        id: Worker,
        at: Millis,
        mention: MentionKind,
        out: &mut dyn Sink,
    ) -> Option<WorkerIx> {
        if let Some(subject) = context.subject
            && mention == MentionKind::Present
            && let Some(worker) = self.interner.recorded_through(id, subject, context.is_slug, out.cluster())
        {
            self.interner.mention(worker, at);
            return Some(worker);
        }
        let (namespace, component) = (context.namespace, context.component);
        let is_present = mention == MentionKind::Present;
        if !is_present && self.interner.has_departed(id, out.cluster()) {
            return None;
        }
        let presence = Presence { cluster: out.cluster(), at: is_present.then_some(at) };
        let known = self.interner.intern(id, (namespace, component), context.is_slug, presence);
        let Some((worker, news)) = known else {
            let source = context.received.source.at();
            self.tallies[source].miss(None, context.topic, MissedCause::TooManyWorkers, 1);
            return None;
        };
        if is_present || news {
            self.interner.mention(worker, at);
        }
        if news {
            introduce(worker, id, (namespace, component), context.received.at_ms, out);
        }
        if let Some(subject) = context.subject {
            self.interner.note_recorded_through(worker, subject, context.is_slug);
        }
        Some(worker)
    }

    /// Follows the envelope's sequence and clock. `about` is the worker the message is about, if it is about one.
    #[inline]
    fn follow(&mut self, context: &Context<'_>, about: Option<Worker>, out: &mut dyn Sink) {
        let (source, topic) = (context.received.source, context.topic);
        if let Some(envelope) = context.envelope {
            self.tallies[source.at()].lag(context.received.at_ms, envelope.published_at);
            self.note_time(envelope.published_at, context.received.at_ms);
            let stream = Stream { source, topic, publisher_id: envelope.publisher_id };
            if self.publishers.goes_on(stream, envelope.sequence, self.taken) {
                return;
            }
        }
        self.follow_closely(context, about, out);
    }

    /// The same for a message that is not just the next one of its publisher.
    #[cold]
    fn follow_closely(&mut self, context: &Context<'_>, about: Option<Worker>, out: &mut dyn Sink) {
        let (source, topic) = (context.received.source, context.topic);
        if context.transport != Transport::JetStream {
            self.gaps.received(source, topic, context.envelope.is_some());
            self.attach.received_from(source);
        }
        let Some(envelope) = context.envelope else { return };
        let stream = Stream { source, topic, publisher_id: envelope.publisher_id };
        let place = self.publishers.received(stream, envelope.sequence, self.taken);
        // Up to 0.9 a worker publishes under its own id, so what is lost is known to be its own. Later the
        // worker's event ids show it, and more exactly (reference §2.4, §2.6).
        let own = match place.continuity {
            Continuity::Gap(_) => about.filter(|worker| {
                worker.id.0 == envelope.publisher_id || context.transport == Transport::Engine
            }),
            _ => None,
        };
        let worker = own.and_then(|id| self.worker(context, id, out));
        self.placed(stream, &place, worker);
        let Some(last) = self.missed_before(stream, &place, envelope.sequence) else { return };
        let is_own = |id: &Worker| topic == Topic::KvEvents || id.id.0 == envelope.publisher_id;
        let began = about.filter(is_own).filter(|&id| self.began_after(last.since_ms, id, out.cluster()));
        let Some(worker) = began else { return self.gaps.begins_late(source, topic, last) };
        // Whatever it published before was published while nothing was received.
        let continuity = Continuity::Gap(publishers::Missing { from: 0, to: envelope.sequence });
        let own = self.interner.known(worker, out.cluster()).filter(|_| worker.id.0 == envelope.publisher_id);
        self.placed(stream, &SequencePosition { continuity, ..place }, own);
        self.gaps.at_least(source, topic, last);
    }

    /// Whether discovery first named a worker after `since`, and had named all others long before.
    fn began_after(&mut self, since: Millis, id: Worker, cluster: &Cluster) -> bool {
        let is_listed = self.discovered.is_there(id.id) == Some(true)
            && self.discovered.first_ms().is_some_and(|first| since.since(first) > resume::LISTED_WITHIN_MS);
        let worker = self.interner.known(id, cluster).and_then(|ix| cluster.worker(ix));
        is_listed && worker.is_some_and(|worker| worker.first_ms > since)
    }

    /// The break in which messages of a publisher may have been missed whose first one received has number `sequence`. `None`:
    /// it is its first of all, or nothing broke, so its earlier messages were sent before we listened.
    fn missed_before(&mut self, stream: Stream, place: &SequencePosition, sequence: u64) -> Option<Break> {
        if !place.is_new {
            return None;
        }
        let own = self.early_breaks.remove(&stream);
        let last = own.or_else(|| self.last_breaks.get(&stream.source).copied());
        // A forgotten publisher may have sent messages since.
        let now = Break { since_ms: self.taken_ms, until_ms: self.taken_ms };
        last.or(place.may_be_forgotten.then_some(now)).filter(|_| sequence > 0)
    }

    /// What the sequence number of a message shows.
    fn placed(&mut self, stream: Stream, place: &SequencePosition, worker: Option<WorkerIx>) {
        let Stream { source, topic, publisher_id } = stream;
        match place.continuity {
            Continuity::InOrder => {}
            Continuity::Gap(missing) => {
                let gap = if topic == Topic::KvEvents { self.attach.gap_of(publisher_id) } else { 0 };
                if let Some(lost) = self.publishers.open(stream, worker, missing, gap) {
                    self.lost(&lost);
                }
            }
            Continuity::Implausible(jump) => {
                let text = format!("sequence of publisher {publisher_id} jumped by {jump}");
                let error = DecodeError::new(Reason::Malformed, text);
                self.tallies[source.at()].reject(topic, &error, 1);
            }
        }
        if place.is_first_after_break {
            self.gaps.spoke(source, topic);
        }
        if place.is_first_after_own_break {
            self.gaps.spoke_alone(source, topic);
        }
        let is_first = place.is_first_after_break || place.is_first_after_own_break;
        if is_first && topic == Topic::KvEvents && place.continuity == Continuity::InOrder {
            self.attach.unbroken(source, publisher_id);
        }
    }

    fn lost(&mut self, lost: &Lost) {
        let tally = &mut self.tallies[lost.stream.source.at()];
        tally.miss(lost.worker, lost.stream.topic, MissedCause::EnvelopeGap, lost.count);
        let Stream { source, topic, publisher_id } = lost.stream;
        if topic == Topic::KvEvents {
            self.attach.lost_of(publisher_id, source, MissedCause::EnvelopeGap, (lost.gap, lost.count));
        }
    }

    /// Follows a worker's event ids where they are contiguous (≥ 1.1; a batch proves ≥ 1.4).
    #[inline]
    fn event_id(&mut self, context: &Context<'_>, worker: WorkerIx, event: &KvEvent) {
        let (lost, last) = self.interner.event_id(worker, event.event_id, self.taken);
        if lost > 0 {
            self.event_ids_jumped(context, worker, lost, last);
        }
    }

    /// Events of `worker` are missing; its last one was in message number `last` of all. A lost message shows twice where its
    /// publisher numbers messages and events: in the envelope's sequence and in the ids of the events that it held. The message is
    /// counted as lost; its events are reported separately.
    #[cold]
    fn event_ids_jumped(&mut self, context: &Context<'_>, worker: WorkerIx, lost: u64, last: u64) {
        let (source, topic) = (context.received.source, context.topic);
        let stream = context.publisher_id().map(|publisher_id| Stream { source, topic, publisher_id });
        let is_counted = stream.is_some_and(|stream| self.publishers.jumped_at(stream) > last);
        let cause = if is_counted { MissedCause::EventsInLost } else { MissedCause::EventIdGap };
        self.tallies[source.at()].miss(Some(worker), topic, cause, lost);
        self.attach.lost(worker, source, cause, lost);
    }
}

/// Records that a worker exists, or more of its name. Whoever has its slot until then has left.
fn introduce(
    worker: WorkerIx,
    id: Worker,
    (namespace, component): (&str, &str),
    at_ms: Millis,
    out: &mut dyn Sink,
) {
    let before = out.cluster().workers().in_slot(worker.slot()).filter(|&before| before != worker);
    if let Some(before) = before {
        let why = DepartureCause::Silent;
        out.record(Entry { at_ms, record: Record::Left { worker: before, why } });
    }
    out.record(Entry { at_ms, record: Record::new_worker(worker, id, namespace, component) });
}

/// A time of a clock that is ahead.
fn put_right(at: Millis, ahead_ms: i64) -> Millis {
    Millis(at.0.saturating_add_signed(ahead_ms.saturating_neg()))
}

/// Ends an entry that owns nothing.
#[inline]
fn forget_borrowed(entry: Entry<'_>) {
    std::mem::forget(entry);
}

/// Whether a payload is small enough to be opened.
#[inline]
fn within_bounds(payload: &[u8]) -> Result<(), DecodeError> {
    if payload.len() > MAX_PAYLOAD_BYTES {
        let text = format!("{} bytes; at most {MAX_PAYLOAD_BYTES} are read", payload.len());
        return Err(DecodeError::new(Reason::TooLarge, text));
    }
    Ok(())
}

/// What is known around a payload.
#[derive(Clone, Copy)]
struct Context<'a> {
    received: &'a Received,
    topic: Topic,
    /// Where it was published, if its names are those of a subject.
    subject: Option<&'a Arc<Subject>>,
    /// "" if nothing names it.
    namespace: &'a str,
    /// "" if nothing names it.
    component: &'a str,
    /// Both are a stream's, which are slugs.
    is_slug: bool,
    transport: Transport,
    envelope: Option<&'a Envelope<'a>>,
}

impl<'a> Context<'a> {
    /// Of a payload that names neither namespace nor component.
    fn new(received: &'a Received) -> Self {
        let (topic, transport) = (received.payload.topic(), Transport::Core);
        Self {
            received,
            topic,
            subject: None,
            namespace: "",
            component: "",
            is_slug: false,
            transport,
            envelope: None,
        }
    }

    /// Of a message on a subject. `real`: what the namespace of a stream is really called, if that is known.
    #[inline]
    fn published(
        received: &'a Received,
        subject: &'a Arc<Subject>,
        real: Option<&'a str>,
        envelope: Option<&'a Envelope<'a>>,
    ) -> Self {
        let transport = subject.transport;
        Self {
            received,
            topic: subject.topic,
            subject: Some(subject),
            namespace: real.unwrap_or(&subject.namespace),
            component: &subject.component,
            is_slug: transport == Transport::JetStream && real.is_none(),
            transport,
            envelope,
        }
    }

    /// The same, of this component.
    fn of_component<'c>(&self, namespace: &'c str, component: &'c str) -> Context<'c>
    where
        'a: 'c,
    {
        Context { subject: None, namespace, component, is_slug: false, ..*self }
    }

    /// A record of the time at which the payload was received.
    fn entry<'r>(&self, record: Record<'r>) -> Entry<'r> {
        Entry { at_ms: self.received.at_ms, record }
    }

    #[inline]
    fn publisher_id(&self) -> Option<u64> {
        self.envelope.map(|envelope| envelope.publisher_id)
    }

    fn published_ms(&self) -> Option<Millis> {
        self.envelope.map(|envelope| envelope.published_at)
    }

    /// When a message was published that is no event of a worker.
    fn by_time(&self) -> Published {
        Published { at_ms: self.published_ms(), is_own_id: None }
    }

    /// What is known of the publisher of an event of `worker`.
    #[inline]
    fn published_by(&self, worker: Worker) -> Published {
        Published { at_ms: self.published_ms(), is_own_id: self.publisher_id().map(|id| id == worker.id.0) }
    }

    /// What was observed of a request.
    fn observed<'s>(&self, ingest: &Ingest, signal: RequestSignal<'s>) -> RequestObservation<'s> {
        let Received { source, at_ms, .. } = *self.received;
        RequestObservation {
            source,
            at_ms,
            published_ms: self.published_ms(),
            now_ms: ingest.now(at_ms),
            signal,
        }
    }
}

/// The tier of the worker's own cache that an event is about, below device memory; `None`: none that is known.
fn lower_tier(event: &KvEvent) -> Option<Tier> {
    match event.tier {
        _ if event.domain != ResidencyDomain::Worker => None,
        StorageTier::HostPinned => Some(Tier::Host),
        StorageTier::Disk => Some(Tier::Disk),
        StorageTier::External => Some(Tier::External),
        StorageTier::Device | StorageTier::Unknown => None,
    }
}

pub(crate) fn kv_record<'k>(worker: WorkerIx, event: &KvEvent, kv: &'k KvEvents) -> Record<'k> {
    let in_device_memory = event.is_in_device_memory();
    let tier = lower_tier(event);
    match &event.data {
        KvData::Stored { parent, blocks, .. } if in_device_memory => {
            Record::Stored { worker, parent: *parent, blocks: Cow::Borrowed(kv.blocks_of(blocks)) }
        }
        KvData::Removed { hashes } if in_device_memory => {
            Record::Removed { worker, hashes: Cow::Borrowed(kv.removed_of(hashes)) }
        }
        KvData::Cleared if in_device_memory => Record::Cleared { worker, all_ranks: !kv.batch },
        KvData::Stored { parent, blocks, .. } => match tier {
            Some(tier) => Record::TierStored {
                worker,
                tier,
                parent: *parent,
                blocks: Cow::Borrowed(kv.blocks_of(blocks)),
            },
            None => Record::OtherTier { worker, stored: blocks.len() as u32, removed: 0 },
        },
        KvData::Removed { hashes } => match tier {
            Some(tier) => Record::TierRemoved { worker, tier, hashes: Cow::Borrowed(kv.removed_of(hashes)) },
            None => Record::OtherTier { worker, stored: 0, removed: hashes.len() as u32 },
        },
        KvData::Cleared => match tier {
            Some(tier) => Record::TierCleared { worker, tier },
            None => Record::OtherTier { worker, stored: 0, removed: 0 },
        },
    }
}
