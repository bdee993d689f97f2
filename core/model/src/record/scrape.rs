//! What a process's `/metrics` said, under our own names: the numbers of all versions of Dynamo in one form.
//!
//! Knows nothing of Dynamo's metric names; reference §4 has them. A figure that a process does not offer is not in its
//! lists: absent is not 0.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Sealed;
use crate::id::WorkerIx;

/// One scrape of one process, in the form that is logged, sent and kept.
///
/// Its numbers stay sealed: few readers want them, and the fold only keeps them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Scraped<'a> {
    /// The process, as the operator named it.
    pub process: Cow<'a, str>,
    /// What it turned out to be.
    pub role: ProcessRole,
    /// Times it was seen to have restarted.
    pub restarts: u32,
    /// A [`Present`].
    pub present: Sealed<'a>,
    /// A [`Sums`].
    pub sums: Sealed<'a>,
}

/// What a scrape said of the present.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Present {
    /// See [`Scrape::instance`].
    pub instance: Option<u64>,
    /// Present values.
    pub gauges: Vec<(Gauge, f64)>,
    /// What a frontend says of its models.
    pub models: Vec<ModelFigures<'static>>,
    /// What a frontend says of workers.
    pub workers: Vec<WorkerFigures>,
    /// What a worker says of its ranks.
    pub ranks: Vec<RankFigures>,
    /// Bounds of the histograms of [`Sums`].
    pub bounds: Vec<(HistogramKind, Vec<f64>)>,
}

/// What a process counted since it was first scraped or, if that is earlier, since it started. Never falls: what a
/// restarted process counts is added to what it counted before.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Sums {
    /// Counters.
    pub counters: Vec<(Counter, f64)>,
    /// Samples by bucket, and their sum.
    pub histograms: Vec<(HistogramKind, Vec<u64>, f64)>,
}

impl Scraped<'_> {
    /// A scrape whose numbers never fell.
    pub fn of(scrape: &Scrape<'_>, restarts: u32) -> Scraped<'static> {
        let present = Present {
            instance: scrape.instance,
            gauges: scrape.gauges.to_vec(),
            models: scrape.models.iter().map(ModelFigures::to_static).collect(),
            workers: scrape.workers.to_vec(),
            ranks: scrape.ranks.to_vec(),
            bounds: scrape.histograms.iter().map(|h| (h.kind, h.bounds.to_vec())).collect(),
        };
        let sums = Sums {
            counters: scrape.counters.to_vec(),
            histograms: scrape.histograms.iter().map(|h| (h.kind, h.counts.to_vec(), h.sum)).collect(),
        };
        Scraped {
            process: Cow::Owned(scrape.process.to_string()),
            role: scrape.role,
            restarts,
            present: Sealed::of(&present),
            sums: Sealed::of(&sums),
        }
    }
}

/// One scrape of one process.
#[derive(Clone, PartialEq, Debug)]
pub struct Scrape<'a> {
    /// The process, as the operator named it.
    pub process: Cow<'a, str>,
    /// What it turned out to be.
    pub role: ProcessRole,
    /// Its own connection id, where its metrics carry it (≥ 1.0): a worker's is its worker id, a frontend's its
    /// router's id.
    pub instance: Option<u64>,
    /// Whether all of it was understood: then what is absent is not offered. Figures of which a part was not understood
    /// are left out.
    pub is_whole: bool,
    /// Present values.
    pub gauges: Cow<'a, [(Gauge, f64)]>,
    /// Values that only rise until the process restarts; summed over labels that are not told apart.
    pub counters: Cow<'a, [(Counter, f64)]>,
    /// Distributions, summed over models.
    pub histograms: Vec<Histogram<'a>>,
    /// What a frontend says of the models it serves.
    pub models: Vec<ModelFigures<'a>>,
    /// What a frontend says of workers (≥ 1.0).
    pub workers: Cow<'a, [WorkerFigures]>,
    /// What a worker says of its ranks.
    pub ranks: Cow<'a, [RankFigures]>,
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
    /// Something whose metrics are none of Dynamo's, or do not tell (yet) what it is.
    Other,
}

/// A value that goes up and down.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Gauge {
    /// Requests that the frontend has taken and not answered whole; a worker: that its work handler runs.
    InFlightRequests,
    /// Requests that wait at the frontend for their first token (Dynamo's HTTP queue, not the router's).
    HttpQueuedRequests,
    /// Requests that wait in the router for a worker (≥ 1.1).
    RouterQueuedRequests,
    /// Prompt tokens of those.
    RouterQueuedTokens,
    /// Seconds since the process started.
    UptimeSeconds,
    /// Requests that the engine runs.
    EngineRunningRequests,
    /// Requests that wait in the engine.
    EngineWaitingRequests,
    /// Workers from which the router gets no usable KV events (≥ 1.4).
    EventSourceMismatchWorkers,
    /// Requests that a worker has taken and its engine has not (≥ 1.3).
    AdmissionQueuedRequests,
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
    /// Prompt tokens that the best worker had cached (1.6).
    BestPrefixTokens,
    /// Prompt tokens that the chosen worker had cached by the router's index (1.6).
    SelectedPrefixTokens,
    /// Prompt tokens that the engine really re-used (1.6).
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
    /// Prompt lengths, tokens.
    InputTokens,
    /// Answer lengths, tokens.
    OutputTokens,
    /// Prompt tokens that the engine had in its cache, by its own word, tokens.
    CachedTokens,
    /// Share of the prompt's blocks that the chosen worker held by the router's count, 0 to 1 (≥ 1.0).
    HitRate,
    /// The router's whole work on one request, milliseconds (≥ 1.0).
    RouterOverheadMs,
}

/// A cumulative histogram since the process started.
#[derive(Clone, PartialEq, Debug)]
pub struct Histogram<'a> {
    /// Of what.
    pub kind: HistogramKind,
    /// Finite upper bounds, ascending.
    pub bounds: Cow<'a, [f64]>,
    /// Samples in each bucket (not cumulated), the last one above every bound: one more than `bounds`.
    pub counts: Cow<'a, [u64]>,
    /// Sum of all samples.
    pub sum: f64,
}

/// What a frontend says of a model.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ModelFigures<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
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

impl ModelFigures<'_> {
    /// The same without the bytes it was read from.
    pub fn to_static(&self) -> ModelFigures<'static> {
        ModelFigures { name: Cow::Owned(self.name.to_string()), ..*self }
    }
}

/// What a frontend says of a worker.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerFigures {
    /// Which.
    pub worker: WorkerIx,
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
}

impl WorkerFigures {
    /// A worker of which nothing is said.
    pub const fn new(worker: WorkerIx) -> Self {
        Self {
            worker,
            decode_blocks: None,
            prefill_tokens: None,
            registered: None,
            state: None,
            active_requests: None,
        }
    }
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

/// What a worker's engine says of one rank.
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
