//! A chunk decompressed, bounded by its declared size, and the messages in it.

use std::io::{Read, Seek, SeekFrom};

use crate::bytes::Bytes;
use crate::error::RecordingError;
use crate::walk::{ChunkAt, op};

/// A message as it stands in a chunk.
pub(crate) struct RawMessage<'a> {
    pub(crate) number: u16,
    /// Grows with every message but for the parts of one keyframe, which share theirs.
    pub(crate) stamp: u64,
    /// The server's clock, in nanoseconds.
    pub(crate) at_ns: u64,
    pub(crate) data: &'a [u8],
}

/// Reads a chunk's records.
pub(crate) fn read<R: Read + Seek>(from: &mut R, chunk: &ChunkAt) -> Result<Vec<u8>, RecordingError> {
    let damaged = |what| RecordingError::Damaged { at: chunk.at, what };
    // Before the content stand the checksum, the counted name of the compression, and a length.
    let name_bytes = if chunk.is_zstd { "zstd".len() } else { 0 };
    let before = if chunk.crc.is_some() { 0 } else { 4 + 4 + name_bytes + 8 };
    from.seek(SeekFrom::Start(chunk.at.saturating_sub(before as u64)))?;
    // Bounded by the walk or the index, and no larger than the file.
    let mut read = vec![0; before + chunk.packed as usize];
    from.read_exact(&mut read)?;
    let crc = chunk.crc.or_else(|| Bytes(&read).u32()).unwrap_or(0);
    let packed = read.split_off(before);
    let size = chunk.size as usize;
    let records = if chunk.is_zstd {
        decompress(&packed, size).ok_or_else(|| damaged("a chunk that cannot be decompressed"))?
    } else {
        packed
    };
    if records.len() != size {
        return Err(damaged("a chunk of another size than stated"));
    }
    if crc != 0 && crc32fast::hash(&records) != crc {
        return Err(damaged("a chunk whose checksum differs"));
    }
    Ok(records)
}

/// At most `size` bytes and one more, to detect excess.
#[cfg(feature = "native")]
fn decompress(packed: &[u8], size: usize) -> Option<Vec<u8>> {
    bounded(zstd::stream::read::Decoder::with_buffer(packed).ok()?, size)
}

#[cfg(all(feature = "browser", not(feature = "native")))]
fn decompress(packed: &[u8], size: usize) -> Option<Vec<u8>> {
    bounded(ruzstd::decoding::StreamingDecoder::new(packed).ok()?, size)
}

#[cfg(not(any(feature = "native", feature = "browser")))]
fn decompress(_: &[u8], _: usize) -> Option<Vec<u8>> {
    None
}

/// Grows with what comes, not with what is claimed.
#[cfg(any(feature = "native", feature = "browser"))]
fn bounded(from: impl Read, size: usize) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(size.min(1 << 20));
    from.take(size as u64 + 1).read_to_end(&mut out).ok()?;
    Some(out)
}

/// The next message of a chunk's records, and how many bytes lead to its end.
pub(crate) fn next_message(records: &[u8]) -> Option<Result<(RawMessage<'_>, usize), ()>> {
    let mut bytes = Bytes(records);
    while !bytes.0.is_empty() {
        let Some((opcode, content)) = bytes.record() else { return Some(Err(())) };
        if opcode == op::MESSAGE {
            let mut content = Bytes(content);
            let head = (content.u16(), content.u32(), content.u64(), content.u64());
            let (Some(number), Some(_sequence), Some(stamp), Some(at_ns)) = head else {
                return Some(Err(()));
            };
            let message = RawMessage { number, stamp, at_ns, data: content.0 };
            return Some(Ok((message, records.len() - bytes.0.len())));
        }
    }
    None
}
