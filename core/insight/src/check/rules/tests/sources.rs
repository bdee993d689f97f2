//! What this dashboard cannot see, or sees late.

use super::{Stage, evidence};
use radixscope_model::id::SourceIx;
use radixscope_model::record::{Counter, LinkState, ProcessRole, Record, Severity, SourceKind, Topic};

fn traffic(stage: &mut Stage, received: u64, lag_ms: i64) {
    stage.record(Record::Traffic { source: SourceIx(0), received, lag_ms: Some(lag_ms) });
}

/// Messages that come late, second after second.
pub(super) fn behind() -> Stage {
    let mut stage = Stage::new();
    for n in 0..20 {
        traffic(&mut stage, n + 1, 5_000);
        stage.pass(1);
    }
    stage
}

/// A source that cannot be reached.
pub(super) fn down() -> Stage {
    let mut stage = Stage::new();
    traffic(&mut stage, 1, 3);
    let source = stage.source("http://frontend:8000/metrics", SourceKind::Prometheus);
    stage.link(source, LinkState::Connecting);
    stage.pass(15);
    stage
}

/// A NATS on which nothing is published.
pub(super) fn silence() -> Stage {
    let mut stage = Stage::mute();
    stage.pass(35);
    stage
}

#[test]
fn messages_late_for_10_s_are_reported() {
    let stage = behind();
    assert_eq!(stage.grave(), ["behind"]);
    assert_eq!(evidence(stage.found("behind"), "Delay"), "5000");
}

#[test]
fn one_late_message_is_not() {
    let mut stage = Stage::new();
    for n in 0..20 {
        traffic(&mut stage, n + 1, if n == 5 { 30_000 } else { 3 });
        stage.pass(1);
    }
    traffic(&mut stage, 21, 30_000);
    stage.pass(60);
    assert!(stage.codes().is_empty(), "the last one came late, and nothing after it: {:?}", stage.codes());
}

#[test]
fn a_source_that_is_down_is_reported_with_what_it_would_show() {
    let mut stage = down();
    assert_eq!(stage.grave(), ["source_down"]);
    assert!(stage.found("source_down").explanation.contains("latency"));
    stage.link(SourceIx(1), LinkState::Live);
    stage.pass(7);
    assert!(stage.codes().is_empty());
}

#[test]
fn every_kind_of_source_that_is_down_has_its_setting() {
    for (kind, unseen, setting) in [
        (SourceKind::Nats, "KV events", "--nats"),
        (SourceKind::Logs, "logs report", "--logs"),
        (SourceKind::Otlp, "from OpenTelemetry", "--otlp"),
        (SourceKind::ClientResults, "clients measured", "--client-results"),
        (SourceKind::StageLoad, "Requests of radixscope stage fail", "--target"),
        (SourceKind::Prometheus, "latency", "--prometheus"),
        (SourceKind::Discovery, "which workers there are", "--discovery"),
        (SourceKind::Zmq, "KV events", "--zmq-broker"),
        (SourceKind::WorkerTrees, "stored before we listened", "--callback"),
    ] {
        let mut stage = Stage::new();
        traffic(&mut stage, 1, 3);
        let source = stage.source("the source", kind);
        stage.link(source, LinkState::Connecting);
        stage.pass(15);
        let found = stage.found("source_down");
        assert!(found.explanation.contains(unseen), "{kind:?}: {}", found.explanation);
        // Its value is the reader's: there is nothing to copy.
        let names_it = found.fix.iter().any(|fix| fix.text.contains(setting) && fix.setting.is_empty());
        assert!(names_it, "{kind:?}: {:?}", found.fix);
    }
}

/// A connection that broke, on a line that tells no numbers.
pub(super) fn gap() -> Stage {
    let mut stage = Stage::new();
    let (since_ms, until_ms) = (stage.now(), stage.now());
    stage.record(Record::Gaps { source: SourceIx(0), topic: Topic::KvEvents, count: 1, since_ms, until_ms });
    stage.pass(2);
    stage
}

#[test]
fn a_gap_of_unknown_size_is_reported_for_a_minute_and_never_as_a_number() {
    let mut stage = gap();
    assert_eq!(stage.grave(), ["own_losses"]);
    assert_eq!(evidence(stage.found("own_losses"), "connection lost"), "unknown number, 1 gap");
    stage.pass(100);
    assert!(stage.codes().is_empty());
}

#[test]
fn denied_subjects_are_reported() {
    let mut stage = Stage::new();
    stage.link(SourceIx(0), LinkState::Partial);
    stage.pass(15);
    assert_eq!(stage.grave(), ["source_down"]);
    assert!(stage.found("source_down").title.starts_with("Cannot read all of"));
}

#[test]
fn publishers_that_are_not_reached_are_not_denied() {
    let mut stage = Stage::new();
    stage.record(Record::Source {
        source: SourceIx(1),
        name: "ZeroMQ publishers".into(),
        kind: SourceKind::Zmq,
    });
    stage.link(SourceIx(1), LinkState::Partial);
    stage.pass(15);
    let found = stage.found("source_down");
    assert!(found.title.starts_with("Cannot read all of ZeroMQ"), "{}", found.title);
    assert!(found.explanation.contains("where we are not connected"), "{}", found.explanation);
    assert!(found.fix.iter().any(|fix| fix.text.contains("ports")), "{:?}", found.fix);
}

#[test]
fn a_silent_nats_is_worth_knowing_and_a_fault_where_requests_are_served() {
    let mut stage = silence();
    assert_eq!(stage.codes(), ["nothing_received"]);
    assert_eq!(stage.found("nothing_received").severity, Severity::Info);
    for n in 0..10u32 {
        stage.scrape(ProcessRole::Frontend, &[(Counter::RequestsOk, f64::from(n))], &[], Vec::new());
        stage.pass(1);
    }
    assert_eq!(stage.found("nothing_received").severity, Severity::Warning);
    traffic(&mut stage, 1, 3);
    stage.pass(2);
    assert!(stage.finding("nothing_received").is_none());
}
