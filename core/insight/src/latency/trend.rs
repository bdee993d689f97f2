//! The 95th percentile over a stretch of time, at fixed times, so that a point once drawn stays where it is.

use radixscope_model::id::Millis;
use radixscope_model::range::Range;
use radixscope_state::cluster::{Cluster, HISTORY_S, SCRAPE_WINDOW_MS};

use super::WINDOW_MS;
use super::quantity::Quantity;
use super::request_values::nearest_rank;
use super::times::{TimingSource, latest, merged, of_buckets};

/// Time between two points of the last minutes, milliseconds.
pub const TREND_STEP_MS: u64 = 5_000;
/// Time between two points where any of them is longer ago.
const OLD_STEP_MS: u64 = 15_000;

/// A line.
#[derive(Clone, PartialEq, Debug)]
pub struct Trend {
    /// Time of the first point.
    pub from_ms: Millis,
    /// Time between two points, milliseconds.
    pub step_ms: u64,
    /// The 95th percentile over the [`WINDOW_MS`] before each point, oldest first; `None`: no sample, or nothing was known
    /// yet. Longer than [`SCRAPE_WINDOW_MS`] ago a histogram's window is known to half a minute only.
    pub p95: Vec<Option<Range>>,
}

impl Trend {
    /// Each point: its time, and what is known.
    pub fn points(&self) -> impl Iterator<Item = (Millis, Option<Range>)> + '_ {
        (0..).zip(&self.p95).map(|(at, p95)| (Millis(self.from_ms.0 + at * self.step_ms), *p95))
    }
}

/// The 95th percentile at fixed times from `from` to `until`, not after `now` and at most [`HISTORY_S`] ago, from the source
/// that [`latest`] takes first. `None`: not reported.
pub fn trend(
    cluster: &Cluster,
    quantity: Quantity,
    (from, until): (Millis, Millis),
    now: Millis,
) -> Option<Trend> {
    let is_recent = now.since(from) <= SCRAPE_WINDOW_MS + TREND_STEP_MS;
    let step_ms = if is_recent { TREND_STEP_MS } else { OLD_STEP_MS };
    let first = from.0.max(now.0.saturating_sub(HISTORY_S * 1_000)).div_ceil(step_ms);
    let points = (first..=until.min(now).0 / step_ms).map(|step| step * step_ms);
    let p95 = match latest(cluster, quantity, now).first()?.source {
        TimingSource::Histograms { .. } => points
            .map(|at| {
                let after = Millis(at.saturating_sub(WINDOW_MS));
                let (sum, _) = merged(cluster, quantity.histogram(), |process, kind| {
                    process.distribution(kind, after, Millis(at))
                })?;
                of_buckets(&sum, quantity.scale()).map(|[_, p95, _]| p95)
            })
            .collect(),
        TimingSource::Measured | TimingSource::Derived => {
            let mut each: Vec<(Millis, f64)> = cluster
                .decisions()
                .newest_first()
                .filter_map(|decided| quantity.of(decided))
                .map(|single| (single.at, single.value))
                .filter(|(at, _)| at.0 + WINDOW_MS > from.0 && *at <= until)
                .collect();
            each.sort_by_key(|&(at, _)| at);
            points
                .map(|at| {
                    let from = each.partition_point(|&(known, _)| known.0 + WINDOW_MS <= at);
                    let to = each.partition_point(|&(known, _)| known.0 <= at);
                    nearest_rank(each.get(from..to)?.iter().map(|&(_, value)| value), 0.95)
                })
                .collect()
        }
    };
    Some(Trend { from_ms: Millis(first * step_ms), step_ms, p95 })
}
