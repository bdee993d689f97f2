//! Values over time in two resolutions: each second of the last minutes, and longer steps of the last hour.
//!
//! Both are rings of a fixed size a worker, so that an hour costs 240 values beside the 300 of the seconds. Nothing here
//! knows what the values are.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{RATE_BUCKET_MS, RATE_WINDOW_S};
use radixscope_model::id::Millis;

/// Seconds that are kept in longer steps.
pub const HISTORY_S: u64 = 3_600;
/// Length of such a step, seconds.
pub const HISTORY_STEP_S: u64 = 15;
/// Steps kept.
pub(super) const HISTORY_STEPS: usize = (HISTORY_S / HISTORY_STEP_S) as usize;
/// Seconds kept.
pub(super) const SECONDS: usize = RATE_WINDOW_S as usize;

/// A value for each step up to the last one, at most `MOST` of them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Ring<T, const MOST: usize> {
    /// Number of the last step; meaningless while there is none.
    last: u64,
    values: VecDeque<T>,
}

impl<T: Copy, const MOST: usize> Ring<T, MOST> {
    /// The value of `step`, to be changed; every step that was not there is `fill`. `None`: longer ago than is kept.
    #[inline]
    pub(super) fn entry(&mut self, step: u64, fill: T) -> Option<&mut T> {
        if step == self.last && !self.values.is_empty() {
            return self.values.back_mut();
        }
        self.other_entry(step, fill)
    }

    /// The same of a step that is not the last one.
    #[inline(never)]
    fn other_entry(&mut self, step: u64, fill: T) -> Option<&mut T> {
        if self.values.is_empty() || step >= self.last + MOST as u64 {
            self.values.clear();
            self.values.push_back(fill);
            self.last = step;
        }
        while self.last < step {
            self.values.push_back(fill);
            self.last += 1;
            if self.values.len() > MOST {
                self.values.pop_front();
            }
        }
        // History may arrive out of order with what is live: it goes where it belongs.
        let back = usize::try_from(self.last - step).ok().filter(|back| *back < MOST)?;
        while self.values.len() <= back {
            self.values.push_front(fill);
        }
        let at = self.values.len() - 1 - back;
        self.values.get_mut(at)
    }

    /// The value of `step`; `None`: before the first one kept, or after the last.
    pub(super) fn get(&self, step: u64) -> Option<T> {
        let back = usize::try_from(self.last.checked_sub(step)?).ok()?;
        self.values.get(self.values.len().checked_sub(back + 1)?).copied()
    }

    /// Numbers of the first and the last step kept; `None` before the first value.
    pub(super) fn ends(&self) -> Option<(u64, u64)> {
        (!self.values.is_empty())
            .then(|| ((self.last + 1).saturating_sub(self.values.len() as u64), self.last))
    }
}

/// Steps of time of one length that follow each other, as far as they are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeSteps {
    /// Number of the first step since 1970.
    first: u64,
    /// Number of the step after the last one.
    end: u64,
    /// Length of a step, seconds: 1 or [`HISTORY_STEP_S`].
    len_s: u64,
}

impl TimeSteps {
    /// The full steps from `from` to `until`, none after `now`: seconds where every one is still kept, else the longer steps.
    pub fn between(from: Millis, until: Millis, now: Millis) -> Self {
        // A second more: a reader's clock and the range that it gives are not of the same moment.
        let is_fine = from.0 >= now.0.saturating_sub((RATE_WINDOW_S + 1) * RATE_BUCKET_MS);
        let (len_s, retained) = if is_fine { (1, SECONDS) } else { (HISTORY_STEP_S, HISTORY_STEPS) };
        let step_ms = len_s * RATE_BUCKET_MS;
        let oldest = (now.0 / step_ms).saturating_sub(retained as u64);
        let first = from.0.div_ceil(step_ms).max(oldest);
        Self { first, end: (until.min(now).0 / step_ms).max(first), len_s }
    }

    /// The `seconds` full seconds before the one that contains `now`, at most those kept.
    pub fn seconds(now: Millis, seconds: u64) -> Self {
        let end = now.0 / RATE_BUCKET_MS;
        Self { first: end.saturating_sub(seconds.min(RATE_WINDOW_S)), end, len_s: 1 }
    }

    /// Length of a step, seconds.
    pub const fn len_s(self) -> u64 {
        self.len_s
    }

    /// Begin of every step, in order.
    pub fn begins(self) -> impl Iterator<Item = Millis> {
        (self.first..self.end).map(move |step| Millis(step * self.len_s * RATE_BUCKET_MS))
    }

    /// Numbers of the steps.
    pub(super) const fn numbers(self) -> std::ops::Range<u64> {
        self.first..self.end
    }

    /// The Unix seconds of a step.
    pub(super) const fn seconds_of(self, step: u64) -> std::ops::Range<u64> {
        step * self.len_s..(step + 1) * self.len_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_keeps_the_latest_and_takes_what_comes_late() {
        let mut ring = Ring::<u32, 4>::default();
        assert_eq!((ring.ends(), ring.get(7)), (None, None));
        *ring.entry(10, 0).unwrap() += 5;
        *ring.entry(12, 0).unwrap() += 7;
        *ring.entry(9, 1).unwrap() += 1;
        assert_eq!(
            [8, 9, 10, 11, 12, 13].map(|at| ring.get(at)),
            [None, Some(2), Some(5), Some(0), Some(7), None]
        );
        *ring.entry(13, 0).unwrap() += 1;
        assert_eq!((ring.ends(), ring.entry(9, 0)), (Some((10, 13)), None), "what is too old is not taken");
        *ring.entry(99, 3).unwrap() += 1;
        assert_eq!(
            (ring.ends(), ring.get(99)),
            (Some((99, 99)), Some(4)),
            "long after, nothing of it is left"
        );
    }

    #[test]
    fn steps_are_seconds_as_long_as_those_are_kept() {
        let now = Millis(10_000_500);
        let ago = |seconds: u64| Millis(now.0 - seconds * 1_000);
        let fine = TimeSteps::between(ago(300), now, now);
        assert_eq!(
            (fine.len_s(), fine.begins().next(), fine.numbers().count()),
            (1, Some(Millis(9_701_000)), 299)
        );
        let coarse = TimeSteps::between(ago(900), ago(600), now);
        assert_eq!((coarse.len_s(), coarse.begins().count()), (HISTORY_STEP_S, 19), "only whole ones");
        assert!(coarse.begins().all(|at| at >= ago(900) && at.0 + 15_000 <= ago(600).0));
        let too_old = TimeSteps::between(ago(9_000), ago(8_000), now);
        assert_eq!(too_old.begins().count(), 0);
    }
}
