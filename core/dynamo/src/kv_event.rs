//! `kv-events`: blocks stored and removed, from 0.8's bare JSON to 1.6's batches (reference §2.3).
//!
//! The hot path: everything of a message goes into flat vectors that are used again for the next one, so that a
//! block costs no allocation. Knows nothing of prefix trees.

use std::ops::Range;

use super::envelope::Format;
use super::error::{DecodeError, Faults, Reason};
use super::tree_query::MAX_TREE_HASHES;
use super::wire::{
    Fault, InField, Json, Kind, MsgPack, PlainEvent, PlainRun, Remaining, Wire, once, pass, required,
};
use radixscope_model::id::{BlockHash, TokensHash, Worker};
use radixscope_model::record::{Block, Topic};

/// Most blocks and hashes of one message. A prompt of a million tokens in blocks of one token fits; Dynamo 1.6
/// itself sends at most 8,192. Beyond it an event is refused, so that a message of tiny numbers cannot take many
/// times its own size of memory.
pub const MAX_HASHES: usize = 1 << 20;

/// Most multimodal inputs of a run that are counted separately.
const MAX_MULTIMODAL_INPUTS: usize = 256;

/// The tier in which blocks are stored (≥ 1.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum StorageTier {
    /// Memory of the accelerator; what all versions before 1.1 mean.
    #[default]
    Device,
    /// Memory of the host.
    HostPinned,
    /// Disk.
    Disk,
    /// A store outside of the worker.
    External,
    /// A tier that this version does not know.
    Unknown,
}

/// Who owns the blocks (≥ 1.5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ResidencyDomain {
    /// The worker; what all versions before 1.5 mean.
    #[default]
    Worker,
    /// A cache that several workers use.
    CacheOwner,
    /// A domain that this version does not know.
    Unknown,
}

/// What happened to blocks. The ranges are indices into [`KvEvents::blocks`] and [`KvEvents::removed`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KvData {
    /// A run of blocks, each the child of the one before; may be empty (reference §9.1).
    Stored {
        /// The block that the run continues; `None`: it starts a prompt.
        parent: Option<BlockHash>,
        /// Position of the first block in its prompt, in blocks (≥ 1.2).
        start_position: Option<u32>,
        /// Into [`KvEvents::blocks`].
        blocks: Range<u32>,
        /// How many pictures, sounds or films (`mm_extra_info`) these blocks hold parts of: different ones, by their hash.
        multimodal_inputs: u16,
    },
    /// Blocks dropped.
    Removed {
        /// Into [`KvEvents::removed`].
        hashes: Range<u32>,
    },
    /// Everything of the emitter is gone.
    Cleared,
}

/// One KV event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KvEvent {
    /// Whose blocks.
    pub worker: Worker,
    /// The publisher's number of the event; what it means differs by version and engine (reference §2.6).
    pub event_id: u64,
    /// Where the blocks are.
    pub tier: StorageTier,
    /// Whose the blocks are.
    pub domain: ResidencyDomain,
    /// What happened.
    pub data: KvData,
}

impl KvEvent {
    /// Whether the blocks are in the worker's own device memory, as of nearly all events.
    #[inline]
    pub fn is_in_device_memory(&self) -> bool {
        self.tier == StorageTier::Device && self.domain == ResidencyDomain::Worker
    }
}

/// The KV events of one message: a scratch to use again and again.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KvEvents {
    /// The events in the order of the message.
    pub events: Vec<KvEvent>,
    /// Blocks of all stored events.
    pub blocks: Vec<Block>,
    /// Hashes of all removed events.
    pub removed: Vec<BlockHash>,
    /// Whether the payload was an array of events (Dynamo ≥ 1.4) or one event.
    pub batch: bool,
    /// Hashes of the pictures of the run that is read.
    multimodal_inputs: Vec<u64>,
    /// Whether a whole tree is read, which may be larger than a message.
    is_tree: bool,
}

impl KvEvents {
    /// Takes the events of `body` in place of those of the message before.
    ///
    /// # Errors
    /// What was not understood. All that was understood is here all the same: in an array a bad event costs none
    /// of its neighbours, as long as the array itself can be read on.
    pub fn decode(&mut self, body: &[u8], format: Format) -> Result<(), Faults> {
        self.events.clear();
        self.blocks.clear();
        self.removed.clear();
        match format {
            Format::Json => self.read(&mut Json::new(body)),
            Format::MsgPack => self.read(&mut MsgPack::new(body)),
        }
    }

    /// Reads the array of events that a whole tree is sent as: one that is bad spoils all.
    pub(super) fn read_whole<'a, W: Wire<'a>>(&mut self, wire: &mut W) -> Result<(), Fault> {
        self.batch = true;
        self.is_tree = true;
        let mut left = wire.array()?;
        while wire.next_element(&mut left)? {
            if self.room() == 0 {
                return Err(self.too_large(wire));
            }
            self.event_or_nothing(wire)?;
        }
        self.is_tree = false;
        Ok(())
    }

    /// The blocks of a stored event.
    pub fn blocks_of(&self, range: &Range<u32>) -> &[Block] {
        self.blocks.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    /// The hashes of a removed event.
    pub fn removed_of(&self, range: &Range<u32>) -> &[BlockHash] {
        self.removed.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    #[inline]
    fn read<'a, W: Wire<'a>>(&mut self, wire: &mut W) -> Result<(), Faults> {
        let mut faults = Faults::default();
        self.batch = wire.is_array();
        let read =
            if self.batch { self.events_in_array(wire, &mut faults) } else { self.event_or_nothing(wire) };
        if let Err(fault) = read.and_then(|()| wire.end()) {
            faults.count(fault.reason, || to_decode_error(fault));
        }
        faults.into_result()
    }

    fn events_in_array<'a, W: Wire<'a>>(&mut self, wire: &mut W, faults: &mut Faults) -> Result<(), Fault> {
        let mut left = wire.array()?;
        while wire.next_element(&mut left)? {
            let mark = wire.mark();
            if let Err(fault) = self.event_or_nothing(wire) {
                wire.rewind(mark);
                pass(wire, fault, faults, to_decode_error)?;
            }
        }
        Ok(())
    }

    /// Reads an event and keeps it, or keeps nothing of it.
    #[inline]
    fn event_or_nothing<'a, W: Wire<'a>>(&mut self, wire: &mut W) -> Result<(), Fault> {
        let (blocks, removed) = (self.blocks.len(), self.removed.len());
        let mark = wire.mark();
        if self.plain_event(wire).is_some() {
            return Ok(());
        }
        // Written otherwise, or faulty: once more, by every rule.
        wire.rewind(mark);
        self.blocks.truncate(blocks);
        self.removed.truncate(removed);
        self.any_event_or_nothing(wire)
    }

    /// The same by every rule.
    #[inline(never)]
    fn any_event_or_nothing<'a, W: Wire<'a>>(&mut self, wire: &mut W) -> Result<(), Fault> {
        let (blocks, removed) = (self.blocks.len(), self.removed.len());
        match self.event(wire) {
            Ok(event) => {
                self.events.push(event);
                Ok(())
            }
            Err(fault) => {
                self.blocks.truncate(blocks);
                self.removed.truncate(removed);
                Err(fault)
            }
        }
    }

    /// Reads and keeps a `RouterEvent` that stands exactly as Dynamo writes it: no field is looked for, each is where it must
    /// be. `None` leaves reader and scratch anywhere.
    #[inline]
    fn plain_event<'a, W: Wire<'a>>(&mut self, wire: &mut W) -> Option<()> {
        let PlainEvent { worker_id, event_id, run, left } = wire.plain_event()?;
        let data = match run {
            PlainRun::Stored { parent, start_position } => {
                let start = self.blocks.len() as u32;
                self.blocks_left(wire, left).ok()?;
                let blocks = start..self.blocks.len() as u32;
                KvData::Stored {
                    parent: parent.map(BlockHash),
                    start_position,
                    blocks,
                    multimodal_inputs: self.multimodal_inputs(),
                }
            }
            PlainRun::Removed => {
                let start = self.removed.len() as u32;
                self.hashes_left(wire, left).ok()?;
                KvData::Removed { hashes: start..self.removed.len() as u32 }
            }
        };
        let worker = Worker::new(worker_id, wire.plain_rank()?);
        let (tier, domain) = (StorageTier::Device, ResidencyDomain::Worker);
        self.events.push(KvEvent { worker, event_id, tier, domain, data });
        Some(())
    }

    /// A `RouterEvent`.
    fn event<'a, W: Wire<'a>>(&mut self, wire: &mut W) -> Result<KvEvent, Fault> {
        let start = wire.at();
        let (mut worker_id, mut inner) = (None, None);
        let (mut tier, mut domain) = (StorageTier::Device, ResidencyDomain::Worker);
        let mut left = wire.map()?;
        while let Some(key) = wire.next_key(&mut left)? {
            let at = wire.at();
            match key {
                b"worker_id" => once(&mut worker_id, wire.u64().field("worker_id")?, "worker_id", at)?,
                b"event" => once(&mut inner, self.cache_event(wire).field("event")?, "event", at)?,
                b"storage_tier" => tier = storage_tier(wire).field("storage_tier")?,
                b"residency_domain" => domain = residency_domain(wire).field("residency_domain")?,
                _ => wire.skip()?,
            }
        }
        let worker_id = required(worker_id, "worker_id", start)?;
        let (event_id, dp_rank, data) = required(inner, "event", start)?;
        Ok(KvEvent { worker: Worker::new(worker_id, dp_rank), event_id, tier, domain, data })
    }

    /// A `KvCacheEvent`: its id, rank and data.
    fn cache_event<'a, W: Wire<'a>>(&mut self, wire: &mut W) -> Result<(u64, u32, KvData), Fault> {
        let start = wire.at();
        let (mut event_id, mut data, mut dp_rank) = (None, None, None);
        let mut left = wire.map()?;
        while let Some(key) = wire.next_key(&mut left)? {
            let at = wire.at();
            match key {
                b"event_id" => once(&mut event_id, wire.u64().field("event_id")?, "event_id", at)?,
                b"data" => once(&mut data, self.data(wire).field("data")?, "data", at)?,
                b"dp_rank" => once(&mut dp_rank, wire.optional(W::u32).field("dp_rank")?, "dp_rank", at)?,
                _ => wire.skip()?,
            }
        }
        let event_id = required(event_id, "event_id", start)?;
        Ok((event_id, dp_rank.flatten().unwrap_or(0), required(data, "data", start)?))
    }

    /// `"cleared"`, or a map of one key.
    fn data<'a, W: Wire<'a>>(&mut self, wire: &mut W) -> Result<KvData, Fault> {
        let start = wire.at();
        let unknown = |at| Fault::new(Reason::UnknownKind, "expected stored, removed or cleared", at);
        if wire.kind()? == Kind::Text {
            return if wire.word()? == b"cleared" { Ok(KvData::Cleared) } else { Err(unknown(start)) };
        }
        let mut left = wire.map()?;
        let data = match wire.next_key(&mut left)? {
            Some(b"stored") => self.stored(wire).field("stored")?,
            Some(b"removed") => self.removed_blocks(wire).field("removed")?,
            Some(b"cleared") => wire.skip().map(|()| KvData::Cleared)?,
            Some(_) => return Err(unknown(start)),
            None => return Err(Fault::missing("stored, removed or cleared", start)),
        };
        if wire.next_key(&mut left)?.is_some() {
            return Err(Fault::new(Reason::Malformed, "has more than one kind", start));
        }
        Ok(data)
    }

    fn stored<'a, W: Wire<'a>>(&mut self, wire: &mut W) -> Result<KvData, Fault> {
        let start = wire.at();
        let (mut parent, mut start_position, mut blocks) = (None, None, None);
        let mut left = wire.map()?;
        while let Some(key) = wire.next_key(&mut left)? {
            let at = wire.at();
            match key {
                b"parent_hash" => parent = wire.optional(W::hash).field("parent_hash")?.map(BlockHash),
                b"start_position" => start_position = wire.optional(W::u32).field("start_position")?,
                b"blocks" => once(&mut blocks, self.block_run(wire).field("blocks")?, "blocks", at)?,
                _ => wire.skip()?,
            }
        }
        let blocks = required(blocks, "blocks", start)?;
        Ok(KvData::Stored { parent, start_position, blocks, multimodal_inputs: self.multimodal_inputs() })
    }

    fn block_run<'a, W: Wire<'a>>(&mut self, wire: &mut W) -> Result<Range<u32>, Fault> {
        let (start, left) = (self.blocks.len() as u32, wire.array()?);
        self.blocks_left(wire, left)?;
        Ok(start..self.blocks.len() as u32)
    }

    /// Adds the blocks of a run. Which those are is not in the result: it would be read back in wider pieces than it is written.
    #[inline]
    fn blocks_left<'a, W: Wire<'a>>(&mut self, wire: &mut W, mut left: Remaining) -> Result<(), Fault> {
        let end = self.blocks.len() + self.room();
        self.multimodal_inputs.clear();
        loop {
            // As many as stand as Dynamo writes them, which are all, mostly.
            let blocks = &mut self.blocks;
            wire.plain_blocks(&mut left, end - blocks.len(), |block_hash, tokens_hash| {
                blocks.push(to_block(block_hash, tokens_hash));
            });
            if !wire.next_element(&mut left)? {
                return Ok(());
            }
            if self.blocks.len() == end {
                return Err(self.too_large(wire));
            }
            let (block_hash, tokens_hash) = block(wire, &mut self.multimodal_inputs)?;
            self.blocks.push(to_block(block_hash, tokens_hash));
        }
    }

    fn removed_blocks<'a, W: Wire<'a>>(&mut self, wire: &mut W) -> Result<KvData, Fault> {
        let start = wire.at();
        let mut hashes = None;
        let mut left = wire.map()?;
        while let Some(key) = wire.next_key(&mut left)? {
            let at = wire.at();
            match key {
                b"block_hashes" => {
                    once(&mut hashes, self.hash_run(wire).field("block_hashes")?, "block_hashes", at)?;
                }
                _ => wire.skip()?,
            }
        }
        Ok(KvData::Removed { hashes: required(hashes, "block_hashes", start)? })
    }

    fn hash_run<'a, W: Wire<'a>>(&mut self, wire: &mut W) -> Result<Range<u32>, Fault> {
        let (start, left) = (self.removed.len() as u32, wire.array()?);
        self.hashes_left(wire, left)?;
        Ok(start..self.removed.len() as u32)
    }

    /// The same of hashes.
    #[inline]
    fn hashes_left<'a, W: Wire<'a>>(&mut self, wire: &mut W, mut left: Remaining) -> Result<(), Fault> {
        let end = self.removed.len() + self.room();
        loop {
            let removed = &mut self.removed;
            wire.plain_hashes(&mut left, end - removed.len(), |hash| removed.push(BlockHash(hash)));
            if !wire.next_element(&mut left)? {
                return Ok(());
            }
            if self.removed.len() == end {
                return Err(self.too_large(wire));
            }
            let hash = wire.hash()?;
            self.removed.push(BlockHash(hash));
        }
    }

    fn multimodal_inputs(&self) -> u16 {
        self.multimodal_inputs.len() as u16
    }

    /// How many more blocks and hashes there is room for: the scratch, and with it the indices, stays small.
    #[inline]
    fn room(&self) -> usize {
        let hashes = self.blocks.len() + self.removed.len();
        match self.is_tree {
            false => MAX_HASHES.saturating_sub(hashes),
            true => MAX_TREE_HASHES.saturating_sub(hashes + self.events.len()),
        }
    }

    #[cold]
    fn too_large<'a, W: Wire<'a>>(&self, wire: &W) -> Fault {
        let problem = match self.is_tree {
            false => "more than 2^20 blocks in a message",
            true => "more than 2^23 events and blocks in a tree",
        };
        Fault::new(Reason::TooLarge, problem, wire.at())
    }
}

#[inline]
fn to_block(block_hash: u64, tokens_hash: u64) -> Block {
    Block { block_hash: BlockHash(block_hash), tokens_hash: TokensHash(tokens_hash) }
}

/// A block in any form: its hash and its tokens' hash. Pictures that it holds parts of are added to those of its run.
fn block<'a, W: Wire<'a>>(wire: &mut W, multimodal_inputs: &mut Vec<u64>) -> Result<(u64, u64), Fault> {
    let start = wire.at();
    let (mut block_hash, mut tokens_hash) = (None, None);
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        let at = wire.at();
        match key {
            b"block_hash" => once(&mut block_hash, wire.hash().field("block_hash")?, "block_hash", at)?,
            b"tokens_hash" => once(&mut tokens_hash, wire.hash().field("tokens_hash")?, "tokens_hash", at)?,
            b"mm_extra_info" if !wire.nil()? => {
                let mark = wire.mark();
                // In a form that is not known it costs no block.
                if mm_extra_info(wire, multimodal_inputs).is_err() {
                    wire.rewind(mark);
                    wire.skip()?;
                }
            }
            b"mm_extra_info" => {}
            _ => wire.skip()?,
        }
    }
    Ok((required(block_hash, "block_hash", start)?, required(tokens_hash, "tokens_hash", start)?))
}

/// `{"mm_objects":[{"mm_hash":77,"offsets":[[16,20]]}]}`
fn mm_extra_info<'a, W: Wire<'a>>(wire: &mut W, multimodal_inputs: &mut Vec<u64>) -> Result<(), Fault> {
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        match key {
            b"mm_objects" => mm_objects(wire, multimodal_inputs)?,
            _ => wire.skip()?,
        }
    }
    Ok(())
}

fn mm_objects<'a, W: Wire<'a>>(wire: &mut W, multimodal_inputs: &mut Vec<u64>) -> Result<(), Fault> {
    let mut left = wire.array()?;
    while wire.next_element(&mut left)? {
        let mut object = wire.map()?;
        while let Some(key) = wire.next_key(&mut object)? {
            match key {
                b"mm_hash" => {
                    let hash = wire.hash()?;
                    if multimodal_inputs.len() < MAX_MULTIMODAL_INPUTS && !multimodal_inputs.contains(&hash) {
                        multimodal_inputs.push(hash);
                    }
                }
                _ => wire.skip()?,
            }
        }
    }
    Ok(())
}

/// The tier as Dynamo's relay names it, whatever its engine does: vLLM's media `GPU` and none are `device`; `CPU` and
/// `CPU_PINNED` `host_pinned`; `DISK`, `NVME` and `STORAGE` `disk`; `EXTERNAL` `external`.
fn storage_tier<'a, W: Wire<'a>>(wire: &mut W) -> Result<StorageTier, Fault> {
    Ok(match wire.optional(W::word)? {
        None | Some(b"device") => StorageTier::Device,
        Some(b"host_pinned") => StorageTier::HostPinned,
        Some(b"disk") => StorageTier::Disk,
        Some(b"external") => StorageTier::External,
        Some(_) => StorageTier::Unknown,
    })
}

fn residency_domain<'a, W: Wire<'a>>(wire: &mut W) -> Result<ResidencyDomain, Fault> {
    Ok(match wire.optional(W::word)? {
        None | Some(b"worker") => ResidencyDomain::Worker,
        Some(b"cache_owner") => ResidencyDomain::CacheOwner,
        Some(_) => ResidencyDomain::Unknown,
    })
}

#[cold]
fn to_decode_error(fault: Fault) -> DecodeError {
    fault.into_error(Topic::KvEvents.as_str())
}
