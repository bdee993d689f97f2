//! Latency of the last minute as rules judge it: the figure that panels show, and how its 95th percentile compares to a limit.

use super::View;
use crate::latency::{MIN_SAMPLES, Quantity, TimingSource, figure, share_above};
use radixscope_model::range::{Range, TargetComparison};

/// Latency of the last minute.
pub(super) struct Latency {
    /// Of what.
    pub(super) quantity: Quantity,
    /// Samples.
    pub(super) samples: u64,
    /// Where from.
    pub(super) source: TimingSource,
    /// Median, milliseconds.
    pub(super) p50: Range,
    /// 95th percentile, milliseconds.
    pub(super) p95: Range,
}

impl Latency {
    /// Of the last minute; `None`: not reported for enough requests.
    pub(super) fn of(view: &View<'_>, quantity: Quantity) -> Option<Self> {
        let times = figure(view.cluster, quantity, view.now).filter(|times| times.samples >= MIN_SAMPLES)?;
        let [p50, p95, _] = times.quantiles?;
        Some(Self { quantity, samples: times.samples, source: times.source, p50, p95 })
    }

    /// The same with how its 95th percentile compares to a limit in milliseconds.
    pub(super) fn judged(
        view: &View<'_>,
        quantity: Quantity,
        limit_ms: f64,
    ) -> Option<(Self, TargetComparison)> {
        let latency = Self::of(view, quantity)?;
        let standing = latency.p95.against(limit_ms);
        Some((latency, standing))
    }

    /// Share of the samples above a limit in milliseconds, 0 to 1; a range where a bucket reaches over the limit.
    pub(super) fn share_above(&self, view: &View<'_>, limit_ms: f64) -> Option<Range> {
        share_above(view.cluster, self.quantity, view.now, limit_ms, &self.source)
    }

    /// What the 95th percentile is at least, milliseconds.
    pub(super) fn p95_at_least(&self) -> f64 {
        self.p95.low()
    }

    /// A percentile as text: exact, or its bucket.
    pub(super) fn to_text(&self, range: &Range) -> String {
        self.quantity.range_text(range)
    }
}
