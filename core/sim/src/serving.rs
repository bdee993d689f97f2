//! The frontend's router and the workers' engines at work: what a request goes through from its routing to its last
//! token. Must not know who sends requests, nor who receives what: that is what [`ServingContext`] is for.

use rand_pcg::Pcg64Mcg;

use super::config::Fleet;
use super::engine::{Engine, EngineEvent, Job, RequestTexts};
use super::fault::{Delivery, Failure, ForcedWorker};
use super::router::{Choice, Router};
use super::timing::Timing;
use radixscope_model::id::BlockHash;
use radixscope_model::record::Block;
use radixscope_router::Role;

/// What lies around the serving: time, the requests, and those who receive what happens to them.
pub(super) trait ServingContext: RequestTexts {
    /// Now, in microseconds since the start.
    fn now_us(&self) -> u64;
    /// The work of a request.
    fn job(&self, request: u32) -> Job;
    /// An engine began a step that long; when it is over, [`Serving::end_step`] must follow.
    fn step_begun(&mut self, worker: u16, duration_us: u64);
    /// A request was routed; the router counts it already, `prefill_tokens` of it until the first token. `engines` are as they
    /// were then.
    fn routed(
        &mut self,
        router: &Router,
        engines: &[Engine],
        request: u32,
        choice: Choice,
        prefill_tokens: u64,
    );
    /// A request is complete; the router no longer counts it.
    fn finished(&mut self, router: &Router, request: u32, served: &Served);
    /// The first token of a request came.
    fn prefilled(&mut self, _router: &Router, _request: u32, _first: &FirstToken) {}
    /// A worker stored the blocks `from..to` of a request's text. Returns what others receive of it.
    fn stored(&mut self, _worker: u16, _request: u32, _from: u32, _to: u32) -> Delivery {
        Delivery::Whole
    }
    /// A worker dropped a block. Returns what others receive of it.
    fn evicted(&mut self, _worker: u16, _hash: BlockHash) -> Delivery {
        Delivery::Whole
    }
    /// A worker copied the blocks `from..to` of a request's text to host memory. Returns what others receive of it.
    fn host_stored(&mut self, _worker: u16, _request: u32, _from: u32, _to: u32) -> Delivery {
        Delivery::Whole
    }
    /// A worker dropped a copy in host memory. Returns what others receive of it.
    fn host_evicted(&mut self, _worker: u16, _hash: BlockHash) -> Delivery {
        Delivery::Whole
    }
    /// A worker cleared its cache.
    fn cleared(&mut self, _worker: u16) {}
    /// All that happened on a worker at this moment was passed on.
    fn moment_ended(&mut self, _worker: u16) {}
    /// The prompt of a request is computed where only that is done; when its KV is where it goes on, [`Serving::transferred`]
    /// must follow.
    fn transfer_begun(&mut self, _request: u32) {}
    /// The router could not apply an event of a worker.
    fn rejected(&mut self, _worker: u16, _rejected: Rejected) {}
    /// A step of a worker's engine is over, and what came of it is published.
    fn stepped(&mut self, _worker: u16, _engine: &Engine) {}
    /// A request ended without a response; the router no longer counts it.
    fn failed(&mut self, _router: &Router, _worker: u16, _request: u32, _failure: Failure) {}
    /// The full blocks of a request's prompt and output as the router sees them.
    fn routed_blocks(&self, request: u32) -> &[Block] {
        self.blocks(request)
    }
    /// Which frontend routes a request.
    fn frontend(&self, _request: u32) -> u8 {
        0
    }
    /// Where a request may go.
    fn forced_worker(&self, _request: u32) -> ForcedWorker {
        ForcedWorker::Free
    }
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
    /// Time from the routing to the last token.
    pub(super) on_worker_us: u64,
}

/// The first token of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstToken {
    pub(super) worker: u16,
    pub(super) isl_tokens: u32,
    /// Prompt tokens found in the engine's cache.
    pub(super) cached_tokens: u32,
    /// Sent to first token, as the user sees it.
    pub(super) ttft_us: u64,
}

/// An event that the router could not apply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rejected {
    /// It does not know the block above the stored ones.
    Store { parent: BlockHash, blocks: usize },
    /// It does not know the block removed.
    Removal { hash: BlockHash },
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
    /// When the worker took it into its queue.
    begun_us: u64,
    admitted_us: u64,
    first_token_us: u64,
    worker: u16,
    /// What the router counts for it until the first token.
    prefill_tokens: u64,
    cached_tokens: u32,
    /// Whether it is under way.
    open: bool,
}

/// Router and engines.
#[derive(Debug)]
pub(super) struct Serving {
    pub(super) router: Router,
    engines: Vec<Engine>,
    /// By request.
    flights: Vec<Flight>,
    /// Workers whose process is gone.
    dead: Vec<bool>,
    block_size_tokens: u32,
    router_block_size_tokens: u32,
    role: Role,
    timing: Timing,
    happened: Vec<EngineEvent>,
}

impl Serving {
    /// An idle fleet for requests numbered below `requests`.
    pub(super) fn new(fleet: &Fleet, requests: usize, rng: Pcg64Mcg) -> Self {
        Self {
            router: Router::new(fleet, rng),
            engines: (0..fleet.workers).map(|_| Engine::new(fleet)).collect(),
            flights: vec![Flight::default(); requests],
            dead: vec![false; usize::from(fleet.workers)],
            block_size_tokens: fleet.block_size_tokens,
            router_block_size_tokens: fleet.router_block_size_tokens,
            role: fleet.role,
            timing: fleet.timing,
            happened: Vec::new(),
        }
    }

    /// There may be requests with numbers below `requests`.
    pub(super) fn make_room(&mut self, requests: usize) {
        self.flights.resize(requests, Flight::default());
    }

    pub(super) fn engine(&self, worker: u16) -> &Engine {
        &self.engines[usize::from(worker)]
    }

    pub(super) fn engines(&self) -> &[Engine] {
        &self.engines
    }

    /// The frontend is done with a prompt and routes it. In a pool that only decodes [`Serving::begin`] must follow, when the
    /// KV is there.
    pub(super) fn route(&mut self, request: u32, around: &mut impl ServingContext) {
        let job = around.job(request);
        let prompt = &around.routed_blocks(request)[..job.full_blocks(self.router_block_size_tokens)];
        let (frontend, steer, now_us) =
            (around.frontend(request), around.forced_worker(request), around.now_us());
        let choice = self.router.choose((frontend, now_us), job.isl_tokens, prompt, steer);
        let worker = choice.worker;
        let prefill_tokens = self.router.prefill_tokens(job.isl_tokens, choice);
        self.router.add(frontend, worker, prompt, prefill_tokens);
        self.router.predict(now_us, worker, prompt);
        self.flights[request as usize] =
            Flight { routed_us: now_us, worker, prefill_tokens, open: true, ..Flight::default() };
        around.routed(&self.router, &self.engines, request, choice, prefill_tokens);
        if self.dead[usize::from(worker)] {
            self.fail(request, Failure::Refused, around);
            self.router.unreachable(worker, now_us);
        } else if self.role != Role::Decode {
            self.begin(request, around);
        }
    }

    /// The worker of a routed request puts it into its queue, if the request is still open.
    pub(super) fn begin(&mut self, request: u32, around: &mut impl ServingContext) {
        let flight = &mut self.flights[request as usize];
        flight.begun_us = around.now_us();
        let Flight { worker, open, .. } = *flight;
        if !open {
            return;
        }
        let engine = &mut self.engines[usize::from(worker)];
        engine.push(around.job(request));
        if !engine.is_stepping() {
            self.begin_step(worker, around);
        }
    }

    /// The KV of a request left the worker that computed it, which ends its part here, if that is still open.
    pub(super) fn transferred(&mut self, request: u32, around: &mut impl ServingContext) {
        if self.flights[request as usize].open {
            self.finished(request, around);
        }
    }

    /// A request that failed elsewhere ends here too, if it is still open.
    pub(super) fn cancel(&mut self, request: u32, how: Failure, around: &mut impl ServingContext) {
        let Flight { worker, open, .. } = self.flights[request as usize];
        if open {
            self.engines[usize::from(worker)].cancel(request);
            self.fail(request, how, around);
        }
    }

    /// Whether a request is open here.
    pub(super) fn is_open(&self, request: u32) -> bool {
        self.flights[request as usize].open
    }

    /// A step of a worker's engine is over; the next one begins if there is anything to do.
    pub(super) fn end_step(&mut self, worker: u16, around: &mut impl ServingContext) {
        self.engines[usize::from(worker)].end_step(around, &mut self.happened);
        self.forward_events(worker, around);
        around.stepped(worker, &self.engines[usize::from(worker)]);
        self.begin_step(worker, around);
    }

    /// Whether the process of a worker lives.
    pub(super) fn lives(&self, worker: u16) -> bool {
        !self.dead[usize::from(worker)]
    }

    /// The process of a worker is killed, with every request on it.
    pub(super) fn kill(&mut self, worker: u16, around: &mut impl ServingContext) {
        self.dead[usize::from(worker)] = true;
        self.engines[usize::from(worker)].abort();
        if self.flights.iter().any(|flight| flight.open && flight.worker == worker) {
            self.fail_all(Failure::Disconnected, |flight| flight.worker == worker, around);
            self.router.unreachable(worker, around.now_us());
        }
    }

    /// The step that a killed engine had begun would end now.
    pub(super) fn lose_step(&mut self, worker: u16) {
        self.engines[usize::from(worker)].lose_step();
    }

    /// A new process takes the place of a killed worker, with nothing in its cache.
    pub(super) fn revive(&mut self, worker: u16, now_us: u64) {
        self.engines[usize::from(worker)].begin_anew();
        self.dead[usize::from(worker)] = false;
        self.router.join(worker, now_us);
    }

    /// A worker clears its cache, and what runs on it begins anew.
    pub(super) fn clear(&mut self, worker: u16, around: &mut impl ServingContext) {
        let engine = &mut self.engines[usize::from(worker)];
        engine.clear();
        let is_stepping = engine.is_stepping();
        self.router.forget(worker);
        around.cleared(worker);
        around.moment_ended(worker);
        if !is_stepping {
            self.begin_step(worker, around);
        }
    }

    /// The frontends go away, with every request in flight, and come back knowing nothing.
    pub(super) fn restart_frontends(&mut self, around: &mut impl ServingContext) {
        self.engines.iter_mut().for_each(Engine::abort);
        self.fail_all(Failure::FrontendGone, |_| true, around);
        self.router.restart(around.now_us());
    }

    /// The router knows again what those workers hold whose events reach it.
    pub(super) fn catch_up(&mut self, reaches_router: impl Fn(u16) -> bool) {
        for (worker, engine) in (0..).zip(&self.engines).filter(|(worker, _)| reaches_router(*worker)) {
            self.router.forget(worker);
            self.router.learn(worker, engine.cache().hashes());
            self.router.host_stored(worker, engine.host().hashes());
        }
    }

    /// Prefill needs so much of the time it should, on every worker, in percent.
    pub(super) fn slow_prefill(&mut self, percent: u64) {
        self.engines.iter_mut().for_each(|engine| engine.slow_prefill(percent));
    }

    fn fail_all(&mut self, how: Failure, which: impl Fn(&Flight) -> bool, around: &mut impl ServingContext) {
        for request in 0..self.flights.len() as u32 {
            let flight = &self.flights[request as usize];
            if flight.open && which(flight) {
                self.fail(request, how, around);
            }
        }
    }

    fn fail(&mut self, request: u32, how: Failure, around: &mut impl ServingContext) {
        let flight = &mut self.flights[request as usize];
        flight.open = false;
        let Flight { worker, prefill_tokens, first_token_us, .. } = *flight;
        let prompt_blocks = around.job(request).full_blocks(self.router_block_size_tokens);
        let frontend = around.frontend(request);
        if first_token_us == 0 {
            self.router.prefill_completed(frontend, worker, prefill_tokens);
        }
        self.router.free(frontend, worker, &around.routed_blocks(request)[..prompt_blocks]);
        around.failed(&self.router, worker, request, how);
    }

    fn begin_step(&mut self, worker: u16, around: &mut impl ServingContext) {
        let duration_us = self.engines[usize::from(worker)].begin_step(around, &mut self.happened);
        self.forward_events(worker, around);
        if let Some(duration_us) = duration_us {
            around.step_begun(worker, duration_us);
        }
    }

    /// Passes on what an engine did: to those around, and to the router as far as it receives it.
    fn forward_events(&mut self, worker: u16, around: &mut impl ServingContext) {
        let mut happened = std::mem::take(&mut self.happened);
        for happening in happened.drain(..) {
            match happening {
                EngineEvent::Admitted { request, cached_blocks } => {
                    let flight = &mut self.flights[request as usize];
                    flight.admitted_us = around.now_us();
                    flight.cached_tokens = cached_blocks * self.block_size_tokens;
                }
                EngineEvent::Evicted { hash } => {
                    let reaches = around.evicted(worker, hash).reaches_router();
                    if reaches && !self.router.removed(worker, hash) {
                        around.rejected(worker, Rejected::Removal { hash });
                    }
                }
                EngineEvent::Stored { request, from, to } => self.stored(worker, request, (from, to), around),
                EngineEvent::HostEvicted { hash } => {
                    if around.host_evicted(worker, hash).reaches_router() {
                        self.router.host_removed(worker, hash);
                    }
                }
                EngineEvent::HostStored { request, from, to } => {
                    if around.host_stored(worker, request, from, to).reaches_router() {
                        let blocks = &around.blocks(request)[from as usize..to as usize];
                        self.router.host_stored(worker, blocks.iter().map(|block| block.block_hash));
                    }
                }
                EngineEvent::FirstToken { request } => {
                    let flight = &mut self.flights[request as usize];
                    flight.first_token_us = around.now_us();
                    let Flight { routed_us, first_token_us, prefill_tokens, cached_tokens, .. } = *flight;
                    self.router.prefill_completed(around.frontend(request), worker, prefill_tokens);
                    let isl_tokens = around.job(request).isl_tokens;
                    let ttft_us = first_token_us - routed_us + self.timing.outside_us(isl_tokens);
                    let first = FirstToken { worker, isl_tokens, cached_tokens, ttft_us };
                    around.prefilled(&self.router, request, &first);
                }
                EngineEvent::Finished { request } if self.role == Role::Prefill => {
                    around.transfer_begun(request)
                }
                EngineEvent::Finished { request } => self.finished(request, around),
            }
        }
        self.happened = happened;
        around.moment_ended(worker);
    }

    fn stored(
        &mut self,
        worker: u16,
        request: u32,
        (from, to): (u32, u32),
        around: &mut impl ServingContext,
    ) {
        let delivery = around.stored(worker, request, from, to);
        let text = around.blocks(request);
        let parent = from.checked_sub(1).map(|at| text[at as usize].block_hash);
        let blocks = match delivery {
            Delivery::Emptied => &[],
            _ => &text[from as usize..to as usize],
        };
        let len = blocks.len();
        if delivery.reaches_router()
            && !self.router.stored(worker, parent, blocks)
            && let Some(parent) = parent
        {
            around.rejected(worker, Rejected::Store { parent, blocks: len });
        }
    }

    fn finished(&mut self, request: u32, around: &mut impl ServingContext) {
        let job = around.job(request);
        let Flight { routed_us, begun_us, admitted_us, first_token_us, worker, cached_tokens, .. } =
            self.flights[request as usize];
        self.flights[request as usize].open = false;
        let prompt = &around.routed_blocks(request)[..job.full_blocks(self.router_block_size_tokens)];
        self.router.free(around.frontend(request), worker, prompt);
        let on_worker_us = around.now_us() - routed_us;
        let outside_us = self.timing.outside_us(job.isl_tokens);
        let served = Served {
            job,
            worker,
            cached_tokens,
            ttft_us: first_token_us - routed_us + outside_us,
            queued_us: admitted_us - begun_us,
            e2e_us: on_worker_us + outside_us,
            on_worker_us,
        };
        around.finished(&self.router, request, &served);
    }
}
