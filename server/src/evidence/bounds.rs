//! Bounds of what archives and compressed files make: in all, and in relation to what they hold.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// What a file may unpack to, whatever its ratio.
const FREE_BYTES: u64 = 16 << 20;
/// Beyond that, how many times as many bytes as were read. Logs of one line that repeats make some hundred; bombs a thousand.
const MAX_RATIO: u64 = 400;

/// Counts what is read.
pub(super) struct Counted<R> {
    from: R,
    bytes: Rc<Cell<u64>>,
}

impl<R> Counted<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, bytes: Rc::default() }
    }

    pub(super) fn counter(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.bytes)
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(to)?;
        self.bytes.set(self.bytes.get() + count as u64);
        Ok(count)
    }
}

impl<R: io::Seek> io::Seek for Counted<R> {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.from.seek(to)
    }
}

/// Ends with an error where much more is unpacked than was read.
pub(super) struct Guarded<R> {
    from: R,
    /// Bytes that were read, packed.
    packed: Rc<Cell<u64>>,
    /// The same before the first byte of this.
    packed_before: u64,
    unpacked: u64,
}

impl<R> Guarded<R> {
    pub(super) fn new(from: R, packed: Rc<Cell<u64>>) -> Self {
        let packed_before = packed.get();
        Self { from, packed, packed_before, unpacked: 0 }
    }

    pub(super) fn inner(&self) -> &R {
        &self.from
    }
}

impl<R: Read> Read for Guarded<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(to)?;
        self.unpacked += count as u64;
        let packed = self.packed.get() - self.packed_before;
        if self.unpacked > FREE_BYTES && self.unpacked > packed.saturating_mul(MAX_RATIO) {
            let problem = format!(
                "it unpacks to more than {MAX_RATIO} times its size, as only a decompression bomb does; the rest is not read"
            );
            return Err(io::Error::other(problem));
        }
        Ok(count)
    }
}

/// How much text is read of all files together.
pub(super) struct Budget {
    max_bytes: u64,
    left_bytes: u64,
}

impl Budget {
    pub(super) fn new(max_bytes: u64) -> Self {
        Self { max_bytes, left_bytes: max_bytes }
    }

    /// # Errors
    /// It is used up.
    pub(super) fn take(&mut self, bytes: usize) -> io::Result<()> {
        let Some(left_bytes) = self.left_bytes.checked_sub(bytes as u64) else {
            self.left_bytes = 0;
            let problem = format!("the files have more than {} bytes of text (--max-size)", self.max_bytes);
            return Err(io::Error::other(problem));
        };
        self.left_bytes = left_bytes;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_unpacks_to_far_more_than_it_is_ends() {
        let packed = Rc::new(Cell::new(1_000));
        let mut guarded = Guarded::new(io::repeat(0), Rc::clone(&packed));
        packed.set(2_000);
        let mut chunk = vec![0; 1 << 20];
        let read: Vec<bool> = (0..20).map(|_| guarded.read(&mut chunk).is_ok()).collect();
        assert_eq!(read.iter().filter(|ok| **ok).count(), 16);
        assert!(!read[16..].contains(&true));
        // As much text of a larger file passes.
        let mut guarded = Guarded::new(io::repeat(0), Rc::clone(&packed));
        packed.set(2_000 + (1 << 20));
        assert!((0..20).all(|_| guarded.read(&mut chunk).is_ok()));
    }

    #[test]
    fn a_budget_is_used_up_once() {
        let mut budget = Budget::new(10);
        assert!(budget.take(10).is_ok() && budget.take(1).is_err() && budget.take(0).is_ok());
        let mut budget = Budget::new(10);
        assert!(budget.take(11).is_err() && budget.take(1).is_err(), "no later file takes what is left");
    }
}
