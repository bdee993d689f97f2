//! MessagePack for [`Wire`].

use std::borrow::Cow;

use super::{Fault, Kind, PlainEvent, PlainRun, Remaining, Wire};
use crate::error::Reason;

/// Reads MessagePack.
pub(crate) struct MsgPack<'a> {
    rest: &'a [u8],
    len: usize,
}

/// Bytes of a block as Dynamo writes it: three keys, two hashes and no multimodal inputs.
const PLAIN_BLOCK: usize = 57;

/// A block as Dynamo writes it.
#[inline]
fn plain_block(block: &[u8; PLAIN_BLOCK]) -> Option<(u64, u64)> {
    let (before, block) = block.split_first_chunk::<13>()?;
    let (block_hash, block) = block.split_first_chunk::<8>()?;
    let (between, block) = block.split_first_chunk::<13>()?;
    let (tokens_hash, after) = block.split_first_chunk::<8>()?;
    if before != b"\x83\xaablock_hash\xcf"
        || between != b"\xabtokens_hash\xcf"
        || after != b"\xadmm_extra_info\xc0"
    {
        return None;
    }
    Some((u64::from_be_bytes(*block_hash), u64::from_be_bytes(*tokens_hash)))
}

impl<'a> MsgPack<'a> {
    #[cold]
    fn truncated(&self) -> Fault {
        Fault::new(Reason::Truncated, "the message ends here", self.len)
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, Fault> {
        let [first] = self.bytes::<1>()?;
        Ok(first)
    }

    #[inline]
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or_else(|| self.truncated())?;
        self.rest = rest;
        Ok(*head)
    }

    /// A big-endian length of `N` bytes.
    #[inline]
    fn length<const N: usize>(&mut self) -> Result<u64, Fault> {
        Ok(self.bytes::<N>()?.iter().fold(0, |length, byte| length << 8 | u64::from(*byte)))
    }

    #[inline]
    fn take(&mut self, count: u64) -> Result<&'a [u8], Fault> {
        let split = usize::try_from(count).ok().and_then(|count| self.rest.split_at_checked(count));
        let (head, rest) = split.ok_or_else(|| self.truncated())?;
        self.rest = rest;
        Ok(head)
    }

    /// An integer in any of its other forms.
    fn other_integer(&mut self) -> Result<(u64, bool), Fault> {
        let mark = self.rest;
        let signed = |value: i64| (value.cast_unsigned(), value < 0);
        Ok(match self.byte()? {
            0xcc => (u64::from(self.byte()?), false),
            0xcd => (u64::from(u16::from_be_bytes(self.bytes()?)), false),
            0xce => (u64::from(u32::from_be_bytes(self.bytes()?)), false),
            0xcf => (u64::from_be_bytes(self.bytes()?), false),
            0xd0 => signed(i64::from(i8::from_be_bytes(self.bytes()?))),
            0xd1 => signed(i64::from(i16::from_be_bytes(self.bytes()?))),
            0xd2 => signed(i64::from(i32::from_be_bytes(self.bytes()?))),
            0xd3 => signed(i64::from_be_bytes(self.bytes()?)),
            small @ 0xe0..=0xff => signed(i64::from(small.cast_signed())),
            _ => {
                self.rest = mark;
                return Err(self.unexpected("expected an integer"));
            }
        })
    }

    /// The next bytes, or nothing.
    #[inline]
    pub(crate) fn chunk<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(head)
    }

    /// Reads exactly these bytes, or nothing.
    #[inline]
    pub(crate) fn plain<const N: usize>(&mut self, bytes: &[u8; N]) -> Option<()> {
        let (head, rest) = self.rest.split_first_chunk::<N>()?;
        if head != bytes {
            return None;
        }
        self.rest = rest;
        Some(())
    }

    /// An integer that is not negative; else reads nothing. Only a short cut, as all that is plain.
    #[inline]
    pub(crate) fn plain_u64(&mut self) -> Option<u64> {
        let (value, rest) = match *self.rest {
            [0xcf, ref rest @ ..] => {
                let (value, rest) = rest.split_first_chunk()?;
                (u64::from_be_bytes(*value), rest)
            }
            [small @ 0x00..=0x7f, ref rest @ ..] => (u64::from(small), rest),
            [0xcc, value, ref rest @ ..] => (u64::from(value), rest),
            [0xcd, a, b, ref rest @ ..] => (u64::from(u16::from_be_bytes([a, b])), rest),
            [0xce, a, b, c, d, ref rest @ ..] => (u64::from(u32::from_be_bytes([a, b, c, d])), rest),
            _ => return None,
        };
        self.rest = rest;
        Some(value)
    }

    /// The same of an id, which is of eight bytes, mostly.
    #[inline]
    pub(crate) fn plain_id(&mut self) -> Option<u64> {
        let Some(([0xcf, id @ ..], rest)) = self.rest.split_first_chunk::<9>() else {
            return self.plain_u64();
        };
        self.rest = rest;
        Some(u64::from_be_bytes(*id))
    }

    /// A text of less than 32 bytes, as it is sent.
    #[inline]
    pub(crate) fn plain_word(&mut self) -> Option<&'a [u8]> {
        let [short @ 0xa0..=0xbf, rest @ ..] = self.rest else { return None };
        let (word, rest) = rest.split_at_checked(usize::from(short & 0x1f))?;
        self.rest = rest;
        Some(word)
    }

    /// A payload of at most 64 KiB.
    #[inline]
    pub(crate) fn plain_blob(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = match *self.rest {
            [0xc4, length, ref rest @ ..] => (usize::from(length), rest),
            [0xc5, a, b, ref rest @ ..] => (usize::from(u16::from_be_bytes([a, b])), rest),
            _ => return None,
        };
        let (blob, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        Some(blob)
    }

    /// An array of at most 65,535 elements, each of at least a byte.
    #[inline]
    fn plain_array(&mut self) -> Option<Remaining> {
        let (count, rest) = match *self.rest {
            [short @ 0x90..=0x9f, ref rest @ ..] => (usize::from(short & 0x0f), rest),
            [0xdc, a, b, ref rest @ ..] => (usize::from(u16::from_be_bytes([a, b])), rest),
            _ => return None,
        };
        self.rest = rest;
        (count <= rest.len()).then_some(Remaining(count as u32))
    }

    /// A length of things that follow, each of at least `min` bytes.
    fn counted(&self, count: u64, min: u64) -> Result<Remaining, Fault> {
        if count * min > self.rest.len() as u64 {
            return Err(self.truncated());
        }
        Ok(Remaining(u32::try_from(count).map_err(|_| self.truncated())?))
    }

    /// A payload sent as bytes.
    pub(crate) fn blob(&mut self) -> Result<&'a [u8], Fault> {
        let mark = self.rest;
        let length = match self.byte()? {
            0xc4 => self.length::<1>()?,
            0xc5 => self.length::<2>()?,
            0xc6 => self.length::<4>()?,
            _ => {
                self.rest = mark;
                return Err(self.unexpected("expected bytes"));
            }
        };
        self.take(length)
    }

    /// A fraction.
    pub(crate) fn float(&mut self) -> Result<f64, Fault> {
        let mark = self.rest;
        Ok(match self.byte()? {
            0xca => f64::from(f32::from_be_bytes(self.bytes()?)),
            0xcb => f64::from_be_bytes(self.bytes()?),
            _ => {
                self.rest = mark;
                return Err(self.unexpected("expected a fraction"));
            }
        })
    }

    /// A text that may borrow.
    pub(crate) fn str(&mut self) -> Result<&'a str, Fault> {
        let at = self.at();
        std::str::from_utf8(self.word()?)
            .map_err(|_| Fault::new(Reason::Malformed, "expected text in UTF-8", at))
    }
}

impl<'a> Wire<'a> for MsgPack<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, len: bytes.len() }
    }

    fn at(&self) -> usize {
        self.len - self.rest.len()
    }

    fn mark(&self) -> &'a [u8] {
        self.rest
    }

    fn rewind(&mut self, mark: &'a [u8]) {
        self.rest = mark;
    }

    #[inline]
    fn is_array(&mut self) -> bool {
        matches!(self.rest.first(), Some(0x90..=0x9f | 0xdc | 0xdd))
    }

    fn kind(&mut self) -> Result<Kind, Fault> {
        Ok(match self.rest.first().ok_or_else(|| self.truncated())? {
            0x00..=0x7f | 0xcc..=0xd3 | 0xe0..=0xff => Kind::Integer,
            0x80..=0x8f | 0xde | 0xdf => Kind::Map,
            0x90..=0x9f | 0xdc | 0xdd => Kind::Array,
            0xa0..=0xbf | 0xd9..=0xdb => Kind::Text,
            0xc0 => Kind::Nil,
            0xc2 | 0xc3 => Kind::Bool,
            0xc4..=0xc6 => Kind::Bytes,
            0xca | 0xcb => Kind::Float,
            0xc7..=0xc9 | 0xd4..=0xd8 => Kind::Extension,
            0xc1 => return Err(Fault::new(Reason::Malformed, "no MessagePack", self.at())),
        })
    }

    #[inline]
    fn nil(&mut self) -> Result<bool, Fault> {
        let Some(rest) = self.rest.strip_prefix(&[0xc0]) else { return Ok(false) };
        self.rest = rest;
        Ok(true)
    }

    fn bool(&mut self) -> Result<bool, Fault> {
        let value = match self.rest.first() {
            Some(0xc2) => false,
            Some(0xc3) => true,
            _ => return Err(self.unexpected("expected a boolean")),
        };
        self.byte()?;
        Ok(value)
    }

    #[inline]
    fn integer(&mut self) -> Result<(u64, bool), Fault> {
        // Hashes and ids are of nine bytes, counts of one.
        match self.rest {
            [0xcf, rest @ ..] if let Some((value, rest)) = rest.split_first_chunk() => {
                self.rest = rest;
                Ok((u64::from_be_bytes(*value), false))
            }
            [small @ 0x00..=0x7f, rest @ ..] => {
                self.rest = rest;
                Ok((u64::from(*small), false))
            }
            _ => self.other_integer(),
        }
    }

    #[inline]
    fn hash(&mut self) -> Result<u64, Fault> {
        if let [0xcf, rest @ ..] = self.rest
            && let Some((value, rest)) = rest.split_first_chunk()
        {
            self.rest = rest;
            return Ok(u64::from_be_bytes(*value));
        }
        self.integer().map(|(value, _)| value)
    }

    #[inline]
    fn word(&mut self) -> Result<&'a [u8], Fault> {
        let mark = self.rest;
        let length = match self.byte()? {
            short @ 0xa0..=0xbf => u64::from(short & 0x1f),
            0xd9 => self.length::<1>()?,
            0xda => self.length::<2>()?,
            0xdb => self.length::<4>()?,
            _ => {
                self.rest = mark;
                return Err(self.unexpected("expected text"));
            }
        };
        self.take(length)
    }

    fn text(&mut self) -> Result<Cow<'a, str>, Fault> {
        self.str().map(Cow::Borrowed)
    }

    #[inline]
    fn map(&mut self) -> Result<Remaining, Fault> {
        let mark = self.rest;
        let count = match self.byte()? {
            short @ 0x80..=0x8f => u64::from(short & 0x0f),
            0xde => self.length::<2>()?,
            0xdf => self.length::<4>()?,
            _ => {
                self.rest = mark;
                return Err(self.unexpected("expected a map"));
            }
        };
        self.counted(count, 2)
    }

    #[inline]
    fn next_key(&mut self, left: &mut Remaining) -> Result<Option<&'a [u8]>, Fault> {
        let Some(after) = left.0.checked_sub(1) else { return Ok(None) };
        left.0 = after;
        match self.rest.first() {
            Some(0xa0..=0xbf | 0xd9..=0xdb) => self.word().map(Some),
            _ => self.skip().map(|()| Some(b"".as_slice())),
        }
    }

    #[inline]
    fn array(&mut self) -> Result<Remaining, Fault> {
        let mark = self.rest;
        let count = match self.byte()? {
            short @ 0x90..=0x9f => u64::from(short & 0x0f),
            0xdc => self.length::<2>()?,
            0xdd => self.length::<4>()?,
            _ => {
                self.rest = mark;
                return Err(self.unexpected("expected an array"));
            }
        };
        self.counted(count, 1)
    }

    #[inline]
    fn next_element(&mut self, left: &mut Remaining) -> Result<bool, Fault> {
        let Some(after) = left.0.checked_sub(1) else { return Ok(false) };
        left.0 = after;
        Ok(true)
    }

    fn skip(&mut self) -> Result<(), Fault> {
        // A count of the values still to come takes the place of a stack: MessagePack has no closing brackets.
        let mut values: u64 = 1;
        while values > 0 {
            values -= 1;
            let marker = self.byte()?;
            let (bytes, inner) = match marker {
                0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => (0, 0),
                0x80..=0x8f => (0, 2 * u64::from(marker & 0x0f)),
                0x90..=0x9f => (0, u64::from(marker & 0x0f)),
                0xa0..=0xbf => (u64::from(marker & 0x1f), 0),
                0xc4 | 0xd9 => (self.length::<1>()?, 0),
                0xc5 | 0xda => (self.length::<2>()?, 0),
                0xc6 | 0xdb => (self.length::<4>()?, 0),
                0xc7 => (self.length::<1>()? + 1, 0),
                0xc8 => (self.length::<2>()? + 1, 0),
                0xc9 => (self.length::<4>()? + 1, 0),
                0xcc | 0xd0 => (1, 0),
                0xcd | 0xd1 => (2, 0),
                0xca | 0xce | 0xd2 => (4, 0),
                0xcb | 0xcf | 0xd3 => (8, 0),
                0xd4..=0xd8 => (1 + (1 << (marker - 0xd4)), 0),
                0xdc => (0, self.length::<2>()?),
                0xdd => (0, self.length::<4>()?),
                0xde => (0, 2 * self.length::<2>()?),
                0xdf => (0, 2 * self.length::<4>()?),
                0xc1 => return Err(Fault::new(Reason::Malformed, "no MessagePack", self.at() - 1)),
            };
            self.take(bytes)?;
            // Every value takes a byte, so this also bounds `values`.
            values += inner;
            if values > self.rest.len() as u64 {
                return Err(self.truncated());
            }
        }
        Ok(())
    }

    #[inline]
    fn end(&mut self) -> Result<(), Fault> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(Fault::new(Reason::Malformed, "bytes follow the message", self.at()))
    }

    #[inline]
    fn plain_blocks(&mut self, left: &mut Remaining, most: usize, mut each: impl FnMut(u64, u64)) {
        let (mut rest, mut most) = (self.rest, most.min(left.0 as usize) as u32);
        left.0 -= most;
        while most > 0
            && let Some((block, after)) = rest.split_first_chunk::<PLAIN_BLOCK>()
            && let Some((block_hash, tokens_hash)) = plain_block(block)
        {
            each(block_hash, tokens_hash);
            (rest, most) = (after, most - 1);
        }
        self.rest = rest;
        left.0 += most;
    }

    #[inline]
    fn plain_hashes(&mut self, left: &mut Remaining, most: usize, mut each: impl FnMut(u64)) {
        let (mut rest, mut most) = (self.rest, most.min(left.0 as usize) as u32);
        left.0 -= most;
        while most > 0
            && let Some(([0xcf, hash @ ..], after)) = rest.split_first_chunk::<9>()
        {
            each(u64::from_be_bytes(*hash));
            (rest, most) = (after, most - 1);
        }
        self.rest = rest;
        left.0 += most;
    }

    #[inline]
    fn plain_event(&mut self) -> Option<PlainEvent> {
        let [fields, name @ ..] = self.chunk::<11>()?;
        if name != b"\xa9worker_id" {
            return None;
        }
        let worker_id = self.plain_id()?;
        match *fields {
            0x82 => {}
            0x83 => self.plain(b"\xacstorage_tier\xa6device")?,
            0x84 => self.plain(b"\xacstorage_tier\xa6device\xb0residency_domain\xa6worker")?,
            _ => return None,
        }
        self.plain(b"\xa5event\x83\xa8event_id")?;
        let event_id = self.plain_u64()?;
        if self.rest.get(6) == Some(&0xa7) {
            self.plain(b"\xa4data\x81\xa7removed\x81\xacblock_hashes")?;
            let left = self.plain_array()?;
            return Some(PlainEvent { worker_id, event_id, run: PlainRun::Removed, left });
        }
        self.plain(b"\xa4data\x81\xa6stored")?;
        let has_position = match self.chunk()? {
            b"\x82\xabparent_hash" => false,
            b"\x83\xabparent_hash" => true,
            _ => return None,
        };
        let parent = if self.nil().ok()? { None } else { Some(self.plain_u64()?) };
        let mut start_position = None;
        if has_position {
            self.plain(b"\xaestart_position")?;
            if !self.nil().ok()? {
                start_position = Some(u32::try_from(self.plain_u64()?).ok()?);
            }
        }
        self.plain(b"\xa6blocks")?;
        let left = self.plain_array()?;
        Some(PlainEvent { worker_id, event_id, run: PlainRun::Stored { parent, start_position }, left })
    }

    #[inline]
    fn plain_rank(&mut self) -> Option<u32> {
        self.plain(b"\xa7dp_rank")?;
        u32::try_from(self.plain_u64()?).ok()
    }
}
