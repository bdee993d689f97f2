//! A simulated Dynamo 0.9 cluster that emits Dynamo's own wire bytes, logs and metrics: workers with LRU block caches, a
//! KV-aware or round-robin router, and multi-turn users. On demand something is wrong in it ([`Fault`]).
//!
//! A discrete-event simulation, pure and deterministic by seed: no clock, no I/O, no threads. What it emits goes
//! through the same decoders as NATS messages, so it must not know them, nor the state that is folded from them.
#![forbid(unsafe_code)]

mod agenda;
mod cache;
mod config;
mod engine;
mod fault;
mod fault_events;
mod holders;
mod log;
mod metrics;
mod predicted;
mod report;
pub mod resimulation;
mod router;
mod serving;
mod shape;
mod timing;
mod tokens;
mod users;
mod wire;
mod workload;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

pub use self::config::{
    Config, ConfigError, EventLine, MAX_CONCURRENCY, MAX_WORKERS, REFERENCE_BLOCKS_PER_WORKER, Workload,
};
pub use self::fault::{Fault, FaultPlan};
pub use self::report::{
    DECISIONS_KEPT, DecisionRecord, IN_FLIGHT_EVERY_MS, InFlightSample, Percentiles, REQUESTS_KEPT, Report,
    RequestRecord, SPREADS_KEPT, Summary,
};
pub use self::router::SimulatedCandidate;
use self::serving::Serving;
pub use self::tokens::token_id;
pub use self::wire::{Channel, WireMessage};
use self::workload::Driver;
use radixscope_model::id::{BlockHash, Millis};

/// A simulated cluster; see the module's documentation.
#[derive(Debug)]
pub struct Simulation {
    serving: Serving,
    driver: Driver,
}

impl Simulation {
    /// A cluster that comes up at `start`.
    ///
    /// # Errors
    /// What in `config` cannot be simulated.
    pub fn new(config: Config, start: Millis) -> Result<Self, ConfigError> {
        config.validate()?;
        let config = config.set_up();
        let router_rng = stream(config.seed, 0x726f_7574_6572);
        let serving = Serving::new(&config.fleet(), config.concurrency as usize, router_rng);
        Ok(Self { serving, driver: Driver::new(config, start) })
    }

    /// Lets everything up to and including `until` happen and passes each message to `out`, in order of time.
    pub fn run_until(&mut self, until: Millis, out: &mut dyn FnMut(WireMessage<'_>)) {
        self.driver.run_until(until, &mut self.serving, out);
    }

    /// What was measured so far.
    pub fn report(&self) -> &Report {
        self.driver.report()
    }

    /// What is simulated: with a fault of the set-up, the configuration that this makes.
    pub fn config(&self) -> &Config {
        self.driver.config()
    }

    /// Discovery instance id of worker number `worker`.
    pub fn worker_id(&self, worker: u16) -> u64 {
        self.driver.wire().worker_id(worker)
    }

    /// Discovery instance id of the frontend.
    pub fn router_id(&self) -> u64 {
        self.driver.wire().router_id()
    }

    /// Full blocks that worker number `worker` really holds, in no order.
    pub fn cached_blocks(&self, worker: u16) -> impl Iterator<Item = BlockHash> + '_ {
        self.serving.engine(worker).cache().hashes()
    }

    /// Blocks that the running requests of worker number `worker` really use, full or not.
    pub fn used_blocks(&self, worker: u16) -> u32 {
        self.serving.engine(worker).cache().in_use()
    }

    /// Requests that worker number `worker` runs, and that wait there for a place in the batch.
    pub fn running_and_queued(&self, worker: u16) -> (u32, u32) {
        let engine = self.serving.engine(worker);
        (engine.running(), engine.queued())
    }
}

/// One stream of randomness for each part, so that a choice of the router does not change the users.
fn stream(seed: u64, salt: u64) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(seed ^ salt)
}
