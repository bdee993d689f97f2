//! Splits chunks of bytes into lines, with a bound for the length of a line. Knows nothing of files and Dynamo.

use memchr::memchr;

/// A buffer for incomplete lines.
pub(crate) struct Lines {
    /// Longest line that is given whole, in bytes.
    max_bytes: usize,
    buffer: Vec<u8>,
    /// Start of the next line.
    start: usize,
    /// How far the buffer was searched for a line feed.
    searched: usize,
    /// The start of an overlong line was returned; its remainder is skipped.
    is_passing: bool,
}

impl Lines {
    pub(crate) const fn new(max_bytes: usize) -> Self {
        Self { max_bytes, buffer: Vec::new(), start: 0, searched: 0, is_passing: false }
    }

    /// Appends bytes and discards the lines that [`Self::next`] returned.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete line, without its line feed. A longer one than the longest is cut to one byte more than
    /// that, and returned as soon as that much is available.
    pub(crate) fn next(&mut self) -> Option<&[u8]> {
        let most = self.max_bytes + 1;
        loop {
            let Some(feed) = memchr(b'\n', &self.buffer[self.searched..]).map(|at| self.searched + at) else {
                self.searched = self.buffer.len();
                if self.is_passing {
                    self.start = self.searched;
                    return None;
                }
                if self.searched - self.start < most {
                    return None;
                }
                self.is_passing = true;
                let front = self.start..self.start + most;
                self.start = self.searched;
                return Some(&self.buffer[front]);
            };
            let line = self.start..feed.min(self.start + most);
            (self.start, self.searched) = (feed + 1, feed + 1);
            if !std::mem::take(&mut self.is_passing) {
                return Some(&self.buffer[line]);
            }
        }
    }

    /// End of input: the remainder without a line feed.
    pub(crate) fn end(&mut self) -> Option<Vec<u8>> {
        let Self { buffer, start, is_passing, .. } = std::mem::replace(self, Self::new(self.max_bytes));
        let rest = buffer.get(start..).unwrap_or_default();
        (!rest.is_empty() && !is_passing).then(|| rest.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_BYTES: usize = 256 * 1024;

    /// Lines of a text that comes in pieces of `size` bytes.
    fn lines(text: &[u8], size: usize) -> Vec<Vec<u8>> {
        let (mut lines, mut found) = (Lines::new(MAX_BYTES), Vec::new());
        for piece in text.chunks(size) {
            lines.push(piece);
            while let Some(line) = lines.next() {
                found.push(line.to_vec());
            }
            assert!(lines.buffer.len() <= MAX_BYTES + 1 + size, "{}", lines.buffer.len());
        }
        found.extend(lines.end());
        found
    }

    #[test]
    fn lines_are_the_same_in_whatever_pieces_they_come() {
        let text = b"one\n\ntwo\r\n\xff\xfe\nlast without a feed";
        let expected: [&[u8]; 5] = [b"one", b"", b"two\r", b"\xff\xfe", b"last without a feed"];
        for size in 1..=text.len() {
            assert_eq!(lines(text, size), expected, "in pieces of {size}");
        }
        assert_eq!(lines(b"a\n", 1), [b"a"]);
        assert!(lines(b"", 1).is_empty());
    }

    #[test]
    fn a_line_without_end_is_given_cut_and_the_next_one_whole() {
        let long = vec![b'x'; 3 * MAX_BYTES];
        let text = [b"before\n", long.as_slice(), b"\nafter\n", &long].concat();
        for size in [4_096, 65_536, text.len()] {
            let found = lines(&text, size);
            let lengths: Vec<usize> = found.iter().map(Vec::len).collect();
            let cut = MAX_BYTES + 1;
            assert_eq!(lengths, [6, cut, 5, cut], "in pieces of {size}");
        }
    }

    #[test]
    fn the_longest_line_is_whole() {
        let mut text = vec![b'x'; MAX_BYTES];
        text.push(b'\n');
        assert_eq!(lines(&text, 1_000), [&text[..MAX_BYTES]]);
    }
}
