//! Gzip members one after the other, in whatever pieces they come: also of a file that grows or ends early, and behind a part that
//! is broken.

use std::io::{self, Read, Write as _};

use flate2::write::MultiGzDecoder;
use memchr::memmem;

/// Most bytes that are unpacked at once. Deflate makes at most a thousand times as many of them.
pub(crate) const CHUNK_BYTES: usize = 8 * 1024;
/// How a gzip member begins: its marks, and deflate as its method.
const MEMBER: [u8; 3] = [0x1f, 0x8b, 0x08];

/// Whether bytes are the beginning of a gzip member.
pub(crate) fn is_gzip(head: &[u8]) -> bool {
    head.starts_with(&MEMBER)
}

/// See the module's documentation.
pub(crate) enum Members {
    /// Within or between members.
    Reading(Box<MultiGzDecoder<Vec<u8>>>),
    /// Broken: the beginning of the next member is looked for, also across the end of what was read, whose last bytes are these.
    Seeking(Vec<u8>),
}

impl Members {
    pub(crate) fn new() -> Self {
        Self::Reading(Box::new(MultiGzDecoder::new(Vec::new())))
    }

    /// Unpacks a chunk into `text`.
    ///
    /// # Errors
    /// A part of it is broken. What lay before it is in `text`; [`Self::seek`] goes on behind it.
    pub(crate) fn push(&mut self, chunk: &[u8], text: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Reading(decoder) => {
                let result = decoder.write_all(chunk).and_then(|()| decoder.flush());
                text.extend_from_slice(decoder.get_ref());
                decoder.get_mut().clear();
                result
            }
            Self::Seeking(tail) => {
                let bytes = [tail.as_slice(), chunk].concat();
                if let Some(at) = memmem::find(&bytes, &MEMBER) {
                    *self = Self::new();
                    return self.push(&bytes[at..], text);
                }
                *tail = bytes[bytes.len().saturating_sub(MEMBER.len() - 1)..].to_vec();
                Ok(())
            }
        }
    }

    /// Goes on at the next member in a chunk that was broken, else in what follows. Unpacks what there is of it into `text`.
    pub(crate) fn seek(&mut self, chunk: &[u8], text: &mut Vec<u8>) {
        // The member that is broken may have begun in this chunk.
        let rest = chunk.get(1..).unwrap_or_default();
        let before = text.len();
        for at in memmem::find_iter(rest, &MEMBER) {
            *self = Self::new();
            if self.push(&rest[at..], text).is_ok() {
                return;
            }
            text.truncate(before);
        }
        *self = Self::Seeking(chunk[chunk.len().saturating_sub(MEMBER.len() - 1)..].to_vec());
    }

    /// Whether the last member is complete, now that nothing follows.
    pub(crate) fn is_complete(&mut self) -> bool {
        match self {
            Self::Reading(decoder) => decoder.try_finish().is_ok(),
            // What is broken was reported.
            Self::Seeking(_) => true,
        }
    }
}

/// Unpacks what it reads. What is broken ends the line that it stands in.
pub(crate) struct Unpacked<R> {
    from: R,
    members: Members,
    text: Vec<u8>,
    at: usize,
    read_bytes: u64,
    /// Where parts are broken, in bytes that were read.
    broken: Vec<u64>,
    has_ended: bool,
    is_truncated: bool,
}

impl<R: Read> Unpacked<R> {
    pub(crate) fn new(from: R) -> Self {
        let members = Members::new();
        let (text, broken) = (Vec::new(), Vec::new());
        Self { from, members, text, at: 0, read_bytes: 0, broken, has_ended: false, is_truncated: false }
    }

    /// What is wrong with what was read so far, in words.
    pub(crate) fn problem(&self) -> Option<String> {
        if let Some(first) = self.broken.first() {
            let places = self.broken.len();
            return Some(format!("the gzip data is broken around byte {first} ({places} in all)"));
        }
        self.is_truncated.then(|| format!("the gzip data ends early, at byte {}", self.read_bytes))
    }

    fn fill(&mut self) -> io::Result<()> {
        self.text.clear();
        self.at = 0;
        let mut chunk = [0; CHUNK_BYTES];
        while self.text.is_empty() && !self.has_ended {
            let count = self.from.read(&mut chunk)?;
            if count == 0 {
                self.has_ended = true;
                self.is_truncated = self.read_bytes > 0 && !self.members.is_complete();
                break;
            }
            let chunk = &chunk[..count];
            if self.members.push(chunk, &mut self.text).is_err() {
                self.broken.push(self.read_bytes);
                self.text.push(b'\n');
                self.members.seek(chunk, &mut self.text);
            }
            self.read_bytes += count as u64;
        }
        Ok(())
    }
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.at == self.text.len() {
            self.fill()?;
        }
        let count = to.len().min(self.text.len() - self.at);
        to[..count].copy_from_slice(&self.text[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn unpacked(bytes: &[u8]) -> (String, Option<String>) {
        let mut unpacked = Unpacked::new(bytes);
        let mut text = String::new();
        unpacked.read_to_string(&mut text).unwrap();
        (text, unpacked.problem())
    }

    #[test]
    fn members_follow_each_other() {
        let bytes = [gzip("one\n"), gzip("two\n")].concat();
        assert_eq!(unpacked(&bytes), ("one\ntwo\n".to_owned(), None));
    }

    #[test]
    fn what_ends_early_is_read_as_far_as_it_goes() {
        let long: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
        let bytes = gzip(&long);
        let (text, problem) = unpacked(&bytes[..bytes.len() / 2]);
        assert!(text.len() > long.len() / 4 && long.starts_with(&text), "{}", text.len());
        assert!(problem.unwrap().contains("ends early"));
        assert_eq!(unpacked(&bytes[..bytes.len() - 4]).0, long, "only its sum is missing");
        assert!(unpacked(&bytes[..bytes.len() - 4]).1.is_some());
    }

    #[test]
    fn behind_a_broken_member_the_next_one_is_read() {
        let mut bytes = [gzip("one\n"), gzip("two\n"), gzip("three\n")].concat();
        let second = gzip("one\n").len();
        bytes[second] ^= 0xff;
        let (text, problem) = unpacked(&bytes);
        assert!(text.starts_with("one\n") && text.ends_with("three\n") && !text.contains("two"), "{text}");
        assert!(problem.unwrap().contains("broken around byte 0"));
    }
}
