//! Faults of the set-up: what the configuration of the cluster is with them.

use super::super::config::{Config, EventTransport, Topology, Workload};
use super::{Fault, FaultPlan, LEAST_LIFE_MS};

/// Share of its blocks that a worker keeps where blocks churn, in percent.
const CHURN_BLOCKS_PERCENT: u64 = 50;
/// Share of its blocks that a worker keeps where memory is full, in percent.
const FULL_BLOCKS_PERCENT: u64 = 90;
/// The same of a worker that only decodes: it gets its prompts no faster than others prefill them.
const FULL_DECODE_BLOCKS_PERCENT: u64 = 40;

impl Config {
    /// What is really set up: this configuration with the mistakes of its fault. Call it once: its result has
    /// them already.
    pub fn set_up(&self) -> Self {
        let mut real = self.clone();
        self.topology.set_up(&mut real);
        let Some(plan) = self.fault else { return real };
        if self.topology.pools() == 1 {
            real.shrink_for_fault();
        }
        match plan.fault {
            // Lost messages show in the numbers of envelopes, which JetStream does not have.
            Fault::Gap if real.events == EventTransport::JetStream => {
                real.events = EventTransport::LocalIndexer
            }
            Fault::Replicas | Fault::Approximate => real.replica_sync = false,
            Fault::Churn => {
                real.workload = Workload {
                    starters: 1_000,
                    think_ms: (30_000, 60_000),
                    wave_percent: 0,
                    ..real.workload
                };
            }
            // Outputs fill the caches where requests decode, and few share them.
            Fault::MemoryFull if self.topology == Topology::Disaggregated => {
                real.workload = Workload { starters: 400, wave_percent: 0, ..real.workload };
            }
            Fault::MemoryFull => {
                // Long prompts that few share, and short outputs: the blocks reserved for them stay few.
                real.workload = Workload {
                    starters: 400,
                    wave_percent: 0,
                    starter_tokens: (12_000, 14_000),
                    output_tokens: (120, 200),
                    short_output_tokens: (60, 120),
                    ..real.workload
                };
            }
            _ => {}
        }
        real
    }

    /// This configuration with a fault: from the beginning, or as soon as what stops has run.
    pub fn with_fault(&self, fault: Fault) -> Self {
        let after_ms = if fault.ends_something() { LEAST_LIFE_MS } else { 0 };
        Self { fault: Some(FaultPlan { fault, after_ms }), ..self.clone() }
    }

    /// Leaves the workers the share of their blocks with which the fault shows.
    pub(crate) fn shrink_for_fault(&mut self) {
        let percent = match self.fault.map(|plan| plan.fault) {
            Some(Fault::Churn) => CHURN_BLOCKS_PERCENT,
            Some(Fault::MemoryFull) if self.topology == Topology::Disaggregated => FULL_DECODE_BLOCKS_PERCENT,
            Some(Fault::MemoryFull) => FULL_BLOCKS_PERCENT,
            _ => return,
        };
        self.blocks_per_worker = (u64::from(self.blocks_per_worker) * percent / 100) as u32;
    }

    /// Tokens per block of the engines: what all others should say, too.
    pub(crate) fn engine_block_size_tokens(&self) -> u32 {
        let published = self.block_size_tokens;
        match self.fault.map(|plan| plan.fault) {
            Some(Fault::BlockSize | Fault::BlockSizeOversize | Fault::BlockSizeCard) => {
                published.saturating_mul(2)
            }
            Some(Fault::BlockSizePartial) => published / 2,
            _ => published,
        }
    }

    /// Blocks of an engine: as many tokens as it should hold.
    pub(crate) fn engine_blocks(&self) -> u32 {
        let tokens = u64::from(self.blocks_per_worker) * u64::from(self.block_size_tokens);
        u32::try_from(tokens / u64::from(self.engine_block_size_tokens().max(1))).unwrap_or(u32::MAX)
    }

    /// How the KV events of a worker travel.
    pub(crate) fn event_transport(&self, worker: u16) -> EventTransport {
        match self.fault.map(|plan| plan.fault) {
            // From 1.4 on routers listen to the event plane, and a worker of an older release publishes past them.
            Some(Fault::MixedPlanes) if self.events == EventTransport::EventPlane => {
                if worker == self.odd_worker() {
                    EventTransport::JetStream
                } else {
                    EventTransport::EventPlane
                }
            }
            Some(Fault::MixedPlanes) if worker == self.odd_worker() => EventTransport::LocalIndexer,
            Some(Fault::MixedPlanes) => EventTransport::JetStream,
            _ => self.events,
        }
    }

    /// Frontends that route.
    pub(crate) fn frontends(&self) -> u8 {
        if self.has(Fault::Replicas) { 2 } else { 1 }
    }

    /// The worker of a fault of one worker.
    pub(crate) fn odd_worker(&self) -> u16 {
        self.workers.saturating_sub(1)
    }

    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.fault.is_some_and(|plan| plan.fault == fault)
    }
}
