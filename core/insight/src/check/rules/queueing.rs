//! Requests are queued: in the router, in an engine, or above what a worker runs at once.

use super::prelude::*;
use crate::check::causes::{Cause, code};
use crate::check::missing;
use radixscope_model::record::{Gauge, ProcessRole};

/// Fewer are no queue: one or two wait for the next step now and then, and come and go.
const MIN_WAITING: u64 = 3;

/// Shown while a worker's cache is cold.
pub(super) const WARMING_UP: &str =
    "A worker started less than 90 s ago: its cache is cold, and requests wait for it";

pub(in crate::check) const RULE: Rule = Rule {
    // A queue is what does not go away.
    hold_ms: 20_000,
    ..Rule::new("queueing", "Queued requests", evaluate)
};

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let Some((most, source)) = view.waiting() else {
        let what = "the number of queued requests";
        return RuleOutcome::no_data(missing::of_frontends(view, what, "from 1.1 on; else engines' metrics"));
    };
    if most < MIN_WAITING {
        return RuleOutcome::Ok;
    }
    if view.is_warming_up() {
        return RuleOutcome::no_data(WARMING_UP);
    }
    let cause = Cause::of(view);
    let mut found = Finding::new(
        Severity::Warning,
        format!("{} requests queued", count(most)),
        format!(
            "They were accepted, but are not computed yet, so their TTFT grows by the wait. {}",
            cause.map_or("A lasting queue means more work than the workers finish, or more than their batch limit allows.", Cause::to_text)
        ),
    )
    .cause(code(cause))
    .evidence(format!("Queued now, {source}"), count(most), "requests")
    .evidence_if(
        "Prompt tokens queued in the router, frontends' metrics, now",
        view.gauge(ProcessRole::Frontend, Gauge::RouterQueuedTokens).map(|tokens| count(tokens as u64)),
        "tokens",
    );
    let waits = |ix| view.process_of(ix)?.gauge(Gauge::EngineWaitingRequests).filter(|&n| n > 0.0);
    let mut workers: Vec<_> = view.present().filter_map(|ix| Some((ix, waits(ix)?))).collect();
    workers.sort_by(|a, b| b.1.total_cmp(&a.1));
    for &(worker, n) in workers.iter().take(4) {
        found = found.evidence(format!("Queued on {}, its metrics, now", view.name(worker)), n, "requests");
    }
    found
        .batch_limit(view)
        .workers(workers.iter().map(|&(worker, _)| worker))
        .larger_batch(view)
        .fixes("any/less_load")
        .panel(PanelRef::Latency)
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::stage::{Process, Stage};

    #[test]
    fn requests_that_wait_in_the_router_or_an_engine_are_found() {
        let mut stage = Stage::new(2);
        stage.scrape(&Process::frontend().gauge(Gauge::RouterQueuedRequests, 3.0));
        assert_eq!(stage.found(&RULE).unwrap().evidence[0].value, "3");
        let mut stage = Stage::new(2);
        stage.scrape(&Process::of_worker(1).gauge(Gauge::EngineWaitingRequests, 5.0));
        let finding = stage.found(&RULE).unwrap();
        assert_eq!(finding.workers, [radixscope_model::id::WorkerIx(1)]);
    }

    #[test]
    fn requests_above_the_batch_limit_wait() {
        let mut stage = Stage::new(2);
        stage.scrape(&Process::frontend().batch_limit(64));
        stage.in_flight(&[66, 40]);
        assert!(stage.is_ok(&RULE));
        stage.in_flight(&[71, 40]);
        assert_eq!(stage.found(&RULE).unwrap().evidence[0].value, "7");
    }

    #[test]
    fn an_empty_queue_is_well_and_no_source_is_unknown() {
        let mut stage = Stage::new(2);
        assert!(stage.is_unknown(&RULE));
        stage.scrape(&Process::frontend().gauge(Gauge::RouterQueuedRequests, 0.0));
        assert!(stage.is_ok(&RULE));
    }

    #[test]
    fn an_old_scrape_says_nothing_of_now() {
        let mut stage = Stage::new(2);
        stage.scrape(&Process::frontend().gauge(Gauge::RouterQueuedRequests, 3.0));
        stage.pass(40_000);
        assert!(stage.is_unknown(&RULE));
    }
}
