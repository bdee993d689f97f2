//! The shapes of Dynamo's messages, 0.9 and 1.6 (reference §2.3, §2.4, §3.1 to §3.3, §8.2): the same fields in the same
//! order, so that the same serialisers give the same bytes. A field that 0.9 does not have is `None` there and left out.
//! Must not know when or where they are published.

use serde::ser::{Serialize, Serializer};

use super::config::{Config, EventTransport};
use super::topology::{Pool, Release};
use radixscope_model::id::Millis;
use radixscope_model::record::Block;
use radixscope_router::Role;

#[derive(serde::Serialize)]
pub(super) struct Envelope<'a> {
    pub(super) publisher_id: u64,
    pub(super) sequence: u64,
    pub(super) published_at: u64,
    pub(super) topic: &'static str,
    pub(super) payload: Bin<'a>,
}

impl<'a> Envelope<'a> {
    pub(super) fn new(
        publisher_id: u64,
        sequence: u64,
        at: Millis,
        topic: &'static str,
        payload: &'a [u8],
    ) -> Self {
        Self { publisher_id, sequence, published_at: at.0, topic, payload: Bin(payload) }
    }
}

/// Bytes as MessagePack `bin`, not as an array of numbers.
pub(super) struct Bin<'a>(&'a [u8]);

impl Serialize for Bin<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

#[derive(serde::Serialize)]
pub(super) struct RouterEvent<'a> {
    pub(super) worker_id: u64,
    /// Where the blocks are (≥ 1.1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) storage_tier: Option<&'static str>,
    /// Whose they are (≥ 1.5).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) residency_domain: Option<&'static str>,
    pub(super) event: KvCacheEvent<'a>,
}

#[derive(serde::Serialize)]
pub(super) struct KvCacheEvent<'a> {
    pub(super) event_id: u64,
    pub(super) data: KvCacheEventData<'a>,
    pub(super) dp_rank: u32,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum KvCacheEventData<'a> {
    Stored {
        parent_hash: Option<u64>,
        /// Place of the first block in its prompt, or nothing (≥ 1.4); host memory reports it.
        #[serde(skip_serializing_if = "Option::is_none")]
        start_position: Option<Option<u32>>,
        blocks: StoredBlocks<'a>,
    },
    /// In 0.9 one event for each evicted block, like the mocker; 1.6 puts neighbours together.
    Removed {
        block_hashes: &'a [u64],
    },
    Cleared,
}

pub(super) struct StoredBlocks<'a>(pub(super) &'a [Block]);

#[derive(serde::Serialize)]
pub(super) struct StoredBlock {
    pub(super) block_hash: u64,
    pub(super) tokens_hash: u64,
    pub(super) mm_extra_info: Option<()>,
}

impl Serialize for StoredBlocks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|block| StoredBlock {
            block_hash: block.block_hash.0,
            tokens_hash: block.tokens_hash.0,
            mm_extra_info: None,
        }))
    }
}

/// An item of the response to a query for a worker's blocks.
#[derive(serde::Serialize)]
pub(super) struct TreeQueryItem<'a> {
    pub(super) data: TreeQueryResponse<'a>,
    pub(super) complete_final: bool,
}

#[derive(serde::Serialize)]
pub(super) enum TreeQueryResponse<'a> {
    TreeDump(TreeDump<'a>),
}

#[derive(serde::Serialize)]
pub(super) struct TreeDump<'a> {
    pub(super) events: Vec<RouterEvent<'a>>,
    pub(super) last_event_id: u64,
    pub(super) reset_scope: &'static str,
}

#[derive(serde::Serialize)]
pub(super) struct KvHitRateEvent {
    pub(super) worker_id: u64,
    pub(super) dp_rank: u32,
    pub(super) isl_blocks: u32,
    pub(super) overlap_blocks: u32,
}

#[derive(serde::Serialize)]
pub(super) struct ActiveLoad {
    pub(super) worker_id: u64,
    pub(super) dp_rank: u32,
    pub(super) active_decode_blocks: Option<u64>,
    pub(super) active_prefill_tokens: Option<u64>,
    /// What a worker's engine uses (≥ 1.0).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kv_used_blocks: Option<u64>,
}

#[derive(serde::Serialize)]
pub(super) struct ActiveSequenceEvent<'a> {
    pub(super) request_id: &'a str,
    pub(super) worker: WorkerWithDpRank,
    pub(super) data: ActiveSequenceEventData<'a>,
    pub(super) router_id: u64,
    /// Adapter of the request, here none (≥ 1.0).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lora_name: Option<()>,
}

#[derive(serde::Serialize)]
pub(super) struct WorkerWithDpRank {
    pub(super) worker_id: u64,
    pub(super) dp_rank: u32,
}

#[derive(serde::Serialize)]
pub(super) enum ActiveSequenceEventData<'a> {
    AddRequest {
        token_sequence: Option<ChainHashes<'a>>,
        isl: u32,
        overlap: u32,
        expected_output_tokens: Option<u32>,
    },
    /// From 1.2 on.
    #[serde(rename = "AddRequest")]
    AddWithHint {
        token_sequence: Option<ChainHashes<'a>>,
        track_prefill_tokens: bool,
        expected_output_tokens: Option<u32>,
        prefill_load_hint: Option<PrefillLoadHint>,
    },
    Free,
    MarkPrefillCompleted,
}

/// Which worker a session is bound to (1.6).
#[derive(serde::Serialize)]
pub(super) struct SessionAffinityEvent<'a> {
    pub(super) session_id: &'a str,
    pub(super) worker_id: u64,
    pub(super) dp_rank: u32,
    pub(super) sequence: u64,
    pub(super) writer_id: u64,
}

#[derive(serde::Serialize)]
pub(super) struct PrefillLoadHint {
    pub(super) initial_effective_prefill_tokens: u64,
    pub(super) expected_prefill_duration: Option<()>,
}

impl<'a> ActiveSequenceEventData<'a> {
    /// A request as the router of `pool` adds it: with its length and overlap in 0.9, from 1.2 on with what is left to
    /// compute. A router that does not follow blocks names none, one that does not follow prompts gives no hint.
    pub(super) fn added(
        pool: &Pool,
        prompt: &'a [Block],
        (isl, overlap): (u32, u32),
        prefill_tokens: u64,
    ) -> Self {
        match pool.release() {
            Release::V0_9 => Self::AddRequest {
                token_sequence: Some(ChainHashes(prompt)),
                isl,
                overlap,
                expected_output_tokens: None,
            },
            Release::V1_6 => Self::AddWithHint {
                token_sequence: (pool.role != Role::Prefill).then_some(ChainHashes(prompt)),
                track_prefill_tokens: pool.role != Role::Decode,
                expected_output_tokens: None,
                prefill_load_hint: (pool.role != Role::Decode).then_some(PrefillLoadHint {
                    initial_effective_prefill_tokens: prefill_tokens,
                    expected_prefill_duration: None,
                }),
            },
        }
    }
}

/// Chain hashes of full blocks.
pub(super) struct ChainHashes<'a>(pub(super) &'a [Block]);

impl Serialize for ChainHashes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|block| block.block_hash.0))
    }
}

/// Discovery value of a model card; what only a tokenizer or a media decoder reads is left out.
#[derive(serde::Serialize)]
pub(super) struct ModelEntry<'a> {
    pub(super) r#type: &'static str,
    pub(super) namespace: &'a str,
    pub(super) component: &'a str,
    pub(super) endpoint: &'static str,
    pub(super) instance_id: u64,
    pub(super) card_json: ModelCard,
}

#[derive(serde::Serialize)]
pub(super) struct ModelCard {
    pub(super) display_name: &'static str,
    pub(super) slug: &'static str,
    pub(super) context_length: u64,
    pub(super) kv_cache_block_size: u32,
    pub(super) migration_limit: u32,
    pub(super) model_type: &'static str,
    pub(super) model_input: &'static str,
    /// What the worker does (1.6).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) worker_type: Option<&'static str>,
    /// Sets of worker types that it needs beside it (1.6).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) needs: Option<&'static [&'static [&'static str]]>,
    pub(super) runtime_config: RuntimeConfig,
}

#[derive(serde::Serialize)]
pub(super) struct RuntimeConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) context_length: Option<u64>,
    pub(super) total_kv_blocks: u32,
    pub(super) max_num_seqs: u32,
    pub(super) max_num_batched_tokens: u32,
    pub(super) tool_call_parser: Option<()>,
    pub(super) reasoning_parser: Option<()>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data_parallel_start_rank: Option<u32>,
    pub(super) data_parallel_size: u32,
    pub(super) enable_local_indexer: bool,
    /// Whether the worker publishes KV events (1.6).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kv_event_publishing_enabled: Option<bool>,
    /// Where a worker that prefills is met by those that decode (1.6).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) disaggregated_endpoint: Option<DisaggregatedEndpoint>,
}

#[derive(serde::Serialize)]
pub(super) struct DisaggregatedEndpoint {
    pub(super) bootstrap_host: &'static str,
    pub(super) bootstrap_port: u32,
}

/// Port at which the first worker that prefills is met; each next one has the next.
const BOOTSTRAP_PORT: u32 = 6_001;

/// Most tokens of a request, as in the model card.
pub(super) fn context_length(config: &Config) -> u64 {
    config.workload.longest_request_tokens().next_power_of_two()
}

impl<'a> ModelEntry<'a> {
    pub(super) fn new(pool: &'a Pool, worker: u16, instance_id: u64) -> Self {
        let config = &pool.config;
        Self {
            r#type: "Model",
            namespace: &config.namespace,
            component: &config.component,
            endpoint: "generate",
            instance_id,
            card_json: match pool.release() {
                Release::V0_9 => ModelCard::of_0_9(pool, worker),
                Release::V1_6 => ModelCard::of_1_6(pool, worker),
            },
        }
    }
}

impl ModelCard {
    fn of_0_9(pool: &Pool, worker: u16) -> Self {
        let config = &pool.config;
        Self {
            display_name: pool.model.display_name,
            slug: pool.model.slug,
            context_length: context_length(config),
            kv_cache_block_size: config.block_size_tokens,
            migration_limit: 0,
            model_type: "Chat | Completions",
            model_input: "Tokens",
            worker_type: None,
            needs: None,
            runtime_config: RuntimeConfig {
                context_length: None,
                total_kv_blocks: config.engine_blocks(),
                max_num_seqs: config.max_batch,
                max_num_batched_tokens: config.max_num_tokens,
                tool_call_parser: None,
                reasoning_parser: None,
                data_parallel_start_rank: None,
                data_parallel_size: 1,
                enable_local_indexer: config.event_transport(worker) == EventTransport::LocalIndexer,
                kv_event_publishing_enabled: None,
                disaggregated_endpoint: None,
            },
        }
    }

    fn of_1_6(pool: &Pool, worker: u16) -> Self {
        let mut card = Self::of_0_9(pool, worker);
        let needs: &[&[&str]] = match pool.role {
            Role::Prefill => &[&["decode"]],
            Role::Decode => &[&["prefill"]],
            Role::Aggregated => &[],
        };
        (card.worker_type, card.needs) = (Some(pool.card_type()), Some(needs));
        if pool.role == Role::Prefill {
            card.model_type = "";
            let bootstrap_port = BOOTSTRAP_PORT + u32::from(worker);
            card.runtime_config.disaggregated_endpoint =
                Some(DisaggregatedEndpoint { bootstrap_host: "127.0.0.1", bootstrap_port });
        }
        let publishes = pool.publishes_events();
        card.runtime_config = RuntimeConfig {
            context_length: Some(card.context_length),
            data_parallel_start_rank: Some(0),
            enable_local_indexer: publishes,
            kv_event_publishing_enabled: Some(publishes),
            ..card.runtime_config
        };
        card
    }
}
