//! The response of the simulated processes to a scrape of `/metrics`, from what really happened to requests.
//! Must not know why anything happened, nor how it was served.

mod frontend;
mod frontend_1_6;
mod histogram;
mod routed;
mod text;
mod worker;

use self::frontend::Frontend;
use self::routed::Routed;
use self::worker::Worker;
use super::fault::Delivery;
use super::processes::Processes;
use super::router::{Choice, Router};
use super::serving::{Served, Serving};
use super::topology::{Pool, Release};
use super::wire::{Channel, WireMessage, WireOut};
use radixscope_model::id::Millis;

/// Time between two scrapes, in microseconds.
pub(super) const SCRAPE_EVERY_US: u64 = 2_000_000;

/// The counters of all processes.
#[derive(Debug)]
pub(super) struct Metrics {
    release: Release,
    /// By frontend and model.
    frontends: Vec<Vec<Frontend>>,
    /// What routers count of each pool, by frontend and pool (1.6).
    routed: Vec<Vec<Routed>>,
    /// Model of each pool.
    model_of: Vec<usize>,
    /// Over all pools.
    workers: Vec<Worker>,
    text: String,
}

impl Metrics {
    pub(super) fn new(pools: &[Pool]) -> Self {
        let model_of: Vec<usize> = pools.iter().map(|pool| pool.model_at).collect();
        let models = model_of.iter().max().map_or(0, |last| last + 1);
        let (frontends, workers, release) = pools.first().map_or((0, 0, Release::V0_9), |pool| {
            (usize::from(pool.config.frontends()), usize::from(pool.workers_of_all), pool.release())
        });
        let (frontend, worker) = match release {
            Release::V0_9 => (Frontend::of_0_9(), Worker::default()),
            Release::V1_6 => (Frontend::of_1_6(), Worker::of_1_6()),
        };
        Self {
            release,
            frontends: vec![vec![frontend; models]; frontends],
            routed: vec![vec![Routed::default(); pools.len()]; frontends],
            model_of,
            workers: vec![worker; workers],
            text: String::new(),
        }
    }

    /// A request came to a frontend, for every model.
    pub(super) fn received(&mut self, frontend: u8) {
        self.frontends[usize::from(frontend)].iter_mut().for_each(|of_model| of_model.in_flight += 1);
    }

    /// A request was sent to a worker.
    pub(super) fn routed(&mut self, worker: u16) {
        self.workers[usize::from(worker)].requests += 1;
    }

    /// A router chose by cost.
    pub(super) fn decided(
        &mut self,
        frontend: u8,
        pool: usize,
        isl_tokens: u32,
        choice: &Choice,
        router: &Router,
    ) {
        self.routed[usize::from(frontend)][pool].decided(isl_tokens, choice, router);
    }

    /// A KV event of a pool was published; routers apply what reaches them.
    pub(super) fn event(&mut self, pool: usize, is_stored: bool, delivery: Delivery) {
        if delivery.reaches_router() {
            self.routed.iter_mut().for_each(|of| of[pool].event(is_stored));
        }
    }

    /// A stored event could not be applied.
    pub(super) fn rejected(&mut self, pool: usize) {
        self.routed.iter_mut().for_each(|of| of[pool].rejected());
    }

    /// The prompt of a request was computed, as far as it was not cached.
    pub(super) fn prefilled(&mut self, worker: u16, (isl_tokens, cached_tokens): (u32, u32)) {
        let engine = &mut self.workers[usize::from(worker)];
        engine.queried_tokens += u64::from(isl_tokens);
        engine.hit_tokens += u64::from(cached_tokens);
    }

    /// The first token of a request came.
    pub(super) fn first_token(
        &mut self,
        frontend: u8,
        pool: usize,
        ttft_us: u64,
        (isl_tokens, cached_tokens): (u32, u32),
    ) {
        let at = self.of(frontend, pool);
        at.ttft.observe(ttft_us, 1);
        at.input.observe(isl_tokens.into(), 1);
        at.cached.observe(cached_tokens.into(), 1);
        at.output_tokens += 1;
    }

    /// A step of an engine ended and gave requests of `frontends` another token each.
    pub(super) fn stepped(
        &mut self,
        worker: u16,
        now_us: u64,
        pool: usize,
        frontends: impl Iterator<Item = u8>,
    ) {
        let gap_us = self.gap_us(worker, now_us);
        for frontend in frontends {
            self.token(frontend, pool, gap_us);
        }
        self.workers[usize::from(worker)].step_ended_us = now_us;
    }

    /// A worker did its part of a request.
    pub(super) fn served(&mut self, worker: u16, served: &Served) {
        self.workers[usize::from(worker)].duration.observe(served.on_worker_us, 1);
    }

    /// A request is complete. Its last token came with the step that ends now.
    pub(super) fn finished(
        &mut self,
        frontend: u8,
        pool: usize,
        (worker, now_us): (u16, u64),
        osl_tokens: u32,
        e2e_us: u64,
    ) {
        if osl_tokens > 1 {
            self.token(frontend, pool, self.gap_us(worker, now_us));
        }
        let at = self.of(frontend, pool);
        at.in_flight = at.in_flight.saturating_sub(1);
        at.succeeded += 1;
        at.duration.observe(e2e_us, 1);
        at.output.observe(osl_tokens.into(), 1);
    }

    /// A request failed.
    pub(super) fn failed(&mut self, frontend: u8, pool: usize) {
        let at = self.of(frontend, pool);
        at.in_flight = at.in_flight.saturating_sub(1);
        at.failed += 1;
    }

    /// The frontends begin anew, with so many requests on their way in.
    pub(super) fn restarted(&mut self, arriving: u64) {
        for of_model in self.frontends.iter_mut().flatten() {
            *of_model = Frontend { in_flight: arriving, ..of_model.anew() };
        }
        self.routed.iter_mut().flatten().for_each(|of_pool| *of_pool = Routed::default());
    }

    /// A worker begins anew.
    pub(super) fn worker_restarted(&mut self, worker: u16) {
        self.workers[usize::from(worker)] = match self.release {
            Release::V0_9 => Worker::default(),
            Release::V1_6 => Worker::of_1_6(),
        };
    }

    fn of(&mut self, frontend: u8, pool: usize) -> &mut Frontend {
        &mut self.frontends[usize::from(frontend)][self.model_of[pool]]
    }

    fn gap_us(&self, worker: u16, now_us: u64) -> u64 {
        now_us - self.workers[usize::from(worker)].step_ended_us
    }

    fn token(&mut self, frontend: u8, pool: usize, gap_us: u64) {
        let at = self.of(frontend, pool);
        at.itl.observe(gap_us, 1);
        at.output_tokens += 1;
    }

    /// Scrapes every process that lives.
    pub(super) fn scrape(
        &mut self,
        pools: &[Processes],
        serving: &[Serving],
        (at_ms, now_us): (Millis, u64),
        out: WireOut<'_>,
    ) {
        let Self { release, frontends, routed, workers, text, .. } = self;
        let mut say = |name: &str, text: &str| {
            out(WireMessage { at_ms, channel: Channel::Metrics, name, payload: text.as_bytes() });
        };
        for (at, models) in (0..).zip(&*frontends) {
            text.clear();
            match release {
                Release::V0_9 => pools.iter().zip(models).for_each(|(of, model)| model.write(&of.pool, text)),
                Release::V1_6 => {
                    let routed = &routed[usize::from(at)];
                    frontend_1_6::write(
                        at,
                        models,
                        &frontend_1_6::seen(pools, serving, routed),
                        now_us,
                        text,
                    );
                }
            }
            say(&frontend_name(at), text);
        }
        for (of, serving) in pools.iter().zip(serving) {
            for worker in (0..of.pool.config.workers).filter(|&worker| serving.lives(worker)) {
                text.clear();
                let at = of.pool.worker(worker);
                let (counts, id) = (&workers[usize::from(at)], of.wire.worker_id(worker));
                counts.write(&of.pool, id, serving.engine(worker), now_us, text);
                say(&worker_name(at), text);
            }
        }
    }
}

/// What a frontend's process is called.
pub(super) fn frontend_name(frontend: u8) -> String {
    if frontend == 0 { "frontend".to_owned() } else { format!("frontend-{}", u16::from(frontend) + 1) }
}

/// What a worker's process is called.
pub(super) fn worker_name(worker: u16) -> String {
    format!("worker-{}", u32::from(worker) + 1)
}
