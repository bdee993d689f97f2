//! Axes of time and of values, and ways through what is known.

use std::fmt::Write as _;

use radixscope_insight::time_range::TimeSpan;
use radixscope_model::id::Millis;
use radixscope_model::number_format::{clock, digits, short};

use super::chart_area::{Area, ChartArea};
use crate::tree::svg::text::Px;

/// Steps between two times that are written, seconds.
const TIME_STEPS_S: [u64; 13] = [1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200];
/// Least distance of two of them.
const TIME_STEP_PX: f64 = 70.0;
/// Least distance of two values of an axis.
const VALUE_STEP_PX: f64 = 26.0;

/// Where times and values stand.
#[derive(Clone, Copy)]
pub(super) struct Axes {
    pub(super) area: Area,
    pub(super) span: TimeSpan,
    /// The value at the top; at the bottom 0. Turned over, the other way round.
    pub(super) most: f64,
    pub(super) is_down: bool,
}

impl Axes {
    pub(super) fn x(&self, at: Millis) -> f64 {
        self.area.x + self.area.width * self.span.share(at).clamp(0.0, 1.0)
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        let share = (value / self.most).clamp(0.0, 1.0);
        match self.is_down {
            true => self.area.y + self.area.height * share,
            false => self.area.bottom() - self.area.height * share,
        }
    }

    /// Lines with their values at the left.
    pub(super) fn draw_values(&self, paper: &mut ChartArea<'_>) {
        let step = step(self.most * VALUE_STEP_PX / self.area.height.max(1.0));
        let mut lines = String::new();
        let mut value = 0.0;
        while value <= self.most * 1.000_1 {
            let y = self.y(value);
            let _ = write!(lines, "M{} {}H{}", Px(self.area.x), Px(y), Px(self.area.right()));
            let text = if value >= 10_000.0 { short(value as u64) } else { digits(value) };
            // Turned over, it stands below another whose 0 is written.
            if value > 0.0 || !self.is_down {
                paper.text(self.area.x - 6.0, y + 4.0, paper.quiet().right(), &text);
            }
            value += step;
        }
        paper.line(&lines, paper.theme.line, 1.0, false);
    }

    /// Times of day below.
    pub(super) fn draw_times(&self, paper: &mut ChartArea<'_>) {
        let seconds = self.span.until.since(self.span.from) as f64 / 1_000.0;
        let least = seconds * TIME_STEP_PX / self.area.width.max(1.0);
        let [.., last] = TIME_STEPS_S;
        let step = TIME_STEPS_S.into_iter().find(|&step| step as f64 >= least).unwrap_or(last);
        let mut at = self.span.from.0.div_ceil(step * 1_000) * step * 1_000;
        let mut lines = String::new();
        while at <= self.span.until.0 {
            let x = self.x(Millis(at));
            let _ = write!(lines, "M{} {}v4", Px(x), Px(self.area.bottom()));
            let time = clock(at, 0);
            let text = if step < 60 { &time[..] } else { &time[..5] };
            // The last one would go over the edge.
            if x + 44.0 <= paper.width() {
                paper.text(x + 2.0, self.area.bottom() + 13.0, paper.quiet(), text);
            }
            at += step * 1_000;
        }
        paper.line(&lines, paper.theme.line, 1.0, false);
    }

    /// The line through known values, broken where nothing is known.
    pub(super) fn way(&self, points: impl IntoIterator<Item = (Millis, Option<f64>)>) -> String {
        let (mut way, mut is_open) = (String::new(), false);
        for (at, value) in points {
            if let Some(value) = value {
                let verb = if is_open { 'L' } else { 'M' };
                let _ = write!(way, "{verb}{} {}", Px(self.x(at)), Px(self.y(value)));
            }
            is_open = value.is_some();
        }
        way
    }

    /// The outline of what lies between two values at each time, each until the next time, and apart where nothing is known.
    pub(super) fn steps(&self, points: &[(Millis, Option<(f64, f64)>)], step_ms: u64) -> String {
        let mut outline = String::new();
        for run in points.split(|(_, value)| value.is_none()) {
            let known: Vec<(Millis, (f64, f64))> =
                run.iter().filter_map(|&(at, value)| Some((at, value?))).collect();
            let ends = |at: Millis| (self.x(at), self.x(Millis(at.0 + step_ms)));
            for (i, &(at, (_, high))) in known.iter().enumerate() {
                let ((left, right), y) = (ends(at), self.y(high));
                let verb = if i == 0 { 'M' } else { 'L' };
                let _ = write!(outline, "{verb}{} {}H{}", Px(left), Px(y), Px(right));
            }
            for &(at, (low, _)) in known.iter().rev() {
                let ((left, right), y) = (ends(at), self.y(low));
                let _ = write!(outline, "L{} {}H{}", Px(right), Px(y), Px(left));
            }
            if !known.is_empty() {
                outline.push('Z');
            }
        }
        outline
    }
}

/// The least of 1, 2, 5, 10 … times a power of ten that is not below `least`.
fn step(least: f64) -> f64 {
    let mut decade = 0.001;
    while decade < 1e15 {
        for step in [1.0, 2.0, 5.0].map(|n| n * decade) {
            if step >= least {
                return step;
            }
        }
        decade *= 10.0;
    }
    decade
}

/// The words of a stretch of time.
pub(super) fn span_text(span: TimeSpan) -> String {
    format!("{} – {} UTC", clock(span.from.0, 0), clock(span.until.0, 0))
}
