//! Which worker is queried when, and the records about it.

use hashbrown::HashMap;

use radixscope_model::id::{Millis, Worker, WorkerIx};
use radixscope_model::record::{Entry, KnowledgeWhy, QueryState, Record, TreeKnowledge};

use super::endpoints::{NamedEndpoint, is_in_the_loop};
use super::queue::Queue;
use super::watched::{AttachState, Query, WantedQuery};
use super::{Attach, TreeDumps};
use crate::command::{Command, TreeQuery};
use crate::ingest::Sink;
use radixscope_state::cluster::Cluster;

/// Queries that run at a time.
const MAX_RUNNING: usize = 8;
/// Above so many that are to be queried they are spread over this time.
const FEW: usize = 8;
const SPREAD_MS: u64 = 3_000;
/// After this time a query counts as not answered, whatever became of it.
const GIVE_UP_MS: u64 = 5 * 60_000;
/// Events are kept so long before a query whose response has no number: a worker's index is behind what it published by less.
pub(super) const KEPT_BEFORE_MS: u64 = 500;

impl Attach {
    /// Looks what is to be done: call it with every flush, and whenever [`Attach::is_due`].
    pub(crate) fn tick(&mut self, at_ms: Millis, out: &mut dyn Sink) {
        self.now = self.now.max(at_ms);
        self.due = None;
        if std::mem::take(&mut self.meets) {
            self.meet(out.cluster());
        }
        self.cancel_of_forgotten(out.cluster());
        let workers: Vec<WorkerIx> =
            self.workers.iter_mut().filter(|(_, watched)| watched.id.is_some()).map(|(ix, _)| ix).collect();
        let workers: Vec<WorkerIx> = workers.into_iter().filter(|&ix| self.is_there(ix, out)).collect();
        for &ix in &workers {
            self.pass_time(ix);
        }
        let waiting = workers.iter().filter(|&&ix| self.wants_all(ix)).count();
        self.wave = if waiting == 0 { 0 } else { self.wave.max(waiting) };
        let spacing_ms = if self.wave > FEW { SPREAD_MS / self.wave as u64 } else { 0 };
        for &ix in &workers {
            self.send_query(ix, spacing_ms);
            self.record_knowledge(ix, self.now, out);
            self.record_query_state(ix, out);
        }
    }

    /// Records what was recovered of the losses; call it after the losses were recorded.
    pub(crate) fn record_recovered(&mut self, at_ms: Millis, out: &mut dyn Sink) {
        for (worker, watched) in self.workers.iter_mut() {
            if !watched.has_everything() {
                continue;
            }
            for loss in std::mem::take(&mut watched.losses) {
                let super::watched::Loss { source, topic, cause, count } = loss;
                out.record(Entry {
                    at_ms,
                    record: Record::Recovered { source, worker, topic, cause, count },
                });
            }
        }
    }

    /// Adds workers that can be queried and were not seen yet.
    fn meet(&mut self, cluster: &Cluster) {
        let index: HashMap<Worker, WorkerIx> =
            cluster.workers().indexed().map(|(ix, state)| (state.id, ix)).collect();
        let index = |worker: Worker| index.get(&worker).copied();
        self.endpoints.refresh();
        let named: Vec<(u64, Worker)> = self.publishers.iter().map(|(&id, &worker)| (id, worker)).collect();
        for worker in self.endpoints.workers() {
            if let Some(ix) = index(worker) {
                self.workers.of(ix).id.get_or_insert(worker);
            }
        }
        for (publisher_id, worker) in named {
            if let Some(ix) = index(worker) {
                let watched = self.workers.of(ix);
                if watched.source.is_none() {
                    watched.publisher_id = Some(publisher_id);
                }
            }
        }
    }

    /// Queries of workers that the state has forgotten are of no use.
    fn cancel_of_forgotten(&mut self, cluster: &Cluster) {
        let of_forgotten = self.running.iter().filter(|(_, ix)| cluster.workers().get(**ix).is_none());
        let of_forgotten: Vec<u64> = of_forgotten.map(|(&id, _)| id).collect();
        of_forgotten.into_iter().for_each(|id| self.cancel(id));
    }

    /// Whether a worker is there. Of one that left nothing is known any more, nor of one that was away.
    fn is_there(&mut self, ix: WorkerIx, out: &dyn Sink) -> bool {
        let Some(state) = out.cluster().workers().get(ix) else { return false };
        let watched = self.workers.of(ix);
        let has_left = state.departure.is_some();
        let is_known = watched.known.0 != TreeKnowledge::Unknown;
        let was_away = is_known && state.knowledge.state == TreeKnowledge::Unknown;
        if was_away || (has_left && (is_known || watched.source.is_some() || watched.query.is_some())) {
            let query = watched.forget();
            watched.recorded = Default::default();
            if let Some(query) = query {
                self.cancel(query.id);
            }
        }
        !has_left
    }

    fn pass_time(&mut self, ix: WorkerIx) {
        let now = self.now;
        let is_received = self.workers.get(ix).is_some_and(|watched| self.is_received(watched));
        let (mode, every_ms) = (self.mode, self.verify_every_ms);
        let watched = self.workers.of(ix);
        if watched.joining.is_some() && !watched.is_joining(now) {
            watched.joining = None;
        }
        if is_received {
            watched.is_received_now();
        }
        if watched.want == WantedQuery::Nothing && watched.query.is_none() {
            if !watched.is_complete() && watched.known != (TreeKnowledge::Partial, KnowledgeWhy::NoEvents) {
                watched.want = WantedQuery::Dump;
            } else if watched.is_complete()
                && mode == TreeDumps::Auto
                && let Some(every_ms) = every_ms
            {
                // Each at another time.
                let spread = every_ms / 4 * u64::from(ix.slot().0 % 64) / 64;
                let at = *watched.verify_ms.get_or_insert(Millis(now.0.saturating_add(every_ms + spread)));
                if now >= at {
                    watched.want = WantedQuery::Verify;
                }
            }
        }
        if let Some(query) = watched.query.take_if(|query| now.since(query.since_ms) > GIVE_UP_MS) {
            self.cancel(query.id);
            self.failed(ix, query.want, "the query was not answered for five minutes");
        }
    }

    fn wants_all(&self, ix: WorkerIx) -> bool {
        self.workers
            .get(ix)
            .is_some_and(|w| w.query.is_none() && matches!(w.want, WantedQuery::Dump | WantedQuery::Verify))
    }

    /// Queries a worker, if it is to be queried and may be now.
    fn send_query(&mut self, ix: WorkerIx, spacing_ms: u64) {
        let now = self.now;
        let Some(watched) = self.workers.get(ix) else { return };
        let Some(worker) = watched.id else { return };
        if watched.want == WantedQuery::Nothing || watched.query.is_some() {
            return;
        }
        let named = self.endpoints.of(worker, watched.publisher_id);
        let may_ask =
            named.as_ref().is_some_and(|named| self.may_ask(watched, is_in_the_loop(&named.endpoint)));
        let Some(NamedEndpoint { endpoint, by: named_by, .. }) = named.filter(|_| may_ask) else {
            let watched = self.workers.of(ix);
            match watched.want {
                WantedQuery::Verify => (watched.want, watched.verify_ms) = (WantedQuery::Nothing, None),
                WantedQuery::Nothing | WantedQuery::Dump | WantedQuery::Events(_) => {}
            }
            return;
        };
        if !self.may_be_received(watched) || self.running.len() >= MAX_RUNNING {
            return;
        }
        let want = watched.want;
        let is_all = !matches!(want, WantedQuery::Events(_));
        let wait = watched.next_ms.max(Some(self.next_slot).filter(|_| is_all && spacing_ms > 0));
        if let Some(at) = wait.filter(|&at| at > now) {
            self.due = Some(self.due.map_or(at, |due| due.min(at)));
            return;
        }
        let was_queueing = watched.is_unnumbered || is_in_the_loop(&endpoint);
        if was_queueing && !self.are_kept(ix) {
            return;
        }
        if is_all {
            self.next_slot = Millis(self.next_slot.max(now).0.saturating_add(spacing_ms));
        }
        self.last_query += 1;
        let (id, gap) = (self.last_query, self.gaps);
        let watched = self.workers.of(ix);
        let want = match (want, watched.gap) {
            (WantedQuery::Events(from), Some(gap)) => WantedQuery::Events(from.min(gap.from)),
            (WantedQuery::Verify, Some(_)) => WantedQuery::Dump,
            (want, _) => want,
        };
        let start_event_id = match want {
            WantedQuery::Events(from) => Some(from),
            WantedQuery::Nothing | WantedQuery::Dump | WantedQuery::Verify => None,
        };
        let publishes_at = self.publishes_at(endpoint.publisher_id);
        let query = TreeQuery { id, endpoint: endpoint.clone(), named_by, publishes_at, start_event_id };
        self.commands.push(Command::Query(query));
        self.running.insert(id, ix);
        let watched = self.workers.of(ix);
        watched.want = WantedQuery::Nothing;
        watched.next_ms = None;
        watched.kept_since = None;
        let received_id = watched.last_event_id;
        let is_overtaken = false;
        let query = Query { id, want, endpoint, since_ms: now, received_id, is_overtaken, gap, was_queueing };
        watched.query = Some(query);
    }

    /// Whether a worker's events were kept long enough for it to be queried; else they are from now on. A response without a
    /// number may be older than what was received when it was requested.
    fn are_kept(&mut self, ix: WorkerIx) -> bool {
        let now = self.now;
        let watched = self.workers.of(ix);
        if watched.kept_since.is_none() {
            watched.queue = Queue::default();
        }
        let since = *watched.kept_since.get_or_insert(now);
        let at = Millis(since.0.saturating_add(KEPT_BEFORE_MS));
        if now < at {
            self.due = Some(self.due.map_or(at, |due| due.min(at)));
        }
        now >= at
    }

    fn may_ask(&self, watched: &AttachState, is_in_the_loop: bool) -> bool {
        match self.mode {
            TreeDumps::Auto => watched.is_requested || !is_in_the_loop,
            TreeDumps::OnRequest => watched.is_requested,
            TreeDumps::Off => false,
        }
    }

    /// Records where asking a worker stands, if that changed.
    fn record_query_state(&mut self, ix: WorkerIx, out: &mut dyn Sink) {
        let Some(watched) = self.workers.get(ix) else { return };
        let state = self.asking(watched);
        let detail = if matches!(state, QueryState::Failed { .. }) { watched.detail.as_str() } else { "" };
        if watched.recorded.0 == state && watched.recorded.1 == detail {
            return;
        }
        let recorded = (state, detail.to_owned());
        let record = Record::QueryState { worker: ix, state, detail: detail.into() };
        out.record(Entry { at_ms: self.now, record });
        self.workers.of(ix).recorded = recorded;
    }

    fn asking(&self, watched: &AttachState) -> QueryState {
        match &watched.query {
            Some(Query { want: WantedQuery::Events(_), .. }) => return QueryState::Range,
            Some(_) => return QueryState::Dump,
            None if watched.joining.is_some() => return QueryState::Joining,
            None => {}
        }
        if watched.want == WantedQuery::Nothing || watched.is_engine || self.mode == TreeDumps::Off {
            return QueryState::No;
        }
        let endpoint = watched.id.and_then(|worker| self.endpoints.of(worker, watched.publisher_id));
        match endpoint {
            None => QueryState::NoEndpoint,
            Some(named) if !self.may_ask(watched, is_in_the_loop(&named.endpoint)) => {
                match watched.failures {
                    0 => QueryState::OnRequest,
                    _ => QueryState::Failed { next_ms: None },
                }
            }
            Some(_) if watched.failures > 0 => QueryState::Failed { next_ms: watched.next_ms },
            Some(_) => QueryState::Waiting,
        }
    }
}
