//! Blocks stored and removed per second over the last minutes, in a ring of buckets.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::id::Millis;

/// Length of a bucket.
pub const RATE_BUCKET_MS: u64 = 1000;
/// Seconds kept.
pub const RATE_WINDOW_S: u64 = 300;

/// What happened within one second.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Bucket {
    /// Blocks stored.
    pub stored: u32,
    /// Blocks removed.
    pub removed: u32,
}

/// Buckets up to the second of the last event.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Rates {
    /// Unix second of the last bucket; meaningless while there is none.
    last_s: u64,
    buckets: VecDeque<Bucket>,
}

impl Rates {
    pub(super) fn add(&mut self, at: Millis, stored: u32, removed: u32) {
        let second = at.0 / RATE_BUCKET_MS;
        if self.buckets.is_empty() || second >= self.last_s + RATE_WINDOW_S {
            self.buckets.clear();
            self.buckets.push_back(Bucket::default());
            self.last_s = second;
        }
        while self.last_s < second {
            self.buckets.push_back(Bucket::default());
            self.last_s += 1;
            if self.buckets.len() as u64 > RATE_WINDOW_S {
                self.buckets.pop_front();
            }
        }
        // History may arrive out of order with what is live: it goes where it belongs, or counts in totals only.
        let back = (self.last_s - second) as usize;
        if back as u64 >= RATE_WINDOW_S {
            return;
        }
        while self.buckets.len() <= back {
            self.buckets.push_front(Bucket::default());
        }
        let at = self.buckets.len() - 1 - back;
        let bucket = &mut self.buckets[at];
        bucket.stored = bucket.stored.saturating_add(stored);
        bucket.removed = bucket.removed.saturating_add(removed);
    }

    /// Buckets of the `seconds` full seconds before the one that contains `now`, oldest first, with the Unix second
    /// of each.
    pub fn last(&self, now: Millis, seconds: u64) -> impl Iterator<Item = (u64, Bucket)> + '_ {
        let end = now.0 / RATE_BUCKET_MS;
        (end.saturating_sub(seconds)..end).map(move |second| (second, self.bucket(second)))
    }

    /// Mean per second over the `seconds` full seconds before `now`: blocks stored, blocks removed.
    pub fn per_second(&self, now: Millis, seconds: u64) -> (f64, f64) {
        let (mut stored, mut removed) = (0u64, 0u64);
        for (_, bucket) in self.last(now, seconds) {
            stored += u64::from(bucket.stored);
            removed += u64::from(bucket.removed);
        }
        let per = seconds.max(1) as f64;
        (stored as f64 / per, removed as f64 / per)
    }

    fn bucket(&self, second: u64) -> Bucket {
        let back = self.last_s.checked_sub(second).map(|back| back as usize);
        back.and_then(|back| self.buckets.len().checked_sub(back + 1))
            .and_then(|at| self.buckets.get(at))
            .copied()
            .unwrap_or_default()
    }
}
