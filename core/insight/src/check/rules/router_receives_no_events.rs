//! Workers publish KV events and the router applies none: its tree is empty although ours is not.

use super::prelude::*;
use super::{approximate_mode, no_events, not_kv_routing};
use crate::check::missing;
use radixscope_model::record::{Counter, Gauge, HistogramKind, ProcessRole};
use radixscope_state::cluster::ProcessState;

/// Stored events received here that the router would have received too.
const MIN_STORES: u64 = 20;

/// Of the stored events received here: a router that takes them applies nearly all, and guesses one store a request.
const GUESSED_SHARE: f64 = 0.5;

pub(in crate::check) const RULE: Rule = Rule {
    hold_ms: 15_000,
    ..Rule::new("router_receives_no_events", "KV events applied by the routers", evaluate)
};

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let mismatched = mismatched_workers(view);
    if mismatched > 0 {
        return source_mismatch(view, mismatched).into();
    }
    if approximate_mode::is_there(view) {
        return RuleOutcome::Explained("approximate_mode");
    }
    let routers: Vec<_> = routers(view).collect();
    if routers.is_empty() && not_kv_routing::is_there(view) {
        return RuleOutcome::Explained("not_kv_routing");
    }
    if routers.is_empty() {
        let what = "the KV events that the router applied";
        let versions = "0.9 at its system port, and from 1.1 on";
        return RuleOutcome::no_data(missing::of_frontends(view, what, versions));
    }
    let deaf: Vec<_> = routers.iter().copied().filter(|process| applied_none(view, process)).collect();
    if deaf.is_empty() {
        return match routers.iter().find(|process| may_guess(view, process)) {
            Some(process) => RuleOutcome::no_data(format!(
                "The router of {} stored far less in its index than was received here, so whether it uses KV events or \
                 predicts is unknown; its log says it.",
                process.name
            )),
            None => RuleOutcome::Ok,
        };
    }
    if view.stores() >= MIN_STORES {
        return found(view, &deaf, routers.len()).into();
    }
    if !no_events::silent(view).is_empty() {
        return RuleOutcome::Explained("no_events");
    }
    match view.requests_served(WINDOW_MS) {
        Some(1..) => RuleOutcome::no_data(format!(
            "Fewer than {MIN_STORES} stored events were received in the last 60 s that a router could apply."
        )),
        // Nothing to apply, and nothing applied.
        _ => RuleOutcome::Ok,
    }
}

/// Whether a router is known to apply no events, for rules that see the consequences.
pub(super) fn is_there(view: &View<'_>) -> bool {
    routers(view).any(|process| is_deaf(view, process))
}

/// Processes that count applied events, scraped lately.
fn routers<'v>(view: &View<'v>) -> impl Iterator<Item = &'v ProcessState> + use<'v> {
    let counts =
        |p: &&ProcessState| p.counter_value(Counter::StoredOk).is_some() && p.role != ProcessRole::Worker;
    view.fresh().filter(counts)
}

fn applied(process: &ProcessState) -> f64 {
    let counters =
        [Counter::StoredOk, Counter::StoredParentUnknown, Counter::StoredOther, Counter::DuplicateStores];
    counters.into_iter().filter_map(|counter| process.counter_value(counter)).sum()
}

fn is_deaf(view: &View<'_>, process: &ProcessState) -> bool {
    applied_none(view, process) && view.stores() >= MIN_STORES
}

/// Whether what a router stored in its index may be its own guesses, one for each request: it does not count sources of
/// events, and stored far less than the workers published.
fn may_guess(view: &View<'_>, process: &ProcessState) -> bool {
    let counts_sources = process.gauge(Gauge::EventSourceMismatchWorkers).is_some();
    let applied = process.counted_since(Counter::StoredOk, view.ago(WINDOW_MS)).unwrap_or(0.0);
    let stores = view.stores();
    !counts_sources && stores >= MIN_STORES && applied < GUESSED_SHARE * stores as f64
}

/// Whether it runs for long enough and applied nothing.
fn applied_none(view: &View<'_>, process: &ProcessState) -> bool {
    let since = process.restarted_ms.unwrap_or(process.first_ms);
    applied(process) == 0.0 && view.now.since(since) >= WINDOW_MS
}

fn mismatched_workers(view: &View<'_>) -> u64 {
    view.fresh().filter_map(|p| p.gauge(Gauge::EventSourceMismatchWorkers)).fold(0.0, f64::max) as u64
}

fn source_mismatch(view: &View<'_>, workers: u64) -> Finding {
    let known = view.present().count() as u64;
    Finding::new(
        Severity::Warning,
        "The router has no usable source of KV events for some workers",
        "The router itself reports that it does not receive these workers' events, so their caches are not in its tree. Their \
         prompts count as new, and hits there are by chance.",
    )
    .evidence("Workers without a usable source, by the router's metrics, now, of those present", part(workers, known), "workers")
    .fixes("router_receives_no_events")
    .panel(PanelRef::Workers)
}

fn found(view: &View<'_>, deaf: &[&ProcessState], routers: usize) -> Finding {
    let since = view.ago(WINDOW_MS);
    let mut found = Finding::new(
        Severity::Critical,
        "The router applies no KV events",
        "Workers publish KV events that arrive here, but the router has not applied one, so its tree is empty or only \
         predicted. It listens to another event plane, has events turned off, or does not route by KV at all.",
    )
    .evidence(format!("Stored events received here, by NATS, {WINDOW}"), view.stores(), "events")
    .evidence("Routers that applied none, by their metrics, of those scraped", part(deaf.len() as u64, routers as u64), "routers")
    .panel(PanelRef::Tree);
    for process in deaf {
        let applied = format!("Stored events applied, by {}, since it started", process.name);
        found = found.evidence(applied, 0, "events");
        let rates =
            process.distribution(HistogramKind::HitRate, since, view.now).filter(|rates| rates.count() > 0);
        if let Some(rates) = rates {
            let value = format!("{:.2} over {} requests", rates.mean().unwrap_or(0.0), rates.count());
            found = found.evidence(format!("Mean hit rate by {}, {WINDOW}", process.name), value, "of 1");
        }
    }
    found.fixes("router_receives_no_events")
}
