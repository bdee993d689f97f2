//! `kv_metrics`: active load, and whose word it is (reference §3.2). Not the prefix cache's content.

use super::envelope::Format;
use super::error::DecodeError;
use super::wire::{Fault, InField, Json, MsgPack, Wire, once, required};
use radixscope_model::id::Worker;
use radixscope_model::record::Topic;

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
        match format {
            Format::Json => read(&mut Json::new(body)),
            Format::MsgPack => read(&mut MsgPack::new(body)),
        }
        .map_err(|fault| fault.into_error(Topic::KvMetrics.as_str()))
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

fn read<'a, W: Wire<'a>>(wire: &mut W) -> Result<ActiveLoad, Fault> {
    let (mut worker_id, mut dp_rank, mut decode, mut prefill, mut used) = (None, None, None, None, None);
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        let at = wire.at();
        match key {
            b"worker_id" => once(&mut worker_id, wire.u64().field("worker_id")?, "worker_id", at)?,
            b"dp_rank" => once(&mut dp_rank, wire.optional(W::u32).field("dp_rank")?, "dp_rank", at)?,
            b"active_decode_blocks" => {
                let value = wire.optional(W::u64).field("active_decode_blocks")?;
                once(&mut decode, value, "active_decode_blocks", at)?;
            }
            b"active_prefill_tokens" => {
                let value = wire.optional(W::u64).field("active_prefill_tokens")?;
                once(&mut prefill, value, "active_prefill_tokens", at)?;
            }
            b"kv_used_blocks" => {
                once(&mut used, wire.optional(W::u64).field("kv_used_blocks")?, "kv_used_blocks", at)?;
            }
            _ => wire.skip()?,
        }
    }
    wire.end()?;
    Ok(ActiveLoad {
        worker: Worker::new(required(worker_id, "worker_id", 0)?, dp_rank.flatten().unwrap_or(0)),
        active_decode_blocks: decode.flatten(),
        active_prefill_tokens: prefill.flatten(),
        kv_used_blocks: used.flatten(),
    })
}
