//! The clock: the only place that reads the system time, in the unit of records.

use std::time::{SystemTime, UNIX_EPOCH};

use radixscope_model::id::Millis;

/// Now, as Unix milliseconds.
pub(crate) fn now() -> Millis {
    // A clock before 1970 is read as 1970.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// A random number, for jitter and run ids. Ids that must not be guessed are in `random`.
pub(crate) fn random() -> u64 {
    use std::hash::BuildHasher;
    // Each `RandomState` has different keys.
    std::collections::hash_map::RandomState::new().hash_one(now().0)
}
