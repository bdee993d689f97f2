//! `kv_metrics`: active load, and whose word it is (reference §3.2). Not the prefix cache's content.

use super::envelope::Format;
use super::error::DecodeError;
use super::typed;
use radixscope_model::id::Worker;
use radixscope_model::record::Topic;
use serde::Deserialize;

/// A message of `kv_metrics`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ActiveLoad {
    /// Whose load.
    pub worker: Worker,
    /// The router's estimate, or, of a worker before 1.2, blocks in use in the engine.
    pub active_decode_blocks: Option<u64>,
    /// Tokens routed but not prefilled yet; only routers set it.
    pub active_prefill_tokens: Option<u64>,
    /// Blocks in use in the engine (≥ 1.1).
    pub kv_used_blocks: Option<u64>,
}

/// The publisher of an [`ActiveLoad`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadOrigin {
    /// The worker: the truth about its engine.
    Engine {
        /// Blocks in use by running requests.
        used_blocks: u64,
    },
    /// A router: its estimate.
    Router {
        /// Blocks of active sequences.
        decode_blocks: Option<u64>,
        /// Prompt tokens whose prefill is not done.
        prefill_tokens: Option<u64>,
    },
    /// All fields are null: no data.
    Nothing,
}

impl ActiveLoad {
    /// Reads the payload of a `kv_metrics` message.
    ///
    /// # Errors
    /// The first thing that was not understood.
    pub fn decode(body: &[u8], format: Format) -> Result<Self, DecodeError> {
        let message: Message = typed::decode(Topic::KvMetrics.as_str(), body, format)?;
        Ok(Self {
            worker: Worker::new(message.worker_id, message.dp_rank.unwrap_or(0)),
            active_decode_blocks: message.active_decode_blocks,
            active_prefill_tokens: message.active_prefill_tokens,
            kv_used_blocks: message.kv_used_blocks,
        })
    }

    /// Whose word this is, on all lines of Dynamo; `publisher_id` is the envelope's, which 0.8 does not have.
    ///
    /// Only workers set `kv_used_blocks`, and only routers set `active_prefill_tokens`. Between them the
    /// publisher decides no more than this: up to 0.9 a worker publishes under its own id, so what a worker says
    /// of itself is never an estimate.
    pub fn origin(&self, publisher_id: Option<u64>) -> LoadOrigin {
        let of_itself = publisher_id == Some(self.worker.id.0);
        match (self.kv_used_blocks, self.active_prefill_tokens, self.active_decode_blocks) {
            (Some(used_blocks), _, _) => LoadOrigin::Engine { used_blocks },
            (None, None, None) => LoadOrigin::Nothing,
            (None, None, Some(used_blocks)) => LoadOrigin::Engine { used_blocks },
            (None, Some(_), Some(used_blocks)) if of_itself => LoadOrigin::Engine { used_blocks },
            (None, Some(_), None) if of_itself => LoadOrigin::Nothing,
            (None, prefill_tokens, decode_blocks) => LoadOrigin::Router { decode_blocks, prefill_tokens },
        }
    }
}

#[derive(Deserialize)]
struct Message {
    worker_id: u64,
    dp_rank: Option<u32>,
    active_decode_blocks: Option<u64>,
    active_prefill_tokens: Option<u64>,
    kv_used_blocks: Option<u64>,
}
