//! A 0.9 frontend serves requests and no KV router is heard: it routes by guess or not by KV at all.

use super::event_path::{WINDOW, WINDOW_MS, requests_served};
use super::no_events;
use crate::check::{Finding, Rule, RuleOutcome, View, missing};
use radixscope_model::record::{Counter, DecisionSource, HistogramKind, ProcessRole, Severity};

/// Requests that a KV router would have published.
const MIN_REQUESTS: u64 = 10;

/// See the module.
pub(in crate::check) struct ApproximateMode;

impl Rule for ApproximateMode {
    fn code(&self) -> &'static str {
        "approximate_mode"
    }

    fn subject(&self) -> &'static str {
        "KV events used by routers of 0.8 and 0.9"
    }

    fn hold_ms(&self) -> u64 {
        20_000
    }

    fn look(&self, view: &View<'_>) -> RuleOutcome {
        let Some(served) = requests_served(view, WINDOW_MS) else {
            return RuleOutcome::Unknown(
                missing::of_frontends(view, "the number of requests served", "").into(),
            );
        };
        if view.listening_ms().is_none_or(|ms| ms < WINDOW_MS) {
            return RuleOutcome::Unknown(
                "Dynamo's messages have been listened to for less than a minute.".into(),
            );
        }
        // From 1.0 on routers do not publish decisions; their own counters tell, see `router_hears_no_events`.
        let is_new = |p: &radixscope_state::cluster::ProcessState| {
            p.counter_value(Counter::StoredOk).is_some() && p.role == ProcessRole::Frontend
                || p.session(HistogramKind::HitRate).is_some()
        };
        if view.cluster.processes().iter().any(is_new) || served < MIN_REQUESTS {
            return RuleOutcome::Ok;
        }
        let heard = view.decisions(WINDOW_MS).any(|d| d.is_from(DecisionSource::KvHitRate))
            || view
                .cluster
                .workers()
                .iter()
                .any(|w| w.router_loads.iter().any(|load| view.now.since(load.at_ms) <= WINDOW_MS));
        let rises =
            view.present().map(|w| view.history.rise(view.cluster, w, view.now, WINDOW_MS).store_events);
        let stores: u64 = rises.sum();
        if heard {
            return RuleOutcome::Ok;
        }
        if stores == 0 {
            return match no_events::silent(view).is_empty() {
                true => RuleOutcome::Unknown(
                    "No KV event was received in the last 60 s, so nothing tells how routers use them."
                        .into(),
                ),
                false => RuleOutcome::Explained("no_events"),
            };
        }
        RuleOutcome::Found(
            Finding::new(
                Severity::Info,
                "No KV router is heard although requests are served",
                "A KV router of 0.8 or 0.9 publishes every choice; here workers publish KV events and no router speaks. \
                 Its frontend guesses caches from its own choices (--no-kv-events, forgotten after 120 s), routes without \
                 KV, or publishes over ZMQ.",
            )
            .evidence(format!("Requests served, by the frontends' metrics, {WINDOW}"), served, "requests")
            .evidence(format!("Choices published by routers, by NATS, {WINDOW}"), 0, "decisions")
            .evidence(format!("Stored events heard, by NATS, {WINDOW}"), stores, "events")
            .fix("0.8, 0.9: route by KV on every frontend", "--router-mode", "kv")
            .fix("0.8, 0.9: remove this flag from the frontend to use the workers' events", "--no-kv-events", "")
            .link("view=decisions"),
        )
    }
}
