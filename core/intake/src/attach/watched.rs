//! What is known of one worker (a process's rank) whose events are followed: how far, what is missing, what is queried.

use std::collections::HashSet;

use radixscope_dynamo::request_plane::QueryEndpoint;
use radixscope_model::id::{BlockHash, Millis, SourceIx, Worker};
use radixscope_model::record::{KnowledgeWhy, MissedCause, QueryState, Topic, TreeKnowledge};

use super::queue::Queue;

/// Events after a response's number that it may hold all the same: measured were 664 at most.
const OVERLAP_EVENTS: u64 = 1_024;
/// The same in time.
const OVERLAP_MS: u64 = 2_000;
/// A worker that is slow to number more events has none of that time on its way any more.
const OVERLAP_AT_MOST_MS: u64 = 10_000;

/// See the module.
#[derive(Default)]
pub(super) struct AttachState {
    /// Its id; `None`: the slot is free.
    pub(super) id: Option<Worker>,
    /// Who received its last event. `None`: no event of it was received since it is there.
    pub(super) source: Option<SourceIx>,
    /// Publisher of its events.
    pub(super) publisher_id: Option<u64>,
    /// The one before.
    pub(super) retired_id: Option<u64>,
    /// Id of its latest event.
    pub(super) last_event_id: Option<u64>,
    /// Whether its ids count up by one (≥ 1.4).
    pub(super) is_contiguous: bool,
    pub(super) known: (TreeKnowledge, KnowledgeWhy),
    /// What is kept of it was received before a time in which nothing was, and no event since.
    pub(super) is_resumed: bool,
    /// Why everything was known before something was lost.
    pub(super) was: Option<KnowledgeWhy>,
    pub(super) want: WantedQuery,
    /// Events are missing for certain: nothing but a response makes it whole again.
    pub(super) has_gap: bool,
    /// Messages that are missing and may still come late: the event before the first of them, and the latest such gap.
    pub(super) gap: Option<Gap>,
    /// Gaps up to this one were there when what was answered last was requested.
    pub(super) covered: u64,
    /// Its events come from a stream that is read again after a break.
    pub(super) is_stream: bool,
    /// Its events come from the engine itself, which answers no query.
    pub(super) is_engine: bool,
    /// Its responses have no number, so that events are kept for a while before it is queried.
    pub(super) is_unnumbered: bool,
    /// Since when they are kept.
    pub(super) kept_since: Option<Millis>,
    /// Somebody requested it, so that it is queried whatever is set.
    pub(super) is_requested: bool,
    pub(super) query: Option<Query>,
    pub(super) queue: Queue,
    pub(super) joining: Option<Joining>,
    pub(super) failures: u32,
    /// When it may be queried again.
    pub(super) next_ms: Option<Millis>,
    /// When its blocks are compared again.
    pub(super) verify_ms: Option<Millis>,
    /// Blocks in which the last response differed from the tree.
    pub(super) suspects: Option<HashSet<BlockHash>>,
    /// Whether a difference is recorded.
    pub(super) has_drift: bool,
    /// The connection broke, and nothing was received since.
    pub(super) is_broken: bool,
    pub(super) losses: Vec<Loss>,
    /// It left when nothing of what was lost was missing any more. Losses are counted some time after they were repaired.
    pub(super) left_whole: bool,
    /// What was recorded last.
    pub(super) recorded: (QueryState, String),
    /// What went wrong last, in words.
    pub(super) detail: String,
}

/// What a worker is to be queried for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum WantedQuery {
    #[default]
    Nothing,
    /// The events from this one on.
    Events(u64),
    /// All its blocks.
    Dump,
    /// The same, to compare.
    Verify,
}

/// A query that runs.
pub(super) struct Query {
    pub(super) id: u64,
    pub(super) want: WantedQuery,
    pub(super) endpoint: QueryEndpoint,
    pub(super) since_ms: Millis,
    /// Number of the last event that was received before it was queried; `None`: they are not numbered, or none was.
    pub(super) received_id: Option<u64>,
    /// Events were lost, or may have been, after it was queried.
    pub(super) is_overtaken: bool,
    /// The latest gap when it was queried.
    pub(super) gap: u64,
    /// Events were kept for a while before it was queried.
    pub(super) was_queueing: bool,
}

/// Messages of a publisher that did not come yet.
#[derive(Clone, Copy)]
pub(super) struct Gap {
    /// The event before the first of them.
    pub(super) from: u64,
    /// Number of the latest gap.
    pub(super) last: u64,
}

/// After a response, until every event that it may hold has arrived.
#[derive(Clone, Copy)]
pub(super) struct Joining {
    pub(super) since_ms: Millis,
    /// Number of the first event that the response may not hold. `None`: it has none.
    pub(super) from: Option<u64>,
}

/// Losses counted of a worker that may be got back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) source: SourceIx,
    pub(super) topic: Topic,
    pub(super) cause: MissedCause,
    pub(super) count: u64,
}

impl AttachState {
    /// Whether nothing has to be looked at but whether the next event follows the one before.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        self.query.is_none() && self.joining.is_none() && !self.is_broken && self.kept_since.is_none()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.known.0 == TreeKnowledge::Complete
    }

    /// Whether nothing that was lost is missing, nor was when it left.
    pub(super) fn has_everything(&self) -> bool {
        self.left_whole || (self.is_complete() && self.query.is_none() && self.want == WantedQuery::Nothing)
    }

    /// Whether nothing of what was lost is missing as it leaves. Its connection may have broken just before: what was lost by
    /// that alone is not counted.
    fn leaves_whole(&self) -> bool {
        let was_whole = self.known.1 == KnowledgeWhy::ConnectionBroke && self.was.is_some() && !self.has_gap;
        // Messages that did not come, and event ids do not show whether one was lost with them.
        let is_open = self.gap.is_some_and(|gap| gap.last > self.covered);
        (self.has_everything() || was_whole) && !is_open
    }

    /// Everything is known no more. What is lost for certain is worse than what may be.
    pub(super) fn doubt(&mut self, why: KnowledgeWhy) {
        if self.is_complete() {
            self.was = Some(self.known.1);
            self.known = (TreeKnowledge::Partial, why);
        } else if self.known.1 == KnowledgeWhy::ConnectionBroke && why == KnowledgeWhy::EventsLost {
            self.known.1 = why;
        }
    }

    /// Asks for what was lost from an event on, or for everything if not everything was known before.
    pub(super) fn lost_from(&mut self, event_id: u64) {
        self.want = match self.want {
            WantedQuery::Events(from) => WantedQuery::Events(from.min(event_id)),
            WantedQuery::Dump => WantedQuery::Dump,
            WantedQuery::Nothing | WantedQuery::Verify if self.is_complete() || self.was.is_some() => {
                WantedQuery::Events(event_id)
            }
            WantedQuery::Nothing | WantedQuery::Verify => WantedQuery::Dump,
        };
    }

    /// From the event after the last one on, or with it where several share a number, events are lost or may be. A response
    /// that is awaited may be older than they are.
    pub(super) fn lost_since(&mut self, from: Option<u64>, why: KnowledgeWhy) {
        match from {
            Some(from) => self.lost_from(from),
            None => self.want = WantedQuery::Dump,
        }
        if let Some(query) = &mut self.query {
            query.is_overtaken = true;
        } else {
            self.queue = Queue::default();
        }
        self.kept_since = None;
        self.doubt(why);
    }

    /// Its events are received. If it was queried before anything showed that, and nothing was lost since, its response holds.
    pub(super) fn is_received_now(&mut self) {
        let is_awaited = self.known == (TreeKnowledge::Partial, KnowledgeWhy::NoEvents);
        if is_awaited && self.want == WantedQuery::Nothing && self.query.is_none() {
            self.known = (TreeKnowledge::Complete, KnowledgeWhy::Dump);
        }
    }

    /// The first event after the last one that was received.
    pub(super) fn next_event(&self) -> Option<u64> {
        self.last_event_id.map(|last| last.saturating_add(u64::from(self.is_contiguous)))
    }

    /// The next event after a break shows that none was lost. It does not show what was lost before.
    pub(super) fn went_on(&mut self) {
        if self.query.is_none() && !self.has_gap && self.was.is_some() {
            self.is_broken = false;
            self.want = WantedQuery::Nothing;
            self.restore();
        }
    }

    /// Nothing was lost after all.
    pub(super) fn restore(&mut self) {
        if let Some(why) = self.was.take() {
            self.known = (TreeKnowledge::Complete, why);
        }
    }

    pub(super) fn lose(&mut self, loss: Loss) {
        let same = |known: &&mut Loss| {
            (known.source, known.topic, known.cause) == (loss.source, loss.topic, loss.cause)
        };
        match self.losses.iter_mut().find(same) {
            Some(known) => known.count = known.count.saturating_add(loss.count),
            None => self.losses.push(loss),
        }
    }

    /// Whether events may still arrive that the response holds.
    pub(super) fn is_joining(&self, now: Millis) -> bool {
        self.joining.is_some_and(|joining| {
            let for_ms = now.since(joining.since_ms);
            let is_past = match (joining.from, self.last_event_id) {
                (Some(from), Some(last)) => last >= from.saturating_add(OVERLAP_EVENTS),
                (None, _) => true,
                (Some(_), None) => false,
            };
            for_ms < OVERLAP_MS || (!is_past && for_ms < OVERLAP_AT_MOST_MS)
        })
    }

    /// Its process began anew, or it left: nothing is known. It goes on to be the same worker.
    pub(super) fn forget(&mut self) -> Option<Query> {
        let left_whole = self.leaves_whole();
        let losses = if left_whole { std::mem::take(&mut self.losses) } else { Vec::new() };
        let query = self.query.take();
        let recorded = std::mem::take(&mut self.recorded);
        *self = Self {
            id: self.id,
            publisher_id: self.publisher_id,
            retired_id: self.retired_id,
            losses,
            left_whole,
            recorded,
            ..Self::default()
        };
        query
    }
}
