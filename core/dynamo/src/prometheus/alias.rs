//! The names of Dynamo 0.8 to 1.7, of its engines and of other routers, and what they mean here: the only place that knows them
//! (reference §4.2 to §4.4; engines and other routers by their own documentation and source).

use radixscope_model::record::{Counter, Engine, Gauge, HistogramKind};

use LabelCondition::{Absent, Besides, Not, Text};
use MetricMeaning::{Class, Count, Discovered, Histogram, Model, Queue, Rank, Server, State, Value, Worker};

/// What a metric is a figure of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MetricMeaning {
    /// A present value of the process, summed over labels.
    Value(Gauge),
    /// A counter of the process, summed over labels.
    Count(Counter),
    /// A distribution of the process, summed over labels.
    Histogram(HistogramKind),
    /// Something of the model in the label `model`.
    Model(ModelValue),
    /// Something of the worker in the labels `worker_id` or `router_worker_id`, decimal, and `dp_rank`.
    Worker(WorkerValue),
    /// Something of the engine's rank in the label `dp_rank` or `engine`.
    Rank(RankValue),
    /// 1 for the state, in the labels `state` and `reason`, of the worker in `router_worker_id`.
    State,
    /// How many workers the router knows, whatever their state.
    Discovered,
    /// Something of the router's queue for the labels `model` and `worker_type`.
    Queue(QueueValue),
    /// Something of the class in the label `policy_class`, for the label `worker_type`.
    Class(ClassValue),
    /// Something of the engine at the URL in the label `server`.
    Server(ServerValue),
}

/// A metric of an engine that is the metric of its router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ServerValue {
    Requests,
    IsHealthy,
}

/// A frontend's metric of a class of policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ClassValue {
    QueuedRequests,
    QueuedTokens,
    Received,
    Refused,
}

/// A frontend's metric of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum QueueValue {
    Requests,
    PromptTokens,
}

/// A frontend's metric of a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ModelValue {
    BlockSize,
    TotalBlocks,
    MaxSeqs,
    MaxBatchedTokens,
    ContextLength,
}

/// A frontend's metric of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WorkerValue {
    DecodeBlocks,
    PrefillTokens,
    Registered,
    /// Summed over phases.
    ActiveRequests,
}

/// A worker's metric of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RankValue {
    Usage,
    UsedBlocks,
    TotalBlocks,
    /// The same in the label `num_gpu_blocks`.
    TotalBlocksInLabel,
}

/// What a label must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LabelCondition {
    Text(&'static str),
    /// None of these; nor may it be missing.
    Not(&'static [&'static str]),
    /// Not this; it may be missing.
    Besides(&'static str),
    /// Missing.
    Absent,
}

/// One name of a figure. Of several that a process offers for the same figure the one with the lowest `rank` counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alias {
    pub(super) name: &'static str,
    pub(super) labels: &'static [(&'static str, LabelCondition)],
    pub(super) means: MetricMeaning,
    pub(super) rank: u8,
}

/// Rank of names that are too common to be read of a process that does not show to be AIBrix' gateway plugin.
pub(super) const AIBRIX_ONLY: u8 = 9;

/// All aliases of a metric; a frontend's under Dynamo's own prefix.
pub(super) fn aliases_of(name: &str) -> impl Iterator<Item = &'static Alias> {
    ALIASES.iter().filter(move |alias| alias.name == name)
}

/// What the process is, as far as a metric's name shows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Hint {
    /// It has a work handler for requests: a worker, or a router that takes requests itself.
    Handler,
    /// It applies KV events.
    Router,
    /// It runs an engine, or publishes KV events.
    Engine,
    /// It takes requests over HTTP.
    Frontend,
    /// It is the router of vLLM's production-stack, which names its metrics as vLLM does.
    ProductionStack,
    /// It is AIBrix' gateway plugin.
    Aibrix,
}

/// See [`Hint`]; `matched` is whether the metric's labels are those of a figure of ours.
pub(super) fn hint(name: &str, matched: bool) -> Option<Hint> {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    if name.starts_with(FRONTEND) {
        Some(Hint::Frontend)
    } else if starts(PRODUCTION_STACK) {
        Some(Hint::ProductionStack)
    } else if starts(AIBRIX) {
        Some(Hint::Aibrix)
    } else if engine(name).is_some() || starts(ENGINES) {
        Some(Hint::Engine)
    } else if starts(ROUTERS) {
        Some(Hint::Router)
    } else if matched && name == "dynamo_component_requests_total" {
        Some(Hint::Handler)
    } else {
        None
    }
}

/// Prefix of a frontend's own metrics, unless `DYN_METRICS_PREFIX` is set.
pub(super) const FRONTEND: &str = "dynamo_frontend_";
/// A frontend's metric that lists all workers its router knows, without the prefix.
pub(super) const WORKER_STATE: &str = "router_worker_state";

/// The engine that names its metrics so.
pub(super) fn engine(name: &str) -> Option<Engine> {
    BY_ENGINE.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|&(_, engine)| engine)
}

const BY_ENGINE: [(&str, Engine); 4] = [
    ("vllm:", Engine::Vllm),
    ("sglang:", Engine::Sglang),
    ("trtllm_", Engine::TensorRtLlm),
    ("trtllm:", Engine::TensorRtLlm),
];

/// Further names of a process that runs an engine.
const ENGINES: &[&str] = &[
    "dynamo_component_kv_publisher_",
    "dynamo_component_kvstats_",
    "dynamo_component_gpu_cache_usage_percent",
    "dynamo_backend_admission_",
];
/// Names that only the router of production-stack has, whose others are vLLM's.
const PRODUCTION_STACK: &[&str] = &[
    "vllm:num_incoming_requests",
    "vllm:current_qps",
    "vllm:healthy_pods_total",
    "vllm:request_latency_seconds",
];
const AIBRIX: &[&str] = &["aibrix_prefix_cache_", "aibrix_kvcache_zmq_"];
const ROUTERS: &[&str] = &[
    "dynamo_component_kv_cache_events_applied",
    "dynamo_kvrouter_",
    "dynamo_component_router_",
    "dynamo_router_overhead_",
];

const fn alias(name: &'static str, means: MetricMeaning) -> Alias {
    Alias { name, labels: &[], means, rank: 0 }
}

impl Alias {
    /// Only with these labels.
    const fn with(self, labels: &'static [(&'static str, LabelCondition)]) -> Self {
        Self { labels, ..self }
    }

    /// The second, third … choice.
    const fn rank(self, rank: u8) -> Self {
        Self { rank, ..self }
    }
}

/// Other endpoints of a worker answer the router's questions and are no requests.
const GENERATE: &[(&str, LabelCondition)] = &[("dynamo_endpoint", Text("generate"))];

const STORED_OK: &[(&str, LabelCondition)] = &[("event_type", Text("stored")), ("status", Text("ok"))];
const STORED_NO_PARENT: &[(&str, LabelCondition)] =
    &[("event_type", Text("stored")), ("status", Text("parent_block_not_found"))];
const STORED_OTHER: &[(&str, LabelCondition)] =
    &[("event_type", Text("stored")), ("status", Not(&["ok", "parent_block_not_found"]))];
const REMOVED_OK: &[(&str, LabelCondition)] = &[("event_type", Text("removed")), ("status", Text("ok"))];
const REMOVED_UNKNOWN: &[(&str, LabelCondition)] =
    &[("event_type", Text("removed")), ("status", Text("block_not_found"))];
const REMOVED_OTHER: &[(&str, LabelCondition)] =
    &[("event_type", Text("removed")), ("status", Not(&["ok", "block_not_found"]))];
const CLEARED: &[(&str, LabelCondition)] = &[("event_type", Text("cleared"))];
/// The choice of a decode worker (1.6) is of the same prompt as that of the prefill worker before it, and does not look at the
/// cache.
const NOT_DECODE: &[(&str, LabelCondition)] = &[("phase", Besides("decode"))];

/// Of an engine itself: the router of production-stack has metrics of the same names about engines.
const OWN: &[(&str, LabelCondition)] = &[("server", Absent)];
/// About an engine.
const OF_SERVER: &[(&str, LabelCondition)] = &[("server", Not(&[]))];
const CHOSEN_BY_PREFIX: &[(&str, LabelCondition)] = &[("selection", Text("prefix_match"))];
const PREFIX_SKIPPED: &[(&str, LabelCondition)] = &[("selection", Text("prefix_match_skipped"))];
const NO_PREFIX: &[(&str, LabelCondition)] = &[("selection", Text("least_request_fallback"))];
/// The share of the prompt that the chosen engine had, in percent.
const MATCHED: &str = "match_percent_bucket";
const EVENT_INDEX: &[(&str, LabelCondition)] = &[("indexer_type", Text("sync"))];

const ALIASES: &[Alias] = &[
    // A frontend's requests.
    alias("dynamo_frontend_requests_total", Count(Counter::RequestsOk)).with(&[("status", Text("success"))]),
    alias("dynamo_frontend_requests_total", Count(Counter::RequestsFailed))
        .with(&[("status", Not(&["success"]))]),
    alias("dynamo_frontend_output_tokens_total", Count(Counter::OutputTokens)),
    alias("dynamo_frontend_model_migration_total", Count(Counter::Migrations)),
    alias("dynamo_frontend_inflight_requests", Value(Gauge::InFlightRequests)),
    alias("dynamo_frontend_queued_requests", Value(Gauge::HttpQueuedRequests)),
    alias("dynamo_frontend_awaiting_first_token_requests", Value(Gauge::HttpQueuedRequests)).rank(1),
    alias("dynamo_frontend_router_queue_pending_requests", Value(Gauge::RouterQueuedRequests)),
    alias("dynamo_frontend_router_queue_pending_isl_tokens", Value(Gauge::RouterQueuedTokens)),
    alias("dynamo_frontend_router_queue_pending_requests", Queue(QueueValue::Requests)),
    alias("dynamo_frontend_router_queue_pending_isl_tokens", Queue(QueueValue::PromptTokens)),
    alias("dynamo_frontend_router_queue_pending_requests", Class(ClassValue::QueuedRequests)),
    alias("dynamo_frontend_router_queue_pending_isl_tokens", Class(ClassValue::QueuedTokens)),
    alias("dynamo_frontend_router_admission_received_total", Class(ClassValue::Received)),
    alias("dynamo_frontend_router_admission_rejected_total", Class(ClassValue::Refused)),
    alias("dynamo_frontend_router_queue_backpressure_total", Class(ClassValue::Refused)),
    alias("dynamo_frontend_time_to_first_token_seconds", Histogram(HistogramKind::Ttft)),
    alias("dynamo_frontend_inter_token_latency_seconds", Histogram(HistogramKind::Itl)),
    alias("dynamo_frontend_request_duration_seconds", Histogram(HistogramKind::Duration)),
    alias("dynamo_frontend_input_sequence_tokens", Histogram(HistogramKind::InputTokens)),
    alias("dynamo_frontend_output_sequence_tokens", Histogram(HistogramKind::OutputTokens)),
    alias("dynamo_frontend_cached_tokens", Histogram(HistogramKind::CachedTokens)),
    // A frontend's metrics of models and workers.
    alias("dynamo_frontend_model_kv_cache_block_size", Model(ModelValue::BlockSize)),
    alias("dynamo_frontend_model_total_kv_blocks", Model(ModelValue::TotalBlocks)),
    alias("dynamo_frontend_model_max_num_seqs", Model(ModelValue::MaxSeqs)),
    alias("dynamo_frontend_model_max_num_batched_tokens", Model(ModelValue::MaxBatchedTokens)),
    alias("dynamo_frontend_model_context_length", Model(ModelValue::ContextLength)),
    alias("dynamo_frontend_worker_active_decode_blocks", Worker(WorkerValue::DecodeBlocks)),
    alias("dynamo_frontend_worker_active_prefill_tokens", Worker(WorkerValue::PrefillTokens)),
    alias("dynamo_frontend_worker_active_requests", Worker(WorkerValue::ActiveRequests)),
    alias("dynamo_component_router_worker_registered", Worker(WorkerValue::Registered)),
    alias("dynamo_frontend_router_worker_state", State),
    alias("dynamo_frontend_router_workers", Discovered).with(&[("state", Text("discovered"))]),
    // A router's KV events; the second name is the standalone indexer's.
    alias("dynamo_component_kv_cache_events_applied", Count(Counter::StoredOk)).with(STORED_OK),
    alias("dynamo_component_kv_cache_events_applied", Count(Counter::StoredParentUnknown))
        .with(STORED_NO_PARENT),
    alias("dynamo_component_kv_cache_events_applied", Count(Counter::StoredOther)).with(STORED_OTHER),
    alias("dynamo_component_kv_cache_events_applied", Count(Counter::RemovedOk)).with(REMOVED_OK),
    alias("dynamo_component_kv_cache_events_applied", Count(Counter::RemovedUnknown)).with(REMOVED_UNKNOWN),
    alias("dynamo_component_kv_cache_events_applied", Count(Counter::RemovedOther)).with(REMOVED_OTHER),
    alias("dynamo_component_kv_cache_events_applied", Count(Counter::Cleared)).with(CLEARED),
    alias("dynamo_kvrouter_kv_cache_events_applied", Count(Counter::StoredOk)).with(STORED_OK).rank(1),
    alias("dynamo_kvrouter_kv_cache_events_applied", Count(Counter::StoredParentUnknown))
        .with(STORED_NO_PARENT)
        .rank(1),
    alias("dynamo_kvrouter_kv_cache_events_applied", Count(Counter::StoredOther)).with(STORED_OTHER).rank(1),
    alias("dynamo_kvrouter_kv_cache_events_applied", Count(Counter::RemovedOk)).with(REMOVED_OK).rank(1),
    alias("dynamo_kvrouter_kv_cache_events_applied", Count(Counter::RemovedUnknown))
        .with(REMOVED_UNKNOWN)
        .rank(1),
    alias("dynamo_kvrouter_kv_cache_events_applied", Count(Counter::RemovedOther))
        .with(REMOVED_OTHER)
        .rank(1),
    alias("dynamo_kvrouter_kv_cache_events_applied", Count(Counter::Cleared)).with(CLEARED).rank(1),
    alias("dynamo_component_kv_cache_event_warnings", Count(Counter::DuplicateStores))
        .with(&[("warning_kind", Text("duplicate_store"))]),
    alias(
        "dynamo_component_router_kv_event_source_mismatch_workers",
        Value(Gauge::EventSourceMismatchWorkers),
    ),
    // A router's choices.
    alias(
        "dynamo_component_router_kv_best_eligible_cached_prefix_tokens_total",
        Count(Counter::BestPrefixTokens),
    )
    .with(NOT_DECODE),
    alias(
        "dynamo_component_router_kv_selected_cached_prefix_tokens_total",
        Count(Counter::SelectedPrefixTokens),
    )
    .with(NOT_DECODE),
    alias("dynamo_component_router_kv_worker_reused_tokens_total", Count(Counter::ReusedTokens))
        .with(NOT_DECODE),
    alias("dynamo_component_router_requests_total", Count(Counter::RoutedRequests)),
    alias("dynamo_component_router_shared_cache_hit_rate_count", Count(Counter::SharedCacheLookups)),
    alias("dynamo_component_router_kv_hit_rate", Histogram(HistogramKind::HitRate)),
    alias("dynamo_router_overhead_total_ms", Histogram(HistogramKind::RouterOverheadMs)),
    alias("dynamo_component_router_time_to_first_token_seconds", Histogram(HistogramKind::Ttft)).rank(1),
    alias("dynamo_component_router_inter_token_latency_seconds", Histogram(HistogramKind::Itl)).rank(1),
    alias("dynamo_component_router_input_sequence_tokens", Histogram(HistogramKind::InputTokens))
        .with(NOT_DECODE)
        .rank(1),
    alias("dynamo_component_router_output_sequence_tokens", Histogram(HistogramKind::OutputTokens)).rank(1),
    // A worker's handler and publisher.
    alias("dynamo_component_uptime_seconds", Value(Gauge::UptimeSeconds)),
    alias("dynamo_component_requests_total", Count(Counter::HandledRequests)).with(GENERATE),
    alias("dynamo_component_inflight_requests", Value(Gauge::InFlightRequests)).with(GENERATE).rank(1),
    alias("dynamo_component_request_duration_seconds", Histogram(HistogramKind::Duration))
        .with(GENERATE)
        .rank(1),
    alias("dynamo_component_kv_publisher_zmq_events_total", Count(Counter::PublisherReceived))
        .with(&[("stage", Text("received"))]),
    alias("dynamo_component_kv_publisher_zmq_events_total", Count(Counter::PublisherAccepted))
        .with(&[("stage", Text("accepted"))]),
    alias("dynamo_component_kv_publisher_zmq_suspicious_events_total", Count(Counter::PublisherSuspicious))
        .with(&[("reason", Text("empty_store_blocks"))]),
    alias("dynamo_component_kv_publisher_engines_dropped_events_total", Count(Counter::EngineDroppedEvents)),
    // A worker's admission gate; the first names are those of 1.7, the second of 1.3 to 1.6. Engines' own figures come first.
    alias("dynamo_backend_admission_request_queue_count", Value(Gauge::AdmissionQueuedRequests)),
    alias("dynamo_request_queue", Value(Gauge::AdmissionQueuedRequests)).rank(1),
    alias("dynamo_backend_admission_engine_request_count", Value(Gauge::EngineRunningRequests)).rank(1),
    alias("dynamo_backend_admission_engine_request_waiting_count", Value(Gauge::EngineWaitingRequests))
        .rank(1),
    // A worker's cache, as Dynamo passes it on; the percentage is a fraction.
    alias("dynamo_component_gpu_cache_usage_percent", Rank(RankValue::Usage)),
    alias("dynamo_component_total_blocks", Rank(RankValue::TotalBlocks)),
    alias("dynamo_component_kvstats_gpu_cache_usage_percent", Rank(RankValue::Usage)).rank(1),
    alias("dynamo_component_kvstats_total_blocks", Rank(RankValue::TotalBlocks)).rank(1),
    alias("dynamo_component_kvstats_active_blocks", Rank(RankValue::UsedBlocks)),
    // vLLM; the second names are those of its first engine.
    alias("vllm:num_requests_running", Value(Gauge::EngineRunningRequests)).with(OWN),
    alias("vllm:num_requests_waiting", Value(Gauge::EngineWaitingRequests)).with(OWN),
    alias("vllm:kv_cache_usage_perc", Rank(RankValue::Usage)).rank(2),
    alias("vllm:gpu_cache_usage_perc", Rank(RankValue::Usage)).rank(3),
    alias("vllm:prefix_cache_queries_total", Count(Counter::EnginePrefixQueries)),
    alias("vllm:prefix_cache_hits_total", Count(Counter::EnginePrefixHits)),
    alias("vllm:gpu_prefix_cache_queries_total", Count(Counter::EnginePrefixQueries)).rank(1).with(OWN),
    alias("vllm:gpu_prefix_cache_hits_total", Count(Counter::EnginePrefixHits)).rank(1).with(OWN),
    alias("vllm:time_to_first_token_seconds", Histogram(HistogramKind::Ttft)).rank(2),
    alias("vllm:inter_token_latency_seconds", Histogram(HistogramKind::Itl)).rank(2),
    alias("vllm:time_per_output_token_seconds", Histogram(HistogramKind::Itl)).rank(3),
    // SGLang.
    alias("sglang:num_running_reqs", Value(Gauge::EngineRunningRequests)),
    alias("sglang:num_queue_reqs", Value(Gauge::EngineWaitingRequests)),
    alias("sglang:token_usage", Rank(RankValue::Usage)).rank(2),
    alias("sglang:prompt_tokens_total", Count(Counter::EnginePrefixQueries)),
    alias("sglang:cached_tokens_total", Count(Counter::EnginePrefixHits)),
    alias("sglang:time_to_first_token_seconds", Histogram(HistogramKind::Ttft)).rank(2),
    alias("sglang:inter_token_latency_seconds", Histogram(HistogramKind::Itl)).rank(2),
    // TensorRT-LLM; Dynamo puts the prefix before the names (up to 0.7 with a colon).
    alias("trtllm_kv_cache_utilization", Rank(RankValue::Usage)).rank(2),
    alias("trtllm_kv_cache_used_blocks", Rank(RankValue::UsedBlocks)).rank(1),
    alias("trtllm_kv_cache_max_blocks", Rank(RankValue::TotalBlocks)).rank(2),
    alias("vllm:cache_config_info", Rank(RankValue::TotalBlocksInLabel)).rank(3),
    alias("trtllm_time_to_first_token_seconds", Histogram(HistogramKind::Ttft)).rank(2),
    alias("trtllm_time_per_output_token_seconds", Histogram(HistogramKind::Itl)).rank(2),
    // The router of production-stack. Requests that failed before they had an engine are in no histogram.
    alias("vllm:num_incoming_requests_total", Count(Counter::ReceivedRequests)),
    alias("vllm:request_latency_seconds_count", Count(Counter::RequestsOk))
        .with(&[("status", Text("success"))]),
    alias("vllm:request_latency_seconds_count", Count(Counter::RequestsFailed))
        .with(&[("status", Not(&["success"]))]),
    alias("vllm:request_latency_seconds", Histogram(HistogramKind::Duration)).with(OF_SERVER),
    alias("vllm:num_requests_running", Server(ServerValue::Requests)).with(OF_SERVER),
    alias("vllm:healthy_pods_total", Server(ServerValue::IsHealthy)).with(OF_SERVER),
    // AIBrix' gateway plugin. Any gateway may have the first four names.
    alias("gateway_request_total", Count(Counter::ReceivedRequests)).rank(AIBRIX_ONLY),
    alias("gateway_request_model_success_total", Count(Counter::RequestsOk)).rank(AIBRIX_ONLY),
    alias("gateway_request_model_fail_total", Count(Counter::RequestsFailed)).rank(AIBRIX_ONLY),
    alias("gateway_output_tokens_total", Count(Counter::OutputTokens)).rank(AIBRIX_ONLY),
    alias("aibrix_prefix_cache_routing_selection_total", Count(Counter::ChosenByPrefix))
        .with(CHOSEN_BY_PREFIX),
    alias("aibrix_prefix_cache_routing_selection_total", Count(Counter::PrefixSkipped)).with(PREFIX_SKIPPED),
    alias("aibrix_prefix_cache_routing_selection_total", Count(Counter::NoPrefix)).with(NO_PREFIX),
    alias("aibrix_prefix_cache_routing_errors_total", Count(Counter::ChoicesFailed)),
    alias("aibrix_prefix_cache_load_imbalance_total", Count(Counter::LoadsUnbalanced)),
    alias("aibrix_prefix_cache_routing_decisions_total", Count(Counter::MatchedNothing))
        .with(&[(MATCHED, Text("0"))]),
    alias("aibrix_prefix_cache_routing_decisions_total", Count(Counter::MatchedQuarter))
        .with(&[(MATCHED, Text("1-25"))]),
    alias("aibrix_prefix_cache_routing_decisions_total", Count(Counter::MatchedHalf))
        .with(&[(MATCHED, Text("26-50"))]),
    alias("aibrix_prefix_cache_routing_decisions_total", Count(Counter::MatchedThreeQuarters))
        .with(&[(MATCHED, Text("51-75"))]),
    alias("aibrix_prefix_cache_routing_decisions_total", Count(Counter::MatchedMore))
        .with(&[(MATCHED, Text("76-100"))]),
    alias("aibrix_kvcache_zmq_missed_events_total", Count(Counter::EventsMissed)),
    alias("aibrix_kvcache_zmq_connection_status", Value(Gauge::ConnectedPublishers)),
    alias("aibrix_prefix_cache_indexer_status", Value(Gauge::IndexFollowsEvents)).with(EVENT_INDEX),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_labels_of_a_metric_are_the_same_figure_at_the_same_rank() {
        for (i, one) in ALIASES.iter().enumerate() {
            for other in &ALIASES[i + 1..] {
                let same = one.name == other.name && one.means == other.means;
                assert!(!same, "{} twice", one.name);
            }
        }
    }
}
