//! What happened at a time: findings, departures and restarts, times in which nothing was received, and the moments marked A and B.

use radixscope_insight::time_range::TimeSpan;
use radixscope_model::id::Millis;

use super::rows::{TimelineRow, gaps};
use super::share;
use crate::changes::NAMES;
use crate::time_zone::TimeZone;
use crate::url::Address;

/// Kinds of marks, the worst first: of several in one second it is shown.
const WORST: [&str; 6] = ["critical", "warning", "left", "restarted", "settings_changed", "info"];

/// Something at a time: a mark, or a gap from one moment to another.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Sign {
    /// For tests.
    pub id: &'static str,
    /// For the style sheet.
    pub class: String,
    /// What it is.
    pub title: String,
    /// When, or when it began.
    pub from: Millis,
    /// The end of a gap.
    pub until: Option<Millis>,
}

/// Those within `span`: gaps, then marks.
pub fn signs(rows: &[TimelineRow], span: TimeSpan, zone: TimeZone) -> Vec<Sign> {
    let is_seen = |gap: &TimeSpan| gap.until > span.from && gap.from < span.until;
    let is_inside = |row: &&TimelineRow| !row.marks.is_empty() && share(span, row.at_ms).is_some();
    let gaps = gaps(rows).filter(is_seen).map(|gap| Sign::of_gap(gap, zone));
    gaps.chain(rows.iter().filter(is_inside).map(|row| Sign::of_marks(row, zone))).collect()
}

impl Sign {
    fn of_marks(row: &TimelineRow, zone: TimeZone) -> Self {
        let kind = WORST.into_iter().find(|kind| row.marks.iter().any(|mark| mark.kind == *kind));
        let texts: Vec<&str> = row.marks.iter().map(|mark| mark.text.as_str()).collect();
        Self {
            id: "timeline-mark",
            class: format!("moments-mark {}", kind.unwrap_or("resolved")),
            title: format!("{}\n{}", zone.time_of_day(row.at_ms), texts.join("\n")),
            from: row.at_ms,
            until: None,
        }
    }

    fn of_gap(gap: TimeSpan, zone: TimeZone) -> Self {
        let (begin, end) = (zone.time_of_day(gap.from), zone.time_of_day(gap.until));
        Self {
            id: "timeline-gap",
            class: "moments-gap".to_owned(),
            title: format!("Nothing was received or recorded from {begin} to {end}"),
            from: gap.from,
            until: Some(gap.until),
        }
    }

    /// Where it begins, and how wide a gap is: shares of the stretch drawn.
    pub fn place(&self, span: TimeSpan) -> (f64, Option<f64>) {
        let from = span.share(self.from);
        let Some(until) = self.until else { return (from, None) };
        let (from, until) = (from.max(0.0), span.share(until).min(1.0));
        (from, Some(until - from))
    }
}

/// The flag of a marked moment.
#[derive(Clone, PartialEq, Debug)]
pub struct Flag {
    /// A or B.
    pub name: &'static str,
    /// Where it stands, 0 … 1.
    pub share: f64,
    /// Whether its name stands on its left, where there is room.
    pub is_late: bool,
    /// Which moment it is.
    pub title: String,
}

/// Flags of the marked moments that the timeline shows. A moment of a second recording has no place here.
pub fn flags(address: &Address, is_second: bool, span: TimeSpan, zone: TimeZone) -> Vec<Flag> {
    let [a, b] = address.marks;
    let flag = |(name, at): (&'static str, Option<Millis>)| {
        let share = share(span, at?)?;
        Some(Flag { name, share, is_late: share > 0.5, title: format!("{name}: {}", zone.time_of_day(at?)) })
    };
    NAMES.into_iter().zip([a, b.filter(|_| !is_second)]).filter_map(flag).collect()
}
