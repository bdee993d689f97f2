//! One file of traces that grows: plain lines, or gzip members one after the other, of which the last may not be complete yet.

use std::io::{self, SeekFrom};
use std::path::PathBuf;

use bytes::Bytes;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

use radixscope_intake::MAX_PAYLOAD_BYTES;

use crate::source::file_identity::{Identity, identity};
use crate::source::gzip::{CHUNK_BYTES, Members};
use crate::source::lines::Lines;

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
    Gzip(Members),
}

impl Text {
    fn of(path: &std::path::Path) -> Self {
        let is_gzip = path.extension().is_some_and(|extension| extension == "gz");
        if is_gzip { Self::Gzip(Members::new()) } else { Self::Plain }
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
        let Text::Gzip(members) = &mut self.text else {
            self.lines.push(chunk);
            return Ok(());
        };
        let mut text = Vec::new();
        let result = members.push(chunk, &mut text);
        self.lines.push(&text);
        result
    }

    /// Behind a broken part: what was decoded of its line is dropped.
    fn seek(&mut self, chunk: &[u8]) {
        let Text::Gzip(members) = &mut self.text else { return };
        let mut text = Vec::new();
        members.seek(chunk, &mut text);
        self.lines = Lines::new(MAX_PAYLOAD_BYTES);
        self.lines.push(&text);
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
