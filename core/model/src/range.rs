//! A figure that is known exactly, or only between two bounds: percentiles of histograms, which know a value by its
//! bucket, and of requests of which some are not known. One type for all that compares or colours such a figure. Knows no
//! quantity and no unit.

use serde::{Deserialize, Serialize};

/// Values that a figure can have.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Range {
    /// The least.
    low: f64,
    /// The largest; `None`: no bound is known.
    high: Option<f64>,
    /// Whether it is above `low`, not at it: a bucket does not take in its lower bound.
    #[serde(skip)]
    is_above_low: bool,
}

/// How a figure stands to a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetComparison {
    /// Certainly at or below it.
    Within,
    /// Certainly above it.
    Above,
    /// The target lies between the bounds: no data on which side.
    Unknown,
}

impl TargetComparison {
    /// Name on screen and in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Within => "within",
            Self::Above => "above",
            Self::Unknown => "unknown",
        }
    }
}

impl Range {
    /// Known exactly.
    pub const fn exact(value: f64) -> Self {
        Self { low: value, high: Some(value), is_above_low: false }
    }

    /// At least `low` and at most `high`; no `high`: unbounded.
    pub const fn between(low: f64, high: Option<f64>) -> Self {
        Self { low, high, is_above_low: false }
    }

    /// In a bucket of a histogram: above `low` and at most `high`; no `high`: above every bound.
    pub const fn in_bucket(low: f64, high: Option<f64>) -> Self {
        Self { low, high, is_above_low: true }
    }

    /// The lower bound.
    pub const fn low(&self) -> f64 {
        self.low
    }

    /// The upper bound; `None`: unbounded.
    pub const fn high(&self) -> Option<f64> {
        self.high
    }

    /// The value, where it is known exactly.
    pub fn value(&self) -> Option<f64> {
        self.high.filter(|&high| high == self.low)
    }

    /// In another unit: both bounds times `factor`, which is above 0.
    pub fn times(self, factor: f64) -> Self {
        Self { low: self.low * factor, high: self.high.map(|high| high * factor), ..self }
    }

    /// How it stands to `target`.
    pub fn against(&self, target: f64) -> TargetComparison {
        let is_above = if self.is_above_low { self.low >= target } else { self.low > target };
        match self.high {
            _ if is_above => TargetComparison::Above,
            Some(high) if high <= target => TargetComparison::Within,
            _ => TargetComparison::Unknown,
        }
    }

    /// Whether one value can be both.
    pub fn overlaps(&self, other: &Self) -> bool {
        let reaches = |low: f64, high: Option<f64>| high.is_none_or(|high| high >= low);
        reaches(self.low, other.high) && reaches(other.low, self.high)
    }

    /// Whether it excludes no value of a quantity that is never below 0.
    pub fn is_unbounded(&self) -> bool {
        self.low <= 0.0 && self.high.is_none()
    }

    /// In words, by what writes a value: `612 ms`, `470 ms–1 s`, `above 480 s`.
    pub fn to_text(&self, of: impl Fn(f64) -> String) -> String {
        match self.high {
            Some(high) if high == self.low => of(high),
            Some(high) => format!("{}–{}", of(self.low), of(high)),
            None if self.is_above_low => format!("above {}", of(self.low)),
            None => format!("at least {}", of(self.low)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_that_straddles_the_target_stands_nowhere() {
        let bucket = Range::in_bucket(470.0, Some(1_000.0));
        assert_eq!(bucket.against(600.0), TargetComparison::Unknown);
        assert_eq!(bucket.against(1_000.0), TargetComparison::Within, "a bucket takes in its upper bound");
        assert_eq!(bucket.against(470.0), TargetComparison::Above, "and not its lower one");
        assert_eq!(Range::in_bucket(480.0, None).against(600.0), TargetComparison::Unknown);
        assert_eq!(Range::in_bucket(480.0, None).against(480.0), TargetComparison::Above);
    }

    #[test]
    fn an_exact_value_at_its_target_is_within() {
        assert_eq!(Range::exact(600.0).against(600.0), TargetComparison::Within);
        assert_eq!(Range::exact(600.1).against(600.0), TargetComparison::Above);
        assert_eq!(Range::between(600.0, Some(700.0)).against(600.0), TargetComparison::Unknown);
    }

    #[test]
    fn ranges_overlap_where_a_value_can_be_in_both() {
        let (low, high) = (Range::in_bucket(220.0, Some(470.0)), Range::in_bucket(470.0, None));
        assert!(low.overlaps(&high) && high.overlaps(&low), "at their common bound");
        assert!(!Range::exact(400.0).overlaps(&high));
        assert!(Range::exact(500.0).overlaps(&high));
    }

    #[test]
    fn the_text_names_the_bounds() {
        let ms = |value: f64| format!("{value} ms");
        assert_eq!(Range::exact(612.0).to_text(ms), "612 ms");
        assert_eq!(Range::in_bucket(470.0, Some(1_000.0)).to_text(ms), "470 ms–1000 ms");
        assert_eq!(Range::in_bucket(480.0, None).to_text(ms), "above 480 ms");
        assert_eq!(Range::between(355.0, None).to_text(ms), "at least 355 ms");
    }

    #[test]
    fn from_nothing_to_without_end_nothing_is_known() {
        assert!(Range::between(0.0, None).is_unbounded() && Range::in_bucket(0.0, None).is_unbounded());
        assert!(!Range::between(0.1, None).is_unbounded() && !Range::between(0.0, Some(1.0)).is_unbounded());
    }
}
