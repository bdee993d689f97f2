//! Requests fail.

use super::prelude::*;
use crate::check::missing;
use radixscope_model::record::{Counter, Outcome};

/// Fewer requests in the window say nothing of a share.
const MIN_REQUESTS: u64 = 50;
/// Share that is worth a warning.
const WARN_SHARE: f64 = 0.02;
/// Share from which on it is critical.
const CRITICAL_SHARE: f64 = 0.2;

/// Share that no single worker explains.
const MOST_SHARE: f64 = 0.5;
/// A worker that is gone takes its requests with it, and is named by its own finding.
const EXPLAINED_BY: [&str; 2] = ["worker_gone", "ghost_worker"];

struct Ended {
    ok: u64,
    failed: u64,
    source: &'static str,
}

pub(in crate::check) const RULE: Rule = Rule {
    // As long as it takes to learn that a worker is gone.
    hold_ms: 10_000,
    ..Rule::new("errors", "Requests that fail", evaluate)
};

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let Some(ended) = by_frontends(view).or_else(|| by_requests(view)) else {
        return RuleOutcome::no_data(missing::of_frontends(view, "how requests end", ""));
    };
    let all = ended.ok + ended.failed;
    if all < MIN_REQUESTS {
        return RuleOutcome::no_data(format!(
            "{all} requests ended within the last 60 s; a share needs at least {MIN_REQUESTS}"
        ));
    }
    let share = ended.failed as f64 / all as f64;
    if share < WARN_SHARE {
        return RuleOutcome::Ok;
    }
    let severity = if share >= CRITICAL_SHARE { Severity::Critical } else { Severity::Warning };
    let cause = EXPLAINED_BY.into_iter().find(|code| share < MOST_SHARE && view.is_active(code));
    let failed = format!("{} of {} ({:.1} %)", count(ended.failed), count(all), share * 100.0);
    let mut found = Finding::new(
        severity,
        format!("{:.0} % of requests fail", share * 100.0),
        "Clients got an error instead of a response. The logs of the frontend and of the workers below name it.",
    )
    .cause(cause.unwrap_or_default())
    .evidence(format!("Failed requests, {}, last 60 s", ended.source), failed, "requests");
    let failing = by_worker(view);
    for &(worker, count) in &failing {
        let label = format!("Failed on {}, logs and traces, last 60 s", view.name(worker));
        found = found.evidence(label, count, "requests");
    }
    let moved = view.counted(Counter::Migrations, WINDOW_MS).map(|moved| count(moved as u64));
    found
        .evidence_if("Requests moved to another worker, frontends' metrics, last 60 s", moved, "requests")
        .workers(failing.iter().map(|&(worker, _)| worker))
        .fixes("errors")
        .panel(PanelRef::Decisions)
        .into()
}

fn by_frontends(view: &View<'_>) -> Option<Ended> {
    // A counter of failures appears with the first one.
    let ok = view.counted(Counter::RequestsOk, WINDOW_MS);
    let failed = view.counted(Counter::RequestsFailed, WINDOW_MS);
    if ok.is_none() && failed.is_none() {
        return None;
    }
    let number = |n: Option<f64>| n.unwrap_or(0.0) as u64;
    Some(Ended { ok: number(ok), failed: number(failed), source: "frontends' metrics" })
}

fn by_requests(view: &View<'_>) -> Option<Ended> {
    let mut ended = Ended { ok: 0, failed: 0, source: "logs and traces" };
    for outcome in view.decisions(WINDOW_MS).filter_map(|decided| decided.progress.outcome) {
        match outcome {
            Outcome::Failed => ended.failed += 1,
            Outcome::Success | Outcome::Cancelled => ended.ok += 1,
        }
    }
    (ended.ok + ended.failed > 0).then_some(ended)
}

fn by_worker(view: &View<'_>) -> Vec<(WorkerIx, u64)> {
    let mut failing: Vec<(WorkerIx, u64)> = Vec::new();
    for decided in view.decisions(WINDOW_MS).filter(|d| d.progress.outcome == Some(Outcome::Failed)) {
        let worker = decided.decision.worker;
        match failing.iter_mut().find(|(known, _)| *known == worker) {
            Some((_, count)) => *count += 1,
            None => failing.push((worker, 1)),
        }
    }
    failing.sort_by_key(|&(worker, count)| (std::cmp::Reverse(count), worker));
    failing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::stage::{Process, Stage};
    use radixscope_model::record::Progress;

    fn after(ok: f64, failed: f64) -> Stage {
        let mut stage = Stage::new(2);
        let frontend = Process::frontend().counter(Counter::RequestsOk, 1_000.0);
        stage.scrape(&frontend.clone().counter(Counter::RequestsFailed, 7.0));
        stage.pass(5_000);
        let frontend = frontend.counter(Counter::RequestsOk, 1_000.0 + ok);
        stage.scrape(&frontend.counter(Counter::RequestsFailed, 7.0 + failed));
        stage
    }

    #[test]
    fn failures_are_a_warning_and_many_of_them_critical() {
        let finding = after(98.0, 2.0).found(&RULE).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.evidence[0].value, "2 of 100 (2.0 %)");
        assert_eq!(after(80.0, 20.0).found(&RULE).unwrap().severity, Severity::Critical);
    }

    #[test]
    fn a_worker_that_has_left_causes_some_failures_which_stay_as_bad_as_they_are() {
        for (ok, failed, severity, cause) in [
            (95.0, 5.0, Severity::Warning, "worker_gone"),
            (70.0, 30.0, Severity::Critical, "worker_gone"),
            (45.0, 55.0, Severity::Critical, ""),
        ] {
            let mut stage = after(ok, failed);
            stage.holds("worker_gone");
            let finding = stage.found(&RULE).unwrap();
            assert_eq!((finding.severity, &*finding.cause), (severity, cause), "{failed} fail");
        }
    }

    #[test]
    fn few_failures_are_none() {
        assert!(after(99.0, 1.0).is_ok(&RULE));
        assert!(after(100.0, 0.0).is_ok(&RULE));
    }

    #[test]
    fn few_requests_or_no_source_leave_it_unknown() {
        assert!(after(40.0, 9.0).is_unknown(&RULE));
        assert!(Stage::new(2).is_unknown(&RULE));
    }

    #[test]
    fn requests_one_by_one_name_the_worker() {
        let mut stage = Stage::new(2);
        for n in 0..60 {
            let id = stage.decide(u16::from(n < 6), 10, 0);
            let outcome = Some(if n < 6 { Outcome::Failed } else { Outcome::Success });
            stage.progress(id, Progress { outcome, ..Progress::default() });
        }
        let finding = stage.found(&RULE).unwrap();
        assert_eq!(finding.workers, [WorkerIx(1)]);
    }
}
