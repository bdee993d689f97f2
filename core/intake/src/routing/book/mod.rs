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
//! worker whose overlap and length agree and whose time is nearest, within [`WINDOW_MS`]. **The order of arrival between sources
//! is no evidence**: if a later report is nearer to a choice than the one it was joined with, it takes its place, and the other
//! one is joined anew. So any order leads to the same pairs. Within one log order is evidence: lines without an id follow
//! each other ([`super::lines`]). Messages of 0.8 have no time: theirs is when they were received, less what messages
//! usually took where only one choice could be meant.
//!
//! # Bounds
//!
//! At most [`MAX_REQUESTS`] requests; the oldest goes first. A prompt is dropped [`LINGER_MS`] after its choice by our clock and by
//! the publishers', an end without a choice becomes a record of its own after [`HOLD_MS`], and a request of which no choice is
//! known is forgotten after [`FORGET_MS`]. Candidates beyond [`MAX_CANDIDATES`] are left to the state.

mod length;
mod resolve;
mod slots;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hashbrown::HashMap;

use radixscope_model::id::{DecisionId, Millis, PoolIx, WorkerIx};
use radixscope_model::moment::Moment;
use radixscope_model::record::{Decision, DecisionSource, Progress, Role};
use radixscope_state::cluster::MAX_CANDIDATES;

pub(super) use length::{Length, credit};
pub(super) use resolve::{PartContext, contradiction, progress, resolve};
pub(super) use slots::{
    Candidates, Completed, Computed, Dispatched, HeldBlocks, HitRate, LoggedChoice, LoggedCosts, LoggedInput,
    LowerBlocks, OtherMode, PromptHashes, Reconstruction, ReportTime, Routed, Sequence, Slots, Steps, Trace,
};

/// Most by which the times of two reports of one choice differ. Both are the frontend's clock: what lies between is
/// the time from its decision to its publishing or logging it, under load some tens of milliseconds.
const WINDOW_MS: u64 = 1_000;
/// A line that names the request follows the line of its choice, which does not, within this time. Of several choices
/// that such a line may follow, it follows the first: the router answers in the order in which it chose.
pub(super) const FOLLOWS_MS: u64 = 50;
/// Pools that one request is routed in: prefill and decode, with one to spare; and ids of HTTP spans of it.
const MAX_PARTS: usize = 3;
/// Requests remembered: more than a router runs at a time, so that a trace at the end finds its request. Some 60 MiB.
const MAX_REQUESTS: usize = 1 << 16;
/// So long an end waits for its choice: sources lag behind each other by less.
const HOLD_MS: u64 = 10_000;
/// So long steps and names wait for a choice: one that is not reported after this long is never reported.
const FORGET_MS: u64 = 60_000;
/// How long a prompt waits for other reports of its choice: logs are read up to half a second late.
pub(super) const LINGER_MS: u64 = 2_000;
/// Prompts retained: two seconds of 1,000 a second.
const MAX_PROMPTS: usize = 2_048;
/// Their blocks together: 16 MiB.
const MAX_PROMPT_BLOCKS: usize = 1 << 21;
/// Longest time from the choice of the prefill worker to that of the decode worker, by the router's clock: measured, some
/// 5 ms where the prefill router does not wait for the prefill.
const PAIRED_WITHIN_MS: u64 = 100;
/// Choices that may be one of two of a request that no message names: as many as a router makes in that time.
const MAX_UNPAIRED: usize = 256;
/// Reports that give way to each other at one arrival. Each is nearer to its choice than the one before it.
const MAX_MOVES: usize = 32;

/// What a report contains that shows which choice it is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct CorrelationKey<'a> {
    /// A choice has one report of each source.
    pub(super) source: DecisionSource,
    /// When the router decided, by the report.
    pub(super) time: ReportTime,
    /// Whether its log names every request that runs, and named none here: a query, which other sources do not report.
    pub(super) is_query: bool,
    /// The chosen worker.
    pub(super) worker: WorkerIx,
    /// The pool it is in.
    pub(super) pool: PoolIx,
    /// What the report says that it does. Before messages name pools, it keeps choices of two pools apart.
    pub(super) role: Option<Role>,
    /// The router's id of the request.
    pub(super) request_id: Option<&'a str>,
    /// The id of the HTTP span of the request.
    pub(super) http_id: Option<&'a str>,
    /// Blocks that the worker held, by the router's count.
    pub(super) overlap_blocks: Option<u64>,
    /// Prompt length in blocks, rounded up.
    pub(super) isl_blocks: Option<u64>,
}

impl CorrelationKey<'_> {
    fn has_id(&self) -> bool {
        self.request_id.is_some() || self.http_id.is_some()
    }

    fn mark(&self) -> Mark {
        Mark {
            source: self.source,
            time: self.time,
            overlap_blocks: self.overlap_blocks,
            isl_blocks: self.isl_blocks,
            has_id: self.has_id(),
        }
    }

    /// Up to 1.3 only the second line of a choice names the request.
    fn is_later_line(&self) -> bool {
        self.source == DecisionSource::Log && self.request_id.is_some()
    }
}

/// That a source reported a choice, with what such reports are joined by.
#[derive(Clone, Copy, Debug)]
struct Mark {
    source: DecisionSource,
    time: ReportTime,
    overlap_blocks: Option<u64>,
    isl_blocks: Option<u64>,
    /// Named by its own source, so that it is about no other request.
    has_id: bool,
}

/// A request in one pool: a decision.
pub(super) struct Part {
    pub(super) id: DecisionId,
    pub(super) worker: WorkerIx,
    pub(super) pool: PoolIx,
    /// What its worker does, by a report.
    role: Option<Role>,
    /// The source that reported it first.
    source: DecisionSource,
    pub(super) slots: Slots,
    /// While costs may be computed from it.
    pub(super) prompt: Option<PromptHashes>,
    /// What its costs were computed from.
    pub(super) computed_from: Option<super::reconstruct::Report>,
    /// When the prompt was received.
    prompt_ms: Millis,
    /// Under which time its worker's choices have it.
    begun: Moment,
    marks: Vec<Mark>,
    is_query: bool,
    /// The other choice for its request, if only their times show it.
    paired: Option<DecisionId>,
}

impl Part {
    /// The source that reported it first.
    pub(super) fn source(&self) -> DecisionSource {
        self.source
    }

    /// When the prompt was received.
    pub(super) fn prompt_ms(&self) -> Millis {
        self.prompt_ms
    }

    fn mark(&self, source: DecisionSource) -> Option<&Mark> {
        self.marks.iter().find(|mark| mark.source == source)
    }

    fn has_id(&self) -> bool {
        self.marks.iter().any(|mark| mark.has_id)
    }

    /// Drops the prompt; gives how many blocks it had.
    fn drop_prompt(&mut self) -> usize {
        self.prompt.take().map_or(0, |prompt| prompt.prompt().len())
    }
}

/// A request with its parts, in the order in which they were received.
struct Request {
    request_id: Option<Box<str>>,
    http_ids: Vec<Box<str>>,
    parts: Vec<Part>,
    completed: Option<Completed>,
    /// Steps in pools in which no choice is known.
    steps: Vec<(PoolIx, Steps)>,
    received_ms: Millis,
    due: Option<Millis>,
}

/// Place of a request in the book: ascending, never used twice.
type RequestIx = u64;

/// A report that gave way to a nearer one.
struct Displaced {
    mark: Mark,
    worker: WorkerIx,
    pool: PoolIx,
    is_query: bool,
    slots: Slots,
}

/// What joining changed beside the part that a report is about.
#[derive(Default)]
pub(super) struct Effects {
    /// Choices that the log's line of another time is about now.
    pub(super) moved: Vec<(DecisionId, Moment)>,
    /// Parts whose steps or end were reported before them.
    pub(super) caught_up: Vec<DecisionId>,
}

/// The requests.
#[derive(Default)]
pub(super) struct RequestBook {
    last: u64,
    next: RequestIx,
    /// By place, which is the order in which they were received.
    requests: BTreeMap<RequestIx, Request>,
    parts: HashMap<DecisionId, RequestIx>,
    by_request: HashMap<Box<str>, RequestIx>,
    by_http: HashMap<Box<str>, RequestIx>,
    by_choice: HashMap<WorkerIx, BTreeSet<(Moment, DecisionId)>>,
    due: BTreeSet<(Millis, RequestIx)>,
    /// Parts whose decision may differ from what the state has.
    changed: BTreeSet<DecisionId>,
    effects: Effects,
    /// Parts with candidates, oldest first, and how many candidates they have.
    with_candidates: VecDeque<(DecisionId, usize)>,
    candidates: usize,
    /// Parts whose prompts were received, oldest first; some are dropped already.
    with_prompts: VecDeque<DecisionId>,
    prompt_blocks: usize,
    unpaired: VecDeque<DecisionId>,
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

    /// The part that a report is about: one that is known, or a new one.
    pub(super) fn join(&mut self, key: &CorrelationKey<'_>, received_ms: Millis) -> DecisionId {
        let request = self.find_request(key.request_id, key.http_id);
        let known = request.and_then(|ix| self.part_in(ix, (key.worker, key.pool), key.role));
        let id = match known.or_else(|| self.join_by_time(key)) {
            Some(id) => id,
            None => self.begin(key, request, received_ms),
        };
        if known.is_none() && key.has_id() {
            self.name(id, key.request_id, key.http_id, received_ms);
        }
        if let Some(part) = self.part_mut(id) {
            let mark = key.mark();
            part.role = part.role.or(key.role);
            match part.marks.iter_mut().find(|mark| mark.source == key.source) {
                Some(known) => {
                    known.has_id |= mark.has_id;
                    known.overlap_blocks = known.overlap_blocks.or(mark.overlap_blocks);
                    known.isl_blocks = known.isl_blocks.or(mark.isl_blocks);
                }
                None => part.marks.push(mark),
            }
        }
        self.changed.insert(id);
        id
    }

    /// The parts of a request that is known by either id.
    pub(super) fn parts_of(&mut self, request_id: Option<&str>, http_id: Option<&str>) -> Vec<DecisionId> {
        let ix = self.find_request(request_id, http_id);
        let request = ix.and_then(|ix| self.requests.get(&ix));
        request.map_or_else(Vec::new, |request| request.parts.iter().map(|part| part.id).collect())
    }

    /// The router's id of the request in an HTTP span.
    pub(super) fn request_in(&self, http_id: &str) -> Option<&str> {
        self.requests.get(self.by_http.get(http_id)?)?.request_id.as_deref()
    }

    /// Both ids are of one request.
    pub(super) fn same(&mut self, request_id: &str, http_id: &str, received_ms: Millis) {
        self.request(Some(request_id), Some(http_id), received_ms);
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

    /// The only choice of `worker` within a time that no request is known of becomes that of a request: its own lines do not
    /// name it otherwise.
    pub(super) fn name_only(
        &mut self,
        worker: WorkerIx,
        (from, to): (Millis, Millis),
        request_id: &str,
        received_ms: Millis,
    ) -> Option<DecisionId> {
        let (from, to) = (Moment::of(from), Moment::of(to).plus_ms(1).before());
        let fits =
            |part: &Part| !part.has_id() && part.marks.iter().any(|mark| (from..=to).contains(&mark.time.at));
        let near = self.near(worker, from, to);
        let mut fitting = near.into_iter().filter(|&id| self.part(id).is_some_and(fits));
        let (only, None) = (fitting.next()?, fitting.next()) else { return None };
        if let Some(mark) = self.part_mut(only).and_then(|part| part.marks.first_mut()) {
            mark.has_id = true;
        }
        self.name(only, Some(request_id), None, received_ms);
        self.changed.insert(only);
        Some(only)
    }

    /// A part.
    pub(super) fn part(&self, id: DecisionId) -> Option<&Part> {
        let request = self.requests.get(self.parts.get(&id)?)?;
        request.parts.iter().find(|part| part.id == id)
    }

    /// A part whose slots are about to be filled.
    pub(super) fn change(&mut self, id: DecisionId) -> Option<&mut Part> {
        self.changed.insert(id);
        self.part_mut(id)
    }

    fn part_mut(&mut self, id: DecisionId) -> Option<&mut Part> {
        let request = self.requests.get_mut(self.parts.get(&id)?)?;
        request.parts.iter_mut().find(|part| part.id == id)
    }

    /// The other choice for the request of a part: where prefill and decode are apart, a request has two.
    pub(super) fn other(&self, id: DecisionId) -> Option<&Part> {
        let request = self.requests.get(self.parts.get(&id)?)?;
        let own = request.parts.iter().find(|part| part.id == id)?;
        let has_chain = |part: &Part| part.slots.sequence.as_ref().map(|of| of.full_blocks.is_some());
        let others = || request.parts.iter().filter(|part| part.id != id);
        let completes =
            |part: &&Part| matches!((has_chain(own), has_chain(part)), (Some(a), Some(b)) if a != b);
        others().find(completes).or_else(|| others().next()).or_else(|| self.part(own.paired?))
    }

    /// Every part of the request of a part.
    pub(super) fn siblings(&self, id: DecisionId) -> &[Part] {
        let request = self.parts.get(&id).and_then(|ix| self.requests.get(ix));
        request.map_or(&[][..], |request| request.parts.as_slice())
    }

    /// What is known of the request of a part: its id and its end.
    pub(super) fn request_of(&self, id: DecisionId) -> (Option<&str>, Option<&Completed>) {
        let request = self.parts.get(&id).and_then(|ix| self.requests.get(ix));
        request.map_or((None, None), |request| (request.request_id.as_deref(), request.completed.as_ref()))
    }

    /// Keeps the prompt of a choice, for as long as reports of other sources may come. Hashes of single blocks go before those
    /// of the whole prompt up to a block, because they name each block.
    pub(super) fn set_prompt(&mut self, id: DecisionId, prompt: PromptHashes, received_ms: Millis) {
        let Some(part) = self.change(id) else { return };
        if part.prompt.as_ref().is_none_or(|known| prompt.is_local() && !known.is_local()) {
            if part.prompt.is_none() {
                part.prompt_ms = received_ms;
            }
            let blocks = prompt.prompt().len();
            let before = part.drop_prompt();
            part.prompt = Some(prompt);
            self.prompt_blocks = self.prompt_blocks + blocks - before;
            self.with_prompts.push_back(id);
            while self.prompt_blocks > MAX_PROMPT_BLOCKS || self.with_prompts.len() > MAX_PROMPTS {
                let Some(oldest) = self.with_prompts.pop_front() else { break };
                if let Some(dropped) = self.part_mut(oldest).map(Part::drop_prompt) {
                    self.prompt_blocks -= dropped;
                }
            }
        }
        if let Some(&ix) = self.parts.get(&id) {
            self.schedule(ix);
        }
    }

    /// Parts whose prompts were not dropped yet.
    pub(super) fn with_prompts(&self) -> impl Iterator<Item = &Part> {
        let parts = self.with_prompts.iter().filter_map(|id| self.part(*id));
        parts.filter(|part| part.prompt.is_some())
    }

    /// Counts the candidates of a part. Of too many, the oldest are left to the state.
    pub(super) fn count_candidates(&mut self, id: DecisionId, count: usize) {
        self.with_candidates.push_back((id, count));
        self.candidates += count;
        while self.candidates > MAX_CANDIDATES {
            let Some((oldest, count)) = self.with_candidates.pop_front() else { break };
            self.candidates -= count;
            if let Some(part) = self.part_mut(oldest) {
                leave_candidates(part);
            }
        }
    }

    /// Links two choices whose messages name no request (`kv-hit-rate` of a disaggregated 0.8 or 0.9): the router chooses a decode
    /// worker some milliseconds after the prefill worker, for a prompt of the same length. Only what can be about one request
    /// alone is linked.
    pub(super) fn pair(&mut self, id: DecisionId, is_decode: bool) {
        if !is_decode {
            if !self.unpaired.contains(&id) {
                if self.unpaired.len() == MAX_UNPAIRED {
                    self.unpaired.pop_front();
                }
                self.unpaired.push_back(id);
            }
            return;
        }
        let Some(decode) = self.part(id).filter(|part| part.paired.is_none()) else { return };
        let Some(HitRate { time, isl_blocks, .. }) = decode.slots.hit_rate else { return };
        let at = time.at.millis();
        let chosen = |id: &DecisionId| self.part(*id)?.slots.hit_rate;
        let fits = |id: &DecisionId| {
            chosen(id).is_some_and(|of| {
                let chosen_ms = of.time.at.millis();
                of.isl_blocks == isl_blocks && chosen_ms <= at && at.since(chosen_ms) <= PAIRED_WITHIN_MS
            })
        };
        let fitting: Vec<DecisionId> = self.unpaired.iter().copied().filter(fits).collect();
        // Which belongs to which is ambiguous where there are several, so none of them is matched later.
        self.unpaired.retain(|id| !fitting.contains(id));
        if let [prefill] = fitting[..] {
            for (one, other) in [(prefill, id), (id, prefill)] {
                if let Some(part) = self.change(one) {
                    part.paired = Some(other);
                }
            }
        }
    }

    /// Links choices whose messages name no request, once it is known what their pools do, in the order of their times.
    pub(super) fn pair_all(&mut self, is_decode: impl Fn(PoolIx) -> Option<bool>) {
        let all = self.requests.values().flat_map(|request| &request.parts);
        let chosen = all.filter(|part| part.paired.is_none()).filter_map(|part| {
            let at = part.slots.hit_rate?.time.at;
            Some((at, part.id, is_decode(part.pool)?))
        });
        let mut chosen: Vec<(Moment, DecisionId, bool)> = chosen.collect();
        chosen.sort_unstable();
        for (_, id, is_decode) in chosen {
            self.pair(id, is_decode);
        }
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
    pub(super) fn change_where(&mut self, is_meant: impl Fn(&Part) -> bool) {
        let all = self.requests.values().flat_map(|request| &request.parts);
        self.changed.extend(all.filter(|part| is_meant(part)).map(|part| part.id));
    }

    /// What joining changed since the last call.
    pub(super) fn take_effects(&mut self) -> Effects {
        std::mem::take(&mut self.effects)
    }

    /// What is due by our clock and by the deployment's: prompts are dropped, and requests of which no choice is known are
    /// forgotten. Gives the ends of those that waited for a choice.
    pub(super) fn expire(&mut self, now: Millis, present: Moment) -> Vec<Completed> {
        let mut ends = Vec::new();
        while let Some(&(due, ix)) = self.due.first().filter(|(due, _)| *due <= now) {
            self.due.remove(&(due, ix));
            let Some(request) = self.requests.get_mut(&ix) else { continue };
            request.due = None;
            let age_ms = now.since(request.received_ms);
            if request.parts.is_empty() {
                let is_over = |end: &Completed| {
                    age_ms > HOLD_MS && present.millis().since(end.ended.ended_ms) > HOLD_MS
                };
                // A deployment that is silent has no present.
                if age_ms > FORGET_MS || request.completed.as_ref().is_some_and(is_over) {
                    ends.extend(request.completed);
                    self.remove(ix);
                } else {
                    request.due = Some(Millis(now.0 + LINGER_MS));
                }
            } else {
                let mut dropped = 0;
                for part in request.parts.iter_mut().filter(|part| part.prompt.is_some()) {
                    let is_passed = present >= part.begun.plus_ms(LINGER_MS);
                    let age_ms = now.since(part.prompt_ms);
                    if (is_passed && age_ms > LINGER_MS) || age_ms > FORGET_MS {
                        dropped += part.drop_prompt();
                    } else {
                        request.due = Some(Millis(now.0 + LINGER_MS));
                    }
                }
                self.prompt_blocks -= dropped;
            }
            let due = self.requests.get(&ix).and_then(|request| request.due);
            self.due.extend(due.map(|due| (due, ix)));
        }
        ends
    }

    /// This index names no worker any more.
    pub(super) fn retire(&mut self, workers: &[WorkerIx]) {
        let all = self.requests.values().flat_map(|request| &request.parts);
        let of_them: Vec<DecisionId> =
            all.filter(|part| workers.contains(&part.worker)).map(|part| part.id).collect();
        for id in of_them {
            self.changed.remove(&id);
            let Some(ix) = self.parts.remove(&id) else { continue };
            let Some(request) = self.requests.get_mut(&ix) else { continue };
            let Some(at) = request.parts.iter().position(|part| part.id == id) else { continue };
            let mut part = request.parts.remove(at);
            self.unindex(&part);
            self.prompt_blocks -= part.drop_prompt();
            self.schedule(ix);
        }
        for request in self.requests.values_mut() {
            request.steps.iter_mut().for_each(|(_, steps)| {
                steps.freed = steps.freed.filter(|(_, worker)| !workers.contains(worker));
            });
            request.parts.iter_mut().for_each(leave_candidates);
        }
        (self.with_candidates, self.candidates) = (VecDeque::new(), 0);
    }

    /// The request with these ids. Ids that were known apart become one.
    fn find_request(&mut self, request_id: Option<&str>, http_id: Option<&str>) -> Option<RequestIx> {
        let by_request = request_id.and_then(|id| self.by_request.get(id).copied());
        // A client may send the same id twice: it then stands for the latest request.
        let is_other = |ix: &RequestIx| {
            let known = self.requests.get(ix).and_then(|request| request.request_id.as_deref());
            request_id.is_some() && known.is_some() && known != request_id
        };
        let by_http = http_id.and_then(|id| self.by_http.get(id).copied()).filter(|ix| !is_other(ix));
        let found = match (by_request, by_http) {
            (Some(named), Some(spanned)) if named != spanned => {
                self.merge(spanned, named);
                named
            }
            (named, spanned) => named.or(spanned)?,
        };
        self.set_ids(found, request_id, http_id);
        Some(found)
    }

    /// The same, begun if there is none.
    fn request(&mut self, request_id: Option<&str>, http_id: Option<&str>, received_ms: Millis) -> RequestIx {
        if let Some(known) = self.find_request(request_id, http_id) {
            return known;
        }
        while self.requests.len() >= MAX_REQUESTS {
            let Some(&oldest) = self.requests.keys().next() else { break };
            self.remove(oldest);
        }
        let ix = self.next;
        self.next += 1;
        let request = Request {
            request_id: None,
            http_ids: Vec::new(),
            parts: Vec::new(),
            completed: None,
            steps: Vec::new(),
            received_ms,
            due: None,
        };
        self.requests.insert(ix, request);
        self.set_ids(ix, request_id, http_id);
        self.schedule(ix);
        ix
    }

    fn set_ids(&mut self, ix: RequestIx, request_id: Option<&str>, http_id: Option<&str>) {
        let Some(request) = self.requests.get_mut(&ix) else { return };
        if let Some(id) = request_id.filter(|_| request.request_id.is_none()) {
            request.request_id = Some(id.into());
            self.by_request.insert(id.into(), ix);
            let parts = request.parts.iter().map(|part| part.id);
            self.changed.extend(parts);
        }
        if let Some(id) = http_id {
            let is_known = request.http_ids.iter().any(|known| **known == *id);
            if !is_known && request.http_ids.len() < MAX_PARTS {
                request.http_ids.push(id.into());
            }
            if is_known || request.http_ids.last().is_some_and(|last| **last == *id) {
                self.by_http.insert(id.into(), ix);
            }
        }
    }

    /// Two places are of one request.
    fn merge(&mut self, from: RequestIx, to: RequestIx) {
        let Some(mut gone) = self.requests.remove(&from) else { return };
        if let Some(due) = gone.due {
            self.due.remove(&(due, from));
        }
        if let Some(id) = gone.request_id.take()
            && self.by_request.get(&*id) == Some(&from)
        {
            self.by_request.remove(&*id);
        }
        for id in std::mem::take(&mut gone.http_ids) {
            if self.by_http.get(&*id) == Some(&from) {
                self.by_http.remove(&*id);
                self.set_ids(to, None, Some(&id));
            }
        }
        if let Some(request) = self.requests.get_mut(&to) {
            request.completed = request.completed.or(gone.completed);
            request.steps.append(&mut gone.steps);
        }
        for part in gone.parts {
            self.parts.remove(&part.id);
            self.add_part(to, part);
        }
        self.schedule(to);
    }

    fn remove(&mut self, ix: RequestIx) {
        let Some(request) = self.requests.remove(&ix) else { return };
        if let Some(due) = request.due {
            self.due.remove(&(due, ix));
        }
        if let Some(id) = request.request_id.filter(|id| self.by_request.get(&**id) == Some(&ix)) {
            self.by_request.remove(&*id);
        }
        for id in request.http_ids {
            if self.by_http.get(&*id) == Some(&ix) {
                self.by_http.remove(&*id);
            }
        }
        for mut part in request.parts {
            self.parts.remove(&part.id);
            self.changed.remove(&part.id);
            self.unindex(&part);
            self.prompt_blocks -= part.drop_prompt();
        }
    }

    fn new_part(&self, id: DecisionId, worker: WorkerIx, pool: PoolIx, source: DecisionSource) -> Part {
        Part {
            id,
            worker,
            pool,
            role: None,
            source,
            slots: Slots::default(),
            prompt: None,
            computed_from: None,
            prompt_ms: Millis(0),
            begun: Moment::default(),
            marks: Vec::new(),
            is_query: false,
            paired: None,
        }
    }

    fn begin(
        &mut self,
        key: &CorrelationKey<'_>,
        request: Option<RequestIx>,
        received_ms: Millis,
    ) -> DecisionId {
        let ix = request.unwrap_or_else(|| self.request(key.request_id, key.http_id, received_ms));
        self.last += 1;
        let id = DecisionId(self.last);
        let mut part = self.new_part(id, key.worker, key.pool, key.source);
        part.is_query = key.is_query;
        part.begun = key.time.at;
        self.by_choice.entry(key.worker).or_default().insert((key.time.at, id));
        part.role = key.role;
        part.marks.push(key.mark());
        self.add_part(ix, part);
        if key.source == DecisionSource::ActiveSequences {
            self.attract(id, key);
        }
        id
    }

    fn add_part(&mut self, ix: RequestIx, mut part: Part) {
        let Some(request) = self.requests.get_mut(&ix) else { return };
        let mut is_late = request.completed.is_some();
        if let Some(at) = request.steps.iter().position(|(pool, _)| *pool == part.pool) {
            let (_, steps) = request.steps.swap_remove(at);
            part.slots.steps.add(steps);
            is_late = true;
        }
        if is_late {
            self.effects.caught_up.push(part.id);
        }
        self.parts.insert(part.id, ix);
        request.parts.push(part);
        // Each of several links to another.
        self.changed.extend(request.parts.iter().map(|part| part.id));
        self.schedule(ix);
    }

    /// From now on a part is of the request with these ids.
    fn name(&mut self, id: DecisionId, request_id: Option<&str>, http_id: Option<&str>, received_ms: Millis) {
        let Some(&own) = self.parts.get(&id) else { return };
        match self.find_request(request_id, http_id) {
            Some(named) if named != own => self.merge(own, named),
            Some(_) => {}
            None => {
                let is_named = self.requests.get(&own).is_some_and(|r| r.request_id.is_some());
                if is_named && request_id.is_some() {
                    self.request(request_id, http_id, received_ms);
                } else {
                    self.set_ids(own, request_id, http_id);
                }
            }
        }
    }

    /// The part of a request on `worker`, else in `pool`: a request that failed on one worker goes to another of its pool.
    fn part_in(
        &self,
        ix: RequestIx,
        (worker, pool): (WorkerIx, PoolIx),
        role: Option<Role>,
    ) -> Option<DecisionId> {
        let parts = &self.requests.get(&ix)?.parts;
        let is_apart = |part: &Part| role.is_some() && part.role.is_some() && part.role != role;
        let on_worker = parts.iter().find(|part| part.worker == worker);
        on_worker
            .or_else(|| parts.iter().find(|part| part.pool == pool && !is_apart(part)))
            .map(|part| part.id)
    }

    /// Choices of a worker that began within a time, or so near to it that a report of theirs may lie in it.
    fn near(&self, worker: WorkerIx, from: Moment, to: Moment) -> Vec<DecisionId> {
        let Some(of_worker) = self.by_choice.get(&worker) else { return Vec::new() };
        let (from, to) = (from.minus_ms(WINDOW_MS), to.plus_ms(WINDOW_MS));
        of_worker.range((from, DecisionId(0))..=(to, DecisionId(u64::MAX))).map(|(_, id)| *id).collect()
    }

    /// How far apart the times of two reports of one choice are, in microseconds.
    fn apart(&self, one: ReportTime, other: ReportTime) -> u64 {
        match (one.is_received, other.is_received) {
            (true, false) => one.at.0.abs_diff(other.at.0.saturating_add(self.delay_us)),
            (false, true) => other.at.0.abs_diff(one.at.0.saturating_add(self.delay_us)),
            _ => one.at.apart(other.at),
        }
    }

    /// How near a report is to what other sources reported of a choice; `None`: it cannot be about it.
    fn nearness(&self, part: &Part, key: &CorrelationKey<'_>) -> Option<u64> {
        let others = || part.marks.iter().filter(|mark| mark.source != key.source);
        let agree = |a: Option<u64>, b: Option<u64>| a.is_none() || b.is_none() || a == b;
        let agrees = others().all(|mark| {
            agree(mark.overlap_blocks, key.overlap_blocks) && agree(mark.isl_blocks, key.isl_blocks)
        });
        let is_near = others().any(|mark| mark.time.at.apart(key.time.at) <= WINDOW_MS * 1_000);
        if !agrees || !is_near {
            return None;
        }
        others().map(|mark| self.apart(mark.time, key.time)).min()
    }

    /// The choice that a report without a known id is about, by its time.
    fn join_by_time(&mut self, key: &CorrelationKey<'_>) -> Option<DecisionId> {
        let (found, is_only) = self.nearest(key)?;
        if is_only {
            self.learn_delay(found, key);
        }
        // A later line of a choice displaces no line of it.
        if !key.is_later_line() {
            let displaced = self.displace(found, key.source);
            // It has the place before the displaced one looks for another.
            if let Some(part) = self.part_mut(found).filter(|part| part.mark(key.source).is_none()) {
                part.marks.push(key.mark());
            }
            self.settle_displaced(displaced);
        }
        Some(found)
    }

    /// The nearest choice that a report may be about, and whether it is the only one.
    fn nearest(&self, key: &CorrelationKey<'_>) -> Option<(DecisionId, bool)> {
        let has_id = key.has_id();
        let is_later_line = key.is_later_line();
        let mut best: Option<((u8, u64, Moment, DecisionId), DecisionId)> = None;
        let mut count = 0;
        for id in self.near(key.worker, key.time.at, key.time.at) {
            let Some(part) = self.part(id) else { continue };
            if (part.has_id() && (has_id || key.is_query)) || (part.is_query && has_id && !is_later_line) {
                continue;
            }
            let own = part.mark(key.source);
            let begun = part.marks.iter().map(|mark| mark.time.at).min().unwrap_or_default();
            if is_later_line && let Some(own) = own {
                // The line of the choice came before it in the same log.
                let agrees = own.overlap_blocks.is_none()
                    || key.overlap_blocks.is_none()
                    || own.overlap_blocks == key.overlap_blocks;
                let apart = own.time.at.apart(key.time.at);
                if own.has_id || !agrees || apart > WINDOW_MS * 1_000 {
                    continue;
                }
                count += 1;
                let follows = own.time.at <= key.time.at && apart <= FOLLOWS_MS * 1_000;
                let rank = if follows { (0, own.time.at.0, begun, id) } else { (1, apart, begun, id) };
                if best.is_none_or(|(known, _)| rank < known) {
                    best = Some((rank, id));
                }
                continue;
            }
            let Some(apart) = self.nearness(part, key) else { continue };
            if let Some(own) = own {
                // Another report of the source stands there. It gives way to a nearer one, if its own source does not name it.
                let of_own = CorrelationKey {
                    time: own.time,
                    overlap_blocks: own.overlap_blocks,
                    isl_blocks: own.isl_blocks,
                    ..*key
                };
                let known = self.nearness(part, &of_own).unwrap_or(u64::MAX);
                if own.has_id || has_id || (known, own.time.at) <= (apart, key.time.at) {
                    continue;
                }
            }
            count += 1;
            let rank = (1, apart, begun, id);
            if best.is_none_or(|(known, _)| rank < known) {
                best = Some((rank, id));
            }
        }
        best.map(|(_, id)| (id, count == 1))
    }

    fn learn_delay(&mut self, id: DecisionId, key: &CorrelationKey<'_>) {
        let other = self.part(id).and_then(|part| {
            part.marks.iter().find(|mark| mark.time.is_received != key.time.is_received).map(|mark| mark.time)
        });
        let Some(other) = other else { return };
        let (received, decided) =
            if key.time.is_received { (key.time.at, other.at) } else { (other.at, key.time.at) };
        self.delay_us = received.0.saturating_sub(decided.0);
    }

    /// Takes the report of a source out of a part, if there is one that a nearer one may displace.
    fn displace(&mut self, id: DecisionId, source: DecisionSource) -> Option<Displaced> {
        let part = self.part_mut(id)?;
        let at = part.marks.iter().position(|mark| mark.source == source && !mark.has_id)?;
        if part.marks.len() == 1 {
            return None;
        }
        let mut slots = Slots::default();
        match source {
            DecisionSource::KvHitRate => slots.hit_rate = part.slots.hit_rate.take(),
            DecisionSource::Log => {
                slots.choice = part.slots.choice.take();
                slots.costs = part.slots.costs.take();
                slots.other_mode = part.slots.other_mode.take();
            }
            DecisionSource::ActiveSequences | DecisionSource::RequestTrace => return None,
        }
        let mark = part.marks.remove(at);
        let displaced =
            Displaced { mark, worker: part.worker, pool: part.pool, is_query: part.is_query, slots };
        self.changed.insert(id);
        Some(displaced)
    }

    /// Joins reports anew that gave way to nearer ones.
    fn settle_displaced(&mut self, mut displaced: Option<Displaced>) {
        for _ in 0..MAX_MOVES {
            let Some(Displaced { mark, worker, pool, is_query, slots }) = displaced.take() else { return };
            let key = CorrelationKey {
                source: mark.source,
                time: mark.time,
                is_query,
                worker,
                pool,
                role: None,
                request_id: None,
                http_id: None,
                overlap_blocks: mark.overlap_blocks,
                isl_blocks: mark.isl_blocks,
            };
            let to = match self.nearest(&key) {
                Some((found, _)) => {
                    displaced = self.displace(found, mark.source);
                    found
                }
                None => self.begin(&key, None, Millis(0)),
            };
            self.put(to, mark, slots);
        }
        // As many moves as this are never needed: what is left begins a choice of its own.
        if let Some(Displaced { mark, worker, pool, is_query, slots }) = displaced {
            let key = CorrelationKey {
                source: mark.source,
                time: mark.time,
                is_query,
                worker,
                pool,
                role: None,
                request_id: None,
                http_id: None,
                overlap_blocks: mark.overlap_blocks,
                isl_blocks: mark.isl_blocks,
            };
            let to = self.begin(&key, None, Millis(0));
            self.put(to, mark, slots);
        }
    }

    /// Puts a report that was displaced into another part.
    fn put(&mut self, id: DecisionId, mark: Mark, slots: Slots) {
        self.changed.insert(id);
        let Some(part) = self.part_mut(id) else { return };
        if part.mark(mark.source).is_none() {
            part.marks.push(mark);
        }
        part.slots.hit_rate = part.slots.hit_rate.or(slots.hit_rate);
        part.slots.other_mode = part.slots.other_mode.or(slots.other_mode);
        if part.slots.costs.is_none() {
            part.slots.costs = slots.costs;
        }
        if part.slots.choice.is_none() {
            part.slots.choice = slots.choice;
            if let Some(choice) = slots.choice.filter(|choice| !choice.time.is_received) {
                self.effects.moved.push((id, choice.time.at));
            }
        }
    }

    /// A message that names its request began a part: reports without an id that were joined with another such message, and are
    /// nearer to this one, are about this one.
    fn attract(&mut self, id: DecisionId, key: &CorrelationKey<'_>) {
        for source in [DecisionSource::Log, DecisionSource::KvHitRate] {
            let near = self.near(key.worker, key.time.at, key.time.at);
            let nearer = |other: DecisionId| {
                let part = self.part(other).filter(|part| part.id != id)?;
                let mark = part.mark(source).filter(|mark| !mark.has_id)?;
                let known = part.mark(DecisionSource::ActiveSequences)?;
                let agree = |a: Option<u64>, b: Option<u64>| a.is_none() || b.is_none() || a == b;
                let agrees =
                    agree(mark.overlap_blocks, key.overlap_blocks) && agree(mark.isl_blocks, key.isl_blocks);
                let apart = self.apart(mark.time, key.time);
                let is_nearer = (apart, key.time.at) < (self.apart(mark.time, known.time), known.time.at);
                (agrees && is_nearer && mark.time.at.apart(key.time.at) <= WINDOW_MS * 1_000)
                    .then_some((apart, other))
            };
            let best = near.into_iter().filter_map(nearer).min();
            if let Some((_, from)) = best
                && let Some(Displaced { mark, slots, .. }) = self.displace(from, source)
            {
                self.put(id, mark, slots);
            }
        }
    }

    fn unindex(&mut self, part: &Part) {
        if let Some(of_worker) = self.by_choice.get_mut(&part.worker) {
            of_worker.remove(&(part.begun, part.id));
            if of_worker.is_empty() {
                self.by_choice.remove(&part.worker);
            }
        }
    }

    fn schedule(&mut self, ix: RequestIx) {
        let Some(request) = self.requests.get_mut(&ix) else { return };
        let wait = match (request.parts.is_empty(), &request.completed) {
            (true, Some(_)) => Some(HOLD_MS + 1),
            (true, None) => Some(FORGET_MS + 1),
            (false, _) => None,
        };
        let prompts = request.parts.iter().filter(|part| part.prompt.is_some());
        let prompts = prompts.map(|part| Millis(part.prompt_ms.0 + LINGER_MS + 1)).min();
        let due = wait.map(|wait| Millis(request.received_ms.0 + wait)).or(prompts);
        if due != request.due {
            if let Some(known) = std::mem::replace(&mut request.due, due) {
                self.due.remove(&(known, ix));
            }
            self.due.extend(due.map(|due| (due, ix)));
        }
    }
}

/// The state has the candidates of this part.
fn leave_candidates(part: &mut Part) {
    if let Some(costs) = &mut part.slots.costs {
        costs.candidates = Candidates::InState;
    }
    if let Some(Ok(computed)) = part.slots.reconstruction.as_mut().map(|of| of.outcome.as_mut()) {
        computed.candidates = Candidates::InState;
    }
    if let Some((known, _)) = part.slots.restored.as_deref_mut() {
        known.candidates = Vec::new();
    }
}
