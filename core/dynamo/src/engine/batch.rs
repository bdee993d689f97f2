//! A batch of an engine's KV events: `[time, events, rank]`, or the same as a map.
//!
//! The hot path: blocks go into the flat vectors of [`KvEvents`], tokens and hashes of an event into memory that is used again, so that
//! a block costs no allocation. A bad event costs none of its neighbours.

use std::ops::Range;

use radixscope_model::id::{BlockHash, Millis, TokensHash, Worker};
use radixscope_model::record::{Block, EventForm, HashForm};

use super::event::{ExtraKeys, RawEvent, RawKind, RawLists};
use super::groups::CacheGroups;
use crate::error::{DecodeError, Faults, Reason};
use crate::kv_event::{KvData, KvEvent, KvEvents, MAX_HASHES, ResidencyDomain, StorageTier};
use crate::wire::{Fault, InField, Kind, MsgPack, Wire, pass};

/// Computes the router's hash of a block's tokens.
pub trait TokensHasher {
    /// The next blocks are of this adapter and salt.
    fn begin(&mut self, lora_name: Option<&str>, cache_salt: Option<&str>);
    /// Hash of one block. `multimodal` names what it contains beside its tokens: images by 64 hexadecimal digits or any other name.
    fn block(&mut self, tokens: &[u32], multimodal: &[&[u8]]) -> TokensHash;
}

/// What an engine says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EngineEvent {
    /// As Dynamo's workers say it. Its worker and id are those of [`EngineBatch::assign`].
    Kv(KvEvent),
    /// Blocks stored in a lower tier that are named and not described: vLLM's offloading leaves their tokens out.
    Copied {
        /// Where they are now.
        tier: StorageTier,
        /// Into [`KvEvents::removed`]: their engine hashes.
        hashes: Range<u32>,
    },
}

/// A batch: a scratch to use again and again.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EngineBatch {
    /// In the order of the batch.
    pub events: Vec<EngineEvent>,
    /// Blocks and hashes of the events; it has no events of its own.
    pub kv: KvEvents,
    /// When the engine made it.
    pub at_ms: Option<Millis>,
    /// Data-parallel rank that it is of.
    pub rank: Option<u32>,
    /// Tokens per block, of the last run of blocks with tokens.
    pub block_size_tokens: Option<u32>,
    /// How the batch is written.
    pub form: Option<EventForm>,
    /// How the last event in it is.
    pub event_form: Option<EventForm>,
    /// How block hashes are.
    pub hash_form: Option<HashForm>,
    /// Events of cache groups that are not counted.
    pub other_groups: u32,
    lists: RawLists,
}

impl EngineBatch {
    /// Takes a batch in place of the one before.
    ///
    /// # Errors
    /// What was not understood. All that was is here all the same.
    pub fn decode(
        &mut self,
        payload: &[u8],
        groups: &mut CacheGroups,
        hasher: &mut impl TokensHasher,
    ) -> Result<(), Faults> {
        self.events.clear();
        self.kv.events.clear();
        self.kv.blocks.clear();
        self.kv.removed.clear();
        (self.at_ms, self.rank, self.block_size_tokens) = (None, None, None);
        (self.form, self.event_form, self.hash_form, self.other_groups) = (None, None, None, 0);
        (self.lists.has_numbers, self.lists.has_bytes) = (false, false);
        let mut faults = Faults::default();
        let wire = &mut MsgPack::new(payload);
        let read = self.batch(wire, groups, hasher, &mut faults).and_then(|()| wire.end());
        if let Err(fault) = read {
            faults.count(fault.reason, || to_decode_error(fault));
        }
        self.hash_form = match (self.lists.has_numbers, self.lists.has_bytes) {
            (true, false) => Some(HashForm::Integer),
            (false, true) => Some(HashForm::Bytes),
            (true, true) => Some(HashForm::Mixed),
            (false, false) => None,
        };
        faults.into_result()
    }

    /// Says whose events these are, and their number.
    pub fn assign(&mut self, worker: Worker, event_id: u64) {
        for event in &mut self.events {
            if let EngineEvent::Kv(event) = event {
                (event.worker, event.event_id) = (worker, event_id);
            }
        }
    }

    fn batch<H: TokensHasher>(
        &mut self,
        wire: &mut MsgPack<'_>,
        groups: &mut CacheGroups,
        hasher: &mut H,
        faults: &mut Faults,
    ) -> Result<(), Fault> {
        let start = wire.at();
        let mut has_events = false;
        match wire.kind()? {
            Kind::Array => {
                self.form = Some(EventForm::Array);
                let mut left = wire.array()?;
                for position in 0.. {
                    if !wire.next_element(&mut left)? {
                        break;
                    }
                    match position {
                        0 => self.at_ms = time(wire).field("ts")?,
                        1 => {
                            has_events = true;
                            self.read_events(wire, groups, hasher, faults).field("events")?;
                        }
                        2 => self.rank = wire.optional(Wire::u32).field("data_parallel_rank")?,
                        _ => wire.skip()?,
                    }
                }
            }
            Kind::Map => {
                self.form = Some(EventForm::Map);
                let mut left = wire.map()?;
                while let Some(key) = wire.next_key(&mut left)? {
                    match key {
                        b"ts" => self.at_ms = time(wire).field("ts")?,
                        b"events" => {
                            has_events = true;
                            self.read_events(wire, groups, hasher, faults).field("events")?;
                        }
                        b"data_parallel_rank" | b"attn_dp_rank" | b"dp_rank" => {
                            self.rank = wire.optional(Wire::u32).field("data_parallel_rank")?;
                        }
                        _ => wire.skip()?,
                    }
                }
            }
            _ => return Err(wire.unexpected("expected a batch as an array or as a map")),
        }
        if has_events { Ok(()) } else { Err(Fault::missing("events", start)) }
    }

    fn read_events<H: TokensHasher>(
        &mut self,
        wire: &mut MsgPack<'_>,
        groups: &mut CacheGroups,
        hasher: &mut H,
        faults: &mut Faults,
    ) -> Result<(), Fault> {
        let mut left = wire.array()?;
        while wire.next_element(&mut left)? {
            let mark = wire.mark();
            let (blocks, removed) = (self.kv.blocks.len(), self.kv.removed.len());
            if let Err(fault) = self.event(wire, groups, hasher) {
                self.kv.blocks.truncate(blocks);
                self.kv.removed.truncate(removed);
                wire.rewind(mark);
                pass(wire, fault, faults, to_decode_error)?;
            }
        }
        Ok(())
    }

    fn event<H: TokensHasher>(
        &mut self,
        wire: &mut MsgPack<'_>,
        groups: &mut CacheGroups,
        hasher: &mut H,
    ) -> Result<(), Fault> {
        let at = wire.at();
        self.event_form = Some(if wire.kind()? == Kind::Map { EventForm::Map } else { EventForm::Array });
        let event = self.lists.read(wire)?;
        let needs_hashes = matches!(event.kind, RawKind::Stored | RawKind::Removed);
        if needs_hashes && !event.has_hashes {
            return Err(Fault::missing("block_hashes", at));
        }
        if self.kv.blocks.len() + self.kv.removed.len() + self.lists.hashes.len() > MAX_HASHES {
            return Err(Fault::new(Reason::TooLarge, "more than 2^20 blocks in a batch", at));
        }
        let counts = match event.kind {
            RawKind::Stored => groups.stores(event.group, event.spec_kind, event.has_window),
            RawKind::Removed => groups.removes(event.group),
            RawKind::Cleared | RawKind::Ignored => true,
        };
        if !counts {
            self.other_groups += 1;
            return Ok(());
        }
        let (tier, domain) = (tier(event.medium), domain(event.locality));
        let data = match event.kind {
            RawKind::Ignored => return Ok(()),
            RawKind::Cleared => KvData::Cleared,
            RawKind::Removed => KvData::Removed { hashes: self.name_hashes() },
            RawKind::Stored if self.lists.tokens.is_empty() && !self.lists.hashes.is_empty() => {
                if tier == StorageTier::Device {
                    let problem =
                        "has no tokens, so its blocks cannot be compared with those of other engines";
                    return Err(Fault::new(Reason::MissingField, problem, at)).field("token_ids");
                }
                let hashes = self.name_hashes();
                self.events.push(EngineEvent::Copied { tier, hashes });
                return Ok(());
            }
            RawKind::Stored => self.stored(&event, at, hasher)?,
        };
        self.events.push(EngineEvent::Kv(KvEvent {
            worker: Worker::new(0, 0),
            event_id: 0,
            tier,
            domain,
            data,
        }));
        Ok(())
    }

    fn name_hashes(&mut self) -> Range<u32> {
        let start = self.kv.removed.len() as u32;
        self.kv.removed.extend(self.lists.hashes.iter().map(|&hash| BlockHash(hash)));
        start..self.kv.removed.len() as u32
    }

    fn stored<H: TokensHasher>(
        &mut self,
        event: &RawEvent<'_>,
        at: usize,
        hasher: &mut H,
    ) -> Result<KvData, Fault> {
        let RawLists { hashes, tokens, are_pairs, .. } = &self.lists;
        let parent = event.parent.map(BlockHash);
        let start = self.kv.blocks.len() as u32;
        let size = event.block_size.filter(|&size| size > 0 || hashes.is_empty());
        let size = size.ok_or(Fault::missing("block_size", at))? as usize;
        let window = size + usize::from(*are_pairs);
        let needed = hashes.len().checked_mul(size).map(|all| all + usize::from(*are_pairs));
        if !hashes.is_empty() && needed.is_none_or(|needed| tokens.len() < needed) {
            let problem = "has fewer tokens than the blocks";
            return Err(Fault::new(Reason::WrongType, problem, at)).field("token_ids");
        }
        let extra = event.extra_keys.map(|bytes| ExtraKeys::read(bytes, event.lora_name)).transpose();
        let extra = extra.field("extra_keys")?.unwrap_or_default();
        // A number alone does not say whose adapter it is, but that it is one.
        let by_number;
        let lora_name = match (event.lora_name, event.lora_id) {
            (None, Some(id)) => {
                by_number = format!("lora_id {id}");
                Some(by_number.as_str())
            }
            (name, _) => name,
        };
        hasher.begin(lora_name, event.cache_salt.or(extra.salt));
        for (at, &hash) in hashes.iter().enumerate() {
            if at == 1 && extra.salt.is_some() {
                // vLLM salts the first block of a prompt alone: the blocks after it are the same however a prompt is cut into events.
                hasher.begin(lora_name, event.cache_salt);
            }
            let own = tokens.get(at * size..at * size + window).unwrap_or_default();
            let tokens_hash = hasher.block(own, extra.of_block(at));
            self.kv.blocks.push(Block { block_hash: BlockHash(hash), tokens_hash });
        }
        if !hashes.is_empty() {
            self.block_size_tokens = u32::try_from(size).ok();
        }
        let blocks = start..self.kv.blocks.len() as u32;
        Ok(KvData::Stored { parent, start_position: None, blocks, multimodal_inputs: extra.count() })
    }
}

/// The tier in Dynamo's terms: vLLM calls them `GPU`, `CPU` and `STORAGE`, SGLang `GPU`, `CPU_PINNED`, `DISK` and `EXTERNAL`.
fn tier(medium: Option<&[u8]>) -> StorageTier {
    match medium {
        None | Some(b"GPU") => StorageTier::Device,
        Some(b"CPU" | b"CPU_PINNED") => StorageTier::HostPinned,
        Some(b"DISK" | b"NVME" | b"STORAGE") => StorageTier::Disk,
        Some(b"EXTERNAL") => StorageTier::External,
        Some(_) => StorageTier::Unknown,
    }
}

/// Whose cache it is: not the engine's own where it is remote, or anything that is not known.
fn domain(locality: Option<&[u8]>) -> ResidencyDomain {
    match locality {
        None | Some(b"LOCAL") => ResidencyDomain::Worker,
        Some(b"REMOTE") => ResidencyDomain::CacheOwner,
        Some(_) => ResidencyDomain::Unknown,
    }
}

/// Seconds since 1970, as a fraction. What is no time is none.
fn time(wire: &mut MsgPack<'_>) -> Result<Option<Millis>, Fault> {
    let seconds = match wire.kind()? {
        Kind::Float => wire.float()?,
        Kind::Integer => wire.u64()? as f64,
        Kind::Nil => return wire.skip().map(|()| None),
        _ => return Err(wire.unexpected("expected a time in seconds")),
    };
    let millis = (seconds * 1000.0).round();
    Ok((millis >= 1.0 && millis < u64::MAX as f64).then_some(Millis(millis as u64)))
}

#[cold]
fn to_decode_error(fault: Fault) -> DecodeError {
    fault.into_error("engine's KV events")
}
