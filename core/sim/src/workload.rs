//! The workload on the simulated cluster, event by event: users who send, publishers that report, an observer who measures.
//! Must not know how requests are served.

use std::fmt::Write as _;

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::agenda::Agenda;
use super::config::Config;
use super::engine::{Engine, Job, Texts};
use super::fault::{Delivery, Failure, Fault, Faults, HashSeeds, Steer};
use super::fault_events;
use super::log::{DecisionInput, Log};
use super::metrics::{Metrics, SCRAPE_EVERY_US};
use super::report::{IN_FLIGHT_EVERY_MS, InFlightSample, Report, RequestRecord};
use super::router::{Choice, Router};
use super::serving::{FirstToken, Rejected, Served, Serving, Surroundings};
use super::stream;
use super::timing;
use super::users::Users;
use super::wire::{ChainHashes, Out, Step, Wire};
use radixscope_model::id::{BlockHash, Millis};
use radixscope_model::record::Block;

/// Users arrive one after the other over this long at the start, in microseconds.
const RAMP_US: u64 = 20_000_000;
/// Users of a wave do not click in the same millisecond: they spread over this long, in microseconds.
const WAVE_JITTER_US: u64 = 400_000;
/// Least time after a failure until a user tries again, in microseconds.
const RETRY_US: u64 = 500_000;
/// Over so long they spread, in microseconds.
const RETRY_JITTER_US: u64 = 3_000_000;
/// Least time between two load reports of a worker, in microseconds.
const LOAD_EVERY_US: u64 = 100_000;

/// What happens next.
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
    /// Frontends and workers are scraped.
    Scrape,
    /// The fault begins.
    Strikes,
    /// What began with the fault settles.
    Settles,
}

/// A worker's last load report.
#[derive(Clone, Copy, Debug, Default)]
struct LoadReport {
    blocks: u64,
    /// When the next may follow.
    next_us: u64,
    due: bool,
}

/// All that surrounds router and engines.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) config: Config,
    start: Millis,
    agenda: Agenda<Event>,
    users: Users,
    loads: Vec<LoadReport>,
    pub(super) wire: Wire,
    pub(super) log: Log,
    pub(super) faults: Faults,
    /// Who stored each block first, where engines hash each in its own way.
    pub(super) seeds: Option<HashSeeds>,
    metrics: Option<Metrics>,
    /// Requests that a frontend has and has not routed yet.
    arriving: u32,
    report: Report,
    /// The router's id of each user's request.
    request_ids: Vec<String>,
    jitter: Pcg64Mcg,
    ids: Pcg64Mcg,
}

/// The same with a receiver of its messages.
pub(super) struct Observed<'a, 'o> {
    pub(super) driver: &'a mut Driver,
    pub(super) out: Out<'o>,
}

impl Driver {
    /// `config` is valid.
    pub(super) fn new(config: Config, start: Millis) -> Self {
        let mut driver = Self {
            users: Users::new(&config),
            loads: vec![LoadReport::default(); usize::from(config.workers)],
            wire: Wire::new(&config),
            log: Log::new(&config),
            faults: Faults::new(&config),
            seeds: config.has(Fault::HashSeed).then(HashSeeds::default),
            metrics: config.metrics.then(|| Metrics::new(&config)),
            arriving: 0,
            report: Report::new(config.workers),
            request_ids: vec![String::new(); config.concurrency as usize],
            jitter: stream(config.seed, 0x6a69_7474_6572),
            ids: stream(config.seed, 0x7575_6964),
            agenda: Agenda::new(),
            start,
            config,
        };
        driver.agenda.after(0, Event::Registration);
        for user in 0..driver.users.len() {
            let at = RAMP_US * u64::from(user) / u64::from(driver.users.len());
            driver.agenda.after(at, Event::Arrival(user));
        }
        driver.agenda.after(0, Event::Wave);
        driver.agenda.after(0, Event::Sample);
        if driver.metrics.is_some() {
            driver.agenda.after(SCRAPE_EVERY_US, Event::Scrape);
        }
        if let Some(strikes_us) = driver.faults.strikes_us() {
            driver.agenda.after(strikes_us, Event::Strikes);
        }
        driver
    }

    pub(super) fn report(&self) -> &Report {
        &self.report
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    pub(super) fn wire(&self) -> &Wire {
        &self.wire
    }

    /// Lets everything up to and including `until` happen.
    pub(super) fn run_until(&mut self, until: Millis, serving: &mut Serving, out: Out<'_>) {
        if until < self.start {
            return;
        }
        // The last microsecond of that millisecond.
        let until_us = until.since(self.start) * 1_000 + 999;
        while let Some(event) = self.agenda.next(until_us) {
            self.happen(event, serving, out);
        }
    }

    fn happen(&mut self, event: Event, serving: &mut Serving, out: Out<'_>) {
        match event {
            Event::Registration => self.wire.model_cards(&self.config, self.now_ms(), out),
            Event::Arrival(user) => self.users.wait(user),
            Event::Wave => self.wave(),
            Event::Send(user) => {
                self.arriving += 1;
                let frontend = self.faults.frontend(user);
                self.metrics.iter_mut().for_each(|metrics| metrics.received(frontend));
                let frontend_us = timing::frontend_us(self.users.job(user).isl_tokens);
                self.agenda.after(frontend_us, Event::Route(user));
            }
            Event::Route(user) => {
                self.arriving -= 1;
                serving.route(user, &mut Observed { driver: self, out });
            }
            // Nothing comes of a step that a killed engine had begun.
            Event::StepEnd(worker) | Event::LoadDue(worker) if !serving.lives(worker) => {}
            Event::StepEnd(worker) => {
                serving.end_step(worker, &mut Observed { driver: self, out });
                self.report_load(worker, serving.engine(worker), out);
            }
            Event::LoadDue(worker) => {
                self.loads[usize::from(worker)].due = false;
                self.report_load(worker, serving.engine(worker), out);
            }
            Event::Sample => self.sample(serving),
            Event::Scrape => self.scrape(serving, out),
            Event::Strikes => {
                let settles_us = fault_events::strike(&mut Observed { driver: self, out }, serving);
                settles_us.into_iter().for_each(|us| self.agenda.after(us, Event::Settles));
            }
            Event::Settles => fault_events::settle(&mut Observed { driver: self, out }, serving),
        }
    }

    fn scrape(&mut self, serving: &Serving, out: Out<'_>) {
        let at = (self.now_ms(), self.agenda.now_us());
        let Some(metrics) = &mut self.metrics else { return };
        let living = (0..self.config.workers).filter(|&worker| serving.lives(worker));
        metrics.scrape(&self.config, at, living.map(|worker| (worker, serving.engine(worker))), out);
        self.agenda.after(SCRAPE_EVERY_US, Event::Scrape);
    }

    /// The frontends begin anew: ids, numbers and counters.
    pub(super) fn restart_frontends(&mut self) {
        self.wire.restart_routers();
        self.metrics.iter_mut().for_each(|metrics| metrics.restarted(self.arriving.into()));
    }

    /// Now, in microseconds of Unix time.
    pub(super) fn now_unix_us(&self) -> u64 {
        self.start.0 * 1_000 + self.agenda.now_us()
    }

    pub(super) fn now_ms(&self) -> Millis {
        self.at_ms(self.agenda.now_us())
    }

    fn at_ms(&self, us: u64) -> Millis {
        Millis(self.start.0 + us / 1_000)
    }

    fn wave(&mut self) {
        let Self { users, agenda, jitter, .. } = self;
        let next_ms =
            users.wave(|user| agenda.after(jitter.random_range(0..WAVE_JITTER_US), Event::Send(user)));
        agenda.after(u64::from(next_ms) * 1_000, Event::Wave);
    }

    /// A worker's own load: on change, but not too often.
    fn report_load(&mut self, worker: u16, engine: &Engine, out: Out<'_>) {
        let blocks = u64::from(engine.cache().in_use());
        let now_us = self.agenda.now_us();
        let load = &mut self.loads[usize::from(worker)];
        if blocks == load.blocks || load.due {
            return;
        }
        if now_us < load.next_us {
            load.due = true;
            self.agenda.after(load.next_us - now_us, Event::LoadDue(worker));
            return;
        }
        *load = LoadReport { blocks, next_us: now_us + LOAD_EVERY_US, due: false };
        self.wire.worker_load(self.now_ms(), worker, blocks, out);
    }

    fn sample(&mut self, serving: &Serving) {
        let in_flight = || serving.router.in_flight();
        self.report.sampled(InFlightSample {
            at_ms: self.now_ms(),
            least: in_flight().min().unwrap_or(0),
            most: in_flight().max().unwrap_or(0),
            queued: serving.engines().iter().map(Engine::queued).sum(),
        });
        self.agenda.after(IN_FLIGHT_EVERY_MS * 1_000, Event::Sample);
    }

    /// A new UUID (version 4) for a user's request.
    fn name_request(&mut self, user: u32) {
        let (high, low): (u64, u64) = (self.ids.random(), self.ids.random());
        let id = &mut self.request_ids[user as usize];
        id.clear();
        // Writing to a String cannot fail.
        let _ = write!(
            id,
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xfff,
            low >> 48 & 0x3fff | 0x8000,
            low & 0xffff_ffff_ffff
        );
    }
}

impl Observed<'_, '_> {
    /// What the router thinks of a worker: replicas of the router get the cause first.
    fn router_load(&mut self, router: &Router, worker: u16, user: u32) {
        if router.is_kv() {
            let frontend = self.frontend(user);
            let at_ms = self.driver.now_ms();
            self.driver.wire.router_load(at_ms, frontend, worker, router.load(frontend, worker), self.out);
        }
    }

    fn sequence(&mut self, router: &Router, worker: u16, user: u32, step: Step<'_>) {
        let Driver { config, wire, request_ids, agenda, start, .. } = &mut *self.driver;
        if config.replica_sync && router.is_kv() {
            let at_ms = Millis(start.0 + agenda.now_us() / 1_000);
            wire.sequence(at_ms, worker, &request_ids[user as usize], step, self.out);
        }
    }
}

impl Texts for Observed<'_, '_> {
    fn blocks(&self, request: u32) -> &[Block] {
        self.driver.users.blocks(request)
    }
}

/// A user has one request at a time, known by the user's number.
impl Surroundings for Observed<'_, '_> {
    fn now_us(&self) -> u64 {
        self.driver.agenda.now_us()
    }

    fn job(&self, user: u32) -> Job {
        self.driver.users.job(user)
    }

    fn step_begun(&mut self, worker: u16, duration_us: u64) {
        self.driver.agenda.after(duration_us, Event::StepEnd(worker));
    }

    fn routed(&mut self, router: &Router, user: u32, choice: Choice) {
        self.driver.report.routed_total += 1;
        self.driver.metrics.iter_mut().for_each(|metrics| metrics.routed(choice.worker));
        if !router.is_kv() {
            return;
        }
        self.driver.name_request(user);
        let (at_ms, at_us, frontend) = (self.driver.now_ms(), self.driver.now_unix_us(), self.frontend(user));
        let Choice { worker, overlap_blocks } = choice;
        let Driver { config, users, wire, log, report, request_ids, .. } = &mut *self.driver;
        let isl_tokens = users.job(user).isl_tokens;
        let prompt = &users.routed_blocks(user)[..(isl_tokens / config.block_size_tokens) as usize];
        let candidates = router.candidates();
        report.decided(|decision| {
            decision.at_ms = at_ms;
            decision.worker = worker;
            decision.isl_tokens = isl_tokens;
            decision.prompt.extend(prompt.iter().map(|b| b.block_hash));
            decision.candidates.extend_from_slice(candidates);
        });
        let decided = DecisionInput { worker, workers: router.workers(), candidates };
        log.decided(frontend, at_us, &decided, |worker| wire.worker_id(worker), self.out);
        let isl_blocks = isl_tokens.div_ceil(config.block_size_tokens);
        wire.hit_rate(at_ms, frontend, worker, isl_blocks, overlap_blocks, self.out);
        if config.replica_sync {
            let added = Step::AddRequest {
                token_sequence: Some(ChainHashes(prompt)),
                isl: isl_tokens,
                overlap: overlap_blocks,
                expected_output_tokens: None,
            };
            wire.sequence(at_ms, worker, &request_ids[user as usize], added, self.out);
        }
        self.router_load(router, worker, user);
    }

    fn prefilled(&mut self, router: &Router, user: u32, first: &FirstToken) {
        let FirstToken { worker, isl_tokens, cached_tokens, ttft_us } = *first;
        let frontend = self.frontend(user);
        if let Some(metrics) = &mut self.driver.metrics {
            metrics.first_token(frontend, worker, ttft_us, (isl_tokens, cached_tokens));
        }
        self.sequence(router, worker, user, Step::MarkPrefillCompleted);
        self.router_load(router, worker, user);
    }

    fn stored(&mut self, worker: u16, user: u32, from: u32, to: u32) -> Delivery {
        let (at_ms, now_us) = (self.driver.now_ms(), self.now_us());
        let Driver { users, wire, report, faults, .. } = &mut *self.driver;
        let text = users.blocks(user);
        let parent = from.checked_sub(1).map(|at| text[at as usize].block_hash);
        let blocks = &text[from as usize..to as usize];
        report.stored_blocks_total[usize::from(worker)] += blocks.len() as u64;
        let delivery = faults.stored(now_us, worker, blocks.len());
        wire.stored(at_ms, worker, (parent, blocks), delivery, self.out);
        fault_events::stored(self, worker, (user, from as usize..to as usize), delivery);
        delivery
    }

    fn evicted(&mut self, worker: u16, hash: BlockHash) -> Delivery {
        self.driver.report.evicted_blocks_total[usize::from(worker)] += 1;
        let (at_ms, now_us) = (self.driver.now_ms(), self.now_us());
        let delivery = self.driver.faults.removed(now_us, worker);
        self.driver.wire.removed(at_ms, worker, hash, delivery, self.out);
        fault_events::removed(self, worker, hash, delivery);
        delivery
    }

    fn rejected(&mut self, worker: u16, rejected: Rejected) {
        fault_events::rejected(self, worker, rejected);
    }

    fn stepped(&mut self, worker: u16, engine: &Engine) {
        let Driver { metrics, faults, agenda, .. } = &mut *self.driver;
        if let Some(metrics) = metrics {
            metrics.stepped(worker, agenda.now_us(), engine.continued().map(|user| faults.frontend(user)));
        }
    }

    fn failed(&mut self, router: &Router, worker: u16, user: u32, failure: Failure) {
        self.sequence(router, worker, user, Step::Free);
        self.router_load(router, worker, user);
        let frontend = self.frontend(user);
        let driver = &mut *self.driver;
        driver.report.failed_total += 1;
        driver.metrics.iter_mut().for_each(|metrics| metrics.failed(frontend));
        // Not all of them try again at once.
        let again_us = RETRY_US + driver.jitter.random_range(0..RETRY_JITTER_US);
        driver.agenda.after(again_us, Event::Arrival(user));
        fault_events::failed(self, failure);
    }

    fn routed_blocks(&self, user: u32) -> &[Block] {
        self.driver.users.routed_blocks(user)
    }

    fn frontend(&self, user: u32) -> u8 {
        self.driver.faults.frontend(user)
    }

    fn steer(&self, user: u32) -> Steer {
        self.driver.faults.steer(self.now_us(), self.driver.users.conversation(user))
    }

    fn finished(&mut self, router: &Router, user: u32, served: &Served) {
        self.sequence(router, served.worker, user, Step::Free);
        self.router_load(router, served.worker, user);
        let (frontend, now_us) = (self.frontend(user), self.now_us());
        self.driver.metrics.iter_mut().for_each(|metrics| metrics.finished(frontend, now_us, served));
        let back_us = timing::FIRST_TOKEN_BACK_US;
        let driver = &mut *self.driver;
        let sent_us = driver.agenda.now_us() + back_us - served.e2e_us;
        driver.report.finished(RequestRecord {
            sent_at_ms: driver.at_ms(sent_us),
            finished_at_ms: driver.now_ms(),
            worker: served.worker,
            isl_tokens: served.job.isl_tokens,
            osl_tokens: served.job.osl_tokens,
            cached_tokens: served.cached_tokens,
            ttft_us: served.ttft_us,
            queued_us: served.queued_us,
            e2e_us: served.e2e_us,
        });
        match driver.users.answered(user) {
            Some(think_ms) => {
                driver.agenda.after(back_us + u64::from(think_ms) * 1_000, Event::Send(user));
            }
            None => driver.agenda.after(back_us, Event::Arrival(user)),
        }
    }
}
