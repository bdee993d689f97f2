//! `kv-hit-rate`: a routing decision as 0.8 and 0.9 tell it (reference §3.1). Knows only the chosen worker.

use super::envelope::Format;
use super::error::DecodeError;
use super::wire::{Fault, InField, Json, MsgPack, Wire, once, required};
use radixscope_model::id::Worker;
use radixscope_model::record::Topic;

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
        match format {
            Format::Json => read(&mut Json::new(body)),
            Format::MsgPack => read(&mut MsgPack::new(body)),
        }
        .map_err(|fault| fault.into_error(Topic::KvHitRate.as_str()))
    }
}

fn read<'a, W: Wire<'a>>(wire: &mut W) -> Result<HitRate, Fault> {
    let (mut worker_id, mut dp_rank, mut isl, mut overlap) = (None, None, None, None);
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        let at = wire.at();
        match key {
            b"worker_id" => once(&mut worker_id, wire.u64().field("worker_id")?, "worker_id", at)?,
            b"dp_rank" => once(&mut dp_rank, wire.optional(W::u32).field("dp_rank")?, "dp_rank", at)?,
            b"isl_blocks" => once(&mut isl, wire.u64().field("isl_blocks")?, "isl_blocks", at)?,
            b"overlap_blocks" => {
                once(&mut overlap, wire.u64().field("overlap_blocks")?, "overlap_blocks", at)?
            }
            _ => wire.skip()?,
        }
    }
    wire.end()?;
    Ok(HitRate {
        worker: Worker::new(required(worker_id, "worker_id", 0)?, dp_rank.flatten().unwrap_or(0)),
        isl_blocks: required(isl, "isl_blocks", 0)?,
        overlap_blocks: required(overlap, "overlap_blocks", 0)?,
    })
}
