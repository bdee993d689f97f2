//! The timeline below every view: what each second brought, what happened, the moments that are marked, and what its buttons say.

mod bands;
mod moments;
mod rows;
mod signs;
mod tools;

use radixscope_insight::time_range::TimeSpan;
use radixscope_model::id::Millis;

pub use bands::Bands;
pub use moments::{SELECT_FIRST, nearest, nothing_retained, played, stepped};
pub use rows::{
    COLUMNS, HEIGHT, Quantity, TimelineMark, TimelineRow, columns, gaps, labels, line, most, next_mark, top,
    zoomed,
};
pub use signs::{Flag, Sign, flags, signs};
pub use tools::{MarkButtons, PlayButton, REAL_TIME, SPEEDS, STEPS, speed_name, step_title};

use crate::time_zone::TimeZone;

/// Room that a label of the axis needs, CSS pixels.
const LABEL_PX: f64 = 90.0;

/// The stretch that is drawn of `all` that is retained: a part of it where the reader zoomed, or what was there when the pointer came.
pub fn shown(all: TimeSpan, zoom: Option<TimeSpan>, held: Option<TimeSpan>) -> TimeSpan {
    zoom.or(held).map_or(all, |zoom| TimeSpan { from: zoom.from.max(all.from), ..zoom })
}

/// Where a moment is in the stretch that is drawn, 0 … 1; `None`: outside.
pub fn share(span: TimeSpan, at: Millis) -> Option<f64> {
    Some(span.share(at)).filter(|share| (0.0..=1.0).contains(share))
}

/// Times of day to write below a field so many CSS pixels wide. One at the very edge would be cut.
pub fn axis(span: TimeSpan, width_px: f64) -> Vec<Millis> {
    let edge = LABEL_PX / 2.0 / width_px.max(1.0);
    let is_inside = |at: &Millis| (edge..=1.0 - edge).contains(&span.share(*at));
    labels(span, (width_px / LABEL_PX) as u64).into_iter().filter(is_inside).collect()
}

/// The moment that is shown, in words: `newest` where it is the present (0), else with its age.
pub fn moment(at: Millis, newest: &str, age: &str, zone: TimeZone) -> String {
    match at.0 {
        0 => newest.to_owned(),
        _ => format!("{}, {age}", zone.time_of_day(at)),
    }
}

/// What the newest moment is called.
pub const fn newest_name(is_replayed: bool) -> &'static str {
    if is_replayed { "End of recording" } else { "Live" }
}

/// Why there is nothing to go back to; empty: there is. `is_on`: the server keeps a history.
pub const fn why_none(from: Millis, is_on: bool) -> &'static str {
    match (from.0, is_on) {
        (0, false) => "No history is retained (--history 0)",
        (0, true) => "No history is retained: the state is larger than --history-mib",
        _ => "",
    }
}
