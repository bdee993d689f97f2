//! A time by the clocks of a deployment, fine enough to keep the lines of one log in order. Must not know what happened
//! then.

use crate::id::Millis;

/// Microseconds of Unix time: log lines have them, messages only milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Micros(pub u64);

impl Micros {
    /// The beginning of a millisecond.
    pub const fn of(at: Millis) -> Self {
        Self(at.0.saturating_mul(1_000))
    }

    /// The millisecond it lies in.
    pub const fn millis(self) -> Millis {
        Millis(self.0 / 1_000)
    }

    /// So much later.
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms * 1_000))
    }

    /// So much earlier.
    pub const fn minus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_sub(ms * 1_000))
    }

    /// The microsecond before.
    pub const fn before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    /// How far apart two are, in microseconds.
    pub const fn apart(self, other: Self) -> u64 {
        self.0.abs_diff(other.0)
    }
}
