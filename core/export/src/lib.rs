//! Decisions and findings as others read them: JSON as the API gives it, CSV, and findings in Markdown. Knows no file and
//! no request.
//!
//! Ids and hashes are decimal strings in JSON, because a JavaScript number keeps 53 bits.
#![forbid(unsafe_code)]

mod checks;
pub mod colour;
pub mod csv;
mod decisions;
pub mod finding_ticket;
mod memory;
mod settings;
pub mod tree;

use serde::{Serialize, Serializer};

use radixscope_model::id::{BlockHash, TokensHash};

pub use checks::{FindingsDto, Wanted};
pub use decisions::{DecisionDto, DecisionsDto, TotalsDto, finite};
pub use memory::{BlockLifetimesDto, MemoryDto};
pub use settings::settings;

/// A full-range `u64`, as a decimal string.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decimal(pub u64);

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
