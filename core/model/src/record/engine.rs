//! The engines that hold KV caches, below Dynamo's router or without one, and what is known of those that are listened to directly.
//! Knows none of their options.

use serde::{Deserialize, Serialize, Serializer};

use super::LinkState;
use crate::id::{Millis, WorkerIx};

/// An engine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Deserialize)]
pub enum Engine {
    /// `python -m dynamo.vllm`.
    Vllm,
    /// `python -m dynamo.sglang`.
    Sglang,
    /// `python -m dynamo.trtllm`.
    TensorRtLlm,
}

impl Engine {
    /// All, in the order in which they are listed.
    pub const ALL: [Self; 3] = [Self::Vllm, Self::Sglang, Self::TensorRtLlm];

    /// Its name as its authors write it.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Vllm => "vLLM",
            Self::Sglang => "SGLang",
            Self::TensorRtLlm => "TensorRT-LLM",
        }
    }
}

/// How an engine writes something that has parts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
pub enum EventForm {
    /// By position.
    Array,
    /// By name.
    Map,
}

/// How an engine writes block hashes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
pub enum HashForm {
    /// As numbers of 64 bits.
    Integer,
    /// As whole digests, of which the last 64 bits count.
    Bytes,
    /// Some so and some so.
    Mixed,
}

/// What became of asking an engine for its latest batches again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum Replay {
    /// No replay endpoint is known.
    #[default]
    None,
    /// It has not been asked yet, or is being asked.
    Waiting,
    /// It sent what it still had, from this number on.
    From(u64),
    /// It had nothing that was missing.
    Nothing,
    /// It did not answer.
    Failed,
}

impl Replay {
    /// Name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Waiting => "waiting",
            Self::From(_) => "from",
            Self::Nothing => "nothing",
            Self::Failed => "failed",
        }
    }
}

/// A publisher of an engine that is listened to directly: one rank. Replaces what was recorded of the same name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EngineFeed {
    /// Where it publishes, `tcp://HOST:PORT`; of one that connects to here its topic or address.
    pub name: String,
    /// What it is, by the command line or its own account.
    pub engine: Option<Engine>,
    /// Its worker; `None`: it has published nothing yet.
    pub worker: Option<WorkerIx>,
    /// Where the connection stands.
    pub link: LinkState,
    /// The same in words, if there is something to say.
    pub detail: String,
    /// Number of its latest batch; up to some seconds old.
    pub last_sequence: Option<u64>,
    /// Batches received, those that were sent again included.
    pub received: u64,
    /// Batches that it sent again.
    pub replayed: u64,
    /// How asking for them went last.
    pub replay: Replay,
    /// Times that it began anew.
    pub restarts: u64,
    /// Tokens of its blocks.
    pub block_size_tokens: Option<u32>,
    /// How it writes batches.
    pub batch_form: Option<EventForm>,
    /// How it writes events.
    pub event_form: Option<EventForm>,
    /// How it writes block hashes.
    pub hash_form: Option<HashForm>,
    /// Events of cache groups that are not counted, of models that mix kinds of attention.
    pub other_groups: u64,
    /// Messages and events that were not understood.
    pub rejected: u64,
    /// The last of them in words.
    pub rejected_sample: String,
    /// When it came.
    pub rejected_ms: Option<Millis>,
}

impl EngineFeed {
    /// Of one that nothing is known of.
    pub fn new(name: impl Into<String>, engine: Option<Engine>) -> Self {
        Self {
            name: name.into(),
            engine,
            worker: None,
            link: LinkState::Connecting,
            detail: String::new(),
            last_sequence: None,
            received: 0,
            replayed: 0,
            replay: Replay::None,
            restarts: 0,
            block_size_tokens: None,
            batch_form: None,
            event_form: None,
            hash_form: None,
            other_groups: 0,
            rejected: 0,
            rejected_sample: String::new(),
            rejected_ms: None,
        }
    }
}

str_names! {
    /// Name in the API.
    EventForm { Array => "array", Map => "map" }
}
str_names! {
    /// Name in the API.
    HashForm { Integer => "integer", Bytes => "bytes", Mixed => "mixed" }
}
