//! A simulated Dynamo cluster that emits Dynamo's own wire bytes, logs and metrics: workers with LRU block caches, a
//! KV-aware or round-robin router, and multi-turn users. It is one of several deployments ([`Topology`]), and on demand
//! something is wrong in it ([`Fault`]).
//!
//! A discrete-event simulation, pure and deterministic by seed: no clock, no I/O, no threads. What it emits goes
//! through the same decoders as NATS messages, so it must not know them, nor the state that is folded from them.
#![forbid(unsafe_code)]

mod cache;
mod change;
mod config;
mod engine;
mod event_queue;
mod fault;
mod fault_events;
mod holders;
mod log;
mod metrics;
mod observed;
mod predicted;
mod processes;
mod report;
pub mod resimulation;
mod router;
mod serving;
mod shape;
mod start_up;
mod timing;
mod tokens;
mod topology;
mod trace;
mod users;
mod wire;
mod workload;

use self::engine::Engine;
use self::topology::Pool;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

pub use self::change::{Change, ChangeError};
pub use self::config::{
    Config, ConfigError, EventTransport, MAX_CONCURRENCY, MAX_WORKERS, REFERENCE_BLOCKS_PER_WORKER, Topology,
    WorkerSelection, Workload,
};
pub use self::fault::{Fault, FaultPlan};
pub use self::report::{
    CandidateTruth, DECISIONS_KEPT, DecisionRecord, IN_FLIGHT_EVERY_MS, InFlightSample, Percentiles,
    REQUESTS_KEPT, RequestRecord, SPREADS_KEPT, SimulationReport, Summary,
};
pub use self::router::SimulatedCandidate;
use self::serving::Serving;
pub use self::tokens::token_id;
pub use self::wire::{Channel, WireMessage};
use self::workload::Driver;
use radixscope_model::id::{BlockHash, Millis};

/// A simulated cluster; see the module's documentation. Workers are numbered over all pools, in the order of the pools.
#[derive(Debug)]
pub struct Simulation {
    /// Router and engines of each pool.
    pools: Vec<Serving>,
    driver: Driver,
    /// What was asked for, without the mistakes of its fault.
    asked: Config,
    /// Deployments before this one.
    life: u32,
}

impl Simulation {
    /// A cluster that comes up at `start`.
    ///
    /// # Errors
    /// What in `config` cannot be simulated.
    pub fn new(config: Config, start: Millis) -> Result<Self, ConfigError> {
        Self::deploy(config, start, 0)
    }

    /// The deployment that comes up after `life` others.
    fn deploy(asked: Config, start: Millis, life: u32) -> Result<Self, ConfigError> {
        asked.validate()?;
        let config = asked.set_up();
        let mut of_config = config.pools();
        of_config.iter_mut().for_each(|pool| pool.life = life);
        let serving = |(at, pool): (u64, &Pool)| {
            let router_rng = stream(config.seed, 0x726f_7574_6572 + at);
            Serving::new(&pool.fleet(), config.concurrency as usize, router_rng)
        };
        let pools = (0..).zip(&of_config).map(serving).collect();
        Ok(Self { pools, driver: Driver::new(config, of_config, start), asked, life })
    }

    /// Lets everything up to and including `until` happen and passes each message to `out`, in order of time.
    pub fn run_until(&mut self, until: Millis, out: &mut dyn FnMut(WireMessage<'_>)) {
        self.driver.run_until(until, &mut self.pools, out);
    }

    /// What was measured so far.
    pub fn report(&self) -> &SimulationReport {
        self.driver.report()
    }

    /// What is simulated: with a fault of the set-up, the configuration that this makes.
    pub fn config(&self) -> &Config {
        self.driver.config()
    }

    /// Workers of all pools.
    pub fn workers(&self) -> u16 {
        self.driver.config().topology.pools() * self.driver.config().workers
    }

    /// Dynamo component of worker number `worker`.
    pub fn component(&self, worker: u16) -> &str {
        let (pool, _) = self.driver.place(worker);
        &self.driver.pools[pool].pool.config.component
    }

    /// Discovery instance id of worker number `worker`.
    pub fn worker_id(&self, worker: u16) -> u64 {
        self.driver.worker_id(worker)
    }

    /// Discovery instance id of the frontend.
    pub fn router_id(&self) -> u64 {
        self.driver.pools[0].wire.frontend_id(0)
    }

    /// Full blocks that worker number `worker` really holds on its device, in no order.
    pub fn cached_blocks(&self, worker: u16) -> impl Iterator<Item = BlockHash> + '_ {
        self.engine(worker).cache().hashes()
    }

    /// Full blocks that worker number `worker` really holds in host memory, in no order.
    pub fn host_blocks(&self, worker: u16) -> impl Iterator<Item = BlockHash> + '_ {
        self.engine(worker).host().hashes()
    }

    /// What worker number `worker` answers to a query for all its blocks, as Dynamo 1.6 does in JSON: those on its device and those
    /// in host memory, and the number of its last event.
    pub fn tree_dump(&self, worker: u16) -> Vec<u8> {
        let (pool, of_pool) = self.driver.place(worker);
        self.driver.pools[pool].wire.tree_dump(of_pool, self.pools[pool].engine(of_pool))
    }

    /// Blocks that the running requests of worker number `worker` really use, full or not.
    pub fn used_blocks(&self, worker: u16) -> u32 {
        self.engine(worker).cache().in_use()
    }

    /// Requests that worker number `worker` runs, and that wait there for a place in the batch.
    pub fn running_and_queued(&self, worker: u16) -> (u32, u32) {
        let engine = self.engine(worker);
        (engine.running(), engine.queued())
    }

    fn engine(&self, worker: u16) -> &Engine {
        let (pool, worker) = self.driver.place(worker);
        self.pools[pool].engine(worker)
    }
}

/// One stream of randomness for each part, so that a choice of the router does not change the users.
fn stream(seed: u64, salt: u64) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(seed ^ salt)
}
