//! What the comparisons with Dynamo's own router crate share: captured traffic, made-up but engine-like traffic, and
//! Dynamo's tree behind the same few calls as ours. Knows nothing of what is compared.
#![forbid(unsafe_code)]

pub mod capture;
pub mod engine;
pub mod ours;
pub mod selector;
pub mod talk;
pub mod theirs;

/// Something a worker did to its cache, as given to both trees.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Stored blocks, each below the one before: engine hash and tokens hash.
    Stored {
        /// Engine hash of the block above the first; `None` at the beginning of a prompt.
        parent: Option<u64>,
        /// The blocks.
        blocks: Vec<(u64, u64)>,
    },
    /// Dropped blocks: engine hashes.
    Removed(Vec<u64>),
    /// Dropped everything.
    Cleared,
}

/// A change and whose it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Index of the worker.
    pub worker: u16,
    /// What it did.
    pub change: Change,
}
