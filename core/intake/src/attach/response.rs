//! What workers answer, and how it becomes one with the events that are received.

use std::collections::HashSet;

use radixscope_dynamo::kv_event::KvEvents;
use radixscope_dynamo::tree_query::{QueryFailed, QueryFault, TreeResponse};
use radixscope_model::id::{Millis, Worker, WorkerIx};
use radixscope_model::record::{Divergence, Entry, KnowledgeWhy, Record, TreeKnowledge};

use super::target::{Difference, Target};
use super::watched::{Joining, Query, WantedQuery};
use super::{Attach, queue::Queue};
use crate::ingest::{Sink, kv_record};

/// Time after a response that differs until the worker is queried again.
const AGAIN_MS: u64 = 5_000;
/// Waits after failures in a row: the first, how often it doubles, and what comes then.
const FIRST_WAIT_MS: u64 = 200;
const WAITS: u32 = 8;
const LAST_WAIT_MS: u64 = 5 * 60_000;

impl Attach {
    /// Handles the result of a query. Returns a worker that was not known before.
    pub(crate) fn handle_response(
        &mut self,
        id: u64,
        outcome: &Result<TreeResponse, QueryFailed>,
        at_ms: Millis,
        out: &mut dyn Sink,
    ) -> Option<Worker> {
        self.now = self.now.max(at_ms);
        self.due = Some(Millis(0));
        // None: of a query that is over, or of a worker that left meanwhile.
        let ix = self.running.remove(&id)?;
        let watched = self.workers.of(ix);
        let query = watched.query.take().filter(|query| query.id == id)?;
        let mut new = None;
        let queue = std::mem::take(&mut watched.queue);
        match outcome {
            Ok(TreeResponse::TreeDump { events, .. } | TreeResponse::Events { events, .. })
                if !self.is_its(ix, &query, events) =>
            {
                // Its own process is queried as soon as its endpoint is known.
                let detail = "another process answered than the one whose events are received";
                self.failed(ix, WantedQuery::Dump, detail);
            }
            Ok(TreeResponse::TreeDump { events, last_event_id }) => {
                self.tree(ix, &query, &queue, events, *last_event_id, out);
            }
            Ok(TreeResponse::Events { events, last_event_id }) => {
                self.events(ix, &query, &queue, events, *last_event_id, out);
            }
            Ok(TreeResponse::TooNew { newest_available }) => self.too_new(ix, &query, *newest_available),
            Ok(TreeResponse::Error { rank: Some(rank), .. })
                if !query.endpoint.is_rank_known && *rank != query.endpoint.worker.dp_rank =>
            {
                self.endpoints.has_rank(&query.endpoint, *rank);
                self.meets = true;
                new = Some(Worker { dp_rank: *rank, ..query.endpoint.worker });
            }
            Ok(TreeResponse::Error { message, .. }) => {
                self.failed(ix, query.want, &format!("it refused: {message}"));
            }
            Ok(TreeResponse::TreeDumpFailed { message }) => {
                self.failed(ix, query.want, &format!("it could not list its blocks: {message}"));
            }
            Ok(TreeResponse::InvalidRange) => {
                self.failed(ix, WantedQuery::Dump, "it refused the range of events")
            }
            Err(QueryFailed { why: QueryFault::Cancelled, detail }) if detail.is_empty() => {
                self.failed(ix, query.want, "the query was cancelled");
            }
            Err(failed) => self.failed(ix, query.want, &failed.detail),
        }
        self.record_knowledge(ix, self.now, out);
        new
    }

    /// A query brought nothing: it is repeated later.
    pub(super) fn failed(&mut self, ix: WorkerIx, want: WantedQuery, detail: &str) {
        let now = self.now;
        let watched = self.workers.of(ix);
        watched.queue = Queue::default();
        watched.want = match (watched.want, want) {
            (WantedQuery::Dump, _) => WantedQuery::Dump,
            (lost @ WantedQuery::Events(_), WantedQuery::Verify) => lost,
            (WantedQuery::Events(one), WantedQuery::Events(other)) => WantedQuery::Events(one.min(other)),
            _ => want,
        };
        watched.failures = watched.failures.saturating_add(1);
        watched.detail = detail.chars().take(300).collect();
        let wait = match watched.failures {
            n @ 1..=WAITS => FIRST_WAIT_MS << (n - 1),
            _ => LAST_WAIT_MS,
        };
        watched.next_ms = Some(Millis(now.0.saturating_add(wait)));
        if watched.failures > WAITS {
            watched.is_requested = false;
        }
    }

    /// Whether a response is of the worker and the process whose events are received.
    fn is_its(&self, ix: WorkerIx, query: &Query, events: &KvEvents) -> bool {
        let publisher_id = self.workers.get(ix).and_then(|watched| watched.publisher_id);
        let is_same_process = match (query.endpoint.publisher_id, publisher_id) {
            (Some(asked), Some(received)) => asked == received,
            _ => true,
        };
        is_same_process && events.events.iter().all(|event| event.worker == query.endpoint.worker)
    }

    /// All blocks of a worker, which answered itself.
    fn tree(
        &mut self,
        ix: WorkerIx,
        query: &Query,
        queue: &Queue,
        events: &KvEvents,
        last_event_id: Option<u64>,
        out: &mut dyn Sink,
    ) {
        if last_event_id.is_some() && last_event_id < query.received_id {
            // What came before it was queried was not kept, and would be taken away.
            return self.failed(ix, query.want, "its response is older than events that it published before");
        }
        let watched = self.workers.of(ix);
        if last_event_id.is_none() && !query.was_queueing {
            watched.is_unnumbered = true;
            watched.want = query.want;
            return;
        }
        let Some(pool) = out.cluster().pool_of(ix) else { return };
        let is_contiguous = self.workers.of(ix).is_contiguous;
        // An id may be shared by several events where they come one by one.
        let from = last_event_id.map(|last| last.saturating_add(u64::from(is_contiguous)));
        let mut target = Target::new(ix.slot());
        events.events.iter().for_each(|event| target.replay(&kv_record(ix, event, events)));
        queue.from(from).for_each(|event| target.replay(&kv_record(ix, event, queue.events())));
        let is_verified = query.want == WantedQuery::Verify && self.workers.of(ix).is_complete();
        let difference = target.difference(out.cluster(), pool, is_verified);
        drop(target);
        let is_behind = last_event_id > self.workers.of(ix).last_event_id;
        if is_verified {
            let is_whole = out.cluster().holdings(ix).hidden == 0 && !is_behind && !query.is_overtaken;
            if !self.verified(ix, &difference, is_whole, out) {
                return;
            }
            let at_ms = self.now;
            difference.record(ix, &mut |record| out.record(Entry { at_ms, record }));
        } else {
            let at_ms = self.now;
            out.record(Entry { at_ms, record: Record::TreeDumpBegan { worker: ix } });
            difference.record(ix, &mut |record| out.record(Entry { at_ms, record }));
        }
        self.applied(ix, query, queue, last_event_id, KnowledgeWhy::Dump);
    }

    /// Compares a response with the tree. Returns whether the tree is to follow it.
    fn verified(
        &mut self,
        ix: WorkerIx,
        difference: &Difference,
        is_whole: bool,
        out: &mut dyn Sink,
    ) -> bool {
        let now = self.now;
        let watched = self.workers.of(ix);
        watched.failures = 0;
        watched.is_requested = false;
        watched.joining = Some(Joining { since_ms: now, from: None });
        let names = difference.names();
        let survived: HashSet<_> = match &watched.suspects {
            Some(suspects) => names.intersection(suspects).copied().collect(),
            None => HashSet::new(),
        };
        let again = Some(Millis(now.0.saturating_add(AGAIN_MS)));
        if !is_whole {
            // The response is ahead of the events, or a part of the tree is not kept: nothing to compare.
            watched.verify_ms = None;
            return false;
        }
        if difference.is_none() || survived.is_empty() {
            watched.verify_ms = if difference.is_none() || watched.suspects.is_some() { None } else { again };
            let is_first = watched.suspects.is_none();
            watched.suspects = Some(names).filter(|names| !names.is_empty() && is_first);
            if watched.suspects.is_none() && watched.has_drift {
                watched.has_drift = false;
                let record = Record::Divergence { worker: ix, drift: Divergence::default() };
                out.record(Entry { at_ms: now, record });
            }
            return false;
        }
        let count =
            |names: &mut dyn Iterator<Item = _>| names.filter(|name| survived.contains(name)).count() as u64;
        let drift = Divergence {
            missing_blocks: count(&mut difference.missing_names()),
            surplus_blocks: count(&mut difference.surplus_names()),
            detached_blocks: difference.detached(),
        };
        watched.suspects = None;
        watched.verify_ms = None;
        watched.has_drift = true;
        out.record(Entry { at_ms: now, record: Record::Divergence { worker: ix, drift } });
        true
    }

    /// Events that were missed, of the worker itself.
    fn events(
        &mut self,
        ix: WorkerIx,
        query: &Query,
        queue: &Queue,
        events: &KvEvents,
        last_event_id: Option<u64>,
        out: &mut dyn Sink,
    ) {
        let WantedQuery::Events(start) = query.want else {
            return self.failed(
                ix,
                WantedQuery::Dump,
                "it answered with single events where all blocks were asked for",
            );
        };
        let at_ms = self.now;
        let last = last_event_id.or_else(|| events.events.last().map(|event| event.event_id));
        if last < query.received_id {
            // What came since is in the tree, and older events would be applied over it.
            return self.failed(ix, query.want, "its response is older than events that it published before");
        }
        let is_contiguous = self.workers.of(ix).is_contiguous;
        let from = last.map(|last| last.saturating_add(u64::from(is_contiguous)));
        let missed = events.events.iter().filter(|event| event.event_id >= start);
        let missed = missed.map(|event| kv_record(ix, event, events));
        let later = queue.from(from).map(|event| kv_record(ix, event, queue.events()));
        missed.chain(later).for_each(|record| replayed(record, at_ms, out));
        let watched = self.workers.of(ix);
        let why = watched.was.or(watched.is_complete().then_some(watched.known.1));
        let why = why.unwrap_or(KnowledgeWhy::Dump);
        self.applied(ix, query, queue, last, why);
    }

    /// What was requested has not happened: nothing was missed, or the worker is another process by now.
    fn too_new(&mut self, ix: WorkerIx, query: &Query, newest: u64) {
        let watched = self.workers.of(ix);
        match query.want {
            WantedQuery::Events(from)
                if newest.saturating_add(1) == from
                    && Some(newest) >= query.received_id
                    && !watched.has_gap =>
            {
                watched.failures = 0;
                watched.is_requested &= query.is_overtaken;
                // What was lost since is requested next.
                if !query.is_overtaken && !watched.is_broken {
                    watched.restore();
                }
            }
            WantedQuery::Events(_) => {
                watched.doubt(KnowledgeWhy::EventsLost);
                watched.want = WantedQuery::Dump;
            }
            WantedQuery::Dump | WantedQuery::Verify | WantedQuery::Nothing => {
                self.failed(ix, query.want, "it answered with a number where all blocks were asked for");
            }
        }
    }

    /// A response is in the tree: events up to `last` are known.
    fn applied(&mut self, ix: WorkerIx, query: &Query, queue: &Queue, last: Option<u64>, why: KnowledgeWhy) {
        let now = self.now;
        let is_received = self.workers.get(ix).is_some_and(|watched| self.is_received(watched));
        let watched = self.workers.of(ix);
        watched.failures = 0;
        watched.next_ms = None;
        watched.is_requested &= query.is_overtaken;
        watched.detail.clear();
        watched.verify_ms = None;
        watched.was = None;
        let missed = std::mem::take(&mut watched.want);
        let had_gap = std::mem::take(&mut watched.has_gap);
        watched.covered = watched.covered.max(query.gap);
        watched.gap = watched.gap.filter(|gap| gap.last > query.gap);
        let joined = Joining { since_ms: now, from: last.map(|last| last.saturating_add(1)) };
        watched.joining = Some(joined);
        watched.known = match is_received || watched.is_broken {
            true => (TreeKnowledge::Complete, why),
            false => (TreeKnowledge::Partial, KnowledgeWhy::NoEvents),
        };
        if watched.is_broken {
            watched.doubt(KnowledgeWhy::ConnectionBroke);
        }
        // What was lost while it was queried is beyond the response, or in it.
        let gap = last.filter(|_| watched.is_contiguous || watched.source.is_none()).and_then(|last| {
            let mut next = last.saturating_add(1);
            let later = queue.from(Some(next));
            later.map(|event| event.event_id).find_map(|id| {
                let gap = (id > next).then_some(next);
                next = id.saturating_add(1).max(next);
                gap
            })
        });
        watched.last_event_id = watched.last_event_id.max(last);
        if let Some(from) = gap {
            watched.lost_from(from);
            watched.has_gap = true;
            watched.doubt(KnowledgeWhy::EventsLost);
        } else if query.is_overtaken && watched.is_contiguous {
            // Up to its last event nothing is missing; what came after that while it was queried may be lost.
            watched.doubt(KnowledgeWhy::ConnectionBroke);
            watched.want = watched.next_event().map_or(WantedQuery::Dump, WantedQuery::Events);
        } else if query.is_overtaken {
            // Which of its messages came first after the break is forgotten by now.
            watched.has_gap = true;
            watched.doubt(if had_gap { KnowledgeWhy::EventsLost } else { KnowledgeWhy::ConnectionBroke });
            watched.want = missed;
        }
    }
}

/// Records an event once more, after it was missed.
fn replayed(event: Record<'_>, at_ms: Millis, out: &mut dyn Sink) {
    let record = match event {
        Record::Stored { worker, parent, blocks } => {
            Record::TreeDumpStored { worker, tier: None, parent, blocks }
        }
        Record::Removed { worker, hashes } => Record::TreeDumpRemoved { worker, tier: None, hashes },
        Record::TierStored { worker, tier, parent, blocks } => {
            Record::TreeDumpStored { worker, tier: Some(tier), parent, blocks }
        }
        Record::TierRemoved { worker, tier, hashes } => {
            Record::TreeDumpRemoved { worker, tier: Some(tier), hashes }
        }
        Record::Cleared { worker, .. } => {
            let hashes = out.cluster().tree_of(worker).names_of(worker.slot());
            Record::TreeDumpRemoved { worker, tier: None, hashes: hashes.into() }
        }
        Record::TierCleared { worker, tier } => {
            let Some(pool) = out.cluster().pool_of(worker) else { return };
            let hashes = out.cluster().tier_tree(pool, tier).names_of(worker.slot());
            Record::TreeDumpRemoved { worker, tier: Some(tier), hashes: hashes.into() }
        }
        _ => return,
    };
    out.record(Entry { at_ms, record });
}
