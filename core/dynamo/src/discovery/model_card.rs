//! Model cards: what a worker serves and how large its cache is (reference §8.2).

use super::{entry_type, or_nothing};
use crate::error::{DecodeError, Reason};
use crate::wire::{Fault, InField, Json, Kind, Wire, once, required};
use radixscope_model::id::WorkerId;
use radixscope_model::record::{Role, Topic};

/// Most names in `needs`; Dynamo's own cards have one.
const MAX_NEEDS: usize = 64;

/// A worker's model card: what it serves, and the size of its cache. `None`: the card does not say.
#[derive(Clone, PartialEq, Eq, Debug)]
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
}

/// `runtime_config` of a model card. `None`: the card does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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
        let words = |fault: Fault| fault.into_error(Topic::Discovery.as_str());
        if entry_type(&mut Json::new(value)).map_err(words)? != b"Model" {
            return Ok(None);
        }
        card_value(&mut Json::new(value)).map(Some).map_err(words)
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

pub(super) fn card_value<'a, W: Wire<'a>>(wire: &mut W) -> Result<ModelCard, Fault> {
    let (mut instance_id, mut namespace, mut component, mut endpoint) = (None, None, None, None);
    let (mut card, mut adapter) = (None, None);
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        let at = wire.at();
        match key {
            b"instance_id" => once(&mut instance_id, wire.u64().field("instance_id")?, "instance_id", at)?,
            b"namespace" => once(&mut namespace, wire.text().field("namespace")?, "namespace", at)?,
            b"component" => once(&mut component, wire.text().field("component")?, "component", at)?,
            b"endpoint" => once(&mut endpoint, wire.text().field("endpoint")?, "endpoint", at)?,
            b"card_json" => once(&mut card, card_json(wire).field("card_json")?, "card_json", at)?,
            b"model_suffix" => {
                let suffix = wire.optional(|wire| wire.text()).field("model_suffix")?;
                once(&mut adapter, suffix.unwrap_or_default(), "model_suffix", at)?;
            }
            _ => wire.skip()?,
        }
    }
    let card = required(card, "card_json", 0)?;
    Ok(ModelCard {
        instance_id: WorkerId(required(instance_id, "instance_id", 0)?),
        namespace: required(namespace, "namespace", 0)?.into_owned(),
        component: required(component, "component", 0)?.into_owned(),
        endpoint: endpoint.unwrap_or_default().into_owned(),
        display_name: card.display_name.unwrap_or_default(),
        adapter: adapter.map(|adapter| adapter.into_owned()).filter(|adapter| !adapter.is_empty()),
        block_size_tokens: card.block_size_tokens,
        worker_type: card.worker_type,
        model_type: card.model_type,
        needs: card.needs,
        runtime: card.runtime,
    })
}

#[derive(Default)]
struct CardJson {
    display_name: Option<String>,
    block_size_tokens: Option<u32>,
    worker_type: Option<String>,
    model_type: Option<String>,
    needs: Vec<Role>,
    runtime: RuntimeConfig,
}

fn card_json<'a, W: Wire<'a>>(wire: &mut W) -> Result<CardJson, Fault> {
    let mut card = CardJson::default();
    let string = |wire: &mut W| wire.text().map(|text| text.into_owned());
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        match key {
            b"display_name" => card.display_name = wire.optional(string).field("display_name")?,
            b"kv_cache_block_size" => {
                card.block_size_tokens = wire.optional(W::u32).field("kv_cache_block_size")?;
            }
            b"worker_type" => card.worker_type = wire.optional(string).field("worker_type")?,
            b"model_type" => card.model_type = model_type(wire).field("model_type")?,
            b"needs" => card.needs = or_nothing(wire, needs)?,
            b"runtime_config" => {
                card.runtime = wire.optional(runtime_config).field("runtime_config")?.unwrap_or_default();
            }
            _ => wire.skip()?,
        }
    }
    Ok(card)
}

/// A text. Another form contains no role, and is no reason to reject the card.
fn model_type<'a, W: Wire<'a>>(wire: &mut W) -> Result<Option<String>, Fault> {
    if wire.kind()? == Kind::Text {
        wire.text().map(|text| Some(text.into_owned()))
    } else {
        wire.skip().map(|()| None)
    }
}

/// `[["prefill"]]`: sets of which one is enough. All have the same role in them so far.
fn needs<'a, W: Wire<'a>>(wire: &mut W) -> Result<Vec<Role>, Fault> {
    let (mut roles, mut names) = (Vec::new(), 0);
    let mut sets = wire.array()?;
    while wire.next_element(&mut sets)? {
        let mut set = wire.array()?;
        while wire.next_element(&mut set)? {
            names += 1;
            if names > MAX_NEEDS {
                return Err(Fault::new(Reason::TooLarge, "more than 64 names", wire.at()));
            }
            let role = Role::of(&wire.text()?);
            roles.extend(role.filter(|role| !roles.contains(role)));
        }
    }
    Ok(roles)
}

fn runtime_config<'a, W: Wire<'a>>(wire: &mut W) -> Result<RuntimeConfig, Fault> {
    let mut config = RuntimeConfig::default();
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        match key {
            b"total_kv_blocks" => config.total_kv_blocks = wire.optional(W::u64).field("total_kv_blocks")?,
            b"max_num_seqs" => config.max_num_seqs = wire.optional(W::u64).field("max_num_seqs")?,
            b"max_num_batched_tokens" => {
                config.max_num_batched_tokens = wire.optional(W::u64).field("max_num_batched_tokens")?;
            }
            b"data_parallel_size" => {
                config.data_parallel_size = wire.optional(W::u32).field("data_parallel_size")?;
            }
            b"data_parallel_start_rank" => {
                config.data_parallel_start_rank = wire.optional(W::u32).field("data_parallel_start_rank")?;
            }
            b"enable_local_indexer" => {
                config.enable_local_indexer = wire.optional(W::bool).field("enable_local_indexer")?;
            }
            b"kv_event_publishing_enabled" => {
                let declared = wire.optional(W::bool).field("kv_event_publishing_enabled")?;
                config.kv_event_publishing_enabled = declared;
            }
            _ => wire.skip()?,
        }
    }
    Ok(config)
}
