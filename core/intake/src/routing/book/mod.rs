//! The requests of the last minutes, each with all that any source reported of it: the one home of a request's truth.
//!
//! # How it works
//!
//! ```text
//! hit rate ─┐                     ┌─ slots (one for each report) ─┐
//! sequence ─┤  CorrelationKey     │  of a part (one for each pool)│  resolve()   Record::Decision
//! log lines ┼────────────────────►│  of a request                 ├────────────► Record::Progress
//! trace ────┤  RequestBook::join  │                               │  the whole,  (each replaces the
//! trees ────┘                     └───────────────────────────────┘  if changed   one before it)
//! ```
//!
//! A request is routed once in each pool: it has a *part* there, and a part is a decision. [`RequestBook::join`] finds the part
//! that a report is about, or begins one. The report fills a slot. [`resolve`] makes the decision of all slots, and what
//! differs from what the state has becomes a record that replaces it. Nothing is merged anywhere else.
//!
//! # Which part a report is about
//!
//! A request id decides. There are two: the router's, and that of the HTTP span around it, which some lines contain alone;
//! lines with both make them one. `kv-hit-rate` and logs up to 1.0 contain none: such a report is about the choice of the same
//! worker whose overlap and length agree and whose time is nearest, within [`nearest::WINDOW_MS`]. **The order of arrival between sources
//! is no evidence**: if a later report is nearer to a choice than the one it was joined with, it takes its place, and the other
//! one is joined anew. So any order leads to the same pairs. Within one log order is evidence: lines without an id follow
//! each other ([`super::lines`]). Messages of 0.8 have no time: theirs is when they were received, less what messages
//! usually took where only one choice could be meant.
//!
//! # Bounds
//!
//! At most [`bounds::MAX_REQUESTS`] requests; the oldest goes first. A prompt is dropped [`bounds::LINGER_MS`] after its choice by our clock and by
//! the publishers', an end without a choice becomes a record of its own after [`bounds::HOLD_MS`], and a request of which no choice is
//! known is forgotten after [`bounds::FORGET_MS`]. Candidates beyond [`radixscope_state::cluster::MAX_CANDIDATES`] are left to the state.

mod bounds;
mod ids;
mod join;
mod length;
mod nearest;
mod pairs;
mod part;
mod resolve;
mod slots;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod way_tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hashbrown::HashMap;

use radixscope_model::id::{DecisionId, Millis, PoolIx, WorkerIx};
use radixscope_model::micros::Micros;
use radixscope_model::record::{ClientMeasured, Decision, DecisionSource, Progress};

pub(super) use bounds::{LINGER_FOR_SETTINGS_MS, LINGER_MS};
use ids::MAX_PARTS;
pub(super) use join::CorrelationKey;
pub(super) use length::{Length, credit};
pub(super) use nearest::FOLLOWS_MS;
use part::JoinedRequest;
pub(super) use part::{RequestPart, RequestWay};
pub(super) use resolve::{
    PartContext, SessionContext, chosen_ms, contradiction, decided_ms, progress, resolve,
};
pub(super) use slots::{
    Candidates, ChosenBy, Completed, Computed, Dispatched, FoundBinding, HeldBlocks, HitRate, LoggedChoice,
    LoggedCosts, LoggedInput, LowerBlocks, OtherMode, PromptHashes, Reconstruction, ReportTime, Routed,
    ScoredChoice, Sequence, Session, Slots, Steps, Trace, TracedCosts,
};

/// Place of a request in the book: ascending, never used twice.
type RequestIx = u64;

/// The requests.
#[derive(Default)]
pub(super) struct RequestBook {
    last: u64,
    next: RequestIx,
    /// By place, which is the order in which they were received.
    requests: BTreeMap<RequestIx, JoinedRequest>,
    parts: HashMap<DecisionId, RequestIx>,
    by_request: HashMap<Box<str>, RequestIx>,
    by_http: HashMap<Box<str>, RequestIx>,
    by_choice: HashMap<WorkerIx, BTreeSet<(Micros, DecisionId)>>,
    due: BTreeSet<(Millis, RequestIx)>,
    /// Parts whose decision may differ from what the state has.
    changed: BTreeSet<DecisionId>,
    /// Choices whose costs a trace had, oldest first, with their sizes in candidates; and the sum of these.
    traced: VecDeque<(RequestIx, usize)>,
    traced_candidates: usize,
    /// Parts whose steps or end were reported before them.
    caught_up: Vec<DecisionId>,
    /// Parts with candidates, oldest first, and how many candidates they have.
    with_candidates: VecDeque<(DecisionId, usize)>,
    candidates: usize,
    /// Parts whose prompts were received, oldest first; some are dropped already.
    with_prompts: VecDeque<DecisionId>,
    prompt_blocks: usize,
    unpaired: VecDeque<DecisionId>,
    /// What clients measured of requests that were forgotten without a choice.
    without_choice: Vec<ClientMeasured>,
    /// How long after the choice reports without a time were received, as the last one showed that could be about one
    /// choice only.
    delay_us: u64,
}

impl RequestBook {
    /// Goes on counting after this decision.
    pub(super) fn resume(&mut self, last: DecisionId) {
        self.last = last.0;
    }

    /// Adds a decision that a restored state has.
    pub(super) fn restore(&mut self, known: &Decision, progress: Progress, pool: PoolIx, at_ms: Millis) {
        let Some(request_id) = known.request_id.as_deref() else { return };
        let ix = self.request(Some(request_id), None, at_ms);
        let mut part = self.new_part(known.id, known.worker, pool, known.source);
        part.slots.restored = Some(Box::new((known.clone(), progress)));
        self.add_part(ix, part);
    }

    /// Steps of a request on a worker, by messages. Gives the part that they are about, if its choice is known.
    pub(super) fn step(
        &mut self,
        request_id: &str,
        (worker, pool): (WorkerIx, PoolIx),
        steps: Steps,
        received_ms: Millis,
    ) -> Option<DecisionId> {
        let ix = self.request(Some(request_id), None, received_ms);
        if let Some(id) = self.part_in(ix, (worker, pool), None) {
            self.part_mut(id)?.slots.steps.add(steps);
            self.changed.insert(id);
            return Some(id);
        }
        let request = self.requests.get_mut(&ix)?;
        if let Some((_, known)) = request.steps.iter_mut().find(|(of, _)| *of == pool) {
            known.add(steps);
        } else if request.steps.len() < MAX_PARTS {
            request.steps.push((pool, steps));
        }
        None
    }

    /// The end of a request, as its frontend measured it. Gives its parts; without any it waits for one.
    pub(super) fn complete(
        &mut self,
        (request_id, http_id): (&str, Option<&str>),
        completed: Completed,
        received_ms: Millis,
    ) -> Vec<DecisionId> {
        let ix = self.request(Some(request_id), http_id, received_ms);
        let Some(request) = self.requests.get_mut(&ix) else { return Vec::new() };
        if request.completed.is_none() {
            request.completed = Some(completed);
            request.received_ms = received_ms;
        }
        let parts: Vec<DecisionId> = request.parts.iter().map(|part| part.id).collect();
        self.changed.extend(&parts);
        self.schedule(ix);
        parts
    }

    /// The session of a request, by its trace or its log. Its parts may have another decision now.
    pub(super) fn set_session(
        &mut self,
        (request_id, http_id): (Option<&str>, Option<&str>),
        session: Session,
        received_ms: Millis,
    ) {
        let ix = self.request(request_id, http_id, received_ms);
        let Some(request) = self.requests.get_mut(&ix) else { return };
        Session::join(&mut request.session, session);
        self.changed.extend(request.parts.iter().map(|part| part.id));
    }

    /// The trace of a request that is known, by its log. Its parts may have another decision now.
    pub(super) fn set_trace_id(
        &mut self,
        (request_id, http_id): (Option<&str>, Option<&str>),
        trace_id: &str,
    ) {
        let found = self.find_request(request_id, http_id).and_then(|ix| self.requests.get_mut(&ix));
        let Some(request) = found.filter(|request| request.trace_id.is_none()) else { return };
        request.trace_id = Some(trace_id.into());
        self.changed.extend(request.parts.iter().map(|part| part.id));
    }

    /// What the client of a request measured.
    pub(super) fn set_client(
        &mut self,
        (request_id, http_id): (Option<&str>, Option<&str>),
        measured: ClientMeasured,
        received_ms: Millis,
    ) {
        let ix = self.request(request_id, http_id, received_ms);
        let Some(request) = self.requests.get_mut(&ix) else { return };
        request.client = Some(measured);
        self.changed.extend(request.parts.iter().map(|part| part.id));
    }

    /// The same of the request of a part, and whether it was recorded.
    pub(super) fn client_of(&self, id: DecisionId) -> Option<(ClientMeasured, bool)> {
        let request = self.requests.get(self.parts.get(&id)?)?;
        Some((request.client?, request.is_client_recorded))
    }

    /// It is recorded now.
    pub(super) fn client_recorded(&mut self, id: DecisionId) {
        let request = self.parts.get(&id).and_then(|ix| self.requests.get_mut(ix));
        if let Some(request) = request {
            request.is_client_recorded = true;
        }
    }

    /// What clients measured of requests that were forgotten since the last call, because no choice for them became known.
    pub(super) fn take_without_choice(&mut self) -> Vec<ClientMeasured> {
        std::mem::take(&mut self.without_choice)
    }

    /// The id of the trace of the request of a part.
    pub(super) fn trace_id_of(&self, id: DecisionId) -> Option<&str> {
        self.requests.get(self.parts.get(&id)?)?.trace_id.as_deref()
    }

    /// The session of the request of a part.
    pub(super) fn session_of(&self, id: DecisionId) -> Option<&Session> {
        self.requests.get(self.parts.get(&id)?)?.session.as_ref()
    }

    /// What the candidates of a choice for a request cost, by its router's trace. Of more choices than are kept the latest go.
    pub(super) fn add_traced_costs(&mut self, request_id: &str, costs: TracedCosts, received_ms: Millis) {
        let ix = self.request(Some(request_id), None, received_ms);
        let Some(request) = self.requests.get_mut(&ix) else { return };
        if request.traced_costs.len() < ids::MAX_TRACED_COSTS && !request.traced_costs.contains(&costs) {
            let size = costs.candidates.len() + bounds::TRACED_CHOICE;
            self.traced_candidates += size;
            self.traced.push_back((ix, size));
            request.traced_costs.push(costs);
            self.changed.extend(request.parts.iter().map(|part| part.id));
        }
        while self.traced_candidates > bounds::MAX_TRACED_CANDIDATES {
            let Some((oldest, size)) = self.traced.pop_front() else { break };
            self.traced_candidates -= size;
            if let Some(request) = self.requests.get_mut(&oldest).filter(|of| !of.traced_costs.is_empty()) {
                request.traced_costs.remove(0);
            }
        }
    }

    /// The same for a part: of several choices in its pool that at `at` or next to it, of equal ones the later.
    /// Which pools workers are in may be known only now.
    pub(super) fn traced_costs(
        &self,
        id: DecisionId,
        at: Option<Millis>,
        pool_of: impl Fn(WorkerIx) -> Option<PoolIx>,
    ) -> Option<&TracedCosts> {
        let request = self.requests.get(self.parts.get(&id)?)?;
        let part = request.parts.iter().find(|part| part.id == id)?;
        let pool = |costs: &TracedCosts| costs.candidates.first().and_then(|(worker, _)| pool_of(*worker));
        let in_pool = request.traced_costs.iter().filter(|costs| pool(costs) == Some(part.pool));
        let apart = |costs: &&TracedCosts| {
            let chosen = costs.time.at.millis();
            at.map_or(0, |at| at.since(chosen).max(chosen.since(at)))
        };
        in_pool.min_by_key(|costs| (apart(costs), Reverse(costs.time.at)))
    }

    /// What a line says of the way of a request. Its parts may have another decision now.
    pub(super) fn add_way(
        &mut self,
        (request_id, http_id): (Option<&str>, Option<&str>),
        way: RequestWay,
        received_ms: Millis,
    ) {
        let ix = self.request(request_id, http_id, received_ms);
        let Some(request) = self.requests.get_mut(&ix) else { return };
        request.way.add(way);
        self.changed.extend(request.parts.iter().map(|part| part.id));
    }

    /// The way of the request of a part.
    pub(super) fn way_of(&self, id: DecisionId) -> RequestWay {
        let request = self.parts.get(&id).and_then(|ix| self.requests.get(ix));
        request.map_or_else(RequestWay::default, |request| request.way)
    }

    /// A part.
    pub(super) fn part(&self, id: DecisionId) -> Option<&RequestPart> {
        let request = self.requests.get(self.parts.get(&id)?)?;
        request.parts.iter().find(|part| part.id == id)
    }

    /// A part whose slots are about to be filled.
    pub(super) fn change(&mut self, id: DecisionId) -> Option<&mut RequestPart> {
        self.changed.insert(id);
        self.part_mut(id)
    }

    fn part_mut(&mut self, id: DecisionId) -> Option<&mut RequestPart> {
        let request = self.requests.get_mut(self.parts.get(&id)?)?;
        request.parts.iter_mut().find(|part| part.id == id)
    }

    /// Every part of the request of a part.
    pub(super) fn siblings(&self, id: DecisionId) -> &[RequestPart] {
        let request = self.parts.get(&id).and_then(|ix| self.requests.get(ix));
        request.map_or(&[][..], |request| request.parts.as_slice())
    }

    /// What is known of the request of a part: its id and its end.
    pub(super) fn request_of(&self, id: DecisionId) -> (Option<&str>, Option<&Completed>) {
        let request = self.parts.get(&id).and_then(|ix| self.requests.get(ix));
        request.map_or((None, None), |request| (request.request_id.as_deref(), request.completed.as_ref()))
    }

    /// Parts that changed since the last call, by id.
    pub(super) fn take_changed(&mut self) -> BTreeSet<DecisionId> {
        std::mem::take(&mut self.changed)
    }

    /// Workers turned out to be in other pools than they seemed.
    pub(super) fn move_parts(&mut self, pool_of: impl Fn(WorkerIx) -> Option<PoolIx>) {
        for part in self.requests.values_mut().flat_map(|request| &mut request.parts) {
            if let Some(pool) = pool_of(part.worker).filter(|pool| *pool != part.pool) {
                part.pool = pool;
                self.changed.insert(part.id);
            }
        }
    }

    /// Parts that `is_meant` may have another decision than before.
    pub(super) fn change_where(&mut self, is_meant: impl Fn(&RequestPart) -> bool) {
        let all = self.requests.values().flat_map(|request| &request.parts);
        self.changed.extend(all.filter(|part| is_meant(part)).map(|part| part.id));
    }

    /// The parts of some kind.
    pub(super) fn ids_where(&self, is_meant: impl Fn(&RequestPart) -> bool) -> Vec<DecisionId> {
        let all = self.requests.values().flat_map(|request| &request.parts);
        all.filter(|part| is_meant(part)).map(|part| part.id).collect()
    }

    /// Parts that began since the last call although their steps or their end had been reported.
    pub(super) fn take_caught_up(&mut self) -> Vec<DecisionId> {
        std::mem::take(&mut self.caught_up)
    }

    /// From when loads are to count the parts that changed, where that is not what they do, each with whether its log has that time.
    pub(super) fn take_counts(
        &mut self,
        is_decode: impl Fn(PoolIx) -> bool,
    ) -> Vec<(DecisionId, (Micros, bool))> {
        let changed = std::mem::take(&mut self.changed);
        let counts = changed.iter().filter_map(|&id| {
            let part = self.part_mut(id)?;
            let from = part.counted_from(is_decode(part.pool));
            if from.is_none() || from == part.counted {
                return None;
            }
            part.counted = from;
            Some((id, from?))
        });
        let counts = counts.collect();
        self.changed = changed;
        counts
    }

    fn new_part(
        &self,
        id: DecisionId,
        worker: WorkerIx,
        pool: PoolIx,
        source: DecisionSource,
    ) -> RequestPart {
        RequestPart {
            id,
            worker,
            pool,
            role: None,
            source,
            slots: Slots::default(),
            prompt: None,
            was_named: false,
            tracked: None,
            counted: None,
            computed_from: None,
            prompt_ms: Millis(0),
            begun: Micros::default(),
            marks: Vec::new(),
            is_query: false,
            paired: None,
        }
    }

    fn add_part(&mut self, ix: RequestIx, mut part: RequestPart) {
        let Some(request) = self.requests.get_mut(&ix) else { return };
        let mut is_late = request.completed.is_some();
        if let Some(at) = request.steps.iter().position(|(pool, _)| *pool == part.pool) {
            let (_, steps) = request.steps.swap_remove(at);
            part.slots.steps.add(steps);
            is_late = true;
        }
        if is_late {
            self.caught_up.push(part.id);
        }
        self.parts.insert(part.id, ix);
        request.parts.push(part);
        // Each of several links to another.
        self.changed.extend(request.parts.iter().map(|part| part.id));
        self.schedule(ix);
    }

    /// Removes a part from the choices of a worker, under the time at which they have it.
    fn unindex(&mut self, id: DecisionId, (worker, begun): (WorkerIx, Micros)) {
        if let Some(of_worker) = self.by_choice.get_mut(&worker) {
            of_worker.remove(&(begun, id));
            if of_worker.is_empty() {
                self.by_choice.remove(&worker);
            }
        }
    }
}
