//! What can go wrong in the simulated cluster, each fault alone, just as a real Dynamo would show it (reference §2.7,
//! §8.3, §9.1, §9.2). Must not know router, engines or the wire: it defines the difference, they apply it.

mod delivery;
mod seeds;
mod set_up;

use radixscope_router::Role;
use serde::{Deserialize, Serialize};

pub(super) use self::delivery::{Delivery, Faults};
pub(super) use self::seeds::HashSeeds;
use super::config::{Config, ConfigError};

/// Least simulated time before something that ran stops running, in milliseconds: it must have been alive.
const LEAST_LIFE_MS: u64 = 10_000;

/// Something that is wrong in a cluster. Where one worker is meant, it is the last one of its pool; a hot worker is the first.
/// Of several pools one is hit ([`Config::fault_pool`]); what is wrong with the frontend is so for all of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The engine's blocks are twice as long as its publisher and its card say, on the relay path: every stored event
    /// is empty, removals are real (reference §9.1, case 3).
    BlockSize,
    /// The same on TensorRT-LLM's path: stored events are dropped, only removals come (case 1).
    BlockSizeOversize,
    /// The engine's blocks are half as long, on TensorRT-LLM's path: stored events are empty, removals are swallowed
    /// (case 2).
    BlockSizePartial,
    /// Engine and publisher agree on blocks twice as long as the model card says: all events are normal, no prompt ever
    /// matches (case 4).
    BlockSizeCard,
    /// No worker publishes KV events.
    NoEvents,
    /// One worker publishes no KV events.
    NoEventsOne,
    /// 70 % of the conversations go to one worker.
    HotWorker,
    /// 3 % of the conversations may go to one worker, the others never.
    StarvedWorker,
    /// A KV event is lost on the way now and then.
    Gap,
    /// A worker is killed.
    KillWorker,
    /// A worker's lease is lost: it is removed from discovery, but lives, publishes and is still chosen.
    GhostWorker,
    /// The frontend restarts: a new router id, counters from 0, and an index that is empty for a minute.
    RouterRestart,
    /// Every engine hashes its blocks with a seed of its own.
    HashSeed,
    /// One worker publishes its events on NATS core, the others on JetStream, where alone the router listens.
    MixedPlanes,
    /// Engines do not publish some stored events.
    UnknownParents,
    /// Workers report blocks removed that they never stored.
    UnknownRemovals,
    /// Blocks are evicted before their prompt comes again.
    Churn,
    /// The blocks of running requests fill the KV cache; others wait for them.
    MemoryFull,
    /// Prefill takes four times as long on every worker.
    Slow,
    /// Two frontends route, and neither knows of the other's requests.
    Replicas,
    /// The router runs with `--no-kv-events`: it predicts what workers hold, and is absent from NATS.
    Approximate,
}

/// A fault, and when it begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FaultPlan {
    /// What goes wrong.
    pub fault: Fault,
    /// Simulated time from the start until then, in milliseconds. 0 for what is wrong in the set-up.
    pub after_ms: u64,
}

/// It is a mistake in the set-up, which cannot begin later.
const SET_UP: u8 = 1;
/// Something that ran stops, so that it must have run before.
const ENDS: u8 = 2;
/// It shows in full only once the caches are full and blocks are evicted.
const EVICTIONS: u8 = 4;
/// One worker differs from the others.
const OTHERS: u8 = 8;

impl Fault {
    /// Name on the command line; what goes wrong, in one sentence without its full stop; what holds of it.
    const TABLE: [(Self, &'static str, &'static str, u8); 21] = [
        (
            Self::BlockSize,
            "block-size",
            "Engines' blocks are twice as long as published: empty stored events",
            SET_UP | EVICTIONS,
        ),
        (
            Self::BlockSizeOversize,
            "block-size-oversize",
            "The same with TensorRT-LLM: only removed events",
            SET_UP | EVICTIONS,
        ),
        (
            Self::BlockSizePartial,
            "block-size-partial",
            "Engines' blocks are half as long, with TensorRT-LLM: empty stored events",
            SET_UP | EVICTIONS,
        ),
        (
            Self::BlockSizeCard,
            "block-size-card",
            "The model card names half the block size: full trees, no overlap",
            SET_UP,
        ),
        (Self::NoEvents, "no-events", "No worker publishes KV events", 0),
        (Self::NoEventsOne, "no-events-one", "One worker publishes no KV events", OTHERS),
        (Self::HotWorker, "hot-worker", "One worker gets 70 % of the conversations", OTHERS),
        (Self::StarvedWorker, "starved-worker", "One worker gets next to nothing", OTHERS),
        (Self::Gap, "gap", "KV events are lost on the way now and then", SET_UP),
        (Self::KillWorker, "kill-worker", "A worker is killed", ENDS | OTHERS),
        (
            Self::GhostWorker,
            "ghost-worker",
            "A worker is removed from discovery but still runs",
            ENDS | OTHERS,
        ),
        (Self::RouterRestart, "router-restart", "The frontend restarts with a cold index", ENDS),
        (
            Self::HashSeed,
            "hash-seed",
            "Every engine hashes its blocks with a seed of its own",
            SET_UP | OTHERS,
        ),
        (
            Self::MixedPlanes,
            "mixed-planes",
            "One worker publishes where the router does not listen",
            SET_UP | OTHERS,
        ),
        (Self::UnknownParents, "unknown-parents", "Engines do not publish some stored events", 0),
        (Self::UnknownRemovals, "unknown-removals", "Workers remove blocks that they never stored", 0),
        (Self::Churn, "churn", "Blocks are evicted before their prompt comes again", SET_UP | EVICTIONS),
        (
            Self::MemoryFull,
            "memory-full",
            "The blocks of running requests fill the KV cache",
            SET_UP | EVICTIONS,
        ),
        (Self::Slow, "slow", "Prefill takes four times as long", 0),
        (Self::Replicas, "replicas", "Two frontends route without replica sync", SET_UP),
        (Self::Approximate, "approximate", "The router runs without KV events and predicts", SET_UP),
    ];

    /// All of them.
    pub const ALL: [Self; 21] = {
        let mut all = [Self::BlockSize; 21];
        let mut at = 0;
        while at < all.len() {
            all[at] = Self::TABLE[at].0;
            at += 1;
        }
        all
    };

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        Self::TABLE[self as usize].1
    }

    /// What goes wrong, in one sentence without its full stop.
    pub const fn summary(self) -> &'static str {
        Self::TABLE[self as usize].2
    }

    const fn has(self, flag: u8) -> bool {
        Self::TABLE[self as usize].3 & flag != 0
    }

    /// Whether it is a mistake in the set-up, which cannot begin later.
    pub const fn is_set_up(self) -> bool {
        self.has(SET_UP)
    }

    /// Whether it is one of the frontend, so that it hits every pool; any other hits one pool.
    pub const fn is_of_frontend(self) -> bool {
        matches!(self, Self::RouterRestart | Self::Replicas | Self::Approximate)
    }

    /// Whether it can be wrong with workers that do this: only caches with events can be, or workers that run
    /// requests for long.
    pub(super) const fn shows_in(self, role: Role) -> bool {
        use Fault::{GhostWorker, HotWorker, KillWorker, MemoryFull, StarvedWorker};
        match role {
            Role::Decode => matches!(self, GhostWorker | HotWorker | KillWorker | MemoryFull | StarvedWorker),
            Role::Prefill => !matches!(self, MemoryFull),
            Role::Aggregated => true,
        }
    }

    /// Whether something that ran stops, so that it must have run before.
    pub const fn ends_something(self) -> bool {
        self.has(ENDS)
    }

    /// Whether it shows in full only once the caches are full and blocks are evicted.
    pub const fn shows_in_evictions(self) -> bool {
        self.has(EVICTIONS)
    }
}

impl FaultPlan {
    pub(super) fn validate(self, config: &Config) -> Result<(), ConfigError> {
        let Self { fault, after_ms } = self;
        let name = fault.name();
        if fault.has(OTHERS) && config.workers < 2 {
            return Err(ConfigError::FaultWorkers { name });
        }
        if fault.is_set_up() && after_ms > 0 {
            return Err(ConfigError::FaultLater { name });
        }
        if fault.ends_something() && after_ms < LEAST_LIFE_MS {
            return Err(ConfigError::FaultEarly { name, after_ms, least_ms: LEAST_LIFE_MS });
        }
        Ok(())
    }
}

/// Which worker a request goes to, whatever it costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum ForcedWorker {
    /// The cheapest.
    #[default]
    Free,
    /// This one.
    To(u16),
    /// Any but this one.
    NotTo(u16),
}

impl ForcedWorker {
    /// Whether a request may go to a worker.
    pub(super) fn allows(self, worker: u16) -> bool {
        match self {
            Self::Free => true,
            Self::To(only) => worker == only,
            Self::NotTo(never) => worker != never,
        }
    }
}

/// How a request ended without a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Failure {
    /// The stream of its response broke.
    Disconnected,
    /// The worker could not be reached.
    Refused,
    /// The frontend that had taken it went away.
    FrontendGone,
}

#[cfg(test)]
mod tests {
    use super::Fault;

    #[test]
    fn every_fault_has_its_own_row() {
        assert!(Fault::TABLE.iter().enumerate().all(|(at, (fault, ..))| *fault as usize == at));
    }
}
