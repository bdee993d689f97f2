//! Requests in flight on a worker over time: second by second over the last minutes, in longer steps over the last hour.

use serde::{Deserialize, Serialize};

use super::RATE_BUCKET_MS;
use super::history::{HISTORY_STEP_S, HISTORY_STEPS, Ring, SECONDS, TimeSteps};
use radixscope_model::id::Millis;

/// The most requests at once in each step since the first one known.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct InFlight {
    /// Now.
    now: u32,
    seconds: Ring<u32, SECONDS>,
    steps: Ring<u32, HISTORY_STEPS>,
}

impl InFlight {
    pub(super) fn set(&mut self, at: Millis, now: u32, most: u32) {
        let last = self.seconds.ends().map_or(0, |(_, last)| last);
        let second = (at.0 / RATE_BUCKET_MS).max(last);
        // Nothing was reported in between because nothing changed.
        let before = self.now;
        let values = [self.seconds.entry(second, before), self.steps.entry(second / HISTORY_STEP_S, before)];
        for value in values.into_iter().flatten() {
            *value = (*value).max(most).max(now);
        }
        self.now = now;
    }

    /// Latest number of requests; `None`: no source reports when requests end.
    pub fn now(&self) -> Option<u32> {
        self.seconds.ends().map(|_| self.now)
    }

    /// The most at once in the Unix second `second`; `None` before the first word.
    pub fn most_in(&self, second: u64) -> Option<u32> {
        self.most(second, 1)
    }

    /// The most at once in every step of `steps`; `None` before the first word.
    pub fn most_in_steps(&self, steps: TimeSteps) -> impl Iterator<Item = Option<u32>> + '_ {
        steps.numbers().map(move |step| self.most(step, steps.len_s()))
    }

    fn most(&self, step: u64, len_s: u64) -> Option<u32> {
        let (ends, value) = match len_s {
            1 => (self.seconds.ends(), self.seconds.get(step)),
            _ => (self.steps.ends(), self.steps.get(step)),
        };
        if ends.is_none_or(|(_, last)| step > last) { self.now() } else { value }
    }
}
