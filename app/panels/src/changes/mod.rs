//! What changed between the moments marked A and B: in sentences, and worker by worker.

mod sentences;
mod table;

use radixscope_insight::changes::{Blocks, Changes, PoolChange};
use radixscope_insight::time_range::TimeSpan;
use radixscope_model::id::Millis;

pub use sentences::sentences;
pub use table::{COLUMNS, CellText, ChangesRow, rows};

use crate::format::{self, UNKNOWN};
use crate::time_zone::TimeZone;
use crate::url::Address;

/// What the marks are called.
pub const NAMES: [&str; 2] = ["A", "B"];
/// With nothing marked, the present is compared with so long ago.
const COMPARED_MS: u64 = 5 * 60_000;

/// Head of the panel before anything is marked.
pub const UNMARKED: &str = "Mark a moment to compare with the present";
/// How to mark; keys stand between backticks.
pub const HOW_TO_MARK: &str = "Go to a moment on the timeline below and press `A`, or the button A beside it. With `B` another moment \
                               takes the place of the present.";

/// What of the changes is shown, and how.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Compared {
    /// Name of the only pool shown; `None`: all are.
    pub only: Option<String>,
    /// Whether B is a moment that is marked, else it is the present.
    pub is_b_marked: bool,
    /// The reader's.
    pub zone: TimeZone,
}

/// The pools that the reader chose, or all.
fn pools<'c>(changes: &'c Changes, shown: &Compared) -> impl Iterator<Item = &'c PoolChange> {
    changes.pools.iter().filter(|pool| shown.only.as_ref().is_none_or(|only| *only == pool.name))
}

/// The figures in the panel's head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangesFigures {
    /// Blocks stored.
    pub stored: String,
    /// Blocks evicted.
    pub evicted: String,
    /// Blocks moved.
    pub moved: String,
}

impl ChangesFigures {
    /// Of the pool that is drawn, by its name; unknown where nothing is compared.
    pub fn of(changes: Option<&Changes>, drawn: Option<&str>) -> Self {
        let blocks = changes.and_then(|changes| {
            let pools = &changes.pools;
            let drawn = pools.iter().find(|pool| Some(pool.name.as_str()) == drawn);
            drawn.or(pools.first()).map(|pool| pool.blocks)
        });
        let figure = |of: fn(&Blocks) -> u64| {
            blocks.as_ref().map_or(UNKNOWN.to_owned(), |blocks| format::count(of(blocks)))
        };
        Self {
            stored: figure(|blocks| blocks.stored),
            evicted: figure(|blocks| blocks.evicted),
            moved: figure(|blocks| blocks.moved_in),
        }
    }
}

/// A mark as a button that shows its moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MarkButton {
    /// Which moment it is.
    pub text: String,
    /// Whether there is a moment to show, which is not one of a second recording.
    pub is_enabled: bool,
}

impl MarkButton {
    /// Of A (0) or B (1), which is the newest moment, called `newest`, where it is not marked.
    pub fn of(side: usize, address: &Address, is_second: bool, newest: &str, zone: TimeZone) -> Self {
        let at = address.marks[side];
        let text = match (at, side) {
            (Some(at), _) => zone.time_of_day(at),
            (None, 1) => newest.to_owned(),
            (None, _) => "not marked".to_owned(),
        };
        let (is_missing, is_elsewhere) = (side == 0 && at.is_none(), side == 1 && is_second);
        Self { text, is_enabled: !is_missing && !is_elsewhere }
    }
}

/// Why nothing is compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotCompared {
    /// It cannot be.
    Fault(String),
    /// The moments that are marked are on their way.
    Fetching,
    /// Nothing is marked.
    Unmarked,
}

impl NotCompared {
    /// As it stands: `fault` is empty where the moments can be had.
    pub fn of(fault: &str, address: &Address) -> Self {
        match (fault, address.marks[0]) {
            ("", Some(_)) => Self::Fetching,
            ("", None) => Self::Unmarked,
            (fault, _) => Self::Fault(format!("{fault}.")),
        }
    }
}

/// The moment that `now` is compared with where the reader marks none: five minutes before. Where less is retained, the middle of it: at
/// its beginning there may have been nothing yet.
pub fn five_minutes_before(now: Millis, retained_from: Millis) -> Millis {
    let retained = now.0.saturating_sub(retained_from.0);
    let before = if retained < COMPARED_MS { retained / 2 } else { COMPARED_MS };
    Millis(now.0 - before)
}

/// Why a moment is not among those retained; `None`: it is.
pub fn not_retained(at: Millis, retained: TimeSpan, zone: TimeZone) -> Option<String> {
    let text = |what: &str, known: Millis| {
        Some(format!("{}{what}{}", zone.time_of_day(at), zone.time_of_day(known)))
    };
    match at {
        at if at < retained.from => {
            text(" is no longer retained: the first retained moment is ", retained.from)
        }
        at if at > retained.until => text(" is still to come: the latest moment is ", retained.until),
        _ => None,
    }
}
