//! The 95th percentile over a stretch of time, at fixed times, so that a point once drawn stays where it is.

use radixscope_model::id::Millis;
use radixscope_model::range::Range;
use radixscope_state::cluster::{Cluster, Distribution, HISTORY_S, ProcessState, SCRAPE_WINDOW_MS};

use super::WINDOW_MS;
use super::clients::values as client_values;
use super::quantity::Quantity;
use super::request_values::nearest_rank;
use super::times::{TimingSource, engine_processes, engines, frontends, latest, of_buckets, sum_of};

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

/// Where a time is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// At the client: with the network and what waits before the frontend.
    Client,
    /// At the frontend, by the source that [`latest`] takes first.
    Frontend,
    /// In the engines, from when they have the request, by their histograms.
    Engine,
}

impl Side {
    /// For the page's document and its address.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Frontend => "frontend",
            Self::Engine => "engine",
        }
    }
}

/// The 95th percentile at fixed times from `from` to `until`, not after `now` and at most [`HISTORY_S`] ago, as measured on that
/// side. `None`: not reported.
pub fn trend(
    cluster: &Cluster,
    quantity: Quantity,
    side: Side,
    (from, until): (Millis, Millis),
    now: Millis,
) -> Option<Trend> {
    let is_recent = now.since(from) <= SCRAPE_WINDOW_MS + TREND_STEP_MS;
    let step_ms = if is_recent { TREND_STEP_MS } else { OLD_STEP_MS };
    let first = from.0.max(now.0.saturating_sub(HISTORY_S * 1_000)).div_ceil(step_ms);
    let points = (first..=until.min(now).0 / step_ms).map(|step| step * step_ms);
    let bucket = |sum: Option<(Distribution, TimingSource)>| {
        of_buckets(&sum?.0, quantity.scale()).map(|[_, p95, _]| p95)
    };
    let distribution = |process: &ProcessState, at: u64| {
        process.distribution(quantity.histogram(), Millis(at.saturating_sub(WINDOW_MS)), Millis(at))
    };
    let is_near = |at: Millis| at.0 + WINDOW_MS > from.0 && at <= until;
    let p95 = match side {
        Side::Client => {
            let mut is_known = false;
            let all = client_values(cluster, quantity).inspect(|_| is_known = true);
            let near = all.filter(|(at, _)| is_near(*at)).collect();
            is_known.then(|| exact_points(near, points))?
        }
        Side::Engine => {
            engines(cluster, quantity, now, WINDOW_MS)?;
            points
                .map(|at| bucket(sum_of(engine_processes(cluster), |engine| distribution(engine, at))))
                .collect()
        }
        Side::Frontend => match latest(cluster, quantity, now).first()?.source {
            TimingSource::Histograms { .. } => points
                .map(|at| bucket(sum_of(frontends(cluster), |process| distribution(process, at))))
                .collect(),
            TimingSource::Measured | TimingSource::Derived => {
                let each = cluster.decisions().newest_first().filter_map(|decided| quantity.of(decided));
                let near = each.map(|single| (single.at, single.value)).filter(|(at, _)| is_near(*at));
                exact_points(near.collect(), points)
            }
        },
    };
    Some(Trend { from_ms: Millis(first * step_ms), step_ms, p95 })
}

/// The 95th percentile over the [`WINDOW_MS`] before each of `points`, of values with their times.
fn exact_points(mut each: Vec<(Millis, f64)>, points: impl Iterator<Item = u64>) -> Vec<Option<Range>> {
    each.sort_by_key(|&(at, _)| at);
    points
        .map(|at| {
            let from = each.partition_point(|&(known, _)| known.0 + WINDOW_MS <= at);
            let to = each.partition_point(|&(known, _)| known.0 <= at);
            nearest_rank(each.get(from..to)?.iter().map(|&(_, value)| value), 0.95)
        })
        .collect()
}
