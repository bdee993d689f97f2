//! Requests in flight on a worker, second by second, over the last minutes.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{RATE_BUCKET_MS, RATE_WINDOW_S};
use radixscope_model::id::Millis;

/// The most requests at once in each second since the first one known.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct InFlight {
    /// Now.
    now: u32,
    /// Unix second of the last of `most`.
    last_s: u64,
    most: VecDeque<u32>,
}

impl InFlight {
    pub(super) fn set(&mut self, at: Millis, now: u32, most: u32) {
        let second = at.0 / RATE_BUCKET_MS;
        if self.most.is_empty() || second >= self.last_s + RATE_WINDOW_S {
            self.most.clear();
            self.most.push_back(now.max(most));
            self.last_s = second;
        }
        while self.last_s < second {
            // Nothing was reported because nothing changed.
            self.most.push_back(self.now);
            self.last_s += 1;
            if self.most.len() as u64 > RATE_WINDOW_S {
                self.most.pop_front();
            }
        }
        if let Some(last) = self.most.back_mut() {
            *last = (*last).max(most).max(now);
        }
        self.now = now;
    }

    /// Requests at the last word; `None`: no source tells when requests end.
    pub fn now(&self) -> Option<u32> {
        (!self.most.is_empty()).then_some(self.now)
    }

    /// The most at once in the Unix second `second`; `None` before the first word.
    pub fn most_in(&self, second: u64) -> Option<u32> {
        if self.most.is_empty() || second > self.last_s {
            return self.now();
        }
        let back = usize::try_from(self.last_s - second).ok()?;
        self.most.get(self.most.len().checked_sub(back + 1)?).copied()
    }
}
