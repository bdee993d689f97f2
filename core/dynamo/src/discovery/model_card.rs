//! Model cards: what a worker serves and how large its cache is (reference §8.2).

use std::borrow::Cow;

use super::{entry_type, read_value};
use crate::error::DecodeError;
use crate::typed::{TextOrOther, or_default};
use radixscope_model::id::WorkerId;
use radixscope_model::record::{Role, RouterNumbers};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Most names in `needs`; Dynamo's own cards have one.
const MAX_NEEDS: usize = 64;

/// A worker's model card: what it serves, and the size of its cache. `None`: the card does not say.
#[derive(Clone, PartialEq, Debug)]
pub struct ModelCard {
    /// The worker process.
    pub instance_id: WorkerId,
    /// Dynamo namespace.
    pub namespace: String,
    /// Dynamo component.
    pub component: String,
    /// Dynamo endpoint.
    pub endpoint: String,
    /// What users call the model.
    pub display_name: String,
    /// The adapter that the card is of, as its key names it: a worker has one card for its model and one for each adapter.
    pub adapter: Option<String>,
    /// Tokens per block that the router uses.
    pub block_size_tokens: Option<u32>,
    /// `aggregated`, `prefill`, `decode` … (1.6).
    pub worker_type: Option<String>,
    /// What it takes, of which only `Prefill` shows its role (0.9 to 1.0); `Chat | Completions` … elsewhere, empty on a
    /// prefill worker of 1.6.
    pub model_type: Option<String>,
    /// Roles of the workers without which it cannot serve (1.6): a decode worker needs prefill workers and the other way
    /// round. Empty: none, or the card does not say.
    pub needs: Vec<Role>,
    /// What the engine was started with.
    pub runtime: RuntimeConfig,
    /// Settings of the router of these workers, where they advertise them (≥ 1.6): they override the frontend's. Seen of 1.6.1 and
    /// 1.7.0.dev20261026 where the workers have `--router-mode kv`.
    pub router: Option<RouterNumbers>,
}

/// `runtime_config` of a model card. `None`: the card does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
pub struct RuntimeConfig {
    /// Blocks that the KV cache holds per rank.
    pub total_kv_blocks: Option<u64>,
    /// Most requests running at once.
    pub max_num_seqs: Option<u64>,
    /// Most tokens in one forward pass.
    pub max_num_batched_tokens: Option<u64>,
    /// Data-parallel ranks; Dynamo's default is 1.
    pub data_parallel_size: Option<u32>,
    /// The first of these ranks (≥ 1.0); Dynamo's default is 0.
    pub data_parallel_start_rank: Option<u32>,
    /// Whether KV events go through the worker's own indexer; in 0.8 and 0.9 that means not through JetStream.
    pub enable_local_indexer: Option<bool>,
    /// Whether the worker publishes KV events at all (1.6; absent: a worker that does not declare it).
    pub kv_event_publishing_enabled: Option<bool>,
}

impl ModelCard {
    /// Reads a value of discovery (etcd, file or custom resource); `None` if it is not a model card.
    ///
    /// # Errors
    /// The first thing that was not understood.
    pub fn decode(value: &[u8]) -> Result<Option<Self>, DecodeError> {
        if entry_type(value)? != "Model" {
            return Ok(None);
        }
        read_value(value).map(Some)
    }
}

impl ModelCard {
    /// What the worker does, by its card: `worker_type` (1.6), else a `model_type` of `Prefill` (0.9). `None`: it
    /// does not say, as the card of a decode worker of 0.9, which is that of an aggregated one.
    pub fn role(&self) -> Option<Role> {
        match self.worker_type.as_deref() {
            Some(worker_type) => Role::of(worker_type),
            None => self.model_type.as_deref().and_then(Role::of).filter(|role| *role == Role::Prefill),
        }
    }
}

impl<'de> Deserialize<'de> for ModelCard {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Fields<'a> {
            instance_id: u64,
            namespace: String,
            component: String,
            endpoint: Option<String>,
            model_suffix: Option<String>,
            #[serde(borrow)]
            card_json: Card<'a>,
        }
        #[derive(Deserialize)]
        struct Card<'a> {
            display_name: Option<String>,
            kv_cache_block_size: Option<u32>,
            worker_type: Option<String>,
            /// A text. Another form contains no role, and is no reason to reject the card.
            #[serde(borrow)]
            model_type: Option<TextOrOther<'a>>,
            #[serde(borrow)]
            needs: Option<&'a RawValue>,
            runtime_config: Option<RuntimeConfig>,
            /// Of another form it says nothing, and is no reason to reject the card.
            #[serde(borrow)]
            router_config: Option<&'a RawValue>,
        }
        #[derive(Deserialize, Default)]
        struct RouterConfig {
            kv_router_config: Option<RouterNumbers>,
        }
        let Fields { instance_id, namespace, component, endpoint, model_suffix, card_json: card } =
            Fields::deserialize(from)?;
        Ok(Self {
            instance_id: WorkerId(instance_id),
            namespace,
            component,
            endpoint: endpoint.unwrap_or_default(),
            display_name: card.display_name.unwrap_or_default(),
            adapter: model_suffix.filter(|adapter| !adapter.is_empty()),
            block_size_tokens: card.kv_cache_block_size,
            worker_type: card.worker_type,
            model_type: card.model_type.and_then(TextOrOther::text).map(Cow::into_owned),
            needs: needs(card.needs),
            runtime: card.runtime_config.unwrap_or_default(),
            router: or_default::<RouterConfig>(card.router_config)
                .kv_router_config
                .filter(|of| !of.is_empty()),
        })
    }
}

/// `[["prefill"]]`: sets of which one is enough. All have the same role in them so far.
fn needs(json: Option<&RawValue>) -> Vec<Role> {
    let sets: Vec<Vec<Cow<'_, str>>> = or_default(json);
    let names = || sets.iter().flatten();
    let mut roles = Vec::new();
    if names().count() <= MAX_NEEDS {
        for role in names().filter_map(|name| Role::of(name)) {
            if !roles.contains(&role) {
                roles.push(role);
            }
        }
    }
    roles
}
