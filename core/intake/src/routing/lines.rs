//! Lines of frontends' logs: several make a decision (reference §7.3).
//!
//! The lines of one decision name their request by the router's id (≥ 1.4, JSONL of 1.1 and 1.2) or by that of the HTTP
//! span (text of 1.1 and 1.2), and lines of several requests mix; or they name none (≤ 1.0, 1.3) and follow each other.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::book::{
    Candidates, ChosenBy, Completed, CorrelationKey, Dispatched, FoundBinding, LoggedChoice, LoggedCosts,
    LoggedInput, LowerBlocks, OtherMode, PromptHashes, ReportTime, RequestWay, Routed, Session, credit,
};
use super::unidentified::Log;
use super::{Micros, Prompt, Routing, micros, role_sign, settings};
use crate::ingest::{FRESH_MS, RequestObservation};
use radixscope_dynamo::log_line::{
    self, LogEvent, LogRecord, RequestDone, RequestIds, RoutingInput, Selected, StartedWith, Terms,
};
use radixscope_dynamo::otlp::RouteSpan;
use radixscope_model::id::{DecisionId, Millis, PoolIx, SourceIx, WorkerId, WorkerIx};
use radixscope_model::record::{
    Candidate, DecisionSource, Ended, Outcome, Progress, Record, ReportedSettings, Role, RoleEvidence,
    RouterNumbers, RouterRef, RoutingMode, SettingsSource,
};
use radixscope_router::{Formula, RouterSettings};
use radixscope_state::cluster::{Cluster, SettingsState};

/// Logs whose lines are kept apart.
const MAX_LOGS: usize = 64;
/// Candidates of a decision whose `Selected worker` has not come.
const MAX_PENDING: usize = 1 << 12;
/// Decisions of one log whose costs are being written: as many as a frontend has threads, with some to spare for those
/// that were never chosen.
const MAX_OPEN: usize = 64;
/// Candidates of all of them.
const MAX_OPEN_CANDIDATES: usize = 1 << 14;
/// Requests whose hashes were logged and whose choice was not.
const MAX_INPUTS: usize = 1 << 12;

/// A choice falls between a request's arrival and its first token; both are reported in milliseconds, the former cut.
const ROUNDING_MS: u64 = 2;

/// What was read and not used up yet.
#[derive(Default)]
pub(super) struct Lines {
    logs: Vec<OpenLog>,
    /// Oldest first. The choice follows within a millisecond, so that it is found near the end.
    inputs: VecDeque<(Box<str>, Input)>,
}

/// A log, with what of it waits for later lines.
struct OpenLog {
    source: SourceIx,
    name: Box<str>,
    open: VecDeque<Open>,
    /// Factor of the prefill term in its latest line that contains one, by pool, and the time of that line.
    factors: BTreeMap<PoolIx, (RouterNumbers, Millis)>,
    /// What its process was started with, by what the routers' workers do, and the time of the line.
    started: BTreeMap<Role, (RouterNumbers, Millis)>,
    /// Pools of which that was said, because it named workers of them.
    serves: BTreeSet<PoolIx>,
}

/// The line of a choice, with the lines that were written before it and belong to it.
pub(super) struct ReadChoice<'a> {
    time: LineTime,
    open: Open,
    selected: Selected<'a>,
}

impl ReadChoice<'_> {
    /// Blocks that the chosen worker held, where lines of the choice contain them.
    fn overlap_blocks(&self, worker: WorkerIx, cluster: &Cluster) -> Option<u64> {
        let chosen = || self.open.candidates.iter().find(|candidate| candidate.worker == worker);
        let settings = settings(cluster, Formula::E, worker, self.time.at_ms);
        cached_on_device(&self.selected, &settings)
            .or_else(|| chosen().map(|candidate| candidate.overlap_blocks.into()))
    }
}

/// Formula lines of one choice that has not come.
#[derive(Default)]
struct Open {
    /// The id that these lines bear. `None`: lines of this log bear none.
    of: Option<Box<str>>,
    candidates: Vec<Candidate>,
    /// Cost formula of the candidates, and the factor of its prefill term.
    formula: Option<(Formula, f64)>,
    tied: bool,
}

/// What the router looked up, as logged at DEBUG.
struct Input {
    length: LoggedInput,
    local_hashes: Box<[u64]>,
}

impl Lines {
    fn log(&mut self, (source, name): Log<'_>) -> Option<&mut OpenLog> {
        let known = self.logs.iter().position(|log| log.source == source && *log.name == *name);
        let at = match known {
            Some(at) => at,
            None if self.logs.len() == MAX_LOGS => return None,
            None => {
                self.logs.push(OpenLog {
                    source,
                    name: name.into(),
                    open: VecDeque::new(),
                    factors: BTreeMap::new(),
                    started: BTreeMap::new(),
                    serves: BTreeSet::new(),
                });
                self.logs.len() - 1
            }
        };
        self.logs.get_mut(at)
    }

    /// What was written of the choice that lines of this id belong to.
    fn open(&mut self, log: Log<'_>, id: Option<&str>) -> Option<&mut Open> {
        let log = &mut self.log(log)?.open;
        let known = log.iter().rposition(|open| open.of.as_deref() == id);
        let at = known.unwrap_or_else(|| {
            let candidates =
                |log: &VecDeque<Open>| log.iter().map(|open| open.candidates.len()).sum::<usize>();
            while log.len() == MAX_OPEN || candidates(log) > MAX_OPEN_CANDIDATES {
                log.pop_front();
            }
            log.push_back(Open { of: id.map(Into::into), ..Open::default() });
            log.len() - 1
        });
        log.get_mut(at)
    }

    fn take_open(&mut self, log: Log<'_>, id: Option<&str>) -> Open {
        let found = self.log(log).and_then(|OpenLog { open: log, .. }| {
            let at = log.iter().rposition(|open| open.of.as_deref() == id)?;
            log.remove(at)
        });
        found.unwrap_or_default()
    }

    /// Takes a line with one candidate of a choice.
    fn formula(&mut self, log: Log<'_>, worker: WorkerIx, line: &log_line::Formula<'_>) {
        let (formula, factor, prefill_blocks, decode_blocks) = match line.terms {
            Terms::Weighted { weight, prefill_blocks, decode_blocks } => {
                (Formula::A, weight.value, prefill_blocks.value, decode_blocks.value)
            }
            Terms::Scaled { scale, adjusted_prefill_blocks, decode_blocks, overlap_credit_decay, .. } => {
                // 1.3 began to print the decay; C and D cost the same but for options that these lines name.
                let formula = if overlap_credit_decay.is_some() { Formula::D } else { Formula::B };
                (formula, scale.value, adjusted_prefill_blocks.value, decode_blocks.value)
            }
            Terms::Decode { decode_blocks, .. } => (Formula::D, 0.0, 0.0, decode_blocks.value),
        };
        let Some(open) = self.open(log, line.ids.key()) else { return };
        // A candidate that comes again begins another decision: the one before was never chosen.
        if open.candidates.len() == MAX_PENDING || open.candidates.iter().any(|c| c.worker == worker) {
            *open = Open { of: open.of.take(), ..Open::default() };
        }
        open.formula = Some((formula, factor));
        let overlap_blocks = line.cached_blocks.value as u32;
        open.candidates.push(Candidate {
            worker,
            overlap_blocks,
            host_blocks: 0,
            disk_blocks: 0,
            prefill_blocks,
            decode_blocks,
            cost: line.logit.value,
            // Without overlap the router counts a tree of 0 blocks; of the others only the chosen one's is logged.
            tree_size: (overlap_blocks == 0 && formula == Formula::A).then_some(0),
        });
    }

    /// The factor of the prefill term in a line, if the log had another one for this pool until then.
    fn factor(
        &mut self,
        log: Log<'_>,
        (pool, cluster): (PoolIx, &Cluster),
        at: Millis,
        line: &log_line::Formula<'_>,
    ) -> Option<Record<'static>> {
        let numbers = match line.terms {
            Terms::Weighted { weight, .. } => {
                RouterNumbers { overlap_score_weight: Some(weight.value), ..RouterNumbers::default() }
            }
            Terms::Scaled { scale, .. } => {
                RouterNumbers { prefill_load_scale: Some(scale.value), ..RouterNumbers::default() }
            }
            Terms::Decode { .. } => return None,
        };
        let before = self.log(log)?.factors.insert(pool, (numbers, at));
        if before.is_some_and(|(before, _)| before == numbers) {
            return None;
        }
        let of = cluster.pool(pool);
        let of = RouterRef {
            reporter: log.1.to_owned(),
            namespace: of.map(|of| of.namespace.clone()).unwrap_or_default(),
            component: of.map(|of| of.component.clone()).unwrap_or_default(),
            ..RouterRef::default()
        };
        let after_ms = before.map(|(_, last)| last);
        let (source, numbers) = (SettingsSource::Log, Some(numbers));
        let news = ReportedSettings { source, of, revision: None, numbers, after_ms, by_ms: at };
        Some(Record::Settings(Box::new(news)))
    }

    /// The process of a log was started with these settings. Gives them without a pool: the line names none.
    fn started(&mut self, log: Log<'_>, started: &StartedWith, by_ms: Millis) -> Vec<Record<'static>> {
        if let Some(log) = self.log(log) {
            log.serves.clear();
            log.started.extend(started.roles.iter().map(|&role| (role, (started.numbers, by_ms))));
        }
        let of = |role| RouterRef { reporter: log.1.to_owned(), role: Some(role), ..RouterRef::default() };
        started.roles.iter().map(|&role| started_with(of(role), started.numbers, by_ms)).collect()
    }

    /// A log named a worker of a pool as one of its router's. Gives what that router was started with, once.
    fn serves(&mut self, log: Log<'_>, worker: WorkerIx, cluster: &Cluster) -> Option<Record<'static>> {
        let open = self.log(log).filter(|open| !open.started.is_empty())?;
        let pool = cluster.pool_of(worker)?;
        if open.serves.contains(&pool) {
            return None;
        }
        let named = cluster.pool(pool).filter(|pool| !pool.component.is_empty())?;
        let (role, _) = cluster.role(pool)?;
        open.serves.insert(pool);
        let &(numbers, by_ms) = open.started.get(&role)?;
        let of = RouterRef {
            reporter: log.1.to_owned(),
            namespace: named.namespace.clone(),
            component: named.component.clone(),
            role: Some(role),
            ..RouterRef::default()
        };
        Some(started_with(of, numbers, by_ms))
    }

    /// The process of a log stops: what it ran with says nothing of the next one that writes there.
    fn stops(&mut self, log: Log<'_>, at: Millis, cluster: &Cluster) -> Vec<Record<'static>> {
        if let Some(open) = self.log(log) {
            open.factors.clear();
            open.started.clear();
            open.serves.clear();
        }
        let of_log = |state: &&SettingsState| {
            matches!(state.source, SettingsSource::Log | SettingsSource::StartUpLog)
                && state.of.reporter == log.1
                && state.left_ms.is_none()
        };
        let left = |state: &SettingsState| {
            // Choices before it were made with them.
            let (source, of, after_ms) = (state.source, state.of.clone(), Some(at));
            let news = ReportedSettings { source, of, revision: None, numbers: None, after_ms, by_ms: at };
            Record::Settings(Box::new(news))
        };
        cluster.settings().iter().filter(of_log).map(left).collect()
    }

    fn input(&mut self, request_id: &str, input: Input) {
        if self.inputs.len() == MAX_INPUTS {
            self.inputs.pop_front();
        }
        self.inputs.push_back((request_id.into(), input));
    }

    /// Requests whose choice has not come.
    #[cfg(test)]
    pub(super) fn waiting_inputs(&self) -> usize {
        self.inputs.len()
    }

    fn take_input(&mut self, request_id: &str) -> Option<Input> {
        let at = self.inputs.iter().rposition(|(of, _)| **of == *request_id)?;
        self.inputs.remove(at).map(|(_, input)| input)
    }
}

impl Routing {
    /// Takes a line. `worker` is the one it names.
    pub(super) fn line(
        &mut self,
        observed: &RequestObservation<'_>,
        log: &str,
        line: &LogRecord<'_>,
        worker: Option<WorkerIx>,
        cluster: &Cluster,
    ) -> Vec<Record<'static>> {
        let time = LineTime::of(observed, line);
        let log = (observed.source, log);
        self.traced(line);
        if let Some((id, _)) = line.event.unreachable() {
            for worker in ranks_of(id, cluster) {
                self.departures.unreachable(worker, time.at_ms);
                self.has_relisted |= time.at_ms <= self.weighed_until;
            }
        }
        match (&line.event, worker) {
            (LogEvent::Formula(formula), Some(worker)) => {
                self.lines.formula(log, worker, formula);
                let pool = cluster.pool_of(worker).unwrap_or_default();
                let news = self.lines.factor(log, (pool, cluster), time.at_ms, formula);
                news.into_iter().collect()
            }
            (LogEvent::Tie(tie), _) => {
                if let Some(open) = self.lines.open(log, tie.ids.key()) {
                    open.tied = true;
                }
                Vec::new()
            }
            (LogEvent::Selected(selected), Some(worker)) => {
                let open = self.lines.take_open(log, selected.ids.key());
                if is_named_later(selected) {
                    let choice = ReadChoice { time, open, selected: Selected::to_owned(selected) };
                    let released = self.unidentified.push(log, worker, (time.at, time.read_ms), choice);
                    let released = released.map(|(worker, choice)| self.selected(choice, worker, cluster));
                    return released.and_then(|(_, sign)| sign).into_iter().collect();
                }
                let choice = ReadChoice { time, open, selected: selected.clone() };
                let (id, sign) = self.selected(choice, worker, cluster);
                if selected.ids.key().is_some() {
                    self.begin(observed, &time, (id, worker));
                }
                sign.into_iter().chain(self.lines.serves(log, worker, cluster)).collect()
            }
            (LogEvent::SessionLookup(lookup), worker) => {
                let found = match (lookup.bound_to, worker) {
                    (None, _) => Some(FoundBinding::None),
                    (Some(_), Some(worker)) => Some(FoundBinding::To(worker)),
                    // A worker for which there was no room.
                    (Some(_), None) => None,
                };
                let session = Session { name: (&*lookup.session_id).into(), found };
                let RequestIds { router, http } = &lookup.ids;
                self.book.set_session((router.as_deref(), http.as_deref()), session, time.read_ms);
                Vec::new()
            }
            (LogEvent::SelectedWithoutKv(selected), Some(worker)) => {
                let id = self.book.join(&time.key(worker, cluster, &selected.ids), time.read_ms);
                if let Some(part) = self.book.change(id) {
                    let of = OtherMode { time: time.reported(), mode: selected.mode };
                    part.slots.other_mode.get_or_insert(of);
                }
                if selected.ids.key().is_some() {
                    self.begin(observed, &time, (id, worker));
                }
                Vec::new()
            }
            (LogEvent::Dispatched(dispatched), Some(worker)) => {
                let mut key = time.key(worker, cluster, &dispatched.ids);
                key.overlap_blocks = Some(dispatched.overlap_blocks);
                key.role = dispatched.phase;
                let sign = self.named(log, &time, &key, &dispatched.ids, cluster);
                let id = self.given(&time, &key, dispatched.overlap_blocks);
                self.begin(observed, &time, (id, worker));
                sign.into_iter().collect()
            }
            (LogEvent::RoutingInput(input), _) => {
                self.routing_input(input, &time);
                Vec::new()
            }
            (LogEvent::RoutingBest(best), Some(worker)) => {
                let mut key = time.key(worker, cluster, &best.ids);
                key.overlap_blocks = Some(best.overlap_blocks);
                key.isl_blocks = Some(best.total_blocks);
                let sign = self.named(log, &time, &key, &best.ids, cluster);
                // Where the choice bore no name of the request, its prompt is known only now.
                let input = best.ids.router.as_deref().and_then(|id| self.lines.take_input(id));
                if let Some(input) = input {
                    let id = self.book.join(&key, time.read_ms);
                    self.looked_up(id, input, time.read_ms);
                }
                self.given(&time, &key, best.overlap_blocks);
                sign.into_iter().collect()
            }
            (LogEvent::RouteDone(done), Some(worker)) => {
                let ids = RequestIds {
                    router: Some(Cow::Borrowed(&*done.request_id)),
                    http: done.http_id.as_deref().map(Cow::Borrowed),
                };
                let mut key = time.key(worker, cluster, &ids);
                key.overlap_blocks = done.overlap_blocks;
                key.role = done.phase;
                let id = self.book.join(&key, time.read_ms);
                let outcome = outcome_of(done.ending);
                if let Some(part) = self.book.change(id) {
                    let (ended_ms, cached_blocks) = (time.at_ms, done.overlap_blocks);
                    let routed = Routed { started_ms: None, ended_ms, outcome, cached_blocks };
                    // A line and a span of the same end may bear two milliseconds: the earlier counts, whichever comes first.
                    let ended = part.slots.routed.get_or_insert(routed);
                    ended.ended_ms = ended.ended_ms.min(ended_ms);
                }
                self.active.free_logged(time.at, id);
                self.in_flight.end(id, Some(worker));
                let role = done.phase;
                let sign = role.and_then(|role| role_sign(cluster, worker, role, RoleEvidence::Log));
                sign.into_iter().collect()
            }
            (LogEvent::RequestReceived(received), _) => {
                let way = RequestWay { arrived: time.decided_ms.map(|_| time.at), ..RequestWay::default() };
                let ids = (Some(&*received.request_id), received.http_id.as_deref());
                self.book.add_way(ids, way, time.read_ms);
                Vec::new()
            }
            (LogEvent::OverlapRefreshed(refreshed), _) => {
                let way = RequestWay { is_refreshed: true, ..RequestWay::default() };
                self.book.add_way((Some(&*refreshed.request_id), None), way, time.read_ms);
                Vec::new()
            }
            (LogEvent::PrefillBypassed(bypassed), _) if bypassed.ids.key().is_some() => {
                let way = RequestWay { is_bypassed: true, ..RequestWay::default() };
                let RequestIds { router, http } = &bypassed.ids;
                self.book.add_way((router.as_deref(), http.as_deref()), way, time.read_ms);
                Vec::new()
            }
            (LogEvent::RoutedDirectly(routed), Some(worker)) => {
                self.routed_directly(&time, routed, worker, cluster);
                Vec::new()
            }
            (LogEvent::RequestDone(done), _) => {
                self.changes.forgo();
                // A query that runs nothing is named by its end alone.
                let mut records = Vec::new();
                if self.book.parts_of(Some(&done.request_id), done.http_id.as_deref()).is_empty() {
                    for (worker, choice) in self.unidentified.of_log(log) {
                        records.extend(self.selected(choice, worker, cluster).1);
                    }
                }
                self.request_done(&time, done, cluster);
                records.extend(models_shown(done, cluster));
                records
            }
            (LogEvent::WorkerAdded(_), Some(worker)) => {
                self.changes.expect();
                *self.counted.of(worker) = true;
                self.listed(worker, time.at_ms, false);
                self.lines.serves(log, worker, cluster).into_iter().collect()
            }
            (LogEvent::StartedWith(started), _) => self.lines.started(log, started, time.at_ms),
            (LogEvent::Stopping, _) => {
                self.departures.stops(log.0, log.1, time.at_ms);
                self.lines.stops(log, time.at_ms, cluster)
            }
            (LogEvent::WorkerRemoved(_) | LogEvent::InstanceRemoved(_), _)
                if self.departures.is_stopping(log.0, log.1, time.at_ms) =>
            {
                Vec::new()
            }
            (LogEvent::WorkerRemoved(_), Some(worker)) => {
                *self.counted.of(worker) = false;
                self.listed(worker, time.at_ms, true);
                Vec::new()
            }
            (LogEvent::InstanceRemoved(id), _) => {
                for worker in ranks_of(*id, cluster) {
                    self.listed(worker, time.at_ms, true);
                }
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Notes the trace that a line of a request was written in. A line that shows the request first is followed by others.
    pub(super) fn traced(&mut self, line: &LogRecord<'_>) {
        let ids = line.event.request_ids();
        if let (Some(trace_id), true) = (&line.trace_id, ids != (None, None)) {
            self.book.set_trace_id(ids, trace_id);
        }
    }

    /// Takes the span of a routed request: what the line of its end says, the trace, and when the worker was given the request.
    pub(super) fn route_span(
        &mut self,
        observed: &RequestObservation<'_>,
        span: &RouteSpan,
        line: &LogRecord<'_>,
        worker: WorkerIx,
        cluster: &Cluster,
    ) -> Vec<Record<'static>> {
        // Spans of many frontends come mixed; the line of an end is of no order among others.
        let records = self.line(observed, "", line, Some(worker), cluster);
        // No further line follows that could name the trace.
        self.traced(line);
        for id in self.book.parts_of(Some(&span.done.request_id), None) {
            let part = self.book.change(id).filter(|part| part.worker == worker);
            if let Some(routed) = part.and_then(|part| part.slots.routed.as_mut()) {
                routed.started_ms = routed.started_ms.or(span.started_ms());
            }
        }
        records
    }

    /// A line names the request of a choice that was held, if one was.
    fn named(
        &mut self,
        log: Log<'_>,
        time: &LineTime,
        key: &CorrelationKey<'_>,
        ids: &RequestIds<'_>,
        cluster: &Cluster,
    ) -> Option<Record<'static>> {
        let worker = key.worker;
        let fits = |choice: &ReadChoice<'_>| {
            let held = choice.overlap_blocks(worker, cluster);
            held.is_none() || key.overlap_blocks.is_none() || held == key.overlap_blocks
        };
        ids.key()?;
        let mut choice = self.unidentified.take(log, worker, time.at, fits)?;
        choice.selected.ids = ids.clone().into_owned();
        self.selected(choice, worker, cluster).1
    }

    /// Handles choices that no line named in time as they are.
    pub(super) fn release_unidentified(
        &mut self,
        now: Millis,
        cluster: &Cluster,
        records: &mut Vec<Record<'static>>,
    ) {
        while let Some((worker, choice)) = self.unidentified.overdue(now) {
            records.extend(self.selected(choice, worker, cluster).1);
        }
    }

    /// The end of a request that named its worker, in direct mode.
    fn routed_directly(
        &mut self,
        time: &LineTime,
        routed: &log_line::RoutedDirectly<'_>,
        worker: WorkerIx,
        cluster: &Cluster,
    ) {
        let mut key = time.key(worker, cluster, &routed.ids);
        let parts = self.book.parts_of(routed.ids.router.as_deref(), routed.ids.http.as_deref());
        let arrived = routed.ids.router.as_deref().and_then(|id| self.book.arrival_of(id));
        // Whoever chose did so before the frontend received it; without that line the time is not known.
        key.time = ReportTime { at: arrived.unwrap_or(time.at), is_received: arrived.is_none() };
        if parts.is_empty() && routed.ids.key().is_none() {
            return;
        }
        let id = self.book.join(&key, time.read_ms);
        let outcome = outcome_of(routed.ending);
        if let Some(part) = self.book.change(id) {
            let of = OtherMode { time: key.time, mode: RoutingMode::Direct };
            part.slots.other_mode.get_or_insert(of);
            let routed = Routed { started_ms: None, ended_ms: time.at_ms, outcome, cached_blocks: None };
            part.slots.routed.get_or_insert(routed);
        }
        self.in_flight.end(id, Some(worker));
    }

    fn routing_input(&mut self, input: &RoutingInput<'_>, time: &LineTime) {
        let read_ms = time.read_ms;
        if let Some(http_id) = &input.http_id {
            self.book.same(&input.request_id, http_id, read_ms);
        }
        let Some(block_size_tokens) = u32::try_from(input.block_size_tokens).ok().filter(|&size| size > 0)
        else {
            return;
        };
        self.changes.need();
        let length = LoggedInput { isl_tokens: input.isl_tokens, block_size_tokens, time: time.reported() };
        self.lines
            .input(&input.request_id, Input { length, local_hashes: input.local_hashes.as_slice().into() });
    }

    /// A choice. Gives its part, and what it shows of the pool's role.
    fn selected(
        &mut self,
        choice: ReadChoice<'_>,
        worker: WorkerIx,
        cluster: &Cluster,
    ) -> (DecisionId, Option<Record<'static>>) {
        let ReadChoice { time, mut open, selected } = choice;
        let (time, selected) = (&time, &selected);
        let chosen = open.candidates.iter_mut().find(|candidate| candidate.worker == worker);
        let of_formula = chosen.map(|candidate| {
            candidate.tree_size = selected.tree_size_blocks.or(candidate.tree_size);
            u64::from(candidate.overlap_blocks)
        });
        let cached_blocks = cached_on_device(selected, &settings(cluster, Formula::E, worker, time.at_ms));
        // The line of a bound choice does not say how much of it lies below the device.
        let has_tiers = || cluster.pool_of(worker).is_some_and(|pool| cluster.has_tiers(pool));
        let cached_blocks = cached_blocks.filter(|_| !selected.pinned || !has_tiers());
        let RequestIds { router, http } = &selected.ids;
        let in_span = http.as_deref().and_then(|http_id| self.book.request_in(http_id));
        let input = router.as_deref().or(in_span).and_then(|id| self.lines.take_input(id));
        let mut key = time.key(worker, cluster, &selected.ids);
        key.overlap_blocks = cached_blocks.or(of_formula);
        key.is_query = is_named_later(selected);
        key.role = selected.worker_type;
        key.isl_blocks = input.as_ref().map(|input| {
            let LoggedInput { isl_tokens, block_size_tokens, .. } = input.length;
            isl_tokens.div_ceil(u64::from(block_size_tokens))
        });
        let may_be_look = self.book.pass_look(&key);
        let id = self.book.join(&key, time.read_ms);
        let costs =
            of_formula.zip(open.formula).map(|(overlap_blocks, (formula, prefill_factor))| LoggedCosts {
                candidates: Candidates::Here(open.candidates.into()),
                formula,
                prefill_factor,
                tied: open.tied,
                overlap_blocks,
            });
        let count = costs.as_ref().map_or(0, |costs| costs.candidates.len());
        let chosen_by = chosen_by(selected);
        // Where the prefill pool is skipped, the request is bound to the decode worker that was looked at.
        let is_of_session = !super::is_decode(key.pool, cluster);
        if chosen_by == ChosenBy::Pinned && is_of_session && self.sessions.saw_pinned() {
            self.book.change_where(|part| part.slots.choice.is_some());
        }
        if let Some(part) = self.book.change(id) {
            part.slots.choice.get_or_insert(LoggedChoice {
                time: time.reported(),
                may_be_look,
                logit: (chosen_by != ChosenBy::Policy).then_some(selected.logit.value),
                chosen_by,
                cached_blocks,
                lower: lower_blocks(selected),
            });
            if part.slots.costs.is_none() {
                part.slots.costs = costs;
            }
        }
        if count > 0 {
            self.book.count_candidates(id, count);
        }
        match input {
            Some(input) => self.looked_up(id, input, time.read_ms),
            None => self.changes.forgo(),
        }
        let role = selected.worker_type;
        (id, role.and_then(|role| role_sign(cluster, worker, role, RoleEvidence::Log)))
    }

    /// What the router looked up for a choice.
    fn looked_up(&mut self, id: DecisionId, input: Input, read_ms: Millis) {
        if let Some(part) = self.book.change(id) {
            part.slots.input.get_or_insert(input.length);
        }
        let mut chain = Vec::new();
        Prompt::Local(&input.local_hashes).chain(&mut chain);
        self.set_prompt(id, PromptHashes::Local(input.local_hashes.into()), read_ms);
        self.arrivals.push(id, read_ms, Some(input.length.isl_tokens), &chain);
    }

    /// The end of a request, as its frontend measured it.
    fn request_done(&mut self, time: &LineTime, done: &RequestDone<'_>, cluster: &Cluster) {
        let outcome = match done.status.as_deref() {
            Some("success") => Some(Outcome::Success),
            Some("cancelled") => Some(Outcome::Cancelled),
            Some("error") => Some(Outcome::Failed),
            _ => None,
        };
        let (tokens, output_tokens) = (done.input_tokens, done.output_tokens);
        // Neither tokens in nor out, and all is well: only the router was queried and nothing ran.
        let is_query = outcome == Some(Outcome::Success) && tokens == Some(0) && output_tokens == Some(0);
        let progress = Progress {
            ended_ms: Some(time.at_ms),
            outcome: outcome.filter(|_| !is_query),
            ttft_us: done.ttft_ms.and_then(micros),
            itl_us: done.avg_itl_ms.and_then(micros),
            output_tokens,
            ..Progress::default()
        };
        let ended = Ended {
            ended_ms: time.at_ms,
            elapsed_us: done.elapsed_ms.and_then(micros),
            // 0 means not counted: a prompt has at least one token.
            isl_tokens: tokens.filter(|&tokens| tokens > 0),
            progress,
        };
        let ids = (&*done.request_id, done.http_id.as_deref());
        if self.book.parts_of(Some(ids.0), ids.1).is_empty() {
            self.name_by_times(ids.0, &ended, done.prefill_worker, time.read_ms, cluster);
        }
        for id in self.book.complete(ids, Completed { ended, is_query }, time.read_ms) {
            self.completed(id, output_tokens);
        }
    }

    /// The request of a part is over, also that of a query that ran nothing.
    pub(super) fn completed(&mut self, id: DecisionId, output_tokens: Option<u64>) {
        self.in_flight.end(id, None);
        if let Some(tokens) = output_tokens {
            self.arrivals.finished(id, tokens);
        }
    }

    /// Names the choice of a request that was not named, if only one can be it: of its worker, between its arrival and its
    /// first token.
    fn name_by_times(
        &mut self,
        request_id: &str,
        ended: &Ended,
        worker: Option<WorkerId>,
        read_ms: Millis,
        cluster: &Cluster,
    ) {
        let Some(elapsed_us) = ended.elapsed_us else { return };
        let mut ranks = cluster.workers().indexed().filter(|(_, known)| Some(known.id.id) == worker);
        let (Some((worker, _)), None) = (ranks.next(), ranks.next()) else { return };
        let arrived = Millis(ended.ended_ms.0.saturating_sub(elapsed_us / 1_000));
        let within_us = ended.progress.ttft_us.unwrap_or(elapsed_us);
        let from = Millis(arrived.0.saturating_sub(ROUNDING_MS));
        let to = Millis(arrived.0.saturating_add(within_us / 1_000 + ROUNDING_MS));
        self.book.name_only(worker, (from, to), request_id, read_ms);
    }

    /// A line that is written only when the chosen worker is given the request.
    fn given(&mut self, time: &LineTime, key: &CorrelationKey<'_>, cached_blocks: u64) -> DecisionId {
        let id = self.book.join(key, time.read_ms);
        let isl_blocks = key.isl_blocks;
        let Some(part) = self.book.change(id) else { return id };
        let dispatched = Dispatched { time: time.reported(), cached_blocks, isl_blocks };
        let is_first = part.slots.dispatched.is_none();
        part.slots.dispatched.get_or_insert(dispatched);
        if let (Some(input), Some(prompt), true) = (part.slots.input, &part.prompt, is_first) {
            let mut chain = Vec::new();
            prompt.prompt().chain(&mut chain);
            let held = cached_blocks.saturating_mul(input.block_size_tokens.into());
            let prefill_tokens = input.isl_tokens.saturating_sub(held);
            // The router adds a request when it places it, and writes this line a little later.
            let chosen = part.slots.choice.map(|choice| choice.time.at);
            let placed = chosen.or(part.slots.sequence.as_ref().map(|of| of.time.at)).unwrap_or(time.at);
            self.active.add_logged(placed, id, part.worker, &chain, prefill_tokens);
        }
        id
    }

    /// From now on the request of a part is in flight, if the line is of the present.
    fn begin(
        &mut self,
        observed: &RequestObservation<'_>,
        time: &LineTime,
        (id, worker): (DecisionId, WorkerIx),
    ) {
        if observed.now_ms.since(time.at_ms) <= FRESH_MS {
            self.in_flight.begin(observed.at_ms, id, worker);
        }
    }
}

/// When a line was written and read.
#[derive(Clone, Copy)]
pub(super) struct LineTime {
    /// By the line, else when it was read.
    at_ms: Millis,
    /// The same, as fine as the line has it.
    at: Micros,
    decided_ms: Option<Millis>,
    pub(super) read_ms: Millis,
}

impl LineTime {
    pub(super) fn of(observed: &RequestObservation<'_>, line: &LogRecord<'_>) -> Self {
        let decided_ms = line.at_ms();
        let at_ms = decided_ms.unwrap_or(observed.at_ms);
        let at_us = line.at_us.and_then(|us| u64::try_from(us).ok());
        let at = at_us.map_or_else(|| Micros::of(at_ms), Micros);
        Self { at_ms, at, decided_ms, read_ms: observed.at_ms }
    }

    pub(super) fn reported(&self) -> ReportTime {
        ReportTime { at: self.at, is_received: self.decided_ms.is_none() }
    }

    pub(super) fn key<'m>(
        &self,
        worker: WorkerIx,
        cluster: &Cluster,
        ids: &'m RequestIds<'_>,
    ) -> CorrelationKey<'m> {
        CorrelationKey {
            source: DecisionSource::Log,
            time: self.reported(),
            is_query: false,
            worker,
            pool: cluster.pool_of(worker).unwrap_or_default(),
            role: None,
            request_id: ids.router.as_deref(),
            http_id: ids.http.as_deref(),
            overlap_blocks: None,
            isl_blocks: None,
        }
    }
}

/// What a router was started with, by a log.
fn started_with(of: RouterRef, numbers: RouterNumbers, by_ms: Millis) -> Record<'static> {
    let (source, numbers) = (SettingsSource::StartUpLog, Some(numbers));
    Record::Settings(Box::new(ReportedSettings {
        source,
        of,
        revision: None,
        numbers,
        after_ms: None,
        by_ms,
    }))
}

/// What the line of a choice shows of what decided it. The cost formula writes `decode` also of workers that do both; a router with
/// another policy writes `aggregated` (1.6.1, 1.7.0.dev20261026).
fn chosen_by(selected: &Selected<'_>) -> ChosenBy {
    match selected.worker_type {
        _ if selected.pinned => ChosenBy::Pinned,
        Some(Role::Aggregated) => ChosenBy::Policy,
        _ => ChosenBy::Weighing,
    }
}

/// Blocks of the prompt that the chosen worker held on its device: what counted as cached, less what the lower tiers earned.
fn cached_on_device(selected: &Selected<'_>, settings: &RouterSettings) -> Option<u64> {
    let credit = credit(lower_blocks(selected).unwrap_or_default(), settings);
    Some((selected.cached_blocks?.value - credit).max(0.0) as u64)
}

/// Blocks of the prompt that the chosen worker held below its device, in lines that contain them.
fn lower_blocks(selected: &Selected<'_>) -> Option<LowerBlocks> {
    let host = selected.host_pinned_blocks?;
    Some(LowerBlocks { host, disk: selected.disk_blocks.unwrap_or(0) })
}

fn outcome_of(ending: log_line::Ending) -> Outcome {
    match ending {
        log_line::Ending::Completed => Outcome::Success,
        log_line::Ending::Cancelled => Outcome::Cancelled,
        log_line::Ending::Failed => Outcome::Failed,
    }
}

/// Whether another line names the request of a choice if it runs. Of the lines that contain host memory, those of 1.3 alone
/// name no request.
fn is_named_later(selected: &Selected<'_>) -> bool {
    selected.ids.key().is_none() && selected.host_pinned_blocks.is_some()
}

/// The model of a request is that of the workers it ran on, if not known before: from 1.0 on a component serves one.
/// Earlier logs do not name the workers.
fn models_shown(done: &RequestDone<'_>, cluster: &Cluster) -> Vec<Record<'static>> {
    let Some(model) = done.model.as_deref().filter(|model| !model.is_empty()) else { return Vec::new() };
    let decode = done.decode_worker.filter(|worker| Some(*worker) != done.prefill_worker);
    let workers = done.prefill_worker.into_iter().chain(decode);
    let unknown = workers
        .flat_map(|id| ranks_of(id, cluster))
        .filter(|&worker| cluster.worker(worker).is_some_and(|state| state.model.is_empty()));
    unknown.map(|worker| Record::Model { worker, name: Cow::Owned(model.to_owned()) }).collect()
}

/// The known ranks of a worker.
fn ranks_of(id: WorkerId, cluster: &Cluster) -> impl Iterator<Item = WorkerIx> + '_ {
    let workers = cluster.workers().indexed();
    workers.filter(move |(_, worker)| worker.id.id == id).map(|(ix, _)| ix)
}
