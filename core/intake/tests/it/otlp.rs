//! A request of real Dynamo by its trace, by its span, and by both, in whatever order and however often they come.

use std::sync::Arc;

use radixscope_dynamo::otlp::{self, Signal};
use radixscope_dynamo::subject;
use radixscope_intake::{Intake, Payload, Received};
use radixscope_model::id::Millis;
use radixscope_model::record::{DecisionSource, Outcome, SourceKind};
use radixscope_state::cluster::{Cluster, DecisionEntry};

const TRACE: &[u8] = include_bytes!("../../../../tests/fixtures/otlp/1.6.1/request-trace.pb");
const SPANS: &[u8] = include_bytes!("../../../../tests/fixtures/otlp/1.6.1/route-span.pb");
/// The request came in, the worker was given it, and it ended.
const RECEIVED: Millis = Millis(1_795_745_996_989);
const STARTED: Millis = Millis(1_795_745_996_995);
const ENDED: Millis = Millis(1_795_745_997_515);

fn trace() -> Payload {
    let export = otlp::read(Signal::Logs, TRACE).unwrap();
    let subject = Arc::new(subject::parse(subject::REQUEST_TRACE).unwrap());
    Payload::Nats { subject, message: export.traces[0].to_vec().into() }
}

fn span() -> Payload {
    let mut export = otlp::read(Signal::Traces, SPANS).unwrap();
    Payload::RouteSpan(Box::new(export.routes.remove(0)))
}

/// The line of the same end, as the frontend's log has it as text.
fn line() -> Payload {
    let line = "2026-11-27T02:19:57.515839Z  INFO http-request:kv_router.route_request: request_span: route request completed \
        request.outcome=\"success\" method=POST uri=/v1/chat/completions version=HTTP/1.1 request_id=h model=\"m\" \
        otel.kind=\"client\" request_id=1a06484d-75fe-450f-8715-fdaba508e0fa dp_rank=0 overlap_blocks=0 phase=Aggregated \
        worker_id=7668682501501432326 request.attempt=0";
    Payload::LogLine { log: "frontend".into(), line: line.into() }
}

fn received(payloads: Vec<Payload>) -> Cluster {
    let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
    let begin = Millis(ENDED.0 + 100);
    let kinds = [SourceKind::Otlp, SourceKind::Logs, SourceKind::RequestTraces];
    let sources = kinds.map(|kind| intake.source(kind.as_str(), kind, begin, &mut cluster).unwrap());
    let mut seen = 0;
    for (n, payload) in payloads.into_iter().enumerate() {
        let source = match &payload {
            Payload::LogLine { .. } => sources[1],
            // The first by OTLP, the next from a file.
            Payload::Nats { .. } => {
                seen += 1;
                sources[if seen > 1 { 2 } else { 0 }]
            }
            _ => sources[0],
        };
        let at_ms = Millis(begin.0 + n as u64 * 1_000);
        intake.handle(&Received { source, at_ms, payload }, &mut cluster);
        intake.flush(at_ms, &mut cluster);
    }
    intake.flush(Millis(begin.0 + 60_000), &mut cluster);
    cluster
}

fn only(cluster: &Cluster) -> &DecisionEntry {
    assert_eq!(cluster.decisions().totals().count, 1);
    cluster.decisions().newest_first().next().expect("a decision")
}

/// What must not depend on the order.
fn facts(cluster: &Cluster) -> String {
    let decided = only(cluster);
    let d = &decided.decision;
    let worker = cluster.worker(d.worker).map(|worker| worker.id);
    let sources: Vec<_> = decided.sources().map(DecisionSource::as_str).collect();
    format!(
        "{worker:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {sources:?} {:?}",
        d.decided_ms,
        d.request_id,
        d.trace_id,
        d.isl_tokens,
        d.overlap_blocks,
        d.dispatched,
        d.completeness,
        decided.progress
    )
}

#[test]
fn a_span_alone_says_when_and_where_a_request_was_routed_and_its_trace() {
    let cluster = received(vec![span()]);
    let decided = only(&cluster);
    let d = &decided.decision;
    assert_eq!(d.decided_ms, Some(STARTED));
    assert_eq!(d.trace_id.as_deref(), Some("ffebd37af653197ab67f40ca44fdc9fb"));
    assert_eq!(d.request_id.as_deref(), Some("1a06484d-75fe-450f-8715-fdaba508e0fa"));
    assert_eq!(cluster.worker(d.worker).unwrap().id.id.0, 7_668_682_501_501_432_326);
    assert_eq!((d.overlap_blocks, d.dispatched), (Some(0), Some(true)));
    assert_eq!((decided.progress.ended_ms, decided.progress.outcome), (Some(ENDED), Some(Outcome::Success)));
    // What it does not say stays unknown.
    assert_eq!((d.isl_tokens, decided.progress.ttft_us), (None, None));
}

#[test]
fn a_trace_alone_has_the_time_of_arrival_and_no_trace_id() {
    let cluster = received(vec![trace()]);
    let d = &only(&cluster).decision;
    assert_eq!((d.decided_ms, d.trace_id.as_deref(), d.isl_tokens), (Some(RECEIVED), None, Some(3795)));
}

#[test]
fn a_request_is_one_decision_however_often_and_in_whatever_order_it_is_reported() {
    let expected = facts(&received(vec![trace(), span()]));
    assert!(
        expected.contains("ffebd37af653197ab67f40ca44fdc9fb") && expected.contains("Some(3795)"),
        "{expected}"
    );
    for order in [
        vec![span(), trace()],
        vec![trace(), trace(), span()],
        vec![trace(), span(), trace(), span()],
        vec![span(), span(), trace()],
        vec![line(), trace(), span()],
        vec![span(), line(), trace()],
        vec![trace(), span(), line()],
    ] {
        let shown = format!("{:?}", order.iter().map(Payload::topic).collect::<Vec<_>>());
        assert_eq!(facts(&received(order)), expected, "{shown}");
    }
}
