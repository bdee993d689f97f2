//! Newtypes for everything Dynamo identifies by number, so that no two of them can be mixed up.
//!
//! All of Dynamo's ids and hashes are full-range `u64`: on any JSON surface they are decimal strings, because a
//! JavaScript number keeps 53 bits. This file knows nothing of messages, trees or time zones.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

/// A full-range `u64`: a decimal string in JSON, a plain number in binary forms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decimal(pub u64);

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if to.is_human_readable() { text(self.0, to) } else { to.serialize_u64(self.0) }
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        if !from.is_human_readable() {
            return u64::deserialize(from).map(Self);
        }
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        let expected = "a decimal number from 0 to 18446744073709551615, as a string";
        text.parse()
            .map(Self)
            .map_err(|_| serde::de::Error::invalid_value(serde::de::Unexpected::Str(&text), &expected))
    }
}

/// For `serialize_with`: an id that may not be known, as [`Decimal`].
///
/// # Errors
/// Those of the serializer.
pub fn optional_decimal<S: Serializer>(id: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
    id.map(Decimal).serialize(to)
}

/// For `serialize_with`: an id as [`Decimal`].
///
/// # Errors
/// Those of the serializer.
pub fn decimal<S: Serializer>(id: &u64, to: S) -> Result<S::Ok, S::Error> {
    Decimal(*id).serialize(to)
}

fn text<S: Serializer>(id: u64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(itoa::Buffer::new().format(id))
}

/// Hashes and worker ids: eight raw bytes in binary forms, a decimal string in JSON.
mod raw {
    use std::fmt;

    use serde::de::{Deserializer, Error, Visitor};
    use serde::ser::Serializer;

    /// Reads the eight bytes as the bits of an opaque number: the only type that postcard reads and writes in one piece
    /// without a length before it. An array it reads byte by byte, of which most of a snapshot's reading was. Rust keeps the bits
    /// of every `f64` that is only moved, those that are no number too.
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        struct Bits;
        impl Visitor<'_> for Bits {
            type Value = u64;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("eight raw bytes")
            }

            fn visit_f64<E: Error>(self, bits: f64) -> Result<u64, E> {
                Ok(bits.to_bits())
            }
        }
        from.deserialize_f64(Bits)
    }

    pub(super) fn serialize<S: Serializer>(id: &u64, to: S) -> Result<S::Ok, S::Error> {
        if to.is_human_readable() { super::text(*id, to) } else { to.serialize_f64(f64::from_bits(*id)) }
    }
}

/// Discovery instance id of a worker process (etcd lease, random, or hash of a pod name).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerId(#[serde(with = "raw")] pub u64);

/// What the router routes to: a worker process and one data-parallel rank of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Worker {
    /// The process.
    #[serde(rename = "worker_id")]
    pub id: WorkerId,
    /// Data-parallel rank inside it, 0 where there is only one.
    pub dp_rank: u32,
}

impl Worker {
    /// Rank `dp_rank` of the worker process `id`.
    pub const fn new(id: u64, dp_rank: u32) -> Self {
        Self { id: WorkerId(id), dp_rank }
    }
}

/// Place of a worker among those that the cluster state holds: the index of dense stores, and of the sets of workers in a
/// prefix tree. A worker that departed leaves its slot to another one; who that is, only a [`WorkerIx`] says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Slot(pub u16);

impl Slot {
    /// How many slots there are.
    pub const COUNT: usize = 1 << WorkerIx::SLOT_BITS;

    /// As an index into a slice.
    pub const fn at(self) -> usize {
        self.0 as usize
    }
}

/// Index of a [`Worker`] in the cluster state, which is never given to another one: its slot in the low 12 bits, and above
/// them the generation, how many workers had the slot before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerIx(pub u32);

impl WorkerIx {
    const SLOT_BITS: u32 = 12;

    /// The first worker of a slot.
    pub const fn first(slot: Slot) -> Self {
        Self(slot.0 as u32)
    }

    /// Its slot.
    pub const fn slot(self) -> Slot {
        Slot((self.0 % (1 << Self::SLOT_BITS)) as u16)
    }

    /// The worker of a short name, see its `Display`.
    pub fn of_label(label: &str) -> Option<Self> {
        let text = label.strip_prefix(['W', 'w'])?;
        let (slot, generation) = text.split_once('.').unwrap_or((text, "1"));
        // `parse` alone would take a leading plus sign.
        let number = |text: &str| {
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse::<u32>().ok()?.checked_sub(1)).flatten()
        };
        let slot = number(slot).filter(|&slot| (slot as usize) < Slot::COUNT)?;
        number(generation)?.checked_mul(1 << Self::SLOT_BITS)?.checked_add(slot).map(Self)
    }

    /// How many workers had its slot before it.
    pub const fn generation(self) -> u32 {
        self.0 >> Self::SLOT_BITS
    }

    /// The next worker of the same slot; `None` after a million of them.
    pub const fn next(self) -> Option<Self> {
        match self.0.checked_add(1 << Self::SLOT_BITS) {
            Some(next) => Some(Self(next)),
            None => None,
        }
    }
}

/// Short name on screen: `W3`; `W3.2` is the second worker of this slot.
impl fmt::Display for WorkerIx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "W{}", u32::from(self.slot().0) + 1)?;
        if self.generation() > 0 { write!(f, ".{}", self.generation() + 1) } else { Ok(()) }
    }
}

/// Index of a pool (the workers of one component of one namespace) in the cluster state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PoolIx(pub u16);

impl PoolIx {
    /// As an index into a slice.
    pub const fn at(self) -> usize {
        self.0 as usize
    }
}

/// Index of a source (a NATS connection, the simulator …) in the cluster state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SourceIx(pub u8);

impl SourceIx {
    /// As an index into a slice.
    pub const fn at(self) -> usize {
        self.0 as usize
    }
}

/// The engine's own hash of a block and everything before it. It means something only within one worker.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BlockHash(#[serde(with = "raw")] pub u64);

/// The router's hash of the tokens of one block alone (reference §5.10): equal tokens, equal hash on every worker.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokensHash(#[serde(with = "raw")] pub u64);

/// Position of a record in the log of one server run; the first record is 1, the empty state is 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

/// Running number of a routing decision within one server run, from 1: what is learnt of a decision later names it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DecisionId(#[serde(serialize_with = "decimal")] pub u64);

/// Unix time in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// Milliseconds from `earlier` to `self`, 0 if `earlier` is later.
    pub const fn since(self, earlier: Millis) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

macro_rules! shown_as_decimal {
    ($($t:ty),*) => {$(
        impl fmt::Display for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    )*};
}
shown_as_decimal!(WorkerId, BlockHash, TokensHash, Seq, DecisionId, Millis);

impl fmt::Display for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.id, self.dp_rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_leads_back_to_its_worker() {
        let third = WorkerIx::first(Slot(2));
        let next = third.next().expect("a next one");
        assert_eq!((third.to_string(), next.to_string()), ("W3".to_owned(), "W3.2".to_owned()));
        assert_eq!((next.slot(), next.generation()), (Slot(2), 1));
        for worker in [third, next, WorkerIx(u32::MAX)] {
            assert_eq!(WorkerIx::of_label(&worker.to_string()), Some(worker));
        }
        assert_eq!(WorkerIx(u32::MAX).next(), None);
        for text in ["", "W", "W0", "3", "W3.", "W3.0", "W+3", "W4097", "W1.9999999"] {
            assert_eq!(WorkerIx::of_label(text), None, "{text:?}");
        }
    }
}
