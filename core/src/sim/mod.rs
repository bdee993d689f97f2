//! A simulated Dynamo 0.9 cluster that emits Dynamo's own wire bytes: workers with LRU block caches, a KV-aware or
//! round-robin router, and multi-turn users.
//!
//! A discrete-event simulation, pure and deterministic by seed: no clock, no I/O, no threads. What it emits goes
//! through the same decoders as NATS messages, so it must not know them, nor the state that is folded from them.

mod cache;
mod config;
mod engine;
mod report;
mod router;
mod shape;
mod timing;
mod tokens;
mod users;
mod wire;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

pub use self::config::{
    Config, ConfigError, EventLine, MAX_CONCURRENCY, MAX_WORKERS, RouterMode, Workload,
    reference_blocks_per_worker,
};
use self::engine::{Engine, Happening, Job, Texts as _};
pub use self::report::{
    DECISIONS_KEPT, DecisionRecord, Percentiles, REQUESTS_KEPT, Report, RequestRecord, SPREAD_EVERY_MS,
    SPREADS_KEPT, SpreadSample, Summary,
};
pub use self::router::Candidate;
use self::router::Router;
pub use self::tokens::token_id;
use self::users::Users;
pub use self::wire::WireMessage;
use self::wire::{Out, Wire};
use crate::id::{BlockHash, Millis};

/// Users arrive one after the other over this long at the start, in microseconds.
const RAMP_US: u64 = 20_000_000;
/// Users of a wave do not click in the same millisecond: they spread over this long, in microseconds.
const WAVE_JITTER_US: u64 = 400_000;
/// Least time between two load reports of a worker, in microseconds.
const LOAD_EVERY_US: u64 = 100_000;

/// What happens next. The order of the variants decides nothing: every event has its own sequence number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    /// Workers register.
    Registration,
    /// A user joins those that wait for a wave.
    Arrival(u32),
    /// New conversations begin.
    Wave,
    /// A user sends a message.
    Send(u32),
    /// The frontend is done with a prompt and routes it.
    Route(u32),
    /// A worker's engine ends a step.
    StepEnd(u16),
    /// A worker may report its load again.
    LoadDue(u16),
    /// The load is sampled.
    Sample,
}

/// A request in flight, by user.
#[derive(Clone, Copy, Debug, Default)]
struct Flight {
    sent_us: u64,
    routed_us: u64,
    admitted_us: u64,
    first_token_us: u64,
    worker: u16,
    prefill_tokens: u64,
    cached_tokens: u32,
}

/// A worker's last load report.
#[derive(Clone, Copy, Debug, Default)]
struct LoadReport {
    blocks: u64,
    /// When the next may follow.
    next_us: u64,
    due: bool,
}

/// A simulated cluster; see the module's documentation.
#[derive(Debug)]
pub struct Simulation {
    config: Config,
    start: Millis,
    now_us: u64,
    agenda: BinaryHeap<Reverse<(u64, u64, Event)>>,
    scheduled: u64,
    users: Users,
    flights: Vec<Flight>,
    router: Router,
    engines: Vec<Engine>,
    loads: Vec<LoadReport>,
    wire: Wire,
    report: Report,
    happened: Vec<Happening>,
    rng: Pcg64Mcg,
}

impl Simulation {
    /// A cluster that comes up at `start`.
    ///
    /// # Errors
    /// What in `config` cannot be simulated.
    pub fn new(config: Config, start: Millis) -> Result<Self, ConfigError> {
        config.validate()?;
        // One stream of randomness for each part, so that a choice of the router does not change the users.
        let stream = |salt: u64| Pcg64Mcg::seed_from_u64(config.seed ^ salt);
        let mut simulation = Self {
            users: Users::new(&config),
            flights: vec![Flight::default(); config.concurrency as usize],
            router: Router::new(&config, stream(0x726f_7574_6572)),
            engines: (0..config.workers).map(|_| Engine::new(&config)).collect(),
            loads: vec![LoadReport::default(); usize::from(config.workers)],
            wire: Wire::new(&config),
            report: Report::new(config.workers),
            rng: stream(0x6a69_7474_6572),
            happened: Vec::new(),
            agenda: BinaryHeap::new(),
            scheduled: 0,
            now_us: 0,
            start,
            config,
        };
        simulation.after(0, Event::Registration);
        for user in 0..simulation.users.len() {
            let at = RAMP_US * u64::from(user) / u64::from(simulation.users.len());
            simulation.after(at, Event::Arrival(user));
        }
        simulation.after(0, Event::Wave);
        simulation.after(0, Event::Sample);
        Ok(simulation)
    }

    /// Lets everything up to and including `until` happen and passes each message to `out`, in order of time.
    pub fn run_until(&mut self, until: Millis, out: &mut dyn FnMut(WireMessage<'_>)) {
        if until < self.start {
            return;
        }
        // The last microsecond of that millisecond.
        let until_us = until.since(self.start) * 1_000 + 999;
        while let Some(&Reverse((at_us, _, event))) = self.agenda.peek() {
            if at_us > until_us {
                break;
            }
            self.agenda.pop();
            self.now_us = at_us;
            self.happen(event, out);
        }
    }

    /// What was measured so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// What is simulated.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Discovery instance id of worker number `worker`.
    pub fn worker_id(&self, worker: u16) -> u64 {
        self.wire.worker_id(worker)
    }

    /// Discovery instance id of the frontend.
    pub fn router_id(&self) -> u64 {
        self.wire.router_id()
    }

    /// Full blocks that worker number `worker` really holds, in no order.
    pub fn cached_blocks(&self, worker: u16) -> impl Iterator<Item = BlockHash> + '_ {
        self.engines[usize::from(worker)].cache().hashes()
    }

    /// Blocks that the running requests of worker number `worker` really use, full or not.
    pub fn used_blocks(&self, worker: u16) -> u32 {
        self.engines[usize::from(worker)].cache().in_use()
    }

    /// Requests that worker number `worker` runs, and that wait there for a place in the batch.
    pub fn running_and_queued(&self, worker: u16) -> (u32, u32) {
        let engine = &self.engines[usize::from(worker)];
        (engine.running(), engine.queued())
    }

    fn after(&mut self, us: u64, event: Event) {
        self.agenda.push(Reverse((self.now_us + us, self.scheduled, event)));
        self.scheduled += 1;
    }

    fn now_ms(&self) -> Millis {
        self.at_ms(self.now_us)
    }

    fn at_ms(&self, us: u64) -> Millis {
        Millis(self.start.0 + us / 1_000)
    }

    fn happen(&mut self, event: Event, out: Out<'_>) {
        match event {
            Event::Registration => self.wire.model_cards(&self.config, self.at_ms(self.now_us), out),
            Event::Arrival(user) => self.users.wait(user),
            Event::Wave => self.wave(),
            Event::Send(user) => self.send(user),
            Event::Route(user) => self.route(user, out),
            Event::StepEnd(worker) => self.end_step(worker, out),
            Event::LoadDue(worker) => {
                self.loads[usize::from(worker)].due = false;
                self.report_load(worker, out);
            }
            Event::Sample => self.sample(),
        }
    }

    fn wave(&mut self) {
        let Self { users, agenda, scheduled, rng, now_us, .. } = self;
        let next_ms = users.wave(|user| {
            let at_us = *now_us + rng.random_range(0..WAVE_JITTER_US);
            agenda.push(Reverse((at_us, *scheduled, Event::Send(user))));
            *scheduled += 1;
        });
        self.after(u64::from(next_ms) * 1_000, Event::Wave);
    }

    fn send(&mut self, user: u32) {
        self.flights[user as usize] = Flight { sent_us: self.now_us, ..Flight::default() };
        let (isl_tokens, _) = self.users.request(user);
        self.after(timing::frontend_us(isl_tokens), Event::Route(user));
    }

    fn route(&mut self, user: u32, out: Out<'_>) {
        let at_ms = self.now_ms();
        let (isl_tokens, osl_tokens) = self.users.request(user);
        let block_size = self.config.block_size_tokens;
        let prompt = &self.users.blocks(user)[..(isl_tokens / block_size) as usize];
        let choice = self.router.choose(isl_tokens, prompt);
        let worker = choice.worker;
        let prefill_tokens = u64::from(isl_tokens.saturating_sub(choice.overlap_blocks * block_size));
        self.router.add(worker, prompt, prefill_tokens);
        self.report.routed_total += 1;
        if self.router.is_kv() {
            let candidates = self.router.candidates();
            self.report.decided(|decision| {
                decision.at_ms = at_ms;
                decision.worker = worker;
                decision.isl_tokens = isl_tokens;
                decision.prompt.extend(prompt.iter().map(|b| b.block_hash));
                decision.candidates.extend_from_slice(candidates);
            });
            let isl_blocks = isl_tokens.div_ceil(block_size);
            self.wire.hit_rate(at_ms, worker, isl_blocks, choice.overlap_blocks, out);
            self.publish_router_load(worker, out);
        }
        let flight = &mut self.flights[user as usize];
        flight.routed_us = self.now_us;
        flight.worker = worker;
        flight.prefill_tokens = prefill_tokens;
        self.engines[usize::from(worker)].push(Job { user, isl_tokens, osl_tokens });
        if !self.engines[usize::from(worker)].is_stepping() {
            self.begin_step(worker, out);
        }
    }

    fn begin_step(&mut self, worker: u16, out: Out<'_>) {
        let engine = &mut self.engines[usize::from(worker)];
        let duration_us = engine.begin_step(&self.users, &mut self.happened);
        self.tell(worker, out);
        if let Some(duration_us) = duration_us {
            self.after(duration_us, Event::StepEnd(worker));
        }
    }

    fn end_step(&mut self, worker: u16, out: Out<'_>) {
        self.engines[usize::from(worker)].end_step(&self.users, &mut self.happened);
        self.tell(worker, out);
        self.begin_step(worker, out);
        self.report_load(worker, out);
    }

    /// Passes on what an engine did.
    fn tell(&mut self, worker: u16, out: Out<'_>) {
        let mut happened = std::mem::take(&mut self.happened);
        for happening in happened.drain(..) {
            match happening {
                Happening::Admitted { user, cached_blocks } => {
                    let flight = &mut self.flights[user as usize];
                    flight.admitted_us = self.now_us;
                    flight.cached_tokens = cached_blocks * self.config.block_size_tokens;
                }
                Happening::Evicted { hash } => {
                    self.router.removed(worker, hash);
                    self.report.evicted_blocks_total[usize::from(worker)] += 1;
                    self.wire.removed(self.now_ms(), worker, hash, out);
                }
                Happening::Stored { user, from, to } => self.stored(worker, user, from, to, out),
                Happening::FirstToken { user } => {
                    let flight = &mut self.flights[user as usize];
                    flight.first_token_us = self.now_us;
                    self.router.prefill_completed(worker, flight.prefill_tokens);
                    self.publish_router_load(worker, out);
                }
                Happening::Finished { user } => self.finished(worker, user, out),
            }
        }
        self.happened = happened;
    }

    fn stored(&mut self, worker: u16, user: u32, from: u32, to: u32, out: Out<'_>) {
        let at_ms = self.now_ms();
        let text = self.users.blocks(user);
        let parent = from.checked_sub(1).map(|at| text[at as usize].block_hash);
        let blocks = &text[from as usize..to as usize];
        self.router.stored(worker, blocks);
        self.report.stored_blocks_total[usize::from(worker)] += blocks.len() as u64;
        self.wire.stored(at_ms, worker, parent, blocks, out);
    }

    fn finished(&mut self, worker: u16, user: u32, out: Out<'_>) {
        let (isl_tokens, osl_tokens) = self.users.request(user);
        let prompt = &self.users.blocks(user)[..(isl_tokens / self.config.block_size_tokens) as usize];
        self.router.free(worker, prompt);
        self.publish_router_load(worker, out);
        let flight = self.flights[user as usize];
        let back_us = timing::FIRST_TOKEN_BACK_US;
        self.report.finished(RequestRecord {
            sent_at_ms: self.at_ms(flight.sent_us),
            finished_at_ms: self.now_ms(),
            worker,
            isl_tokens,
            osl_tokens,
            cached_tokens: flight.cached_tokens,
            ttft_us: flight.first_token_us - flight.sent_us + back_us,
            queued_us: flight.admitted_us - flight.routed_us,
            e2e_us: self.now_us - flight.sent_us + back_us,
        });
        match self.users.answered(user) {
            Some(think_ms) => self.after(back_us + u64::from(think_ms) * 1_000, Event::Send(user)),
            None => self.after(back_us, Event::Arrival(user)),
        }
    }

    fn publish_router_load(&mut self, worker: u16, out: Out<'_>) {
        if self.router.is_kv() {
            let (decode_blocks, prefill_tokens) = self.router.load(worker);
            self.wire.router_load(self.now_ms(), worker, decode_blocks, prefill_tokens, out);
        }
    }

    /// A worker's own load: on change, but not too often.
    fn report_load(&mut self, worker: u16, out: Out<'_>) {
        let blocks = u64::from(self.used_blocks(worker));
        let now_us = self.now_us;
        let load = &mut self.loads[usize::from(worker)];
        if blocks == load.blocks || load.due {
            return;
        }
        if now_us < load.next_us {
            load.due = true;
            let wait_us = load.next_us - now_us;
            self.after(wait_us, Event::LoadDue(worker));
            return;
        }
        *load = LoadReport { blocks, next_us: now_us + LOAD_EVERY_US, due: false };
        self.wire.worker_load(self.now_ms(), worker, blocks, out);
    }

    fn sample(&mut self) {
        let in_flight = || self.router.in_flight();
        self.report.sampled(SpreadSample {
            at_ms: self.at_ms(self.now_us),
            least: in_flight().min().unwrap_or(0),
            most: in_flight().max().unwrap_or(0),
            queued: self.engines.iter().map(Engine::queued).sum(),
        });
        self.after(SPREAD_EVERY_MS * 1_000, Event::Sample);
    }
}
