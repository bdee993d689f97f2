//! The way of requests to their workers: how long they waited in the router's queue, whether the router skipped the prefill pool, and
//! which worker they named themselves. What happened is what the test itself finds in the log and the traces.

use std::collections::{BTreeMap, BTreeSet};

use radixscope_captures::Recording;
use radixscope_model::record::{
    Completeness, DecidedBy, DecisionSource, NotReconstructed, Role, RoutingMode,
};
use radixscope_state::cluster::{Cluster, DecisionEntry};
use serde_json::Value;

use crate::captures::routing::play;

/// Of both of these several choices fall into one millisecond, so that not all loads are known at any pace.
/// 1.6.1 with three classes of policy whose thresholds are low, replica sync, traces, and the router's log at DEBUG.
const CLASSES: &str = "../bursts/1.6.1-policy-classes";
/// 1.6.1 with two prefill and two decode workers and `--router-conditional-disagg` by load, replica sync, traces, log at INFO.
const CONDITIONAL: &str = "../bursts/1.6.1-conditional-disagg";
/// 1.6.1 with `--router-predicted-ttl-secs 5`, replica sync, traces, log at DEBUG.
const PREDICTED: &str = "../routing/1.6.1-predicted";
/// 1.6.1 in direct mode, traces, log at INFO.
const DIRECT: &str = "../routing/1.6.1-direct";

fn all(cluster: &Cluster) -> impl Iterator<Item = &DecisionEntry> {
    cluster.decisions().newest_first()
}

/// The requests in the traces, by id.
fn traces(name: &str) -> BTreeMap<String, Value> {
    let records = Recording::fixture(name).subscribed().filter(|m| m.subject == "dynamo.request_trace.v1");
    let request = |body: &[u8]| serde_json::from_slice::<Value>(body).expect("JSON")["request"].clone();
    let requests = records.map(|m| request(&m.payload));
    requests.map(|of| (of["request_id"].as_str().expect("an id").to_owned(), of)).collect()
}

/// Values of a field in the lines with a text, by the id of the request.
fn logged(name: &str, text: &str, field: &str) -> Vec<(String, String)> {
    let value = |line: &str, key: &str| {
        let rest = line.split_once(&format!(" {key}="))?.1;
        Some(rest.split(' ').next()?.trim_matches('"').to_owned())
    };
    let lines = Recording::fixture(name).log("frontend");
    let found = lines.filter(|line| line.contains(text));
    found.filter_map(|line| Some((value(&line, "request_id")?, value(&line, field)?))).collect()
}

#[test]
fn the_wait_before_a_choice_is_what_the_trace_measures_also_by_the_log_alone() {
    let traces = traces(CLASSES);
    for with_messages in [true, false] {
        let cluster = play(CLASSES, with_messages, true);
        let (mut compared, mut waited) = (0, 0);
        for decided in all(&cluster) {
            let id = decided.decision.request_id.clone().expect("named by the log");
            let Some(measured) = traces.get(&id).and_then(|of| of["prefill_wait_time_ms"].as_f64()) else {
                continue;
            };
            let shown = decided.progress.queue_us.expect("both lines are there") as f64 / 1_000.0;
            compared += 1;
            waited += usize::from(shown > 50.0);
            assert!((shown - measured).abs() < 5.0, "{id}: {shown} ms, {measured} ms by the trace");
        }
        assert!(compared >= 36 && waited >= 6, "{compared} compared, {waited} waited");
    }
}

#[test]
fn a_request_that_waited_is_weighed_with_what_was_looked_up_when_it_came() {
    let cluster = play(CLASSES, true, true);
    let waited = |of: &&DecisionEntry| of.progress.queue_us.is_some_and(|us| us > 50_000);
    let (mut reconstructed, mut total) = (0, 0);
    for decided in all(&cluster).filter(waited) {
        total += 1;
        reconstructed += usize::from(decided.decision.completeness == Completeness::Reconstructed);
        assert!(decided.why(|_| "W".into()).contains("had waited"));
    }
    assert_eq!(reconstructed, total);
}

#[test]
fn a_skipped_prefill_pool_is_named_and_what_was_only_looked_at_is_no_choice() {
    let bypassed = logged(CONDITIONAL, "Conditional disagg routing to decode worker", "worker_id");
    assert_eq!(bypassed.len(), 3);
    let traces = traces(CONDITIONAL);
    for (with_messages, with_log) in [(true, true), (true, false), (false, true)] {
        let what = format!("messages {with_messages}, log {with_log}");
        let cluster = play(CONDITIONAL, with_messages, with_log);
        let mut named: BTreeMap<String, Vec<&DecisionEntry>> = BTreeMap::new();
        for decided in all(&cluster).filter(|of| of.decision.dispatched != Some(false)) {
            named.entry(decided.decision.request_id.clone().expect("an id")).or_default().push(decided);
        }
        let (mut compared, mut skipped) = (0, 0);
        for (id, trace) in &traces {
            let Some(parts) = named.get(id).filter(|_| trace["output_tokens"].as_u64() > Some(0)) else {
                continue;
            };
            compared += 1;
            let is_skipped = bypassed.iter().any(|(of, _)| of == id);
            skipped += usize::from(is_skipped);
            let worker_of = |role: Role| {
                let of_role = |of: &&&DecisionEntry| {
                    cluster
                        .pool_of(of.decision.worker)
                        .and_then(|pool| cluster.role(pool))
                        .is_some_and(|of| of.0 == role)
                };
                parts
                    .iter()
                    .find(of_role)
                    .map(|of| cluster.worker(of.decision.worker).expect("known").id.id.0)
            };
            let by_trace = |field: &str| trace["worker"][field].as_u64();
            let (prefill, decode) = (by_trace("prefill_worker_id"), by_trace("decode_worker_id"));
            if !with_messages {
                // A log names no pools.
                let ids = parts.iter().map(|of| cluster.worker(of.decision.worker).expect("known").id.id.0);
                let expected = prefill.into_iter().chain(decode).collect::<BTreeSet<u64>>();
                assert_eq!(ids.collect::<BTreeSet<u64>>(), expected, "{what}: {id}");
                assert!(
                    parts.iter().all(|of| (of.decision.prefill_bypassed == Some(true)) == is_skipped),
                    "{id}"
                );
                continue;
            }
            assert_eq!(
                (worker_of(Role::Prefill), worker_of(Role::Decode)),
                (prefill, decode),
                "{what}: {id}"
            );
            for of in parts {
                let is_decode = of.decision.prefill_bypassed.is_some();
                assert_eq!(of.decision.prefill_bypassed, is_decode.then_some(is_skipped), "{what}: {id}");
                assert_eq!(of.ignores_cache, is_decode && !is_skipped, "{what}: {id}");
                assert_eq!(of.decision.other_part.is_none(), is_skipped, "{what}: {id}");
                assert_ne!(of.decision.decided_by, Some(DecidedBy::Pinned), "{what}: {id}");
                if is_skipped {
                    assert!(
                        of.why(|_| "W".into()).contains("prefill pool was skipped"),
                        "{}",
                        of.why(|_| "W".into())
                    );
                }
            }
        }
        assert!(compared >= 36 && skipped == 3, "{what}: {compared} compared, {skipped} skipped");
    }
}

/// Choices of the messages' requests that a line names a cost of; of how many costs are shown, and of how many they differ from it.
fn costs(cluster: &Cluster) -> (usize, usize, usize) {
    let (mut logged, mut shown, mut differing) = (0, 0, 0);
    for decided in all(cluster).filter(|of| of.is_from(DecisionSource::ActiveSequences)) {
        let Some(logit) = decided.decision.logit else { continue };
        logged += 1;
        let Some(chosen) = decided.chosen() else { continue };
        shown += 1;
        differing += usize::from((chosen.cost - logit).abs() > 0.001);
    }
    (logged, shown, differing)
}

#[test]
fn costs_beside_a_skipped_prefill_pool_are_those_of_the_router_or_not_shown() {
    // Eight requests within three milliseconds begin it: what the router counted of them is not known of all.
    let (logged, shown, differing) = costs(&play(CONDITIONAL, true, true));
    assert!(logged >= 80 && shown + 8 >= logged, "{shown} of {logged}");
    assert_eq!(differing, 0);
}

#[test]
fn blocks_that_the_router_predicts_are_no_error_of_the_tree() {
    let cluster = play(PREDICTED, true, true);
    let (logged, shown, differing) = costs(&cluster);
    assert_eq!(differing, 0, "of {shown} shown, {logged} logged");
    let missing = |why| all(&cluster).filter(|of| of.decision.not_reconstructed == Some(why)).count();
    let (predicted, overlap) = (missing(NotReconstructed::Predicted), missing(NotReconstructed::Overlap));
    assert!(predicted >= 5 && overlap == 0, "{predicted} predicted, {overlap} differ");
    let text = |of: &DecisionEntry| of.why(|_| "W".into());
    let predicted = |of: &&DecisionEntry| of.decision.not_reconstructed == Some(NotReconstructed::Predicted);
    assert!(all(&cluster).filter(predicted).all(|of| text(of).contains("--router-predicted-ttl-secs")));
}

#[test]
fn a_request_in_direct_mode_ran_on_the_worker_that_it_named() {
    let traces = traces(DIRECT);
    for with_messages in [true, false] {
        let cluster = play(DIRECT, with_messages, true);
        let mut compared = 0;
        for decided in all(&cluster) {
            let id = decided.decision.request_id.clone().expect("an id");
            let Some(trace) = traces.get(&id).filter(|of| of["output_tokens"].as_u64() > Some(0)) else {
                continue;
            };
            compared += 1;
            let worker = cluster.worker(decided.decision.worker).expect("known").id.id.0;
            assert_eq!(Some(worker), trace["worker"]["decode_worker_id"].as_u64(), "{id}");
            assert_eq!(decided.decision.decided_by, Some(DecidedBy::Mode), "{id}");
            assert_eq!(decided.decision.mode, Some(RoutingMode::Direct), "{id}");
            let received = trace["request_received_ms"].as_u64().expect("a time");
            let decided_ms = decided.decision.decided_ms.expect("a time").0;
            assert!(decided_ms.abs_diff(received) <= 50, "{id}: {decided_ms}, received {received}");
            assert!(
                decided.why(|_| "W".into()).contains("named by the request"),
                "{}",
                decided.why(|_| "W".into())
            );
        }
        assert!(compared >= 8, "{compared}");
    }
}
