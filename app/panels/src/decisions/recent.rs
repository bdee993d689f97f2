//! The latest decisions on the overview, and what they add up to, every number with its denominator.

use radixscope_export::panel::decisions::{self, DecisionRow};
use radixscope_icicle::palette::label;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::WorkerIx;

use crate::format;

/// Rows shown while they stand still, to be scrolled through.
pub const ROWS: usize = 60;
/// What a click on a row does.
const OPEN: &str = "Click for the candidates and the reason";

/// What the list shows.
#[derive(Clone, PartialEq, Debug)]
pub struct RecentDecisions {
    /// Whether it stands still.
    pub is_held: bool,
    /// Newest first.
    pub rows: Vec<DecisionRow>,
}

impl RecentDecisions {
    /// The newest, as many as `moving_rows`. While it is held, those in sight stay where they are, and older ones follow.
    pub fn of(
        shown: &ViewContext<'_>,
        picked: Option<WorkerIx>,
        is_held: bool,
        moving_rows: usize,
        before: Option<&Self>,
    ) -> Self {
        let most = if is_held { ROWS } else { moving_rows.min(ROWS) };
        let mut rows = decisions::rows(shown, picked, most);
        if let Some(newest) = before.filter(|_| is_held).and_then(|before| before.rows.first()) {
            rows.retain(|row| row.seq <= newest.seq);
        }
        Self { is_held, rows }
    }

    /// How many came since.
    pub fn newer(&self, shown: &ViewContext<'_>, picked: Option<WorkerIx>) -> usize {
        let newest = self.rows.first().map_or(0, |row| row.seq.0);
        shown.decisions_on(picked).take_while(|decided| decided.seq.0 > newest).count()
    }
}

/// Why the latest decision went where it went.
pub fn latest_why(shown: &ViewContext<'_>, picked: Option<WorkerIx>) -> Option<String> {
    shown.decisions_on(picked).next().map(|latest| latest.why(label))
}

/// Below the list while it is held.
pub fn held_text(is_pointed: bool, newer: usize) -> String {
    let what = if is_pointed { "pointer" } else { "focus" };
    match newer {
        0 => format!("Paused while the {what} is here"),
        n => format!("Paused while the {what} is here, {} newer", format::count(n as u64)),
    }
}

/// What a row says of itself.
pub fn row_title(row: &DecisionRow) -> String {
    row.request.as_ref().map_or(OPEN.to_owned(), |id| format!("Request {id}. {OPEN}"))
}
