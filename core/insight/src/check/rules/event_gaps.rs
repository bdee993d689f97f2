//! KV events that were published and did not arrive: a picture with holes, here and perhaps at the router.

use super::prelude::*;
use radixscope_model::record::{LogSignal, MissedCause, Topic};
use radixscope_state::cluster::MissedCount;

/// Workers that can be queried for lost events have responded by then.
const RECOVERED_MS: u64 = 2_000;

pub(in crate::check) const RULE: Rule =
    Rule { hold_ms: RECOVERED_MS, ..Rule::new("event_gaps", "Lost KV events", evaluate) };

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let lost = |missed: &&MissedCount| {
        let on_the_way = matches!(missed.cause, MissedCause::EnvelopeGap | MissedCause::EventIdGap);
        on_the_way
            && missed.topic == Topic::KvEvents
            && missed.lost_since(Millis(view.now.0.saturating_sub(WINDOW_MS))) > 0
    };
    let workers: Vec<WorkerIx> =
        view.present().filter(|&worker| view.rise(worker, WINDOW_MS).missed > 0).collect();
    let names = if workers.is_empty() { String::new() } else { format!(": {}", view.names(&workers)) };
    let mut found = Finding::new(
        Severity::Warning,
        format!("KV events were lost{names}"),
        "Sequence numbers of publishers have gaps, so blocks were stored or removed that are not \
         in this tree. The router may have lost the same messages: one that cannot ask the workers for them is wrong \
         until those blocks are removed.",
    )
    .about(PanelRef::Tree, &workers);
    for source in view.cluster.sources() {
        for missed in source.missed.iter().filter(lost) {
            let name = &source.name;
            let is_by_id = missed.cause == MissedCause::EventIdGap;
            let cause = if is_by_id { "event ids" } else { "sequence numbers" };
            let label = format!("KV events missing, by {cause} over {name}, since we listen");
            let at_least = at_least(source.is_at_least(missed));
            let value =
                format!("{at_least}{} beside {} received", count(missed.lost()), count(source.received));
            found = found.evidence(label, value, "messages");
            let got_back = (missed.recovered > 0).then(|| part(missed.recovered, missed.count));
            let label =
                format!("Of those missing over {name}, recovered by queries to workers, since we listen");
            found = found.evidence_if(label, got_back, "messages");
        }
    }
    if found.evidence.is_empty() {
        return RuleOutcome::Ok;
    }
    let found =
        found.log_lines(view, "Gaps found by the router, by its log, since we listen", LogSignal::EventGap);
    let found = found.each(view, &workers, |found, worker, who| {
        let rise = view.rise(worker, WINDOW_MS);
        let label = format!("Events missing, {who}, by event ids, last 60 s");
        let received = rise.store_events + rise.remove_events;
        let at_least = at_least(view.cluster.is_missed_at_least(worker));
        let value = format!("{at_least}{} beside {} received", count(rise.missed), count(received));
        found.evidence(label, value, "events")
    });
    found.fixes("event_gaps").into()
}

/// Prefix of a number that is a lower bound.
const fn at_least(is_lower_bound: bool) -> &'static str {
    if is_lower_bound { "at least " } else { "" }
}
