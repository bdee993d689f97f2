//! A file of which slices can be read, as something to read and seek in. Each slice costs a call into the browser, so one is
//! kept: what is read goes on where it ended, or jumps from the head of one chunk to that of the next. Pure.

use std::io::{self, Read, Seek, SeekFrom};

/// Least bytes of a slice that goes on where the one before ended.
const SLICE_BYTES: usize = 1 << 20;
/// Least bytes of a slice elsewhere: an index of what is in a chunk, and the head of the chunk after it. A call into the
/// browser costs as much as reading so many, so that what is passed over is no longer where reading goes on.
const JUMPED_BYTES: usize = 16 << 10;

/// The file.
pub struct Slices<F> {
    /// Gives the bytes from here on, so many.
    slice: F,
    len: u64,
    at: u64,
    /// Where the slice that is retained begins, and its bytes.
    cached: (u64, Vec<u8>),
}

impl<F: FnMut(u64, usize) -> io::Result<Vec<u8>>> Slices<F> {
    /// A file of `len` bytes; `slice` gives bytes from a place on.
    pub fn new(len: u64, slice: F) -> Self {
        Self { slice, len, at: 0, cached: (0, Vec::new()) }
    }
}

impl<F: FnMut(u64, usize) -> io::Result<Vec<u8>>> Read for Slices<F> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.len.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let wanted = into.len().min(left);
        if wanted == 0 {
            return Ok(0);
        }
        let (begin, bytes) = &self.cached;
        let end = begin + bytes.len() as u64;
        if !(*begin..end).contains(&self.at) {
            let goes_on = (end..end + JUMPED_BYTES as u64).contains(&self.at);
            let least = if goes_on { SLICE_BYTES } else { JUMPED_BYTES };
            let bytes = (self.slice)(self.at, wanted.max(least).min(left))?;
            self.cached = (self.at, bytes);
        }
        let (begin, bytes) = &self.cached;
        // Within the slice, as was just seen to.
        let from = (self.at - begin) as usize;
        let come = &bytes[from.min(bytes.len())..bytes.len().min(from + wanted)];
        into[..come.len()].copy_from_slice(come);
        self.at += come.len() as u64;
        Ok(come.len())
    }
}

impl<F> Seek for Slices<F> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.len.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// A file that notes how long each of its slices was.
    fn measured<'a>(
        file: &'a [u8],
        sizes: &'a RefCell<Vec<usize>>,
    ) -> Slices<impl FnMut(u64, usize) -> io::Result<Vec<u8>> + 'a> {
        Slices::new(file.len() as u64, |at, len| {
            sizes.borrow_mut().push(len);
            Ok(file[at as usize..at as usize + len].to_vec())
        })
    }

    #[test]
    fn it_reads_as_the_file_does_with_few_slices() {
        let file: Vec<u8> = (0..400_000_u32).map(|i| (i % 251) as u8).collect();
        let slices = Cell::new(0);
        let mut read = Slices::new(file.len() as u64, |at, len| {
            slices.set(slices.get() + 1);
            Ok(file[at as usize..at as usize + len].to_vec())
        });
        for at in 0..1_000_u64 {
            let mut head = [0; 9];
            read.seek(SeekFrom::Start(at * 30)).expect("a place");
            read.read_exact(&mut head).expect("nine bytes");
            assert_eq!(head[..], file[at as usize * 30..at as usize * 30 + 9]);
        }
        assert_eq!(slices.get(), 1);
        let mut all = Vec::new();
        read.seek(SeekFrom::Start(0)).expect("the beginning");
        read.read_to_end(&mut all).expect("the file");
        assert!(all == file, "the same bytes");
        assert_eq!(read.seek(SeekFrom::End(0)).expect("the end"), file.len() as u64);
        assert_eq!(read.read(&mut [0; 4]).expect("nothing"), 0);
    }

    #[test]
    fn heads_far_apart_cost_little_and_what_goes_on_comes_in_large_slices() {
        let file = vec![7_u8; 8 << 20];
        let sizes = RefCell::new(Vec::new());
        let mut read = measured(&file, &sizes);
        let mut head = [0; 64];
        for chunk in 1..8_u64 {
            read.seek(SeekFrom::Start(chunk << 20)).expect("a place");
            read.read_exact(&mut head).expect("a head");
        }
        assert_eq!(sizes.take(), [JUMPED_BYTES; 7]);
        let mut rest = Vec::new();
        read.read_to_end(&mut rest).expect("the rest");
        assert_eq!(rest.len(), (1 << 20) - head.len());
        assert!(sizes.take().len() <= 2, "all that follows at once");
    }

    #[test]
    fn an_index_between_two_chunks_does_not_end_what_goes_on() {
        let file = vec![7_u8; 8 << 20];
        let sizes = RefCell::new(Vec::new());
        let mut read = measured(&file, &sizes);
        let mut chunk = vec![0; 90_000];
        for at in 0..40_u64 {
            read.seek(SeekFrom::Start(at * 90_200)).expect("a place");
            read.read_exact(&mut chunk).expect("a chunk");
        }
        assert!(sizes.borrow().len() <= 5, "{:?}", sizes.borrow());
    }

    #[test]
    fn a_file_that_changed_meanwhile_is_an_error() {
        let mut read = Slices::new(100, |_, _| Ok(Vec::new()));
        assert!(read.read_exact(&mut [0; 4]).is_err());
    }
}
