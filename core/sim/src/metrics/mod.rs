//! What the simulated processes answer to a scrape of `/metrics`, from what really happened to requests.
//! Must not know why anything happened, nor how it was served.

mod frontend;
mod histogram;
mod text;
mod worker;

use self::frontend::Frontend;
use self::worker::Worker;
use super::config::Config;
use super::engine::Engine;
use super::serving::Served;
use super::wire::{Channel, Out, WireMessage};
use radixscope_model::id::Millis;

/// Time between two scrapes, in microseconds.
pub(super) const SCRAPE_EVERY_US: u64 = 2_000_000;

/// The counters of all processes.
#[derive(Debug)]
pub(super) struct Metrics {
    frontends: Vec<Frontend>,
    workers: Vec<Worker>,
    text: String,
}

impl Metrics {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            frontends: vec![Frontend::default(); usize::from(config.frontends())],
            workers: vec![Worker::default(); usize::from(config.workers)],
            text: String::new(),
        }
    }

    /// A request came to a frontend.
    pub(super) fn received(&mut self, frontend: u8) {
        self.frontends[usize::from(frontend)].in_flight += 1;
    }

    /// A request was sent to a worker.
    pub(super) fn routed(&mut self, worker: u16) {
        self.workers[usize::from(worker)].requests += 1;
    }

    /// The first token of a request came.
    pub(super) fn first_token(
        &mut self,
        frontend: u8,
        worker: u16,
        ttft_us: u64,
        (isl_tokens, cached_tokens): (u32, u32),
    ) {
        let at = &mut self.frontends[usize::from(frontend)];
        at.ttft.observe(ttft_us, 1);
        at.input.observe(isl_tokens.into(), 1);
        at.cached.observe(cached_tokens.into(), 1);
        at.output_tokens += 1;
        let engine = &mut self.workers[usize::from(worker)];
        engine.queried_tokens += u64::from(isl_tokens);
        engine.hit_tokens += u64::from(cached_tokens);
    }

    /// A step of an engine ended and gave requests of `frontends` another token each.
    pub(super) fn stepped(&mut self, worker: u16, now_us: u64, frontends: impl Iterator<Item = u8>) {
        let gap_us = self.gap_us(worker, now_us);
        for frontend in frontends {
            self.token(frontend, gap_us);
        }
        self.workers[usize::from(worker)].step_ended_us = now_us;
    }

    /// A request is complete. Its last token came with the step that ends now.
    pub(super) fn finished(&mut self, frontend: u8, now_us: u64, served: &Served) {
        if served.job.osl_tokens > 1 {
            self.token(frontend, self.gap_us(served.worker, now_us));
        }
        let at = &mut self.frontends[usize::from(frontend)];
        at.in_flight = at.in_flight.saturating_sub(1);
        at.succeeded += 1;
        at.duration.observe(served.e2e_us, 1);
        at.output.observe(served.job.osl_tokens.into(), 1);
        self.workers[usize::from(served.worker)].duration.observe(served.on_worker_us, 1);
    }

    /// A request failed.
    pub(super) fn failed(&mut self, frontend: u8) {
        let at = &mut self.frontends[usize::from(frontend)];
        at.in_flight = at.in_flight.saturating_sub(1);
        at.failed += 1;
    }

    /// The frontends begin anew, with so many requests on their way in.
    pub(super) fn restarted(&mut self, arriving: u64) {
        self.frontends.fill(Frontend { in_flight: arriving, ..Frontend::default() });
    }

    fn gap_us(&self, worker: u16, now_us: u64) -> u64 {
        now_us - self.workers[usize::from(worker)].step_ended_us
    }

    fn token(&mut self, frontend: u8, gap_us: u64) {
        let at = &mut self.frontends[usize::from(frontend)];
        at.itl.observe(gap_us, 1);
        at.output_tokens += 1;
    }

    /// Scrapes every process that lives.
    pub(super) fn scrape<'e>(
        &mut self,
        config: &Config,
        (at_ms, now_us): (Millis, u64),
        engines: impl Iterator<Item = (u16, &'e Engine)>,
        out: Out<'_>,
    ) {
        let Self { frontends, workers, text } = self;
        let mut say = |name: &str, text: &str| {
            out(WireMessage { at_ms, channel: Channel::Metrics, name, payload: text.as_bytes() });
        };
        for (at, frontend) in (0..).zip(&*frontends) {
            text.clear();
            frontend.write(config, text);
            say(&frontend_name(at), text);
        }
        for (at, engine) in engines {
            text.clear();
            workers[usize::from(at)].write(config, engine, now_us, text);
            say(&worker_name(at), text);
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
