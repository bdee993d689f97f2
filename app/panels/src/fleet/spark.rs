//! A small line over time without axes of its own: many stand below each other and share one. Pure.

use std::fmt::Write as _;

use radixscope_model::range::Range;

/// Width and height of the area that paths are in.
pub const SIZE: (f64, f64) = (100.0, 24.0);

/// What all lines beside each other have in common.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SparkAxes {
    /// Begin and end, Unix milliseconds.
    pub time_ms: (u64, u64),
    /// The value at the upper edge; larger ones are drawn there.
    pub top: f64,
    /// Points further apart are not connected.
    pub gap_ms: u64,
}

/// Paths of a line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SparkPaths {
    /// Upper bounds; a value that is known exactly is its own.
    pub line: String,
    /// Between lower and upper bounds; empty where all values are exact.
    pub band: String,
}

impl SparkAxes {
    /// Where a value is, from the top.
    pub fn y(&self, value: f64) -> f64 {
        let share = if self.top > 0.0 { (value / self.top).clamp(0.0, 1.0) } else { 0.0 };
        // Half a unit at both edges, so that lines there are not cut.
        0.5 + (SIZE.1 - 1.0) * (1.0 - share)
    }

    fn x(&self, at_ms: u64) -> f64 {
        let (from, to) = self.time_ms;
        let span = to.saturating_sub(from).max(1) as f64;
        SIZE.0 * (at_ms.saturating_sub(from) as f64 / span).clamp(0.0, 1.0)
    }

    /// The paths of values over time; where a value is unknown there is a gap.
    pub fn paths(&self, points: impl IntoIterator<Item = (u64, Option<Range>)>) -> SparkPaths {
        let mut paths = SparkPaths::default();
        let mut run: Vec<(f64, f64, f64)> = Vec::new();
        let mut last_ms = 0;
        for (at_ms, value) in points {
            if at_ms < self.time_ms.0 {
                continue;
            }
            if value.is_none() || at_ms.saturating_sub(last_ms) > self.gap_ms {
                paths.add(&std::mem::take(&mut run));
            }
            last_ms = at_ms;
            if let Some(value) = value {
                let upper = value.high().unwrap_or(self.top.max(value.low()));
                run.push((self.x(at_ms), self.y(value.low()), self.y(upper)));
            }
        }
        paths.add(&run);
        paths
    }
}

impl SparkPaths {
    /// Adds values that are connected: place in time, lower and upper bound.
    fn add(&mut self, run: &[(f64, f64, f64)]) {
        let Some(&(first, ..)) = run.first() else { return };
        // Writing to a string does not fail.
        for (at, (x, _, upper)) in run.iter().enumerate() {
            let _ = write!(self.line, "{}{x:.1} {upper:.1}", if at == 0 { "M" } else { "L" });
        }
        if run.len() == 1 {
            // A line of no length is not drawn.
            let _ = write!(self.line, "h{}", if first < SIZE.0 - 1.0 { 1 } else { -1 });
        }
        if run.iter().all(|(_, lower, upper)| lower == upper) {
            return;
        }
        for (at, (x, _, upper)) in run.iter().enumerate() {
            let _ = write!(self.band, "{}{x:.1} {upper:.1}", if at == 0 { "M" } else { "L" });
        }
        for (x, lower, _) in run.iter().rev() {
            let _ = write!(self.band, "L{x:.1} {lower:.1}");
        }
        self.band.push('Z');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AXES: SparkAxes = SparkAxes { time_ms: (1_000, 11_000), top: 10.0, gap_ms: 2_000 };

    fn exact(points: &[(u64, Option<f64>)]) -> SparkPaths {
        AXES.paths(points.iter().map(|(at, value)| (*at, value.map(Range::exact))))
    }

    #[test]
    fn values_are_connected_unless_one_is_unknown_or_they_are_far_apart() {
        let paths = exact(&[
            (1_000, Some(0.0)),
            (2_000, Some(10.0)),
            (3_000, None),
            (4_000, Some(5.0)),
            (7_000, Some(5.0)),
            (8_000, Some(50.0)),
        ]);
        assert_eq!(paths.line, "M0.0 23.5L10.0 0.5M30.0 12.0h1M60.0 12.0L70.0 0.5");
        assert_eq!(paths.band, "");
    }

    #[test]
    fn a_value_known_by_its_bounds_is_a_band_and_an_open_one_reaches_the_top() {
        let points = [(1_000, Range::between(2.0, Some(4.0))), (2_000, Range::in_bucket(5.0, None))];
        let paths = AXES.paths(points.map(|(at, range)| (at, Some(range))));
        assert_eq!(paths.line, "M0.0 14.3L10.0 0.5");
        assert_eq!(paths.band, "M0.0 14.3L10.0 0.5L10.0 12.0L0.0 18.9Z");
    }

    #[test]
    fn nothing_and_what_is_before_the_begin_is_not_drawn() {
        assert_eq!(exact(&[]), SparkPaths::default());
        assert_eq!(exact(&[(500, Some(1.0)), (900, Some(2.0))]), SparkPaths::default());
        assert_eq!(exact(&[(11_000, Some(10.0))]).line, "M100.0 0.5h-1");
        assert!(SparkAxes { top: 0.0, ..AXES }.y(3.0).is_finite());
    }
}
