//! A stretch of live traffic as a level of a baseline.

use super::{Baseline, ByFigure, Figure, Figures, Router, SweepLevel};
use radixscope_model::range::Range;

/// Live figures over a stretch of time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Window {
    /// Mean number of requests in flight, in all.
    pub concurrency: f64,
    /// Length in milliseconds.
    pub duration_ms: u64,
    /// What was measured: exact, or between two bounds.
    pub figures: ByFigure<Option<Range>>,
    /// How many samples each figure comes from.
    pub samples: ByFigure<u64>,
}

impl Window {
    /// As a level: at its mean concurrency to the nearest whole number, at least 1, so that the next window under the same
    /// load takes its place. A level holds numbers: figures that are known between two bounds only are left out, see
    /// [`inexact`](Self::inexact).
    pub fn row(&self) -> SweepLevel {
        let figures = Figures::from_fn(|figure| self.figures.get(figure)?.value());
        let known = Figure::ALL.into_iter().filter(|&figure| figures.get(figure).is_some());
        SweepLevel {
            duration_s: Some(self.duration_ms as f64 / 1e3),
            samples: known.map(|figure| self.samples.get(figure)).min(),
            figures,
            ..SweepLevel::new(self.concurrency.round().max(1.0))
        }
    }

    /// Figures that are known between two bounds only, and that a level therefore does not hold.
    pub fn inexact(&self) -> impl Iterator<Item = Figure> + '_ {
        let is_range =
            |figure: &Figure| self.figures.get(*figure).is_some_and(|range| range.value().is_none());
        Figure::ALL.into_iter().filter(is_range)
    }
}

impl Baseline {
    /// A baseline of one window. Without a level if the window's concurrency cannot be.
    pub fn with_window(name: &str, router: Router, window: &Window) -> Self {
        let mut baseline = Self::new(name, "Saved from live traffic", router);
        baseline.set_row(window.row());
        baseline
    }
}

/// Saves `window` in the baseline of that name and router, which is added if there is none; the level of the same
/// concurrency is replaced. `false` if the window's concurrency cannot be: nothing is saved then.
pub fn save_window(baselines: &mut Vec<Baseline>, name: &str, router: Router, window: &Window) -> bool {
    let new = Baseline::with_window(name, router, window);
    let Some(&row) = new.rows().first() else { return false };
    match baselines.iter_mut().find(|other| other.router == router && other.name == new.name) {
        Some(baseline) => baseline.set_row(row),
        None => {
            baselines.push(new);
            true
        }
    }
}
