//! The records of a CSV text, each with the line on which it begins. Must not know what they mean.

use csv::{ReaderBuilder, StringRecord, Trim};

use super::problem::{ImportError, quoted};

/// Records with the line on which each begins. The library's own count names the line of a comment that precedes a record.
pub(super) struct Lines<'a> {
    text: &'a str,
    reader: csv::Reader<&'a [u8]>,
    /// Line on which the record begins that was read last, from 1.
    pub(super) line: usize,
    /// Bytes and line feeds before the next record.
    done: (usize, usize),
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(Trim::None)
            .comment(Some(b'#'))
            .delimiter(separator(text))
            .from_reader(text.as_bytes());
        Self { text, reader, line: 1, done: (0, 0) }
    }

    pub(super) fn next(&mut self) -> Result<Option<StringRecord>, ImportError> {
        let mut record = StringRecord::new();
        let malformed =
            |line, error: csv::Error| ImportError::Malformed { line, what: quoted(&error.to_string()) };
        let is_read =
            self.reader.read_record(&mut record).map_err(|error| malformed(self.line + 1, error))?;
        if !is_read {
            return Ok(None);
        }
        let end = usize::try_from(self.reader.position().byte()).unwrap_or(usize::MAX).min(self.text.len());
        let (bytes, feeds) = self.done;
        let read = &self.text.as_bytes()[bytes..end];
        let ended = read.trim_ascii_end().len();
        let count = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte == b'\n').count();
        let inside: usize = record.iter().map(|field| count(field.as_bytes())).sum();
        self.line = (1 + feeds + count(&read[..ended])).saturating_sub(inside);
        self.done = (end, feeds + count(read));
        Ok(Some(record))
    }
}

/// What stands most often in the header.
fn separator(text: &str) -> u8 {
    let header = text.lines().find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_default();
    let count = |separator: u8| header.bytes().filter(|&byte| byte == separator).count();
    // The last of equals wins.
    [b'\t', b';', b','].into_iter().max_by_key(|&separator| count(separator)).unwrap_or(b',')
}
