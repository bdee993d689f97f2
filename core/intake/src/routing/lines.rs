//! Lines of frontends' logs: several make a decision (reference §7.3).
//!
//! The lines of one decision name their request by the router's id (≥ 1.4, JSONL of 1.1 and 1.2) or by that of the HTTP
//! span (text of 1.1 and 1.2), and lines of several requests mix; or they name none (≤ 1.0, 1.3) and follow each other.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use super::below::{credit, on_device};
use super::endings::Ending;
use super::joiner::{Parts, Placed};
use super::nameless::Log;
use super::{ChoiceReport, CorrelationKey, Kept, Length, Moment, Prompt, Routing, micros, role_sign};
use crate::ingest::{FRESH_MS, RequestObservation};
use radixscope_dynamo::log_line::{
    self, LogEvent, LogRecord, RequestDone, RequestIds, RoutingInput, Selected, Terms,
};
use radixscope_model::id::{DecisionId, Millis, PoolIx, SourceIx, WorkerId, WorkerIx};
use radixscope_model::record::{
    Candidate, Completeness, Decision, DecisionSource, Ended, Outcome, Progress, Record, RoleEvidence,
};
use radixscope_router::Formula;
use radixscope_state::cluster::Cluster;

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

/// Choices that may still turn out to be given to their worker: the two lines follow each other within a millisecond.
const MAX_CHOSEN: usize = 256;
/// A choice falls between a request's arrival and its first token; both are reported in milliseconds, the former cut.
const ROUNDING_MS: u64 = 2;

/// What was read and not used up yet.
#[derive(Default)]
pub(super) struct Lines {
    logs: Vec<(SourceIx, Box<str>, VecDeque<Open>)>,
    /// Oldest first. The choice follows within a millisecond, so that it is found near the end.
    inputs: VecDeque<(Box<str>, Input)>,
    /// Prompts of the latest choices that were not followed by a word that the worker was given them.
    chosen: VecDeque<(DecisionId, Length, Vec<u64>)>,
    /// Factor of the prefill term in the latest line that tells one, by pool.
    weights: BTreeMap<PoolIx, f64>,
}

/// The line of a choice, with the lines that were written before it and belong to it.
pub(super) struct LoggedChoice<'a> {
    time: LineTime,
    open: Open,
    selected: Selected<'a>,
}

impl LoggedChoice<'_> {
    /// Blocks that the chosen worker held, where lines of the choice tell.
    fn overlap_blocks(&self, worker: WorkerIx) -> Option<u64> {
        let chosen = || self.open.candidates.iter().find(|candidate| candidate.worker == worker);
        cached_on_device(&self.selected).or_else(|| chosen().map(|candidate| candidate.overlap_blocks.into()))
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

/// What the router was asked, as logged at DEBUG.
struct Input {
    length: Length,
    local_hashes: Box<[u64]>,
}

impl Lines {
    /// Factor of the prefill term in the latest line that tells one of this pool.
    pub(super) fn weight(&self, pool: PoolIx) -> Option<f64> {
        self.weights.get(&pool).copied()
    }

    fn log(&mut self, (source, name): Log<'_>) -> Option<&mut VecDeque<Open>> {
        let known = self.logs.iter().position(|(of, known, _)| *of == source && **known == *name);
        let at = match known {
            Some(at) => at,
            None if self.logs.len() == MAX_LOGS => return None,
            None => {
                self.logs.push((source, name.into(), VecDeque::new()));
                self.logs.len() - 1
            }
        };
        self.logs.get_mut(at).map(|(.., log)| log)
    }

    /// What was written of the choice that lines of this id belong to.
    fn open(&mut self, log: Log<'_>, id: Option<&str>) -> Option<&mut Open> {
        let log = self.log(log)?;
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
        let found = self.log(log).and_then(|log| {
            let at = log.iter().rposition(|open| open.of.as_deref() == id)?;
            log.remove(at)
        });
        found.unwrap_or_default()
    }

    fn chosen(&mut self, decision: DecisionId, length: Length, chain: Vec<u64>) {
        if self.chosen.len() == MAX_CHOSEN {
            self.chosen.pop_front();
        }
        self.chosen.push_back((decision, length, chain));
    }

    fn dispatched(&mut self, decision: DecisionId) -> Option<(Length, Vec<u64>)> {
        let at = self.chosen.iter().position(|(id, ..)| *id == decision)?;
        let (_, length, chain) = self.chosen.remove(at)?;
        Some((length, chain))
    }

    fn formula(&mut self, log: Log<'_>, (worker, pool): (WorkerIx, PoolIx), line: &log_line::Formula<'_>) {
        let (formula, factor, prefill_blocks, decode_blocks) = match line.terms {
            Terms::Weighted { weight, prefill_blocks, decode_blocks } => {
                self.weights.insert(pool, weight.value);
                (Formula::A, weight.value, prefill_blocks.value, decode_blocks.value)
            }
            Terms::Scaled { scale, adjusted_prefill_blocks, decode_blocks, overlap_credit_decay, .. } => {
                self.weights.insert(pool, scale.value);
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
        if let Some((id, _)) = line.event.unreachable() {
            for worker in ranks_of(id, cluster) {
                self.departures.unreachable(worker, time.at_ms, cluster);
            }
        }
        match (&line.event, worker) {
            (LogEvent::Formula(formula), Some(worker)) => {
                self.lines.formula(log, (worker, cluster.pool_of(worker).unwrap_or_default()), formula);
                Vec::new()
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
                    let choice = LoggedChoice { time, open, selected: Selected::to_owned(selected) };
                    let given_up = self.nameless.hold(log, worker, (time.moment, time.read_ms), choice);
                    return given_up
                        .map_or_else(Vec::new, |(worker, choice)| self.selected(choice, worker, cluster));
                }
                let choice = LoggedChoice { time, open, selected: selected.clone() };
                let records = self.selected(choice, worker, cluster);
                if selected.ids.key().is_some() {
                    self.begin(observed, &time, &records);
                }
                records
            }
            (LogEvent::SelectedWithoutKv(selected), Some(worker)) => {
                let mut decision = self.piece(&time.key(worker, cluster, &selected.ids));
                decision.decided_ms = time.decided_ms;
                decision.mode = Some(selected.mode);
                let records = vec![Record::Decision(decision)];
                if selected.ids.key().is_some() {
                    self.begin(observed, &time, &records);
                }
                records
            }
            (LogEvent::Dispatched(dispatched), Some(worker)) => {
                let mut key = time.key(worker, cluster, &dispatched.ids);
                key.overlap_blocks = Some(dispatched.overlap_blocks);
                let mut records = self.named(log, &time, &key, &dispatched.ids, cluster);
                let given = [self.given(&time, &key, cluster)];
                self.begin(observed, &time, &given);
                records.extend(given);
                records
            }
            (LogEvent::RoutingInput(input), _) => {
                self.routing_input(input);
                Vec::new()
            }
            (LogEvent::RoutingBest(best), Some(worker)) => {
                let mut key = time.key(worker, cluster, &best.ids);
                key.overlap_blocks = Some(best.overlap_blocks);
                key.isl_blocks = Some(best.total_blocks);
                let mut records = self.named(log, &time, &key, &best.ids, cluster);
                let input = best.ids.router.as_deref().and_then(|id| self.lines.take_input(id));
                // Where the choice bore no name of the request, its prompt is known only now.
                let prompt = input.map(|input| {
                    let mut choice = self.piece(&key);
                    choice.logit = cluster.decisions().get(choice.id).and_then(|known| known.decision.logit);
                    self.prompt_of(&time, &choice, input, cluster)
                });
                records.push(self.given(&time, &key, cluster));
                records.extend(prompt.map(Record::Decision));
                records
            }
            (LogEvent::RouteDone(done), Some(worker)) => {
                let ids = RequestIds {
                    router: Some(Cow::Borrowed(&*done.request_id)),
                    http: done.http_id.as_deref().map(Cow::Borrowed),
                };
                let mut key = time.key(worker, cluster, &ids);
                key.overlap_blocks = done.overlap_blocks;
                let mut decision = self.piece(&key);
                decision.overlap_blocks = on_device_of(&decision, cluster);
                decision.dispatched = Some(true);
                let id = decision.id;
                self.waiting.add_report(id, decision.overlap_blocks, true);
                self.active.free(time.moment, id);
                self.in_flight.end(id, Some(worker));
                let outcome = match done.ending {
                    log_line::Ending::Completed => Outcome::Success,
                    log_line::Ending::Cancelled => Outcome::Cancelled,
                    log_line::Ending::Failed => Outcome::Failed,
                };
                let (ended_ms, outcome) = (Some(time.at_ms), Some(outcome));
                let progress = Progress { ended_ms, outcome, ..Progress::default() };
                let role = done.phase;
                let sign = role.and_then(|role| role_sign(cluster, worker, role, RoleEvidence::Log));
                let of_request = [Record::Decision(decision), Record::Progress { decision: id, progress }];
                of_request.into_iter().chain(sign).collect()
            }
            (LogEvent::RequestReceived(received), _) => {
                if let Some(http_id) = &received.http_id {
                    self.joiner.same(&received.request_id, http_id);
                }
                Vec::new()
            }
            (LogEvent::RequestDone(done), _) => {
                self.changes.forgo();
                // A query that runs nothing is named by its end alone.
                let mut records = Vec::new();
                if self.joiner.parts(Some(&done.request_id), done.http_id.as_deref()) == Parts::default() {
                    for (worker, choice) in self.nameless.of_log(log) {
                        records.append(&mut self.selected(choice, worker, cluster));
                    }
                }
                records.append(&mut self.request_done(&time, done, cluster));
                records.extend(models_shown(done, cluster));
                records
            }
            (LogEvent::WorkerAdded(_), Some(worker)) => {
                self.changes.expect();
                *self.counted.of(worker) = true;
                self.departures.logged(worker, time.at_ms, false, cluster);
                Vec::new()
            }
            (LogEvent::Stopping, _) => {
                self.departures.stops(log.0, log.1, time.at_ms);
                Vec::new()
            }
            (LogEvent::WorkerRemoved(_) | LogEvent::InstanceRemoved(_), _)
                if self.departures.is_stopping(log.0, log.1, time.at_ms) =>
            {
                Vec::new()
            }
            (LogEvent::WorkerRemoved(_), Some(worker)) => {
                *self.counted.of(worker) = false;
                self.departures.logged(worker, time.at_ms, true, cluster);
                Vec::new()
            }
            (LogEvent::InstanceRemoved(id), _) => {
                for worker in ranks_of(*id, cluster) {
                    self.departures.logged(worker, time.at_ms, true, cluster);
                }
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// A line names the request of a choice that was held, if one was.
    fn named(
        &mut self,
        log: Log<'_>,
        time: &LineTime,
        key: &CorrelationKey<'_>,
        ids: &RequestIds<'_>,
        cluster: &Cluster,
    ) -> Vec<Record<'static>> {
        let worker = key.worker;
        let fits = |choice: &LoggedChoice<'_>| {
            let held = choice.overlap_blocks(worker);
            held.is_none() || key.overlap_blocks.is_none() || held == key.overlap_blocks
        };
        let choice = ids.key().and_then(|_| self.nameless.take(log, worker, time.moment, fits));
        let Some(mut choice) = choice else { return Vec::new() };
        choice.selected.ids = ids.clone().into_owned();
        self.selected(choice, worker, cluster)
    }

    /// Takes choices that no line named in time as they are.
    pub(super) fn give_up_names(
        &mut self,
        now: Millis,
        cluster: &Cluster,
        records: &mut Vec<Record<'static>>,
    ) {
        while let Some((worker, choice)) = self.nameless.overdue(now) {
            records.append(&mut self.selected(choice, worker, cluster));
        }
    }

    fn routing_input(&mut self, input: &RoutingInput<'_>) {
        if let Some(http_id) = &input.http_id {
            self.joiner.same(&input.request_id, http_id);
        }
        let Some(block_size_tokens) = u32::try_from(input.block_size_tokens).ok().filter(|&size| size > 0)
        else {
            return;
        };
        self.changes.need();
        let (isl_tokens, block_size_tokens) = (Some(input.isl_tokens), Some(block_size_tokens));
        let length = Length { isl_tokens, block_size_tokens, ..Length::default() };
        self.lines
            .input(&input.request_id, Input { length, local_hashes: input.local_hashes.as_slice().into() });
    }

    fn selected(
        &mut self,
        choice: LoggedChoice<'_>,
        worker: WorkerIx,
        cluster: &Cluster,
    ) -> Vec<Record<'static>> {
        let LoggedChoice { time, mut open, selected } = choice;
        let (time, selected) = (&time, &selected);
        let chosen = open.candidates.iter_mut().find(|candidate| candidate.worker == worker);
        let cached = cached_on_device(selected)
            .or_else(|| chosen.as_ref().map(|candidate| candidate.overlap_blocks.into()));
        if let Some(candidate) = chosen {
            candidate.tree_size = selected.tree_size_blocks.or(candidate.tree_size);
        }
        let RequestIds { router, http } = &selected.ids;
        let in_span = http.as_deref().and_then(|http_id| self.joiner.request_in(http_id));
        let input = router.as_deref().or(in_span).and_then(|id| self.lines.take_input(id));
        let mut key = time.key(worker, cluster, &selected.ids);
        key.overlap_blocks = cached;
        key.is_query = is_named_later(selected);
        key.isl_blocks = input.as_ref().and_then(|input| input.length.isl_blocks());
        let mut decision = self.piece(&key);
        decision.decided_ms = time.decided_ms;
        decision.logit = Some(selected.logit.value);
        let below =
            selected.host_pinned_blocks.unwrap_or(0).saturating_add(selected.disk_blocks.unwrap_or(0));
        decision.lower_tier_blocks =
            selected.host_pinned_blocks.filter(|_| below > 0 || cluster.has_tiers(key.pool)).map(|_| below);
        if let Some(length) = self.below.length(decision.id, selected) {
            (decision.isl_tokens, decision.isl_blocks) = (length.isl_tokens, length.isl_blocks());
            decision.overlap_blocks = length.overlap_blocks;
            self.waiting.correct(decision.id, length);
        }
        if decision.decided_ms.is_some() {
            self.active.chosen(time.moment, decision.id);
        }
        let has_all = open.candidates.iter().any(|candidate| candidate.worker == worker);
        if has_all {
            decision.tied = open.tied;
            (decision.formula, decision.prefill_factor) = open.formula.unzip();
            decision.candidates = open.candidates;
            decision.completeness = Completeness::AllCandidates;
        }
        let more = match input {
            Some(input) => Some(self.prompt_of(time, &decision, input, cluster)),
            None => {
                self.changes.forgo();
                if !has_all {
                    // Another source may tell the prompt.
                    self.waiting.take(time.report(&decision, Length::default(), None));
                }
                None
            }
        };
        let role = selected.worker_type;
        let sign = role.and_then(|role| role_sign(cluster, worker, role, RoleEvidence::Log));
        std::iter::once(decision).chain(more).map(Record::Decision).chain(sign).collect()
    }

    /// What follows for a choice from the hashes that were logged of its request: what each worker would have cost, and
    /// where in the tree the prompt's held beginning ended. Costs that the router reported itself stand.
    fn prompt_of(&mut self, time: &LineTime, choice: &Decision, input: Input, cluster: &Cluster) -> Decision {
        let mut decision = Decision::new(choice.id, choice.worker, DecisionSource::Log);
        decision.isl_tokens = input.length.isl_tokens;
        decision.isl_blocks = input.length.isl_blocks();
        decision.block_size_tokens = input.length.block_size_tokens;
        let mut chain = Vec::new();
        Prompt::Local(&input.local_hashes).chain(&mut chain);
        let mut report = time.report(choice, input.length, Some(Kept::Local(input.local_hashes)));
        report.formula = choice.formula;
        self.wait(&mut decision, report, time.read_ms, cluster);
        self.arrived(decision.id, time.read_ms, &input.length, &chain);
        // The request may be a query that runs nothing: only what is logged next tells.
        self.lines.chosen(decision.id, input.length, chain);
        decision
    }

    /// The end of a request, as its frontend measured it.
    fn request_done(
        &mut self,
        time: &LineTime,
        done: &RequestDone<'_>,
        cluster: &Cluster,
    ) -> Vec<Record<'static>> {
        if let Some(http_id) = &done.http_id {
            self.joiner.same(&done.request_id, http_id);
        }
        let outcome = match done.status.as_deref() {
            Some("success") => Some(Outcome::Success),
            Some("cancelled") => Some(Outcome::Cancelled),
            Some("error") => Some(Outcome::Failed),
            _ => None,
        };
        let (tokens, output_tokens) = (done.input_tokens, done.output_tokens);
        // Neither tokens in nor out, and all is well: the router was asked and nothing ran.
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
        let ending = Ending {
            request_id: (&*done.request_id).into(),
            http_id: done.http_id.as_deref().map(Into::into),
            is_query,
            ended,
        };
        let parts = self.joiner.parts(Some(&ending.request_id), ending.http_id.as_deref());
        let is_known = parts != Parts::default()
            || self.chosen_nameless(&ending, done.prefill_worker, cluster).is_some();
        match is_known {
            true => self.ended(&ending, cluster),
            false => {
                let given_up = self.endings.wait(time.read_ms, ending);
                given_up
                    .filter(|ending| !ending.is_query)
                    .map(|ending| Record::Request(ending.ended))
                    .into_iter()
                    .collect()
            }
        }
    }

    /// The choice of a request that was not named, if only one can be it: of its worker, between its arrival and its
    /// first token.
    fn chosen_nameless(
        &mut self,
        ending: &Ending,
        worker: Option<WorkerId>,
        cluster: &Cluster,
    ) -> Option<Placed> {
        let elapsed_us = ending.ended.elapsed_us?;
        let mut ranks = cluster.workers().indexed().filter(|(_, known)| Some(known.id.id) == worker);
        let (Some((worker, _)), None) = (ranks.next(), ranks.next()) else { return None };
        let arrived = Millis(ending.ended.ended_ms.0.saturating_sub(elapsed_us / 1_000));
        let within_us = ending.ended.progress.ttft_us.unwrap_or(elapsed_us);
        let from = Millis(arrived.0.saturating_sub(ROUNDING_MS));
        let to = Millis(arrived.0.saturating_add(within_us / 1_000 + ROUNDING_MS));
        let pool = cluster.pool_of(worker).unwrap_or_default();
        let placed = Placed { id: self.joiner.only_nameless(worker, from, to)?, worker, pool };
        self.joiner.name(&ending.request_id, placed);
        Some(placed)
    }

    /// What the end of a request tells of its decisions: of each the length of the prompt, of the one that its answer comes
    /// from how it went on.
    pub(super) fn ended(&mut self, ending: &Ending, cluster: &Cluster) -> Vec<Record<'static>> {
        let progress = ending.ended.progress;
        let parts = self.joiner.parts(Some(&ending.request_id), ending.http_id.as_deref());
        let answering = self.answering(&parts, cluster);
        let has_output =
            progress.ttft_us.is_some() || progress.output_tokens.is_some_and(|tokens| tokens > 0);
        let mut records = Vec::new();
        for placed in parts.iter() {
            // Also of a query that ran nothing.
            self.in_flight.end(placed.id, None);
            if let Some(tokens) = progress.output_tokens {
                self.arrivals.finished(placed.id, tokens);
            }
            let mut decision = Decision::new(placed.id, placed.worker, DecisionSource::Log);
            decision.request_id = Some(ending.request_id.to_string());
            decision.dispatched = if ending.is_query { Some(false) } else { has_output.then_some(true) };
            if let Some(isl_tokens) = ending.ended.isl_tokens {
                match cluster.block_size(placed.worker) {
                    Some(size) => measure(&mut decision, isl_tokens, size.value),
                    None => {
                        decision.isl_tokens = Some(isl_tokens);
                        self.endings.without_size(placed, isl_tokens);
                    }
                }
            }
            records.push(Record::Decision(decision));
            if answering.is_some_and(|answering| answering.id == placed.id) {
                records.push(Record::Progress { decision: placed.id, progress });
            }
        }
        records
    }

    /// Joins ends that were read before their decision.
    pub(super) fn join_endings(&mut self, records: &mut Vec<Record<'static>>, cluster: &Cluster) {
        let Self { joiner, endings, .. } = self;
        let known = endings.known(|ending| {
            joiner.parts(Some(&ending.request_id), ending.http_id.as_deref()) != Parts::default()
        });
        for ending in known {
            records.append(&mut self.ended(&ending, cluster));
        }
    }

    /// Tells what waited for long enough: ends of which no decision came, and lengths whose block size is known by now.
    pub(super) fn flush_endings(
        &mut self,
        at_ms: Millis,
        cluster: &Cluster,
        records: &mut Vec<Record<'static>>,
    ) {
        let given_up = self.endings.given_up(at_ms).into_iter().filter(|ending| !ending.is_query);
        records.extend(given_up.map(|ending| Record::Request(ending.ended)));
        let mut endings = std::mem::take(&mut self.endings);
        let size = |placed: Placed| Some(cluster.block_size(placed.worker)?.value);
        for (placed, isl_tokens, size) in endings.sized(size) {
            let mut decision = Decision::new(placed.id, placed.worker, DecisionSource::Log);
            measure(&mut decision, isl_tokens, size);
            records.push(Record::Decision(decision));
        }
        self.endings = endings;
    }

    /// A line that is written only when the chosen worker is given the request.
    fn given(&mut self, time: &LineTime, key: &CorrelationKey<'_>, cluster: &Cluster) -> Record<'static> {
        let mut decision = self.piece(key);
        decision.dispatched = Some(true);
        self.dispatched(time, &decision);
        decision.overlap_blocks = on_device_of(&decision, cluster);
        self.waiting.add_report(decision.id, decision.overlap_blocks, true);
        Record::Decision(decision)
    }

    /// From now on the request of these records is in flight, if they are of the present.
    fn begin(&mut self, observed: &RequestObservation<'_>, time: &LineTime, records: &[Record<'_>]) {
        if let Some(Record::Decision(decision)) = records.first()
            && observed.now_ms.since(time.at_ms) <= FRESH_MS
        {
            self.in_flight.begin(observed.at_ms, decision.id, decision.worker);
        }
    }

    /// The chosen worker was really given the request.
    fn dispatched(&mut self, time: &LineTime, decision: &Decision) {
        let Some((length, chain)) = self.lines.dispatched(decision.id) else { return };
        let held =
            decision.overlap_blocks.unwrap_or(0).saturating_mul(length.block_size_tokens.unwrap_or(0).into());
        let prefill_tokens = length.isl_tokens.unwrap_or(0).saturating_sub(held);
        // The router adds a request when it places it, and writes this line a little later.
        let placed = self.waiting.placed(decision.id).unwrap_or(time.moment);
        self.active.add_logged(placed, decision.id, decision.worker, &chain, prefill_tokens);
    }
}

/// When a line was written and read.
#[derive(Clone, Copy)]
struct LineTime {
    /// As far as the line tells, else when it was read.
    at_ms: Millis,
    moment: Moment,
    decided_ms: Option<Millis>,
    read_ms: Millis,
}

impl LineTime {
    fn of(observed: &RequestObservation<'_>, line: &LogRecord<'_>) -> Self {
        let decided_ms = line.at_ms();
        let at_ms = decided_ms.unwrap_or(observed.at_ms);
        let at_us = line.at_us.and_then(|us| u64::try_from(us).ok());
        let moment = at_us.map_or_else(|| Moment::of(at_ms), Moment);
        Self { at_ms, moment, decided_ms, read_ms: observed.at_ms }
    }

    /// What a choice tells of its costs; its overlap follows in another line.
    fn report(&self, decision: &Decision, length: Length, prompt: Option<Kept>) -> ChoiceReport {
        ChoiceReport {
            decision: decision.id,
            worker: decision.worker,
            source: DecisionSource::Log,
            at: self.moment,
            received_ms: self.read_ms,
            prompt,
            length,
            formula: None,
            overlap_blocks: decision.overlap_blocks,
            lower_tier_blocks: decision.lower_tier_blocks,
            logit: decision.logit,
            is_whole: false,
        }
    }

    fn key<'m>(&self, worker: WorkerIx, cluster: &Cluster, ids: &'m RequestIds<'_>) -> CorrelationKey<'m> {
        CorrelationKey {
            source: DecisionSource::Log,
            at_ms: self.at_ms,
            is_received: self.decided_ms.is_none(),
            is_query: false,
            worker,
            pool: cluster.pool_of(worker).unwrap_or_default(),
            request_id: ids.router.as_deref(),
            http_id: ids.http.as_deref(),
            overlap_blocks: None,
            isl_blocks: None,
        }
    }
}

/// Blocks of the prompt that the chosen worker held on its device: what counted as cached, less what the lower tiers earned.
fn cached_on_device(selected: &Selected<'_>) -> Option<u64> {
    Some((selected.cached_blocks?.value - credit(selected)).max(0.0) as u64)
}

/// What a line that follows the choice counts as cached, minus the lower-tier credit that the choice already contained.
fn on_device_of(decision: &Decision, cluster: &Cluster) -> Option<u64> {
    let known = cluster.decisions().get(decision.id);
    let lower = known.and_then(|known| known.decision.lower_tier_blocks).unwrap_or(0);
    on_device(decision.overlap_blocks?, lower)
}

/// Whether another line names the request of a choice if it runs. Of the lines that tell host memory, those of 1.3 alone
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

/// A prompt's length in tokens and blocks.
fn measure(decision: &mut Decision, isl_tokens: u64, block_size_tokens: u32) {
    let length = Length {
        isl_tokens: Some(isl_tokens),
        block_size_tokens: Some(block_size_tokens),
        ..Length::default()
    };
    decision.isl_tokens = length.isl_tokens;
    decision.block_size_tokens = length.block_size_tokens;
    decision.isl_blocks = length.isl_blocks();
}
