//! The runs behind a level: how many there are, and how far their figures lie apart.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Figure;

/// Runs of a level.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Runs {
    /// Runs whose figures are there; `None`: not known.
    pub finished: Option<u64>,
    /// Runs that have begun, finished ones included; `None`: not known.
    pub begun: Option<u64>,
    /// Runs that the experiment has at this level; `None`: not known.
    pub planned: Option<u64>,
}

impl Runs {
    /// Whether a run has begun of which nothing is there yet. It may also have been aborted.
    pub fn is_running(&self) -> bool {
        self.begun.is_some_and(|begun| begun > self.finished.unwrap_or(0))
    }

    /// How many runs are still missing; `None`: not known.
    pub fn missing(&self) -> Option<u64> {
        Some(self.planned?.saturating_sub(self.finished.unwrap_or(0)))
    }
}

/// What the bounds of a level mean.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum SpreadKind {
    /// The lowest and the highest run.
    MinMax,
    /// The interval that contains the mean of all possible runs with this probability, as the load generator computed it.
    Confidence {
        /// In percent, above 0 and below 100.
        percent: f64,
    },
}

impl SpreadKind {
    pub(super) fn is_valid(&self) -> bool {
        match *self {
            Self::MinMax => true,
            Self::Confidence { percent } => percent > 0.0 && percent < 100.0,
        }
    }

    /// Reads what [`Display`](fmt::Display) writes.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.eq_ignore_ascii_case("min-max") {
            return Some(Self::MinMax);
        }
        let percent = text.strip_suffix("% confidence")?.trim_end().parse().ok()?;
        Some(Self::Confidence { percent }).filter(Self::is_valid)
    }
}

impl fmt::Display for SpreadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MinMax => f.write_str("min-max"),
            Self::Confidence { percent } => write!(f, "{percent}% confidence"),
        }
    }
}

/// Both ends of a spread, in the figure's unit.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Bounds {
    /// Lower end.
    pub low: f64,
    /// Upper end, not below `low`.
    pub high: f64,
}

impl Bounds {
    pub(super) fn are_of(&self, figure: Figure) -> bool {
        figure.allows(self.low) && figure.allows(self.high) && self.low <= self.high
    }

    /// Cut to what the figure can be: a confidence interval of few runs may reach below 0.
    pub(super) fn cut(self, figure: Figure) -> Self {
        let most = if figure == Figure::HitRate { 100.0 } else { f64::MAX };
        Self { low: self.low.clamp(0.0, most), high: self.high.clamp(0.0, most) }
    }

    /// Part of the way to `other`, both ends in a straight line.
    pub(super) fn towards(self, other: Self, share: f64) -> Self {
        let at = |from: f64, to: f64| from + (to - from) * share;
        Self { low: at(self.low, other.low), high: at(self.high, other.high) }
    }
}
