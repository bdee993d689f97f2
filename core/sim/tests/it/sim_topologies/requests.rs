//! The life of a request: in which order its steps are reported, by whom and where.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use radixscope_dynamo::log_line::LogEvent;
use radixscope_model::record::Role;
use radixscope_router::RouterSettings;
use radixscope_sim::{Channel, Config, Topology};

use crate::sim_topologies::seen::{Folded, Reported, run, small};

/// Steps of each request that ended, in the order in which they were reported.
fn ended(seen: &Folded) -> HashMap<&str, Vec<&Reported>> {
    let mut requests: HashMap<&str, Vec<&Reported>> = HashMap::new();
    for reported in &seen.reported {
        requests.entry(&reported.request_id).or_default().push(reported);
    }
    requests.retain(|_, steps| {
        steps.last().is_some_and(|last| {
            last.in_text().ends_with("backend Free R") || last.in_text().ends_with("backend2 Free R")
        })
    });
    requests
}

#[test]
fn a_disaggregated_request_is_reported_in_the_recorded_order() {
    let (simulation, messages) = run(small(Topology::Disaggregated), 120);
    let seen = Folded::of(&messages);
    let requests = ended(&seen);
    assert!(requests.len() > 60, "{}", requests.len());
    assert_eq!(requests.len() as u64, simulation.report().finished_total);
    for steps in requests.values() {
        let text: Vec<String> = steps.iter().map(|reported| reported.in_text()).collect();
        assert_eq!(
            text,
            [
                "prefill AddRequest R",
                "backend AddRequest R",
                "prefill MarkPrefillCompleted R",
                "prefill Free R",
                "backend MarkPrefillCompleted W",
                "backend Free R"
            ]
        );
        assert_eq!(steps[1].at_ms - steps[0].at_ms, 3, "the worker to decode on is chosen at once");
        let (prefill, decode) = (steps[0].added().expect("added"), steps[1].added().expect("added"));
        assert_eq!((&prefill.token_sequence, prefill.track_prefill_tokens), (&None, Some(true)));
        assert!(prefill.initial_effective_prefill_tokens.is_some_and(|tokens| tokens > 0));
        assert!(decode.token_sequence.as_ref().is_some_and(|chain| !chain.is_empty()));
        assert_eq!(
            (decode.track_prefill_tokens, decode.initial_effective_prefill_tokens),
            (Some(false), None)
        );
        assert!((decode.isl, decode.overlap) == (None, None), "1.6 reports neither");
        assert!(steps[3].at_ms > steps[2].at_ms, "the KV takes its time");
    }
}

#[test]
fn both_ends_of_a_disaggregated_request_are_logged() {
    let (simulation, messages) = run(small(Topology::Disaggregated), 120);
    let seen = Folded::of(&messages);
    let requests = ended(&seen);
    let (mut routed, mut done): (BTreeMap<&str, BTreeSet<&str>>, u64) = (BTreeMap::new(), 0);
    let component: HashMap<u64, &str> =
        (0..simulation.workers()).map(|at| (simulation.worker_id(at), simulation.component(at))).collect();
    for line in &seen.lines {
        match &line.event {
            LogEvent::RouteDone(over) => {
                let phase = over.phase.map(Role::as_str).expect("a phase");
                let place = if phase == "prefill" { "prefill" } else { "backend" };
                assert_eq!(component[&over.worker.id.0], place);
                assert!(phase == "prefill" || over.overlap_blocks == Some(0), "decode looks for no cache");
                routed.entry(&over.request_id).or_default().insert(phase);
            }
            LogEvent::RequestDone(request) => {
                let steps = &requests[&*request.request_id];
                assert_eq!(request.prefill_worker.map(|id| id.0), Some(steps[0].worker));
                assert_eq!(request.decode_worker.map(|id| id.0), Some(steps[1].worker));
                let chain =
                    steps[1].added().and_then(|added| added.token_sequence.as_ref()).expect("a chain");
                assert_eq!(request.input_tokens.expect("known") / 16, chain.len() as u64);
                // First token and end as the frontend sees them, before and after the way through it.
                let on_the_way = |from: usize, to: usize| (steps[to].at_ms - steps[from].at_ms) as f64;
                let outside_ms = request.elapsed_ms.expect("known") - on_the_way(0, 5);
                assert!((110.0..130.0).contains(&outside_ms), "{outside_ms}");
                assert!((request.ttft_ms.expect("known") - on_the_way(0, 4) - outside_ms).abs() < 3.0);
                done += 1;
            }
            _ => {}
        }
    }
    assert_eq!(done, simulation.report().finished_total);
    assert_eq!(routed.values().filter(|phases| phases.len() == 2).count() as u64, done);
}

#[test]
fn every_prompt_goes_to_both_models() {
    let (simulation, messages) = run(small(Topology::TwoModels), 120);
    let seen = Folded::of(&messages);
    let mut prompts: [Vec<&Vec<u64>>; 2] = Default::default();
    for (request, steps) in ended(&seen) {
        let component = &steps[0].component;
        let text: Vec<String> = steps.iter().map(|reported| reported.in_text()).collect();
        let order = ["AddRequest R", "MarkPrefillCompleted W", "MarkPrefillCompleted R", "Free R"];
        assert_eq!(text, order.map(|step| format!("{component} {step}")), "{request}");
        let added = steps[0].added().expect("added");
        assert_eq!(added.track_prefill_tokens, Some(true));
        prompts[usize::from(component == "backend2")].push(added.token_sequence.as_ref().expect("a chain"));
    }
    let [mut first, mut second] = prompts;
    assert!(first.len() > 50, "{}", first.len());
    assert_eq!(first.len() + second.len(), simulation.report().finished_total as usize);
    first.sort();
    second.sort();
    // What one model has answered, the other has, or is still at.
    let missing = |from: &[&Vec<u64>], of: &[&Vec<u64>]| {
        from.iter().filter(|prompt| of.binary_search(prompt).is_err()).count()
    };
    assert!(missing(&first, &second) + missing(&second, &first) <= 24);
}

#[test]
fn without_replica_sync_only_responding_routers_report_first_tokens() {
    for (topology, component) in [(Topology::Disaggregated, "backend"), (Topology::Tiers, "backend")] {
        let config = Config { replica_sync: false, ..small(topology) };
        let (_, messages) = run(config, 60);
        let seen = Folded::of(&messages);
        assert!(seen.reported.len() > 30);
        let word = format!("{component} MarkPrefillCompleted W");
        assert!(seen.reported.iter().all(|reported| reported.in_text() == word));
    }
}

#[test]
fn a_prompt_is_computed_where_it_is_prefilled_and_decoded_elsewhere() {
    let (simulation, messages) = run(small(Topology::Disaggregated), 120);
    let report = simulation.report();
    assert!(report.requests.iter().all(|request| request.prefill_worker.is_some_and(|worker| worker < 3)));
    assert!(report.requests.iter().all(|request| (3..6).contains(&request.worker)));
    assert!(report.requests.iter().any(|request| request.cached_tokens > 0));
    assert!(report.requests.iter().all(|request| request.ttft_us <= request.e2e_us));
    let seen = Folded::of(&messages);
    for worker in 0..6 {
        let id = simulation.worker_id(worker);
        let most = seen.loads.iter().filter(|load| load.worker == id).map(|load| load.used_blocks).max();
        assert!(most.is_some_and(|blocks| blocks > 20), "worker {worker} uses blocks: {most:?}");
    }
}

#[test]
fn round_robin_is_neither_logged_nor_published() {
    for topology in crate::sim_topologies::OF_1_6 {
        let router = RouterSettings::round_robin();
        let (simulation, messages) = run(Config { router, ..small(topology) }, 60);
        let seen = Folded::of(&messages);
        assert!(seen.reported.is_empty(), "{}", topology.name());
        let lines = messages
            .iter()
            .filter(|m| m.channel == Channel::Log)
            .map(|m| String::from_utf8_lossy(&m.payload));
        let turns =
            lines.filter(|line| line.contains("Selected worker router_mode=\"round-robin\" worker_id="));
        let report = simulation.report();
        let pools = if topology == Topology::Disaggregated { 2 } else { 1 };
        assert!(turns.count() as u64 + 24 >= report.routed_total * pools && report.finished_total > 30);
        let metrics = messages.iter().rfind(|m| m.name == "frontend" && m.channel == Channel::Metrics);
        let text = String::from_utf8_lossy(&metrics.expect("scraped").payload).into_owned();
        assert!(!text.contains("worker_registered") && !text.contains("kv_cache_events_applied"));
    }
}

#[test]
fn a_temperature_is_drawn_in_every_pool() {
    let router = RouterSettings { router_temperature: 0.5, ..RouterSettings::default() };
    let (simulation, messages) = run(Config { router, ..small(Topology::Disaggregated) }, 60);
    let seen = Folded::of(&messages);
    let chosen = |worker: u16| {
        let id = simulation.worker_id(worker);
        seen.reported.iter().filter(|step| step.worker == id && step.added().is_some()).count()
    };
    assert!((0..6).all(|worker| chosen(worker) > 5), "{:?}", (0..6).map(chosen).collect::<Vec<_>>());
}
