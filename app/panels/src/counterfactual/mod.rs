//! The latest decisions under other router settings: the form, what is under way, and what came of it. What is computed and when is the
//! page's; the arithmetic is core's.

mod form;
mod heat;
mod recommended;
mod table;

use radixscope_insight::counterfactual::{
    About, ChangedDecision, Fact, ModelReport, NO_ARRIVALS_HINT, OfflineReplayReport, calibration_to_text,
    hint, not_judged,
};
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{DecisionId, Millis, PoolIx, WorkerIx};
use radixscope_state::cluster::DecisionEntry;

use crate::format;
use crate::time_zone::TimeZone;

pub use form::{FieldTexts, Form, RunRequest, latest_formula};
pub use heat::{CellAt, HeatMap, Metric};
pub use recommended::{Answer, Effect};
pub use table::{COLUMNS, ComparisonRow, ComparisonTable, WorkerShare};

/// Head of the panel before the first decision.
pub const NO_DECISION: &str = "No routing decision received yet";
/// What it says then, where no setting is missing.
pub const NO_DECISION_TEXT: &str =
    "Once the router places requests, they can be replayed here under other settings.";

/// When and on what a result was computed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stamp<'a> {
    /// The server's time at which its input was taken.
    pub at_ms: Millis,
    /// The pool that its decisions are of; `None`: there was one.
    pub pool: Option<&'a str>,
    /// Its decisions.
    pub about: &'a About,
}

impl Stamp<'_> {
    /// As text.
    pub fn to_text(self, zone: TimeZone) -> String {
        let Self { at_ms, pool, about } = self;
        let clock = |at: Option<Millis>| at.map_or(format::UNKNOWN.to_owned(), |at| zone.time_of_day(at));
        format!(
            "Computed at {} on {}{}, {}–{}, record {}.",
            clock(Some(at_ms)),
            format::plural(about.considered, "decision", "decisions"),
            pool.map_or(String::new(), |pool| format!(" in pool {pool}")),
            clock(about.from_ms),
            clock(about.to_ms),
            format::count(about.seq.0)
        )
    }

    /// As text, with how many decisions are newer.
    pub fn to_text_with_newer(self, zone: TimeZone, newer: usize) -> String {
        let newer = match newer {
            0 => String::new(),
            n => format!(" {} since.", format::plural(n as u64, "newer decision", "newer decisions")),
        };
        format!("{}{newer}", self.to_text(zone))
    }
}

/// Decisions after `to` of a pool; `None`: of all.
pub fn newer_than(shown: &ViewContext<'_>, to: Millis, pool: Option<PoolIx>) -> usize {
    let is_meant = |d: &&DecisionEntry| pool.is_none_or(|pool| d.pool == pool);
    shown.decisions().newest_first().take_while(|d| d.decided_ms() > to).filter(is_meant).count()
}

/// What was judged and what not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AboutText {
    /// Sentences; empty: there is nothing to say.
    pub text: String,
    /// What would make decisions judgeable, where none was.
    pub hint: Option<&'static str>,
}

/// Head above [`AboutText::hint`].
pub const NOT_JUDGED: &str = "No decision with all its candidates";

impl AboutText {
    /// Of decisions that were looked at.
    pub fn of(about: &About) -> Self {
        let mut sentences = Vec::new();
        sentences.extend(not_judged(about));
        if about.reconstructed > 0 {
            sentences.push(format!(
                "Candidates of {} were computed here from the tree and the requests in flight, not written by the router.",
                format::count(about.reconstructed)
            ));
        }
        if about.recorded_settings > 1 {
            sentences.push("Not all decisions were made with the same formula and weight.".to_owned());
        }
        if about.running > 0 {
            sentences.push(format!("{} in flight.", format::plural(about.running, "request", "requests")));
        }
        Self { text: sentences.join(" "), hint: hint(about) }
    }
}

/// A decision that would have gone elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangedRow {
    /// Which.
    pub decision: DecisionId,
    /// The worker that was chosen, and its cost.
    pub from: (WorkerIx, String),
    /// The worker that would be, and its cost.
    pub to: (WorkerIx, String),
    /// Cost of the other worker less that of the actual one.
    pub difference: String,
    /// Probability that the actual worker is chosen.
    pub actual_probability: String,
}

impl ChangedRow {
    fn of(changed: &ChangedDecision) -> Self {
        let difference = changed.to_cost - changed.from_cost;
        let sign = if difference < 0.0 { "−" } else { "+" };
        Self {
            decision: changed.decision,
            from: (changed.from, format!("{:.1}", changed.from_cost)),
            to: (changed.to, format!("{:.1}", changed.to_cost)),
            difference: format!("{sign}{:.1}", difference.abs()),
            actual_probability: format::tenths(changed.actual_probability),
        }
    }
}

/// The decisions that would have gone elsewhere, one by one; bounded by the report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangedTable {
    /// What they are.
    pub caption: String,
    /// Oldest first.
    pub rows: Vec<ChangedRow>,
}

impl ChangedTable {
    /// Of a replay.
    pub fn of(report: &OfflineReplayReport) -> Self {
        let rows: Vec<_> = report.tried.changed.iter().map(ChangedRow::of).collect();
        let caption = match rows.len() {
            0 => "No decision would most likely change worker.".to_owned(),
            shown => format!(
                "{shown} decisions, oldest first, whose worker is no longer among the likeliest. Costs are in blocks, under the setting tried; round-robin: as recorded."
            ),
        };
        Self { caption, rows }
    }
}

/// What the model is made of and takes for granted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assumptions {
    /// Whether it fits what was measured.
    pub fits: bool,
    /// How well.
    pub calibration: Vec<String>,
    /// What was replayed.
    pub replayed: String,
    /// Under which settings.
    pub routers: String,
    /// Its facts.
    pub made_of: String,
    /// The rest, a sentence each.
    pub assumptions: Vec<String>,
}

impl Assumptions {
    /// Of a run of the model.
    pub fn of(report: &ModelReport) -> Self {
        let fact = |fact: &Fact| {
            let space = if fact.unit.is_empty() { "" } else { " " };
            format!("{} {}{space}{} ({})", fact.name, fact.value, fact.unit, fact.from.as_str())
        };
        let facts: Vec<String> = report.facts.iter().map(fact).collect();
        let left_out = match report.arrivals_left_out {
            0 => String::new(),
            n => format!(
                " {} older ones were excluded: their prompts together exceed the limit.",
                format::count(n)
            ),
        };
        let refused = match report.recorded.refused_requests.max(report.tried.refused_requests) {
            0 => String::new(),
            n => format!(" {} fit no worker of the model.", format::plural(n, "request", "requests")),
        };
        Self {
            fits: report.calibration.fits(),
            calibration: calibration_to_text(&report.calibration),
            replayed: format!(
                "{} recorded arrivals were replayed.{left_out}{refused}",
                format::count(report.arrivals)
            ),
            routers: format!("Recorded: {} Tried: {}", report.recorded_router, report.tried_router),
            made_of: format!("Made of: {}.", facts.join("; ")),
            assumptions: report.assumptions.clone(),
        }
    }
}

/// What is under way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunProgress {
    /// The step.
    pub what: String,
    /// Number of the step, from 1.
    pub step: u32,
    /// How many there are.
    pub steps: u32,
    /// Done of all within the step; `None`: not known.
    pub part: Option<(u32, u32)>,
}

impl RunProgress {
    /// Prompts are on their way: bytes so far, and in all where that is known.
    pub fn fetching(bytes: usize, total: Option<usize>) -> Self {
        let part = total.map(|total| (bytes as u32, total as u32));
        let of = total.map_or(String::new(), |total| format!(" of {}", size(total)));
        Self { what: format!("Fetching recorded prompts, {}{of}", size(bytes)), step: 2, steps: 3, part }
    }

    /// As text.
    pub fn to_text(&self) -> String {
        let Self { what, step, steps, .. } = self;
        if *steps > 1 { format!("{step} of {steps}: {what}") } else { what.clone() }
    }
}

/// Why a run failed, as text: a missing prompt is no fault but a setting.
pub fn failure_text(message: String) -> String {
    if message.starts_with("no prompt is known") { format!("{message}. {NO_ARRIVALS_HINT}") } else { message }
}

fn size(bytes: usize) -> String {
    match bytes {
        0..=999_999 => format!("{} kB", bytes / 1_000),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
