//! The shapes of Dynamo 0.9's messages (reference §2.3, §2.4, §3.1 to §3.3, §8.2): the same fields in the same order,
//! so that the same serialisers give the same bytes. Must not know when or where they are published.

use serde::ser::{Serialize, Serializer};

use super::config::{Config, EventLine};
use radixscope_model::id::Millis;
use radixscope_model::record::Block;

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
        blocks: StoredBlocks<'a>,
    },
    /// Like the mocker: one event for each evicted block.
    Removed {
        block_hashes: [u64; 1],
    },
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
}

#[derive(serde::Serialize)]
pub(super) struct ActiveSequenceEvent<'a> {
    pub(super) request_id: &'a str,
    pub(super) worker: WorkerWithDpRank,
    pub(super) data: ActiveSequenceEventData<'a>,
    pub(super) router_id: u64,
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
    Free,
    MarkPrefillCompleted,
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
    pub(super) runtime_config: RuntimeConfig,
}

#[derive(serde::Serialize)]
pub(super) struct RuntimeConfig {
    pub(super) total_kv_blocks: u32,
    pub(super) max_num_seqs: u32,
    pub(super) max_num_batched_tokens: u32,
    pub(super) tool_call_parser: Option<()>,
    pub(super) reasoning_parser: Option<()>,
    pub(super) data_parallel_size: u32,
    pub(super) enable_local_indexer: bool,
}

/// Name of the model as its card writes it.
pub(super) const DISPLAY_NAME: &str = "simulated/Llama-70B-FP8";

/// Most tokens of a request, as the model card tells it.
pub(super) fn context_length(config: &Config) -> u64 {
    config.workload.longest_request_tokens().next_power_of_two()
}

impl<'a> ModelEntry<'a> {
    pub(super) fn new(config: &'a Config, worker: u16, instance_id: u64) -> Self {
        Self {
            r#type: "Model",
            namespace: &config.namespace,
            component: &config.component,
            endpoint: "generate",
            instance_id,
            card_json: ModelCard {
                display_name: DISPLAY_NAME,
                slug: "simulated_llama-70b-fp8",
                context_length: context_length(config),
                kv_cache_block_size: config.block_size_tokens,
                migration_limit: 0,
                model_type: "Chat | Completions",
                model_input: "Tokens",
                runtime_config: RuntimeConfig {
                    total_kv_blocks: config.engine_blocks(),
                    max_num_seqs: config.max_batch,
                    max_num_batched_tokens: config.max_num_tokens,
                    tool_call_parser: None,
                    reasoning_parser: None,
                    data_parallel_size: 1,
                    enable_local_indexer: config.event_line(worker) == EventLine::LocalIndexer,
                },
            },
        }
    }
}
