//! Which fault explains a symptom. A queue, a crowd or slow answers that follow from another fault are worth knowing, but
//! that fault is what has to be mended.

use super::peers::holding;
use super::rules::{hot_worker::HotWorker, memory_full::MemoryFull, starved_worker::StarvedWorker};
use super::{Look, Rule, View};
use crate::record::Severity;

/// Faults after which prefixes are not re-used, or not yet again.
const NO_REUSE: [&str; 8] = [
    "block_size_mismatch",
    "no_events",
    "zero_overlap",
    "router_hears_no_events",
    "event_lines_mixed",
    "cold_tree",
    "router_restarted",
    "worker_gone",
];

/// A fault that explains symptoms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cause {
    /// Running requests fill the KV cache.
    Memory,
    /// One worker gets too much.
    HotWorker,
    /// One worker gets nearly nothing.
    StarvedWorker,
    /// Prompts are computed whole.
    NoReuse,
    /// Prefixes are evicted too early.
    Churn,
}

impl Cause {
    /// What explains that requests wait somewhere: it shows now, though it may not have held for long enough to be
    /// reported.
    pub(super) fn of_waiting(view: &View<'_>) -> Option<Self> {
        let causes: [(Self, &dyn Rule); 3] = [
            (Self::Memory, &MemoryFull),
            (Self::HotWorker, &HotWorker),
            (Self::StarvedWorker, &StarvedWorker),
        ];
        causes.into_iter().find(|(_, rule)| matches!(rule.look(view), Look::Found(_))).map(|(cause, _)| cause)
    }

    /// What explains slow answers.
    pub(super) fn of_slowness(view: &View<'_>) -> Option<Self> {
        if NO_REUSE.iter().any(|code| holding(view, code).is_some()) {
            return Some(Self::NoReuse);
        }
        Self::of_waiting(view).or_else(|| holding(view, "churn").map(|_| Self::Churn))
    }

    /// As a sentence.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Memory => "The likeliest cause is that running requests fill the KV cache.",
            Self::HotWorker => "The likeliest cause is that one worker gets far more than the others.",
            Self::StarvedWorker => "The likeliest cause is that one worker gets nearly nothing.",
            Self::NoReuse => {
                "The likeliest cause is that no prefix is re-used, so every prompt is computed whole."
            }
            Self::Churn => "The likeliest cause is that prefixes are evicted before they are wanted again.",
        }
    }
}

/// A symptom is a warning only where nothing explains it.
pub(super) const fn severity(cause: Option<Cause>) -> Severity {
    if cause.is_some() { Severity::Info } else { Severity::Warning }
}
