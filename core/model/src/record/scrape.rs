//! What a process's `/metrics` reported, under our own names: the numbers of all versions of Dynamo in one form.
//!
//! Knows nothing of Dynamo's metric names; reference §4 has them. A figure that a process does not offer is not in its
//! lists: absent is not 0.

use serde::{Deserialize, Serialize};

use super::{Engine, Role};
use crate::id::WorkerIx;

/// One scrape of one process.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Scrape {
    /// The process, as the operator named it.
    pub process: String,
    /// What it turned out to be.
    pub role: ProcessRole,
    /// The engine that it runs, by the names of its metrics; `None`: it runs none, or does not report which.
    pub engine: Option<Engine>,
    /// Restarts seen.
    pub restarts: u32,
    /// Its own connection id, where its metrics carry it (≥ 1.0): a worker's is its worker id, a frontend's its
    /// router's id.
    pub instance: Option<u64>,
    /// Whether all of it was understood: then what is absent is not offered. Figures of which a part was not understood
    /// are left out.
    pub is_whole: bool,
    /// Present values.
    pub gauges: Vec<(Gauge, f64)>,
    /// Values that only rise, summed over labels that are not kept apart. As read they fall when the process restarts; in a
    /// record they never do: what a restarted process counts is added to what it counted before.
    pub counters: Vec<(Counter, f64)>,
    /// Distributions, summed over models; they rise as counters do.
    pub histograms: Vec<Histogram>,
    /// A frontend's metrics of the models it serves.
    pub models: Vec<ModelFigures>,
    /// A frontend's metrics of workers (≥ 1.0).
    pub workers: Vec<WorkerFigures>,
    /// A worker's metrics of its ranks.
    pub ranks: Vec<RankFigures>,
    /// A frontend's metrics of its routers' queues, one per model and role.
    pub queues: Vec<QueueFigures>,
}

impl Scrape {
    /// A whole scrape of a process that offers nothing.
    pub fn new(process: impl Into<String>, role: ProcessRole) -> Self {
        Self {
            process: process.into(),
            role,
            engine: None,
            restarts: 0,
            instance: None,
            is_whole: true,
            gauges: Vec::new(),
            counters: Vec::new(),
            histograms: Vec::new(),
            models: Vec::new(),
            workers: Vec::new(),
            ranks: Vec::new(),
            queues: Vec::new(),
        }
    }
}

/// What a scraped process is, by the metrics it offers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
pub enum ProcessRole {
    /// Takes requests over HTTP and, in Dynamo, routes them.
    Frontend,
    /// Runs an engine.
    Worker,
    /// A frontend's or router's own system port: the router's counters without the requests' (0.9).
    Router,
    /// A process without Dynamo metrics, or whose metrics do not identify it yet.
    Other,
    /// The router of vLLM's production-stack.
    ProductionStackRouter,
    /// AIBrix' gateway plugin.
    AibrixGateway,
}

impl ProcessRole {
    /// Whether it is a router other than Dynamo's.
    pub const fn is_other_router(self) -> bool {
        matches!(self, Self::ProductionStackRouter | Self::AibrixGateway)
    }
}

/// A value that goes up and down.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Gauge {
    /// Requests that the frontend has taken and not answered whole; a worker: that its work handler runs.
    InFlightRequests,
    /// Requests that wait at the frontend for their first token (Dynamo's HTTP queue, not the router's).
    HttpQueuedRequests,
    /// Requests that wait in the router for a worker (≥ 1.1), summed over models and roles; [`Scrape::queues`] has them apart.
    RouterQueuedRequests,
    /// Prompt tokens of those.
    RouterQueuedTokens,
    /// Seconds since the process started.
    UptimeSeconds,
    /// Requests that the engine runs.
    EngineRunningRequests,
    /// Requests that wait in the engine.
    EngineWaitingRequests,
    /// Workers from which the router gets no usable KV events (≥ 1.4). A router that takes no KV events at all does not offer
    /// it.
    EventSourceMismatchWorkers,
    /// Requests that a worker has taken and its engine has not (≥ 1.3).
    AdmissionQueuedRequests,
    /// Publishers of KV events that AIBrix is connected to.
    ConnectedPublishers,
    /// Whether AIBrix' index follows KV events (1), or its own choices (0).
    IndexFollowsEvents,
}

/// A value that only rises.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Counter {
    /// Requests answered well.
    RequestsOk,
    /// Requests answered with an error.
    RequestsFailed,
    /// Tokens sent to clients.
    OutputTokens,
    /// Stored events that the router applied.
    StoredOk,
    /// Stored events whose parent the router did not know.
    StoredParentUnknown,
    /// Stored events that the router could not apply for another reason.
    StoredOther,
    /// Removed events that the router applied; 1.6 counts unknown blocks here too.
    RemovedOk,
    /// Removed events of blocks that the router did not know (≤ 1.5).
    RemovedUnknown,
    /// Removed events that the router could not apply for another reason.
    RemovedOther,
    /// Cleared events, whatever came of them.
    Cleared,
    /// Stores of a block that the router had already.
    DuplicateStores,
    /// Prompt tokens that the best worker had cached (1.6). Choices of a decode worker are left out of it where the metric
    /// names the phase: they do not look at the cache.
    BestPrefixTokens,
    /// Prompt tokens that the chosen worker had cached by the router's index (1.6), without those of the decode phase.
    SelectedPrefixTokens,
    /// Prompt tokens that the engine really re-used (1.6), without those of the decode phase.
    ReusedTokens,
    /// Tokens that the engine looked up in its prefix cache.
    EnginePrefixQueries,
    /// Tokens of those that it found.
    EnginePrefixHits,
    /// KV events that the worker's publisher got from the engine.
    PublisherReceived,
    /// KV events that it published.
    PublisherAccepted,
    /// Stores without a block that it published (≥ 1.2): the mark of a block size mismatch.
    PublisherSuspicious,
    /// KV events that the engine dropped before the publisher (≥ 1.1).
    EngineDroppedEvents,
    /// Requests moved to another worker.
    Migrations,
    /// Requests that a worker's handler took.
    HandledRequests,
    /// Requests that the frontend's routers gave to a worker, in every mode of routing (≥ 1.0). In a disaggregated deployment
    /// a request counts twice: for its prefill and for its decode worker.
    RoutedRequests,
    /// Requests of which the router knew what a shared cache held (≥ 1.2).
    SharedCacheLookups,
    /// Requests that a router other than Dynamo's received, also those for which it had no engine.
    ReceivedRequests,
    /// Choices of AIBrix of an engine that had a part of the prompt by its index.
    ChosenByPrefix,
    /// Its choices by load, although some engine had a part of the prompt: all of those were too busy.
    PrefixSkipped,
    /// Its choices by load, because no engine had a part of the prompt.
    NoPrefix,
    /// Requests for which it could choose no engine.
    ChoicesFailed,
    /// Its choices among the least busy engines alone, because loads were too far apart.
    LoadsUnbalanced,
    /// KV events that it missed, by the numbers of their publishers.
    EventsMissed,
    /// Its choices by the share of the prompt that the chosen engine had by its index: nothing.
    MatchedNothing,
    /// The same: up to a quarter.
    MatchedQuarter,
    /// The same: up to half.
    MatchedHalf,
    /// The same: up to three quarters.
    MatchedThreeQuarters,
    /// The same: more.
    MatchedMore,
}

/// A distribution.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum HistogramKind {
    /// Time to first token, seconds.
    Ttft,
    /// Time between output tokens (ITL, TPOT), seconds.
    Itl,
    /// Whole requests, seconds.
    Duration,
    /// Prompt lengths, tokens. Each prompt once: a router's own series of the decode phase (1.6) is left out, which repeats
    /// that of the prefill phase.
    InputTokens,
    /// Output lengths, tokens.
    OutputTokens,
    /// Prompt tokens that the engine had in its cache, by its own word, tokens.
    CachedTokens,
    /// Share of the prompt's blocks that the chosen worker held by the router's count, 0 to 1 (≥ 1.0). A frontend that does
    /// not route by KV offers it without a sample. In a disaggregated deployment each request counts twice with the same
    /// value, for the metric does not name the phase.
    HitRate,
    /// The router's whole work on one request, milliseconds (≥ 1.0).
    RouterOverheadMs,
}

/// A cumulative histogram since the process started.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Histogram {
    /// Of what.
    pub kind: HistogramKind,
    /// Finite upper bounds, ascending.
    pub bounds: Vec<f64>,
    /// Samples in each bucket (not cumulated), the last one above every bound: one more than `bounds`.
    pub counts: Vec<u64>,
    /// Sum of all samples.
    pub sum: f64,
}

/// A frontend's metrics of a model.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ModelFigures {
    /// Its name.
    pub name: String,
    /// Tokens per KV block that the router uses.
    pub block_size_tokens: Option<u32>,
    /// KV blocks of one rank.
    pub total_kv_blocks: Option<u64>,
    /// Most sequences in a batch.
    pub max_num_seqs: Option<u64>,
    /// Most tokens in a step.
    pub max_num_batched_tokens: Option<u64>,
    /// Longest sequence, tokens.
    pub context_length: Option<u64>,
}

/// A frontend's metrics of a worker. `W` names the worker.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerFigures<W = WorkerIx> {
    /// Which.
    pub worker: W,
    /// Blocks of its active sequences as the router counts them.
    pub decode_blocks: Option<u64>,
    /// Prompt tokens routed there and not prefilled.
    pub prefill_tokens: Option<u64>,
    /// Whether it is registered with the router (≥ 1.1).
    pub registered: Option<bool>,
    /// Whether the router sends requests there (≥ 1.7).
    pub state: Option<RoutingState>,
    /// Requests that run there as the router counts them (≥ 1.7).
    pub active_requests: Option<u64>,
    /// What the router takes it for (≥ 1.1). Aggregated workers are called `decode` too: only where some worker is called
    /// `prefill` does it distinguish them.
    pub role: Option<Role>,
    /// The model that it serves, as an index into [`Scrape::models`] (≥ 1.7).
    pub model: Option<u16>,
}

impl<W> WorkerFigures<W> {
    /// A worker of which nothing is reported.
    pub const fn new(worker: W) -> Self {
        Self {
            worker,
            decode_blocks: None,
            prefill_tokens: None,
            registered: None,
            state: None,
            active_requests: None,
            role: None,
            model: None,
        }
    }

    /// The same under another name of the worker.
    pub fn named<V>(&self, worker: V) -> WorkerFigures<V> {
        let &Self { decode_blocks, prefill_tokens, registered, state, active_requests, role, model, .. } =
            self;
        WorkerFigures {
            worker,
            decode_blocks,
            prefill_tokens,
            registered,
            state,
            active_requests,
            role,
            model,
        }
    }
}

/// Requests that wait in a frontend's router for a worker (≥ 1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QueueFigures {
    /// The model, as an index into [`Scrape::models`], if the metric names it and the frontend reports that model.
    pub model: Option<u16>,
    /// For workers of which role; [`Role::Decode`] also where workers do both.
    pub role: Option<Role>,
    /// How many wait.
    pub requests: Option<u64>,
    /// Prompt tokens of those.
    pub prompt_tokens: Option<u64>,
}

/// A class of policy of a frontend's router queues, by its metrics (≥ 1.5), summed over models. Which class a request is of, no source
/// reports.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PolicyClassFigures {
    /// Its name, at most [`MAX_CLASS_BYTES`].
    pub class: String,
    /// For workers of which role; [`Role::Decode`] also where workers do both.
    pub role: Option<Role>,
    /// Requests that wait in its queue.
    pub queued_requests: Option<u64>,
    /// Prompt tokens of those.
    pub queued_tokens: Option<u64>,
    /// Requests that it received since the frontend started (≥ 1.6).
    pub received: Option<u64>,
    /// Requests that it refused since then, because a limit or a deadline was passed (≥ 1.6).
    pub refused: Option<u64>,
}

/// Longest name of a class of policy.
pub const MAX_CLASS_BYTES: usize = 64;

/// What a frontend's metrics report of its classes of policy, whenever it changed; replaces what was reported before.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PolicyClasses {
    /// The frontend, as the operator named it.
    pub process: String,
    /// In order of class and role; none: it has no classes but Dynamo's own one.
    pub classes: Vec<PolicyClassFigures>,
}

/// What a worker is to a router (≥ 1.7); of several pools of one router the best.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum RoutingState {
    /// Left out, because it could not be reached.
    Unavailable,
    /// Left out for another reason.
    Excluded,
    /// Not yet ready.
    Pending,
    /// Gets requests.
    Available,
}

/// An engine's metrics of one rank.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct RankFigures {
    /// Data-parallel rank; 0 where there is only one.
    pub dp_rank: u32,
    /// Share of the KV cache that running requests use, 0 to 1.
    pub kv_usage: Option<f64>,
    /// KV blocks in use.
    pub used_blocks: Option<u64>,
    /// KV blocks there are.
    pub total_blocks: Option<u64>,
}
