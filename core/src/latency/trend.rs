//! The 95th percentile over the last minutes, at fixed times, so that a point once drawn stays where it is.

use crate::cluster::{Cluster, SCRAPE_WINDOW_MS};
use crate::id::Millis;

use super::WINDOW_MS;
use super::times::{Quantity, Source, latest, merged, of_buckets, of_values};

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
    pub p95: Vec<Option<f64>>,
}

/// The 95th percentile over the last five minutes, from the source that [`latest`] takes first. `None`: nobody tells.
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
                of_buckets(&sum, quantity.scale()).map(|[_, p95, _]| p95.value)
            })
            .collect(),
        Source::Measured | Source::Told => {
            let mut each: Vec<(Millis, f64)> = cluster
                .decisions()
                .newest_first()
                .filter_map(|decided| quantity.of(decided))
                .map(|(at, value, _)| (at, value))
                .filter(|(at, _)| Millis(until).since(*at) < SCRAPE_WINDOW_MS + WINDOW_MS)
                .collect();
            each.sort_unstable_by_key(|&(at, _)| at);
            points
                .map(|at| {
                    let from = each.partition_point(|&(told, _)| told.0 + WINDOW_MS <= at);
                    let to = each.partition_point(|&(told, _)| told.0 <= at);
                    let values = each.get(from..to)?.iter().map(|&(_, value)| value).collect();
                    of_values(values).map(|[_, p95, _]| p95.value)
                })
                .collect()
        }
    };
    Some(Trend { until_ms: Millis(until), p95 })
}
