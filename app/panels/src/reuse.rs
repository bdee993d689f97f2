//! Where the reuse of prompts is lost: a bar for each step, how it went over time, what was lost for each cause, and whose sessions lost
//! most.

use radixscope_export::panel::reuse::{ReusePanel, StepLine};
use radixscope_insight::reuse::Step;
use radixscope_insight::time_range::TimeSpan;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::WorkerIx;
use radixscope_state::cluster::DecisionEntry;

use crate::format::{self, UNKNOWN};
use crate::time_zone::TimeZone;

/// Figures in the panel's head: name for tests, label, place among the steps.
pub const FIGURES: [(&str, &str, usize); 2] = [
    ("reuse-held", "of prompt tokens cached on the chosen worker", 4),
    ("reuse-reused", "reused by engines", 5),
];

/// Steps that are drawn over time: place among the shares, step, class.
pub const TREND: [(usize, Step, &str); 3] =
    [(0, Step::Seen, "seen"), (1, Step::Held, "held"), (3, Step::Chosen, "chosen")];

/// Of the decisions of a time in the pools shown: of the worker that is picked, of the session that is chosen.
pub fn panel(
    shown: &ViewContext<'_>,
    span: TimeSpan,
    picked: Option<WorkerIx>,
    session: &str,
    zone: TimeZone,
) -> ReusePanel {
    let is_meant = |decided: &DecisionEntry| {
        picked.is_none_or(|picked| picked == decided.decision.worker)
            && (session.is_empty() || decided.decision.session.as_deref() == Some(session))
    };
    ReusePanel::of(shown, span, is_meant, |at| zone.time_of_day(at))
}

/// A figure of the head.
pub fn figure(panel: &ReusePanel, at: usize) -> String {
    panel.steps.get(at).map_or(UNKNOWN.to_owned(), |step| step.text.clone())
}

/// What everything is summed over.
pub fn summed_over(panel: &ReusePanel) -> String {
    format!("Of the prompts of {}", format::plural(panel.decisions.into(), "decision", "decisions"))
}

/// The button that leads from one session back to all; `None`: all are shown.
pub fn all_sessions_text(session: &str) -> Option<String> {
    (!session.is_empty()).then(|| format!("Session {session}: show all"))
}

/// How much of a step's bar is filled, as a width for the style sheet.
pub fn bar(step: &StepLine) -> String {
    format::width(step.share.unwrap_or(0.0))
}

/// A part of the time.
#[derive(Clone, PartialEq, Debug)]
pub struct TrendBar {
    /// Its place, from 0.
    pub at: usize,
    /// When it begins, and its shares.
    pub title: String,
    /// Class and height of each of its parts, of 100; each lies in the one before.
    pub parts: [(&'static str, f64); 3],
}

/// The shares of the steps over time; parts without prompts are left out.
pub fn trend(panel: &ReusePanel, zone: TimeZone) -> Vec<TrendBar> {
    let bar = |(at, (begin, shares)): (usize, &(_, Option<[f64; 4]>))| {
        let shares = (*shares)?;
        let steps = TREND.map(|(of, step, _)| format!("{} {}", format::percent(shares[of]), step.label()));
        Some(TrendBar {
            at,
            title: format!("{}: {}", zone.time_of_day(*begin), steps.join(", ")),
            parts: TREND.map(|(of, _, class)| (class, shares[of] * 100.0)),
        })
    };
    panel.trend.iter().enumerate().filter_map(bar).collect()
}

/// The time that the bars are of.
pub fn span_text(span: TimeSpan, zone: TimeZone) -> String {
    format!("{} to {}", zone.time_of_day(span.from), zone.time_of_day(span.until))
}
