//! When the next keyframe is due: often enough for quick jumps, rarely enough to be cheap. Pure.

use std::time::{Duration, Instant};

/// A keyframe is due when the batches since the last one hold more bytes than this, and than the keyframe itself.
const MIN_BYTES: usize = 1 << 20;
/// It is due after this long if anything changed.
const MOST_APART: Duration = Duration::from_secs(60);
/// Minimum distance in multiples of a keyframe's cost: at most a fortieth of a core.
const APART_PER_COST: u32 = 40;

/// State since the last keyframe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spacing {
    keyframe_bytes: usize,
    bytes_since: usize,
    made: Instant,
    cost: Duration,
}

impl Spacing {
    /// After a keyframe of `keyframe_bytes`, encoded at `made` in `cost`.
    pub(crate) fn after(keyframe_bytes: usize, made: Instant, cost: Duration) -> Self {
        Self { keyframe_bytes, bytes_since: 0, made, cost }
    }

    /// A batch of `bytes` was published.
    pub(crate) fn published(&mut self, bytes: usize) {
        self.bytes_since += bytes;
    }

    /// Whether the next keyframe is due at `now`.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.made);
        let is_long = self.bytes_since > MIN_BYTES.max(self.keyframe_bytes) || passed >= MOST_APART;
        self.bytes_since > 0 && is_long && passed >= self.cost * APART_PER_COST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn bytes_or_time_make_the_next_one_due_and_its_cost_delays_it() {
        let made = Instant::now();
        let mut spacing = Spacing::after(2 * MIN_BYTES, made, SECOND);
        assert!(!spacing.is_due(made + MOST_APART * 2), "nothing changed");
        spacing.published(1);
        assert!(!spacing.is_due(made + MOST_APART - SECOND) && spacing.is_due(made + MOST_APART));
        spacing.published(2 * MIN_BYTES - 1);
        assert!(!spacing.is_due(made + SECOND * 50), "no more than the keyframe itself");
        spacing.published(1);
        assert!(!spacing.is_due(made + SECOND * 39) && spacing.is_due(made + SECOND * 40));
    }

    #[test]
    fn small_keyframes_are_not_made_for_a_few_bytes() {
        let made = Instant::now();
        let mut spacing = Spacing::after(10, made, Duration::ZERO);
        spacing.published(MIN_BYTES);
        assert!(!spacing.is_due(made));
        spacing.published(1);
        assert!(spacing.is_due(made));
    }
}
