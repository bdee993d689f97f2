//! What a simulated cluster is made of, with the reference scenario as the default, and what cannot be simulated.
//! Must not know how anything is simulated.

use std::num::NonZeroU32;

use thiserror::Error;

use super::cache::EvictionOrder;
use super::fault::{Fault, FaultPlan};
use super::holders::MOST_WORKERS;
use super::timing::Timing;
use super::topology::Release;
pub use super::topology::Topology;
use radixscope_router::numbers::RefusedNumber;
use radixscope_router::{Formula, Role, RouterSettings};

/// Blocks of 32 tokens in the KV cache of a worker of the reference scenario: one H200, Llama 70B FP8, 0.90 of free memory. The
/// capacity arithmetic gives the same; its tests hold the two together.
pub const REFERENCE_BLOCKS_PER_WORKER: u32 = 10_738;
/// Most workers of one pool: as many as the router's index distinguishes.
pub const MAX_WORKERS: u16 = MOST_WORKERS as u16;
/// Most concurrent users: far above any batch three workers can run, low enough to bound memory.
pub const MAX_CONCURRENCY: u32 = 4_096;

/// A simulated cluster and the load on it. [`Default`] is the reference scenario: three H200 workers with
/// Llama 70B in FP8, block 32, batch 64, 16,384 tokens a step, 120 concurrent users, KV-aware routing.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Dynamo namespace.
    pub namespace: String,
    /// Dynamo component of the workers: of those that decode, or that serve the first model.
    pub component: String,
    /// What serves the requests.
    pub topology: Topology,
    /// Number of workers of each pool.
    pub workers: u16,
    /// KV blocks each worker holds.
    pub blocks_per_worker: u32,
    /// Tokens per block; engine, publisher and router agree on it, unless the fault is that they do not: then it is what
    /// the model card contains.
    pub block_size_tokens: u32,
    /// Users, each with one request in flight (closed loop).
    pub concurrency: u32,
    /// Most requests a worker runs at once (`max_batch_size`).
    pub max_batch: u32,
    /// Most tokens a worker computes in one step, prefill and decode together (`max_num_tokens`).
    pub max_num_tokens: u32,
    /// How requests find a worker.
    pub router: RouterSettings,
    /// How KV events travel.
    pub events: EventTransport,
    /// Whether the frontend publishes the requests it routes to its replicas (`--router-replica-sync`).
    pub replica_sync: bool,
    /// Whether the frontend publishes a trace of each request that ended (`DYN_REQUEST_TRACE`); of Dynamo 1.6 only.
    pub traces: bool,
    /// Whether the turns of a conversation go to the worker of the first one, as long as it is there
    /// (`--router-session-affinity-mode hard`); of Dynamo 1.6 only.
    pub session_affinity: bool,
    /// What chooses the worker; another policy than the cost is of Dynamo 1.6 only.
    pub selection: WorkerSelection,
    /// Whether engines evict the beginning of a prompt before its end: the block that was used first of all that no request uses,
    /// whatever follows it. Else a block goes after those that follow it.
    pub evicts_beginnings: bool,
    /// How often the last worker of each pool clears its cache, in milliseconds; what runs there is computed anew.
    pub cleared_every_ms: Option<NonZeroU32>,
    /// Whether the frontend's log is written: the lines of its decisions at INFO.
    pub log: bool,
    /// Whether frontend and workers are scraped: their responses to requests for `/metrics`, every 2 s.
    pub metrics: bool,
    /// What goes wrong, if anything.
    pub fault: Option<FaultPlan>,
    /// Component of the pool that it hits. By default the first in which it shows: that of the first model, or that which
    /// prefills and has the caches; requests fill the memory of those that decode.
    pub fault_pool: Option<String>,
    /// What the users do.
    pub workload: Workload,
    /// Same seed, same bytes.
    pub seed: u64,
}

/// What serves the requests: the part of a configuration that does not say who sends them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fleet {
    pub(super) workers: u16,
    pub(super) blocks_per_worker: u32,
    pub(super) block_size_tokens: u32,
    pub(super) max_batch: u32,
    pub(super) max_num_tokens: u32,
    pub(super) router: RouterSettings,
    /// Tokens per block as the router counts them.
    pub(super) router_block_size_tokens: u32,
    /// Frontends that route.
    pub(super) frontends: u8,
    /// Whether the router predicts what workers hold, instead of receiving their events.
    pub(super) predicts: bool,
    /// What the workers do.
    pub(super) role: Role,
    /// KV blocks each worker holds in host memory, beside those on the device.
    pub(super) host_blocks: u32,
    /// What chooses the worker.
    pub(super) selection: WorkerSelection,
    /// In which order engines evict.
    pub(super) eviction: EvictionOrder,
    /// Whether the router leaves out a worker that it could not reach, until it reads the list of workers again.
    pub(super) leaves_out_unreachable: bool,
    /// Durations.
    pub(super) timing: Timing,
}

/// What chooses a worker among those that a router knows (`worker_selection`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WorkerSelection {
    /// The cost.
    #[default]
    Cost,
    /// `dynamo-two-tier-cost-fn` with its own parameters: the worker with the fewest requests while those of the workers are far
    /// apart, else the one that holds more than half of the prompt.
    TwoTier,
}

/// How KV events travel (reference §2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventTransport {
    /// JSON on the JetStream subject: the default of Dynamo 0.9.
    JetStream,
    /// MessagePack envelopes on the component's subject: workers with `--enable-local-indexer`.
    LocalIndexer,
    /// Batches in such envelopes on the endpoint's subject: the event plane of Dynamo 1.4 and later. Every topology but the
    /// aggregated one.
    EventPlane,
}

/// What the users do: multi-turn conversations that begin with one of a few shared starters (system prompt,
/// document), each turn sending the whole history again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Workload {
    /// Number of shared starters.
    pub starters: u32,
    /// Tokens of a starter, least and most.
    pub starter_tokens: (u32, u32),
    /// Turns of a conversation, least and most.
    pub turns: (u32, u32),
    /// Tokens of an ordinary user message, least and most.
    pub message_tokens: (u32, u32),
    /// Tokens of a user message with something pasted into it, least and most.
    pub pasted_tokens: (u32, u32),
    /// Share of user messages with something pasted, in percent.
    pub pasted_percent: u32,
    /// Tokens of an ordinary output, least and most.
    pub output_tokens: (u32, u32),
    /// Tokens of a short output, least and most.
    pub short_output_tokens: (u32, u32),
    /// Share of short outputs, in percent.
    pub short_output_percent: u32,
    /// Pause of a user between a response and the next message, least and most, in milliseconds.
    pub think_ms: (u32, u32),
    /// Time from one wave of new conversations to the next, least and most, in milliseconds.
    pub wave_ms: (u32, u32),
    /// Share of a wave's conversations that begin with the starter this wave is about, in percent.
    pub wave_percent: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            namespace: "dynamo".to_owned(),
            component: "backend".to_owned(),
            topology: Topology::AggregatedV0_9,
            workers: 3,
            blocks_per_worker: REFERENCE_BLOCKS_PER_WORKER,
            block_size_tokens: 32,
            concurrency: 120,
            max_batch: 64,
            max_num_tokens: 16_384,
            router: RouterSettings::new(Formula::A),
            events: EventTransport::JetStream,
            replica_sync: true,
            traces: false,
            session_affinity: false,
            selection: WorkerSelection::default(),
            evicts_beginnings: false,
            cleared_every_ms: None,
            log: true,
            metrics: true,
            fault: None,
            fault_pool: None,
            workload: Workload::default(),
            seed: 1,
        }
    }
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            starters: 10,
            starter_tokens: (3_500, 4_000),
            turns: (3, 5),
            message_tokens: (50, 200),
            pasted_tokens: (500, 2_000),
            pasted_percent: 4,
            output_tokens: (820, 1_000),
            short_output_tokens: (200, 820),
            short_output_percent: 18,
            think_ms: (50, 400),
            wave_ms: (1_000, 4_000),
            wave_percent: 40,
        }
    }
}

impl Workload {
    /// Conversations of some hundred tokens, which fill small caches within seconds.
    pub fn short() -> Self {
        Self {
            starters: 4,
            starter_tokens: (400, 600),
            turns: (2, 4),
            message_tokens: (20, 80),
            pasted_tokens: (300, 900),
            output_tokens: (80, 150),
            short_output_tokens: (1, 80),
            ..Self::default()
        }
    }

    /// Most tokens one request can occupy: prompt, output, and the token an engine computes too much before it
    /// notices the end.
    pub fn longest_request_tokens(&self) -> u64 {
        let message = u64::from(self.message_tokens.1.max(self.pasted_tokens.1));
        u64::from(self.starter_tokens.1)
            + u64::from(self.turns.1) * (message + u64::from(self.longest_output()))
            + 1
    }

    /// Most tokens of one output.
    pub fn longest_output(&self) -> u32 {
        self.output_tokens.1.max(self.short_output_tokens.1)
    }
}

/// Why a configuration cannot be simulated.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No or too many workers.
    #[error("workers is {0}; it must be between 1 and {MAX_WORKERS}")]
    Workers(u16),
    /// Dynamo 0.9 rejects blocks of fewer than two tokens.
    #[error("block_size_tokens is {0}; Dynamo 0.9 needs at least 2")]
    BlockSize(u32),
    /// No or too many users.
    #[error("concurrency is {0}; it must be between 1 and {MAX_CONCURRENCY}")]
    Concurrency(u32),
    /// Nothing could ever run.
    #[error("max_batch is 0; a worker must run at least 1 request")]
    MaxBatch,
    /// A full decode batch would leave no token for prefill.
    #[error("max_num_tokens is {max_num_tokens}; it must be greater than max_batch, {max_batch}")]
    MaxNumTokens {
        /// The value given.
        max_num_tokens: u32,
        /// The batch limit it must exceed.
        max_batch: u32,
    },
    /// The longest request would never fit.
    #[error(
        "blocks_per_worker is {blocks_per_worker}; one request of up to {longest_tokens} tokens needs {needed} blocks of {block_size_tokens} tokens"
    )]
    Capacity {
        /// The value given.
        blocks_per_worker: u32,
        /// Tokens of the longest request of the workload.
        longest_tokens: u64,
        /// Blocks that request needs.
        needed: u64,
        /// Tokens per block.
        block_size_tokens: u32,
    },
    /// The router would refuse it.
    #[error(transparent)]
    Router(#[from] RefusedNumber),
    /// A range of the workload is empty or begins too low.
    #[error("workload.{name} is {least} to {most}; it must not begin below {floor} or end before it begins")]
    Range {
        /// Which range.
        name: &'static str,
        /// Its beginning.
        least: u32,
        /// Its end.
        most: u32,
        /// The lowest beginning that makes sense.
        floor: u32,
    },
    /// A percentage above 100.
    #[error("workload.{name} is {value}; a percentage is at most 100")]
    Percent {
        /// Which percentage.
        name: &'static str,
        /// The value given.
        value: u32,
    },
    /// A fault of one worker among others, and there are no others.
    #[error("fault {name} needs at least 2 workers")]
    FaultWorkers {
        /// Which fault.
        name: &'static str,
    },
    /// A mistake in the set-up is there from the beginning.
    #[error("fault {name} is a mistake in the set-up: it is there from the beginning and cannot come later")]
    FaultLater {
        /// Which fault.
        name: &'static str,
    },
    /// What stops must have run.
    #[error("fault {name} after {after_ms} ms is too early; it must come after at least {least_ms} ms")]
    FaultEarly {
        /// Which fault.
        name: &'static str,
        /// The value given.
        after_ms: u64,
        /// The earliest that makes sense.
        least_ms: u64,
    },
    /// A pool that is not there, or in which the fault cannot be.
    #[error("fault {name} cannot hit pool {pool}: that is none of {}, or it would not show there", components.join(", "))]
    FaultPool {
        /// Which fault.
        name: &'static str,
        /// The value given.
        pool: String,
        /// Components of the pools.
        components: Vec<String>,
    },
    /// Something that Dynamo 0.9 does not have.
    #[error("{name} needs Dynamo 1.6, and topology {topology} is of 0.9")]
    Release {
        /// Which part of the configuration.
        name: &'static str,
        /// The topology given.
        topology: &'static str,
    },
    /// Workers that prefill have a component of their own.
    #[error("component is prefill, which is that of the workers that prefill in a disaggregated deployment")]
    PrefillComponent,
    /// No shared starter.
    #[error("workload.starters is 0; conversations need at least 1 shared starter")]
    Starters,
    /// A name that cannot be part of a subject.
    #[error("{name} is {value:?}; it must be letters, digits, `-` or `_`")]
    Name {
        /// Which name.
        name: &'static str,
        /// The value given.
        value: String,
    },
}

impl Config {
    /// Whether this can be simulated.
    ///
    /// # Errors
    /// The first thing that cannot, with the value given and what is allowed.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.set_up().validate_set_up()
    }

    fn validate_set_up(&self) -> Result<(), ConfigError> {
        self.topology.validate(self)?;
        self.fleet().validate()?;
        let of_1_6 = [
            ("traces", self.traces),
            ("session_affinity", self.session_affinity),
            ("selection", self.selection != WorkerSelection::Cost),
        ];
        for (name, is_on) in of_1_6 {
            if is_on && self.topology.release() == Release::V0_9 {
                return Err(ConfigError::Release { name, topology: self.topology.name() });
            }
        }
        if let Some(plan) = self.fault {
            plan.validate(self)?;
        }
        if self.concurrency == 0 || self.concurrency > MAX_CONCURRENCY {
            return Err(ConfigError::Concurrency(self.concurrency));
        }
        for (name, value) in [("namespace", &self.namespace), ("component", &self.component)] {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if value.is_empty() || !value.chars().all(plain) {
                return Err(ConfigError::Name { name, value: value.clone() });
            }
        }
        self.workload.validate()?;
        self.pools().iter().try_for_each(|pool| pool.config.validate_capacity())
    }

    pub(super) fn fleet(&self) -> Fleet {
        Fleet {
            workers: self.workers,
            blocks_per_worker: self.engine_blocks(),
            block_size_tokens: self.engine_block_size_tokens(),
            max_batch: self.max_batch,
            max_num_tokens: self.max_num_tokens,
            router: self.router,
            router_block_size_tokens: self.block_size_tokens,
            frontends: self.frontends(),
            predicts: self.has(Fault::Approximate) && self.router.keeps_index(),
            role: Role::Aggregated,
            host_blocks: 0,
            selection: self.selection,
            eviction: if self.evicts_beginnings {
                EvictionOrder::BeginningsFirst
            } else {
                EvictionOrder::EndsFirst
            },
            leaves_out_unreachable: self.topology.release() == Release::V1_6,
            timing: Timing::REFERENCE,
        }
    }

    fn validate_capacity(&self) -> Result<(), ConfigError> {
        let longest_tokens = self.workload.longest_request_tokens();
        let needed = longest_tokens.div_ceil(u64::from(self.block_size_tokens));
        if needed > u64::from(self.blocks_per_worker) {
            return Err(ConfigError::Capacity {
                blocks_per_worker: self.blocks_per_worker,
                longest_tokens,
                needed,
                block_size_tokens: self.block_size_tokens,
            });
        }
        Ok(())
    }
}

impl Fleet {
    /// Whether anything could be served.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        if self.workers == 0 || self.workers > MAX_WORKERS {
            return Err(ConfigError::Workers(self.workers));
        }
        if self.block_size_tokens < 2 {
            return Err(ConfigError::BlockSize(self.block_size_tokens));
        }
        if self.max_batch == 0 {
            return Err(ConfigError::MaxBatch);
        }
        if self.max_num_tokens <= self.max_batch {
            let (max_num_tokens, max_batch) = (self.max_num_tokens, self.max_batch);
            return Err(ConfigError::MaxNumTokens { max_num_tokens, max_batch });
        }
        self.router.validate()?;
        Ok(())
    }
}

impl Workload {
    fn validate(&self) -> Result<(), ConfigError> {
        if self.starters == 0 {
            return Err(ConfigError::Starters);
        }
        let ranges = [
            ("starter_tokens", self.starter_tokens, 1),
            ("turns", self.turns, 1),
            ("message_tokens", self.message_tokens, 1),
            ("pasted_tokens", self.pasted_tokens, 1),
            ("output_tokens", self.output_tokens, 1),
            ("short_output_tokens", self.short_output_tokens, 1),
            ("think_ms", self.think_ms, 0),
            ("wave_ms", self.wave_ms, 1),
        ];
        for (name, (least, most), floor) in ranges {
            if least < floor || most < least {
                return Err(ConfigError::Range { name, least, most, floor });
            }
        }
        let percents = [
            ("pasted_percent", self.pasted_percent),
            ("short_output_percent", self.short_output_percent),
            ("wave_percent", self.wave_percent),
        ];
        for (name, value) in percents {
            if value > 100 {
                return Err(ConfigError::Percent { name, value });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_valid_and_has_the_capacity_of_the_arithmetic() {
        assert_eq!(Config::default().validate(), Ok(()));
        assert_eq!(Config::default().blocks_per_worker, 10_738);
    }
}
