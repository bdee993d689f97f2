//! Writes a recording: append-only, so that a crash at any byte leaves what was written before readable.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mcap::records::{MessageHeader, Metadata};
use mcap::write::NoSeek;
use mcap::{Compression, WriteOptions};

use radixscope_model::id::Millis;

use crate::channel::Channel;
use crate::error::RecordingError;
use crate::meta::{Meta, NAME};
use crate::walk::MAX_CHUNK_BYTES;

/// A chunk ends after so many bytes: a jump decompresses little that it does not need, and compression has enough to work
/// with.
const CHUNK_BYTES: u64 = 1024 * 1024;
/// The same where it is written once and read as a whole: what stands in a chunk twice, as hashes do that are stored and later
/// removed, takes room once.
const LARGE_CHUNK_BYTES: u64 = 8 * CHUNK_BYTES;
/// zstd's level then: 10 % smaller than at 12, and 19 takes a third longer for half a percent.
const LARGE_CHUNK_LEVEL: u32 = 17;
/// Most bytes of a message: with it a chunk that was not yet full is still one that is read.
const MAX_MESSAGE_BYTES: usize = (MAX_CHUNK_BYTES - LARGE_CHUNK_BYTES - CHUNK_BYTES) as usize;
const NS_PER_MS: u64 = 1_000_000;

/// A recording on its way into a file or a stream.
pub struct Writer<W: Write> {
    mcap: mcap::Writer<NoSeek<CountingWriter<W>>>,
    bytes: Arc<AtomicU64>,
    /// Of the last message.
    stamp: u64,
    /// Messages of each channel.
    counts: [u32; Channel::ALL.len()],
}

/// What takes the messages of a recording, in order.
pub trait Target {
    /// What follows is of this run.
    fn run(&mut self, _epoch: u64) {}

    /// A whole state.
    ///
    /// # Errors
    /// It cannot be taken.
    fn keyframe(&mut self, at_ms: Millis, frames: &[Vec<u8>]) -> Result<(), RecordingError>;

    /// A message that is no part of a keyframe.
    ///
    /// # Errors
    /// It cannot be taken.
    fn message(&mut self, channel: Channel, at_ms: Millis, data: &[u8]) -> Result<(), RecordingError>;
}

impl<W: Write> Target for Writer<W> {
    fn keyframe(&mut self, at_ms: Millis, frames: &[Vec<u8>]) -> Result<(), RecordingError> {
        Writer::keyframe(self, at_ms, frames)
    }

    fn message(&mut self, channel: Channel, at_ms: Millis, data: &[u8]) -> Result<(), RecordingError> {
        Writer::message(self, channel, at_ms, data)
    }
}

impl<W: Write> Writer<W> {
    /// Begins a recording.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(to: W, meta: &Meta) -> Result<Self, RecordingError> {
        Self::with(to, meta, WriteOptions::new().chunk_size(Some(CHUNK_BYTES)))
    }

    /// Begins a recording that is as small as it can be: for one that is written once and read as a whole.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn small(to: W, meta: &Meta) -> Result<Self, RecordingError> {
        let options = WriteOptions::new()
            .chunk_size(Some(LARGE_CHUNK_BYTES))
            .compression_level(LARGE_CHUNK_LEVEL)
            .repeat_schemas(false);
        Self::with(to, meta, options)
    }

    fn with(to: W, meta: &Meta, options: WriteOptions) -> Result<Self, RecordingError> {
        let bytes = Arc::new(AtomicU64::new(0));
        let options = options
            .compression(Some(Compression::Zstd))
            .compression_threads(0)
            .library(concat!("radixscope/", env!("CARGO_PKG_VERSION")))
            // A chunk is put together in memory and written at once, so that nothing written is changed later.
            .disable_seeking(true)
            // Each chunk has its own.
            .calculate_data_section_crc(false);
        let mut mcap = options.create(NoSeek::new(CountingWriter { to, bytes: Arc::clone(&bytes) }))?;
        mcap.write_metadata(&Metadata { name: NAME.to_owned(), metadata: meta.to_map() })?;
        for channel in Channel::ALL {
            let schema = channel.schema();
            let id = mcap.add_schema(schema.name, schema.encoding, schema.text.as_bytes())?;
            let (number, none) = (channel.number(), BTreeMap::new());
            mcap.add_channel_with_id(number, id, channel.topic(), schema.messages, &none)?;
        }
        Ok(Self { mcap, bytes, stamp: 0, counts: [0; Channel::ALL.len()] })
    }

    /// Writes the whole state, in the frames of a snapshot. What came before can be read from now on.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keyframe<F: AsRef<[u8]>>(&mut self, at_ms: Millis, frames: &[F]) -> Result<(), RecordingError> {
        self.mcap.flush()?;
        let stamp = self.next_stamp(at_ms);
        frames.iter().try_for_each(|frame| self.write(Channel::Keyframes, stamp, at_ms, frame.as_ref()))
    }

    /// Writes a batch's frame, a decision, a finding or a row of the timeline.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn message(&mut self, channel: Channel, at_ms: Millis, data: &[u8]) -> Result<(), RecordingError> {
        let stamp = self.next_stamp(at_ms);
        self.write(channel, stamp, at_ms, data)
    }

    /// Ends the chunk and hands it on: what was written until now can be read from now on.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn cut(&mut self) -> Result<(), RecordingError> {
        Ok(self.mcap.flush()?)
    }

    /// Ends the recording with its index.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self) -> Result<W, RecordingError> {
        self.mcap.finish()?;
        Ok(self.mcap.into_inner().into_inner().to)
    }

    /// Bytes handed on until now.
    pub fn len_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Later than all before, whatever the clock does.
    fn next_stamp(&mut self, at_ms: Millis) -> u64 {
        self.stamp = at_ms.0.saturating_mul(NS_PER_MS).max(self.stamp + 1);
        self.stamp
    }

    fn write(
        &mut self,
        channel: Channel,
        stamp: u64,
        at_ms: Millis,
        data: &[u8],
    ) -> Result<(), RecordingError> {
        if data.len() > MAX_MESSAGE_BYTES {
            return Err(RecordingError::Damaged {
                at: self.len_bytes(),
                what: "a message that is too large to be read",
            });
        }
        let count = &mut self.counts[channel as usize];
        *count = count.wrapping_add(1);
        let publish_time = at_ms.0.saturating_mul(NS_PER_MS);
        let header =
            MessageHeader { channel_id: channel.number(), sequence: *count, log_time: stamp, publish_time };
        Ok(self.mcap.write_to_known_channel(&header, data)?)
    }
}

/// Counts what is written.
struct CountingWriter<W> {
    to: W,
    bytes: Arc<AtomicU64>,
}

impl<W: Write> Write for CountingWriter<W> {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        let written = self.to.write(buf)?;
        self.bytes.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}
