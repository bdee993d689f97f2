//! The requests that run, as the router keeps them: what loads each worker (reference §5.1), now and at a time of the
//! last seconds.
//!
//! Knows nothing of where a step was read. Dynamo forgets a request after [`EXPIRE_MS`]; so does this. First token and
//! end of a request may be received before its beginning: they are kept until then. A request whose steps no source
//! reports loads its worker for a time that is not known.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;

use super::KEPT_MS;
use crate::per_worker::PerWorker;
use radixscope_model::id::{DecisionId, Millis, WorkerIx};
use radixscope_model::micros::Micros;

/// Dynamo frees a request that was never freed after this long.
pub const EXPIRE_MS: u64 = 300_000;
/// Most requests followed at a time.
const MAX_REQUESTS: usize = 1 << 16;
/// Most block hashes of them together: 64 MiB.
const MAX_BLOCKS: usize = 1 << 23;
/// Steps kept for what was loads of the last seconds: twelve seconds of 2,500 requests each.
const MAX_PASSED: usize = 1 << 17;
/// Requests whose end or first token is remembered in case their beginning is reported only now, or again.
const MAX_ENDED: usize = 1 << 14;

/// What the active requests of a worker add up to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SequenceLoad {
    /// Prompt tokens that were routed there and not found there, of requests without an output token yet.
    pub prefill_tokens: u64,
    /// Distinct full blocks of its requests.
    pub blocks: u64,
    /// Requests.
    pub requests: u32,
}

/// What a worker was busy with when a request was weighed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PastLoad {
    /// Tokens, blocks and requests.
    pub load: SequenceLoad,
    /// Blocks of the request that no active one had.
    pub new_blocks: u64,
    /// Whether any request had ever been routed there.
    pub was_used: bool,
    /// Whether a request was routed there whose first token and end are not reported: the worker's load is unknown.
    pub is_uncertain: bool,
}

/// At which time loads are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadTime {
    /// Steps that were reported with a time until then had happened.
    pub at: Micros,
    /// When the router decided.
    pub decided: Micros,
    /// Whether its log gave that time: it orders choices exactly, so that those before had happened and no others.
    pub is_logged: bool,
}

/// Follows requests from routing to their end.
#[derive(Default)]
pub struct ActiveSequences {
    requests: HashMap<DecisionId, Active>,
    workers: PerWorker<WorkerLoad>,
    /// In order of addition, for expiry. Those already freed are passed over.
    order: VecDeque<(Micros, DecisionId)>,
    blocks: usize,
    refused: u64,
    /// The steps of the last seconds, in the order in which they were reported.
    passed: VecDeque<PastStep>,
    /// Latest time of any step.
    latest: Micros,
    /// Before this time loads are not known.
    known_since: Micros,
    /// First tokens and ends of requests that are not followed, or not any more.
    ended: HashMap<DecisionId, Steps>,
    ended_order: VecDeque<DecisionId>,
    /// Whether workers publish first tokens, as they do from Dynamo 1.5 on.
    workers_report: bool,
    /// Steps received so far.
    received: u64,
    /// Latest time of our clock.
    received_ms: Millis,
}

struct Active {
    worker: WorkerIx,
    blocks: Arc<[u64]>,
    prefill_tokens: u64,
    added: Micros,
    /// Whether `added` is the time of the choice in the router's log.
    is_logged: bool,
    /// How many steps had been received when its router's message of it was.
    reported: Option<u64>,
    first_token: Option<Micros>,
}

/// What is known of a request beyond its beginning.
#[derive(Clone, Copy, Default)]
struct Steps {
    /// The choice, by the router's log.
    chosen: Option<Micros>,
    first_token: Option<Micros>,
    freed: Option<Micros>,
    /// Its end by a log or a trace, which counts where the router publishes no steps of it.
    freed_logged: Option<Micros>,
    /// As in [`Active`], of one that is over.
    reported: Option<u64>,
    /// It was followed to its end: its beginning, reported again, is none.
    is_over: bool,
}

/// One step, as it changed a load.
struct PastStep {
    at: Micros,
    /// Latest time of this step and all before it.
    latest: Micros,
    request: DecisionId,
    worker: WorkerIx,
    step: LoadStep,
    /// Whether `at` is the time of a choice in the router's log.
    is_logged: bool,
    /// How many steps had been received before.
    received: u64,
    /// When it was received, by our clock.
    received_ms: Millis,
    /// Prompt tokens that it added or took away.
    tokens: u64,
    blocks: Arc<[u64]>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LoadStep {
    Added,
    FirstToken,
    Freed,
}

#[derive(Default)]
struct WorkerLoad {
    load: SequenceLoad,
    /// How many requests have each block.
    held: HashMap<u64, u32>,
    /// The earliest request that was routed there, and when.
    first: Option<(Micros, DecisionId)>,
    /// Requests without reported steps, oldest first.
    unsure: VecDeque<UntrackedRequest>,
}

impl WorkerLoad {
    /// A request has these blocks.
    fn hold(&mut self, blocks: &[u64]) {
        for &block in blocks {
            *self.held.entry(block).or_default() += 1;
        }
        self.load.blocks = self.held.len() as u64;
    }

    /// A request has these blocks no more.
    fn release(&mut self, blocks: &[u64]) {
        for block in blocks {
            if let Some(count) = self.held.get_mut(block) {
                *count -= 1;
                if *count == 0 {
                    self.held.remove(block);
                }
            }
        }
        self.load.blocks = self.held.len() as u64;
    }

    /// A request is over, at `at`.
    fn end(&mut self, at: Micros, request: DecisionId, active: &Active) {
        self.load.requests -= 1;
        self.load.prefill_tokens = self.load.prefill_tokens.saturating_sub(active.prefill_tokens);
        self.release(&active.blocks);
        if let Some(unsure) = self.unsure.iter_mut().find(|unsure| unsure.request == request) {
            unsure.freed = Some(at);
        }
    }
}

/// A request that loads its worker for a time that is not known: from its choice to its end, if that is known.
struct UntrackedRequest {
    request: DecisionId,
    added: Micros,
    freed: Option<Micros>,
}

impl ActiveSequences {
    /// A request was routed to `worker`. `blocks` are the chain hashes of the prompt's full blocks, `prefill_tokens`
    /// what it has to compute. A request that is already followed is left as it is.
    pub fn add(
        &mut self,
        at: Micros,
        request: DecisionId,
        worker: WorkerIx,
        blocks: &[u64],
        prefill_tokens: u64,
    ) {
        self.expire(at);
        let steps = self.ended.get(&request).copied().unwrap_or_default();
        let at = steps.chosen.unwrap_or(at);
        if steps.is_over || self.requests.contains_key(&request) {
            return;
        }
        if self.requests.len() == MAX_REQUESTS || self.blocks + blocks.len() > MAX_BLOCKS {
            self.refused += 1;
            return;
        }
        let of = self.workers.of(worker);
        of.load.requests += 1;
        of.load.prefill_tokens = of.load.prefill_tokens.saturating_add(prefill_tokens);
        of.hold(blocks);
        of.first = Some(of.first.map_or((at, request), |first| first.min((at, request))));
        self.blocks += blocks.len();
        if self.order.len() >= 2 * MAX_REQUESTS {
            // One request that never ends keeps those freed after it here: at most as many as are followed.
            let Self { order, requests, .. } = self;
            order.retain(|(_, request)| requests.contains_key(request));
        }
        self.order.push_back((at, request));
        let blocks: Arc<[u64]> = blocks.into();
        let is_logged = steps.chosen.is_some();
        self.pass(at, request, worker, (LoadStep::Added, is_logged), prefill_tokens, blocks.clone());
        self.requests.insert(
            request,
            Active {
                worker,
                blocks,
                prefill_tokens,
                added: at,
                is_logged,
                reported: None,
                first_token: None,
            },
        );
        if let Some(at) = steps.first_token {
            self.prefill_completed(at, request);
        }
        if let Some(at) = steps.freed {
            self.free(at, request);
        }
    }

    /// The router's message of a request names its blocks. A log may have named them by other hashes before: those of the messages count,
    /// because every request has them there.
    pub fn name_blocks(&mut self, request: DecisionId, blocks: &[u64]) {
        let is_other = |known: &[u64]| known.first().zip(blocks.first()).is_some_and(|(a, b)| a != b);
        let mut named: Option<Arc<[u64]>> = None;
        if let Some(active) = self.requests.get_mut(&request).filter(|active| is_other(&active.blocks)) {
            let blocks = named.get_or_insert_with(|| blocks.into()).clone();
            let before = std::mem::replace(&mut active.blocks, blocks);
            let of = self.workers.of(active.worker);
            of.release(&before);
            of.hold(&active.blocks);
            self.blocks = self.blocks + active.blocks.len() - before.len();
        }
        let steps = self.passed.iter_mut().filter(|passed| passed.request == request);
        for passed in steps.filter(|passed| is_other(&passed.blocks)) {
            passed.blocks = named.get_or_insert_with(|| blocks.into()).clone();
        }
    }

    /// Our clock's time. Steps that were received during the last seconds are kept, whatever their publisher's clock says.
    pub fn pass_received(&mut self, now: Millis) {
        self.received_ms = self.received_ms.max(now);
    }

    /// The same by the router's log alone, which reports neither its first token nor, up to 1.4, its end: until a message
    /// reports a step of it, or the workers report first tokens, the load of its worker is not known.
    pub fn add_logged(
        &mut self,
        at: Micros,
        request: DecisionId,
        worker: WorkerIx,
        blocks: &[u64],
        prefill_tokens: u64,
    ) {
        let is_reported = self.workers_report
            || self.requests.contains_key(&request)
            || self.ended.get(&request).is_some_and(|steps| steps.is_over || steps.first_token.is_some());
        self.add(at, request, worker, blocks, prefill_tokens);
        if let Some(active) = self.requests.get(&request).filter(|_| !is_reported) {
            let unsure = UntrackedRequest { request, added: active.added, freed: None };
            self.workers.of(worker).unsure.push_back(unsure);
        }
        if let Some(at) = self.ended.get(&request).filter(|steps| !steps.is_over).and_then(|s| s.freed_logged)
        {
            self.free_logged(at, request);
        }
    }

    /// The request is over by its log or its trace. Where the router publishes its steps, their times count: the order in which
    /// logs and messages are received is no evidence.
    pub fn free_logged(&mut self, at: Micros, request: DecisionId) {
        match self.requests.get(&request) {
            Some(active) if active.reported.is_some() => {}
            Some(_) => {
                self.free(at, request);
                self.remember(request).freed_logged = Some(at);
            }
            None => {
                let steps = self.remember(request);
                steps.freed_logged = steps.freed_logged.or(Some(at));
            }
        }
    }

    /// The router publishes the steps of a request.
    pub fn reported(&mut self, request: DecisionId) {
        let received = self.received;
        let Some(active) = self.requests.get_mut(&request) else {
            if let Some(steps) = self.ended.get_mut(&request) {
                steps.reported = steps.reported.or(Some(received));
            }
            return;
        };
        active.reported = active.reported.or(Some(received));
        self.workers.of(active.worker).unsure.retain(|unsure| unsure.request != request);
    }

    /// A worker published a first token.
    pub fn worker_reports(&mut self) {
        if !self.workers_report {
            self.workers_report = true;
            self.workers.iter_mut().for_each(|(_, of)| of.unsure = VecDeque::new());
        }
    }

    /// From when the router counts a request: by its log's line of the choice (`is_logged`), else by its message, which is published
    /// later, on a busy machine tens of milliseconds.
    pub fn count_from(&mut self, from: Micros, is_logged: bool, request: DecisionId) {
        let Some(active) = self.requests.get_mut(&request) else {
            match self.ended.get_mut(&request) {
                // As in a backlog: what it was counted for then is known still.
                Some(steps) if steps.is_over => self.move_steps((from, is_logged), request),
                Some(steps) => steps.chosen = is_logged.then_some(from),
                None if is_logged => self.remember(request).chosen = Some(from),
                None => {}
            }
            return;
        };
        if (active.added, active.is_logged) == (from, is_logged) {
            return;
        }
        (active.added, active.is_logged) = (from, is_logged);
        let of = self.workers.of(active.worker);
        let moved = (from, request);
        of.first = of.first.map(|first| if first.1 == request { moved } else { first.min(moved) });
        self.move_steps((from, is_logged), request);
    }

    /// A request counts from another time on.
    fn move_steps(&mut self, (from, is_logged): (Micros, bool), request: DecisionId) {
        let is_it = |passed: &PastStep| passed.request == request && passed.step == LoadStep::Added;
        let Some(place) = self.passed.iter().rposition(is_it) else { return };
        for passed in self.passed.range_mut(place..) {
            if passed.request == request {
                (passed.at, passed.is_logged) = match passed.step {
                    LoadStep::Added => (from, is_logged),
                    _ => (passed.at.max(from), false),
                };
            }
            passed.latest = passed.latest.max(from);
        }
    }

    /// The first output token came.
    pub fn prefill_completed(&mut self, at: Micros, request: DecisionId) {
        let Some(active) = self.requests.get_mut(&request) else {
            let steps = self.remember(request);
            let is_first = steps.first_token.is_none();
            steps.first_token = steps.first_token.or(Some(at));
            if steps.is_over && is_first {
                self.prefilled_before_its_end(at, request);
            }
            return;
        };
        active.first_token = active.first_token.or(Some(at));
        let tokens = std::mem::take(&mut active.prefill_tokens);
        let (at, worker) = (at.max(active.added), active.worker);
        if let Some(of) = self.workers.get_mut(worker) {
            of.unsure.retain(|unsure| unsure.request != request);
            of.load.prefill_tokens = of.load.prefill_tokens.saturating_sub(tokens);
        }
        if tokens > 0 {
            self.pass(at, request, worker, (LoadStep::FirstToken, false), tokens, [].into());
        }
    }

    /// A first token is reported behind the end of its request, as of a log that is read before the messages.
    fn prefilled_before_its_end(&mut self, at: Micros, request: DecisionId) {
        let is_end = |passed: &&mut PastStep| passed.request == request && passed.step == LoadStep::Freed;
        let Some(end) = self.passed.iter_mut().rev().find(is_end).filter(|end| end.at > at) else { return };
        let (worker, tokens) = (end.worker, std::mem::take(&mut end.tokens));
        let added = self.passed.iter().rev().find(|p| p.request == request && p.step == LoadStep::Added);
        let at = added.map_or(at, |added| at.max(added.at));
        self.workers.of(worker).unsure.retain(|unsure| unsure.request != request);
        if tokens > 0 {
            self.pass(at, request, worker, (LoadStep::FirstToken, false), tokens, [].into());
        }
    }

    /// The request is over.
    pub fn free(&mut self, at: Micros, request: DecisionId) {
        let Some(active) = self.requests.remove(&request) else {
            let steps = self.remember(request);
            let is_over_by_log = steps.is_over && steps.freed.is_none() && steps.freed_logged.is_some();
            steps.freed = steps.freed.or(Some(at));
            if is_over_by_log {
                self.freed_at(at, request);
            }
            return;
        };
        let steps = self.remember(request);
        (steps.is_over, steps.reported, steps.first_token) = (true, active.reported, active.first_token);
        self.blocks -= active.blocks.len();
        let at = at.max(active.added);
        if let Some(of) = self.workers.get_mut(active.worker) {
            of.end(at, request, &active);
        }
        self.pass(at, request, active.worker, (LoadStep::Freed, false), active.prefill_tokens, active.blocks);
    }

    /// The router's own message of an end that a log reported before: its time counts.
    fn freed_at(&mut self, at: Micros, request: DecisionId) {
        let received = self.received;
        // What is received next came behind it.
        self.received += 1;
        let of_it = |passed: &&mut PastStep| passed.request == request && passed.step != LoadStep::FirstToken;
        let mut steps = self.passed.iter_mut().filter(of_it);
        let Some(added) = steps.next().filter(|passed| passed.step == LoadStep::Added).map(|p| p.at) else {
            return;
        };
        if let Some(end) = steps.find(|passed| passed.step == LoadStep::Freed) {
            (end.at, end.received) = (at.max(added), received);
            let place = self.passed.iter().position(|p| p.request == request && p.step == LoadStep::Freed);
            for passed in place.into_iter().flat_map(|place| place..self.passed.len()).collect::<Vec<_>>() {
                let passed = &mut self.passed[passed];
                passed.latest = passed.latest.max(at);
            }
        }
    }

    /// What `worker` is busy with.
    pub fn load(&self, worker: WorkerIx) -> SequenceLoad {
        self.workers.get(worker).map(|of| of.load).unwrap_or_default()
    }

    /// Blocks of `blocks`, the chain hashes of a prompt, that no active request of `worker` has. A request has all
    /// blocks before one of its own, so that those it shares come first.
    pub fn new_blocks(&self, worker: WorkerIx, blocks: &[u64]) -> u64 {
        let Some(of) = self.workers.get(worker) else { return blocks.len() as u64 };
        (blocks.len() - blocks.partition_point(|block| of.held.contains_key(block))) as u64
    }

    /// Whether loads at a time are known.
    pub fn knows(&self, at: Micros) -> bool {
        at >= self.known_since
    }

    /// What `worker` was busy with at a time at which loads are known, without the request that was weighed: `except`,
    /// with the prompt `blocks`.
    pub fn load_at(&self, worker: WorkerIx, when: LoadTime, except: DecisionId, blocks: &[u64]) -> PastLoad {
        let LoadTime { at, decided, is_logged } = when;
        let Some(of) = self.workers.get(worker) else {
            return PastLoad { new_blocks: blocks.len() as u64, ..PastLoad::default() };
        };
        let (mut tokens, mut requests, mut more) = (0_i128, 0_i64, HashMap::new());
        let since = Micros::of(at.min(decided).millis());
        let first = self.passed.partition_point(|passed| passed.latest < since);
        let until = |is_exact: bool| if is_exact && is_logged { decided } else { at };
        let own = self.order_of(except).filter(|_| is_logged && at == decided);
        // Messages are stamped in whole milliseconds. One of the decision's own that came behind the message of the
        // decision was published after it.
        let is_behind = |passed: &PastStep| {
            !passed.is_logged
                && passed.at == Micros::of(decided.millis())
                && own.is_some_and(|own| passed.received >= own)
        };
        let undone = |passed: &&PastStep| {
            passed.worker == worker
                && (passed.at > until(passed.is_logged) || passed.request == except || is_behind(passed))
        };
        for passed in self.passed.range(first..).filter(undone) {
            let one = if passed.step == LoadStep::Added { -1 } else { 1 };
            tokens += i128::from(one) * i128::from(passed.tokens);
            requests += if passed.step == LoadStep::FirstToken { 0 } else { one };
            passed.blocks.iter().for_each(|&block| *more.entry(block).or_insert(0_i64) += one);
        }
        let mut load = of.load;
        load.prefill_tokens = (i128::from(load.prefill_tokens) + tokens).max(0) as u64;
        load.requests = (i64::from(load.requests) + requests).max(0) as u32;
        let count = |block: u64| {
            i64::from(of.held.get(&block).copied().unwrap_or(0)) + more.get(&block).copied().unwrap_or(0)
        };
        for &block in more.keys() {
            load.blocks += u64::from(count(block) > 0);
            load.blocks -= u64::from(of.held.contains_key(&block));
        }
        let shared = blocks.partition_point(|&block| count(block) > 0);
        let was_used = of.first.is_some_and(|(first, request)| first <= until(true) && request != except);
        let is_uncertain = of.unsure.iter().any(|unsure| {
            unsure.request != except
                && unsure.added <= until(true)
                && unsure.freed.is_none_or(|freed| freed >= at)
        });
        PastLoad { load, new_blocks: (blocks.len() - shared) as u64, was_used, is_uncertain }
    }

    /// How many steps had been received when the message of a request was.
    fn order_of(&self, request: DecisionId) -> Option<u64> {
        match self.requests.get(&request) {
            Some(active) => active.reported,
            None => self.ended.get(&request)?.reported,
        }
    }

    /// Times in between at which a load changed; for a decision of which the log gives the time, without other choices
    /// of which it does: whether they came before is known.
    pub fn times(&self, from: Micros, to: Micros, is_logged: bool) -> impl Iterator<Item = Micros> + '_ {
        let first = self.passed.partition_point(|passed| passed.latest < from);
        let steps = self.passed.range(first..).filter(move |passed| !(is_logged && passed.is_logged));
        steps.map(|passed| passed.at).filter(move |at| (from..=to).contains(at))
    }

    /// Whether any request was ever reported: without, loads of 0 mean nothing.
    pub fn has_reports(&self) -> bool {
        !self.workers.is_empty()
    }

    /// Requests that were not followed because there were too many: loads are too low by them.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn pass(
        &mut self,
        at: Micros,
        request: DecisionId,
        worker: WorkerIx,
        (step, is_logged): (LoadStep, bool),
        tokens: u64,
        blocks: Arc<[u64]>,
    ) {
        self.latest = self.latest.max(at);
        let (latest, retained) = (self.latest, self.latest.minus_ms(KEPT_MS));
        let received_ms = self.received_ms;
        // Where our clock is not passed on, publishers' clocks alone count.
        let is_long_ago = |at: Millis| received_ms == Millis(0) || received_ms.since(at) > KEPT_MS;
        let is_old = |passed: &PastStep| passed.latest < retained && is_long_ago(passed.received_ms);
        while self.passed.len() >= MAX_PASSED || self.passed.front().is_some_and(is_old) {
            let Some(passed) = self.passed.pop_front() else { break };
            self.known_since = self.known_since.max(passed.at);
        }
        let received = self.received;
        self.received += 1;
        self.passed.push_back(PastStep {
            at,
            latest,
            request,
            worker,
            step,
            is_logged,
            received,
            received_ms,
            tokens,
            blocks,
        });
        if step == LoadStep::Freed
            && let Some(of) = self.workers.get_mut(worker)
        {
            while of.unsure.front().is_some_and(|unsure| unsure.freed.is_some_and(|freed| freed < retained)) {
                of.unsure.pop_front();
            }
        }
    }

    fn remember(&mut self, request: DecisionId) -> &mut Steps {
        if !self.ended.contains_key(&request) {
            if self.ended_order.len() == MAX_ENDED
                && let Some(oldest) = self.ended_order.pop_front()
            {
                self.ended.remove(&oldest);
            }
            self.ended_order.push_back(request);
        }
        self.ended.entry(request).or_default()
    }

    fn expire(&mut self, now: Micros) {
        while let Some(&(at, request)) = self.order.front() {
            let is_over = !self.requests.contains_key(&request);
            if !is_over && now.millis().since(at.millis()) <= EXPIRE_MS {
                break;
            }
            self.order.pop_front();
            if !is_over {
                self.free(now, request);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const W: WorkerIx = WorkerIx(1);

    fn at(ms: u64) -> Micros {
        Micros::of(Millis(ms))
    }

    fn id(n: u64) -> DecisionId {
        DecisionId(n)
    }

    #[test]
    fn shared_blocks_count_once_and_stay_until_the_last_request_ends() {
        let mut active = ActiveSequences::default();
        active.add(at(0), id(1), W, &[1, 2, 3], 48);
        assert_eq!(active.new_blocks(W, &[1, 2, 9]), 1);
        active.add(at(0), id(2), W, &[1, 2, 9], 16);
        assert_eq!(active.load(W), SequenceLoad { prefill_tokens: 64, blocks: 4, requests: 2 });
        active.free(at(0), id(1));
        assert_eq!(active.load(W), SequenceLoad { prefill_tokens: 16, blocks: 3, requests: 1 });
        active.free(at(0), id(2));
        active.free(at(0), id(2));
        assert_eq!(active.load(W), SequenceLoad::default());
    }

    #[test]
    fn a_first_token_takes_the_prefill_away_once() {
        let mut active = ActiveSequences::default();
        active.add(at(0), id(1), W, &[], 100);
        active.add(at(0), id(2), W, &[], 7);
        active.prefill_completed(at(0), id(1));
        active.prefill_completed(at(0), id(1));
        assert_eq!(active.load(W).prefill_tokens, 7);
    }

    #[test]
    fn a_request_that_never_ends_is_forgotten_as_the_router_forgets_it() {
        let mut active = ActiveSequences::default();
        active.add(at(0), id(1), W, &[1], 5);
        active.add(at(EXPIRE_MS), id(2), W, &[2], 5);
        assert_eq!(active.load(W).requests, 2);
        active.add(at(EXPIRE_MS + 1), id(3), W, &[3], 5);
        assert_eq!(active.load(W), SequenceLoad { prefill_tokens: 10, blocks: 2, requests: 2 });
    }

    #[test]
    fn a_request_that_hangs_lets_no_memory_grow_behind_it() {
        let mut active = ActiveSequences::default();
        active.add(at(0), id(0), W, &[], 5);
        for n in 1..=3 * MAX_REQUESTS as u64 {
            active.add(at(1), id(n), W, &[], 5);
            active.free(at(0), id(n));
        }
        assert!(active.order.len() <= 2 * MAX_REQUESTS, "{}", active.order.len());
        assert_eq!(active.load(W).requests, 1);
    }

    #[test]
    fn receiving_a_request_twice_loads_its_worker_once() {
        let mut active = ActiveSequences::default();
        active.add(at(0), id(1), W, &[1], 5);
        active.add(at(1), id(1), WorkerIx(0), &[1], 5);
        assert_eq!(active.load(W).requests, 1);
        assert_eq!(active.load(WorkerIx(0)).requests, 0);
    }

    fn past(active: &ActiveSequences, ms: u64, blocks: &[u64]) -> PastLoad {
        active.load_at(W, LoadTime { at: at(ms), decided: at(10), is_logged: false }, id(9), blocks)
    }

    #[test]
    fn a_load_is_known_as_it_was_at_an_earlier_time() {
        let mut active = ActiveSequences::default();
        active.add(at(10), id(1), W, &[1, 2, 3], 48);
        active.add(at(20), id(2), W, &[1, 2, 9], 16);
        active.prefill_completed(at(30), id(1));
        active.free(at(40), id(1));
        active.free(at(50), id(2));
        let seen = |ms| {
            let PastLoad { load, new_blocks, was_used, .. } = past(&active, ms, &[1, 2, 3, 4]);
            (load.prefill_tokens, load.blocks, load.requests, new_blocks, was_used)
        };
        assert_eq!(seen(9), (0, 0, 0, 4, false));
        assert_eq!(seen(10), (48, 3, 1, 1, true));
        assert_eq!(seen(20), (64, 4, 2, 1, true));
        assert_eq!(seen(30), (16, 4, 2, 1, true));
        assert_eq!(seen(40), (16, 3, 1, 2, true));
        assert_eq!(seen(50), (0, 0, 0, 4, true));
        let times: Vec<Micros> = active.times(at(20), at(40), false).collect();
        assert_eq!(times, [at(20), at(30), at(40)]);
    }

    #[test]
    fn a_request_does_not_load_its_own_decision() {
        let mut active = ActiveSequences::default();
        active.add(at(10), id(9), W, &[1, 2], 32);
        assert_eq!(past(&active, 10, &[1, 2]), PastLoad { new_blocks: 2, ..PastLoad::default() });
        active.prefill_completed(at(11), id(9));
        active.free(at(12), id(9));
        assert_eq!(past(&active, 10, &[1, 2]), PastLoad { new_blocks: 2, ..PastLoad::default() });
    }

    #[test]
    fn steps_reported_before_their_request_count_from_its_beginning() {
        let mut active = ActiveSequences::default();
        active.prefill_completed(at(30), id(1));
        active.free(at(40), id(1));
        active.add(at(10), id(1), W, &[1], 5);
        assert_eq!(active.load(W), SequenceLoad::default());
        let seen = |ms| past(&active, ms, &[]).load;
        assert_eq!(seen(20), SequenceLoad { prefill_tokens: 5, blocks: 1, requests: 1 });
        assert_eq!(seen(35), SequenceLoad { prefill_tokens: 0, blocks: 1, requests: 1 });
        assert_eq!(seen(40), SequenceLoad::default());
        active.add(at(10), id(1), W, &[1], 5);
        assert_eq!(active.load(W), SequenceLoad::default(), "reported again");
    }

    #[test]
    fn what_is_remembered_is_bounded_and_says_how_far_back_it_reaches() {
        let mut active = ActiveSequences::default();
        for n in 0..3 * MAX_ENDED as u64 {
            active.add(at(n), id(n), W, &[n], 5);
            active.free(at(n), id(n));
        }
        assert!(active.ended.len() <= MAX_ENDED && active.ended_order.len() <= MAX_ENDED);
        let last = 3 * MAX_ENDED as u64;
        assert!(active.knows(at(last - KEPT_MS)) && !active.knows(at(last - KEPT_MS - 10)));
        assert!(active.passed.len() <= 2 * (KEPT_MS as usize + 2));
    }
    #[test]
    fn a_choice_counts_from_its_line_in_the_log_not_from_its_late_message() {
        let seen = |active: &ActiveSequences, at_ms, decided| {
            let when = LoadTime { at: at(at_ms), decided: at(decided), is_logged: true };
            let past = active.load_at(W, when, id(9), &[]);
            (past.load.prefill_tokens, past.load.requests, past.was_used)
        };
        let mut line_first = ActiveSequences::default();
        line_first.count_from(at(55), true, id(1));
        line_first.add(at(107), id(1), W, &[1, 2], 32);
        let mut message_first = ActiveSequences::default();
        message_first.add(at(107), id(1), W, &[1, 2], 32);
        message_first.prefill_completed(at(120), id(1));
        message_first.count_from(at(55), true, id(1));
        for active in [&line_first, &message_first] {
            assert_eq!(seen(active, 88, 88), (32, 1, true));
            assert_eq!(seen(active, 54, 54), (0, 0, false));
            // Steps are reported late or early, the order of choices is known.
            assert_eq!(seen(active, 40, 88), (32, 1, true));
            assert_eq!(seen(active, 88, 50), (0, 0, false));
            assert_eq!(active.times(at(50), at(110), true).count(), 0);
            assert_eq!(active.times(at(50), at(110), false).collect::<Vec<_>>(), [at(55)]);
        }
        // A log written after its message was stamped.
        let mut later = ActiveSequences::default();
        later.add(at(10), id(1), W, &[], 32);
        later.add(at(11), id(2), W, &[], 16);
        later.count_from(at(12), true, id(1));
        assert_eq!(past(&later, 11, &[]).load.prefill_tokens, 16);
        assert_eq!(past(&later, 12, &[]).load.prefill_tokens, 48);
    }

    #[test]
    fn a_log_that_is_read_before_the_messages_gives_the_loads_that_these_report() {
        let seen = |active: &ActiveSequences| {
            [15, 35, 45, 55].map(|ms| past(active, ms, &[]).load).map(|of| (of.prefill_tokens, of.requests))
        };
        let by_messages = |active: &mut ActiveSequences| {
            active.add(at(10), id(1), W, &[1], 5);
            active.reported(id(1));
            active.prefill_completed(at(30), id(1));
            active.free(at(40), id(1));
        };
        let mut messages_first = ActiveSequences::default();
        by_messages(&mut messages_first);
        messages_first.free_logged(at(50), id(1));
        let mut log_first = ActiveSequences::default();
        log_first.add_logged(at(10), id(1), W, &[1], 5);
        log_first.free_logged(at(50), id(1));
        by_messages(&mut log_first);
        for active in [&messages_first, &log_first] {
            assert_eq!(seen(active), [(5, 1), (0, 1), (0, 0), (0, 0)]);
            assert_eq!(active.load(W), SequenceLoad::default());
        }
        // Where the router publishes no steps, its log counts.
        let mut log_alone = ActiveSequences::default();
        log_alone.free_logged(at(50), id(1));
        log_alone.add_logged(at(10), id(1), W, &[1], 5);
        assert_eq!(seen(&log_alone), [(5, 1), (5, 1), (5, 1), (0, 0)]);
    }

    #[test]
    fn a_request_without_reported_steps_makes_its_worker_s_load_unknown() {
        let mut active = ActiveSequences::default();
        active.add_logged(at(10), id(1), W, &[1], 16);
        assert!(!past(&active, 9, &[]).is_uncertain && past(&active, 10, &[]).is_uncertain);
        assert!(past(&active, 5_000, &[]).is_uncertain, "it may have ended since, or not");
        active.prefill_completed(at(30), id(1));
        assert!(!past(&active, 10, &[]).is_uncertain, "what is reported late is known");
        active.add_logged(at(40), id(2), W, &[1], 16);
        active.free(at(60), id(2));
        let unsure = |ms| past(&active, ms, &[]).is_uncertain;
        assert_eq!([39, 40, 60, 61].map(unsure), [false, true, true, false], "an end without a first token");
        active.add_logged(at(70), id(3), W, &[1], 16);
        active.reported(id(3));
        assert!(!past(&active, 75, &[]).is_uncertain, "its router publishes its steps");
        active.add_logged(at(80), id(4), W, &[1], 16);
        active.worker_reports();
        active.add_logged(at(81), id(5), W, &[1], 16);
        assert!(!past(&active, 90, &[]).is_uncertain, "workers publish first tokens");
    }
    #[test]
    fn of_one_millisecond_what_is_published_behind_a_decision_came_after_it() {
        let mut active = ActiveSequences::default();
        let decided = Micros(20_099);
        active.add(at(10), id(1), W, &[1, 2], 32);
        active.add(at(10), id(2), W, &[3], 16);
        active.prefill_completed(at(20), id(1));
        active.count_from(decided, true, id(9));
        active.add(at(20), id(9), W, &[4], 16);
        active.reported(id(9));
        active.prefill_completed(at(20), id(2));
        let seen = |at, is_logged| {
            active.load_at(W, LoadTime { at, decided, is_logged }, id(9), &[]).load.prefill_tokens
        };
        assert_eq!(seen(decided, true), 16);
        assert_eq!(seen(Micros(20_100), true), 0, "another state is tried apart");
    }

    #[test]
    fn blocks_that_a_log_named_otherwise_are_those_of_the_message() {
        let mut active = ActiveSequences::default();
        active.add_logged(at(10), id(1), W, &[1, 2, 3], 48);
        active.name_blocks(id(1), &[71, 72, 73]);
        active.add(at(11), id(2), W, &[71, 72, 79], 16);
        let shared = SequenceLoad { prefill_tokens: 64, blocks: 4, requests: 2 };
        assert_eq!(active.load(W), shared);
        assert_eq!(past(&active, 10, &[71, 75]).new_blocks, 1);
        active.free(at(20), id(1));
        assert_eq!(active.load(W).blocks, 3);
        // One that is over by the time of its message.
        active.add_logged(at(30), id(3), W, &[1, 2, 3], 0);
        active.free_logged(at(40), id(3));
        active.name_blocks(id(3), &[71, 72, 73]);
        assert_eq!((past(&active, 35, &[]).load.blocks, past(&active, 45, &[]).load.blocks), (4, 3));
    }

    #[test]
    fn an_end_that_a_log_reported_before_counts_by_its_own_message() {
        let mut active = ActiveSequences::default();
        let decided = Micros(20_099);
        active.add_logged(at(10), id(1), W, &[1, 2], 0);
        active.free_logged(at(30), id(1));
        active.add_logged(decided, id(9), W, &[4], 16);
        active.count_from(decided, true, id(9));
        // The messages: of one millisecond, the end before the choice.
        active.free(at(20), id(1));
        active.reported(id(9));
        let when = LoadTime { at: decided, decided, is_logged: true };
        assert_eq!(active.load_at(W, when, id(9), &[]).load.blocks, 0);
    }
}
