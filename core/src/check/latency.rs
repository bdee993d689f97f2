//! How the 95th percentile of a latency stands to its target, with certainty: a guess within a bucket is no finding.

use super::View;
use crate::latency::{Quantity, Reading, Source, Times, latest, share_above};

/// Fewer samples have no 95th percentile.
pub(super) const MIN_SAMPLES: u64 = 50;

/// Latency of the last minute.
pub(super) struct Latency {
    /// Of what.
    pub(super) quantity: Quantity,
    /// Samples.
    pub(super) samples: u64,
    /// Where from.
    pub(super) source: Source,
    /// Median, milliseconds.
    pub(super) p50: Reading,
    /// 95th percentile, milliseconds.
    pub(super) p95: Reading,
}

/// How a percentile stands to a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Against {
    /// Certainly not above.
    Within,
    /// Certainly above.
    Above,
    /// The bucket that it lies in reaches from below the target to above it.
    Unclear,
}

impl Latency {
    /// From each source that has enough samples, the best one first.
    fn all(view: &View<'_>, quantity: Quantity) -> impl Iterator<Item = Self> {
        let enough = |times: &Times| times.samples >= MIN_SAMPLES;
        latest(view.cluster, quantity, view.now).into_iter().filter(enough).filter_map(move |times| {
            let [p50, p95, _] = times.quantiles?;
            Some(Self { quantity, samples: times.samples, source: times.source, p50, p95 })
        })
    }

    /// Of the last minute; `None`: nobody tells it of enough requests.
    pub(super) fn of(view: &View<'_>, quantity: Quantity) -> Option<Self> {
        Self::all(view, quantity).next()
    }

    /// The same with how its 95th percentile stands to a limit in milliseconds, by the first source that can tell.
    pub(super) fn judged(view: &View<'_>, quantity: Quantity, limit_ms: f64) -> Option<(Self, Against)> {
        let mut all = Self::all(view, quantity).map(|latency| {
            let against = against(&latency.p95, limit_ms);
            (latency, against)
        });
        let first = all.next()?;
        if first.1 != Against::Unclear {
            return Some(first);
        }
        Some(all.find(|(_, against)| *against != Against::Unclear).unwrap_or(first))
    }

    /// Share of the samples above a limit in milliseconds, 0 to 1.
    pub(super) fn share_above(&self, view: &View<'_>, limit_ms: f64) -> Option<f64> {
        share_above(view.cluster, self.quantity, view.now, limit_ms, &self.source)
    }

    /// What the 95th percentile is at least, milliseconds.
    pub(super) fn p95_at_least(&self) -> f64 {
        self.p95.bucket.map_or(self.p95.value, |(lower, _)| lower)
    }

    /// A percentile in words, with its bucket.
    pub(super) fn words(&self, reading: &Reading) -> String {
        reading.words(self.quantity)
    }
}

fn against(reading: &Reading, limit_ms: f64) -> Against {
    if reading.is_unsure(limit_ms) {
        return Against::Unclear;
    }
    // A bucket takes in its upper bound, and not its lower one.
    let is_above = match reading.bucket {
        Some((lower, _)) => lower >= limit_ms,
        None => reading.value > limit_ms,
    };
    if is_above { Against::Above } else { Against::Within }
}
