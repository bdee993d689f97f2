//! The requests that run, as the router keeps them: what loads each worker (reference §5.1), now and at a time of the
//! last seconds.
//!
//! Knows nothing of where a step was read. Dynamo forgets a request after [`EXPIRE_MS`]; so does this. First token and
//! end of a request may be told before its beginning: they are kept until then.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;

use super::KEPT_MS;
use radixscope_model::id::{DecisionId, WorkerIx};
use radixscope_model::moment::Moment;

/// Dynamo frees a request that was never freed after this long.
pub const EXPIRE_MS: u64 = 300_000;
/// Most requests followed at a time.
const MAX_REQUESTS: usize = 1 << 16;
/// Most block hashes of them together: 64 MiB.
const MAX_BLOCKS: usize = 1 << 23;
/// Steps kept for what was loads of the last seconds: three seconds of 10,000 requests each.
const MAX_PASSED: usize = 1 << 17;
/// Requests whose end or first token is remembered in case their beginning is told only now, or again.
const MAX_ENDED: usize = 1 << 14;

/// What the active requests of a worker add up to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ActiveLoad {
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
    pub load: ActiveLoad,
    /// Blocks of the request that no active one had.
    pub new_blocks: u64,
    /// Whether any request had ever been routed there.
    pub was_used: bool,
}

/// Follows requests from routing to their end.
#[derive(Default)]
pub struct ActiveSequences {
    requests: HashMap<DecisionId, Active>,
    workers: Vec<OfWorker>,
    /// In order of addition, for expiry. Those already freed are passed over.
    order: VecDeque<(Moment, DecisionId)>,
    blocks: usize,
    refused: u64,
    /// The steps of the last seconds, in the order in which they were told.
    passed: VecDeque<Passed>,
    /// Latest time of any step.
    latest: Moment,
    /// Before this time loads are not known.
    known_since: Moment,
    /// First tokens and ends of requests that are not followed, or not any more.
    ended: HashMap<DecisionId, Steps>,
    ended_order: VecDeque<DecisionId>,
}

struct Active {
    worker: WorkerIx,
    blocks: Arc<[u64]>,
    prefill_tokens: u64,
    added: Moment,
}

/// What is known of a request beyond its beginning.
#[derive(Clone, Copy, Default)]
struct Steps {
    first_token: Option<Moment>,
    freed: Option<Moment>,
    /// It was followed to its end: its beginning, told again, is none.
    is_over: bool,
}

/// One step, as it changed a load.
struct Passed {
    at: Moment,
    /// Latest time of this step and all before it.
    latest: Moment,
    request: DecisionId,
    worker: WorkerIx,
    step: Step,
    /// Prompt tokens that it added or took away.
    tokens: u64,
    blocks: Arc<[u64]>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Added,
    FirstToken,
    Freed,
}

#[derive(Default)]
struct OfWorker {
    load: ActiveLoad,
    /// How many requests have each block.
    held: HashMap<u64, u32>,
    /// The earliest request that was routed there, and when.
    first: Option<(Moment, DecisionId)>,
}

impl ActiveSequences {
    /// A request was routed to `worker`. `blocks` are the chain hashes of the prompt's full blocks, `prefill_tokens`
    /// what it has to compute. A request that is already followed is left as it is.
    pub fn add(
        &mut self,
        at: Moment,
        request: DecisionId,
        worker: WorkerIx,
        blocks: &[u64],
        prefill_tokens: u64,
    ) {
        self.expire(at);
        let steps = self.ended.get(&request).copied().unwrap_or_default();
        if steps.is_over || self.requests.contains_key(&request) {
            return;
        }
        if self.requests.len() == MAX_REQUESTS || self.blocks + blocks.len() > MAX_BLOCKS {
            self.refused += 1;
            return;
        }
        if self.workers.len() <= worker.at() {
            self.workers.resize_with(worker.at() + 1, OfWorker::default);
        }
        let of = &mut self.workers[worker.at()];
        of.load.requests += 1;
        of.load.prefill_tokens = of.load.prefill_tokens.saturating_add(prefill_tokens);
        for &block in blocks {
            *of.held.entry(block).or_default() += 1;
        }
        of.load.blocks = of.held.len() as u64;
        of.first = Some(of.first.map_or((at, request), |first| first.min((at, request))));
        self.blocks += blocks.len();
        if self.order.len() >= 2 * MAX_REQUESTS {
            // One request that never ends keeps those freed after it here: at most as many as are followed.
            let Self { order, requests, .. } = self;
            order.retain(|(_, request)| requests.contains_key(request));
        }
        self.order.push_back((at, request));
        let blocks: Arc<[u64]> = blocks.into();
        self.pass(at, request, worker, Step::Added, prefill_tokens, blocks.clone());
        self.requests.insert(request, Active { worker, blocks, prefill_tokens, added: at });
        if let Some(at) = steps.first_token {
            self.prefill_completed(at, request);
        }
        if let Some(at) = steps.freed {
            self.free(at, request);
        }
    }

    /// The first output token came.
    pub fn prefill_completed(&mut self, at: Moment, request: DecisionId) {
        let Some(active) = self.requests.get_mut(&request) else {
            let steps = self.remember(request);
            steps.first_token = steps.first_token.or(Some(at));
            return;
        };
        let tokens = std::mem::take(&mut active.prefill_tokens);
        if tokens > 0 {
            let (at, worker) = (at.max(active.added), active.worker);
            let load = &mut self.workers[worker.at()].load;
            load.prefill_tokens = load.prefill_tokens.saturating_sub(tokens);
            self.pass(at, request, worker, Step::FirstToken, tokens, [].into());
        }
    }

    /// The request is over.
    pub fn free(&mut self, at: Moment, request: DecisionId) {
        let Some(active) = self.requests.remove(&request) else {
            let steps = self.remember(request);
            steps.freed = steps.freed.or(Some(at));
            return;
        };
        self.remember(request).is_over = true;
        self.blocks -= active.blocks.len();
        let of = &mut self.workers[active.worker.at()];
        of.load.requests -= 1;
        of.load.prefill_tokens = of.load.prefill_tokens.saturating_sub(active.prefill_tokens);
        for block in active.blocks.iter() {
            if let Some(count) = of.held.get_mut(block) {
                *count -= 1;
                if *count == 0 {
                    of.held.remove(block);
                }
            }
        }
        of.load.blocks = of.held.len() as u64;
        let at = at.max(active.added);
        self.pass(at, request, active.worker, Step::Freed, active.prefill_tokens, active.blocks);
    }

    /// What `worker` is busy with.
    pub fn load(&self, worker: WorkerIx) -> ActiveLoad {
        self.workers.get(worker.at()).map(|of| of.load).unwrap_or_default()
    }

    /// Blocks of `blocks`, the chain hashes of a prompt, that no active request of `worker` has. A request has all
    /// blocks before one of its own, so that those it shares come first.
    pub fn new_blocks(&self, worker: WorkerIx, blocks: &[u64]) -> u64 {
        let Some(of) = self.workers.get(worker.at()) else { return blocks.len() as u64 };
        (blocks.len() - blocks.partition_point(|block| of.held.contains_key(block))) as u64
    }

    /// Whether loads at a time are known.
    pub fn knows(&self, at: Moment) -> bool {
        at >= self.known_since
    }

    /// What `worker` was busy with at a time at which loads are known, without the request that was weighed: `except`,
    /// placed not before `placed`, with the prompt `blocks`.
    pub fn load_at(
        &self,
        worker: WorkerIx,
        at: Moment,
        (except, placed): (DecisionId, Moment),
        blocks: &[u64],
    ) -> PastLoad {
        let Some(of) = self.workers.get(worker.at()) else {
            return PastLoad { new_blocks: blocks.len() as u64, ..PastLoad::default() };
        };
        let (mut tokens, mut requests, mut more) = (0_i128, 0_i64, HashMap::new());
        let first = self.passed.partition_point(|passed| passed.latest < at.min(placed));
        let undone =
            |passed: &&Passed| passed.worker == worker && (passed.at > at || passed.request == except);
        for passed in self.passed.range(first..).filter(undone) {
            let one = if passed.step == Step::Added { -1 } else { 1 };
            tokens += i128::from(one) * i128::from(passed.tokens);
            requests += if passed.step == Step::FirstToken { 0 } else { one };
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
        let was_used = of.first.is_some_and(|(first, request)| first <= at && request != except);
        PastLoad { load, new_blocks: (blocks.len() - shared) as u64, was_used }
    }

    /// Times in between at which a load changed.
    pub fn times(&self, from: Moment, to: Moment) -> impl Iterator<Item = Moment> + '_ {
        let first = self.passed.partition_point(|passed| passed.latest < from);
        self.passed.range(first..).map(|passed| passed.at).filter(move |at| (from..=to).contains(at))
    }

    /// Whether any request was ever told: without, loads of 0 mean nothing.
    pub fn has_heard(&self) -> bool {
        !self.workers.is_empty()
    }

    /// Requests that were not followed because there were too many: loads are too low by them.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn pass(
        &mut self,
        at: Moment,
        request: DecisionId,
        worker: WorkerIx,
        step: Step,
        tokens: u64,
        blocks: Arc<[u64]>,
    ) {
        self.latest = self.latest.max(at);
        let (latest, kept) = (self.latest, self.latest.minus_ms(KEPT_MS));
        while self.passed.len() >= MAX_PASSED
            || self.passed.front().is_some_and(|passed| passed.latest < kept)
        {
            let Some(passed) = self.passed.pop_front() else { break };
            self.known_since = self.known_since.max(passed.at);
        }
        self.passed.push_back(Passed { at, latest, request, worker, step, tokens, blocks });
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

    /// Other workers take these places: the requests of those who had them are over, and their past is nobody's.
    pub fn vacate(&mut self, workers: &[WorkerIx]) {
        let of_them = self.requests.iter().filter(|(_, active)| workers.contains(&active.worker));
        let over: Vec<DecisionId> = of_them.map(|(&request, _)| request).collect();
        let latest = self.latest;
        over.into_iter().for_each(|request| self.free(latest, request));
        self.passed.retain(|passed| !workers.contains(&passed.worker));
        for worker in workers {
            if let Some(of) = self.workers.get_mut(worker.at()) {
                *of = OfWorker::default();
            }
        }
    }

    fn expire(&mut self, now: Moment) {
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
    use radixscope_model::id::Millis;

    const W: WorkerIx = WorkerIx(1);

    fn at(ms: u64) -> Moment {
        Moment::of(Millis(ms))
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
        assert_eq!(active.load(W), ActiveLoad { prefill_tokens: 64, blocks: 4, requests: 2 });
        active.free(at(0), id(1));
        assert_eq!(active.load(W), ActiveLoad { prefill_tokens: 16, blocks: 3, requests: 1 });
        active.free(at(0), id(2));
        active.free(at(0), id(2));
        assert_eq!(active.load(W), ActiveLoad::default());
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
        assert_eq!(active.load(W), ActiveLoad { prefill_tokens: 10, blocks: 2, requests: 2 });
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
    fn hearing_of_a_request_twice_loads_its_worker_once() {
        let mut active = ActiveSequences::default();
        active.add(at(0), id(1), W, &[1], 5);
        active.add(at(1), id(1), WorkerIx(0), &[1], 5);
        assert_eq!(active.load(W).requests, 1);
        assert_eq!(active.load(WorkerIx(0)).requests, 0);
    }

    fn past(active: &ActiveSequences, ms: u64, blocks: &[u64]) -> PastLoad {
        active.load_at(W, at(ms), (id(9), at(10)), blocks)
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
            let PastLoad { load, new_blocks, was_used } = past(&active, ms, &[1, 2, 3, 4]);
            (load.prefill_tokens, load.blocks, load.requests, new_blocks, was_used)
        };
        assert_eq!(seen(9), (0, 0, 0, 4, false));
        assert_eq!(seen(10), (48, 3, 1, 1, true));
        assert_eq!(seen(20), (64, 4, 2, 1, true));
        assert_eq!(seen(30), (16, 4, 2, 1, true));
        assert_eq!(seen(40), (16, 3, 1, 2, true));
        assert_eq!(seen(50), (0, 0, 0, 4, true));
        let times: Vec<Moment> = active.times(at(20), at(40)).collect();
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
    fn steps_told_before_their_request_count_from_its_beginning() {
        let mut active = ActiveSequences::default();
        active.prefill_completed(at(30), id(1));
        active.free(at(40), id(1));
        active.add(at(10), id(1), W, &[1], 5);
        assert_eq!(active.load(W), ActiveLoad::default());
        let seen = |ms| past(&active, ms, &[]).load;
        assert_eq!(seen(20), ActiveLoad { prefill_tokens: 5, blocks: 1, requests: 1 });
        assert_eq!(seen(35), ActiveLoad { prefill_tokens: 0, blocks: 1, requests: 1 });
        assert_eq!(seen(40), ActiveLoad::default());
        active.add(at(10), id(1), W, &[1], 5);
        assert_eq!(active.load(W), ActiveLoad::default(), "told again");
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
}
