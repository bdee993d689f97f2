//! The 95th percentile over the last minutes, at fixed times, so that a point once drawn stays where it is.

use radixscope_model::id::Millis;
use radixscope_model::range::Range;
use radixscope_model::sort;
use radixscope_state::cluster::{Cluster, SCRAPE_WINDOW_MS};

use super::WINDOW_MS;
use super::quantity::Quantity;
use super::single::nearest_rank;
use super::times::{Source, latest, merged, of_buckets};

/// Time between two points, milliseconds.
pub const TREND_STEP_MS: u64 = 5_000;
const POINTS: u64 = SCRAPE_WINDOW_MS / TREND_STEP_MS;

/// A line.
#[derive(Clone, PartialEq, Debug)]
pub struct Trend {
    /// Time of the last point.
    pub until_ms: Millis,
    /// The 95th percentile over the [`WINDOW_MS`] before each point, oldest first, one each [`TREND_STEP_MS`]; `None`:
    /// no sample, or nothing was known yet.
    pub p95: Vec<Option<Range>>,
}

/// The 95th percentile over the last five minutes, from the source that [`latest`] takes first. `None`: not reported.
pub fn trend(cluster: &Cluster, quantity: Quantity, now: Millis) -> Option<Trend> {
    let until = now.0 / TREND_STEP_MS * TREND_STEP_MS;
    let points = (0..POINTS).rev().map(|back| until.saturating_sub(back * TREND_STEP_MS));
    let p95 = match latest(cluster, quantity, now).first()?.source {
        Source::Histograms { .. } => points
            .map(|at| {
                let after = Millis(at.saturating_sub(WINDOW_MS));
                let (sum, _) = merged(cluster, quantity.histogram(), |process, kind| {
                    process.distribution(kind, after, Millis(at))
                })?;
                of_buckets(&sum, quantity.scale()).map(|[_, p95, _]| p95)
            })
            .collect(),
        Source::Measured | Source::Derived => {
            let mut each: Vec<(Millis, f64)> = cluster
                .decisions()
                .newest_first()
                .filter_map(|decided| quantity.of(decided))
                .map(|single| (single.at, single.value))
                .filter(|(at, _)| Millis(until).since(*at) < SCRAPE_WINDOW_MS + WINDOW_MS)
                .collect();
            sort::sort_by_key(&mut each, |&(at, _)| at);
            points
                .map(|at| {
                    let from = each.partition_point(|&(known, _)| known.0 + WINDOW_MS <= at);
                    let to = each.partition_point(|&(known, _)| known.0 <= at);
                    nearest_rank(each.get(from..to)?.iter().map(|&(_, value)| value), 0.95)
                })
                .collect()
        }
    };
    Some(Trend { until_ms: Millis(until), p95 })
}
