//! A pull reader over bytes from outside, the same for JSON and MessagePack, for KV events and what contains them; it must not know
//! of topics. Other topics are read by serde ([`typed`](super::typed)).
//!
//! Written by hand for three reasons that a serde deserializer does not give: it finds its place again after a bad
//! element of an array, its errors name the field, and it pushes blocks straight into flat vectors at a multiple
//! of serde's speed. It allocates nothing, does not recurse, and trusts no length before the bytes are there.

mod json;
mod msgpack;

use std::borrow::Cow;

pub(super) use json::Json;
pub(super) use msgpack::MsgPack;

use super::error::{DecodeError, Faults, Reason};

/// What a value is, in the words of both formats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Nil,
    Bool,
    Integer,
    Float,
    Text,
    Bytes,
    Array,
    Map,
    Extension,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Kind::Nil => "null",
            Kind::Bool => "a boolean",
            Kind::Integer => "an integer",
            Kind::Float => "a fraction",
            Kind::Text => "text",
            Kind::Bytes => "bytes",
            Kind::Array => "an array",
            Kind::Map => "a map",
            Kind::Extension => "an extension type",
        }
    }
}

/// A fault before it is put into words: cheap, so that a hostile message of a million faults costs little.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) reason: Reason,
    /// Innermost field known, empty if none.
    field: &'static str,
    problem: &'static str,
    found: Option<Kind>,
    /// Offset in the bytes read.
    at: usize,
}

impl Fault {
    pub(super) const fn new(reason: Reason, problem: &'static str, at: usize) -> Self {
        Self { reason, field: "", problem, found: None, at }
    }

    /// A field that Dynamo always sends is not there.
    pub(super) const fn missing(field: &'static str, at: usize) -> Self {
        Self { reason: Reason::MissingField, field, problem: "is missing", found: None, at }
    }

    pub(super) fn into_error(self, topic: &str) -> DecodeError {
        let Self { reason, field, problem, found, at } = self;
        let colon = if field.is_empty() { "" } else { ": " };
        let (comma, found) = found.map_or(("", ""), |kind| (", found ", kind.as_str()));
        DecodeError::new(reason, format!("{topic}: {field}{colon}{problem}{comma}{found} (byte {at})"))
    }
}

/// Names the field in which a fault happened; the innermost name stays.
pub(super) trait InField {
    fn field(self, name: &'static str) -> Self;
}

impl<T> InField for Result<T, Fault> {
    #[inline]
    fn field(self, name: &'static str) -> Self {
        self.map_err(|fault| if fault.field.is_empty() { Fault { field: name, ..fault } } else { fault })
    }
}

/// Where a reader stands in a map or an array.
pub(super) struct Remaining(u32);

/// The front of an event in Dynamo's own form.
pub(super) struct PlainEvent {
    pub(super) worker_id: u64,
    pub(super) event_id: u64,
    pub(super) run: PlainRun,
    /// Blocks or hashes to come.
    pub(super) left: Remaining,
}

/// What comes in such an event.
pub(super) enum PlainRun {
    Stored { parent: Option<u64>, start_position: Option<u32> },
    Removed,
}

/// Reads one value after the other. After an error the position is anywhere inside the value; `rewind` and `skip`
/// lead past it.
pub(super) trait Wire<'a>: Sized {
    fn new(bytes: &'a [u8]) -> Self;
    /// Offset of the next byte.
    fn at(&self) -> usize;
    /// The bytes not read yet, to `rewind` to.
    fn mark(&self) -> &'a [u8];
    fn rewind(&mut self, mark: &'a [u8]);
    /// What the next value is; reads nothing but white space.
    fn kind(&mut self) -> Result<Kind, Fault>;
    /// Whether the next value is an array.
    #[inline]
    fn is_array(&mut self) -> bool {
        matches!(self.kind(), Ok(Kind::Array))
    }
    /// Reads a null, if the next value is one.
    fn nil(&mut self) -> Result<bool, Fault>;
    fn bool(&mut self) -> Result<bool, Fault>;
    /// An integer of 64 bits, and whether it is negative.
    fn integer(&mut self) -> Result<(u64, bool), Fault>;
    /// The bytes of a text as they are sent, for comparing with words that have no escapes.
    fn word(&mut self) -> Result<&'a [u8], Fault>;
    fn text(&mut self) -> Result<Cow<'a, str>, Fault>;
    fn map(&mut self) -> Result<Remaining, Fault>;
    /// The next key as it is sent; a key that is not a text reads as empty.
    fn next_key(&mut self, left: &mut Remaining) -> Result<Option<&'a [u8]>, Fault>;
    fn array(&mut self) -> Result<Remaining, Fault>;
    fn next_element(&mut self, left: &mut Remaining) -> Result<bool, Fault>;
    /// Reads a value whatever it is.
    fn skip(&mut self) -> Result<(), Fault>;
    /// Checks that nothing follows.
    fn end(&mut self) -> Result<(), Fault>;
    /// Reads blocks of an array, at most so many, as long as each stands there exactly as Dynamo writes it: `block_hash` and
    /// `tokens_hash`. Only a short cut, half of all bytes are blocks: what comes next is still to be read, if only the array's end.
    fn plain_blocks(&mut self, left: &mut Remaining, most: usize, each: impl FnMut(u64, u64));
    /// The same of hashes.
    fn plain_hashes(&mut self, left: &mut Remaining, most: usize, each: impl FnMut(u64));
    /// All of a `RouterEvent` before its first block or hash, if it stands exactly as Dynamo writes it and is of the
    /// worker's device memory; else reads nothing that matters. Only a short cut, as `plain_blocks`.
    fn plain_event(&mut self) -> Option<PlainEvent>;
    /// What follows the last block or hash of such an event: its dp rank.
    fn plain_rank(&mut self) -> Option<u32>;

    /// The fault of a value of another type than expected, or of no value.
    #[cold]
    fn unexpected(&mut self, problem: &'static str) -> Fault {
        match self.kind() {
            Ok(kind) => {
                Fault { reason: Reason::WrongType, field: "", problem, found: Some(kind), at: self.at() }
            }
            Err(fault) => fault,
        }
    }

    /// An integer of 0 to 2⁶⁴−1.
    #[inline]
    fn u64(&mut self) -> Result<u64, Fault> {
        let at = self.at();
        match self.integer()? {
            (value, false) => Ok(value),
            _ => Err(Fault::new(Reason::WrongType, "expected an integer that is not negative", at)),
        }
    }

    /// As `u64`, and a negative number of 64 bits counts by its bits: some engines hash to signed numbers.
    #[inline]
    fn hash(&mut self) -> Result<u64, Fault> {
        self.integer().map(|(value, _)| value)
    }

    fn u32(&mut self) -> Result<u32, Fault> {
        let at = self.at();
        let value = self.u64()?;
        u32::try_from(value).map_err(|_| Fault::new(Reason::WrongType, "expected an integer below 2^32", at))
    }

    /// `None` for null, else what `read` reads.
    fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<Option<T>, Fault> {
        if self.nil()? { Ok(None) } else { read(self).map(Some) }
    }
}

/// Puts a field's value into its place; Dynamo never gives a field twice.
pub(super) fn once<T>(slot: &mut Option<T>, value: T, field: &'static str, at: usize) -> Result<(), Fault> {
    if slot.replace(value).is_some() {
        return Err(Fault { field, ..Fault::new(Reason::Malformed, "is given twice", at) });
    }
    Ok(())
}

/// The value of a field that Dynamo always sends.
pub(super) fn required<T>(slot: Option<T>, field: &'static str, at: usize) -> Result<T, Fault> {
    slot.ok_or(Fault::missing(field, at))
}

/// Goes past a bad element of an array, to whose start the reader was rewound, and counts its fault. Fails if the
/// element has no end: then there is no way on.
pub(super) fn pass<'a, W: Wire<'a>>(
    wire: &mut W,
    fault: Fault,
    faults: &mut Faults,
    to_error: fn(Fault) -> DecodeError,
) -> Result<(), Fault> {
    let passed = wire.skip();
    // One cause is one fault: an event that ends too early ends its array too early as well.
    if passed.as_ref().err().is_none_or(|end| end.reason != fault.reason) {
        faults.count(fault.reason, || to_error(fault));
    }
    passed
}
