//! Routers that receive nothing, find nothing, or start anew.

use super::{Stage, evidence};
use radixscope_model::record::{
    CheckStatus, Counter, Gauge, Histogram, HistogramKind, LogSignal, ProcessRole, Record, RoutingMode,
    Severity,
};

/// A frontend of 1.x that applies none of the events that arrive here.
pub(super) fn deaf() -> Stage {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    for n in 0..90 {
        stage.store(worker, None, n * 100..n * 100 + 5);
        let counters = [(Counter::StoredOk, 0.0), (Counter::RequestsOk, n as f64)];
        let (bounds, counts) = (vec![0.05], vec![n, 0]);
        let rates = Histogram { kind: HistogramKind::HitRate, bounds, counts, sum: 0.0 };
        stage.scrape(ProcessRole::Frontend, &counters, &[], vec![rates]);
        stage.pass(1);
    }
    stage
}

/// A frontend of 0.9 that serves requests and publishes no choice.
pub(super) fn guesses() -> Stage {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    for n in 0..120 {
        stage.store(worker, None, n * 100..n * 100 + 5);
        stage.scrape(ProcessRole::Frontend, &[(Counter::RequestsOk, n as f64)], &[], Vec::new());
        stage.pass(1);
    }
    stage
}

/// A frontend of 1.6 whose index holds its own guesses alone.
pub(super) fn guesses_of_1_6() -> Stage {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    for n in 0..90 {
        stage.store(worker, None, n * 100..n * 100 + 5);
        let counters = [(Counter::StoredOk, n as f64), (Counter::SelectedPrefixTokens, 0.0)];
        stage.scrape(ProcessRole::Frontend, &counters, &[], Vec::new());
        stage.pass(1);
    }
    stage
}

/// A frontend that routes by turns, as its log tells.
pub(super) fn by_turns() -> Stage {
    let mut stage = Stage::new();
    let workers = [stage.worker(7), stage.worker(8)];
    for n in 0..40 {
        let worker = workers[n as usize % 2];
        stage.store(worker, None, [1, 2, 3].into_iter().chain(n * 100..n * 100 + 5));
        stage.choose_by(RoutingMode::RoundRobin, worker);
        stage.pass(1);
    }
    stage
}

/// A frontend behind an endpoint picker: every request names its worker.
pub(super) fn direct() -> Stage {
    let mut stage = Stage::new();
    let workers = [stage.worker(7), stage.worker(8)];
    for n in 0..40 {
        let worker = workers[n as usize % 2];
        stage.store(worker, None, [1, 2, 3].into_iter().chain(n * 100..n * 100 + 5));
        stage.choose_by(RoutingMode::Direct, worker);
        stage.pass(1);
    }
    stage
}

/// The same by its metrics alone.
pub(super) fn not_by_kv() -> Stage {
    let mut stage = Stage::new();
    stage.worker(7);
    for n in 0..20 {
        let rates =
            Histogram { kind: HistogramKind::HitRate, bounds: vec![0.5], counts: vec![0, 0], sum: 0.0 };
        stage.scrape(ProcessRole::Frontend, &[(Counter::RoutedRequests, f64::from(n))], &[], vec![rates]);
        stage.pass(1);
    }
    stage
}

/// Prompts that have nothing in common.
pub(super) fn nothing_shared() -> Stage {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    for n in 0..60 {
        stage.store(worker, None, n * 100..n * 100 + 20);
        stage.decide(worker, 20, 0);
        stage.pass(1);
    }
    stage
}

/// A router that starts anew among warm workers; `found_after` blocks of 20 does it find from then on.
pub(super) fn restart(found_after: u64) -> Stage {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    stage.log_signal(LogSignal::RouterStarted, 1);
    for n in 0..80 {
        stage.store(worker, None, n * 100..n * 100 + 5);
        stage.decide(worker, 20, if n < 40 { 15 } else { found_after });
        if n == 40 {
            stage.log_signal(LogSignal::RouterStarted, 1);
        }
        stage.pass(1);
    }
    stage
}

#[test]
fn a_router_that_applies_no_event_is_critical() {
    let stage = deaf();
    assert_eq!(stage.grave(), ["router_receives_no_events"], "and explains the overlap of 0");
    let finding = stage.found("router_receives_no_events");
    assert_eq!(finding.severity, Severity::Critical);
    assert!(evidence(finding, "Mean hit rate").starts_with("0.00 over "));
}

#[test]
fn a_router_that_reports_it_receives_no_events_of_some_workers_is_believed() {
    let mut stage = Stage::new();
    stage.worker(7);
    for _ in 0..20 {
        stage.scrape(ProcessRole::Frontend, &[], &[(Gauge::EventSourceMismatchWorkers, 1.0)], Vec::new());
        stage.pass(1);
    }
    assert_eq!(evidence(stage.found("router_receives_no_events"), "Workers without"), "1 of 1 (100 %)");
}

#[test]
fn an_idle_router_is_not_deaf() {
    let mut stage = Stage::new();
    stage.worker(7);
    for _ in 0..120 {
        stage.scrape(ProcessRole::Frontend, &[(Counter::StoredOk, 0.0)], &[], Vec::new());
        stage.pass(1);
    }
    assert!(stage.codes().is_empty(), "{:?}", stage.codes());
}

#[test]
fn a_router_of_0_9_that_publishes_nothing_is_a_finding() {
    assert_eq!(guesses().found("approximate_mode").severity, Severity::Info);
    let mut received = guesses();
    let worker = radixscope_model::id::WorkerIx(0);
    for _ in 0..40 {
        received.decide(worker, 20, 10);
        received.pass(1);
    }
    assert!(received.finding("approximate_mode").is_none());
}

#[test]
fn a_router_of_1_6_that_goes_by_its_own_guesses_is_never_well() {
    let stage = guesses_of_1_6();
    assert_eq!(stage.codes(), ["approximate_mode"]);
    assert_eq!(stage.status("router_receives_no_events"), (CheckStatus::Explained, "approximate_mode"));
}

#[test]
fn whether_an_old_router_of_1_x_guesses_is_not_known_without_its_log() {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    for n in 0..90 {
        stage.store(worker, None, n * 100..n * 100 + 5);
        stage.scrape(ProcessRole::Frontend, &[(Counter::StoredOk, (n / 4) as f64)], &[], Vec::new());
        stage.pass(1);
    }
    assert_eq!(stage.status("router_receives_no_events"), (CheckStatus::NoData, ""));
    stage.log_signal(LogSignal::KvEventsOff, 1);
    stage.pass(30);
    assert_eq!(stage.status("router_receives_no_events"), (CheckStatus::Explained, "approximate_mode"));
}

#[test]
fn a_router_that_predicts_on_route_is_well_with_a_note() {
    let mut stage = Stage::new();
    stage.worker(7);
    stage.log_signal(LogSignal::PredictsOnRoute { ttl_ms: Some(5_000) }, 1);
    stage.pass(5);
    let status = stage.cluster.checked().iter().find(|rule| rule.code == "approximate_mode").unwrap();
    assert_eq!(status.status, CheckStatus::Ok);
    assert!(status.missing.contains("for 5 s (--router-predicted-ttl-secs)"), "{}", status.missing);
}

#[test]
fn a_frontend_that_routes_by_turns_is_found_by_its_log_or_its_metrics() {
    let stage = by_turns();
    assert_eq!(stage.grave(), ["not_kv_routing"], "prompts share prefixes");
    let finding = stage.found("not_kv_routing");
    assert_eq!(finding.title, "Requests are not routed by KV cache but by round-robin");
    assert_eq!(evidence(finding, "Decisions by round-robin"), "40");
    assert_eq!(stage.status("zero_overlap"), (CheckStatus::Explained, "not_kv_routing"));
    let stage = not_by_kv();
    let finding = stage.found("not_kv_routing");
    assert!(finding.title.ends_with("the mode is unknown"), "{}", finding.title);
    assert_eq!(
        (finding.severity, evidence(finding, "Requests routed")),
        (Severity::Info, "15"),
        "as last renewed"
    );
}

#[test]
fn a_frontend_in_direct_mode_is_no_fault_and_who_routes_is_named() {
    let stage = direct();
    assert!(stage.grave().is_empty(), "{:?}", stage.grave());
    let finding = stage.found("not_kv_routing");
    assert_eq!(finding.severity, Severity::Info);
    assert!(
        finding.title.contains("before the frontend") && !finding.title.contains("not routed"),
        "{}",
        finding.title
    );
    assert!(
        finding.explanation.contains("endpoint picker (EPP)") && finding.explanation.contains("dynamo_epp_*")
    );
    assert!(finding.fix.iter().all(|fix| fix.value != "kv"), "{:?}", finding.fix);
    assert!(finding.fix.iter().any(|fix| fix.value.contains("9090")), "{:?}", finding.fix);
}

#[test]
fn prompts_without_common_beginnings_are_a_fact_and_no_fault() {
    let stage = nothing_shared();
    assert_eq!(stage.codes(), ["zero_overlap"]);
    assert_eq!(stage.found("zero_overlap").severity, Severity::Info);
}

#[test]
fn hits_reported_by_engines_make_an_overlap_of_0_a_fault() {
    let mut stage = nothing_shared();
    let worker = radixscope_model::id::WorkerIx(0);
    for n in 0..20u32 {
        stage.scrape(
            ProcessRole::Worker,
            &[(Counter::EnginePrefixHits, 160.0 * f64::from(n))],
            &[],
            Vec::new(),
        );
        stage.decide(worker, 20, 0);
        stage.pass(1);
    }
    assert_eq!(stage.found("zero_overlap").severity, Severity::Warning);
}

#[test]
fn a_restart_is_noted_and_a_tree_that_was_recovered_is_no_fault() {
    let stage = restart(15);
    assert_eq!(stage.codes(), ["router_restarted"]);
    assert_eq!(stage.found("router_restarted").severity, Severity::Info);
}

#[test]
fn a_tree_that_was_not_recovered_is_reported() {
    let stage = restart(0);
    assert_eq!(stage.grave(), ["cold_tree"]);
    let finding = stage.found("cold_tree");
    assert_eq!(evidence(finding, "Overlap before the restart"), "600 of 800 (75 %)");
}

#[test]
fn routers_that_all_start_at_the_beginning_did_not_restart() {
    let mut stage = Stage::new();
    stage.worker(7);
    stage.log_signal(LogSignal::RouterStarted, 3);
    stage.pass(20);
    assert!(stage.codes().is_empty());
}

#[test]
fn a_new_router_beside_a_living_one_is_no_restart_but_instead_of_one_it_is() {
    let load = |stage: &mut Stage, router| {
        let (worker, decode_blocks, prefill_tokens) = (radixscope_model::id::WorkerIx(0), Some(1), None);
        let router = Some(router);
        stage.record(Record::RouterLoad { worker, router, decode_blocks, prefill_tokens });
    };
    for old_goes_on in [true, false] {
        let mut stage = Stage::new();
        stage.worker(7);
        for n in 0..60 {
            if old_goes_on || n < 30 {
                load(&mut stage, 1);
            }
            if n >= 30 {
                load(&mut stage, 2);
            }
            stage.pass(1);
        }
        assert_eq!(stage.finding("router_restarted").is_none(), old_goes_on);
    }
}
