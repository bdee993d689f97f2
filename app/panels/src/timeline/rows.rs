//! What each second brought, as the server keeps it, and the shapes that it is drawn as. Pure; knows no screen.

use std::fmt::Write;

use radixscope_model::id::Millis;

use radixscope_insight::time_range::TimeSpan;

/// Columns that a timeline is drawn in, however long it is.
pub const COLUMNS: usize = 240;
/// Height of a drawn band.
pub const HEIGHT: f64 = 100.0;

/// What one second brought.
#[derive(Clone, PartialEq, Debug)]
pub struct TimelineRow {
    /// When it was over.
    pub at_ms: Millis,
    /// Blocks stored.
    pub stored: f64,
    /// Blocks removed.
    pub removed: f64,
    /// Routing decisions.
    pub decisions: f64,
    /// TTFT p95 of the last minute, milliseconds, the lower bound where only a range is known; `None`: not reported.
    pub ttft_p95_ms: Option<f64>,
    /// What began, ended, came or went.
    pub marks: Vec<TimelineMark>,
}

/// Something to find again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimelineMark {
    /// For the style sheet: a severity, or `worker`.
    pub kind: String,
    /// As text.
    pub text: String,
}

impl TimelineMark {
    /// Of a finding that was reported (`is_begin`) or resolved.
    pub fn of_finding(code: &str, severity: String, is_begin: bool) -> Self {
        // It began earlier: a fault has to hold before it is reported.
        let what = if is_begin { "reported" } else { "resolved" };
        let text = format!("{code}: {what}, {severity}");
        Self { kind: if is_begin { severity } else { "resolved".to_owned() }, text }
    }

    /// Of a process, or of a worker by its id.
    pub fn of_member(what: String, worker: Option<&str>, process: Option<&str>) -> Self {
        let text = match process {
            Some(process) if what == "settings_changed" => format!("Router settings of {process} changed"),
            Some(process) => format!("Process {process} {what}"),
            None => format!("Worker {} {what}", worker.unwrap_or_default()),
        };
        Self { kind: what, text }
    }
}

/// A quantity of a row.
pub type Quantity = fn(&TimelineRow) -> Option<f64>;

/// The largest value of each column of `span`; `None` where no row has one.
pub fn columns(rows: &[TimelineRow], span: TimeSpan, of: Quantity) -> Vec<Option<f64>> {
    let mut columns = vec![None; COLUMNS];
    for row in rows {
        let share = span.share(row.at_ms);
        if (0.0..1.0).contains(&share)
            && let Some(column) = columns.get_mut((share * COLUMNS as f64) as usize)
        {
            *column = of(row).max_with(*column);
        }
    }
    // Rows a second apart leave holes where columns are shorter than that.
    let columns_a_row = (COLUMNS as u64 * 1_000).div_ceil(span.until.since(span.from).max(1)) as usize;
    let mut last = (None, 0);
    for column in &mut columns {
        last = if column.is_some() { (*column, 0) } else { (last.0, last.1 + 1) };
        if column.is_none() && last.1 < columns_a_row {
            *column = last.0;
        }
    }
    columns
}

trait MaxWith {
    fn max_with(self, other: Self) -> Self;
}

impl MaxWith for Option<f64> {
    fn max_with(self, other: Self) -> Self {
        match (self, other) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        }
    }
}

/// The largest of them, 0 where there is none.
pub fn most(columns: &[Option<f64>]) -> f64 {
    columns.iter().flatten().fold(0.0, |most, value| value.max(most))
}

/// The top of a band: the largest value, unless a few tower over all others, as what is there already when a server starts: they
/// are cut then.
pub fn top(columns: &[Option<f64>]) -> f64 {
    let mut values: Vec<f64> = columns.iter().flatten().copied().collect();
    let place = values.len() * 95 / 100;
    if place == 0 {
        return most(columns);
    }
    values.sort_by(f64::total_cmp);
    most(columns).min(values[place] * 1.6)
}

/// A line through the columns in a box of [`COLUMNS`] by [`HEIGHT`] whose top is `most`; holes where nothing is known.
pub fn line(columns: &[Option<f64>], most: f64) -> String {
    let mut path = String::new();
    let mut is_open = false;
    for (x, value) in columns.iter().enumerate() {
        if let Some(value) = value {
            let y = (HEIGHT - (value / most.max(f64::MIN_POSITIVE)).min(1.0) * HEIGHT) as u32;
            let _ = write!(path, "{}{x} {y}", if is_open { 'L' } else { 'M' });
            // A single point is seen too.
            if !is_open {
                path.push_str("h1");
            }
        }
        is_open = value.is_some();
    }
    path
}

/// Rows further apart are no two seconds in a row.
const GAP_MS: u64 = 5_000;

/// Times without rows, which else come every second: nothing was received or recorded then.
pub fn gaps(rows: &[TimelineRow]) -> impl Iterator<Item = TimeSpan> {
    rows.windows(2).filter_map(|pair| {
        let (from, until) = (pair.first()?.at_ms, pair.last()?.at_ms);
        (until.since(from) > GAP_MS).then_some(TimeSpan { from, until })
    })
}

/// The row with a mark next to `at` on one side of it: when its second was over.
pub fn next_mark(rows: &[TimelineRow], at: Millis, is_forward: bool) -> Option<Millis> {
    let is_marked = |row: &&TimelineRow| !row.marks.is_empty();
    let found = if is_forward {
        rows.iter().filter(|row| row.at_ms > at).find(is_marked)
    } else {
        rows.iter().rev().filter(|row| row.at_ms < at).find(is_marked)
    };
    found.map(|row| row.at_ms)
}

/// Steps between labels of a time axis, seconds.
const LABEL_STEPS_S: [u64; 9] = [1, 2, 5, 10, 30, 60, 120, 300, 900];

/// Times to label in `span`, at most `most` of them, at full steps of the clock.
pub fn labels(span: TimeSpan, most: u64) -> Vec<Millis> {
    let length_s = span.until.since(span.from) / 1_000;
    let step = LABEL_STEPS_S.into_iter().find(|step| length_s / step < most.max(2)).unwrap_or(3_600) * 1_000;
    (span.from.0.div_ceil(step)..=span.until.0 / step).map(|n| Millis(n * step)).collect()
}

/// `span` made longer or shorter by `factor` around a share of it, never beyond `all` and at least ten seconds long. `None`:
/// that is all.
pub fn zoomed(all: TimeSpan, span: TimeSpan, around: f64, factor: f64) -> Option<TimeSpan> {
    const LEAST_MS: f64 = 10_000.0;
    let length = (span.until.since(span.from) as f64 * factor).max(LEAST_MS);
    if length >= all.until.since(all.from) as f64 {
        return None;
    }
    let from = span.at(around).0 as f64 - length * around;
    let from = (from.max(all.from.0 as f64)).min(all.until.0 as f64 - length);
    Some(TimeSpan { from: Millis(from as u64), until: Millis((from + length) as u64) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: u64 = 1_800_000_000_000;

    fn span(seconds: u64) -> TimeSpan {
        TimeSpan { from: Millis(BEGIN), until: Millis(BEGIN + seconds * 1_000) }
    }

    fn row(second: u64, stored: f64) -> TimelineRow {
        let at_ms = Millis(BEGIN + second * 1_000);
        TimelineRow { at_ms, stored, removed: 0.0, decisions: 0.0, ttft_p95_ms: None, marks: Vec::new() }
    }

    #[test]
    fn a_column_has_the_largest_value_of_its_rows() {
        let rows: Vec<TimelineRow> = (0..480).map(|second| row(second, (second % 2) as f64)).collect();
        let columns = columns(&rows, span(480), |row| Some(row.stored));
        assert!(columns.iter().all(|column| *column == Some(1.0)));
        assert_eq!(most(&columns), 1.0);
    }

    #[test]
    fn short_spans_have_no_holes_between_rows_and_long_ones_keep_theirs() {
        let rows: Vec<TimelineRow> = (0..60).map(|second| row(second, second as f64)).collect();
        let short = columns(&rows, span(60), |row| Some(row.stored));
        assert!(short.iter().all(Option::is_some));
        let rows: Vec<TimelineRow> =
            (0..60).filter(|second| !(20..30).contains(second)).map(|second| row(second, 1.0)).collect();
        let holed = columns(&rows, span(60), |row| Some(row.stored));
        assert!(holed[100].is_none() && holed[85].is_none() && holed[140].is_some());
        assert!(columns(&rows, span(60), |row| row.ttft_p95_ms).iter().all(Option::is_none));
    }

    #[test]
    fn a_few_towering_values_are_cut() {
        let mut columns = vec![Some(1.0); 100];
        assert_eq!(top(&columns), 1.0);
        columns[7] = Some(1.5);
        assert_eq!(top(&columns), 1.5);
        columns[7] = Some(1_000.0);
        assert_eq!(top(&columns), 1.6);
        assert!(top(&[]) == 0.0 && top(&[None, Some(5.0)]) == 5.0);
    }

    #[test]
    fn a_line_breaks_where_nothing_is_known() {
        assert_eq!(line(&[Some(0.0), Some(5.0), None, Some(10.0)], 10.0), "M0 100h1L1 50M3 0h1");
        assert_eq!(line(&[None], 10.0), "");
        assert_eq!(line(&[Some(0.0)], 0.0), "M0 100h1");
    }

    #[test]
    fn a_time_without_rows_is_a_gap() {
        let rows: Vec<TimelineRow> = [0, 1, 6, 7, 30, 31].map(|second| row(second, 1.0)).into();
        let gaps: Vec<(u64, u64)> =
            gaps(&rows).map(|gap| (gap.from.0 - BEGIN, gap.until.0 - BEGIN)).collect();
        assert_eq!(gaps, [(7_000, 30_000)]);
    }

    #[test]
    fn marks_are_found_on_both_sides() {
        let mut rows: Vec<TimelineRow> = (0..10).map(|second| row(second, 0.0)).collect();
        for second in [3, 7] {
            rows[second].marks.push(TimelineMark { kind: "warning".to_owned(), text: "it began".to_owned() });
        }
        let next =
            |at: u64, is_forward| next_mark(&rows, Millis(BEGIN + at), is_forward).map(|at| at.0 - BEGIN);
        assert_eq!((next(0, true), next(3_000, true), next(7_000, true)), (Some(3_000), Some(7_000), None));
        assert_eq!(
            (next(7_001, false), next(7_000, false), next(3_000, false)),
            (Some(7_000), Some(3_000), None)
        );
    }

    #[test]
    fn labels_stand_at_full_steps_and_are_few() {
        let labels_of = |seconds, most| labels(span(seconds), most).len();
        assert!((2..=6).contains(&labels_of(900, 6)) && (2..=6).contains(&labels_of(60, 6)));
        assert!(labels(span(61), 6).iter().all(|at| at.0 % 10_000 == 0));
    }

    #[test]
    fn zooming_stays_within_all_and_ends_with_all() {
        let all = span(900);
        let near = zoomed(all, all, 0.5, 0.5).unwrap();
        assert_eq!((near.from.0 - BEGIN, near.until.0 - BEGIN), (225_000, 675_000));
        let end = zoomed(all, near, 1.0, 0.5).unwrap();
        assert_eq!((end.from.0 - BEGIN, end.until.0 - BEGIN), (450_000, 675_000));
        assert_eq!(zoomed(all, near, 0.0, 2.0), None, "all again");
        let least = zoomed(all, near, 0.0, 0.000_1).unwrap();
        assert_eq!(least.until.since(least.from), 10_000);
    }
}
