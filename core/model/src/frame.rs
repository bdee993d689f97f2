//! The frames on the socket: one version byte, then postcard. See [`Frame`].
//!
//! A viewer's life: `Hello`, then either the records after the one it named (resumed), or a snapshot in parts; from
//! then on `Batch`es, at most ten a second. A batch without records advances the time.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::id::{Millis, Seq};
use crate::record::{Entry, RECORD_VERSION, Record};

/// First byte of every frame. It changes with this file, with the form of a snapshot, and with [`RECORD_VERSION`], which
/// is therefore part of it.
pub const PROTOCOL_VERSION: u8 = 14;
const _: () = assert!(RECORD_VERSION == PROTOCOL_VERSION, "raise both together: viewers check one byte");

/// Messages from the server to a viewer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Frame<'a> {
    /// First frame on every connection.
    Hello {
        /// Names one run of the server: sequence numbers of another run mean something else.
        #[serde(with = "postcard::fixint::le")]
        epoch: u64,
        /// The last record of the log at this moment.
        seq: Seq,
        /// The server's clock.
        at_ms: Millis,
        /// The server's version, for people.
        #[serde(borrow)]
        server: Cow<'a, str>,
    },
    /// One part of the whole state; all parts together replace what the viewer knows.
    Snapshot {
        /// The state is the one after this record.
        seq: Seq,
        /// Which part, from 0.
        part: u32,
        /// How many parts there are.
        parts: u32,
        /// Input of the state's snapshot reader.
        #[serde(borrow)]
        bytes: Bytes<'a>,
    },
    /// Records.
    Batch(#[serde(borrow)] Batch<'a>),
    /// The viewer did not keep up: so many records were not sent. A snapshot follows.
    Lag {
        /// Records not sent.
        skipped: u64,
    },
}

/// Consecutive records.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Batch<'a> {
    /// Sequence number of the first record; without records, the one that comes next.
    pub first_seq: Seq,
    /// How many records.
    pub count: u32,
    /// The server's clock when it sent this.
    pub at_ms: Millis,
    /// Time that the records' times are relative to.
    base_ms: Millis,
    /// Digest of the state after the last record, given now and then.
    pub check: Option<Digest>,
    #[serde(borrow)]
    records: Bytes<'a>,
}

/// A state's digest, as eight raw bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Digest(#[serde(with = "postcard::fixint::le")] pub u64);

/// Borrowed bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bytes<'a>(pub &'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Bytes<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        <&[u8]>::deserialize(from).map(Bytes)
    }
}

/// Why bytes are not a frame of ours.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FrameError {
    /// Another version: the page is older or newer than the server.
    #[error("the server speaks protocol version {theirs}, this page speaks {PROTOCOL_VERSION}")]
    Version {
        /// The version byte received.
        theirs: u8,
    },
    /// Nothing at all.
    #[error("an empty frame")]
    Empty,
    /// Not readable as what it claims to be.
    #[error("a frame that cannot be read: {0}")]
    Codec(#[from] postcard::Error),
}

impl<'a> Frame<'a> {
    /// The frame as bytes.
    pub fn encode(&self) -> Result<Vec<u8>, FrameError> {
        Ok(postcard::to_extend(self, vec![PROTOCOL_VERSION])?)
    }

    /// Reads a frame.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, FrameError> {
        match bytes {
            [] => Err(FrameError::Empty),
            [PROTOCOL_VERSION, rest @ ..] => Ok(postcard::from_bytes(rest)?),
            [theirs, ..] => Err(FrameError::Version { theirs: *theirs }),
        }
    }
}

impl<'a> Batch<'a> {
    /// The records with their sequence numbers. Ends with an error at the first that cannot be read.
    pub fn entries(&self) -> impl Iterator<Item = Result<(Seq, Entry<'a>), FrameError>> + use<'a> {
        self.entries_by(|_, bytes| postcard::take_from_bytes(bytes))
    }

    /// The same of another version: `read` takes the record of a time from the beginning of the bytes.
    pub fn entries_by<R>(
        &self,
        mut read: R,
    ) -> impl Iterator<Item = Result<(Seq, Entry<'a>), FrameError>> + use<'a, R>
    where
        R: FnMut(Millis, &'a [u8]) -> postcard::Result<(Record<'a>, &'a [u8])>,
    {
        let Batch { first_seq, count, base_ms, records, .. } = *self;
        let mut rest = records.0;
        let mut failed = false;
        (0..u64::from(count)).map_while(move |i| {
            if failed {
                return None;
            }
            let taken = postcard::take_from_bytes::<i64>(rest).and_then(|(after_base_ms, record)| {
                let at_ms = Millis(base_ms.0.wrapping_add_signed(after_base_ms));
                Ok((at_ms, read(at_ms, record)?))
            });
            match taken {
                Ok((at_ms, (record, after))) => {
                    rest = after;
                    Some(Ok((Seq(first_seq.0.saturating_add(i)), Entry { at_ms, record })))
                }
                Err(error) => {
                    failed = true;
                    Some(Err(error.into()))
                }
            }
        })
    }
}

/// Collects records into the body of a batch, each encoded once.
#[derive(Default)]
pub struct BatchWriter {
    first_seq: Seq,
    base_ms: Millis,
    count: u32,
    records: Vec<u8>,
}

impl BatchWriter {
    /// An empty batch whose first record will be `first_seq`.
    pub fn new(first_seq: Seq) -> Self {
        Self { first_seq, ..Self::default() }
    }

    /// Adds the next record.
    pub fn push(&mut self, entry: &Entry<'_>) -> Result<(), FrameError> {
        if self.count == 0 {
            self.base_ms = entry.at_ms;
        }
        let after_base_ms = entry.at_ms.0.wrapping_sub(self.base_ms.0) as i64;
        // As it stands in a batch: its time relative to the batch's.
        #[derive(Serialize)]
        struct Borrowed<'a> {
            after_base_ms: i64,
            record: &'a Record<'a>,
        }
        let before = self.records.len();
        let records = std::mem::take(&mut self.records);
        // `records` is lost only if encoding into memory fails, which it does for no record.
        self.records = postcard::to_extend(&Borrowed { after_base_ms, record: &entry.record }, records)?;
        debug_assert!(self.records.len() > before);
        self.count += 1;
        Ok(())
    }

    /// Records so far.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Bytes so far.
    pub fn len_bytes(&self) -> usize {
        self.records.len()
    }

    /// The frame, and an empty batch after it.
    pub fn finish(&mut self, at_ms: Millis, check: Option<Digest>) -> Result<Vec<u8>, FrameError> {
        let next = Seq(self.first_seq.0.saturating_add(u64::from(self.count)));
        let done = std::mem::replace(self, Self::new(next));
        let batch = Batch {
            first_seq: done.first_seq,
            count: done.count,
            at_ms,
            base_ms: done.base_ms,
            check,
            records: Bytes(&done.records),
        };
        Frame::Batch(batch).encode()
    }
}

#[cfg(test)]
mod tests;
