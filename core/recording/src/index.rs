//! Where a file's chunks are by the index at its end, so that a file far away is opened with two reads. Only of files that this project wrote:
//! there a keyframe stands at the beginning of its chunk. What the index says is checked again where a chunk is read.

use std::io::{Read, Seek, SeekFrom};

use crate::bytes::Bytes;
use crate::channel::{Channel, Numbers};
use crate::error::RecordingError;
use crate::walk::{
    ChunkAt, MAGIC, MAX_CHUNK_BYTES, MAX_CHUNKS, MAX_SMALL_BYTES, RECORD_HEAD_BYTES, WalkResult, metadata, op,
};

/// An opcode, a length, and the footer's three numbers.
const FOOTER_BYTES: u64 = RECORD_HEAD_BYTES + 8 + 8 + 4;
/// Largest index: 300,000 chunks. A larger one is not read; the file is walked over instead.
const MAX_SUMMARY_BYTES: u64 = 32 << 20;
/// What the library that writes is called in the file's header.
const LIBRARY: &str = "radixscope/";

/// Bytes of a chunk's record before its content, without the name of its compression.
const CHUNK_HEAD_BYTES: u64 = RECORD_HEAD_BYTES + 8 + 8 + 8 + 4 + 4 + 8;

/// What the index says; `None`: there is none, or none that can be used.
pub(crate) fn read_index<R: Read + Seek>(from: &mut R) -> Result<Option<WalkResult>, RecordingError> {
    let len = from.seek(SeekFrom::End(0))?;
    let magic_bytes = MAGIC.len() as u64;
    let Some(footer_at) = len.checked_sub(FOOTER_BYTES + magic_bytes) else { return Ok(None) };
    let footer = part(from, footer_at, len - footer_at)?;
    let mut bytes = Bytes(&footer);
    let (Some((op::FOOTER, content)), true) = (bytes.record(), bytes.0 == MAGIC) else { return Ok(None) };
    let begin = Bytes(content).u64().filter(|&begin| begin > 0 && begin < footer_at);
    let Some(begin) = begin.filter(|begin| footer_at - begin <= MAX_SUMMARY_BYTES) else { return Ok(None) };
    let summary = part(from, begin, footer_at - begin)?;
    let Some(found) = Summary::read(&summary, begin) else { return Ok(None) };
    // The metadata stands near the beginning, behind the header.
    let (at, length) = found.metadata;
    let head = part(from, 0, magic_bytes + RECORD_HEAD_BYTES + MAX_HEADER_BYTES.min(begin))?;
    let is_ours = head.strip_prefix(&MAGIC[..]).is_some_and(|head| is_library(head, LIBRARY));
    if !is_ours || length > MAX_SMALL_BYTES || at.checked_add(length).is_none_or(|end| end > begin) {
        return Ok(None);
    }
    let record = part(from, at, length)?;
    let Some((op::METADATA, content)) = Bytes(&record).record() else { return Ok(None) };
    let Some(meta) = metadata(content)? else { return Ok(None) };
    let (meta, version) = meta;
    let Summary { numbers, chunks, .. } = found;
    Ok(Some(WalkResult { meta, version, numbers, chunks, is_finished: true, lost_bytes: 0 }))
}

/// Enough for the header's two names.
const MAX_HEADER_BYTES: u64 = 256;

/// Whether a file's first record names a library that begins like this.
fn is_library(head: &[u8], name: &str) -> bool {
    let mut bytes = Bytes(head);
    if bytes.u8() != Some(op::HEADER) || bytes.u64().is_none() {
        return false;
    }
    let (_profile, library) = (bytes.text(), bytes.text());
    library.is_some_and(|library| library.starts_with(name))
}

fn part<R: Read + Seek>(from: &mut R, at: u64, len: u64) -> Result<Vec<u8>, RecordingError> {
    from.seek(SeekFrom::Start(at))?;
    let mut part = Vec::new();
    from.take(len).read_to_end(&mut part)?;
    Ok(part)
}

struct Summary {
    numbers: Numbers,
    chunks: Vec<ChunkAt>,
    /// First byte and length of the metadata's record.
    metadata: (u64, u64),
}

impl Summary {
    /// `end`: first byte of the summary; chunks end before it.
    fn read(summary: &[u8], end: u64) -> Option<Self> {
        let mut numbers = Numbers::default();
        let mut indices = Vec::new();
        let mut metadata = None;
        let mut bytes = Bytes(summary);
        while let Some((opcode, content)) = bytes.record() {
            let mut content = Bytes(content);
            match opcode {
                op::CHANNEL => {
                    let (number, _schema, topic) = (content.u16()?, content.u16()?, content.text()?);
                    numbers.set(number, topic);
                }
                op::CHUNK_INDEX => indices.push(content),
                op::METADATA_INDEX => {
                    let (at, length, name) = (content.u64()?, content.u64()?, content.text()?);
                    if name == crate::meta::NAME {
                        metadata.get_or_insert((at, length));
                    }
                }
                _ => {}
            }
        }
        if !bytes.0.is_empty() || indices.len() > MAX_CHUNKS {
            return None;
        }
        let chunks =
            indices.into_iter().map(|index| chunk(index, &numbers, end)).collect::<Option<Vec<_>>>()?;
        let in_order = chunks.windows(2).all(|pair| pair[0].at + pair[0].packed <= pair[1].at);
        Some(Self { numbers, chunks, metadata: metadata.filter(|_| in_order)? })
    }
}

fn chunk(mut bytes: Bytes<'_>, numbers: &Numbers, end: u64) -> Option<ChunkAt> {
    let stamps = (bytes.u64()?, bytes.u64()?);
    let (begin, length) = (bytes.u64()?, bytes.u64()?);
    let mut offsets = Bytes(bytes.counted()?);
    let _index_bytes = bytes.u64()?;
    let compression = bytes.text()?;
    let (packed, size) = (bytes.u64()?, bytes.u64()?);
    let is_zstd = match compression {
        "" => false,
        "zstd" => true,
        _ => return None,
    };
    let before = CHUNK_HEAD_BYTES + compression.len() as u64;
    let fits = packed.checked_add(before) == Some(length)
        && begin.checked_add(length).is_some_and(|chunk_end| chunk_end <= end)
        && size <= MAX_CHUNK_BYTES
        && packed <= MAX_CHUNK_BYTES;
    if !fits {
        return None;
    }
    let mut channels = 0;
    while let (Some(number), Some(_offset)) = (offsets.u16(), offsets.u64()) {
        channels |= numbers.channel(number).map_or(0, Channel::bit);
    }
    let keyframe = (channels & Channel::Keyframes.bit() != 0).then_some(stamps.0);
    let at = begin + before;
    Some(ChunkAt { at, packed, size, crc: None, is_zstd, stamps, channels: Some(channels), keyframe })
}
