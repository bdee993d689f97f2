//! KV events that were published and did not arrive: a picture with holes, here and perhaps at the router.

use super::event_path::{WINDOW_MS, each, link, name, names};
use crate::check::{Finding, Rule, RuleOutcome, View};
use radixscope_model::id::WorkerIx;
use radixscope_model::record::{LogSign, MissedCause, Severity, Topic};
use radixscope_state::cluster::MissedCount;

/// See the module.
pub(in crate::check) struct EventGaps;

impl Rule for EventGaps {
    fn code(&self) -> &'static str {
        "event_gaps"
    }

    fn subject(&self) -> &'static str {
        "KV events that were lost on the way"
    }

    fn hold_ms(&self) -> u64 {
        0
    }

    fn look(&self, view: &View<'_>) -> RuleOutcome {
        let lost = |missed: &&MissedCount| {
            let on_the_way = matches!(missed.cause, MissedCause::EnvelopeGap | MissedCause::EventIdGap);
            on_the_way && missed.topic == Topic::KvEvents && view.now.since(missed.last_ms) <= WINDOW_MS
        };
        let workers: Vec<WorkerIx> = view
            .present()
            .filter(|&worker| view.history.rise(view.cluster, worker, view.now, WINDOW_MS).missed > 0)
            .collect();
        let title = if workers.is_empty() {
            "KV events were lost on the way".to_owned()
        } else {
            format!("KV events were lost on the way: {}", names(view, &workers))
        };
        let mut found = Finding::new(
            Severity::Warning,
            title,
            "The numbers that publishers give their messages have holes, so blocks were stored or removed that are not \
             in this tree. The router may have lost the same messages: one that cannot ask the workers for them is wrong \
             until those blocks are removed.",
        )
        .workers(workers.iter().copied())
        .link(link(view, "tree", &workers));
        let mut any = false;
        for source in view.cluster.sources() {
            for missed in source.missed.iter().filter(lost) {
                any = true;
                let label = format!(
                    "KV events missing, by {} over {}, since we listen",
                    missed.cause.as_str(),
                    source.name
                );
                found = found.evidence(
                    label,
                    format!("{} beside {} received", missed.count, source.received),
                    "messages",
                );
            }
        }
        if !any {
            return RuleOutcome::Ok;
        }
        if let Some(sign) = view.cluster.sign(|sign| *sign == LogSign::EventGap) {
            found = found.evidence(
                "Gaps that the router noticed itself, by its log, since we listen",
                sign.count,
                "lines",
            );
        }
        found = each(found, view, &workers, |found, worker| {
            let rise = view.history.rise(view.cluster, worker, view.now, WINDOW_MS);
            let label = format!("Events missing, {}, by their numbers, last 60 s", name(view, worker));
            let heard = rise.store_events + rise.remove_events;
            found.evidence(label, format!("{} beside {heard} received", rise.missed), "events")
        });
        RuleOutcome::Found(
            found
                .fix(
                    "NATS: look for \"Slow Consumer\" in the server's log; give slow readers more time",
                    "write_deadline",
                    "10s",
                )
                .fix("0.9: let routers ask workers for what they missed", "--enable-local-indexer", "")
                .fix("1.x: routers recover by themselves; watch that this passes", "", ""),
        )
    }
}
