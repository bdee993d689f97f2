//! One event of an engine, taken apart but not yet judged: an array whose positions have a meaning, or a map.

use crate::error::Reason;
use crate::wire::{Fault, InField, Kind, MsgPack, Remaining, Wire};

/// What an event is, in the engines' words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RawKind {
    Stored,
    Removed,
    Cleared,
    /// It is sent to keep numbers in step, and says nothing.
    Ignored,
}

/// An event as it was sent, but for its block hashes and tokens, which are in [`RawLists`].
#[derive(Clone, Copy, Debug)]
pub(super) struct RawEvent<'a> {
    pub(super) kind: RawKind,
    pub(super) parent: Option<u64>,
    pub(super) block_size: Option<u32>,
    pub(super) lora_id: Option<u64>,
    pub(super) lora_name: Option<&'a str>,
    pub(super) cache_salt: Option<&'a str>,
    pub(super) medium: Option<&'a [u8]>,
    /// Where they begin, if they are not null.
    pub(super) extra_keys: Option<&'a [u8]>,
    pub(super) group: Option<u32>,
    pub(super) spec_kind: Option<&'a [u8]>,
    pub(super) has_window: bool,
    pub(super) locality: Option<&'a [u8]>,
    pub(super) has_hashes: bool,
    pub(super) has_tokens: bool,
}

impl RawEvent<'_> {
    const fn new(kind: RawKind) -> Self {
        Self {
            kind,
            parent: None,
            block_size: None,
            lora_id: None,
            lora_name: None,
            cache_salt: None,
            medium: None,
            extra_keys: None,
            group: None,
            spec_kind: None,
            has_window: false,
            locality: None,
            has_hashes: false,
            has_tokens: false,
        }
    }
}

/// Block hashes and tokens of one event: memory to be used again.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct RawLists {
    pub(super) hashes: Vec<u64>,
    pub(super) tokens: Vec<u32>,
    /// Tokens came as pairs, each with the one after it (Eagle): `tokens` has one more.
    pub(super) are_pairs: bool,
    /// Whether a hash came as a number, and whether one came as bytes.
    pub(super) has_numbers: bool,
    pub(super) has_bytes: bool,
}

/// Most capacity of the lists that is kept from one event to the next.
const KEPT: usize = 1 << 18;

impl RawLists {
    fn clear(&mut self) {
        self.hashes.clear();
        self.tokens.clear();
        self.hashes.shrink_to(KEPT);
        self.tokens.shrink_to(KEPT);
        self.are_pairs = false;
    }

    /// Reads an event.
    pub(super) fn read<'a>(&mut self, wire: &mut MsgPack<'a>) -> Result<RawEvent<'a>, Fault> {
        self.clear();
        match wire.kind()? {
            Kind::Map => self.read_map(wire),
            Kind::Array => self.read_array(wire),
            _ => Err(wire.unexpected("expected an event as a map or as an array")),
        }
    }

    fn read_map<'a>(&mut self, wire: &mut MsgPack<'a>) -> Result<RawEvent<'a>, Fault> {
        let start = wire.at();
        // The kind comes first as engines write it, but need not.
        let (mut event, mut kind) = (RawEvent::new(RawKind::Ignored), None);
        let mut left = wire.map()?;
        while let Some(key) = wire.next_key(&mut left)? {
            match key {
                b"type" => kind = Some(read_kind(wire).field("type")?),
                b"block_hashes" => self.hashes(wire, &mut event).field("block_hashes")?,
                b"parent_block_hash" => event.parent = self.parent(wire).field("parent_block_hash")?,
                b"token_ids" => self.tokens(wire, &mut event).field("token_ids")?,
                b"block_size" => event.block_size = wire.optional(Wire::u32).field("block_size")?,
                b"lora_id" => lora_id(wire, &mut event).field("lora_id")?,
                b"medium" => event.medium = wire.optional(Wire::word).field("medium")?,
                b"lora_name" => {
                    event.lora_name = wire.optional(MsgPack::str).field("lora_name")?.or(event.lora_name);
                }
                b"cache_salt" => event.cache_salt = wire.optional(MsgPack::str).field("cache_salt")?,
                b"extra_keys" => extra_keys(wire, &mut event)?,
                b"group_idx" => event.group = wire.optional(Wire::u32).field("group_idx")?,
                b"kv_cache_spec_kind" => {
                    event.spec_kind = wire.optional(Wire::word).field("kv_cache_spec_kind")?
                }
                b"kv_cache_spec_sliding_window" => {
                    event.has_window =
                        wire.optional(Wire::u64).field("kv_cache_spec_sliding_window")?.is_some();
                }
                b"locality" => event.locality = wire.optional(Wire::word).field("locality")?,
                _ => wire.skip()?,
            }
        }
        event.kind = kind.ok_or(Fault::missing("type", start))?;
        Ok(event)
    }

    fn read_array<'a>(&mut self, wire: &mut MsgPack<'a>) -> Result<RawEvent<'a>, Fault> {
        let start = wire.at();
        let mut left = wire.array()?;
        if !wire.next_element(&mut left)? {
            return Err(Fault::missing("the kind of event", start));
        }
        let kind = read_kind(wire).field("the kind of event")?;
        let mut event = RawEvent::new(kind);
        if matches!(kind, RawKind::Stored | RawKind::Removed) && wire.next_element(&mut left)? {
            self.hashes(wire, &mut event).field("block_hashes")?;
            match kind {
                RawKind::Stored => self.rest_of_stored(wire, &mut left, &mut event)?,
                _ => rest_of_removed(wire, &mut left, &mut event)?,
            }
        }
        while wire.next_element(&mut left)? {
            wire.skip()?;
        }
        Ok(event)
    }

    /// Positions 2 and later. It may end early.
    fn rest_of_stored<'a>(
        &mut self,
        wire: &mut MsgPack<'a>,
        left: &mut Remaining,
        event: &mut RawEvent<'a>,
    ) -> Result<(), Fault> {
        for position in 2.. {
            if !wire.next_element(left)? {
                break;
            }
            match position {
                2 => event.parent = self.parent(wire).field("parent_block_hash")?,
                3 => self.tokens(wire, event).field("token_ids")?,
                4 => event.block_size = wire.optional(Wire::u32).field("block_size")?,
                5 => lora_id(wire, event).field("lora_id")?,
                6 => event.medium = wire.optional(Wire::word).field("medium")?,
                // SGLang has a map there, vLLM the adapter's name.
                7 if wire.kind()? == Kind::Map => {
                    event.cache_salt = salt_of_metadata(wire).field("cache_salt")?
                }
                7 => event.lora_name = wire.optional(MsgPack::str).field("lora_name")?.or(event.lora_name),
                8 => extra_keys(wire, event)?,
                _ => tail(wire, event)?,
            }
        }
        Ok(())
    }

    fn hashes(&mut self, wire: &mut MsgPack<'_>, event: &mut RawEvent<'_>) -> Result<(), Fault> {
        self.hashes.clear();
        event.has_hashes = true;
        let mut left = wire.array()?;
        let hashes = &mut self.hashes;
        let before = hashes.len();
        wire.plain_hashes(&mut left, usize::MAX, |hash| hashes.push(hash));
        self.has_numbers |= hashes.len() > before;
        while wire.next_element(&mut left)? {
            let hash = self.hash(wire)?;
            self.hashes.push(hash);
        }
        Ok(())
    }

    /// A number, also negative, or the bytes of a digest, of which the last eight count: those that vLLM sends as a number.
    fn hash(&mut self, wire: &mut MsgPack<'_>) -> Result<u64, Fault> {
        if wire.kind()? != Kind::Bytes {
            let hash = wire.hash()?;
            self.has_numbers = true;
            return Ok(hash);
        }
        let at = wire.at();
        let digest = wire.blob()?;
        self.has_bytes = true;
        let last = digest.last_chunk::<8>();
        let last = last.ok_or(Fault::new(Reason::WrongType, "expected a digest of at least 8 bytes", at))?;
        Ok(u64::from_be_bytes(*last))
    }

    fn parent(&mut self, wire: &mut MsgPack<'_>) -> Result<Option<u64>, Fault> {
        if wire.nil()? { Ok(None) } else { self.hash(wire).map(Some) }
    }

    fn tokens(&mut self, wire: &mut MsgPack<'_>, event: &mut RawEvent<'_>) -> Result<(), Fault> {
        self.tokens.clear();
        self.are_pairs = false;
        event.has_tokens = !wire.nil()?;
        if !event.has_tokens {
            return Ok(());
        }
        let mut left = wire.array()?;
        let mut after = None;
        while wire.next_element(&mut left)? {
            if let Some(token) = wire.plain_u64() {
                let at = wire.at();
                self.tokens.push(
                    u32::try_from(token)
                        .map_err(|_| Fault::new(Reason::WrongType, "expected an integer below 2^32", at))?,
                );
            } else if wire.kind()? == Kind::Array {
                let at = wire.at();
                let mut pair = wire.array()?;
                let mut of_pair = [0; 2];
                for token in &mut of_pair {
                    if !wire.next_element(&mut pair)? {
                        return Err(Fault::new(Reason::WrongType, "expected a pair of tokens", at));
                    }
                    *token = wire.u32()?;
                }
                if wire.next_element(&mut pair)? {
                    return Err(Fault::new(Reason::WrongType, "expected a pair of tokens", at));
                }
                self.tokens.push(of_pair[0]);
                after = Some(of_pair[1]);
            } else {
                return Err(wire.unexpected("expected a token"));
            }
        }
        self.are_pairs = after.is_some();
        self.tokens.extend(after);
        Ok(())
    }
}

/// Positions 2 and later of a removed event.
fn rest_of_removed<'a>(
    wire: &mut MsgPack<'a>,
    left: &mut Remaining,
    event: &mut RawEvent<'a>,
) -> Result<(), Fault> {
    if wire.next_element(left)? {
        event.medium = wire.optional(Wire::word).field("medium")?;
    }
    while wire.next_element(left)? {
        tail(wire, event)?;
    }
    Ok(())
}

/// What follows the fixed positions, by its type: the first number is the cache group, the second a window; a text is the kind of the group
/// or says whether the blocks are remote. What Dynamo's own vLLM inserted there (`block_mm_infos`) is passed over.
fn tail<'a>(wire: &mut MsgPack<'a>, event: &mut RawEvent<'a>) -> Result<(), Fault> {
    match wire.kind()? {
        Kind::Integer if event.group.is_none() => event.group = Some(wire.u32().field("group_idx")?),
        Kind::Integer => {
            event.has_window = true;
            wire.skip()?;
        }
        Kind::Text => match wire.word()? {
            place @ (b"LOCAL" | b"REMOTE") => event.locality = Some(place),
            kind if event.spec_kind.is_none() => event.spec_kind = Some(kind),
            _ => {}
        },
        _ => wire.skip()?,
    }
    Ok(())
}

fn read_kind(wire: &mut MsgPack<'_>) -> Result<RawKind, Fault> {
    let at = wire.at();
    match wire.word()? {
        b"BlockStored" => Ok(RawKind::Stored),
        b"BlockRemoved" => Ok(RawKind::Removed),
        b"AllBlocksCleared" => Ok(RawKind::Cleared),
        b"Ignored" => Ok(RawKind::Ignored),
        _ => {
            Err(Fault::new(Reason::UnknownKind, "expected BlockStored, BlockRemoved or AllBlocksCleared", at))
        }
    }
}

/// Names the adapter where no name follows: its blocks are not those of plain text.
fn lora_id<'a>(wire: &mut MsgPack<'a>, event: &mut RawEvent<'a>) -> Result<(), Fault> {
    match wire.kind()? {
        Kind::Text => event.lora_name = event.lora_name.or(Some(wire.str()?)),
        _ => event.lora_id = wire.optional(Wire::hash)?,
    }
    Ok(())
}

fn extra_keys<'a>(wire: &mut MsgPack<'a>, event: &mut RawEvent<'a>) -> Result<(), Fault> {
    event.extra_keys = if wire.nil()? { None } else { Some(wire.mark()) };
    if event.extra_keys.is_some() { wire.skip() } else { Ok(()) }
}

fn salt_of_metadata<'a>(wire: &mut MsgPack<'a>) -> Result<Option<&'a str>, Fault> {
    let mut salt = None;
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        match key {
            b"cache_salt" => salt = wire.optional(MsgPack::str)?,
            _ => wire.skip()?,
        }
    }
    Ok(salt)
}

/// What `extra_keys` add to the identity of blocks: of each block the images and the like in it, and the salt of the first.
#[derive(Default)]
pub(super) struct ExtraKeys<'a> {
    identifiers: Vec<&'a [u8]>,
    /// Where those of a block end.
    ends: Vec<usize>,
    pub(super) salt: Option<&'a str>,
}

/// Dynamo's vLLM worker marks a salt with it.
const SALT_PREFIX: &str = "dynamo-cache-salt:";
/// Hexadecimal digits of a digest that names an image.
const DIGEST_DIGITS: usize = 64;

impl<'a> ExtraKeys<'a> {
    /// Reads them from where they begin: a list with null or a list for each block. In that the adapter's name comes first, then for each
    /// image its name alone or with its offset, then the salt, then digests of embeddings.
    pub(super) fn read(bytes: &'a [u8], lora_name: Option<&str>) -> Result<Self, Fault> {
        let mut keys = Self::default();
        let wire = &mut MsgPack::new(bytes);
        let mut blocks = wire.array()?;
        while wire.next_element(&mut blocks)? {
            if !wire.nil()? {
                keys.block(wire, lora_name)?;
            }
            keys.ends.push(keys.identifiers.len());
        }
        Ok(keys)
    }

    fn block(&mut self, wire: &mut MsgPack<'a>, mut lora_name: Option<&str>) -> Result<(), Fault> {
        let is_first = self.ends.is_empty();
        let mut items = wire.array()?;
        while wire.next_element(&mut items)? {
            match wire.kind()? {
                Kind::Text => {
                    let text = wire.str()?;
                    if lora_name.take_if(|name| *name == text).is_some() {
                    } else if text.len() == DIGEST_DIGITS && text.bytes().all(|c| c.is_ascii_hexdigit()) {
                        self.identifiers.push(text.as_bytes());
                    } else if is_first && self.salt.is_none() {
                        self.salt = Some(text.strip_prefix(SALT_PREFIX).unwrap_or(text));
                    }
                }
                Kind::Array => {
                    let mut pair = wire.array()?;
                    if wire.next_element(&mut pair)? {
                        match wire.kind()? {
                            Kind::Text => self.identifiers.push(wire.word()?),
                            _ => wire.skip()?,
                        }
                    }
                    while wire.next_element(&mut pair)? {
                        wire.skip()?;
                    }
                }
                Kind::Bytes => self.identifiers.push(wire.blob()?),
                _ => wire.skip()?,
            }
        }
        Ok(())
    }

    /// What is in one of the blocks.
    pub(super) fn of_block(&self, at: usize) -> &[&'a [u8]] {
        let start = at.checked_sub(1).map_or(Some(&0), |before| self.ends.get(before));
        let range = start.zip(self.ends.get(at)).and_then(|(&start, &end)| self.identifiers.get(start..end));
        range.unwrap_or_default()
    }

    /// How many different ones there are.
    pub(super) fn count(&self) -> u16 {
        let mut all = self.identifiers.clone();
        all.sort_unstable();
        all.dedup();
        u16::try_from(all.len()).unwrap_or(u16::MAX)
    }
}
