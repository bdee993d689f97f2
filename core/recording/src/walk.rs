//! A walk over a file from record to record, without decompressing anything: where its chunks are, when they are of and
//! what they hold. It ends at the first record that is not whole, and returns how many bytes are left.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};

use crate::bytes::Bytes;
use crate::channel::{Channel, Numbers};
use crate::error::RecordingError;
use crate::meta::{self, Meta};

/// Most bytes of a chunk, decompressed or not: what reading a file takes is bounded by it. Writers end a chunk after about
/// a mebibyte; only one message larger than that makes a larger one.
pub const MAX_CHUNK_BYTES: u64 = 64 * 1024 * 1024;
/// Most chunks of a file: two weeks of one a second.
pub const MAX_CHUNKS: usize = 1_200_000;
/// Most bytes of a record that is read whole: metadata, channels, the part of an index that is looked at.
pub(crate) const MAX_SMALL_BYTES: u64 = 64 * 1024;

pub(crate) const MAGIC: &[u8; 8] = b"\x89MCAP0\r\n";
/// An opcode and a length.
pub(crate) const RECORD_HEAD_BYTES: u64 = 9;

/// Opcodes, <https://mcap.dev/spec>.
pub(crate) mod op {
    pub(crate) const HEADER: u8 = 0x01;
    pub(crate) const FOOTER: u8 = 0x02;
    pub(crate) const CHANNEL: u8 = 0x04;
    pub(crate) const MESSAGE: u8 = 0x05;
    pub(crate) const CHUNK: u8 = 0x06;
    pub(crate) const MESSAGE_INDEX: u8 = 0x07;
    pub(crate) const CHUNK_INDEX: u8 = 0x08;
    pub(crate) const METADATA: u8 = 0x0C;
    pub(crate) const METADATA_INDEX: u8 = 0x0D;
}

/// Where a chunk is and what is in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkAt {
    /// First byte of its content.
    pub(crate) at: u64,
    /// Bytes of it in the file.
    pub(crate) packed: u64,
    /// Bytes of it decompressed.
    pub(crate) size: u64,
    /// Checksum of the decompressed bytes; 0: none. `None`: it stands before the content and is not read yet.
    pub(crate) crc: Option<u32>,
    pub(crate) is_zstd: bool,
    /// Stamps of the first and the last message.
    pub(crate) stamps: (u64, u64),
    /// Bits of the channels with messages in it; `None`: the file does not say.
    pub(crate) channels: Option<u8>,
    /// Stamp of the first keyframe's message in it.
    pub(crate) keyframe: Option<u64>,
}

impl ChunkAt {
    /// Whether messages of a channel may be in it.
    pub(crate) fn may_hold(&self, channel: Channel) -> bool {
        self.channels.is_none_or(|bits| bits & channel.bit() != 0)
    }
}

/// What a walk found.
#[derive(Debug)]
pub(crate) struct WalkResult {
    pub(crate) meta: Meta,
    /// Of its records.
    pub(crate) version: u8,
    pub(crate) numbers: Numbers,
    pub(crate) chunks: Vec<ChunkAt>,
    /// Whether the file was ended in order.
    pub(crate) is_finished: bool,
    /// Bytes at the end that are no whole record.
    pub(crate) lost_bytes: u64,
}

/// Walks over a file.
pub(crate) fn walk<R: Read + Seek>(from: &mut R) -> Result<WalkResult, RecordingError> {
    let len = from.seek(SeekFrom::End(0))?;
    from.seek(SeekFrom::Start(0))?;
    let mut magic = [0; MAGIC.len()];
    if len < magic.len() as u64 {
        return Err(RecordingError::NotARecording);
    }
    from.read_exact(&mut magic)?;
    if magic != *MAGIC {
        return Err(RecordingError::NotARecording);
    }
    let mut walk =
        ChunkWalk { from, len, meta: None, numbers: Numbers::default(), chunks: Vec::new(), finished: false };
    let mut at = MAGIC.len() as u64;
    while !walk.finished {
        match walk.record(at)? {
            Some(next) => at = next,
            None => break,
        }
    }
    let ChunkWalk { meta, numbers, chunks, finished, .. } = walk;
    let lost_bytes = if finished { 0 } else { len - at };
    let (meta, version) = meta.ok_or(RecordingError::NotARecording)?;
    Ok(WalkResult { meta, version, numbers, chunks, is_finished: finished, lost_bytes })
}

struct ChunkWalk<'r, R> {
    from: &'r mut R,
    len: u64,
    meta: Option<(Meta, u8)>,
    numbers: Numbers,
    chunks: Vec<ChunkAt>,
    finished: bool,
}

impl<R: Read + Seek> ChunkWalk<'_, R> {
    /// Takes the record at `at`; where the next one begins, or `None` if there is no whole one.
    fn record(&mut self, at: u64) -> Result<Option<u64>, RecordingError> {
        if self.len - at < RECORD_HEAD_BYTES {
            return Ok(None);
        }
        self.from.seek(SeekFrom::Start(at))?;
        let mut head = [0; RECORD_HEAD_BYTES as usize];
        self.from.read_exact(&mut head)?;
        let [opcode, len @ ..] = head;
        let len = u64::from_le_bytes(len);
        let content = at + RECORD_HEAD_BYTES;
        if len > self.len - content {
            return Ok(None);
        }
        let is_read = match opcode {
            // Nothing was ever written with this opcode: zeros of a file system after a crash.
            0 => return Ok(None),
            op::CHUNK => self.chunk(content, len)?,
            op::MESSAGE_INDEX => self.message_index(len)?,
            op::METADATA => self.metadata(len)?,
            op::CHANNEL => self.channel(len)?,
            op::FOOTER => {
                self.finished = true;
                true
            }
            _ => true,
        };
        Ok(is_read.then_some(content + len))
    }

    /// The first bytes of the record that the file stands at.
    fn beginning(&mut self, len: u64) -> Result<Vec<u8>, RecordingError> {
        let mut bytes = vec![0; len.min(MAX_SMALL_BYTES) as usize];
        self.from.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Whether it is one that can be read.
    fn chunk(&mut self, at: u64, len: u64) -> Result<bool, RecordingError> {
        /// Enough for the fixed part and the name of a compression.
        const HEAD_BYTES: u64 = 64;
        if self.chunks.len() >= MAX_CHUNKS {
            return Ok(false);
        }
        let head = self.beginning(len.min(HEAD_BYTES))?;
        let mut bytes = Bytes(&head);
        let read = |bytes: &mut Bytes<'_>| -> Option<ChunkAt> {
            let stamps = (bytes.u64()?, bytes.u64()?);
            let (size, crc) = (bytes.u64()?, bytes.u32()?);
            let compression = bytes.text()?;
            let packed = bytes.u64()?;
            let before = (head.len() - bytes.0.len()) as u64;
            let is_zstd = match compression {
                "" => false,
                "zstd" => true,
                _ => return None,
            };
            let fits = packed == len - before && size <= MAX_CHUNK_BYTES && packed <= MAX_CHUNK_BYTES;
            let chunk = ChunkAt {
                at: at + before,
                packed,
                size,
                crc: Some(crc),
                is_zstd,
                stamps,
                channels: None,
                keyframe: None,
            };
            fits.then_some(chunk)
        };
        let chunk = read(&mut bytes);
        self.chunks.extend(chunk);
        Ok(chunk.is_some())
    }

    /// Its entry about the chunk before it. An unusable one is skipped.
    fn message_index(&mut self, len: u64) -> Result<bool, RecordingError> {
        /// A channel, a length, the first entry.
        const HEAD_BYTES: u64 = 2 + 4 + 8;
        let head = self.beginning(len.min(HEAD_BYTES))?;
        let mut bytes = Bytes(&head);
        let (number, entries_bytes, stamp) = (bytes.u16(), bytes.u32(), bytes.u64());
        let Some(chunk) = self.chunks.last_mut() else { return Ok(true) };
        let bits = chunk.channels.get_or_insert(0);
        if let Some(channel) = number.and_then(|number| self.numbers.channel(number))
            && entries_bytes.is_some_and(|bytes| bytes > 0)
        {
            *bits |= channel.bit();
            if channel == Channel::Keyframes {
                chunk.keyframe = stamp;
            }
        }
        Ok(true)
    }

    fn metadata(&mut self, len: u64) -> Result<bool, RecordingError> {
        let content = self.beginning(len)?;
        if self.meta.is_none() {
            self.meta = metadata(&content)?;
        }
        Ok(true)
    }

    fn channel(&mut self, len: u64) -> Result<bool, RecordingError> {
        let content = self.beginning(len)?;
        let mut bytes = Bytes(&content);
        if let (Some(number), Some(_schema), Some(topic)) = (bytes.u16(), bytes.u16(), bytes.text())
            && self.numbers.set(number, topic)
        {
            // Written by another tool: earlier indices refer to other channels.
            self.chunks.iter_mut().for_each(|chunk| (chunk.channels, chunk.keyframe) = (None, None));
        }
        Ok(true)
    }
}

/// The metadata in a record, with the version of the file's records; `None`: it is another tool's.
pub(crate) fn metadata(content: &[u8]) -> Result<Option<(Meta, u8)>, RecordingError> {
    let mut bytes = Bytes(content);
    if bytes.text() != Some(meta::NAME) {
        return Ok(None);
    }
    let mut map = BTreeMap::new();
    if let Some(entries) = bytes.counted() {
        let mut entries = Bytes(entries);
        while let (Some(key), Some(value)) = (entries.text(), entries.text()) {
            map.insert(key, value);
        }
    }
    Meta::of(&map).map(Some)
}
