//! Blocks stored and removed per second over time, one band per worker: stored upward, removed downward.

use radixscope_insight::block_rates::{self, BlockRates, MEAN_SECONDS, OTHERS};
use radixscope_insight::time_range::TimeSpan;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::number_format::{UNKNOWN, rate};
use radixscope_state::cluster::TimeSteps;

use crate::tree::svg::label;

/// Its heading.
pub const TITLE: &str = "Block rates";
/// What is drawn upward.
pub const STORED: &str = "stored/s";
/// What is drawn downward.
pub const REMOVED: &str = "removed/s";

/// Blocks stored and removed per second, mean of the last seconds, of the workers shown or of the one picked.
pub fn means(shown: &ViewContext<'_>, picked: Option<WorkerIx>, now: Millis) -> [String; 2] {
    let mean = block_rates::mean(shown, picked, now);
    [mean.map(|(stored, _)| stored), mean.map(|(_, removed)| removed)]
        .map(|blocks| blocks.map_or(UNKNOWN.to_owned(), rate))
}

/// What the means are taken over.
pub fn mean_window() -> String {
    format!("mean of the last {MEAN_SECONDS} s")
}

/// The chart.
pub struct RatesChart {
    /// Each with a value at each of `times`.
    pub bands: Vec<BlockRates>,
    /// Begin of each step.
    pub times: Vec<Millis>,
    /// Length of a step, milliseconds.
    pub step_ms: u64,
    /// The time it shows.
    pub span: TimeSpan,
}

impl RatesChart {
    /// Of the workers shown or of the one picked, without the bands that are hidden: by a worker's id, or [`OTHERS`].
    pub fn of(
        shown: &ViewContext<'_>,
        picked: Option<WorkerIx>,
        span: TimeSpan,
        now: Millis,
        is_hidden: impl Fn(&str) -> bool,
    ) -> Self {
        let steps = TimeSteps::between(span.from, span.until, now);
        Self {
            bands: block_rates::bands(shown, picked, steps, is_hidden),
            times: steps.begins().collect(),
            step_ms: steps.len_s() * 1_000,
            span,
        }
    }

    /// The highest rate: both halves reach to it.
    pub fn highest(&self) -> f64 {
        block_rates::highest(&self.bands)
    }
}

/// Name of a band.
pub fn band_name(band: &BlockRates) -> String {
    band.worker.map_or(OTHERS.to_owned(), label)
}
