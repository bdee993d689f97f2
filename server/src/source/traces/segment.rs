//! One file of traces that grows: plain lines, or gzip members one after the other, of which the last may not be complete yet.

use std::io::{self, SeekFrom, Write as _};
use std::path::PathBuf;

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use memchr::memmem;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

use radixscope_intake::MAX_PAYLOAD_BYTES;

use crate::source::file_identity::{Identity, identity};
use crate::source::lines::Lines;

/// Maximum bytes read at once. Deflate makes at most a thousand times as many of them.
const CHUNK_BYTES: usize = 8 * 1024;
/// How a gzip member begins: its marks, and deflate as its method.
const MEMBER: [u8; 3] = [0x1f, 0x8b, 0x08];

/// What one reading gave.
pub(super) enum SegmentRead {
    /// Lines, if any is complete.
    More(Vec<Bytes>),
    /// Between two of these lines, or behind them, a part cannot be read.
    Broken(Vec<Bytes>, String),
    /// Nothing new.
    Nothing,
}

/// See the module's documentation.
pub(super) struct Segment {
    path: PathBuf,
    /// Bytes read of the file.
    offset: u64,
    identity: Option<Identity>,
    text: Text,
    lines: Lines,
}

enum Text {
    Plain,
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    /// Broken: the beginning of the next member is looked for, also across the end of what was read, whose last bytes are these.
    Seeking(Vec<u8>),
}

impl Text {
    fn of(path: &std::path::Path) -> Self {
        let is_gzip = path.extension().is_some_and(|extension| extension == "gz");
        if is_gzip { Self::gzip() } else { Self::Plain }
    }

    fn gzip() -> Self {
        Self::Gzip(Box::new(MultiGzDecoder::new(Vec::new())))
    }
}

impl Segment {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { text: Text::of(&path), offset: 0, identity: None, lines: Lines::new(MAX_PAYLOAD_BYTES), path }
    }

    /// Reads the next chunk.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) async fn read(&mut self) -> io::Result<SegmentRead> {
        let mut file = match File::open(&self.path).await {
            Ok(file) => file,
            // Removed since it was found.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(SegmentRead::Nothing),
            Err(error) => return Err(error),
        };
        let metadata = file.metadata().await?;
        let identity = identity(&metadata);
        if metadata.len() < self.offset || self.identity.is_some_and(|known| known != identity) {
            // Replaced or truncated: it starts over.
            *self = Self::new(std::mem::take(&mut self.path));
        }
        self.identity = Some(identity);
        if metadata.len() == self.offset {
            return Ok(SegmentRead::Nothing);
        }
        file.seek(SeekFrom::Start(self.offset)).await?;
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        file.take(CHUNK_BYTES as u64).read_to_end(&mut chunk).await?;
        let at = self.offset;
        self.offset += chunk.len() as u64;
        Ok(match self.take(&chunk) {
            Ok(()) => SegmentRead::More(self.complete()),
            Err(error) => {
                let mut lines = self.complete();
                self.seek(&chunk);
                lines.extend(self.complete());
                let why = format!("not gzip around byte {at} ({error}); reading goes on at the next member");
                SegmentRead::Broken(lines, why)
            }
        })
    }

    /// Takes bytes of the file.
    fn take(&mut self, chunk: &[u8]) -> io::Result<()> {
        match &mut self.text {
            Text::Plain => self.lines.push(chunk),
            Text::Gzip(decoder) => {
                let result = decoder.write_all(chunk).and_then(|()| decoder.flush());
                self.lines.push(decoder.get_ref());
                decoder.get_mut().clear();
                result?;
            }
            Text::Seeking(tail) => {
                let bytes = [tail.as_slice(), chunk].concat();
                if let Some(at) = memmem::find(&bytes, &MEMBER) {
                    self.text = Text::gzip();
                    return self.take(&bytes[at..]);
                }
                *tail = bytes[bytes.len().saturating_sub(MEMBER.len() - 1)..].to_vec();
            }
        }
        Ok(())
    }

    /// Behind a broken part: what was decoded of its line is dropped. Looks for the next member in the rest of the chunk.
    fn seek(&mut self, chunk: &[u8]) {
        self.lines = Lines::new(MAX_PAYLOAD_BYTES);
        // The member that is broken may have begun in this chunk.
        let rest = chunk.get(1..).unwrap_or_default();
        let members: Vec<usize> = memmem::find_iter(rest, &MEMBER).collect();
        for at in members {
            self.text = Text::gzip();
            if self.take(&rest[at..]).is_ok() {
                return;
            }
            self.lines = Lines::new(MAX_PAYLOAD_BYTES);
        }
        self.text = Text::Seeking(chunk[chunk.len().saturating_sub(MEMBER.len() - 1)..].to_vec());
    }

    /// Lines that are complete.
    fn complete(&mut self) -> Vec<Bytes> {
        let mut lines = Vec::new();
        while let Some(line) = self.lines.next() {
            if !line.is_empty() {
                lines.push(Bytes::copy_from_slice(line));
            }
        }
        lines
    }
}
