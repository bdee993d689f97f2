//! The workers: what each holds, how fast it changes, and facts about it that may point at a fault.

use radixscope_export::panel::workers::WorkerFigures;
use radixscope_insight::view_context::{LISTED_AFTER_LEAVING_MS, ViewContext};
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_state::cluster::{Cluster, Liveness};

use crate::format;

/// The head of the table: class that says where a column stands, name, explanation.
pub const COLUMNS: [(&str, &str, &str); 8] = [
    ("", "Worker", ""),
    ("", "Cached blocks", ""),
    (
        "n",
        "In flight",
        "Requests in flight on it now, tracked from decisions; in brackets: those of them that are queued there",
    ),
    ("n c-used", "In use", "Blocks that running requests use, by the engine"),
    ("n", "Stored/s", "Blocks stored per second, mean of the last 10 s"),
    ("n", "Removed/s", "Blocks removed per second, mean of the last 10 s"),
    (
        "n c-overlap",
        "Hit rate",
        "KV hit rate: cached blocks ÷ prompt blocks, over the decisions for this worker",
    ),
    ("n c-age", "Event", "Time since its last KV event"),
];

/// More rows than this change once a second in place of some six times, and the table is always as high as it may be: all rows
/// are laid out when one changes.
pub const FEW_ROWS: usize = 32;

/// How many workers left so long ago that tables do not list them; `None`: all are listed.
pub fn unlisted_text(shown: &ViewContext<'_>, listed: usize) -> Option<String> {
    let long_gone = Some(shown.worker_list().count().saturating_sub(listed)).filter(|&left| left > 0)?;
    let minutes = LISTED_AFTER_LEAVING_MS / 60_000;
    let workers = format::plural(long_gone as u64, "worker", "workers");
    Some(format!("{workers} that left more than {minutes} min ago: not listed"))
}

/// What a row shows, beside the figures what depends on the page: its clock, and whether it is connected.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkerRow {
    /// Its figures.
    pub figures: WorkerFigures,
    /// Time since its last KV event.
    pub age: String,
    /// Whether anything is received from it, for the style sheet and for those who hear the page.
    pub sign: &'static str,
    /// What that means.
    pub sign_title: &'static str,
}

impl WorkerRow {
    /// Of a worker at `now`; `is_current`: what is shown of KV events is.
    pub fn of(cluster: &Cluster, ix: WorkerIx, now: Millis, is_current: bool) -> Option<Self> {
        let figures = WorkerFigures::of(cluster, ix, now, is_current)?;
        let age = figures.last_event_ms.map_or("never".to_owned(), |last| format::age(now.since(last)));
        let sign_title = match figures.liveness {
            _ if !is_current => "Unknown: no connection",
            Liveness::Active => "Active: received from it within the last 10 s",
            Liveness::Quiet => "Quiet: idle or gone, nothing received for more than 10 s",
            Liveness::NeverSeen => "Nothing received from it: only routers report it",
            Liveness::Left => "Left: it left the deployment",
        };
        Some(Self {
            age,
            sign: if is_current { figures.liveness.as_str() } else { "unknown" },
            sign_title,
            figures,
        })
    }

    /// How much of its bar is filled, as a width for the style sheet.
    pub fn bar(&self) -> String {
        format::width(self.figures.occupancy.share.unwrap_or(0.0))
    }

    /// What its button says of itself.
    pub fn pick_title(&self) -> String {
        format!("Worker {}, click to select it", self.figures.id)
    }

    /// For those who hear the page.
    pub fn spoken(&self) -> String {
        format!("worker {}, {}", self.figures.id, self.sign)
    }
}
