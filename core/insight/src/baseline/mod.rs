//! Measured sweeps to compare with: figures by concurrency, read from CSV and from the results of load generators, saved from
//! live traffic, interpolated between their levels. Pure data; must not know the state or a page.

mod compare;
mod csv;
mod figure;
mod lines;
mod problem;
mod progress;
mod results;
mod spread;
mod standing;
#[cfg(test)]
mod tests;
mod window;

pub use compare::{AgainstBaseline, Crossover, Difference, Direction, Interpolated, crossover, difference};
pub use csv::{Import, MAX_BASELINES, MAX_BYTES, MAX_ROWS, export, import, reference};
pub use figure::{ByFigure, Figure, Figures};
pub use problem::{ImportError, Notice};
pub use progress::Progress;
pub use results::{MAX_RESULT_BYTES, MAX_RESULT_FILES, Results, is_results};
pub use spread::{Bounds, Runs, SpreadKind};
pub use standing::{Standing, Stretch, standing, standing_text};
pub use window::{Window, save_window};

use serde::{Deserialize, Serialize};

/// Highest concurrency of a level.
pub const MAX_CONCURRENCY: f64 = 1e6;
/// Longest name of a baseline in characters; what is longer is cut.
pub const MAX_NAME_CHARS: usize = 200;
/// Longest attribution in characters; what is longer is cut.
pub const MAX_ATTRIBUTION_CHARS: usize = 1_000;

/// How the requests of a sweep found their workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Router {
    /// By cached prefix and load.
    KvAware,
    /// One after the other.
    RoundRobin,
    /// Otherwise, or not known.
    Other,
}

impl Router {
    /// All.
    pub const ALL: [Self; 3] = [Self::KvAware, Self::RoundRobin, Self::Other];

    /// As written in a CSV file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::KvAware => "kv-aware",
            Self::RoundRobin => "round-robin",
            Self::Other => "other",
        }
    }
}

/// One level of a sweep.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct SweepLevel {
    /// Requests in flight, in all; above 0 and at most [`MAX_CONCURRENCY`].
    pub concurrency: f64,
    /// How long the level was measured, in seconds.
    pub duration_s: Option<f64>,
    /// Samples behind the figure that has fewest.
    pub samples: Option<u64>,
    /// What was measured; of several runs their mean.
    pub figures: Figures,
    /// The runs behind it.
    pub runs: Runs,
    /// What `bounds` mean; `None`: there are none.
    pub spread: Option<SpreadKind>,
    /// How far the runs lie apart.
    pub bounds: ByFigure<Option<Bounds>>,
}

impl SweepLevel {
    /// A level of which nothing is known yet.
    pub fn new(concurrency: f64) -> Self {
        Self {
            concurrency,
            duration_s: None,
            samples: None,
            figures: Figures::default(),
            runs: Runs::default(),
            spread: None,
            bounds: ByFigure::default(),
        }
    }
}

/// A sweep. Name and router together identify a baseline.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Baseline {
    name: String,
    attribution: String,
    router: Router,
    /// By rising concurrency, which no two share.
    rows: Vec<SweepLevel>,
}

impl Baseline {
    /// Without levels. Names and attributions beyond their bounds are cut.
    pub fn new(name: &str, attribution: &str, router: Router) -> Self {
        Self {
            name: name.chars().take(MAX_NAME_CHARS).collect(),
            attribution: attribution.chars().take(MAX_ATTRIBUTION_CHARS).collect(),
            router,
            rows: Vec::new(),
        }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Who measured it, and on what; may be empty.
    pub fn attribution(&self) -> &str {
        &self.attribution
    }

    /// How its requests were routed.
    pub fn router(&self) -> Router {
        self.router
    }

    /// Routed by `router`, if nothing else is known.
    #[must_use]
    pub fn or_routed(self, router: Router) -> Self {
        let router = if self.router == Router::Other { router } else { self.router };
        Self { router, ..self }
    }

    /// Its levels, by rising concurrency.
    pub fn rows(&self) -> &[SweepLevel] {
        &self.rows
    }

    /// Adds a level, or replaces the one of the same concurrency. Figures that cannot be (not finite, negative, above
    /// 100 %) become unknown; a concurrency that cannot be is not taken, and `false`.
    pub fn set_row(&mut self, mut row: SweepLevel) -> bool {
        if !is_concurrency(row.concurrency) {
            return false;
        }
        row.duration_s = row.duration_s.filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
        row.figures =
            Figures::from_fn(|figure| row.figures.get(figure).filter(|&value| figure.allows(value)));
        row.bounds = ByFigure::from_fn(|figure| {
            row.figures.get(figure).and(row.bounds.get(figure)).filter(|bounds| bounds.are_of(figure))
        });
        row.spread = row.spread.filter(|kind| kind.is_valid());
        match self.rows.binary_search_by(|other| other.concurrency.total_cmp(&row.concurrency)) {
            Ok(at) => self.rows[at] = row,
            Err(at) => self.rows.insert(at, row),
        }
        true
    }
}

fn is_concurrency(value: f64) -> bool {
    value > 0.0 && value <= MAX_CONCURRENCY
}
