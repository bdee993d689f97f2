//! A router restarted: worth knowing, because everything it had in memory it had to learn again.

use super::prelude::*;
use radixscope_model::record::{LogSignal, ProcessRole};
use radixscope_state::cluster::RouterState;

/// A restart is reported for this long.
const REPORTED_MS: u64 = 300_000;
/// A start within this time of the first message of anybody is the deployment's own.
const STABLE_AFTER_MS: u64 = 10_000;
/// A router of which nothing was received for so long has been replaced, not joined.
const REPLACED_MS: u64 = 5_000;

pub(in crate::check) const RULE: Rule =
    Rule { hold_ms: 0, ..Rule::new("router_restarted", "Restarts of routers", evaluate) };

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let restarts = restarts(view);
    if restarts.is_empty() {
        return RuleOutcome::Ok;
    }
    let mut found = Finding::new(
        Severity::Info,
        "A router restarted",
        "A new router recovers its tree from the stream (0.8, 0.9) or from the workers (1.x) and starts with no \
         load counted. Until then its decisions are worse than usual.",
    )
    .panel(PanelRef::Decisions);
    for Restart { at_ms, how } in restarts {
        found = found.evidence(how, view.seconds_since(at_ms), "s ago");
    }
    found.fixes("router_restarted").into()
}

/// A restart and how it is known.
pub(super) struct Restart {
    pub(super) at_ms: Millis,
    how: String,
}

/// Restarts lately, each way of knowing once.
pub(super) fn restarts(view: &View<'_>) -> Vec<Restart> {
    let mut restarts = Vec::new();
    let mut add = |at_ms: Millis, how: String| {
        if view.now.since(at_ms) <= REPORTED_MS {
            restarts.push(Restart { at_ms, how });
        }
    };
    for process in view.cluster.processes() {
        let routes = matches!(process.role, ProcessRole::Frontend | ProcessRole::Router);
        if let Some(at) = process.restarted_ms.filter(|_| routes) {
            let (name, restarts) = (&process.name, process.restarts);
            add(at, format!("Restart of {name}, by its metrics, {restarts} since we listen"));
        }
    }
    let Some(first) = first_seen(view) else { return restarts };
    if let Some(sign) = view.cluster.sign(|sign| *sign == LogSignal::RouterStarted)
        && sign.last_ms.since(first) >= STABLE_AFTER_MS
    {
        add(sign.last_ms, format!("Start of a router, by a frontend's log, {} since we listen", sign.count));
    }
    let routers = view.cluster.routers();
    for router in routers {
        let before = |old: &&RouterState| router.first_ms.since(old.last_ms) > 0;
        let replaced = routers.iter().filter(before).any(|old| view.now.since(old.last_ms) >= REPLACED_MS);
        if replaced && router.first_ms.since(first) >= STABLE_AFTER_MS {
            let how = format!(
                "First message of router {} after another one stopped publishing, by NATS",
                router.id
            );
            add(router.first_ms, how);
        }
    }
    restarts
}

/// When the first worker was seen.
fn first_seen(view: &View<'_>) -> Option<Millis> {
    view.cluster.workers().iter().map(|w| w.first_ms).min()
}
