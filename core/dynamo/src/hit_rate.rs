//! `kv-hit-rate`: a routing decision as 0.8 and 0.9 tell it (reference §3.1). Knows only the chosen worker.

use super::envelope::Format;
use super::error::DecodeError;
use super::typed;
use radixscope_model::id::Worker;
use radixscope_model::record::Topic;
use serde::Deserialize;

/// One selection of the router, also of a query that runs nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HitRate {
    /// The worker chosen.
    pub worker: Worker,
    /// Length of the prompt in blocks, rounded up.
    pub isl_blocks: u64,
    /// Full blocks of the prompt that the chosen worker held already.
    pub overlap_blocks: u64,
}

impl HitRate {
    /// Reads the payload of a `kv-hit-rate` message.
    ///
    /// # Errors
    /// The first thing that was not understood.
    pub fn decode(body: &[u8], format: Format) -> Result<Self, DecodeError> {
        let message: Message = typed::decode(Topic::KvHitRate.as_str(), body, format)?;
        Ok(Self {
            worker: Worker::new(message.worker_id, message.dp_rank.unwrap_or(0)),
            isl_blocks: message.isl_blocks,
            overlap_blocks: message.overlap_blocks,
        })
    }
}

#[derive(Deserialize)]
struct Message {
    worker_id: u64,
    dp_rank: Option<u32>,
    isl_blocks: u64,
    overlap_blocks: u64,
}
