//! The workload on the simulated cluster, event by event: users who send, publishers that report, an observer who measures.
//! Must not know how requests are served.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::config::{Config, Topology};
use super::engine::Engine;
use super::event_queue::EventQueue;
use super::fault::{Failure, FaultPlan};
use super::fault_events;
use super::log::uuid;
use super::metrics::{Metrics, SCRAPE_EVERY_US};
use super::observed::Observed;
use super::processes::Processes;
use super::report::{IN_FLIGHT_EVERY_MS, InFlightSample, SimulationReport};
use super::serving::Serving;
use super::start_up;
use super::stream;
use super::timing;
use super::topology::{Pool, Release};
use super::users::Users;
use super::wire::WireOut;
use radixscope_model::id::Millis;
use radixscope_router::Role;

/// Users arrive one after the other over this long at the start, in microseconds.
const RAMP_US: u64 = 20_000_000;
/// Users who join later arrive over this long, in microseconds.
const JOIN_US: u64 = 5_000_000;
/// Users of a wave do not click in the same millisecond: they spread over this long, in microseconds.
const WAVE_JITTER_US: u64 = 400_000;
/// From the choice of a prefill worker to that of a decode worker, in microseconds.
pub(super) const DECODE_ROUTED_US: u64 = 3_000;
/// The pools of a disaggregated deployment.
const PREFILL: usize = 0;
const DECODE: usize = 1;

/// What happens next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Event {
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
    /// A prompt that is being prefilled gets a worker to decode on.
    RouteDecode(u32),
    /// The KV of a prompt is where it will be decoded.
    Transferred(u32),
    /// A worker's engine ends a step; workers are numbered over all pools.
    StepEnd(u16),
    /// A worker may report its load again.
    LoadDue(u16),
    /// The load is sampled.
    Sample,
    /// Frontends and workers are scraped.
    Scrape,
    /// The fault begins, unless another one is at work since this was planned: faults are numbered.
    FaultBegins(u32),
    /// What began with the fault of this number ends.
    FaultEnds(u32),
    /// The last worker of each pool clears its cache.
    CacheCleared,
}

/// What is known of a user's request beyond the pool that it is in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Request {
    /// Pools in which it is not over.
    pub(super) open: u8,
    /// Whether it failed in one.
    pub(super) has_failed: bool,
    /// What became of it where it was prefilled, if that was elsewhere.
    pub(super) prefill: Option<PrefillPart>,
}

/// The part of a request that a worker did which only prefills.
#[derive(Clone, Copy, Debug)]
pub(super) struct PrefillPart {
    pub(super) worker: u16,
    pub(super) cached_tokens: u32,
    pub(super) queued_us: u64,
}

/// All that surrounds routers and engines.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) config: Config,
    start: Millis,
    pub(super) agenda: EventQueue<Event>,
    pub(super) users: Users,
    pub(super) pools: Vec<Processes>,
    pub(super) metrics: Option<Metrics>,
    /// Requests that a frontend has and has not routed yet.
    arriving: u32,
    pub(super) report: SimulationReport,
    /// By user.
    pub(super) requests: Vec<Request>,
    /// Requests that failed in one pool and are to end in the others.
    pub(super) broken: Vec<(usize, u32, Failure)>,
    /// Number of the fault at work, or of the last one.
    fault_number: u32,
    pub(super) jitter: Pcg64Mcg,
    ids: Pcg64Mcg,
}

impl Driver {
    /// `config` is valid.
    pub(super) fn new(config: Config, pools: Vec<Pool>, start: Millis) -> Self {
        let mut driver = Self {
            users: Users::new(&config),
            metrics: config.metrics.then(|| Metrics::new(&pools)),
            arriving: 0,
            report: SimulationReport::new(config.topology.pools() * config.workers),
            requests: vec![Request::default(); config.concurrency as usize],
            broken: Vec::new(),
            fault_number: 0,
            jitter: stream(config.seed, 0x6a69_7474_6572),
            ids: stream(config.seed, 0x7575_6964),
            agenda: EventQueue::new(),
            start,
            pools: pools.into_iter().map(Processes::new).collect(),
            config,
        };
        driver.agenda.after(0, Event::Registration);
        for user in 0..driver.config.concurrency {
            let at = RAMP_US * u64::from(user) / u64::from(driver.config.concurrency);
            driver.agenda.after(at, Event::Arrival(user));
        }
        driver.agenda.after(0, Event::Wave);
        driver.agenda.after(0, Event::Sample);
        if driver.metrics.is_some() {
            driver.agenda.after(SCRAPE_EVERY_US, Event::Scrape);
        }
        driver.clears_again();
        if let Some(strikes_us) = driver.pools.iter().find_map(|of| of.faults.strikes_us()) {
            driver.agenda.after(strikes_us, Event::FaultBegins(0));
        }
        driver
    }

    pub(super) fn report(&self) -> &SimulationReport {
        &self.report
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// The pool of a worker numbered over all pools, and its number there.
    pub(super) fn place(&self, worker: u16) -> (usize, u16) {
        (usize::from(worker / self.config.workers), worker % self.config.workers)
    }

    /// Discovery instance id of a worker numbered over all pools.
    pub(super) fn worker_id(&self, worker: u16) -> u64 {
        let (pool, worker) = self.place(worker);
        self.pools[pool].wire.worker_id(worker)
    }

    /// Lets everything up to and including `until` happen; `pools` are those of the configuration.
    pub(super) fn run_until(&mut self, until: Millis, pools: &mut [Serving], out: WireOut<'_>) {
        if until < self.start {
            return;
        }
        // The last microsecond of that millisecond.
        let until_us = until.since(self.start) * 1_000 + 999;
        while let Some(event) = self.agenda.next(until_us) {
            self.happen(event, pools, out);
            self.end_broken(pools, out);
        }
    }

    pub(super) fn at<'a, 'o>(&'a mut self, pool: usize, out: WireOut<'o>) -> Observed<'a, 'o> {
        Observed { driver: self, pool, out }
    }

    fn happen(&mut self, event: Event, pools: &mut [Serving], out: WireOut<'_>) {
        match event {
            Event::Registration => {
                let at_ms = self.now_ms();
                self.pools.iter_mut().for_each(|of| of.wire.model_cards(&of.pool, at_ms, out));
                for (pool, serving) in pools.iter().enumerate() {
                    if self.pools[pool].pool.release() == Release::V1_6 && serving.router.is_kv() {
                        start_up::router_began(&mut self.at(pool, out), &serving.router);
                    }
                }
            }
            Event::Arrival(user) | Event::Send(user) if self.users.leaves(user) => {
                self.end_conversation(user)
            }
            Event::Arrival(user) => self.users.wait(user),
            Event::Wave => self.wave(),
            Event::Send(user) => {
                self.arriving += 1;
                let frontend = self.frontend(user);
                self.metrics.iter_mut().for_each(|metrics| metrics.received(frontend));
                let frontend_us = timing::frontend_us(self.users.job(user).isl_tokens);
                self.agenda.after(frontend_us, Event::Route(user));
            }
            Event::Route(user) => self.route(user, pools, out),
            Event::RouteDecode(user) if pools[PREFILL].is_open(user) => {
                pools[DECODE].route(user, &mut self.at(DECODE, out));
            }
            Event::RouteDecode(_) => {}
            Event::Transferred(user) => {
                pools[PREFILL].transferred(user, &mut self.at(PREFILL, out));
                pools[DECODE].begin(user, &mut self.at(DECODE, out));
            }
            Event::StepEnd(of_all) | Event::LoadDue(of_all) => {
                let (pool, worker) = self.place(of_all);
                let is_step = event == Event::StepEnd(of_all);
                if !is_step {
                    self.pools[pool].load_due(worker);
                }
                // Nothing comes of a step that a killed engine had begun.
                if !pools[pool].lives(worker) {
                    if is_step {
                        pools[pool].lose_step(worker);
                    }
                    return;
                }
                if is_step {
                    pools[pool].end_step(worker, &mut self.at(pool, out));
                }
                self.report_load(pool, worker, pools[pool].engine(worker), out);
            }
            Event::Sample => self.sample(pools),
            Event::Scrape => self.scrape(pools, out),
            Event::FaultBegins(number) if number == self.fault_number => self.strike(pools, out),
            Event::FaultEnds(number) if number == self.fault_number => {
                for (pool, serving) in pools.iter_mut().enumerate() {
                    fault_events::end(&mut self.at(pool, out), serving);
                }
            }
            Event::FaultBegins(_) | Event::FaultEnds(_) => {}
            Event::CacheCleared => {
                for (pool, serving) in pools.iter_mut().enumerate() {
                    serving.clear(self.config.workers - 1, &mut self.at(pool, out));
                }
                self.clears_again();
            }
        }
    }

    /// What happens at once when a fault begins, in the pools that it hits.
    fn strike(&mut self, pools: &mut [Serving], out: WireOut<'_>) {
        let mut ends_us = None;
        for (pool, serving) in pools.iter_mut().enumerate() {
            if self.pools[pool].faults.strikes_us().is_some() {
                ends_us = fault_events::strike(&mut self.at(pool, out), serving);
            }
        }
        let ends = Event::FaultEnds(self.fault_number);
        ends_us.into_iter().for_each(|us| self.agenda.after(us, ends));
    }

    /// Sends a prompt to the pool that prefills it first, or to both models.
    fn route(&mut self, user: u32, pools: &mut [Serving], out: WireOut<'_>) {
        self.arriving -= 1;
        let first = match self.config.topology {
            Topology::TwoModels => 2,
            Topology::Aggregated | Topology::AggregatedV0_9 | Topology::Disaggregated | Topology::Tiers => 1,
        };
        // Whatever becomes of it in one pool, it is not over before it was sent to all.
        self.requests[user as usize] = Request { open: first, ..Request::default() };
        for (pool, serving) in pools.iter_mut().enumerate().take(first.into()) {
            serving.route(user, &mut self.at(pool, out));
        }
        if self.config.topology == Topology::Disaggregated {
            self.agenda.after(DECODE_ROUTED_US, Event::RouteDecode(user));
        }
    }

    /// Ends requests in the pools in which they did not fail.
    pub(super) fn end_broken(&mut self, pools: &mut [Serving], out: WireOut<'_>) {
        while let Some((failed, user, how)) = self.broken.pop() {
            for (pool, serving) in pools.iter_mut().enumerate().filter(|(pool, _)| *pool != failed) {
                serving.cancel(user, how, &mut self.at(pool, out));
            }
        }
    }

    fn scrape(&mut self, pools: &[Serving], out: WireOut<'_>) {
        let at = (self.now_ms(), self.agenda.now_us());
        let Some(metrics) = &mut self.metrics else { return };
        metrics.scrape(&self.pools, pools, at, out);
        self.agenda.after(SCRAPE_EVERY_US, Event::Scrape);
    }

    /// The frontends begin anew in a pool, and when that is the last one, as a whole: ids, numbers and counters.
    pub(super) fn restart_frontends(&mut self, pool: usize) {
        self.pools[pool].wire.restart_routers();
        if pool + 1 == self.pools.len() {
            self.metrics.iter_mut().for_each(|metrics| metrics.restarted(self.arriving.into()));
        }
    }

    /// It is now `at`, and nothing is planned before it.
    pub(super) fn pass_to(&mut self, at: Millis) {
        self.agenda.pass_to(at.since(self.start) * 1_000);
    }

    /// So many milliseconds pass in which nothing happens.
    pub(super) fn pass_idle(&mut self, idle_ms: u64) {
        self.start.0 += idle_ms;
    }

    /// From now on there are so many users; those who leave get their response before.
    pub(super) fn set_concurrency(&mut self, concurrency: u32, pools: &mut [Serving]) {
        let more = (concurrency as usize).max(self.requests.len());
        self.requests.resize(more, Request::default());
        self.pools.iter_mut().for_each(|of| of.make_room(more));
        pools.iter_mut().for_each(|of| of.make_room(more));
        let mut joined = Vec::new();
        self.users.set_concurrency(concurrency, |user| joined.push(user));
        for (at, user) in (0..).zip(&joined) {
            self.agenda.after(JOIN_US * at / joined.len() as u64, Event::Arrival(*user));
        }
        self.config.concurrency = concurrency;
    }

    /// A fault begins now, in the pools whose configuration in `hit` has it; or all is well again.
    pub(super) fn set_fault(&mut self, plan: Option<FaultPlan>, hit: &[Pool]) {
        self.config.fault = plan;
        self.fault_number += 1;
        for (of, hit) in self.pools.iter_mut().zip(hit) {
            of.pool.config.fault = hit.config.fault;
            of.faults.set(hit.config.fault, self.agenda.now_us());
        }
    }

    /// What happens at once with the fault that was set.
    pub(super) fn begin_fault(&mut self, pools: &mut [Serving], out: WireOut<'_>) {
        if self.pools.iter().any(|of| of.faults.strikes_us().is_some()) {
            self.strike(pools, out);
        }
    }

    /// Now, in microseconds of Unix time.
    pub(super) fn now_unix_us(&self) -> u64 {
        self.start.0 * 1_000 + self.agenda.now_us()
    }

    pub(super) fn now_ms(&self) -> Millis {
        self.at_ms(self.agenda.now_us())
    }

    pub(super) fn at_ms(&self, us: u64) -> Millis {
        Millis(self.start.0 + us / 1_000)
    }

    fn clears_again(&mut self) {
        if let Some(every_ms) = self.config.cleared_every_ms {
            self.agenda.after(u64::from(every_ms.get()) * 1_000, Event::CacheCleared);
        }
    }

    fn wave(&mut self) {
        let Self { users, agenda, jitter, .. } = self;
        let next_ms =
            users.wave(|user| agenda.after(jitter.random_range(0..WAVE_JITTER_US), Event::Send(user)));
        agenda.after(u64::from(next_ms) * 1_000, Event::Wave);
    }

    fn report_load(&mut self, pool: usize, worker: u16, engine: &Engine, out: WireOut<'_>) {
        let at = (self.now_ms(), self.agenda.now_us());
        if let Some(later_us) = self.pools[pool].report_load(worker, engine, at, out) {
            let worker = self.pools[pool].pool.worker(worker);
            self.agenda.after(later_us, Event::LoadDue(worker));
        }
    }

    /// The load of the pool in which requests spend most of their time: the last one.
    fn sample(&mut self, pools: &[Serving]) {
        if let Some(serving) = pools.last() {
            let in_flight = || serving.router.in_flight();
            self.report.sampled(InFlightSample {
                at_ms: self.now_ms(),
                least: in_flight().min().unwrap_or(0),
                most: in_flight().max().unwrap_or(0),
                queued: serving.engines().iter().map(Engine::queued).sum(),
            });
        }
        self.agenda.after(IN_FLIGHT_EVERY_MS * 1_000, Event::Sample);
    }

    /// A user's conversation is over: it is bound to no worker any more.
    pub(super) fn end_conversation(&mut self, user: u32) {
        let conversation = self.users.conversation(user);
        self.pools.iter_mut().for_each(|of| _ = of.bindings.remove(&conversation));
    }

    /// Name of a user's conversation as the session that a client gives.
    pub(super) fn session(&self, user: u32) -> String {
        format!("{:016x}", self.users.conversation(user))
    }

    /// Which frontend a user talks to.
    pub(super) fn frontend(&self, user: u32) -> u8 {
        self.pools[0].faults.frontend(user)
    }

    /// A new UUID (version 4) for a user's request in a pool; a request that is prefilled elsewhere keeps its id.
    pub(super) fn name_request(&mut self, pool: usize, user: u32) {
        let id = if self.pools[pool].pool.role == Role::Decode {
            self.pools[PREFILL].request_ids[user as usize].clone()
        } else {
            uuid(self.ids.random(), self.ids.random())
        };
        self.pools[pool].request_ids[user as usize] = id;
    }

    /// A request is over in a pool. Returns whether it now is in all.
    pub(super) fn is_over(&mut self, user: u32) -> bool {
        let request = &mut self.requests[user as usize];
        request.open = request.open.saturating_sub(1);
        request.open == 0
    }
}
