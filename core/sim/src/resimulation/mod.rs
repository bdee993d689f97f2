//! Re-simulation: recorded arrivals once more, at their own times, through another fleet or another router.
//!
//! The engines, the router and the timing are those of the simulation; only the requests come from a recording. So
//! caches and loads react to every choice, which a replay of fixed costs cannot show. The assumptions are listed by
//! [`ResimulationSettings::assumptions`] and belongs beside every figure.

mod outcome;
mod prompts;
mod settings;

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::config::ConfigError;
use super::engine::{Engine, Job, RequestTexts};
use super::event_queue::EventQueue;
use super::router::{Choice, Router};
use super::serving::{Served, Serving, ServingContext};
use super::stream;
use radixscope_model::id::Millis;
use radixscope_model::record::Block;

use self::outcome::Tally;
pub use self::outcome::{InFlightGap, ServedTimes, SimulatedOutcome};
use self::prompts::Prompts;
pub use self::settings::{ResimulationSettings, WARM_UP_PERCENT};
pub use super::report::Percentiles;
pub use super::timing::Timing;

/// Most arrivals of one re-simulation.
pub const MAX_ARRIVALS: usize = 100_000;
/// Most tokens of prompt and output together; a request that claims more is refused.
pub const MAX_REQUEST_TOKENS: u32 = 4 << 20;
/// Longest time from the first arrival to the last, in milliseconds: a week.
pub const MAX_SPAN_MS: u64 = 7 * 24 * 3_600_000;
/// Events between two calls for progress.
const PROGRESS_EVERY: u64 = 4_096;

/// A recorded request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival<'a> {
    /// When it was routed.
    pub at_ms: Millis,
    /// Prompt tokens.
    pub isl_tokens: u32,
    /// Output tokens, if recorded.
    pub osl_tokens: Option<u32>,
    /// Chain hashes of the prompt's full blocks, of [`ResimulationSettings::block_size_tokens`] each. Blocks that are missing
    /// count as shared with no other prompt.
    pub blocks: &'a [u64],
}

/// How far a re-simulation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Progress {
    /// Arrivals that came.
    pub arrived: usize,
    /// Of these, requests served or refused.
    pub done: usize,
    /// All arrivals.
    pub arrivals: usize,
}

/// Why there is no outcome.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum ResimulationError {
    /// Nothing can be served like that.
    #[error(transparent)]
    Settings(#[from] ConfigError),
    /// An option of the settings that no simulation has.
    #[error("{name} is {value}; it must be between {least} and {most}")]
    Option {
        /// Which.
        name: &'static str,
        /// The value given.
        value: u32,
        /// The lowest value that makes sense.
        least: u32,
        /// The highest.
        most: u32,
    },
    /// No or too many arrivals.
    #[error("{0} arrivals; there must be between 1 and {MAX_ARRIVALS}")]
    Arrivals(usize),
    /// An arrival before the one before it.
    #[error("arrival {0} is earlier than the one before it")]
    Order(usize),
    /// Too long a time.
    #[error("the arrivals span {0} ms; at most {MAX_SPAN_MS} are simulated")]
    Span(u64),
    /// The caller did not want to go on.
    #[error("cancelled")]
    Cancelled,
}

/// What happens next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    /// The next request arrives.
    Arrival,
    /// A worker's engine ends a step.
    StepEnd(u16),
    /// The load is sampled.
    Sample,
}

/// Runs `arrivals`, which are in order of time, through the fleet of `settings`. `progress` is called now and then
/// whether to go on.
///
/// The same arrivals and settings give the same outcome, at temperature 0 on every machine.
///
/// # Errors
/// What in the arrivals or settings cannot be simulated, or that `progress` broke off.
pub fn run<'a>(
    arrivals: impl IntoIterator<Item = Arrival<'a>>,
    settings: &ResimulationSettings,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<SimulatedOutcome, ResimulationError> {
    settings.validate()?;
    let arrivals: Vec<Arrival<'a>> = arrivals.into_iter().take(MAX_ARRIVALS + 1).collect();
    let (first, last) = check(&arrivals)?;
    let count = arrivals.len();
    let warm_up = count * settings.warm_up_percent as usize / 100;
    let span_ms = last.since(first);
    let mut tally = Tally::new(settings, warm_up, count, span_ms);
    tally.counted_ms(last.since(arrivals[warm_up].at_ms));
    let mut scene = RecordedTraffic {
        tally,
        prompts: Prompts::new(arrivals, settings),
        agenda: EventQueue::new(),
        next: 0,
        done: 0,
        first,
    };
    let mut serving = Serving::new(&settings.fleet(), count, stream(settings.seed, 0x726f_7574_6572));
    scene.agenda.after(0, Event::Arrival);
    let mut events: u64 = 0;
    while let Some(event) = scene.agenda.next(u64::MAX) {
        if events.is_multiple_of(PROGRESS_EVERY) && progress(scene.progress()).is_break() {
            return Err(ResimulationError::Cancelled);
        }
        events += 1;
        scene.happen(event, &mut serving);
    }
    Ok(scene.tally.outcome())
}

/// Times of the first and the last arrival.
fn check(arrivals: &[Arrival<'_>]) -> Result<(Millis, Millis), ResimulationError> {
    let (Some(first), Some(last), ..=MAX_ARRIVALS) = (arrivals.first(), arrivals.last(), arrivals.len())
    else {
        return Err(ResimulationError::Arrivals(arrivals.len()));
    };
    if let Some(at) = arrivals.windows(2).position(|two| two[1].at_ms < two[0].at_ms) {
        return Err(ResimulationError::Order(at + 1));
    }
    let span_ms = last.at_ms.since(first.at_ms);
    if span_ms > MAX_SPAN_MS {
        return Err(ResimulationError::Span(span_ms));
    }
    Ok((first.at_ms, last.at_ms))
}

/// The recording as the surroundings of router and engines.
struct RecordedTraffic<'a> {
    prompts: Prompts<'a>,
    agenda: EventQueue<Event>,
    tally: Tally,
    /// The next arrival.
    next: usize,
    /// Requests served or refused.
    done: usize,
    first: Millis,
}

impl RecordedTraffic<'_> {
    fn progress(&self) -> Progress {
        Progress { arrived: self.next, done: self.done, arrivals: self.prompts.len() }
    }

    fn happen(&mut self, event: Event, serving: &mut Serving) {
        match event {
            Event::Arrival => self.arrive(serving),
            Event::StepEnd(worker) => serving.end_step(worker, self),
            Event::Sample => {
                self.tally.sampled(serving.router.in_flight());
                if self.next < self.prompts.len() {
                    self.agenda.after(self.tally.sample_every_us(), Event::Sample);
                }
            }
        }
    }

    fn arrive(&mut self, serving: &mut Serving) {
        let request = self.next;
        self.next += 1;
        if request == self.tally.warm_up() {
            self.agenda.after(0, Event::Sample);
        }
        if let Some(next) = self.prompts.arrival(self.next) {
            let at_us = next.at_ms.since(self.first) * 1_000;
            self.agenda.after(at_us - self.agenda.now_us(), Event::Arrival);
        }
        if self.prompts.begin(request) {
            serving.route(request as u32, self);
        } else {
            self.done += 1;
            self.tally.refused();
        }
    }
}

impl RequestTexts for RecordedTraffic<'_> {
    fn blocks(&self, request: u32) -> &[Block] {
        self.prompts.blocks(request)
    }
}

impl ServingContext for RecordedTraffic<'_> {
    fn now_us(&self) -> u64 {
        self.agenda.now_us()
    }

    fn job(&self, request: u32) -> Job {
        self.prompts.job(request)
    }

    fn step_begun(&mut self, worker: u16, duration_us: u64) {
        self.agenda.after(duration_us, Event::StepEnd(worker));
    }

    fn routed(
        &mut self,
        _router: &Router,
        _engines: &[Engine],
        request: u32,
        choice: Choice,
        _prefill_tokens: u64,
    ) {
        self.tally.routed(request as usize, self.prompts.job(request).isl_tokens, choice);
    }

    fn finished(&mut self, _router: &Router, request: u32, served: &Served) {
        self.done += 1;
        self.tally.finished(request as usize, served);
        self.prompts.end(request);
    }
}
