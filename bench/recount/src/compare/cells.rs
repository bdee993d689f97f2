//! Cells of the table.

use std::fmt;

/// `n of m`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ratio {
    /// That are right.
    pub n: usize,
    /// Of so many.
    pub m: usize,
}

impl Ratio {
    /// One more, right or not.
    pub(crate) fn add(&mut self, is_right: bool) {
        self.m += 1;
        self.n += usize::from(is_right);
    }

    /// Whether all are right.
    pub fn is_whole(self) -> bool {
        self.n == self.m
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self { m: 0, .. } => f.write_str("–"),
            Self { n, m } if n == m => write!(f, "{n}"),
            Self { n, m } => write!(f, "**{n} of {m}**"),
        }
    }
}
