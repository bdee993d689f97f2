//! From messages to records: the one place where Dynamo's words become ours.
//!
//! Sources hand over what they received, byte for byte; [`Ingest`] decodes it, gives workers their indices, follows
//! the publishers' sequence numbers and sums up what was lost or not understood. Stateful but pure: the same messages
//! give the same records. It does no I/O and knows nothing of the state that the records are folded into.

mod event_ids;
mod gaps;
mod instances;
mod interner;
mod missing;
mod publishers;
mod scrape;
mod scrapes;
mod signs;
mod subjects;
mod tally;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;

use radixscope_dynamo::DecodeError;
use radixscope_dynamo::active_sequence::{self, ActiveSequence};
use radixscope_dynamo::discovery::ModelCard;
use radixscope_dynamo::envelope::{self, Envelope, Format};
use radixscope_dynamo::error::{Faults, Reason};
use radixscope_dynamo::hit_rate::HitRate;
use radixscope_dynamo::kv_event::{KvData, KvEvent, KvEvents, ResidencyDomain, StorageTier};
use radixscope_dynamo::load::{ActiveLoad, LoadOrigin};
use radixscope_dynamo::log_line::{self, LogLine};
use radixscope_dynamo::subject::{self, Subject, Transport};
use radixscope_dynamo::trace::{self, RequestTrace};
use radixscope_model::id::{Millis, SourceIx, Worker, WorkerIx};
use radixscope_model::record::{Entry, EventLine, MissedCause, Record, SourceKind, Topic};
use radixscope_state::cluster::MAX_SOURCES;

use event_ids::EventIds;
use gaps::Gaps;
use instances::Instances;
use interner::Interner;
pub use missing::{Break, Missing};
use publishers::{Heard, Lost, Place, Publishers, Stream};
use scrapes::Scrapes;
use signs::Signs;
use subjects::Subjects;
use tally::Tally;

/// Key prefix of model cards in Dynamo's discovery (reference §8.1).
pub const MODEL_CARD_PREFIX: &str = "v1/mdc/";
/// Subjects of log lines begin so; the name of the log follows. One message is one line.
pub const LOG_PREFIX: &str = "log/";
/// Subjects of scraped metrics begin so; the name of the process follows. One message is one whole scrape.
pub const METRICS_PREFIX: &str = "metrics/";
/// Subjects of a frontend's list of instances begin so; the name of the process follows.
pub const HEALTH_PREFIX: &str = "health/";
/// Data-parallel ranks taken from one model card; a card that claims more is believed so far.
const MAX_RANKS: u32 = 256;
/// What a line says is of the present unless the line is older than this. A log is read from its beginning: faults of
/// yesterday are none of today.
pub const FRESH_MS: u64 = 60_000;
/// Largest message that is opened. NATS allows 1 MiB by default, 64 MiB at most; Dynamo's own stay below 1 MiB.
pub const MAX_PAYLOAD_BYTES: usize = 8 * 1024 * 1024;

/// Longest line of a log that is read, in bytes: room for the tokens hashes of a prompt of 12,000 blocks. Sources hand
/// over one byte more of a longer one, so that it is counted.
pub const MAX_LOG_LINE_BYTES: usize = 256 * 1024;

/// A message as a source received it.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Who received it.
    pub source: SourceIx,
    /// When it was received, or stored by the broker if it is history.
    pub at_ms: Millis,
    /// Where it was published; for a model card its key in discovery, for a line of a log [`LOG_PREFIX`] and its name.
    pub subject: &'a str,
    /// Where an answer was asked for.
    pub reply: Option<&'a str>,
    /// Its bytes.
    pub payload: &'a [u8],
}

/// Takes records as they arise.
pub type Out<'o> = dyn FnMut(Entry<'_>) + 'o;

/// Something said of a request: what it means depends on what others say of the same request, and on the state.
#[derive(Debug)]
pub struct Told<'a> {
    /// Who received it.
    pub source: SourceIx,
    /// When it was received.
    pub at_ms: Millis,
    /// When it was said, by the clock of who said it, if it tells.
    pub said_ms: Option<Millis>,
    /// What time it is for who speaks, see [`Ingest::now`].
    pub now_ms: Millis,
    /// What was said.
    pub said: Said<'a>,
}

/// What can be said of a request. Workers are known to the state by the time this is told.
#[derive(Debug)]
pub enum Said<'a> {
    /// A router published the hit rate of a choice (0.8, 0.9).
    HitRate {
        /// The chosen worker.
        worker: WorkerIx,
        /// Publisher id of the router.
        router: Option<u64>,
        /// Prompt length in blocks, rounded up.
        isl_blocks: u64,
        /// Blocks of it that the worker held.
        overlap_blocks: u64,
    },
    /// A step in a request's life.
    Sequence {
        /// Where it runs.
        worker: WorkerIx,
        /// What happened to which request.
        step: &'a ActiveSequence<'a>,
    },
    /// A line of a log.
    Line {
        /// Name of the log. Lines of one log come in order.
        log: &'a str,
        /// What it says.
        line: &'a LogLine<'a>,
        /// The worker it names.
        worker: Option<WorkerIx>,
    },
    /// A request's trace, at its end.
    Trace {
        /// What it says.
        trace: &'a RequestTrace<'a>,
        /// Where it was prefilled, or where it ran.
        worker: Option<WorkerIx>,
    },
}

/// What a message tells of who published it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Published {
    /// When, by the publisher's clock.
    pub said_ms: Option<Millis>,
    /// Whether a worker published under its own id, as it does up to Dynamo 1.2.
    pub is_own_id: Option<bool>,
}

/// Takes what messages become.
pub trait Sink {
    /// Takes a record.
    fn record(&mut self, entry: Entry<'_>);
    /// Takes a record of a KV event, with what is known of its publisher.
    fn kv_event(&mut self, entry: Entry<'_>, by: Published);
    /// Takes something said of a request.
    fn told(&mut self, told: Told<'_>);
    /// There is no place for another worker at `at`: who may give theirs away, because they have departed. They are told
    /// of as [`Record::Vacated`] next. `mentioned`: when somebody spoke of a worker last.
    fn vacate(&mut self, at: Millis, mentioned: &dyn Fn(WorkerIx) -> Millis) -> Vec<WorkerIx> {
        let _ = (at, mentioned);
        Vec::new()
    }
}

/// Turns messages into records.
#[derive(Default)]
pub struct Ingest {
    subjects: Subjects,
    interner: Interner,
    publishers: Publishers,
    gaps: Gaps,
    event_ids: EventIds,
    /// The last break of each source's connection.
    last_breaks: BTreeMap<SourceIx, Break>,
    /// Messages taken so far.
    messages: u64,
    instances: Instances,
    scrapes: Scrapes,
    tallies: Vec<Tally>,
    signs: Signs,
    /// Latest time that a message or a line told.
    clock: Option<Millis>,
    kv: KvEvents,
}

/// How somebody speaks of a worker.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mention {
    /// The worker itself, or who sends it requests or lists it as present: it is there.
    Present,
    /// A gauge that may be there long after its worker: takes nobody's place.
    Weak,
}

impl Ingest {
    /// That keeps at most so many workers apart at a time; otherwise [`radixscope_state::cluster::MAX_WORKERS`].
    pub fn with_places(places: usize) -> Self {
        Self { interner: Interner::with_places(places), ..Self::default() }
    }

    /// Announces a source; must come before anything else about it. `None`: there are [`MAX_SOURCES`] already.
    pub fn source(
        &mut self,
        name: &str,
        kind: SourceKind,
        at_ms: Millis,
        out: &mut Out<'_>,
    ) -> Option<SourceIx> {
        if self.tallies.len() == MAX_SOURCES {
            return None;
        }
        let source = SourceIx(self.tallies.len() as u8);
        self.tallies.push(Tally::default());
        out(Entry { at_ms, record: Record::Source { source, name: name.into(), kind } });
        Some(source)
    }

    /// Takes one message. Copies that JetStream delivers to routers are passed over.
    pub fn message(&mut self, message: Message<'_>, out: &mut dyn Sink) {
        if message.source.at() >= self.tallies.len() || subject::is_delivery_copy(message.reply) {
            return;
        }
        self.tallies[message.source.at()].received += 1;
        self.messages += 1;
        let topic = self.take(&message, out);
        if let Err((topic, faults)) = topic {
            for (error, count) in faults.iter() {
                self.tallies[message.source.at()].reject(topic, error, count);
            }
        }
    }

    /// Loss that a source itself noticed.
    pub fn missed(&mut self, source: SourceIx, topic: Topic, cause: MissedCause, count: u64) {
        if let Some(tally) = self.tallies.get_mut(source.at()) {
            tally.miss(None, topic, cause, count);
        }
    }

    /// What a source knows to be missing before the next message it hands over. A loss counts once: what has a number
    /// by the publisher's numbers, what was dropped here where it was dropped, and what our client dropped on a topic
    /// with numbers not at all, because its numbers tell.
    pub fn missing(&mut self, source: SourceIx, missing: &Missing) {
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
            self.last_breaks.insert(source, at);
        }
        for &(topic, at) in &missing.unknown {
            self.gaps.unknown(source, topic, at);
        }
    }

    fn skipped(&mut self, stream: Stream, from: u64, to: u64) {
        let place = self.publishers.skipped(stream, from, to, self.messages + 1);
        self.placed(stream, &place, from, None);
        // Up to 0.9 a worker publishes under its own id.
        let worker =
            match self.interner.ranks_of(radixscope_model::id::WorkerId(stream.publisher_id)).as_slice() {
                [(_, worker)] if stream.topic == Topic::KvEvents => Some(*worker),
                _ => None,
            };
        self.tallies[stream.source.at()].miss(worker, stream.topic, MissedCause::QueueFull, to - from);
    }

    /// Says what was summed up since the last call: traffic, losses, what was not understood. Call it about once a
    /// second; it says nothing when nothing changed. A gap between two messages counts as loss at the second call
    /// after it: until then the missing ones may come late.
    pub fn flush(&mut self, at_ms: Millis, out: &mut Out<'_>) {
        for lost in self.publishers.settle() {
            self.lost(&lost);
        }
        for (i, tally) in self.tallies.iter_mut().enumerate() {
            tally.flush(SourceIx(i as u8), &mut |record| out(Entry { at_ms, record }));
        }
        self.gaps.flush(&mut |record| out(Entry { at_ms, record }));
        for ((sign, id), count) in self.signs.flush(self.now(at_ms)) {
            let known = id.and_then(|id| Some((id, self.interner.intern(id, "", "")?)));
            if let Some((id, (worker, true))) = known {
                let (namespace, component) = (Cow::Borrowed(""), Cow::Borrowed(""));
                out(Entry { at_ms, record: Record::Worker { worker, id, namespace, component } });
            }
            let worker = known.map(|(_, (worker, _))| worker);
            out(Entry { at_ms, record: Record::LogSign { worker, sign, count } });
        }
    }

    /// The latest time that any message or line told, else `at_ms`: the present of the deployment. Recorded traffic has
    /// another than we have.
    pub fn now(&self, at_ms: Millis) -> Millis {
        self.clock.unwrap_or(at_ms)
    }

    /// Takes a time that was told. One that is ahead of ours by more than clocks are is passed over: it would make
    /// everything else old.
    fn hear_time(&mut self, told: Millis, at_ms: Millis) {
        if told.0 <= at_ms.0.saturating_add(FRESH_MS) {
            self.clock = self.clock.max(Some(told));
        }
    }

    fn take(&mut self, message: &Message<'_>, out: &mut dyn Sink) -> Result<(), (Topic, Faults)> {
        if message.subject.starts_with(MODEL_CARD_PREFIX) {
            return self.model_card(message, out).map_err(|error| (Topic::ModelCard, error.into()));
        }
        if let Some(log) = message.subject.strip_prefix(LOG_PREFIX) {
            return self.log_line(message, log, out).map_err(|error| (Topic::Log, error.into()));
        }
        if let Some(process) = message.subject.strip_prefix(METRICS_PREFIX) {
            return self.metrics(message, process, out).map_err(|faults| (Topic::Metrics, faults));
        }
        if let Some(frontend) = message.subject.strip_prefix(HEALTH_PREFIX) {
            return self.health(message, frontend, out).map_err(|error| (Topic::Health, error.into()));
        }
        let Some(subject) = self.subjects.parse(message.subject) else {
            let text = format!("subject {:?} is none of Dynamo's", message.subject);
            return Err((Topic::Other, DecodeError::new(Reason::UnknownKind, text).into()));
        };
        let topic = subject.topic;
        within_bounds(message).map_err(|error| (topic, error.into()))?;
        if topic == Topic::RequestTrace {
            return self.trace(message, out).map_err(|error| (topic, error.into()));
        }
        let body = envelope::open(message.payload).map_err(|error| (topic, error.into()))?;
        let (payload, format) = body.payload();
        let context = Context { message, subject, envelope: body.envelope().copied(), payload, format };
        match topic {
            Topic::KvEvents => self.kv_events(&context, out),
            Topic::KvHitRate => self.hit_rate(&context, out).map_err(Faults::from),
            Topic::KvMetrics => self.load(&context, out).map_err(Faults::from),
            Topic::ActiveSequences => self.sequences(&context, out),
            Topic::ModelCard
            | Topic::RequestTrace
            | Topic::Log
            | Topic::Metrics
            | Topic::Health
            | Topic::Other => Ok(()),
        }
        .map_err(|faults| (topic, faults))
    }

    fn kv_events(&mut self, context: &Context<'_>, out: &mut dyn Sink) -> Result<(), Faults> {
        // The scratch leaves `self` while records borrow from it.
        let mut kv = std::mem::take(&mut self.kv);
        let understood = kv.decode(context.payload, context.format);
        self.heard(context, kv.events.first().map(|event| event.worker), out);
        let line = match context.subject.transport {
            Transport::JetStream => EventLine::JetStream,
            Transport::Core => EventLine::Core,
        };
        for event in &kv.events {
            if let Some(worker) = self.worker(context, event.worker, out) {
                if self.interner.comes_newly_by(worker, line) {
                    let first_event_id = event.event_id;
                    out.record(context.entry(Record::EventLine { worker, line, first_event_id }));
                }
                if kv.batch {
                    self.event_id(context, worker, event);
                }
                let by = context.published(event.worker);
                out.kv_event(context.entry(kv_record(worker, event, &kv)), by);
            }
        }
        self.kv = kv;
        understood
    }

    fn hit_rate(&mut self, context: &Context<'_>, out: &mut dyn Sink) -> Result<(), DecodeError> {
        let said = HitRate::decode(context.payload, context.format);
        self.heard(context, None, out);
        let said = said?;
        if let Some(worker) = self.worker(context, said.worker, out) {
            let (isl_blocks, overlap_blocks) = (said.isl_blocks, said.overlap_blocks);
            let router = context.publisher_id();
            out.told(context.told(self, Said::HitRate { worker, router, isl_blocks, overlap_blocks }));
        }
        Ok(())
    }

    fn load(&mut self, context: &Context<'_>, out: &mut dyn Sink) -> Result<(), DecodeError> {
        let said = ActiveLoad::decode(context.payload, context.format);
        self.heard(context, said.as_ref().ok().map(|load| load.worker), out);
        let said = said?;
        let origin = said.origin(context.publisher_id());
        let mention = if let LoadOrigin::Engine { .. } = origin { Mention::Present } else { Mention::Weak };
        let at = context.message.at_ms;
        let Some(worker) = self.mentioned(context, said.worker, at, mention, out) else { return Ok(()) };
        let record = match origin {
            LoadOrigin::Engine { used_blocks } => Record::EngineLoad { worker, used_blocks },
            LoadOrigin::Router { decode_blocks, prefill_tokens } => {
                Record::RouterLoad { worker, router: context.publisher_id(), decode_blocks, prefill_tokens }
            }
            LoadOrigin::Nothing => return Ok(()),
        };
        out.record(context.entry(record));
        Ok(())
    }

    fn sequences(&mut self, context: &Context<'_>, out: &mut dyn Sink) -> Result<(), Faults> {
        let mut steps = Vec::new();
        let understood = active_sequence::decode(context.payload, context.format, &mut steps);
        self.heard(context, steps.first().filter(|s| s.by_worker).map(|s| s.worker), out);
        for step in steps {
            if let Some(worker) = self.worker(context, step.worker, out) {
                let record = Record::Sequence { worker, step: step.step.kind(), by_worker: step.by_worker };
                out.record(context.entry(record));
                out.told(context.told(self, Said::Sequence { worker, step: &step }));
            }
        }
        understood
    }

    fn log_line(&mut self, message: &Message<'_>, log: &str, out: &mut dyn Sink) -> Result<(), DecodeError> {
        if message.payload.len() > MAX_LOG_LINE_BYTES {
            let text = format!("more than {MAX_LOG_LINE_BYTES} bytes without a line feed");
            return Err(DecodeError::new(Reason::TooLarge, text));
        }
        let Some(line) = log_line::decode(message.payload)? else { return Ok(()) };
        let at_ms = line.at_ms().unwrap_or(message.at_ms);
        self.hear_time(at_ms, message.at_ms);
        if let log_line::Said::Sign { sign, worker } = line.said {
            self.signs.said(at_ms, sign, worker);
            return Ok(());
        }
        let context = Context::without_subject(message, Topic::Log);
        // Of the line's own time: who is named in an old line takes no place from who is there now.
        let mut mentioned = |id| self.mentioned(&context, id, at_ms, Mention::Present, out);
        let worker = line.said.worker().and_then(&mut mentioned);
        out.told(context.told(self, Said::Line { log, line: &line, worker }));
        Ok(())
    }

    fn trace(&mut self, message: &Message<'_>, out: &mut dyn Sink) -> Result<(), DecodeError> {
        let Some(trace) = trace::decode(message.payload)? else { return Ok(()) };
        let context = Context::without_subject(message, Topic::RequestTrace);
        // The prefill worker's cache is the one that was matched.
        let id = trace.prefill_worker.or(trace.decode_worker);
        let worker = id.and_then(|id| self.worker(&context, id, out));
        out.told(context.told(self, Said::Trace { trace: &trace, worker }));
        Ok(())
    }

    fn model_card(&mut self, message: &Message<'_>, out: &mut dyn Sink) -> Result<(), DecodeError> {
        let Some(card) = ModelCard::decode(message.payload)? else { return Ok(()) };
        let subject = Subject {
            topic: Topic::ModelCard,
            namespace: &card.namespace,
            component: &card.component,
            endpoint: "",
            transport: Transport::Core,
        };
        let context =
            Context { message, subject, envelope: None, payload: message.payload, format: Format::Json };
        let first = card.runtime.data_parallel_start_rank.unwrap_or(0);
        let ranks = card.runtime.data_parallel_size.unwrap_or(1).clamp(1, MAX_RANKS);
        for rank in first..first.saturating_add(ranks) {
            if let Some(worker) = self.worker(&context, Worker::new(card.instance_id.0, rank), out) {
                let record = Record::ModelCard {
                    worker,
                    total_kv_blocks: card.runtime.total_kv_blocks,
                    block_size_tokens: card.block_size_tokens,
                };
                out.record(context.entry(record));
            }
        }
        Ok(())
    }

    /// Index of a worker, introduced if it is new. `None`: there are too many, which is counted.
    fn worker(&mut self, context: &Context<'_>, id: Worker, out: &mut dyn Sink) -> Option<WorkerIx> {
        self.mentioned(context, id, context.message.at_ms, Mention::Present, out)
    }

    /// Index of a worker that somebody spoke of at `at`; see [`Self::worker`].
    fn mentioned(
        &mut self,
        context: &Context<'_>,
        id: Worker,
        at: Millis,
        mention: Mention,
        out: &mut dyn Sink,
    ) -> Option<WorkerIx> {
        let (namespace, component) = (context.subject.namespace, context.subject.component);
        let is_present = mention == Mention::Present;
        if !is_present && self.interner.has_departed(id) {
            return None;
        }
        let mut known = self.interner.intern(id, namespace, component);
        if known.is_none() && is_present && self.vacate(context, at, out) {
            known = self.interner.intern(id, namespace, component);
        }
        let Some((worker, news)) = known else {
            let source = context.message.source.at();
            self.tallies[source].miss(None, context.subject.topic, MissedCause::TooManyWorkers, 1);
            return None;
        };
        if is_present || news {
            self.interner.mention(worker, at);
        }
        if news {
            let namespace = Cow::Borrowed(context.subject.namespace);
            let component = Cow::Borrowed(context.subject.component);
            let record = Record::Worker { worker, id, namespace, component };
            out.record(context.entry(record));
        }
        Some(worker)
    }

    /// Frees places of departed workers; says whether there are any.
    fn vacate(&mut self, context: &Context<'_>, at: Millis, out: &mut dyn Sink) -> bool {
        let interner = &self.interner;
        let workers = out.vacate(at, &|worker| interner.mentioned(worker));
        if workers.is_empty() {
            return false;
        }
        self.interner.vacate(&workers);
        self.publishers.vacate(&workers);
        self.event_ids.vacate(&workers);
        self.tallies.iter_mut().for_each(|tally| tally.vacate(&workers));
        out.record(context.entry(Record::Vacated { workers: workers.into() }));
        true
    }

    /// Follows the envelope's sequence and clock. `about` is the worker the message is about, if it is about one.
    fn heard(&mut self, context: &Context<'_>, about: Option<Worker>, out: &mut dyn Sink) {
        let (source, topic) = (context.message.source, context.subject.topic);
        if context.subject.transport == Transport::Core {
            self.gaps.heard(source, topic, context.envelope.is_some());
        }
        let Some(envelope) = &context.envelope else { return };
        self.tallies[source.at()].lag(context.message.at_ms, envelope.published_at);
        self.hear_time(envelope.published_at, context.message.at_ms);
        let stream = Stream { source, topic: context.subject.topic, publisher_id: envelope.publisher_id };
        let place = self.publishers.heard(stream, envelope.sequence, self.messages);
        // Up to 0.9 a worker publishes under its own id, so what is lost is known to be its own. Later the
        // worker's event ids tell, and more exactly (reference §2.4, §2.6).
        let own = match place.heard {
            Heard::Gap(_) => about.filter(|worker| worker.id.0 == envelope.publisher_id),
            _ => None,
        };
        let worker = own.and_then(|id| self.worker(context, id, out));
        self.placed(stream, &place, envelope.sequence, worker);
    }

    /// What the place of a message in its publisher's count tells.
    fn placed(&mut self, stream: Stream, place: &Place, sequence: u64, worker: Option<WorkerIx>) {
        let Stream { source, topic, publisher_id } = stream;
        match place.heard {
            Heard::InOrder => {}
            Heard::Gap(missing) => {
                if let Some(lost) = self.publishers.open(stream, worker, missing) {
                    self.lost(&lost);
                }
            }
            Heard::Implausible(jump) => {
                let text = format!("sequence of publisher {publisher_id} jumped by {jump}");
                let error = DecodeError::new(Reason::Malformed, text);
                self.tallies[source.at()].reject(topic, &error, 1);
            }
        }
        if place.is_first_after_break {
            self.gaps.spoke(source, topic);
        }
        if place.is_new
            && sequence > 0
            && let Some(&last) = self.last_breaks.get(&source)
        {
            self.gaps.begins_late(source, topic, last);
        }
    }

    fn lost(&mut self, lost: &Lost) {
        let tally = &mut self.tallies[lost.stream.source.at()];
        tally.miss(lost.worker, lost.stream.topic, MissedCause::EnvelopeGap, lost.count);
    }

    /// Follows a worker's event ids where they are contiguous (≥ 1.1; a batch proves ≥ 1.4).
    fn event_id(&mut self, context: &Context<'_>, worker: WorkerIx, event: &KvEvent) {
        let lost = self.interner.event_id(worker, event.event_id);
        let last = self.event_ids.heard(worker, self.messages);
        if lost == 0 {
            return;
        }
        let (source, topic) = (context.message.source, context.subject.topic);
        let stream = context.publisher_id().map(|publisher_id| Stream { source, topic, publisher_id });
        let is_counted = stream.is_some_and(|stream| self.publishers.jumped_at(stream) > last);
        let cause = if is_counted { MissedCause::EventsInLost } else { MissedCause::EventIdGap };
        self.tallies[source.at()].miss(Some(worker), topic, cause, lost);
    }
}

/// Whether a message is small enough to be opened.
fn within_bounds(message: &Message<'_>) -> Result<(), DecodeError> {
    if message.payload.len() > MAX_PAYLOAD_BYTES {
        let text = format!("{} bytes; at most {MAX_PAYLOAD_BYTES} are read", message.payload.len());
        return Err(DecodeError::new(Reason::TooLarge, text));
    }
    Ok(())
}

/// A message, opened.
struct Context<'a> {
    message: &'a Message<'a>,
    subject: Subject<'a>,
    envelope: Option<Envelope<'a>>,
    /// The topic's own bytes.
    payload: &'a [u8],
    format: Format,
}

impl<'a> Context<'a> {
    /// Of a message whose subject names neither namespace nor component.
    fn without_subject(message: &'a Message<'a>, topic: Topic) -> Self {
        let transport = Transport::Core;
        let subject = Subject { topic, namespace: "", component: "", endpoint: "", transport };
        Self { message, subject, envelope: None, payload: message.payload, format: Format::Json }
    }

    /// A record of the message's time.
    fn entry<'r>(&self, record: Record<'r>) -> Entry<'r> {
        Entry { at_ms: self.message.at_ms, record }
    }

    fn publisher_id(&self) -> Option<u64> {
        self.envelope.map(|envelope| envelope.publisher_id)
    }

    /// What is known of the publisher of an event of `worker`.
    fn published(&self, worker: Worker) -> Published {
        let said_ms = self.envelope.map(|envelope| envelope.published_at);
        Published { said_ms, is_own_id: self.publisher_id().map(|id| id == worker.id.0) }
    }

    /// What is said of a request, at the message's time.
    fn told<'s>(&self, ingest: &Ingest, said: Said<'s>) -> Told<'s> {
        let Message { source, at_ms, .. } = *self.message;
        let said_ms = self.envelope.map(|envelope| envelope.published_at);
        Told { source, at_ms, said_ms, now_ms: ingest.now(at_ms), said }
    }
}

fn kv_record<'k>(worker: WorkerIx, event: &KvEvent, kv: &'k KvEvents) -> Record<'k> {
    let in_device_memory = event.tier == StorageTier::Device && event.domain == ResidencyDomain::Worker;
    match &event.data {
        KvData::Stored { parent, blocks, .. } if in_device_memory => {
            Record::Stored { worker, parent: *parent, blocks: Cow::Borrowed(kv.blocks_of(blocks)) }
        }
        KvData::Removed { hashes } if in_device_memory => {
            Record::Removed { worker, hashes: Cow::Borrowed(kv.removed_of(hashes)) }
        }
        KvData::Cleared if in_device_memory => Record::Cleared { worker, all_ranks: !kv.batch },
        KvData::Stored { blocks, .. } => {
            Record::OtherTier { worker, stored: blocks.len() as u32, removed: 0 }
        }
        KvData::Removed { hashes } => Record::OtherTier { worker, stored: 0, removed: hashes.len() as u32 },
        KvData::Cleared => Record::OtherTier { worker, stored: 0, removed: 0 },
    }
}
