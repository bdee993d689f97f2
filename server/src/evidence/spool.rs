//! Puts the records of many files in the order of their times, with bounded memory: sorted runs in a file without a name, which are
//! merged. Knows nothing of what the records are.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};

use radixscope_model::id::Millis;

use super::clocks::put_right;

/// Most bytes of records in memory, before they are sorted and written.
const RUN_BYTES: usize = 32 << 20;
/// Most bytes that all runs that are merged read ahead, and the bounds of one's share.
const AHEAD_BYTES: usize = 64 << 20;
const BLOCK_BYTES: std::ops::RangeInclusive<usize> = 4 << 10..=256 << 10;
/// Bytes of a record beside its text: its time and its length.
const HEADER_BYTES: usize = 12;

/// A sorted run: records of one file.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Index of its file.
    file: usize,
    from: u64,
    to: u64,
    first: Millis,
}

/// See the module's documentation.
pub(super) struct Spool {
    to: BufWriter<File>,
    len_bytes: u64,
    runs: Vec<Run>,
    /// Texts of the records that are not written yet, and their times and places.
    texts: Vec<u8>,
    records: Vec<(Millis, usize, usize)>,
}

impl Spool {
    /// # Errors
    /// There is no room for temporary files.
    pub(super) fn new() -> io::Result<Self> {
        let to = BufWriter::with_capacity(1 << 20, tempfile::tempfile()?);
        Ok(Self { to, len_bytes: 0, runs: Vec::new(), texts: Vec::new(), records: Vec::new() })
    }

    /// Takes a record of a file. Records of one file come together, ended by [`Self::end_file`].
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn push(&mut self, file: usize, at: Millis, text: &[u8]) -> io::Result<()> {
        if self.texts.len() + self.records.len() * size_of::<(Millis, usize, usize)>() + text.len()
            > RUN_BYTES
        {
            self.end_file(file)?;
        }
        self.records.push((at, self.texts.len(), text.len()));
        self.texts.extend_from_slice(text);
        Ok(())
    }

    /// Writes what there is of a file.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn end_file(&mut self, file: usize) -> io::Result<()> {
        // Stable: records of the same time stay in their order.
        self.records.sort_by_key(|&(at, ..)| at);
        let Some(&(first, ..)) = self.records.first() else { return Ok(()) };
        let from = self.len_bytes;
        for &(at, start, len) in &self.records {
            // Texts are shorter than a run.
            let len_field = u32::try_from(len).map_err(io::Error::other)?;
            self.to.write_all(&at.0.to_le_bytes())?;
            self.to.write_all(&len_field.to_le_bytes())?;
            self.to.write_all(&self.texts[start..start + len])?;
            self.len_bytes += (HEADER_BYTES + len) as u64;
        }
        self.runs.push(Run { file, from, to: self.len_bytes, first });
        self.texts.clear();
        self.records.clear();
        Ok(())
    }

    /// Bytes written.
    pub(super) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// All records by time. `ahead_ms` says of a file by how much its clock is ahead.
    ///
    /// # Errors
    /// The rest cannot be written.
    pub(super) fn merge(self, ahead_ms: impl Fn(usize) -> i64) -> io::Result<Merge> {
        let Self { to, runs, .. } = self;
        let file = to.into_inner().map_err(|error| error.into_error())?;
        let block_bytes = (AHEAD_BYTES / runs.len().max(1)).clamp(*BLOCK_BYTES.start(), *BLOCK_BYTES.end());
        let cursor = |run: Run| Cursor {
            ahead_ms: ahead_ms(run.file),
            file: run.file,
            at: run.from,
            to: run.to,
            block: Vec::new(),
            used: 0,
        };
        let mut cursors: Vec<Cursor> = Vec::with_capacity(runs.len());
        let mut next = BinaryHeap::with_capacity(runs.len());
        for (ix, run) in runs.into_iter().enumerate() {
            let cursor = cursor(run);
            next.push(Reverse((cursor.right(run.first), ix)));
            cursors.push(cursor);
        }
        Ok(Merge { file, cursors, next, block_bytes })
    }
}

/// A run that is read.
struct Cursor {
    file: usize,
    ahead_ms: i64,
    /// What of it is not in the block yet.
    at: u64,
    to: u64,
    /// Bytes read ahead. Empty until the run's turn, and after its end.
    block: Vec<u8>,
    used: usize,
}

impl Cursor {
    fn right(&self, at: Millis) -> Millis {
        put_right(at, self.ahead_ms)
    }

    /// The next `count` bytes.
    fn take(&mut self, from: &mut File, block_bytes: usize, count: usize) -> io::Result<&[u8]> {
        if self.block.len() - self.used < count {
            self.block.drain(..self.used);
            self.used = 0;
            let wanted = block_bytes.max(count) - self.block.len();
            let there = usize::try_from(self.to - self.at).unwrap_or(usize::MAX).min(wanted);
            let old = self.block.len();
            self.block.resize(old + there, 0);
            from.seek(SeekFrom::Start(self.at))?;
            from.read_exact(&mut self.block[old..])?;
            self.at += there as u64;
        }
        let taken = self.block.get(self.used..self.used + count);
        self.used += count;
        taken.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn is_over(&self) -> bool {
        self.at == self.to && self.used == self.block.len()
    }
}

/// A record.
pub(super) struct Spooled {
    /// Index of its file.
    pub(super) file: usize,
    /// When it was written, put right.
    pub(super) at: Millis,
    /// Its text.
    pub(super) text: Vec<u8>,
}

/// The merge of all runs.
pub(super) struct Merge {
    file: File,
    cursors: Vec<Cursor>,
    /// The time of each run's next record. At equal times the run that was written first.
    next: BinaryHeap<Reverse<(Millis, usize)>>,
    block_bytes: usize,
}

impl Merge {
    fn read(&mut self, at: Millis, ix: usize) -> io::Result<Spooled> {
        let Self { file, cursors, next, block_bytes } = self;
        let cursor = &mut cursors[ix];
        let header = cursor.take(file, *block_bytes, HEADER_BYTES)?;
        let len = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        let text = cursor.take(file, *block_bytes, len as usize)?.to_vec();
        if cursor.is_over() {
            cursor.block = Vec::new();
            cursor.used = 0;
        } else {
            // Only looked at: it is taken at its turn.
            let header = cursor.take(file, *block_bytes, HEADER_BYTES)?;
            let time = header.first_chunk().map(|time| Millis(u64::from_le_bytes(*time)));
            cursor.used -= HEADER_BYTES;
            next.push(Reverse((cursor.right(time.unwrap_or_default()), ix)));
        }
        Ok(Spooled { file: cursor.file, at, text })
    }
}

impl Iterator for Merge {
    type Item = io::Result<Spooled>;

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((at, ix)) = self.next.pop()?;
        let read = self.read(at, ix);
        if read.is_err() {
            self.next.clear();
        }
        Some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(spool: Spool, ahead_ms: impl Fn(usize) -> i64) -> Vec<(usize, u64, String)> {
        let text = |record: Spooled| String::from_utf8(record.text).unwrap();
        let row = |record: io::Result<Spooled>| {
            let record = record.unwrap();
            (record.file, record.at.0, text(record))
        };
        spool.merge(ahead_ms).unwrap().map(row).collect()
    }

    #[test]
    fn records_come_by_time_whatever_their_order_in_files_was() {
        let mut spool = Spool::new().unwrap();
        for (file, times) in [(0, vec![30, 10, 20]), (1, vec![15, 15, 40]), (2, vec![])] {
            for (n, at) in times.into_iter().enumerate() {
                spool.push(file, Millis(at), format!("{file}.{n}").as_bytes()).unwrap();
            }
            spool.end_file(file).unwrap();
        }
        let rows = merged(spool, |_| 0);
        let short: Vec<(u64, &str)> = rows.iter().map(|(_, at, text)| (*at, text.as_str())).collect();
        assert_eq!(short, [(10, "0.1"), (15, "1.0"), (15, "1.1"), (20, "0.2"), (30, "0.0"), (40, "1.2")]);
    }

    #[test]
    fn a_file_whose_clock_is_ahead_comes_when_it_was() {
        let mut spool = Spool::new().unwrap();
        for (file, at) in [(0, 100), (1, 1_050), (0, 200)] {
            spool.push(file, Millis(at), b"x").unwrap();
            spool.end_file(file).unwrap();
        }
        let rows = merged(spool, |file| if file == 1 { 900 } else { 0 });
        assert_eq!(rows.iter().map(|row| (row.0, row.1)).collect::<Vec<_>>(), [(0, 100), (1, 150), (0, 200)]);
    }

    #[test]
    fn more_than_a_run_and_records_larger_than_a_block_are_whole() {
        let mut spool = Spool::new().unwrap();
        let long = "y".repeat(1 << 20);
        let count = RUN_BYTES / long.len() * 2 + 3;
        for n in 0..count {
            let at = Millis(((n * 7) % count) as u64);
            spool.push(0, at, format!("{} {long}", at.0).as_bytes()).unwrap();
        }
        spool.end_file(0).unwrap();
        assert!(spool.runs.len() >= 3, "{}", spool.runs.len());
        let rows = merged(spool, |_| 0);
        assert_eq!(rows.len(), count);
        for (at, row) in rows.iter().enumerate() {
            assert!(row.1 == at as u64 && row.2.starts_with(&format!("{at} y")) && row.2.len() > long.len());
        }
    }
}
