//! What each candidate of a choice cost, by the router's own trace (`router_selection`, 1.7): decisions have those costs, whatever else
//! reports the choice. The recording has replica sync, traces on NATS and the log at INFO.

use std::collections::BTreeMap;

use radixscope_captures::Recording;
use radixscope_model::record::{Completeness, DecisionSource, same_cost};
use radixscope_state::cluster::Cluster;
use serde_json::Value;

use crate::captures::routing::play;

const NAME: &str = "../routing/1.7.0.dev20261026-router-selection";

/// What the trace has, read without our decoder: by request, each worker's cost.
fn traced() -> BTreeMap<String, BTreeMap<u64, f64>> {
    let messages = Recording::fixture(NAME).messages();
    let records = messages.filter_map(|message| serde_json::from_slice::<Value>(&message.payload).ok());
    let selections = records.filter(|record| record["event_type"] == "router_selection");
    selections
        .map(|record| {
            let of = &record["selection"];
            let cost = |one: &Value| (one[0].as_u64().expect("a worker"), one[2].as_f64().expect("a cost"));
            let costs = of["candidates"].as_array().expect("candidates").iter().map(cost).collect();
            (of["request_id"].as_str().expect("an id").to_owned(), costs)
        })
        .collect()
}

/// Decisions of which the trace has costs, and of how many all of them are shown.
fn compare(cluster: &Cluster) -> (usize, usize) {
    let traced = traced();
    let (mut all, mut shown) = (0, 0);
    for decided in cluster.decisions().newest_first() {
        let decision = &decided.decision;
        let Some(costs) = decision.request_id.as_ref().and_then(|id| traced.get(id)) else { continue };
        all += 1;
        let id_of = |worker| cluster.worker(worker).expect("a worker").id.id.0;
        let chosen = costs[&id_of(decision.worker)];
        assert!(decision.logit.is_some_and(|logit| (logit - chosen).abs() < 0.001), "{decision:?}");
        assert!(decided.is_from(DecisionSource::RequestTrace));
        if decision.completeness == Completeness::ChosenOnly {
            continue;
        }
        shown += 1;
        assert_eq!(decision.completeness, Completeness::AllCandidates, "{decision:?}");
        let ours = decision.candidates.iter().map(|of| (id_of(of.worker), of.cost));
        let ours: BTreeMap<u64, f64> = ours.collect();
        assert_eq!(ours.len(), costs.len());
        assert!(ours.iter().all(|(id, cost)| same_cost(*cost, costs[id])), "{ours:?} and {costs:?}");
    }
    (all, shown)
}

#[test]
fn costs_of_all_candidates_are_the_traces() {
    for (has_messages, has_log) in [(true, true), (true, false)] {
        let (all, shown) = compare(&play(NAME, has_messages, has_log));
        assert_eq!((all, shown), (43, 43), "messages {has_messages}, log {has_log}");
    }
}
