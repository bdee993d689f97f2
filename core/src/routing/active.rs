//! The requests that run now, as the router keeps them: what loads each worker (reference §5.1).
//!
//! Knows nothing of where a step was read. Dynamo forgets a request after [`EXPIRE_MS`]; so does this.

use std::collections::VecDeque;

use hashbrown::HashMap;

use crate::id::{DecisionId, Millis, WorkerIx};

/// Dynamo frees a request that was never freed after this long.
pub(crate) const EXPIRE_MS: u64 = 300_000;
/// Most requests followed at a time.
const MAX_REQUESTS: usize = 1 << 16;
/// Most block hashes of them together: 64 MiB.
const MAX_BLOCKS: usize = 1 << 23;

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

/// Follows requests from routing to their end.
#[derive(Default)]
pub struct ActiveSequences {
    requests: HashMap<DecisionId, Active>,
    workers: Vec<OfWorker>,
    /// In order of addition, for expiry. Those already freed are passed over.
    order: VecDeque<(Millis, DecisionId)>,
    blocks: usize,
    refused: u64,
}

struct Active {
    worker: WorkerIx,
    blocks: Box<[u64]>,
    prefill_tokens: u64,
}

#[derive(Default)]
struct OfWorker {
    load: ActiveLoad,
    /// How many requests have each block.
    held: HashMap<u64, u32>,
}

impl ActiveSequences {
    /// A request was routed to `worker`. `blocks` are the chain hashes of the prompt's full blocks, `prefill_tokens`
    /// what it has to compute. A request that is already followed is left as it is.
    pub fn add(
        &mut self,
        at: Millis,
        request: DecisionId,
        worker: WorkerIx,
        blocks: &[u64],
        prefill_tokens: u64,
    ) {
        self.expire(at);
        if self.requests.contains_key(&request) {
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
        self.blocks += blocks.len();
        if self.order.len() >= 2 * MAX_REQUESTS {
            // One request that never ends keeps those freed after it here: at most as many as are followed.
            let Self { order, requests, .. } = self;
            order.retain(|(_, request)| requests.contains_key(request));
        }
        self.order.push_back((at, request));
        self.requests.insert(request, Active { worker, blocks: blocks.into(), prefill_tokens });
    }

    /// The first output token came.
    pub fn prefill_completed(&mut self, request: DecisionId) {
        if let Some(active) = self.requests.get_mut(&request) {
            let tokens = std::mem::take(&mut active.prefill_tokens);
            let load = &mut self.workers[active.worker.at()].load;
            load.prefill_tokens = load.prefill_tokens.saturating_sub(tokens);
        }
    }

    /// The request is over.
    pub fn free(&mut self, request: DecisionId) {
        self.prefill_completed(request);
        let Some(active) = self.requests.remove(&request) else { return };
        self.blocks -= active.blocks.len();
        let of = &mut self.workers[active.worker.at()];
        of.load.requests -= 1;
        for block in active.blocks {
            if let Some(count) = of.held.get_mut(&block) {
                *count -= 1;
                if *count == 0 {
                    of.held.remove(&block);
                }
            }
        }
        of.load.blocks = of.held.len() as u64;
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

    /// Whether any request was ever told: without, loads of 0 mean nothing.
    pub fn has_heard(&self) -> bool {
        !self.workers.is_empty()
    }

    /// Requests that were not followed because there were too many: loads are too low by them.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Other workers take these places: the requests of those who had them are over.
    pub(super) fn vacate(&mut self, workers: &[WorkerIx]) {
        let of_them = self.requests.iter().filter(|(_, active)| workers.contains(&active.worker));
        let over: Vec<DecisionId> = of_them.map(|(&request, _)| request).collect();
        over.into_iter().for_each(|request| self.free(request));
        for worker in workers {
            if let Some(of) = self.workers.get_mut(worker.at()) {
                *of = OfWorker::default();
            }
        }
    }

    fn expire(&mut self, now: Millis) {
        while let Some(&(at, request)) = self.order.front() {
            let is_over = !self.requests.contains_key(&request);
            if !is_over && now.since(at) <= EXPIRE_MS {
                break;
            }
            self.order.pop_front();
            self.free(request);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const W: WorkerIx = WorkerIx(1);

    fn id(n: u64) -> DecisionId {
        DecisionId(n)
    }

    #[test]
    fn shared_blocks_count_once_and_stay_until_the_last_request_ends() {
        let mut active = ActiveSequences::default();
        active.add(Millis(0), id(1), W, &[1, 2, 3], 48);
        assert_eq!(active.new_blocks(W, &[1, 2, 9]), 1);
        active.add(Millis(0), id(2), W, &[1, 2, 9], 16);
        assert_eq!(active.load(W), ActiveLoad { prefill_tokens: 64, blocks: 4, requests: 2 });
        active.free(id(1));
        assert_eq!(active.load(W), ActiveLoad { prefill_tokens: 16, blocks: 3, requests: 1 });
        active.free(id(2));
        active.free(id(2));
        assert_eq!(active.load(W), ActiveLoad::default());
    }

    #[test]
    fn a_first_token_takes_the_prefill_away_once() {
        let mut active = ActiveSequences::default();
        active.add(Millis(0), id(1), W, &[], 100);
        active.add(Millis(0), id(2), W, &[], 7);
        active.prefill_completed(id(1));
        active.prefill_completed(id(1));
        assert_eq!(active.load(W).prefill_tokens, 7);
    }

    #[test]
    fn a_request_that_never_ends_is_forgotten_as_the_router_forgets_it() {
        let mut active = ActiveSequences::default();
        active.add(Millis(0), id(1), W, &[1], 5);
        active.add(Millis(EXPIRE_MS), id(2), W, &[2], 5);
        assert_eq!(active.load(W).requests, 2);
        active.add(Millis(EXPIRE_MS + 1), id(3), W, &[3], 5);
        assert_eq!(active.load(W), ActiveLoad { prefill_tokens: 10, blocks: 2, requests: 2 });
    }

    #[test]
    fn a_request_that_hangs_lets_no_memory_grow_behind_it() {
        let mut active = ActiveSequences::default();
        active.add(Millis(0), id(0), W, &[], 5);
        for n in 1..=3 * MAX_REQUESTS as u64 {
            active.add(Millis(1), id(n), W, &[], 5);
            active.free(id(n));
        }
        assert!(active.order.len() <= 2 * MAX_REQUESTS, "{}", active.order.len());
        assert_eq!(active.load(W).requests, 1);
    }

    #[test]
    fn hearing_of_a_request_twice_loads_its_worker_once() {
        let mut active = ActiveSequences::default();
        active.add(Millis(0), id(1), W, &[1], 5);
        active.add(Millis(1), id(1), WorkerIx(0), &[1], 5);
        assert_eq!(active.load(W).requests, 1);
        assert_eq!(active.load(WorkerIx(0)).requests, 0);
    }
}
