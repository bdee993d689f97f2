//! Which fault explains a symptom. A queue, a crowd or slow answers that follow from another fault are worth knowing, but
//! that fault is what has to be mended.

use super::peers::holding;
use super::rules::{
    churn::Churn, hot_worker::HotWorker, memory_full::MemoryFull, starved_worker::StarvedWorker,
};
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
    /// What explains that requests wait or are slow: reported, or seen now though not yet for long enough.
    pub(super) fn of(view: &View<'_>) -> Option<Self> {
        if NO_REUSE.iter().any(|code| holding(view, code).is_some()) {
            return Some(Self::NoReuse);
        }
        let shows: [(Self, &dyn Rule); 4] = [
            (Self::Memory, &MemoryFull),
            (Self::HotWorker, &HotWorker),
            (Self::StarvedWorker, &StarvedWorker),
            (Self::Churn, &Churn),
        ];
        let holds = |rule: &dyn Rule| {
            holding(view, rule.code()).is_some() || matches!(rule.look(view), Look::Found(_))
        };
        shows.into_iter().find(|(_, rule)| holds(*rule)).map(|(cause, _)| cause)
    }

    /// As a sentence.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Memory => "The likeliest cause is that running requests fill the KV cache.",
            Self::HotWorker => "The likeliest cause is that one worker gets far more than the others.",
            Self::StarvedWorker => "The likeliest cause is that one worker gets nearly nothing.",
            Self::NoReuse => {
                "The likeliest cause is a fault that keeps prefixes from being re-used, so prompts are computed whole."
            }
            Self::Churn => "The likeliest cause is that prefixes are evicted before they are wanted again.",
        }
    }
}

/// A symptom is a warning only where nothing explains it.
pub(super) const fn severity(cause: Option<Cause>) -> Severity {
    if cause.is_some() { Severity::Info } else { Severity::Warning }
}
