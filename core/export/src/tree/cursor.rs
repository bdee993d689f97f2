//! Where a page ended, so that the next one goes on after it.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::Sort;
use radixscope_model::id::{BlockHash, TokensHash};

/// Longest text that is a cursor: four numbers of 64 bits, one of 32, a letter and five dots.
const MAX_TEXT: usize = 4 * 20 + 10 + 1 + 5;

/// The last element of a page: what it is, where it stood among its siblings, and what is above it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cursor {
    pub(super) sort: Sort,
    /// By what it was sorted, the smaller first.
    pub(super) rank: u64,
    pub(super) tokens: TokensHash,
    pub(super) block: BlockHash,
    /// Blocks before its first one, counted from the top or from a missing parent.
    pub(super) position: u32,
    /// The block before its first one.
    pub(super) above: Option<BlockHash>,
}

/// A text that is no cursor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no cursor")]
pub struct BadCursor;

impl Cursor {
    /// The order in which it goes on.
    pub fn sort(&self) -> Sort {
        self.sort
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sort, rank, tokens, block, position, above } = self;
        write!(f, "{}.{rank}.{tokens}.{block}.{position}.", sort.letter())?;
        above.map_or(Ok(()), |above| above.fmt(f))
    }
}

impl Serialize for Cursor {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl FromStr for Cursor {
    type Err = BadCursor;

    fn from_str(text: &str) -> Result<Self, BadCursor> {
        if text.len() > MAX_TEXT {
            return Err(BadCursor);
        }
        let mut parts = text.split('.');
        let mut next = || parts.next().ok_or(BadCursor);
        let number = |text: &str| text.parse::<u64>().map_err(|_| BadCursor);
        let cursor = Self {
            sort: Sort::of_letter(next()?).ok_or(BadCursor)?,
            rank: number(next()?)?,
            tokens: TokensHash(number(next()?)?),
            block: BlockHash(number(next()?)?),
            position: next()?.parse().map_err(|_| BadCursor)?,
            above: match next()? {
                "" => None,
                above => Some(BlockHash(number(above)?)),
            },
        };
        if parts.next().is_some() { Err(BadCursor) } else { Ok(cursor) }
    }
}
