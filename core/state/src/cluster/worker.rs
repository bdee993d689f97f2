//! What is known of one worker, its tree apart.

use serde::{Deserialize, Serialize};

use super::{InFlight, KnowledgeState, Rates};
use radixscope_model::id::{Millis, PoolIx, Worker, decimal, optional_decimal};
use radixscope_model::record::{BlockResidency, DepartureCause, EventTransport, Tier};

/// A worker is *quiet* when nothing was received from it for this long while others sent messages.
pub const QUIET_AFTER_MS: u64 = 10_000;
/// Routers whose estimates are kept per worker; a deployment has one to a few frontends.
const MAX_ROUTERS: usize = 8;

/// A worker. Totals count blocks unless they say otherwise, since the server started to listen.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerState {
    /// Who it is.
    pub id: Worker,
    /// The pool it is in.
    pub pool: PoolIx,
    /// First sign of it.
    pub first_ms: Millis,
    /// Last sign of it that it gave itself: a KV event or its engine's load.
    pub last_sign_ms: Option<Millis>,
    /// Last KV event.
    pub last_event_ms: Option<Millis>,
    /// Blocks in stored events.
    pub stored_total: u64,
    /// Pictures and the like in the prompts of those, each once a stored event.
    pub multimodal_inputs_total: u64,
    /// Hashes in removed events, unknown ones included.
    pub removed_total: u64,
    /// Removed hashes that it never stored as far as was received.
    pub unknown_removed_total: u64,
    /// Stored events.
    pub store_events_total: u64,
    /// Stored events without a block (reference §9.1).
    pub empty_stores_total: u64,
    /// Stored events whose parent was not known when they came.
    pub unknown_parents_total: u64,
    /// Blocks that it stored where others hold the same ones, whose names could so be compared.
    pub hashes_compared_total: u64,
    /// Of those, the ones that it names differently: engines hash differently (reference §9.2).
    pub hashes_differing_total: u64,
    /// Removed events.
    pub remove_events_total: u64,
    /// Times it cleared all blocks.
    pub cleared_total: u64,
    /// Events or messages of it known to be lost.
    pub missed_total: u64,
    /// Of those, the ones recovered by queries to it.
    pub recovered_total: u64,
    /// How much is known of the blocks that it holds.
    pub knowledge: KnowledgeState,
    /// Blocks stored and removed in lower tiers, by [`Tier::ALL`].
    pub tiers: [TierCounts; Tier::ALL.len()],
    /// Blocks stored and removed in shared caches and in tiers that are not known.
    pub other_tier: TierCounts,
    /// Blocks that running requests use, by its engine. `None`: it never reported.
    pub engine_used_blocks: Option<u64>,
    /// When it reported them last.
    pub engine_used_ms: Option<Millis>,
    /// What routers estimate of it, latest first.
    pub router_loads: Vec<RouterLoad>,
    /// Blocks its KV cache holds, by its model card. `None`: no card was read, or it does not say.
    pub capacity_blocks: Option<u64>,
    /// Tokens per block, by its model card. `None`: no card was read, or it does not say.
    pub block_size_tokens: Option<u32>,
    /// The model that it serves; empty: not reported.
    pub model: String,
    /// Whether it publishes KV events, by its model card. `None`: no card was read, or it does not say.
    pub publishes_events: Option<bool>,
    /// Requests that began and ended on it, by `active_sequences_events`.
    pub sequences: Sequences,
    /// Blocks stored and removed per second.
    pub rates: Rates,
    /// How its KV events come, in order of first sight; empty: none was received.
    pub lines: Vec<WorkerTransport>,
    /// It left. `None`: as far as we know it is there.
    pub departure: Option<Departure>,
    /// When and how it left last, also when it is back.
    pub last_departure: Option<Departure>,
    /// When it last came back after it had left: what it held until then is not known. `None`: it never did.
    pub returned_ms: Option<Millis>,
    /// KV events of it after it left, since it left last.
    pub events_after_departure: u64,
    /// Requests that routers sent to it after it left, since it left last.
    pub choices_after_departure: u64,
    /// Requests on it, second by second.
    pub in_flight: InFlight,
    /// How long its blocks live. `None`: not known yet.
    pub lifetimes: Option<BlockResidency>,
}

/// Blocks that came to a tier and went, since the server started to listen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TierCounts {
    /// Blocks in stored events.
    #[serde(rename = "stored_total")]
    pub stored: u64,
    /// Hashes in removed events.
    #[serde(rename = "removed_total")]
    pub removed: u64,
}

/// A way that KV events of a worker come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WorkerTransport {
    /// Which.
    pub line: EventTransport,
    /// First event received that way.
    pub first_ms: Millis,
    /// Its id. Publishers count from 0 or 1, so a larger one means that we came late.
    #[serde(serialize_with = "decimal")]
    pub first_event_id: u64,
}

/// That a worker left.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Departure {
    /// When we learned of it.
    pub at_ms: Millis,
    /// How.
    pub why: DepartureCause,
}

/// Requests on a worker, as far as their steps are published.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Sequences {
    /// Routed to it.
    #[serde(rename = "added_total")]
    pub added: u64,
    /// First output token seen, by the worker's own word.
    #[serde(rename = "prefilled_total")]
    pub prefilled: u64,
    /// Finished or given up.
    #[serde(rename = "freed_total")]
    pub freed: u64,
}

/// What one router estimates of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RouterLoad {
    /// The router's publisher id. `None`: its messages bear none (0.8).
    #[serde(rename = "router_id", serialize_with = "optional_decimal")]
    pub router: Option<u64>,
    /// When it reported this.
    pub at_ms: Millis,
    /// Blocks of active sequences.
    pub decode_blocks: Option<u64>,
    /// Prompt tokens routed there whose first output token has not come.
    pub prefill_tokens: Option<u64>,
}

/// Whether a worker shows signs of life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Liveness {
    /// Seen within the last [`QUIET_AFTER_MS`].
    Active,
    /// Not seen for longer: idle, or departed.
    Quiet,
    /// Known only from routers.
    NeverSeen,
    /// It left.
    Left,
}

impl Liveness {
    /// Name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Liveness::Active => "active",
            Liveness::Quiet => "quiet",
            Liveness::NeverSeen => "never_heard",
            Liveness::Left => "gone",
        }
    }
}

impl WorkerState {
    pub(super) fn new(id: Worker, pool: PoolIx, at: Millis) -> Self {
        Self {
            id,
            pool,
            first_ms: at,
            last_sign_ms: None,
            last_event_ms: None,
            stored_total: 0,
            multimodal_inputs_total: 0,
            removed_total: 0,
            unknown_removed_total: 0,
            store_events_total: 0,
            empty_stores_total: 0,
            unknown_parents_total: 0,
            hashes_compared_total: 0,
            hashes_differing_total: 0,
            remove_events_total: 0,
            cleared_total: 0,
            missed_total: 0,
            recovered_total: 0,
            knowledge: KnowledgeState::new(at),
            tiers: [TierCounts::default(); Tier::ALL.len()],
            other_tier: TierCounts::default(),
            engine_used_blocks: None,
            engine_used_ms: None,
            router_loads: Vec::new(),
            capacity_blocks: None,
            block_size_tokens: None,
            model: String::new(),
            publishes_events: None,
            sequences: Sequences::default(),
            rates: Rates::default(),
            lines: Vec::new(),
            departure: None,
            last_departure: None,
            returned_ms: None,
            events_after_departure: 0,
            choices_after_departure: 0,
            in_flight: InFlight::default(),
            lifetimes: None,
        }
    }

    /// Blocks that came to all tiers below its device and went, shared caches included.
    pub fn below_device(&self) -> TierCounts {
        self.tiers.iter().fold(self.other_tier, |sum, tier| TierCounts {
            stored: sum.stored + tier.stored,
            removed: sum.removed + tier.removed,
        })
    }

    /// Whether it shows signs of life at `now`.
    pub fn sign(&self, now: Millis) -> Liveness {
        match self.last_sign_ms {
            _ if self.departure.is_some() => Liveness::Left,
            None => Liveness::NeverSeen,
            Some(last) if now.since(last) <= QUIET_AFTER_MS => Liveness::Active,
            Some(_) => Liveness::Quiet,
        }
    }

    #[inline]
    pub(super) fn received(&mut self, at: Millis) {
        self.last_sign_ms = self.last_sign_ms.max(Some(at));
    }

    #[inline]
    pub(super) fn received_event(&mut self, at: Millis) {
        self.received(at);
        self.last_event_ms = self.last_event_ms.max(Some(at));
        self.events_after_departure += u64::from(self.departure.is_some());
    }

    /// Blocks were removed of which it is not known that they were stored.
    pub(super) fn unknown_removed(&mut self, count: usize) {
        if !self.knowledge.is_joining() {
            self.unknown_removed_total += count as u64;
        }
    }

    /// Removals of unknown blocks that missing blocks do not explain: all of a worker of which everything was always known.
    pub fn unexplained_removed_total(&self) -> u64 {
        self.unknown_removed_total.saturating_sub(self.knowledge.removed_while_lacking_total)
    }

    /// An event came that was known already.
    pub(super) fn skipped_event(&mut self, at: Millis, stored: Option<u32>, removed: Option<u32>) {
        self.received_event(at);
        self.store_events_total += u64::from(stored.is_some());
        self.empty_stores_total += u64::from(stored == Some(0));
        self.remove_events_total += u64::from(removed.is_some());
        let (stored, removed) = (stored.unwrap_or(0), removed.unwrap_or(0));
        self.stored_total += u64::from(stored);
        self.removed_total += u64::from(removed);
        self.rates.add(at, stored, removed);
    }

    pub(super) fn add_transport(&mut self, line: EventTransport, first_event_id: u64, at: Millis) {
        if self.lines.iter().all(|known| known.line != line) {
            self.lines.push(WorkerTransport { line, first_ms: at, first_event_id });
        }
    }

    /// It left, as became known at `at`. Who has left already does not leave again: another source that finds it out later
    /// changes nothing.
    pub(super) fn left(&mut self, at: Millis, why: DepartureCause) {
        if self.departure.is_some() {
            return;
        }
        let departure = Departure { at_ms: at, why };
        self.departure = Some(departure);
        self.last_departure = Some(departure);
        self.events_after_departure = 0;
        self.choices_after_departure = 0;
        self.engine_used_blocks = None;
        self.engine_used_ms = None;
        self.router_loads.clear();
        self.in_flight.set(departure.at_ms, 0, 0);
        self.knowledge.left(at);
    }

    /// It is there again; who had not left goes on.
    pub(super) fn returned(&mut self, at: Millis) {
        if self.departure.take().is_some() {
            self.returned_ms = Some(at);
        }
    }

    pub(super) fn estimate(&mut self, load: RouterLoad) {
        self.router_loads.retain(|known| known.router != load.router);
        self.router_loads.insert(0, load);
        self.router_loads.truncate(MAX_ROUTERS);
    }
}
