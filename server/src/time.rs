//! The clock: the only place that asks what time it is, in the unit of records.

use std::time::{SystemTime, UNIX_EPOCH};

use radixscope_model::id::Millis;

/// Now, as Unix milliseconds.
pub(crate) fn now() -> Millis {
    // A clock before 1970 is read as 1970; a clock beyond the year 500,000,000 does not exist.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// A number that is another each time. For spreading waits and naming runs; ids that must not be guessed are in `random`.
pub(crate) fn random() -> u64 {
    use std::hash::BuildHasher;
    // Each `RandomState` has keys of its own.
    std::collections::hash_map::RandomState::new().hash_one(now().0)
}
