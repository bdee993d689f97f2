//! Numbers in JSON: an id or hash of 64 bits is a decimal string, because a JavaScript number keeps 53 bits.

use serde::{Serialize, Serializer};

use radixscope_core::id::{BlockHash, Millis, TokensHash};

/// A full-range `u64`, as a decimal string.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Decimal(pub(super) u64);

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

impl From<BlockHash> for Decimal {
    fn from(hash: BlockHash) -> Self {
        Self(hash.0)
    }
}

impl From<TokensHash> for Decimal {
    fn from(hash: TokensHash) -> Self {
        Self(hash.0)
    }
}

/// A time, `None` before the first of its kind.
pub(super) fn ms(at: Option<Millis>) -> Option<u64> {
    at.map(|at| at.0)
}

/// JSON has no word for other numbers.
pub(super) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
