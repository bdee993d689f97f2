//! In-flight imbalance: one worker is above what it can run at once while another one has room.

use super::prelude::*;
use super::queueing::WARMING_UP;
use crate::check::causes::{Cause, code};
use crate::check::latency::Latency;
use crate::check::spikes::{MISSING, harmful};
use crate::latency::Quantity;
use std::collections::BTreeSet;

/// How far back, seconds.
const WINDOW_S: u64 = 30;

pub(in crate::check) const RULE: Rule = Rule {
    clear_ms: 60_000,
    ..Rule::new("in_flight_imbalance", "In-flight imbalance between workers", evaluate)
};

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let Some(mut spikes) = harmful(view, WINDOW_S) else { return RuleOutcome::no_data(MISSING) };
    // What makes it last, a worker that gets nearly nothing, is known by decisions since we listen.
    if view.listening_ms().is_some_and(|ms| ms < WINDOW_S * 1_000) {
        return RuleOutcome::no_data(format!("{WINDOW_S} s of listening are needed"));
    }
    // All new conversations go where the first prefixes are.
    let cold: Vec<WorkerIx> =
        view.pools().into_iter().filter(|pool| view.is_any_warming_up(pool)).flatten().collect();
    spikes.retain(|spike| !cold.contains(&spike.worker));
    if spikes.is_empty() && !cold.is_empty() {
        return RuleOutcome::no_data(WARMING_UP);
    }
    let Some(worst) = spikes.iter().max_by_key(|h| h.most - h.least) else { return RuleOutcome::Ok };
    let peak = worst.most;
    // What a lasting imbalance does is not momentary.
    let cause = Cause::of(view).filter(|cause| !matches!(cause, Cause::Memory | Cause::Churn));
    let mut found = Finding::new(
        Severity::Warning,
        format!("{peak} requests on one worker, {} on another", worst.least),
        format!(
            "Conversations arrive in bursts at the workers where their prefixes are cached, so requests queue on one worker while another one has room. {}",
            cause.map_or("Averages hide it, because the spike lasts seconds and moves.", Cause::to_text)
        ),
    )
    .cause(code(cause))
    .evidence(
        format!("Most in flight on {}, last {WINDOW_S} s, second by second", view.name(worst.worker)),
        peak,
        "requests",
    )
    .evidence("Fewest on another worker in that second", worst.least, "requests")
    .evidence(format!("Seconds with this imbalance, of the last {WINDOW_S}"), worst.seconds, "s")
    .batch_limit(view);
    if let Some(ttft) = Latency::of(view, Quantity::Ttft) {
        let label = format!("TTFT p95, {}, last 60 s, {} requests", ttft.source.to_text(), ttft.samples);
        found = found.evidence(label, ttft.to_text(&ttft.p95), "");
    }
    found
        .workers(spikes.iter().map(|harmful| harmful.worker).collect::<BTreeSet<_>>())
        .spread_out(view)
        .fixes("any/less_load")
        .panel(PanelRef::Latency)
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::stage::{Process, Stage};
    use radixscope_model::id::WorkerIx;
    use radixscope_model::record::Gauge;

    fn for_seconds(stage: &mut Stage, seconds: u64, requests: &[u32]) {
        for _ in 0..seconds {
            stage.in_flight(requests);
            stage.pass(1_000);
        }
    }

    /// So many workers, received for long enough.
    fn stage_of(workers: u16) -> Stage {
        let mut stage = Stage::new(workers);
        stage.pass(WINDOW_S * 1_000);
        stage
    }

    #[test]
    fn a_worker_above_its_batch_limit_while_another_has_room_is_found() {
        let mut stage = stage_of(3);
        stage.scrape(&Process::frontend().batch_limit(64));
        for_seconds(&mut stage, 5, &[72, 44, 60]);
        let finding = stage.found(&RULE).unwrap();
        assert_eq!(finding.workers, [WorkerIx(0)]);
        assert_eq!((&*finding.evidence[0].value, &*finding.evidence[1].value), ("72", "44"));
    }

    #[test]
    fn a_spread_below_the_limit_or_without_room_elsewhere_is_well() {
        let mut stage = stage_of(3);
        stage.scrape(&Process::frontend().batch_limit(64));
        for_seconds(&mut stage, 10, &[62, 38, 40]);
        assert!(stage.is_ok(&RULE), "no request waits");
        for_seconds(&mut stage, 10, &[75, 52, 60]);
        assert!(stage.is_ok(&RULE), "no worker has a free slot");
        for_seconds(&mut stage, 2, &[72, 44, 60]);
        for_seconds(&mut stage, 5, &[60, 55, 60]);
        assert!(stage.is_ok(&RULE), "too short");
    }

    #[test]
    fn cold_caches_make_it_unknown() {
        let mut stage = stage_of(3);
        stage.scrape(&Process::frontend().batch_limit(64));
        stage.starts_to_publish(2);
        for_seconds(&mut stage, 5, &[72, 44, 60]);
        assert!(stage.is_unknown(&RULE), "all go where the first prefixes are");
    }

    #[test]
    fn without_a_known_limit_a_queue_has_to_show() {
        let mut stage = stage_of(3);
        for_seconds(&mut stage, 5, &[72, 44, 60]);
        assert!(stage.is_ok(&RULE));
        stage.scrape(&Process::of_worker(0).gauge(Gauge::EngineWaitingRequests, 3.0));
        assert!(stage.found(&RULE).is_some());
    }

    #[test]
    fn it_is_unknown_without_requests_in_flight() {
        assert!(stage_of(3).is_unknown(&RULE));
    }

    #[test]
    fn it_is_unknown_for_the_first_30_s_of_listening() {
        let mut stage = Stage::new(3);
        stage.scrape(&Process::frontend().batch_limit(64));
        for_seconds(&mut stage, 20, &[72, 44, 60]);
        assert!(stage.is_unknown(&RULE));
        for_seconds(&mut stage, 10, &[72, 44, 60]);
        assert!(stage.found(&RULE).is_some());
    }
}
