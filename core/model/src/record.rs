//! The records: everything received, small and exact, in the form that is logged, sent and folded.
//!
//! One codec (postcard) serves log, socket and recording; [`RECORD_VERSION`] names it and any change of a type in
//! this file raises it. Hashes are 8 raw bytes, workers are interned by [`Record::Worker`].
//! Knows nothing of Dynamo's wire and nothing of the state.
//!
//! # How it works
//!
//! Records are postcard; hashes are eight raw bytes, workers interned by a `Worker` record, times relative to the batch.
//! There are 4,096 slots for workers. Of workers that left, the latest 128 are retained; the slots of the others are
//! vacant, and a new worker takes one. When slots run short, it takes that of the worker that left first, or, if none has
//! left, that no message named for ten minutes. An index is a slot and a generation, so that none is ever given twice and
//! decisions that are retained name who departed. A frame is one version byte and postcard. `PROTOCOL_VERSION` and
//! `RECORD_VERSION` are raised together; a viewer that meets another version shows it and offers to reload. `Hello`
//! carries the *epoch* of the server's run, because sequence numbers of another run mean something else.

macro_rules! str_names {
    ($(#[$doc:meta])* $t:ty { $($v:ident => $w:literal),* $(,)? }) => {
        impl $t {
            $(#[$doc])*
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$v => $w),* }
            }
        }

        /// Its number in binary forms, its name in JSON.
        impl Serialize for $t {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_unit_variant(stringify!($t), *self as u32, self.as_str())
            }
        }
    };
}

mod client;
mod engine;
mod finding;
mod indexer;
mod knowledge;
mod pool;
mod reuse;
mod scored;
mod scrape;
mod settings;
mod targets;
mod workers;

use std::borrow::Cow;

use serde::{Deserialize, Serialize, Serializer};

use crate::formula::Formula;
use crate::id::{BlockHash, DecisionId, Millis, SourceIx, TokensHash, Worker, WorkerIx};

pub use client::{ClientMeasured, ClientResult};
pub use engine::{Engine, EngineFeed, EventForm, HashForm, Replay};
pub use finding::{CheckStatus, Evidence, Finding, Fix, PanelRef, Pending, Phase, RuleStatus, Severity};
pub use indexer::{IndexComparison, IndexedLoad, IndexedWorker, IndexerReport, MAX_INDEXED_WORKERS};
pub use knowledge::{Divergence, KnowledgeWhy, QueryState, TreeKnowledge};
pub use pool::{Role, RoleEvidence, RoutingMode, Tier};
pub use reuse::{DisplacedBy, GoneBlock, GoneReason, Reuse};
pub use scored::{Arithmetic, MAX_SCORERS, ScoredCandidate, Scores};
pub use scrape::{
    Counter, Gauge, Histogram, HistogramKind, MAX_CLASS_BYTES, ModelFigures, PolicyClassFigures,
    PolicyClasses, ProcessRole, QueueFigures, RankFigures, RoutingState, Scrape, WorkerFigures,
};
pub use settings::{ReportedSettings, RouterNumbers, RouterRef, SettingsSource};
pub use targets::LatencyTargets;

/// Version of the binary form of everything in this file.
pub const RECORD_VERSION: u8 = 14;

/// Longest name of a session, in bytes. Clients choose it: a UUID is 36.
pub const MAX_SESSION_BYTES: usize = 256;

/// Longest id of a trace, in bytes: W3C's has 32.
pub const MAX_TRACE_ID_BYTES: usize = 64;

/// Longest id that a client gave a request and that is retained, in bytes: a UUID is 36.
pub const MAX_CLIENT_ID_BYTES: usize = 128;

/// Longest name of an endpoint, in bytes: a namespace of 63, a pod of 253 and a rank.
pub const MAX_ENDPOINT_BYTES: usize = 384;

/// One KV block as a worker stored it: the engine's identity of it and the router's hash of its tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Block {
    /// The engine's hash, unique within a worker.
    pub block_hash: BlockHash,
    /// The router's hash of the block's own tokens.
    pub tokens_hash: TokensHash,
}

/// A record and its time: when the server received it, or, for history, when the broker stored it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Entry<'a> {
    /// Time of the record.
    pub at_ms: Millis,
    /// What was received.
    #[serde(borrow)]
    pub record: Record<'a>,
}

/// Something received. See `reference/dynamo.md` for the wire form behind each.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Record<'a> {
    /// A source exists; always before any other record of it.
    Source {
        /// Its index from here on.
        source: SourceIx,
        /// Where it listens, as the operator named it (no secrets).
        #[serde(borrow)]
        name: Cow<'a, str>,
        /// What kind of source it is.
        kind: SourceKind,
    },
    /// The state of a source changed.
    SourceState {
        /// Which source.
        source: SourceIx,
        /// Its state now.
        state: LinkState,
        /// In words: what happened, what is tried, what to do.
        #[serde(borrow)]
        detail: Cow<'a, str>,
    },
    /// How much a source has delivered; at most once a second and only when something changed.
    Traffic {
        /// Which source.
        source: SourceIx,
        /// Messages received since the server started.
        received: u64,
        /// Arrival minus publication of the slowest message since the last such record, by two clocks. `None`: no
        /// message reported when it was published.
        lag_ms: Option<i64>,
    },
    /// A worker seen for the first time, or more of who a known one is.
    Worker(#[serde(borrow)] Box<WorkerIdentity<'a>>),
    /// A worker stored a run of blocks below `parent`. The run may be empty (reference §9.1).
    Stored {
        /// Who stored.
        worker: WorkerIx,
        /// Block that the first of `blocks` continues; `None`: `blocks` start a prompt.
        parent: Option<BlockHash>,
        /// The blocks, each the child of the one before.
        #[serde(borrow)]
        blocks: Cow<'a, [Block]>,
    },
    /// Pictures and the like that the prompts of stored blocks contain: such blocks are named by them too.
    MultimodalInputs {
        /// Who stored the blocks.
        worker: WorkerIx,
        /// How many, each once a run of blocks.
        count: u32,
    },
    /// A worker dropped blocks.
    Removed {
        /// Who dropped.
        worker: WorkerIx,
        /// Engine hashes of the dropped blocks.
        #[serde(borrow)]
        hashes: Cow<'a, [BlockHash]>,
    },
    /// A worker dropped everything.
    Cleared {
        /// Who.
        worker: WorkerIx,
        /// Whether all ranks of the process are meant (Dynamo ≤ 1.3) or this one (≥ 1.4).
        all_ranks: bool,
    },
    /// A worker stored a run of blocks in a lower tier than device memory (≥ 1.1).
    TierStored {
        /// Who stored.
        worker: WorkerIx,
        /// Where.
        tier: Tier,
        /// Block that the first of `blocks` continues, in whatever tier; `None`: `blocks` start a prompt.
        parent: Option<BlockHash>,
        /// The blocks, each the child of the one before.
        #[serde(borrow)]
        blocks: Cow<'a, [Block]>,
    },
    /// A worker dropped blocks from a lower tier.
    TierRemoved {
        /// Who dropped.
        worker: WorkerIx,
        /// From where.
        tier: Tier,
        /// Engine hashes of the dropped blocks.
        #[serde(borrow)]
        hashes: Cow<'a, [BlockHash]>,
    },
    /// A worker dropped everything from a lower tier.
    TierCleared {
        /// Who.
        worker: WorkerIx,
        /// From where.
        tier: Tier,
    },
    /// KV events about caches that several workers share, or about tiers that this version does not know: counted, in no
    /// tree.
    OtherTier {
        /// Whose.
        worker: WorkerIx,
        /// Blocks stored there.
        stored: u32,
        /// Blocks removed there.
        removed: u32,
    },
    /// A worker's answer with all its blocks is being applied: those that the limit keeps out of the picture come again.
    TreeDumpBegan {
        /// Whose answer.
        worker: WorkerIx,
    },
    /// A worker holds these blocks by its own answer to a query, or by an event that is applied once more after it. Nothing was
    /// stored now, and when they were is not known.
    TreeDumpStored {
        /// Who holds them.
        worker: WorkerIx,
        /// In which lower tier; `None`: in device memory.
        tier: Option<Tier>,
        /// Block that the first of `blocks` continues; `None`: `blocks` start a prompt.
        parent: Option<BlockHash>,
        /// The blocks, each the child of the one before.
        #[serde(borrow)]
        blocks: Cow<'a, [Block]>,
    },
    /// A worker does not hold these blocks by its own answer to a query, or by an event that is applied once more after it.
    TreeDumpRemoved {
        /// Who does not hold them.
        worker: WorkerIx,
        /// In which lower tier; `None`: in device memory.
        tier: Option<Tier>,
        /// Their engine hashes.
        #[serde(borrow)]
        hashes: Cow<'a, [BlockHash]>,
    },
    /// A KV event that an answer of the worker already held when it arrived: received, and not applied.
    SkippedEvent {
        /// Whose event.
        worker: WorkerIx,
        /// Blocks that it stored in device memory; `None`: it is no stored event.
        stored: Option<u32>,
        /// Blocks that it removed from device memory; `None`: it is no removed event.
        removed: Option<u32>,
    },
    /// How much is known of the blocks that a worker holds, whenever that changed.
    Knowledge {
        /// Whose blocks.
        worker: WorkerIx,
        /// How much.
        knowledge: TreeKnowledge,
        /// Why.
        why: KnowledgeWhy,
    },
    /// Where asking a worker for its blocks stands, whenever that changed.
    QueryState {
        /// Who is asked.
        worker: WorkerIx,
        /// Where it stands.
        state: QueryState,
        /// In words: what happened, what is tried, what to do. Empty where there is nothing to say.
        #[serde(borrow)]
        detail: Cow<'a, str>,
    },
    /// Two answers of a worker in a row differed from the tree that was kept from its events; or, without differences, one
    /// answer agreed with it again.
    Divergence {
        /// Whose.
        worker: WorkerIx,
        /// By how much.
        drift: Divergence,
    },
    /// Of what was recorded as [`Record::Missed`], so much was got back from the worker.
    Recovered {
        /// Where it should have come from.
        source: SourceIx,
        /// Whose it was.
        worker: WorkerIx,
        /// What it was about.
        topic: Topic,
        /// How we knew that it was missing.
        cause: MissedCause,
        /// How many, in the unit of the cause.
        count: u64,
    },
    /// Blocks that a worker's engine reports as used by running requests (not its prefix cache).
    EngineLoad {
        /// Whose.
        worker: WorkerIx,
        /// Blocks in use by running requests.
        used_blocks: u64,
    },
    /// What a router estimates of a worker's load.
    RouterLoad {
        /// Whose load.
        worker: WorkerIx,
        /// Which router: its publisher id. `None`: the message bears none (0.8).
        router: Option<u64>,
        /// Blocks of active sequences.
        decode_blocks: Option<u64>,
        /// Prompt tokens routed there whose first output token has not come.
        prefill_tokens: Option<u64>,
    },
    /// A router chose a worker, or more is known of such a choice: a later record with the same id replaces the one before.
    Decision(Box<Decision>),
    /// How the request of a decision went on.
    Progress {
        /// Which decision.
        decision: DecisionId,
        /// What is known of it now.
        progress: Box<Progress>,
    },
    /// A request of which no decision became known ended.
    Request(Box<Ended>),
    /// A step in the life of a request on a worker.
    Sequence {
        /// Where it runs.
        worker: WorkerIx,
        /// What happened.
        step: SequenceStep,
        /// Whether the worker itself reported it (or a router).
        by_worker: bool,
    },
    /// The contents of a worker's model card.
    ModelCard {
        /// Whose card.
        worker: WorkerIx,
        /// Blocks the KV cache holds per rank; `None`: the card does not say.
        total_kv_blocks: Option<u64>,
        /// Tokens per block that the router uses; `None`: the card does not say.
        block_size_tokens: Option<u32>,
        /// Whether the worker publishes KV events; `None`: the card does not say.
        publishes_events: Option<bool>,
    },
    /// What the pool of a worker does.
    Role {
        /// A worker of the pool.
        worker: WorkerIx,
        /// What it does.
        role: Role,
        /// How we know.
        evidence: RoleEvidence,
    },
    /// The model that a worker serves.
    Model {
        /// Who.
        worker: WorkerIx,
        /// What users call it.
        #[serde(borrow)]
        name: Cow<'a, str>,
    },
    /// How a worker's KV events come; reported again when they also come another way.
    EventTransport {
        /// Whose.
        worker: WorkerIx,
        /// How.
        line: EventTransport,
        /// Id of the first event received that way.
        first_event_id: u64,
    },
    /// A worker left: what it held is gone.
    Left {
        /// Who.
        worker: WorkerIx,
        /// How we know.
        why: DepartureCause,
    },
    /// A worker that left is there again.
    Rejoined {
        /// Who.
        worker: WorkerIx,
    },
    /// Requests between choice and end on a worker, whenever the numbers changed, at most once a second.
    InFlight {
        /// Where they run.
        worker: WorkerIx,
        /// Now.
        now: u32,
        /// Most at once since the last such record.
        most: u32,
    },
    /// How long a worker's blocks live and whether they are wanted again, from a sample; every few seconds.
    BlockResidency {
        /// Whose.
        worker: WorkerIx,
        /// The figures.
        lifetimes: Box<BlockResidency>,
    },
    /// What a process's `/metrics` reported.
    Scrape(Box<Scrape>),
    /// A log reported something of the event path, summed over at most a second.
    LogSignal {
        /// Which worker it is about, if it names one.
        worker: Option<WorkerIx>,
        /// What.
        sign: LogSignal,
        /// How many times.
        count: u64,
    },
    /// A check found something, or a finding changed; replaces the one of its code.
    Finding(Box<Finding>),
    /// What was checked; replaces the list before.
    Checked(Vec<RuleStatus>),
    /// Messages known to be lost.
    Missed {
        /// Where they should have come from.
        source: SourceIx,
        /// Whose they were, if that is known.
        worker: Option<WorkerIx>,
        /// What they were about.
        topic: Topic,
        /// How we know.
        cause: MissedCause,
        /// How many; a lower bound for some causes.
        count: u64,
    },
    /// Connections to a source that broke, as far as it is unknown how many messages of a topic each cost; replaces
    /// what was reported of the topic before. A break is left out again once sequence numbers have shown what it cost the
    /// publishers that were known before it. What others published meanwhile has no number here, so that the topic's count
    /// of losses stays a lower bound, also with a `count` of 0.
    Gaps {
        /// Which source.
        source: SourceIx,
        /// What the messages would have been about.
        topic: Topic,
        /// How many breaks are of unknown size.
        count: u64,
        /// When the first of them began: the last sign of life before it. With a `count` of 0 of all that there were.
        since_ms: Millis,
        /// When the latest of them ended: subscribed again.
        until_ms: Millis,
    },
    /// Input that was not understood, summed over at most a second.
    Rejected {
        /// Where it came from.
        source: SourceIx,
        /// What it was meant to be.
        topic: Topic,
        /// Why it was not understood.
        reason: RejectReason,
        /// How many messages or parts of messages.
        count: u64,
        /// The last one in words, shortened.
        #[serde(borrow)]
        sample: Cow<'a, str>,
    },
    /// How much of the prompt of a decision could have been used again; replaces what was known of it before.
    Reuse(Box<Reuse>),
    /// What a router runs with, whenever what a source reports of it changed.
    Settings(Box<ReportedSettings>),
    /// What a frontend's metrics report of the classes of policy of its routers' queues, whenever it changed.
    PolicyClasses(Box<PolicyClasses>),
    /// What is known of a publisher of an engine that is listened to directly, whenever it changed; replaces what was recorded of the
    /// same name. The number of its latest batch alone is recorded every few seconds.
    EngineFeed(Box<EngineFeed>),
    /// How another router than Dynamo's names a worker.
    Endpoint {
        /// Who.
        worker: WorkerIx,
        /// Namespace and name of its pod, or its address; at most [`MAX_ENDPOINT_BYTES`].
        #[serde(borrow)]
        name: Cow<'a, str>,
    },
    /// What a standalone KV indexer holds, after each reading; replaces what was recorded of the same name.
    Indexer(Box<IndexerReport>),
    /// What a client measured of a request.
    ClientResult(Box<ClientResult>),
    /// What latency is judged by from here on; before the first, the default.
    Targets(LatencyTargets),
}

// Most records are KV events, and each is built, encoded and folded by value or reference: a record fits into a line of the cache,
// and what is larger than the blocks of an event is boxed. The bytes are the same with a box as without.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Record<'_>>() <= 64);

impl<'a> Record<'a> {
    /// A record of who a worker is.
    pub fn new_worker(
        worker: WorkerIx,
        id: Worker,
        namespace: impl Into<Cow<'a, str>>,
        component: impl Into<Cow<'a, str>>,
    ) -> Self {
        let (namespace, component) = (namespace.into(), component.into());
        Self::Worker(Box::new(WorkerIdentity { worker, id, namespace, component }))
    }
}

/// Who a worker is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WorkerIdentity<'a> {
    /// Its index from here on. A new index in the slot of a worker that is there means that that one left.
    pub worker: WorkerIx,
    /// Its id and rank.
    pub id: Worker,
    /// Dynamo namespace, empty when no message named it.
    #[serde(borrow)]
    pub namespace: Cow<'a, str>,
    /// Dynamo component (`backend`, `prefill` …), empty when no message named it.
    #[serde(borrow)]
    pub component: Cow<'a, str>,
}

/// A routing decision with all that its sources reported until now. A later record of the same `id` replaces it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Decision {
    /// Which decision.
    pub id: DecisionId,
    /// The worker chosen.
    pub worker: WorkerIx,
    /// The source that reported it first.
    pub source: DecisionSource,
    /// Every source that reported something of it.
    pub sources: DecisionSources,
    /// When the router decided, by its own clock, if the source has it.
    pub decided_ms: Option<Millis>,
    /// Publisher id of the router, if known.
    pub router: Option<u64>,
    /// Router's request id, if the source has it.
    pub request_id: Option<String>,
    /// Prompt length in tokens.
    pub isl_tokens: Option<u64>,
    /// Prompt length in blocks, rounded up.
    pub isl_blocks: Option<u64>,
    /// Tokens per block that the router counts in.
    pub block_size_tokens: Option<u32>,
    /// Blocks of the prompt that the chosen worker already held, by the router's own count.
    pub overlap_blocks: Option<u64>,
    /// Blocks beyond those that it held in lower tiers than its device.
    pub lower_tier_blocks: Option<u64>,
    /// Cost of the chosen worker as the router gave it, in blocks.
    pub logit: Option<f64>,
    /// The same as the router's messages about this request and those before it add up to, if only they report it.
    pub chosen_cost: Option<f64>,
    /// Cost formula that `candidates` were computed with (reference §5.2).
    pub formula: Option<Formula>,
    /// Factor of the prefill term that they were computed with: `overlap_score_weight` in formula A, `prefill_load_scale`
    /// from B on. Known where the formula is.
    pub prefill_factor: Option<f64>,
    /// Whether the router reported that several workers cost the same.
    pub tied: bool,
    /// Every worker that was weighed, as far as known; empty: only the chosen one is known.
    pub candidates: Vec<Candidate>,
    /// How much `candidates` is worth.
    pub completeness: Completeness,
    /// Why the costs of all workers could not be computed here though the prompt is known; `None`: they were, or it was
    /// not tried yet.
    pub not_reconstructed: Option<NotReconstructed>,
    /// Where in the tree the prompt's held prefix ended.
    pub path: Option<PathEnd>,
    /// Whether the worker was given the request. A query that runs nothing is decided and not dispatched; routers leave
    /// it out of their hit rate. `None`: not reported.
    pub dispatched: Option<bool>,
    /// The adapter (LoRA) that the request asked for.
    pub adapter: Option<String>,
    /// The choice for the same request in another pool: where prefill and decode are apart, a request has two.
    pub other_part: Option<DecisionId>,
    /// How the router chooses, where its log names another mode than by cached blocks and load. `None`: by those, or not
    /// reported.
    pub mode: Option<RoutingMode>,
    /// The session that the request is of, as its client named it; at most [`MAX_SESSION_BYTES`].
    pub session: Option<String>,
    /// The id of its trace, as its router's log has it; at most [`MAX_TRACE_ID_BYTES`].
    pub trace_id: Option<String>,
    /// What decided. `None`: the reports do not show it.
    pub decided_by: Option<DecidedBy>,
    /// Whether the router skipped the prefill pool (conditional disaggregation, ≥ 1.5), so that the decode worker computes the prompt.
    /// Of the choice of a prefill worker that the router looked at before it skipped it as well. `None`: not reported, or prefill and
    /// decode are not apart.
    pub prefill_bypassed: Option<bool>,
    /// The router whose arithmetic it shows. What is in blocks is of Dynamo's alone.
    pub arithmetic: Arithmetic,
    /// What another router than Dynamo's gave each worker.
    pub scores: Option<Box<Scores>>,
}

impl Decision {
    /// A decision of which nothing but the choice is known.
    pub fn new(id: DecisionId, worker: WorkerIx, source: DecisionSource) -> Self {
        Self {
            id,
            worker,
            source,
            sources: source.into(),
            decided_ms: None,
            router: None,
            request_id: None,
            isl_tokens: None,
            isl_blocks: None,
            block_size_tokens: None,
            overlap_blocks: None,
            lower_tier_blocks: None,
            logit: None,
            chosen_cost: None,
            formula: None,
            prefill_factor: None,
            tied: false,
            candidates: Vec::new(),
            completeness: Completeness::ChosenOnly,
            not_reconstructed: None,
            path: None,
            dispatched: None,
            adapter: None,
            other_part: None,
            mode: None,
            session: None,
            trace_id: None,
            decided_by: None,
            prefill_bypassed: None,
            arithmetic: Arithmetic::Dynamo,
            scores: None,
        }
    }

    /// Whether the cost decided, as far as is known: not so where a report shows that something else did.
    pub fn is_by_cost(&self) -> bool {
        self.decided_by.is_none_or(|by| by == DecidedBy::Cost)
    }

    /// Size in blocks of each candidate's tree, see [`tree_sizes_blocks`].
    pub fn tree_sizes_blocks(&self) -> impl Iterator<Item = u64> + '_ {
        tree_sizes_blocks(&self.candidates)
    }
}

/// Size in blocks of each candidate's tree, as ties are decided by it: all 0 where one is unknown, so that no worker is taken
/// for the smallest because nothing is known of it.
pub fn tree_sizes_blocks(candidates: &[Candidate]) -> impl Iterator<Item = u64> + '_ {
    let are_known = candidates.iter().all(|candidate| candidate.tree_size.is_some());
    candidates.iter().map(move |candidate| candidate.tree_size.filter(|_| are_known).unwrap_or(0))
}

/// A worker as it was weighed for one request, in blocks: as a log has it, as it was reconstructed, as it would be. `W` names
/// the worker.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Candidate<W = WorkerIx> {
    /// Who.
    pub worker: W,
    /// Blocks of the prompt that it held on its device.
    pub overlap_blocks: u32,
    /// Blocks beyond those that it held in host memory.
    pub host_blocks: u32,
    /// Blocks beyond those that it held on disk or in external storage.
    pub disk_blocks: u32,
    /// Prompt blocks to compute there: those that wait and those of this prompt that it did not hold.
    pub prefill_blocks: f64,
    /// Blocks of its active requests, this one included.
    pub decode_blocks: f64,
    /// The sum that was compared.
    pub cost: f64,
    /// Blocks in the router's index of this worker, where ties are decided by it (0.8 to 1.1).
    pub tree_size: Option<u64>,
}

/// How a decision's candidates are known. Later is better.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Deserialize)]
pub enum Completeness {
    /// Nothing is known of the others.
    ChosenOnly,
    /// Computed here from the tree and the active requests as they were when the router decided; what the router itself
    /// reported of the chosen worker, its overlap or its cost or both, came out the same.
    Reconstructed,
    /// As the router itself wrote them.
    AllCandidates,
}

/// What is missing to compute what every worker would have cost.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
pub enum NotReconstructed {
    /// The router's block size, or the prompt's length.
    BlockSize,
    /// What the workers held at that time, or how busy they were.
    State,
    /// What the chosen worker held: computed it is not what the router reported.
    Overlap,
    /// A worker's load, an option of the router or a binding of the session: the computed cost is not what the router reported, or
    /// another worker would have been cheaper.
    Cost,
    /// The prompt's blocks: the router names them at random or with a secret key.
    Prompt,
    /// Blocks that the router counts as cached because it expects them (`--router-predicted-ttl-secs`, ≥ 1.6): no event shows them.
    Predicted,
    /// What a shared cache held of the prompt (`--shared-cache-type`, ≥ 1.2): no source names its blocks.
    SharedCache,
    /// Which requests the workers ran: the prompt is known from the request's trace, and no message says of others when they began.
    Loads,
}

impl NotReconstructed {
    /// In a few words.
    pub const fn to_text(self) -> &'static str {
        match self {
            Self::BlockSize => "block size or prompt length unknown",
            Self::State => "state at that time unknown",
            Self::Overlap => "overlap differs from the router's",
            Self::Cost => "cost differs from the router's",
            Self::Prompt => "blocks of the prompt not published",
            Self::Loads => "loads at that time not published",
            Self::Predicted => "the router counted predicted blocks",
            Self::SharedCache => "blocks in the shared cache not published",
        }
    }

    /// In a sentence.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::BlockSize => "The router's block size or the length of the prompt is unknown.",
            Self::State => "What was cached on the workers, or their load, is unknown for that time.",
            Self::Overlap => {
                "The cached blocks of the chosen worker differ from what the router reported, so the costs of the others are not \
                 shown."
            }
            Self::Cost => {
                "The cost of the chosen worker differs from what the router reported, or another worker would have had \
                 a lower cost: a load, an option of the router or a session that is bound to its worker is unknown."
            }
            Self::Loads => {
                "The prompt is known from the request's trace. What the workers ran when it was chosen is not: routers publish that \
                 with --router-replica-sync."
            }
            Self::Prompt => {
                "The router's messages name the blocks of this prompt at random or with a secret key (--router-tracking-hash), so its cached \
                 blocks on the other workers are unknown. The frontend's log at DEBUG has them."
            }
            Self::Predicted => {
                "The router counted more cached blocks than the workers had stored: it counts what it expects them to store \
                 (--router-predicted-ttl-secs). That is no fault, but what it expected of the others is unknown."
            }
            Self::SharedCache => {
                "The cost contains blocks in a shared cache (--shared-cache-type), which no source names, so the costs of the others \
                 are not shown."
            }
        }
    }
}

/// Most by which two equal costs differ in blocks: logs print them with three decimals. Less than one token of the
/// largest blocks.
const COST_ROUNDING: f64 = 0.000_501;

/// Whether a computed cost is the one that a router reported.
pub fn same_cost(computed: f64, reported: f64) -> bool {
    (computed - reported).abs() <= COST_ROUNDING
}

/// The last block of a prompt that any worker held when the decision was received. A block is named by a worker's engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PathEnd {
    /// A worker that held it.
    pub worker: WorkerIx,
    /// Its name there.
    pub block_hash: BlockHash,
    /// Blocks from the beginning of the prompt up to it.
    pub blocks: u32,
}

/// Where a decision was read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Deserialize)]
pub enum DecisionSource {
    /// `kv-hit-rate` (Dynamo 0.8, 0.9).
    KvHitRate,
    /// `AddRequest` of `active_sequences_events` (replica sync).
    ActiveSequences,
    /// A frontend's log.
    Log,
    /// `dynamo.request_trace.v1` (≥ 1.4), at the request's end.
    RequestTrace,
    /// `session_affinity_events` (≥ 1.6): what the session was bound to.
    SessionAffinity,
}

/// What a router chose a worker by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Deserialize)]
pub enum DecidedBy {
    /// The lowest cost, by the cost formula.
    Cost,
    /// The worker that the session of the request is bound to (`--router-session-affinity-ttl-secs`, ≥ 1.6).
    SessionAffinity,
    /// The request was bound to the worker before the router chose: by its session, its client or a gateway. Which of these is
    /// not reported.
    Pinned,
    /// Another worker-selection policy than the cost formula (`--router-policy-config`, ≥ 1.6). Dynamo reports no name of it.
    Policy,
    /// A mode that weighs no costs: round robin, random, direct and the like. [`Decision::mode`] names it.
    Mode,
    /// Another router than Dynamo's, by its own scores. [`Decision::arithmetic`] names it.
    Scores,
}

impl DecidedBy {
    /// Every one.
    pub const ALL: [Self; 6] =
        [Self::Cost, Self::SessionAffinity, Self::Pinned, Self::Policy, Self::Mode, Self::Scores];

    /// By its name in the API.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.as_str() == name)
    }

    /// In a few words.
    pub const fn to_text(self) -> &'static str {
        match self {
            Self::Cost => "lowest cost",
            Self::SessionAffinity => "session affinity",
            Self::Pinned => "bound to the worker",
            Self::Policy => "worker-selection policy",
            Self::Mode => "routing mode",
            Self::Scores => "scores of another router",
        }
    }
}

/// A set of [`DecisionSource`]s.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct DecisionSources(u8);

impl DecisionSources {
    /// Adds a source.
    pub const fn insert(&mut self, source: DecisionSource) {
        self.0 |= 1 << source as u8;
    }

    /// Whether it contains a source.
    pub const fn contains(self, source: DecisionSource) -> bool {
        self.0 & (1 << source as u8) != 0
    }

    /// What either contains.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Its sources, in the order of [`DecisionSource`].
    pub fn iter(self) -> impl Iterator<Item = DecisionSource> {
        use DecisionSource::{ActiveSequences, KvHitRate, Log, RequestTrace, SessionAffinity};
        [KvHitRate, ActiveSequences, Log, RequestTrace, SessionAffinity]
            .into_iter()
            .filter(move |&source| self.contains(source))
    }
}

impl From<DecisionSource> for DecisionSources {
    fn from(source: DecisionSource) -> Self {
        Self(1 << source as u8)
    }
}

/// How a request went on, by all that its sources reported until now; a later record of the same decision replaces it.
/// `None`: not reported.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Progress {
    /// First output token.
    pub first_token_ms: Option<Millis>,
    /// Finished or given up.
    pub ended_ms: Option<Millis>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// Time to first token as the frontend measured it, in microseconds.
    #[serde(rename = "ttft_ms", serialize_with = "us_in_ms")]
    pub ttft_us: Option<u64>,
    /// From the request's arrival until a worker was chosen, in microseconds: as the frontend measured it (`prefill_wait_time_ms` of a
    /// request trace), else between the lines of its log.
    #[serde(rename = "queue_ms", serialize_with = "us_in_ms")]
    pub queue_us: Option<u64>,
    /// From then to the end of prefill, likewise (`prefill_time_ms`).
    #[serde(rename = "prefill_ms", serialize_with = "us_in_ms")]
    pub prefill_us: Option<u64>,
    /// Mean time between output tokens as the frontend measured it, in microseconds.
    #[serde(rename = "itl_ms", serialize_with = "us_in_ms")]
    pub itl_us: Option<u64>,
    /// Output tokens.
    pub output_tokens: Option<u64>,
    /// Prompt tokens that the chosen worker had in its cache, by the frontend's count.
    pub cached_tokens: Option<u64>,
}

/// Microseconds, in JSON as milliseconds.
fn us_in_ms<S: Serializer>(us: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
    if to.is_human_readable() { us.map(|us| us as f64 / 1_000.0).serialize(to) } else { us.serialize(to) }
}

/// A request that ended, as its frontend measured it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Ended {
    /// When.
    pub ended_ms: Millis,
    /// From its arrival to its end, in microseconds.
    pub elapsed_us: Option<u64>,
    /// Prompt length in tokens.
    pub isl_tokens: Option<u64>,
    /// Times and output.
    pub progress: Progress,
}

/// How a request ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
pub enum Outcome {
    /// All tokens were sent.
    Success,
    /// The client or a limit ended it.
    Cancelled,
    /// Anything else.
    Failed,
}

/// A step in the life of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum SequenceStep {
    /// Routed to the worker.
    Added,
    /// First output token.
    PrefillCompleted,
    /// Finished or given up.
    Freed,
}

/// How KV events come from a worker (reference §2.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
pub enum EventTransport {
    /// Through a JetStream stream (0.8, 0.9 default): history is kept.
    JetStream,
    /// As plain NATS messages (0.9 with a worker-local indexer, all later versions): no history.
    Core,
    /// Over ZeroMQ (≥ 1.3, the default): no history.
    Zmq,
    /// From the engine itself, without Dynamo: over ZeroMQ, and its latest ones once more on request.
    Engine,
}

/// How we know that a worker left.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
pub enum DepartureCause {
    /// A frontend's log reported that it removed the worker.
    Log,
    /// A frontend's list of instances no longer has it.
    Health,
    /// A router's own gauges no longer have it.
    Metrics,
    /// No message named it for long, and its slot was needed.
    Silent,
    /// Discovery no longer holds its endpoint or its model card, or Kubernetes the pod of an engine.
    Discovery,
}

/// How long blocks live on a worker, over the last minute. Measured on the blocks whose hash falls into a fixed
/// sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct BlockResidency {
    /// One of this many blocks is followed.
    pub one_in: u16,
    /// Followed blocks that were removed.
    pub removed: u32,
    /// From stored to removed, the median in milliseconds.
    pub lifetime_p50_ms: Option<u64>,
    /// The 95th percentile.
    pub lifetime_p95_ms: Option<u64>,
    /// Followed blocks that were stored again on the same worker after they had been removed.
    pub came_back: u32,
    /// From removed to stored again, the median in milliseconds.
    pub came_back_p50_ms: Option<u64>,
    /// From one use of a followed block to the next while it was held, the median in milliseconds. `None`: prompts
    /// are not visible.
    pub reuse_p50_ms: Option<u64>,
}

/// A log message of a frontend or worker about the event path (reference §7.3, §9).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum LogSignal {
    /// A router started.
    RouterStarted,
    /// The router did not know the parent of a stored event.
    ParentUnknown,
    /// The router did not know a block that was removed.
    BlockUnknown,
    /// Two workers name the same prefix differently (0.9 – 1.2).
    HashMismatch,
    /// A publisher left out blocks whose size is not its own: engine and publisher disagree.
    PublisherSize {
        /// Tokens per block of the publisher.
        publisher: u32,
        /// Tokens per block of the engine.
        engine: u32,
    },
    /// A publisher dropped a block that is larger than its own (TensorRT-LLM ≤ 1.5).
    Oversize {
        /// Tokens per block of the publisher.
        publisher: u32,
        /// Tokens in the block.
        engine: u32,
    },
    /// The overlap exceeded the prompt: router and publisher count in different sizes.
    NegativePrefill,
    /// Two endpoints of a model registered with different block sizes.
    CardSizes,
    /// The router found a gap in a worker's event ids (0.9 local indexer).
    EventGap,
    /// The router could not recover a worker's tree at the start (0.9 local indexer).
    NoLocalIndexer,
    /// The router listens to JetStream because not every worker has a local indexer (0.9).
    UsesJetStream,
    /// The router is configured to use no KV events: it estimates what workers hold from the requests that it sent there
    /// (`--no-router-kv-events`; the line is of 1.6).
    KvEventsOff,
    /// The router counts the blocks of a request as cached from the moment that it chooses (`--router-predicted-ttl-secs`, 1.6).
    PredictsOnRoute {
        /// For how long, in milliseconds, unless a KV event confirms them. `None`: the line does not say.
        ttl_ms: Option<u32>,
    },
}

/// Kinds of source.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
pub enum SourceKind {
    /// A NATS server.
    Nats,
    /// The embedded simulated cluster.
    Simulator,
    /// A log of Dynamo: a file that is followed, or a pipe.
    Logs,
    /// Metrics that are scraped over HTTP.
    Prometheus,
    /// Dynamo's discovery: etcd, or a folder of files.
    Discovery,
    /// ZeroMQ publishers.
    Zmq,
    /// Workers that are asked for their blocks.
    WorkerTrees,
    /// Not one that is read: files that everything received is written to.
    Recording,
    /// Files that a frontend writes request traces to.
    RequestTraces,
    /// Engines' own publishers of KV events, without Dynamo.
    Engines,
    /// A standalone KV indexer, whose index is compared with the trees.
    Indexer,
    /// OpenTelemetry's protocol, which exporters and collectors send to us.
    Otlp,
    /// Files that a load generator writes what it measured of each request to.
    ClientResults,
    /// Not one that is read: a collector of OpenTelemetry that decisions are sent to.
    OtlpExport,
    /// Not one that is read: an endpoint that `radixscope stage` sends requests to. What it measures of them is a client's result.
    StageLoad,
}

impl SourceKind {
    /// Whether KV events are received over it: from Dynamo's event plane, or from engines.
    pub const fn is_event_plane(self) -> bool {
        matches!(self, Self::Nats | Self::Simulator | Self::Zmq | Self::Engines)
    }

    /// Whether something is sent there, and nothing of the deployment is read.
    pub const fn is_output(self) -> bool {
        matches!(self, Self::Recording | Self::OtlpExport | Self::StageLoad)
    }
}

/// Where the link to a source stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
pub enum LinkState {
    /// Not connected yet or any more; trying.
    Connecting,
    /// Connected; reading what was reported before we came.
    CatchingUp,
    /// Connected and current.
    Live,
    /// Cannot work until the operator changes something (credentials, permissions); still trying.
    Refused,
    /// Finished and will not come back (a recording's end).
    Ended,
    /// Connected and current, but part of what is asked for is denied until the operator changes something.
    Partial,
}

/// What a message is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Deserialize)]
pub enum Topic {
    /// `kv-events`: blocks stored and removed.
    KvEvents,
    /// `kv-hit-rate`: a routing decision (0.8, 0.9).
    KvHitRate,
    /// `kv_metrics`: active load.
    KvMetrics,
    /// `active_sequences_events`: life of requests.
    ActiveSequences,
    /// An entry of discovery.
    Discovery,
    /// A worker's answer to a query for its blocks.
    TreeDump,
    /// `dynamo.request_trace.v1`: a finished request (≥ 1.4).
    RequestTrace,
    /// A line of a log.
    Log,
    /// A scrape of `/metrics`.
    Metrics,
    /// A frontend's list of instances.
    Health,
    /// None of the above.
    Other,
    /// `session_affinity_events`: which worker a session is bound to (≥ 1.6).
    SessionAffinity,
    /// What a frontend's routers run with.
    RouterPolicy,
    /// What a standalone KV indexer holds.
    Indexer,
    /// What a load generator measured of a request.
    ClientResult,
}

/// How we know that messages are lost. A lost message is counted under one cause only, the most exact there is: where
/// publishers number their messages by those numbers, else where it was dropped. [`MissedCause::counts_again`] is the
/// one exception, which counts another unit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Deserialize)]
pub enum MissedCause {
    /// The envelope's sequence jumped: lost between publisher and us.
    EnvelopeGap,
    /// The worker's own event ids jumped (Dynamo ≥ 1.4): lost before or on the way.
    EventIdGap,
    /// The stream no longer has messages that we had not read.
    HistoryExpired,
    /// Our own queue was full: counted one by one as they were dropped, exact.
    QueueFull,
    /// Our NATS client dropped them before we saw them, on a topic without sequence numbers; a lower bound.
    SlowConsumer,
    /// More workers than this build keeps apart.
    TooManyWorkers,
    /// More scraped processes than this build keeps apart.
    TooManyProcesses,
    /// KV events that were in messages already counted under another cause, by the worker's event ids (Dynamo ≥ 1.4).
    EventsInLost,
    /// A log was rotated faster than it was read: files, or rests of files, that went unread. How many lines they held is
    /// not known; a lower bound.
    LogRotated,
}

impl MissedCause {
    /// Whether it counts, in another unit, what is counted under another cause already: to be left out of sums.
    pub const fn counts_again(self) -> bool {
        matches!(self, Self::EventsInLost)
    }

    /// Whether more may be lost than is counted.
    pub const fn is_lower_bound(self) -> bool {
        matches!(self, Self::SlowConsumer | Self::LogRotated)
    }

    /// Whether the fault is ours and not the network's or the publisher's.
    pub const fn is_own(self) -> bool {
        matches!(self, Self::QueueFull | Self::SlowConsumer | Self::TooManyWorkers | Self::LogRotated)
    }
}

/// Why input was not understood.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Deserialize)]
pub enum RejectReason {
    /// Ends too early.
    Truncated,
    /// Not JSON or MessagePack at all.
    Malformed,
    /// Well-formed, but a field has another type than Dynamo gives it.
    WrongType,
    /// Well-formed, but a field that Dynamo always sends is missing.
    MissingField,
    /// Larger or deeper than a sane message.
    TooLarge,
    /// A kind of message that this version does not know.
    UnknownKind,
}

str_names! {
    /// Name in the API.
    SourceKind {
        Nats => "nats", Simulator => "simulator", Logs => "logs", Prometheus => "prometheus",
        Discovery => "discovery", Zmq => "zmq", WorkerTrees => "worker_trees",
        Recording => "recording", RequestTraces => "request_traces",
        Engines => "engines", Indexer => "indexer", Otlp => "otlp",
        ClientResults => "client_results",
        OtlpExport => "otlp_export",
        StageLoad => "stage_load",
    }
}
str_names! {
    /// Name in the API.
    LinkState { Connecting => "connecting", CatchingUp => "catching_up", Live => "live", Refused => "refused", Ended => "ended", Partial => "partial" }
}
str_names! {
    /// Dynamo's name of the topic.
    Topic {
        KvEvents => "kv-events", KvHitRate => "kv-hit-rate", KvMetrics => "kv_metrics",
        ActiveSequences => "active_sequences_events", Discovery => "discovery", TreeDump => "tree_dump",
        RequestTrace => "dynamo.request_trace.v1", Log => "log", Metrics => "metrics", Health => "health", Other => "other",
        SessionAffinity => "session_affinity_events",
        RouterPolicy => "router_policy", Indexer => "indexer", ClientResult => "client_result",
    }
}
str_names! {
    /// Name in the API.
    MissedCause {
        EnvelopeGap => "envelope_gap", EventIdGap => "event_id_gap", HistoryExpired => "history_expired",
        QueueFull => "queue_full", SlowConsumer => "slow_consumer", TooManyWorkers => "too_many_workers",
        TooManyProcesses => "too_many_processes", EventsInLost => "events_in_lost", LogRotated => "log_rotated",
    }
}
str_names! {
    /// Name in the API.
    RejectReason {
        Truncated => "truncated", Malformed => "malformed", WrongType => "wrong_type",
        MissingField => "missing_field", TooLarge => "too_large", UnknownKind => "unknown_kind",
    }
}
str_names! {
    /// Name in the API.
    DecisionSource {
        KvHitRate => "kv-hit-rate", ActiveSequences => "active_sequences_events", Log => "log",
        RequestTrace => "dynamo.request_trace.v1", SessionAffinity => "session_affinity_events",
    }
}
str_names! {
    /// Name in the API and in addresses.
    DecidedBy {
        Cost => "cost", SessionAffinity => "session_affinity", Pinned => "pinned", Policy => "policy", Mode => "mode",
        Scores => "scores",
    }
}
str_names! {
    /// Name in the API.
    Completeness {
        ChosenOnly => "chosen only", Reconstructed => "reconstructed", AllCandidates => "all candidates",
    }
}
str_names! {
    /// Name in the API.
    NotReconstructed {
        BlockSize => "block_size_unknown", State => "state_unknown", Overlap => "overlap_differs",
        Cost => "cost_differs", Prompt => "prompt_unknown", Predicted => "predicted", SharedCache => "shared_cache",
        Loads => "loads_unknown",
    }
}
str_names! {
    /// Name in the API.
    EventTransport { JetStream => "jetstream", Core => "core", Zmq => "zmq", Engine => "engine" }
}
str_names! {
    /// Name in the API.
    DepartureCause { Log => "log", Health => "health", Metrics => "metrics", Silent => "silent", Discovery => "discovery" }
}
str_names! {
    /// Name in the API.
    ProcessRole {
        Frontend => "frontend",
        Worker => "worker",
        Router => "router",
        Other => "other",
        ProductionStackRouter => "production_stack_router",
        AibrixGateway => "aibrix_gateway",
    }
}
str_names! {
    /// Name in the API.
    Severity { Info => "info", Warning => "warning", Critical => "critical" }
}
str_names! {
    /// Name in the API.
    Phase { Warn => "warn", Recheck => "recheck", Cleared => "cleared" }
}
str_names! {
    /// Name in the API.
    CheckStatus {
        Ok => "ok", Info => "info", Warning => "warning", Critical => "critical", NoData => "no_data",
        Explained => "explained", Pending => "pending",
    }
}
str_names! {
    /// Name in the API and in addresses.
    Engine { Vllm => "vllm", Sglang => "sglang", TensorRtLlm => "trtllm" }
}
str_names! {
    /// Name in the API.
    Outcome { Success => "success", Cancelled => "cancelled", Failed => "failed" }
}
