//! Events on their way to the state: how each changes what is known, and whether it is applied.

use radixscope_dynamo::kv_event::{KvData, KvEvent, KvEvents, ResidencyDomain, StorageTier};
use radixscope_model::id::{Millis, SourceIx, Worker, WorkerIx};
use radixscope_model::record::{Entry, EventTransport, KnowledgeWhy, Record, TreeKnowledge};

use super::watched::{AttachState, WantedQuery};
use super::{Attach, target};
use crate::ingest::Sink;

/// Ids of a worker that fall by more are those of another process; by less, events overtook each other.
const RESTART_EVENTS: u64 = 1_024;

/// What is known around an event.
#[derive(Clone, Copy)]
pub(crate) struct EventContext {
    pub(crate) worker: WorkerIx,
    pub(crate) id: Worker,
    pub(crate) source: SourceIx,
    pub(crate) at_ms: Millis,
    pub(crate) line: EventTransport,
    /// Publisher and number of the message.
    pub(crate) publisher_id: Option<u64>,
    pub(crate) sequence: Option<u64>,
}

impl Attach {
    /// An event of `worker` is on its way, in message `sequence` of a publisher. `true`: it is just the next one, so that it is to be
    /// applied and there is no more to it. `false`: it is still to be looked at, see [`Attach::event`].
    #[inline]
    pub(crate) fn goes_on(
        &mut self,
        worker: WorkerIx,
        source: SourceIx,
        publisher_id: Option<u64>,
        sequence: Option<u64>,
        event: &KvEvent,
        is_contiguous: bool,
    ) -> bool {
        let watched = self.workers.of(worker);
        let Some(last) = watched.last_event_id else { return false };
        let follows =
            if is_contiguous { event.event_id == last.wrapping_add(1) } else { event.event_id >= last };
        let goes_on = follows
            && watched.is_quiet()
            && watched.source == Some(source)
            && watched.publisher_id == publisher_id
            && sequence != Some(0)
            && !matches!(event.data, KvData::Cleared);
        if goes_on {
            watched.last_event_id = Some(event.event_id);
        }
        goes_on
    }

    /// An event is on its way that is not just the next one. `false`: a response holds it already, so that it is not to be applied.
    pub(crate) fn event(
        &mut self,
        live: &EventContext,
        event: &KvEvent,
        kv: &KvEvents,
        out: &mut dyn Sink,
    ) -> bool {
        self.now = self.now.max(live.at_ms);
        // Events of a worker that left are late; if it is back, this event shows it to the state.
        if out.cluster().worker(live.worker).is_some_and(|state| state.departure.is_some()) {
            return true;
        }
        let (ix, gaps) = (live.worker, self.gaps);
        let watched = self.workers.of(ix);
        watched.id = Some(live.id);
        if watched.source.is_some() && watched.publisher_id != live.publisher_id {
            if live.publisher_id == watched.retired_id && live.publisher_id.is_some() {
                return false;
            }
            // An engine counts anew only when it begins anew.
            let is_engine = live.line == EventTransport::Engine;
            if is_engine || watched.last_event_id.is_none_or(|last| event.event_id != last.wrapping_add(1)) {
                self.restarted(live, out);
            }
        } else if is_restart(watched, live, event) {
            self.restarted(live, out);
        }
        let is_anew = is_its_first(live, event, kv) || live.line == EventTransport::Engine;
        if std::mem::take(&mut self.workers.of(ix).is_resumed) && is_anew {
            // It begins anew, or its stream is read from the beginning: what is kept of it is of before.
            self.restarted(live, out);
        }
        let watched = self.workers.of(ix);
        let before = (watched.want, watched.known, watched.is_broken, watched.source);
        let is_first = watched.source.is_none();
        watched.left_whole &= !is_first;
        watched.source = Some(live.source);
        watched.publisher_id = live.publisher_id.or(watched.publisher_id);
        watched.is_contiguous = kv.batch;
        watched.is_stream = live.line == EventTransport::JetStream;
        watched.is_engine = live.line == EventTransport::Engine;
        let applies = if is_first { first(watched, live, event, kv) } else { next(watched, event) };
        if is_cleared(event) && applies {
            cleared(watched);
            watched.covered = gaps;
        }
        let was_queueing = watched.query.is_some() || watched.kept_since.is_some();
        let has_room = !was_queueing || watched.queue.push(event, kv);
        watched.last_event_id = match kv.batch {
            true => watched.last_event_id.max(Some(event.event_id)),
            false => Some(event.event_id),
        };
        if before != (watched.want, watched.known, watched.is_broken, watched.source) {
            self.due = Some(Millis(0));
        }
        if !has_room {
            let watched = self.workers.of(ix);
            watched.kept_since = None;
            let query = watched.query.take();
            let want = query.as_ref().map_or(watched.want, |query| query.want);
            if let Some(query) = query {
                self.cancel(query.id);
            }
            self.failed(ix, want, "its events came faster than its response");
        }
        self.record_knowledge(ix, live.at_ms, out);
        applies
    }

    /// Another process speaks for a worker: what the one before held is gone.
    fn restarted(&mut self, live: &EventContext, out: &mut dyn Sink) {
        let ix = live.worker;
        let watched = self.workers.of(ix);
        watched.retired_id = watched.publisher_id.filter(|&id| Some(id) != live.publisher_id);
        watched.publisher_id = live.publisher_id;
        if let Some(query) = watched.forget() {
            self.cancel(query.id);
        }
        if let Some(pool) = out.cluster().pool_of(ix) {
            let nothing = target::Target::new(ix.slot()).difference(out.cluster(), pool, false);
            out.record(Entry { at_ms: live.at_ms, record: Record::TreeDumpBegan { worker: ix } });
            nothing.record(ix, &mut |record| out.record(Entry { at_ms: live.at_ms, record }));
        }
        let watched = self.workers.of(ix);
        watched.known = (TreeKnowledge::Partial, KnowledgeWhy::Restarted);
        watched.want = WantedQuery::Dump;
    }
}

/// Whether another process begins, under the same publisher id.
fn is_restart(watched: &AttachState, live: &EventContext, event: &KvEvent) -> bool {
    if live.line == EventTransport::JetStream || watched.source.is_none() {
        return false;
    }
    let Some(last) = watched.last_event_id else { return false };
    let begins = live.sequence == Some(0) && event.event_id <= 1 && last > 1;
    begins || event.event_id.saturating_add(RESTART_EVENTS) < last
}

/// Whether this is the first event of a worker.
fn is_its_first(live: &EventContext, event: &KvEvent, kv: &KvEvents) -> bool {
    match event.event_id {
        0 => true,
        1 => kv.batch || live.sequence.is_none_or(|sequence| sequence == 0),
        _ => false,
    }
}

/// The first event of a worker that was received.
fn first(watched: &mut AttachState, live: &EventContext, event: &KvEvent, kv: &KvEvents) -> bool {
    if is_its_first(live, event, kv) {
        let is_history = live.line == EventTransport::JetStream;
        let why = if is_history { KnowledgeWhy::History } else { KnowledgeWhy::FromFirstEvent };
        watched.known = (TreeKnowledge::Complete, why);
        watched.want = WantedQuery::Nothing;
        return true;
    }
    let Some(joining) = watched.joining.or(watched
        .last_event_id
        .map(|last| super::watched::Joining { since_ms: live.at_ms, from: Some(last.saturating_add(1)) }))
    else {
        // It may be queried already.
        if watched.known.0 == TreeKnowledge::Unknown {
            watched.known = (TreeKnowledge::Partial, KnowledgeWhy::JoinedLate);
        }
        if !watched.is_complete() && watched.want == WantedQuery::Nothing && watched.query.is_none() {
            watched.want = WantedQuery::Dump;
        }
        return true;
    };
    // It was queried before: its response's number tells whether this event follows it.
    watched.joining = Some(joining);
    watched.is_received_now();
    next(watched, event)
}

/// An event after others of the same process.
fn next(watched: &mut AttachState, event: &KvEvent) -> bool {
    // An id may be shared by several events where they come one by one, so that the last is taken once more.
    let from = watched.joining.and_then(|joining| joining.from);
    let passes = if watched.is_contiguous { 0 } else { 1 };
    if from.is_some_and(|from| event.event_id.saturating_add(passes) < from) {
        return false;
    }
    if let Some(last) = watched.last_event_id.filter(|_| watched.is_contiguous) {
        let next = last.saturating_add(1);
        if event.event_id > next {
            watched.lost_from(next);
            watched.has_gap = true;
            watched.doubt(KnowledgeWhy::EventsLost);
        } else if event.event_id == next && watched.is_broken {
            watched.went_on();
        }
    } else if watched.is_stream && watched.is_broken {
        // The source reads the stream on from where it was, or says that it cannot.
        if watched.last_event_id.is_some_and(|last| (last..=last.saturating_add(1)).contains(&event.event_id))
        {
            watched.went_on();
        }
    }
    watched.is_broken = false;
    true
}

fn is_cleared(event: &KvEvent) -> bool {
    event.data == KvData::Cleared
        && event.tier == StorageTier::Device
        && event.domain == ResidencyDomain::Worker
}

/// It holds nothing: everything is known.
fn cleared(watched: &mut AttachState) {
    if !watched.is_complete() {
        watched.known = (TreeKnowledge::Complete, KnowledgeWhy::Cleared);
        watched.was = None;
    }
    watched.want = WantedQuery::Nothing;
    watched.has_gap = false;
    watched.gap = None;
    if let Some(query) = &mut watched.query {
        query.is_overtaken = false;
    }
}
