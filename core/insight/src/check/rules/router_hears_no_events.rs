//! Workers publish KV events and the router applies none: its tree is empty although ours is not.

use super::event_path::{WINDOW, WINDOW_MS, link, part, requests_served};
use super::no_events;
use crate::check::{Finding, Rule, RuleOutcome, View, missing};
use radixscope_model::id::Millis;
use radixscope_model::record::{Counter, Gauge, HistogramKind, ProcessRole, Severity};
use radixscope_state::cluster::ProcessState;

/// Stored events heard here that the router would have heard too.
const MIN_STORES: u64 = 20;
/// A scrape is of now.
const FRESH_MS: u64 = 30_000;

/// See the module.
pub(in crate::check) struct RouterHearsNoEvents;

impl Rule for RouterHearsNoEvents {
    fn code(&self) -> &'static str {
        "router_hears_no_events"
    }

    fn subject(&self) -> &'static str {
        "KV events applied by the routers"
    }

    fn hold_ms(&self) -> u64 {
        15_000
    }

    fn look(&self, view: &View<'_>) -> RuleOutcome {
        let mismatched = mismatched_workers(view);
        if mismatched > 0 {
            return RuleOutcome::Found(source_mismatch(view, mismatched));
        }
        let routers: Vec<_> = routers(view).collect();
        if routers.is_empty() {
            let what = "the KV events that the router applied";
            let versions = "0.9 at its system port, and from 1.1 on";
            return RuleOutcome::Unknown(missing::of_frontends(view, what, versions).into());
        }
        let deaf: Vec<_> = routers.iter().copied().filter(|process| applied_none(view, process)).collect();
        if deaf.is_empty() {
            return RuleOutcome::Ok;
        }
        if stores(view) >= MIN_STORES {
            return RuleOutcome::Found(found(view, &deaf, routers.len()));
        }
        if !no_events::silent(view).is_empty() {
            return RuleOutcome::Explained("no_events");
        }
        match requests_served(view, WINDOW_MS) {
            Some(1..) => RuleOutcome::Unknown(
                format!("Fewer than {MIN_STORES} stored events were received in the last 60 s that a router could apply.")
                    .into(),
            ),
            // Nothing to apply, and nothing applied.
            _ => RuleOutcome::Ok,
        }
    }
}

/// Whether a router is known to apply no events, for rules that see the consequences.
pub(super) fn is_there(view: &View<'_>) -> bool {
    routers(view).any(|process| is_deaf(view, process))
}

/// Processes that count applied events, scraped lately.
fn routers<'v>(view: &View<'v>) -> impl Iterator<Item = &'v ProcessState> + use<'v> {
    let now = view.now;
    let counts =
        |p: &&ProcessState| p.counter_value(Counter::StoredOk).is_some() && p.role != ProcessRole::Worker;
    view.cluster.processes().iter().filter(counts).filter(move |p| now.since(p.last_ms) <= FRESH_MS)
}

/// Stored events of all workers, heard here lately.
fn stores(view: &View<'_>) -> u64 {
    view.present()
        .map(|worker| view.history.rise(view.cluster, worker, view.now, WINDOW_MS).store_events)
        .sum()
}

fn applied(process: &ProcessState) -> f64 {
    let counters =
        [Counter::StoredOk, Counter::StoredParentUnknown, Counter::StoredOther, Counter::DuplicateStores];
    counters.iter().filter_map(|&counter| process.counter_value(counter)).fold(0.0, |sum, count| sum + count)
}

fn is_deaf(view: &View<'_>, process: &ProcessState) -> bool {
    applied_none(view, process) && stores(view) >= MIN_STORES
}

/// Whether it runs for long enough and applied nothing.
fn applied_none(view: &View<'_>, process: &ProcessState) -> bool {
    let since = process.restarted_ms.unwrap_or(process.first_ms);
    applied(process) == 0.0 && view.now.since(since) >= WINDOW_MS
}

fn mismatched_workers(view: &View<'_>) -> u64 {
    let fresh = view.cluster.processes().iter().filter(|p| view.now.since(p.last_ms) <= FRESH_MS);
    let most = fresh.filter_map(|p| p.gauge(Gauge::EventSourceMismatchWorkers)).fold(0.0, f64::max);
    most as u64
}

fn source_mismatch(view: &View<'_>, workers: u64) -> Finding {
    let known = view.present().count() as u64;
    let found = Finding::new(
        Severity::Warning,
        "The router has no usable source of KV events for some workers",
        "The router says itself that it cannot hear these workers' events, so their caches are not in its tree. Their \
         prompts count as new, and hits there come by chance.",
    )
    .evidence("Workers without a usable source, by the router's metrics, now, of those present", part(workers, known), "workers")
    .link(link(view, "workers", &[]));
    fixes(found)
}

fn found(view: &View<'_>, deaf: &[&ProcessState], routers: usize) -> Finding {
    let since = Millis(view.now.0.saturating_sub(WINDOW_MS));
    let mut found = Finding::new(
        Severity::Critical,
        "The router applies no KV events",
        "Workers publish KV events that arrive here, but the router has not applied one, so its tree is empty or only \
         predicted. It listens to another event plane, has events turned off, or does not route by KV at all.",
    )
    .evidence(format!("Stored events heard here, by NATS, {WINDOW}"), stores(view), "events")
    .evidence("Routers that applied none, by their metrics, of those scraped", part(deaf.len() as u64, routers as u64), "routers")
    .link("view=tree");
    for process in deaf {
        found = found.evidence(
            format!("Stored events applied, by {}, since it started", process.name),
            0,
            "events",
        );
        let rates =
            process.distribution(HistogramKind::HitRate, since, view.now).filter(|rates| rates.count() > 0);
        if let Some(rates) = rates {
            let value = format!("{:.2} over {} requests", rates.mean().unwrap_or(0.0), rates.count());
            found = found.evidence(format!("Mean hit rate by {}, {WINDOW}", process.name), value, "of 1");
        }
    }
    fixes(found)
}

fn fixes(found: Finding) -> Finding {
    found
        .fix("Dynamo from 1.3 on: one event plane for frontends and workers", "DYN_EVENT_PLANE", "nats")
        .fix("0.9: start the frontend without --no-kv-events", "DYN_KV_EVENTS", "true")
        .fix("1.x: let the frontend use KV events", "DYN_ROUTER_USE_KV_EVENTS", "true")
        .fix("Any version: route by KV on every frontend", "--router-mode", "kv")
        .fix("0.9: the same on all workers or on none", "--enable-local-indexer", "")
}
