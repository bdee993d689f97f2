//! Decisions: every retained one in one table, with what it came to, and one of them in detail; and the latest on the overview.
//!
//! # How it works
//!
//! What a decision came to, which filter it passes and why it was taken are pure functions of one retained decision; the
//! API, the exports and the page call the same. One pass over the retained decisions gives the lines, the counts of every
//! filter and the sums. Pause copies what is shown, because the state forgets.

pub mod candidates;
pub mod details;
pub mod filters;
pub mod list;
pub mod recent;
pub mod row;
pub mod scores;
mod search;
pub mod strip;

pub use search::Search;

use radixscope_export::TraceUrl;
use radixscope_export::other_routers::{OtherRouterRow, TallyLine};
use radixscope_export::panel::decisions::NO_DECISION;
use radixscope_export::rows::{Decisions, DecisionsOf, decisions_csv};
use radixscope_insight::latency::WINDOW_MS;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{Millis, Worker};
use radixscope_model::number_format::duration;
use radixscope_state::cluster::Hint;

use crate::format;
use list::{DecisionList, Listed};

/// What stands where there is no decision.
#[derive(Clone, PartialEq, Debug)]
pub struct NoDecisions {
    /// In a few words.
    pub head: &'static str,
    /// What would be listed.
    pub text: &'static str,
    /// Which settings would report decisions.
    pub hint: Option<Hint>,
}

impl NoDecisions {
    /// Of what is scraped and received.
    pub fn of(shown: &ViewContext<'_>) -> Self {
        let only_counts = shown.processes().iter().any(|process| process.role.is_other_router());
        let text = match only_counts {
            true => "The router above counts its choices and reports none of them one by one.",
            false => {
                "Every request that the KV router places is listed here, with the cost of every candidate."
            }
        };
        Self { head: NO_DECISION, text, hint: shown.decisions_hint() }
    }
}

/// What a router other than Dynamo's counts, where it reports no single decisions.
#[derive(Clone, PartialEq, Debug)]
pub struct OtherRouter {
    /// Its make.
    pub make: &'static str,
    /// Which, and over what time.
    pub name: String,
    /// Its counts.
    pub lines: Vec<TallyLine>,
}

impl OtherRouter {
    /// All of them, in the last minute before `now`.
    pub fn all(shown: &ViewContext<'_>, now: Millis) -> Vec<Self> {
        let row = |row: OtherRouterRow| Self {
            make: row.make(),
            lines: row.lines(),
            name: format!(" · {}, last {}", row.name, duration(WINDOW_MS as f64)),
        };
        OtherRouterRow::all(shown, now).into_iter().map(row).collect()
    }
}

/// The decisions listed as CSV.
pub fn csv(shown: &ViewContext<'_>, list: &DecisionList, listed: Listed<'_>) -> String {
    decisions_csv(shown, list.entries(listed))
}

/// The decisions listed as the API gives them, with its totals of `worker` or of the pools shown.
pub fn json(
    shown: &ViewContext<'_>,
    list: &DecisionList,
    listed: Listed<'_>,
    worker: Option<Worker>,
    trace_url: Option<&TraceUrl>,
) -> Decisions {
    let worker = worker.and_then(|id| shown.worker_ix(id));
    let workers = worker.as_ref().map(std::slice::from_ref);
    let pools = shown.only.as_ref().map(std::slice::from_ref);
    Decisions::of(shown, list.entries(listed), DecisionsOf { workers, pools, trace_url })
}

/// What is read out when a file was saved, or why it was not.
pub fn saved_text(name: &str, is_saved: bool, list: &DecisionList) -> String {
    match is_saved {
        true => {
            format!("{name} saved with {}", format::plural(list.len() as u64, "decision", "decisions"))
        }
        false => format!("{name} could not be saved: the browser refused"),
    }
}
