//! Times in JSON.

use radixscope_model::id::Millis;

/// A time, `None` before the first of its kind.
pub(super) fn ms(at: Option<Millis>) -> Option<u64> {
    at.map(|at| at.0)
}
