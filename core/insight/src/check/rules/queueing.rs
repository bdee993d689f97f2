//! Requests are queued: in the router, in an engine, or above what a worker runs at once.

use crate::check::causes::{Cause, code};
use crate::check::engine::EngineSettings as _;
use crate::check::peers::{batch_limit, gauge, is_warming_up, name, process_of, waiting};
use crate::check::{Finding, Rule, RuleOutcome, View, missing};
use radixscope_model::number_format;
use radixscope_model::record::{Gauge, ProcessRole, Severity};

/// Fewer are no queue: one or two wait for the next step now and then, and come and go.
const MIN_WAITING: u64 = 3;

/// Said while a worker's cache is cold.
pub(super) const WARMING_UP: &str =
    "A worker started less than 90 s ago: its cache is cold, and requests wait for it";

/// See the module.
pub(in crate::check) struct Queueing;

impl Rule for Queueing {
    fn code(&self) -> &'static str {
        "queueing"
    }

    fn subject(&self) -> &'static str {
        "Requests that wait for a worker or in an engine"
    }

    /// A queue is what does not go away.
    fn hold_ms(&self) -> u64 {
        20_000
    }

    fn look(&self, view: &View<'_>) -> RuleOutcome {
        let Some((most, source)) = waiting(view) else {
            let what = "the number of queued requests";
            return RuleOutcome::Unknown(
                missing::of_frontends(view, what, "from 1.1 on; else engines' metrics").into(),
            );
        };
        if most < MIN_WAITING {
            return RuleOutcome::Ok;
        }
        if is_warming_up(view) {
            return RuleOutcome::Unknown(WARMING_UP.into());
        }
        let cause = Cause::of(view);
        let mut found = Finding::new(
            Severity::Warning,
            format!("{} requests queued", number_format::count(most)),
            format!(
                "They were taken, but no worker computes them, so their time to first token grows by the wait. {}",
                cause.map_or("A queue that stays means more work than the workers finish, or more than they may run.", Cause::words)
            ),
        )
        .cause(code(cause))
        .evidence(format!("Waiting now, {source}"), number_format::count(most), "requests");
        if let Some(tokens) = gauge(view, ProcessRole::Frontend, Gauge::RouterQueuedTokens) {
            let label = "Prompt tokens that wait in the router, frontends' metrics, now";
            found = found.evidence(label, number_format::count(tokens as u64), "tokens");
        }
        let waits = |ix| process_of(view, ix)?.gauge(Gauge::EngineWaitingRequests).filter(|&n| n > 0.0);
        let mut workers: Vec<_> = view.present().filter_map(|ix| Some((ix, waits(ix)?))).collect();
        workers.sort_by(|a, b| b.1.total_cmp(&a.1));
        for &(worker, n) in workers.iter().take(4) {
            found =
                found.evidence(format!("Waiting on {}, its metrics, now", name(view, worker)), n, "requests");
        }
        if let Some(limit) = batch_limit(view) {
            found = found.evidence("Batch limit of a worker, frontends' metrics", limit, "requests");
        }
        found
            .workers(workers.iter().map(|&(worker, _)| worker))
            .larger_batch(batch_limit(view).map(|limit| limit.saturating_mul(2)))
            .fix("Add a worker, or send fewer requests at once", "", "")
            .link("view=latency")
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{Process, Stage};

    #[test]
    fn requests_that_wait_in_the_router_or_an_engine_are_found() {
        let mut stage = Stage::new(2);
        stage.scrape(&Process::frontend().gauge(Gauge::RouterQueuedRequests, 3.0));
        assert_eq!(stage.found(&Queueing).unwrap().evidence[0].value, "3");
        let mut stage = Stage::new(2);
        stage.scrape(&Process::of_worker(1).gauge(Gauge::EngineWaitingRequests, 5.0));
        let finding = stage.found(&Queueing).unwrap();
        assert_eq!(finding.workers, [radixscope_model::id::WorkerIx(1)]);
    }

    #[test]
    fn requests_above_the_batch_limit_wait() {
        let mut stage = Stage::new(2);
        stage.scrape(&Process::frontend().batch_limit(64));
        stage.in_flight(&[66, 40]);
        assert!(stage.is_ok(&Queueing));
        stage.in_flight(&[71, 40]);
        assert_eq!(stage.found(&Queueing).unwrap().evidence[0].value, "7");
    }

    #[test]
    fn an_empty_queue_is_well_and_no_source_is_unknown() {
        let mut stage = Stage::new(2);
        assert!(stage.is_unknown(&Queueing));
        stage.scrape(&Process::frontend().gauge(Gauge::RouterQueuedRequests, 0.0));
        assert!(stage.is_ok(&Queueing));
    }

    #[test]
    fn an_old_scrape_says_nothing_of_now() {
        let mut stage = Stage::new(2);
        stage.scrape(&Process::frontend().gauge(Gauge::RouterQueuedRequests, 3.0));
        stage.pass(40_000);
        assert!(stage.is_unknown(&Queueing));
    }
}
