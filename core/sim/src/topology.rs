//! Which pools a simulated deployment has: a pool is the workers of one component, among which one router chooses.
//! Must not know how requests are served or what is published.

use super::config::{Config, ConfigError, EventTransport, Fleet, Workload};
use super::fault::Fault;
use radixscope_router::{Formula, Role, RouterSettings};

/// Component of the workers that prefill.
const PREFILL_COMPONENT: &str = "prefill";
/// Blocks of a worker's host memory for each block on its device.
const HOST_BLOCKS_PER_BLOCK: u32 = 3;

/// Shared starters of the users of workers with host memory, for each one of the others' users, of half their length: so many
/// that some come again after they left the device.
const STARTERS_PER_STARTER: u32 = 15;

/// What serves the requests. [`Topology::AggregatedV0_9`] uses the wire of Dynamo 0.9.1, all others that of 1.6.1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Topology {
    /// One pool of workers that prefill and decode.
    Aggregated,
    /// The same as Dynamo 0.9 serves it.
    #[default]
    AggregatedV0_9,
    /// A pool that prefills, one that decodes, and the KV cache that goes from one to the other.
    Disaggregated,
    /// Two models, each with a pool of its own; every prompt goes to both, as when responses are compared.
    TwoModels,
    /// One pool whose workers keep a copy of every prompt in host memory; its users have more and shorter starters than
    /// configured.
    Tiers,
}

/// A release of Dynamo, as far as it decides what is published.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Release {
    /// 0.9.1.
    V0_9,
    /// 1.6.1.
    V1_6,
}

/// A model, by the names that its cards give it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Model {
    pub(super) display_name: &'static str,
    pub(super) slug: &'static str,
}

const MODELS: [Model; 2] = [
    Model { display_name: "simulated/Llama-70B-FP8", slug: "simulated_llama-70b-fp8" },
    Model { display_name: "simulated/Qwen-72B-FP8", slug: "simulated_qwen-72b-fp8" },
];

/// A pool of a simulated deployment.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    /// What is set up in it: the configuration with its own component and router, and the fault only if it hits this pool.
    pub(super) config: Config,
    pub(super) role: Role,
    pub(super) model: Model,
    /// Number of the model, from 0.
    pub(super) model_at: usize,
    /// Number of its first worker among those of all pools.
    pub(super) first_worker: u16,
    /// Workers of all pools.
    pub(super) workers_of_all: u16,
    /// How many deployments went before it: each has ids of its own.
    pub(super) life: u32,
}

impl Topology {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 5] =
        [Self::Aggregated, Self::AggregatedV0_9, Self::Disaggregated, Self::TwoModels, Self::Tiers];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aggregated => "aggregated",
            Self::AggregatedV0_9 => "aggregated-0.9",
            Self::Disaggregated => "disaggregated",
            Self::TwoModels => "two-models",
            Self::Tiers => "tiers",
        }
    }

    /// What it is, in one sentence without its full stop.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Aggregated => "Workers that prefill and decode, Dynamo 1.6",
            Self::AggregatedV0_9 => "Workers that prefill and decode, Dynamo 0.9",
            Self::Disaggregated => "Prefill workers and decode workers, Dynamo 1.6",
            Self::TwoModels => "Two models with the same prompts, Dynamo 1.6",
            Self::Tiers => "Workers that also cache in host memory, Dynamo 1.6",
        }
    }

    /// Release of Dynamo as text.
    pub const fn dynamo(self) -> &'static str {
        match self.release() {
            Release::V0_9 => "Dynamo 0.9",
            Release::V1_6 => "Dynamo 1.6",
        }
    }

    pub(super) const fn release(self) -> Release {
        match self {
            Self::AggregatedV0_9 => Release::V0_9,
            Self::Aggregated | Self::Disaggregated | Self::TwoModels | Self::Tiers => Release::V1_6,
        }
    }

    /// Pools that it has.
    pub const fn pools(self) -> u16 {
        match self {
            Self::Aggregated | Self::AggregatedV0_9 | Self::Tiers => 1,
            Self::Disaggregated | Self::TwoModels => 2,
        }
    }

    /// What the workers of a pool do.
    const fn role(self, pool: u16) -> Role {
        match (self, pool) {
            (Self::Disaggregated, 0) => Role::Prefill,
            (Self::Disaggregated, _) => Role::Decode,
            _ => Role::Aggregated,
        }
    }

    pub(super) fn validate(self, config: &Config) -> Result<(), ConfigError> {
        if self == Self::Disaggregated && config.component == PREFILL_COMPONENT {
            return Err(ConfigError::PrefillComponent);
        }
        let (Some(plan), Some(pool)) = (config.fault, &config.fault_pool) else { return Ok(()) };
        if config.hits(plan.fault).is_none() {
            let components = (0..self.pools()).map(|at| config.component_of(at)).collect();
            return Err(ConfigError::FaultPool { name: plan.fault.name(), pool: pool.clone(), components });
        }
        Ok(())
    }

    /// What this topology sets in a configuration that was made for the aggregated one.
    pub(super) fn set_up(self, config: &mut Config) {
        if self.release() == Release::V1_6 {
            config.events = EventTransport::EventPlane;
            config.router = of_1_6(config.router);
        }
        if self == Self::Tiers {
            let Workload { starters, starter_tokens: (least, most), .. } = &mut config.workload;
            *starters = starters.saturating_mul(STARTERS_PER_STARTER);
            (*least, *most) = (*least / 2, *most / 2);
        }
    }
}

/// A router of 1.6 with the same options.
fn of_1_6(router: RouterSettings) -> RouterSettings {
    if router.formula != Formula::A {
        return router;
    }
    let mut settings = RouterSettings {
        router_mode: router.router_mode,
        router_temperature: router.router_temperature,
        ..RouterSettings::new(Formula::E)
    };
    settings.set_overlap_score_weight(router.overlap_score_weight);
    settings
}

impl Config {
    /// The pools of what is set up.
    pub(super) fn pools(&self) -> Vec<Pool> {
        (0..self.topology.pools()).map(|at| self.pool(at)).collect()
    }

    /// Component of the workers of a pool.
    fn component_of(&self, pool: u16) -> String {
        match (self.topology, pool) {
            (Topology::Disaggregated, 0) => PREFILL_COMPONENT.to_owned(),
            (Topology::TwoModels, 1) => format!("{}2", self.component),
            _ => self.component.clone(),
        }
    }

    /// The pool that a fault hits, which is not one of the frontend: the one selected, or the first in which it shows;
    /// `None` if it shows in none of these.
    fn hits(&self, fault: Fault) -> Option<u16> {
        let is_meant = |at: &u16| self.fault_pool.as_ref().is_none_or(|pool| *pool == self.component_of(*at));
        let shows = |at: &u16| !fault.is_of_frontend() && fault.shows_in(self.topology.role(*at));
        (0..self.topology.pools()).filter(is_meant).find(shows)
    }

    fn pool(&self, at: u16) -> Pool {
        let mut config = self.clone();
        config.component = self.component_of(at);
        config.fault =
            self.fault.filter(|plan| plan.fault.is_of_frontend() || self.hits(plan.fault) == Some(at));
        if self.topology.pools() > 1 {
            config.shrink_for_fault();
        }
        let role = self.topology.role(at);
        if self.topology.release() == Release::V1_6 {
            config.router.role = role;
            config.router.track_prefill_tokens = role != Role::Decode;
        }
        let model_at = if self.topology == Topology::TwoModels { usize::from(at) } else { 0 };
        Pool {
            role,
            model: MODELS[model_at],
            model_at,
            first_worker: at * self.workers,
            workers_of_all: self.topology.pools() * self.workers,
            life: 0,
            config,
        }
    }
}

impl Pool {
    pub(super) fn fleet(&self) -> Fleet {
        Fleet { role: self.role, host_blocks: self.host_blocks(), ..self.config.fleet() }
    }

    /// Whether its workers publish what they store and remove: those that only decode do not.
    pub(super) fn publishes_events(&self) -> bool {
        self.role != Role::Decode
    }

    pub(super) fn release(&self) -> Release {
        self.config.topology.release()
    }

    /// Number of a worker of this pool among those of all pools.
    pub(super) fn worker(&self, worker: u16) -> u16 {
        self.first_worker + worker
    }

    /// KV blocks in the host memory of each worker.
    pub(super) fn host_blocks(&self) -> u32 {
        let has_tiers = self.config.topology == Topology::Tiers;
        if has_tiers { self.config.engine_blocks().saturating_mul(HOST_BLOCKS_PER_BLOCK) } else { 0 }
    }

    /// The `worker_type` of its cards (1.6).
    pub(super) fn card_type(&self) -> &'static str {
        self.role.as_str()
    }

    /// What its router calls the phase of a request (1.6).
    pub(super) fn phase(&self) -> &'static str {
        match self.role {
            Role::Prefill => "Prefill",
            Role::Decode => "Decode",
            Role::Aggregated => "Aggregated",
        }
    }
}
