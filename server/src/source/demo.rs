//! The simulated cluster: a warm-up as fast as possible with times in the past, then in real time. Messages go through the same
//! queue as a real deployment's, but wait for room instead of being dropped. The stage changes it while it runs.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use radixscope_export::stage::{StageChange, StageReport};
use radixscope_intake::{NatsSubjects, Payload};
use radixscope_model::id::Millis;
use radixscope_model::record::LinkState;
use radixscope_router::RouterMode;
use radixscope_sim::{Channel, Config, Simulation, Topology, WireMessage};

use crate::hub::{HubEnded, SourceHandle};
use crate::shutdown::Shutdown;
use crate::stage::{Driver, Order, simulator};
use crate::time::{now, stand_still};

/// Interval between simulation steps.
const STEP: Duration = Duration::from_millis(50);
/// Simulated time of one step of the warm-up, in milliseconds: bounds the memory of waiting messages.
const WARM_UP_STEP_MS: u64 = 250;
/// Steps that may be queued for the hub.
const STEPS_AHEAD: usize = 4;
/// Where the clock stands still, it does so this long after the warm-up: what waits for more reports of a request is completed by
/// then.
const STANDS_AFTER_MS: u64 = 5_000;
/// Maximum simulated time per step: time during which the machine slept is skipped.
const MAX_STEP_MS: u64 = 5_000;

/// How simulated time passes.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Simulated time before the start, in milliseconds.
    pub warm_up_ms: u64,
    /// Simulated seconds per second. 0: nothing more happens after the warm-up, and the clock stands still, so that what is shown
    /// stays the same.
    pub speed: f64,
}

impl Pace {
    fn stands_still(self) -> bool {
        self.speed == 0.0
    }
}

/// An owned [`WireMessage`].
pub(crate) struct Simulated {
    pub(crate) at_ms: Millis,
    pub(crate) channel: Channel,
    pub(crate) name: Box<str>,
    pub(crate) payload: Bytes,
}

impl Simulated {
    fn of(message: &WireMessage<'_>) -> Self {
        let WireMessage { at_ms, channel, name, payload } = *message;
        Self { at_ms, channel, name: name.into(), payload: Bytes::copy_from_slice(payload) }
    }

    /// As the source of a real deployment delivers it; `None` if it would not.
    fn into_payload(self, subjects: &mut NatsSubjects) -> Option<Payload> {
        let Self { channel, name, payload, .. } = self;
        match channel {
            Channel::Nats => subjects.publication(&name, None, payload),
            Channel::Discovery => {
                Some(Payload::Discovery { key: name.into(), value: Some(payload), lease: None })
            }
            Channel::Deletion => Some(Payload::Discovery { key: name.into(), value: None, lease: None }),
            Channel::Log => Some(Payload::LogLine { log: name.into(), line: payload }),
            Channel::Metrics => Some(Payload::Scrape { process: name.into(), text: payload }),
        }
    }
}

/// Runs the simulation until the hub or the process ends.
pub async fn run(config: Config, pace: Pace, driver: Driver, to: SourceHandle, stopped: Shutdown) {
    let warm_up_s = pace.warm_up_ms / 1_000;
    let detail = format!("simulating the {warm_up_s} s before now: {}", in_text(&config));
    let done = async {
        to.state(LinkState::CatchingUp, detail).await?;
        let mut steps = start(config, pace, Some(driver), stopped);
        let mut subjects = NatsSubjects::default();
        while let Some(step) = steps.recv().await {
            if let Some(detail) = step.now_live {
                to.state(LinkState::Live, detail).await?;
            }
            for message in step.messages {
                let at_ms = message.at_ms;
                if let Some(payload) = message.into_payload(&mut subjects) {
                    to.deliver(at_ms, payload).await?;
                }
            }
        }
        to.state(LinkState::Ended, "the simulation has ended").await
    };
    // The hub ends only with the process.
    let _: Result<(), HubEnded> = done.await;
}

/// What runs now.
fn live_text(config: &Config, speed: f64, is_paused: bool) -> String {
    let speed = match speed {
        0.0 => ", at a standstill".to_owned(),
        1.0 => String::new(),
        _ => format!(", {speed} times as fast"),
    };
    let paused = if is_paused { ", paused" } else { "" };
    format!("simulated traffic{speed}{paused}: {}", in_text(config))
}

fn in_text(config: &Config) -> String {
    let config = &config.set_up();
    let router = match config.router.router_mode {
        RouterMode::Kv => format!("KV-aware routing with {}", config.router),
        RouterMode::RoundRobin => "round-robin routing".to_owned(),
    };
    let Config { workers, blocks_per_worker, block_size_tokens, concurrency, seed, .. } = config;
    let fault = config.fault.map_or_else(String::new, |plan| {
        let when =
            if plan.after_ms > 0 { format!(" after {} s", plan.after_ms / 1_000) } else { String::new() };
        format!(", with the fault {}{when}", plan.fault.name())
    });
    let pools = match config.topology {
        Topology::Aggregated | Topology::AggregatedV0_9 => format!("{workers} workers"),
        Topology::Disaggregated => format!("{workers} prefill workers and {workers} decode workers"),
        Topology::TwoModels => format!("two models with {workers} workers each"),
        Topology::Tiers => format!("{workers} workers with host memory and a device"),
    };
    format!(
        "{}, {pools} of {blocks_per_worker} blocks of {block_size_tokens} tokens, {concurrency} users, {router}, seed \
         {seed}{fault}",
        config.topology.dynamo()
    )
}

/// Messages of one step.
pub(crate) struct Steps {
    pub(crate) messages: Vec<Simulated>,
    /// What runs from now on, in words, where that is new since the warm-up.
    pub(crate) now_live: Option<String>,
}

/// Starts the simulation on its own thread and returns its messages step by step. Without a driver nothing changes it.
pub(crate) fn start(
    config: Config,
    pace: Pace,
    driver: Option<Driver>,
    stopped: Shutdown,
) -> mpsc::Receiver<Steps> {
    let (steps, ahead) = mpsc::channel(STEPS_AHEAD);
    tokio::spawn(async move {
        if pace.stands_still() {
            // However long the warm-up takes on this machine.
            stand_still(now());
        }
        let begin = Millis(now().0.saturating_sub(pace.warm_up_ms));
        let mut simulation = match Simulation::new(config, begin) {
            Ok(simulation) => simulation,
            Err(error) => {
                tracing::error!(%error, "the simulation could not be started");
                return;
            }
        };
        let warmed_up = begin.0 + pace.warm_up_ms;
        let warm = steps.clone();
        // The warm-up is long-running and never yields.
        let ran = tokio::task::spawn_blocking(move || {
            let mut until = begin.0;
            while until < warmed_up {
                until = warmed_up.min(until + WARM_UP_STEP_MS);
                let messages = step(&mut simulation, Millis(until));
                if warm.blocking_send(Steps { messages, now_live: None }).is_err() {
                    break;
                }
            }
            simulation
        });
        if pace.stands_still() {
            stand_still(Millis(warmed_up + STANDS_AFTER_MS));
        }
        if let Ok(simulation) = ran.await {
            let live = Live { simulation, driver, speed: pace.speed, is_paused: false };
            live.run(Millis(warmed_up), steps, stopped).await;
        }
    });
    ahead
}

/// The simulation after the warm-up.
struct Live {
    simulation: Simulation,
    driver: Option<Driver>,
    speed: f64,
    is_paused: bool,
}

impl Live {
    /// Runs from `from` on. Messages have the wall-clock time at which they are sent, which at speed 1 is the simulated time
    /// unless the machine slept.
    async fn run(mut self, from: Millis, steps: mpsc::Sender<Steps>, stopped: Shutdown) {
        let mut tick = tokio::time::interval(STEP);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut simulated_ms, speed) = (from.0 as f64, self.speed);
        let mut last = from;
        let mut now_live = Some(self.to_text());
        self.driver.iter().for_each(Driver::is_ready);
        while !*stopped.borrow() {
            tick.tick().await;
            let at = now();
            let passed_ms = at.since(last).min(MAX_STEP_MS);
            last = at;
            if self.is_paused {
                // The clocks of the simulated processes go on.
                self.simulation.pass_idle(passed_ms);
                simulated_ms += passed_ms as f64;
            } else {
                simulated_ms += passed_ms as f64 * speed;
            }
            let until = Millis(simulated_ms as u64);
            let time_of_day = |simulated: Millis| {
                if speed == 0.0 {
                    return at;
                }
                let ago_ms = until.since(simulated) as f64 / speed;
                Millis(at.0.saturating_sub(ago_ms as u64))
            };
            let mut of_step = step(&mut self.simulation, until);
            if self.take_orders(until, &mut of_step) {
                now_live = Some(self.to_text());
            }
            let of_step = of_step.into_iter();
            let messages = of_step.map(|m| Simulated { at_ms: time_of_day(m.at_ms), ..m }).collect();
            if steps.send(Steps { messages, now_live: now_live.take() }).await.is_err() {
                return;
            }
        }
    }

    /// Makes the changes that wait. Returns whether anything is new.
    fn take_orders(&mut self, at: Millis, messages: &mut Vec<Simulated>) -> bool {
        let Some(mut driver) = self.driver.take() else { return false };
        let mut is_new = false;
        while let Some(order) = driver.next_order() {
            let made = self.make(&order, at, messages);
            is_new |= made.is_ok();
            let (asked, is_paused) = (self.simulation.asked(), self.is_paused);
            driver.answer(
                order,
                made.map(|()| {
                    |report: &mut StageReport| {
                        simulator::set(report, asked);
                        report.paused = is_paused;
                    }
                }),
            );
        }
        self.driver = Some(driver);
        is_new
    }

    fn make(&mut self, order: &Order, at: Millis, messages: &mut Vec<Simulated>) -> Result<(), String> {
        if let StageChange::Paused(is_paused) = order.change {
            self.is_paused = is_paused;
        }
        let Some(change) = simulator::change(&order.change)? else { return Ok(()) };
        let mut out = |message: WireMessage<'_>| messages.push(Simulated::of(&message));
        self.simulation.apply(at, change, &mut out).map_err(|error| error.to_string())
    }

    fn to_text(&self) -> String {
        live_text(self.simulation.asked(), self.speed, self.is_paused)
    }
}

fn step(simulation: &mut Simulation, until: Millis) -> Vec<Simulated> {
    let mut messages = Vec::new();
    simulation.run_until(until, &mut |message| messages.push(Simulated::of(&message)));
    messages
}
