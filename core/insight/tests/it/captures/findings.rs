//! What the checks say of recorded traffic: the fault that was recorded, in time and by its name, and of healthy
//! traffic nothing, whatever is listened to and from whenever on.

use radixscope_captures::Recording;
use radixscope_model::record::{Finding, Severity};

use crate::captures::watch::{
    ALL, NATS, NATS_AND_FRONTEND, NATS_AND_LOG, NATS_AND_METRICS, Sources, Tape, Watched,
};

/// Silent seconds behind every capture.
const IDLE_S: u64 = 1_000;

fn evidence<'f>(finding: &'f Finding, label: &str) -> &'f str {
    let row = finding.evidence.iter().find(|row| row.label.contains(label));
    row.map_or_else(|| panic!("no {label:?} in {finding:#?}"), |row| &row.value)
}

/// When the first request was made, by the capture's own notes.
fn noted(name: &str, event: &str) -> f64 {
    Recording::fixture(name).timeline().into_iter().find(|note| note.event == event).unwrap().at_s
}

fn assert_well_worded(watched: &Watched) {
    for (_, finding) in &watched.findings {
        let text = &finding.explanation;
        let sentences = text.matches(". ").count() + usize::from(text.ends_with('.'));
        assert_eq!(sentences, 2, "{}: {text}", finding.code);
        assert!(!finding.evidence.is_empty() && !finding.fix.is_empty(), "{finding:#?}");
    }
}

fn assert_silent(watched: &Watched, what: &str) {
    assert_eq!(watched.codes(Severity::Warning), [""; 0], "{what}: {}", watched.summary());
}

fn healthy(name: &str) {
    let tape = Tape::of(name);
    for sources in [NATS, NATS_AND_LOG, NATS_AND_METRICS, ALL] {
        let watched = tape.play(sources, 0.0, IDLE_S);
        assert_silent(&watched, &format!("{name}, {sources:?}"));
        assert_well_worded(&watched);
        let late = tape.play(sources, tape.middle(), IDLE_S);
        assert_eq!(
            late.codes(Severity::Warning),
            ["tree_partial"],
            "{name}, {sources:?}: {}",
            late.summary()
        );
        assert_well_worded(&late);
    }
}

#[test]
fn healthy_traffic_of_0_9_1_raises_nothing() {
    healthy("0.9.1-healthy");
}

#[test]
fn healthy_traffic_of_the_relay_path_raises_nothing() {
    healthy("0.9.1-healthy-vllm");
}

#[test]
fn healthy_traffic_over_plain_nats_raises_nothing() {
    healthy("0.9.1-localindexer");
}

#[test]
fn healthy_traffic_of_0_9_1_with_a_json_log_raises_nothing() {
    healthy("0.9.1-log-jsonl-info");
}

#[test]
fn healthy_traffic_of_1_6_1_raises_nothing() {
    healthy("1.6.1-healthy");
}

#[test]
fn healthy_traffic_of_1_6_1_with_a_debug_log_raises_nothing() {
    healthy("1.6.1-log-jsonl-debug");
}

macro_rules! recordings {
    ($kind:ident: $($test:ident $capture:literal)*) => {$(
        #[test]
        fn $test() {
            $kind($capture);
        }
    )*};
}

recordings! { healthy:
    healthy_traffic_of_0_8_1_raises_nothing "0.8.1.post3-healthy"
    healthy_traffic_of_1_0_2_raises_nothing "1.0.2-healthy"
    healthy_traffic_of_1_1_1_raises_nothing "1.1.1-healthy"
    healthy_traffic_of_1_2_1_raises_nothing "1.2.1-healthy"
    healthy_traffic_of_1_3_1_raises_nothing "1.3.1-healthy"
    healthy_traffic_of_1_4_2_raises_nothing "1.4.2-healthy"
    healthy_traffic_of_1_5_1_raises_nothing "1.5.1-healthy"
    healthy_traffic_of_1_7_raises_nothing "1.7.0.dev20261026-healthy"
    two_synced_routers_of_1_4_2_raise_nothing "1.4.2-replicas"
    two_synced_routers_of_1_7_raise_nothing "1.7.0.dev20261026-replicas"
}

#[test]
fn a_late_start_is_reported() {
    let tape = Tape::of("1.6.1-healthy");
    assert!(tape.play(NATS, tape.middle(), 10).holds("tree_partial"));
    assert!(!tape.play(NATS, 0.0, 10).holds("tree_partial"));
}

/// The mismatch is found in time, with the right kind and the reported sizes.
fn mismatch(name: &str) {
    let tape = Tape::of(name);
    let begin = noted(name, "traffic_start");
    for sources in [NATS, NATS_AND_LOG, NATS_AND_METRICS, ALL] {
        let watched = tape.play(sources, 0.0, 60);
        let (t, _) = watched.first("block_size_mismatch").unwrap_or_else(|| panic!("{name}, {sources:?}"));
        assert!(t - begin <= 30.0, "{name}, {sources:?}: after {} s", t - begin);
        let in_time =
            watched.findings.iter().rfind(|(t, f)| f.code == "block_size_mismatch" && t - begin <= 30.0);
        let (_, finding) = in_time.unwrap();
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(finding.workers.len(), 3, "{name}, {sources:?}");
        let form = evidence(finding, "Form of the fault");
        assert!(form.starts_with("3:"), "{name}, {sources:?}: {form}");
        if sources.worker_logs {
            assert_eq!(evidence(finding, "Engine's size"), "32");
            assert_eq!(evidence(finding, "Publisher's size"), "16");
        }
        if sources.metrics {
            assert_eq!(evidence(finding, "Router's size"), "16");
        }
        assert_well_worded(&watched);
        let others = watched.codes(Severity::Warning);
        assert_eq!(others, ["block_size_mismatch"], "{name}, {sources:?}: {}", watched.summary());
    }
}

#[test]
fn the_mismatch_of_0_9_1_is_found_within_30_s() {
    mismatch("0.9.1-mismatch");
}

#[test]
fn the_mismatch_of_1_6_1_is_found_within_30_s() {
    mismatch("1.6.1-mismatch");
}

recordings! { mismatch:
    the_mismatch_of_1_1_1_is_found_within_30_s "1.1.1-mismatch"
    the_mismatch_of_1_3_1_is_found_within_30_s "1.3.1-mismatch"
    the_mismatch_of_1_5_1_is_found_within_30_s "1.5.1-mismatch"
    the_mismatch_of_1_7_is_found_within_30_s "1.7.0.dev20261026-mismatch"
}

#[test]
fn workers_without_events_are_named_one_by_one() {
    let name = "0.9.1-no-events";
    let tape = Tape::of(name);
    for sources in [NATS, NATS_AND_LOG, NATS_AND_METRICS, ALL] {
        let watched = tape.play(sources, 0.0, 20);
        assert_eq!(watched.codes(Severity::Warning), ["no_events"], "{sources:?}: {}", watched.summary());
        assert_well_worded(&watched);
        let last = watched.findings.iter().rfind(|(_, f)| f.code == "no_events");
        let (_, finding) = last.unwrap();
        assert_eq!((finding.severity, finding.workers.len()), (Severity::Critical, 3), "{sources:?}");
        for worker in watched.cluster.workers().iter() {
            assert_eq!(evidence(finding, &format!("KV events of worker {}", worker.id)), "0");
        }
        assert!(finding.fix.iter().any(|fix| fix.setting == "--publish-events-and-metrics"));
    }
}

fn restarted_worker(name: &str, sources: Sources, within_s: f64) {
    let tape = Tape::of(name);
    let killed = noted(name, "kill_worker");
    let watched = tape.play(sources, 0.0, 20);
    let dead = watched
        .cluster
        .workers()
        .iter()
        .position(|w| w.last_sign_ms.is_some_and(|last| (last.0 as f64 / 1_000.0 - killed).abs() < 2.0));
    let dead = dead.expect("a worker whose last sign is at the kill");
    let last_sign = watched.cluster.workers()[dead].last_sign_ms.unwrap().0 as f64 / 1_000.0;
    let (t, finding) = watched.first("worker_gone").unwrap_or_else(|| panic!("{sources:?}"));
    assert!(t - last_sign <= within_s, "{sources:?}: after {} s", t - last_sign);
    assert_eq!(finding.workers.iter().map(|w| w.slot().at()).collect::<Vec<_>>(), [dead], "{sources:?}");
    if sources.frontend_log {
        let ix = radixscope_model::id::WorkerIx(dead as u32);
        assert_eq!(watched.cluster.blocks(ix), Some(0), "{sources:?}: its blocks are gone");
    }
    let mut codes = watched.codes(Severity::Warning);
    // Requests that were on it fail: what clients feel is found too, and names the cause.
    if let Some((_, errors)) = watched.findings.iter().rfind(|(_, found)| found.code == "errors") {
        assert_eq!(errors.cause, "worker_gone", "{sources:?}");
        codes.retain(|code| code != "errors");
    }
    assert_eq!(codes, ["worker_gone"], "{sources:?}: {}", watched.summary());
}

#[test]
fn a_killed_worker_is_named_within_10_s_of_its_last_sign() {
    for sources in [NATS, NATS_AND_LOG, NATS_AND_METRICS, ALL] {
        restarted_worker("0.9.1-worker-restart", sources, 10.0);
    }
}

/// From 1.7 on no list of instances tells of it, but the router's own gauges do; its log only when the lease has ended.
#[test]
fn a_killed_worker_of_1_7_is_named_within_10_s_of_its_last_sign() {
    for (sources, within_s) in
        [(NATS_AND_FRONTEND, 10.0), (NATS_AND_METRICS, 10.0), (NATS_AND_LOG, 25.0), (ALL, 10.0)]
    {
        restarted_worker("1.7.0.dev20261026-restart", sources, within_s);
    }
}

#[test]
fn a_restarted_router_is_noted_and_nothing_is_critical() {
    let tape = Tape::of("1.6.1-router-restart");
    let killed = noted("1.6.1-router-restart", "kill_frontend");
    for sources in [NATS_AND_LOG, NATS_AND_METRICS, ALL] {
        let watched = tape.play(sources, 0.0, 20);
        let (t, finding) = watched.first("router_restarted").unwrap_or_else(|| panic!("{sources:?}"));
        assert!(t > killed && finding.severity == Severity::Info, "{sources:?}: {finding:#?}");
        assert_silent(&watched, &format!("{sources:?}"));
    }
    assert_silent(&tape.play(NATS, 0.0, IDLE_S), "its messages alone");
}
