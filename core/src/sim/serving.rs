//! The frontend's router and the workers' engines at work: what a request goes through from its routing to its last
//! token. Must not know who sends requests, nor who is told what: that is what [`Surroundings`] are for.

use rand_pcg::Pcg64Mcg;

use super::config::Fleet;
use super::engine::{Engine, Happening, Job, Texts};
use super::router::{Choice, Router};
use super::timing;
use crate::id::BlockHash;

/// What lies around the serving: time, the requests, and those who hear what happens to them.
pub(super) trait Surroundings: Texts {
    /// Now, in microseconds since the start.
    fn now_us(&self) -> u64;
    /// What a request asks for.
    fn job(&self, request: u32) -> Job;
    /// An engine began a step that long; when it is over, [`Serving::end_step`] must follow.
    fn step_begun(&mut self, worker: u16, duration_us: u64);
    /// A request was routed; the router counts it already.
    fn routed(&mut self, router: &Router, request: u32, choice: Choice);
    /// A request is complete; the router no longer counts it.
    fn finished(&mut self, router: &Router, request: u32, served: &Served);
    /// The first token of a request came from `worker`.
    fn prefilled(&mut self, _router: &Router, _worker: u16, _request: u32) {}
    /// A worker stored the blocks `from..to` of a request's text.
    fn stored(&mut self, _worker: u16, _request: u32, _from: u32, _to: u32) {}
    /// A worker dropped a block.
    fn evicted(&mut self, _worker: u16, _hash: BlockHash) {}
}

/// How a request was served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    pub(super) job: Job,
    pub(super) worker: u16,
    /// Prompt tokens found in the engine's cache.
    pub(super) cached_tokens: u32,
    /// Sent to first token, as the user sees it.
    pub(super) ttft_us: u64,
    /// Wait for a place in the engine's batch.
    pub(super) queued_us: u64,
    /// Sent to last token, as the user sees it.
    pub(super) e2e_us: u64,
}

impl Served {
    /// Prompt tokens that the engine computed: always at least the last one.
    pub(super) fn prefilled_tokens(&self) -> u32 {
        self.job.isl_tokens - self.cached_tokens.min(self.job.isl_tokens - 1)
    }
}

/// A request in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Flight {
    routed_us: u64,
    admitted_us: u64,
    first_token_us: u64,
    worker: u16,
    /// What the router counts for it until the first token.
    prefill_tokens: u64,
    cached_tokens: u32,
}

/// Router and engines.
#[derive(Debug)]
pub(super) struct Serving {
    pub(super) router: Router,
    engines: Vec<Engine>,
    /// By request.
    flights: Vec<Flight>,
    block_size_tokens: u32,
    happened: Vec<Happening>,
}

impl Serving {
    /// An idle fleet for requests numbered below `requests`.
    pub(super) fn new(fleet: &Fleet, requests: usize, rng: Pcg64Mcg) -> Self {
        Self {
            router: Router::new(fleet, rng),
            engines: (0..fleet.workers).map(|_| Engine::new(fleet)).collect(),
            flights: vec![Flight::default(); requests],
            block_size_tokens: fleet.block_size_tokens,
            happened: Vec::new(),
        }
    }

    pub(super) fn engine(&self, worker: u16) -> &Engine {
        &self.engines[usize::from(worker)]
    }

    pub(super) fn engines(&self) -> &[Engine] {
        &self.engines
    }

    /// The frontend is done with a prompt and routes it.
    pub(super) fn route(&mut self, request: u32, around: &mut impl Surroundings) {
        let job = around.job(request);
        let prompt = &around.blocks(request)[..job.full_blocks(self.block_size_tokens)];
        let choice = self.router.choose(job.isl_tokens, prompt);
        let worker = choice.worker;
        let overlap_tokens = choice.overlap_blocks * self.block_size_tokens;
        let prefill_tokens = u64::from(job.isl_tokens.saturating_sub(overlap_tokens));
        self.router.add(worker, prompt, prefill_tokens);
        self.flights[request as usize] =
            Flight { routed_us: around.now_us(), worker, prefill_tokens, ..Flight::default() };
        around.routed(&self.router, request, choice);
        let engine = &mut self.engines[usize::from(worker)];
        engine.push(job);
        if !engine.is_stepping() {
            self.begin_step(worker, around);
        }
    }

    /// A step of a worker's engine is over; the next one begins if there is anything to do.
    pub(super) fn end_step(&mut self, worker: u16, around: &mut impl Surroundings) {
        self.engines[usize::from(worker)].end_step(around, &mut self.happened);
        self.tell(worker, around);
        self.begin_step(worker, around);
    }

    fn begin_step(&mut self, worker: u16, around: &mut impl Surroundings) {
        let duration_us = self.engines[usize::from(worker)].begin_step(around, &mut self.happened);
        self.tell(worker, around);
        if let Some(duration_us) = duration_us {
            around.step_begun(worker, duration_us);
        }
    }

    /// Passes on what an engine did, to the router first.
    fn tell(&mut self, worker: u16, around: &mut impl Surroundings) {
        let mut happened = std::mem::take(&mut self.happened);
        for happening in happened.drain(..) {
            match happening {
                Happening::Admitted { request, cached_blocks } => {
                    let flight = &mut self.flights[request as usize];
                    flight.admitted_us = around.now_us();
                    flight.cached_tokens = cached_blocks * self.block_size_tokens;
                }
                Happening::Evicted { hash } => {
                    self.router.removed(worker, hash);
                    around.evicted(worker, hash);
                }
                Happening::Stored { request, from, to } => {
                    self.router.stored(worker, &around.blocks(request)[from as usize..to as usize]);
                    around.stored(worker, request, from, to);
                }
                Happening::FirstToken { request } => {
                    let flight = &mut self.flights[request as usize];
                    flight.first_token_us = around.now_us();
                    self.router.prefill_completed(worker, flight.prefill_tokens);
                    around.prefilled(&self.router, worker, request);
                }
                Happening::Finished { request } => self.finished(request, around),
            }
        }
        self.happened = happened;
    }

    fn finished(&mut self, request: u32, around: &mut impl Surroundings) {
        let job = around.job(request);
        let Flight { routed_us, admitted_us, first_token_us, worker, cached_tokens, .. } =
            self.flights[request as usize];
        let prompt = &around.blocks(request)[..job.full_blocks(self.block_size_tokens)];
        self.router.free(worker, prompt);
        let outside_us = timing::frontend_us(job.isl_tokens) + timing::FIRST_TOKEN_BACK_US;
        let served = Served {
            job,
            worker,
            cached_tokens,
            ttft_us: first_token_us - routed_us + outside_us,
            queued_us: admitted_us - routed_us,
            e2e_us: around.now_us() - routed_us + outside_us,
        };
        around.finished(&self.router, request, &served);
    }
}
