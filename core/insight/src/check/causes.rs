//! Which fault explains a symptom. A queue, a crowd or slow answers that follow from another fault are worth knowing, but
//! that fault is what has to be mended.

use super::rules::{churn, hot_worker, memory_full, prefill_slower, starved_worker};
use super::{Rule, View};

/// Faults after which prefixes are not re-used, or not yet again.
const NO_REUSE: [&str; 9] = [
    "not_kv_routing",
    "block_size_mismatch",
    "no_events",
    "zero_overlap",
    "router_receives_no_events",
    "event_planes_mixed",
    "cold_tree",
    "router_restarted",
    "worker_gone",
];

/// A cache of usual size and load is full, and shows what becomes of evicted blocks, within this time.
const FILLS_MS: u64 = 300_000;
/// Over which the overlap is taken.
const OVERLAP_MS: u64 = 60_000;
/// Healthy deployments re-use more of their prompts once their caches are full.
const LITTLE_REUSE: f64 = 0.8;

/// A fault that explains symptoms. A symptom keeps its own severity and names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cause {
    /// Running requests fill the KV cache.
    Memory,
    /// One worker gets too much.
    HotWorker,
    /// One worker gets nearly nothing.
    StarvedWorker,
    /// Prompts are computed whole, by the finding of this code; empty: by none that is known.
    NoReuse(&'static str),
    /// Prefixes are evicted too early.
    Churn,
    /// Prompts are computed slower than before.
    PrefillSlower,
    /// Workers started lately, and much of what prompts ask for was never computed before.
    CachesFill,
}

impl Cause {
    /// What explains that requests wait or are slow: reported, or seen now though not yet for long enough.
    pub(super) fn of(view: &View<'_>) -> Option<Self> {
        match Self::other_than_prefill(view) {
            Some(cause) if cause != Self::CachesFill => Some(cause),
            _ if prefill_slower::RULE.shows(view) => Some(Self::PrefillSlower),
            other => other,
        }
    }

    /// The same without a slower prefill, which is what is left where none of the others explains it.
    pub(super) fn other_than_prefill(view: &View<'_>) -> Option<Self> {
        const RULES: [(Cause, &Rule); 4] = [
            (Cause::Memory, &memory_full::RULE),
            (Cause::HotWorker, &hot_worker::RULE),
            (Cause::StarvedWorker, &starved_worker::RULE),
            (Cause::Churn, &churn::RULE),
        ];
        if let Some(code) = NO_REUSE.into_iter().find(|code| view.is_active(code)) {
            return Some(Self::NoReuse(code));
        }
        let shows = RULES.into_iter().find(|(_, rule)| rule.shows(view)).map(|(cause, _)| cause);
        shows.or_else(|| caches_fill(view).then_some(Self::CachesFill))
    }

    /// Code of its finding; empty: it has none.
    pub(super) const fn code(self) -> &'static str {
        match self {
            Self::Memory => "memory_full",
            Self::HotWorker => "hot_worker",
            Self::StarvedWorker => "starved_worker",
            Self::NoReuse(code) => code,
            Self::Churn => "churn",
            Self::PrefillSlower => "prefill_slower",
            Self::CachesFill => "",
        }
    }

    /// As a sentence.
    pub(super) const fn to_text(self) -> &'static str {
        match self {
            Self::Memory => "The likeliest cause is that running requests fill the KV cache.",
            Self::HotWorker => {
                "The likeliest cause is that one worker gets far more requests than the others."
            }
            Self::StarvedWorker => "The likeliest cause is that one worker gets nearly no requests.",
            Self::NoReuse(_) => {
                "The likeliest cause is a fault that keeps prefixes from being re-used, so whole prompts are computed."
            }
            Self::Churn => "The likeliest cause is that prefixes are evicted before they are used again.",
            Self::PrefillSlower => "The likeliest cause is that the GPUs compute prompts slower than before.",
            Self::CachesFill => {
                "The likeliest cause is that the workers started lately and their caches still fill, so prompts are \
                 computed for the first time."
            }
        }
    }
}

/// Whether all workers are new, their publishers received from the first event on, and less of the prompts is re-used than
/// will be.
fn caches_fill(view: &View<'_>) -> bool {
    let window = view.cluster.decisions().window(view.now, OVERLAP_MS);
    let is_low = window.overlap_share().is_some_and(|overlap| overlap < LITTLE_REUSE);
    is_low && view.present().all(|worker| view.began_within(worker, FILLS_MS))
}

/// Code of a cause's finding; empty: there is no cause, or it has no finding.
pub(super) fn code(cause: Option<Cause>) -> &'static str {
    cause.map_or("", Cause::code)
}
