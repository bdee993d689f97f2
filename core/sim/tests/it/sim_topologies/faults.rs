//! Faults on the new topologies: what is wrong is wrong in one pool.

use std::collections::HashMap;

use radixscope_dynamo::active_sequence::SequenceChange;
use radixscope_sim::{Channel, Config, Fault, FaultPlan, Simulation, Topology};

use crate::sim_topologies::OF_1_6;
use crate::sim_topologies::seen::{Folded, Message, run, small};

fn faulty(topology: Topology, fault: Fault) -> Config {
    let after_ms = if fault.ends_something() { 40_000 } else { 0 };
    Config { fault: Some(FaultPlan { fault, after_ms }), ..small(topology) }
}

fn seen(messages: &[Message]) -> Folded {
    let mut seen = Folded { has_gaps: true, ..Folded::default() };
    messages.iter().for_each(|message| seen.fold(message));
    seen
}

/// Workers of a component that published events.
fn publishing(simulation: &Simulation, seen: &Folded, component: &str) -> usize {
    let of = (0..simulation.workers()).filter(|&worker| simulation.component(worker) == component);
    of.filter(|&worker| seen.held.contains_key(&simulation.worker_id(worker))).count()
}

#[test]
fn every_fault_is_simulated_on_every_topology_and_understood() {
    for topology in OF_1_6 {
        for fault in Fault::ALL {
            // Long pauses and long prompts need more than the small cluster has.
            let config = Config { blocks_per_worker: 4_000, metrics: false, ..faulty(topology, fault) };
            let (simulation, messages) = run(config, 50);
            let name = format!("{} on {}", fault.name(), topology.name());
            assert!(simulation.report().finished_total > 10, "{name}");
            // Panics at what it does not understand.
            let seen = seen(
                &messages.iter().filter(|m| !m.name.contains("namespace-")).cloned().collect::<Vec<_>>(),
            );
            assert!(seen.lines.len() > 20, "{name}");
        }
    }
}

#[test]
fn whatever_fails_is_freed_everywhere() {
    for (fault, pool) in [
        (Fault::KillWorker, None),
        (Fault::KillWorker, Some("backend")),
        (Fault::GhostWorker, None),
        (Fault::RouterRestart, None),
    ] {
        let fault_pool = pool.map(str::to_owned);
        let config = Config { fault_pool, ..faulty(Topology::Disaggregated, fault) };
        let (simulation, messages) = run(config, 120);
        let seen = seen(&messages);
        let mut open: HashMap<(&str, &str), u64> = HashMap::new();
        for reported in &seen.reported {
            let key = (&*reported.request_id, &*reported.component);
            match reported.step {
                SequenceChange::Added(_) => assert_eq!(open.insert(key, reported.at_ms), None, "added once"),
                SequenceChange::PrefillCompleted => {
                    assert!(open.contains_key(&key), "{} {key:?}", fault.name())
                }
                SequenceChange::Freed => assert!(open.remove(&key).is_some(), "freed once"),
            }
        }
        let (name, report) = (fault.name(), simulation.report());
        assert!(open.len() <= 2 * 24, "{name}: {}", open.len());
        assert_eq!(report.failed_total > 0, fault != Fault::GhostWorker, "{name}");
        let late = report
            .requests
            .iter()
            .filter(|request| request.finished_at_ms.0 > crate::sim_topologies::seen::START.0 + 80_000);
        assert!(late.count() > 20, "{name}: users go on");
        let running: u32 =
            (0..6).map(|worker| simulation.running_and_queued(worker)).map(|(r, q)| r + q).sum();
        assert!(running <= 24, "{name}: nothing runs twice: {running}");
    }
}

#[test]
fn a_killed_prefill_worker_is_missed_where_it_worked() {
    let (simulation, messages) = run(faulty(Topology::Disaggregated, Fault::KillWorker), 120);
    let last_word = |worker: u16| {
        let id = simulation.worker_id(worker);
        let of = |line: &&Message| String::from_utf8_lossy(&line.payload).contains(&id.to_string());
        messages
            .iter()
            .filter(|m| m.channel == Channel::Log)
            .filter(of)
            .map(|m| m.at_ms - crate::sim_topologies::seen::START.0)
            .max()
    };
    assert_eq!(simulation.component(2), "prefill");
    // The lease ends six seconds after the death.
    assert_eq!(last_word(2), Some(46_000));
    for worker in [0, 1, 3, 4, 5] {
        assert!(last_word(worker).is_some_and(|at| at > 100_000), "{worker}: {:?}", last_word(worker));
    }
    let texts =
        messages.iter().filter(|m| m.channel == Channel::Log).map(|m| String::from_utf8_lossy(&m.payload));
    let matching: Vec<_> = texts.filter(|line| line.contains("route request failed")).collect();
    assert!(
        !matching.is_empty() && matching.iter().all(|line| line.contains("phase=Prefill")),
        "{matching:?}"
    );
    let departed: Vec<_> = messages
        .iter()
        .filter(|m| m.channel == Channel::Metrics && m.name == "frontend")
        .map(|m| String::from_utf8_lossy(&m.payload).matches("router_worker_registered{").count())
        .collect();
    assert_eq!((departed.first(), departed.last()), (Some(&6), Some(&5)));
}

#[test]
fn a_killed_decode_worker_takes_its_requests_with_it() {
    let fault_pool = Some("backend".to_owned());
    let config = Config { fault_pool, ..faulty(Topology::Disaggregated, Fault::KillWorker) };
    let (simulation, messages) = run(config, 120);
    let lines =
        messages.iter().filter(|m| m.channel == Channel::Log).map(|m| String::from_utf8_lossy(&m.payload));
    let broken: Vec<_> = lines.filter(|line| line.contains("route request failed")).collect();
    let worker = format!("worker_id={}", simulation.worker_id(5));
    assert!(broken.iter().any(|line| line.contains("worker_disconnected")));
    assert!(broken.iter().all(|line| line.contains("phase=Decode") && line.contains(&worker)), "{broken:?}");
    let failed = simulation.report().failed_total;
    assert_eq!(broken.len() as u64, failed, "each request once");
}

#[test]
fn the_other_model_is_hit_where_that_is_requested() {
    let fault_pool = Some("backend2".to_owned());
    let config = Config { fault_pool, ..faulty(Topology::TwoModels, Fault::NoEvents) };
    let (simulation, messages) = run(config, 60);
    let seen = seen(&messages);
    assert_eq!(
        (publishing(&simulation, &seen, "backend"), publishing(&simulation, &seen, "backend2")),
        (3, 0)
    );
}

#[test]
fn silent_workers_are_those_of_one_pool() {
    for (topology, silent, other) in
        [(Topology::Disaggregated, "prefill", None), (Topology::TwoModels, "backend", Some("backend2"))]
    {
        let (simulation, messages) = run(faulty(topology, Fault::NoEvents), 60);
        let seen = seen(&messages);
        assert_eq!(publishing(&simulation, &seen, silent), 0);
        assert!(other.is_none_or(|other| publishing(&simulation, &seen, other) == 3));
        let (simulation, messages) = run(faulty(topology, Fault::NoEventsOne), 60);
        assert_eq!(publishing(&simulation, &self::seen(&messages), silent), 2);
    }
}

#[test]
fn blocks_of_another_size_are_those_of_one_pool() {
    for topology in [Topology::Disaggregated, Topology::TwoModels] {
        let (simulation, messages) = run(faulty(topology, Fault::BlockSize), 60);
        let seen = seen(&messages);
        for worker in 0..simulation.workers() {
            let Some(held) = seen.held.get(&simulation.worker_id(worker)) else { continue };
            let hit = worker < 3;
            assert_eq!(held.device.is_empty(), hit, "worker {worker}");
            assert_eq!(held.empty > 0, hit, "worker {worker}");
        }
        let warns = |of: &str| {
            let of = |m: &&Message| m.name == of && m.channel == Channel::Log;
            messages
                .iter()
                .filter(of)
                .any(|m| String::from_utf8_lossy(&m.payload).contains("Block not published"))
        };
        assert!(warns("worker-1") && !warns("worker-4"));
        // The decode part has blocks of the router's size all the same.
        let chains = seen.reported.iter().filter_map(|reported| reported.added()?.token_sequence.as_ref());
        assert!(chains.clone().count() > 20 && chains.clone().all(|chain| !chain.is_empty()));
    }
}

#[test]
fn a_router_that_predicts_leaves_the_fingerprints_of_one() {
    let (_, messages) = run(faulty(Topology::Disaggregated, Fault::Approximate), 60);
    let lines =
        messages.iter().filter(|m| m.channel == Channel::Log).map(|m| String::from_utf8_lossy(&m.payload));
    let matching: Vec<_> = lines.filter(|line| line.contains("KV event subscri")).collect();
    assert_eq!(matching.len(), 2, "{matching:?}");
    assert!(matching[0].ends_with(
        "dynamo_llm::kv_router::indexer::ingress: Skipping KV event subscription requirement=not_required \
         cache_required=true use_kv_events=false use_remote_indexer=false"
    ));
    let last = messages.iter().rfind(|m| m.name == "frontend" && m.channel == Channel::Metrics);
    let text = String::from_utf8_lossy(&last.expect("scraped").payload).into_owned();
    assert!(!text.contains("kv_event_source_mismatch_workers"), "no series of event sources");
    let value = |labels: &str| -> u64 {
        let line = text.lines().find(|line| line.contains(labels)).expect("a series");
        line.rsplit(' ').next().and_then(|value| value.parse().ok()).expect("a number")
    };
    let guesses = value("event_type=\"stored\",status=\"ok\"");
    assert!(guesses > 30);
    assert_eq!(
        guesses,
        value(
            "router_input_sequence_tokens_count{dynamo_component=\"backend\",dynamo_namespace=\"dynamo\",model=\"simulated/Llama-70B-FP8\",phase=\"prefill\""
        )
    );
    let seen = seen(&messages);
    let predicted = seen.selected().filter(|of| of.cached_blocks.is_some_and(|blocks| !blocks.reads_as(0.0)));
    assert!(predicted.count() > 10);
}

#[test]
fn a_hot_worker_is_one_of_one_pool() {
    let (simulation, messages) = run(faulty(Topology::Disaggregated, Fault::HotWorker), 120);
    let seen = seen(&messages);
    let share = |worker: u16, component: &str| {
        let added = seen
            .reported
            .iter()
            .filter(|reported| reported.component == component && reported.added().is_some());
        let id = simulation.worker_id(worker);
        added.clone().filter(|reported| reported.worker == id).count() as f64 / added.count() as f64
    };
    assert!(share(0, "prefill") > 0.6, "{}", share(0, "prefill"));
    assert!((3..6).all(|worker| share(worker, "backend") < 0.6));
}

#[test]
fn full_memory_is_that_of_the_workers_that_decode() {
    let config = Config {
        topology: Topology::Disaggregated,
        fault: Some(FaultPlan { fault: Fault::MemoryFull, after_ms: 0 }),
        ..Config::default()
    };
    let mut simulation = Simulation::new(config, crate::sim_topologies::seen::START).expect("valid");
    simulation
        .run_until(radixscope_model::id::Millis(crate::sim_topologies::seen::START.0 + 90_000), &mut |_| {});
    let used = |workers: std::ops::Range<u16>| workers.map(|at| simulation.used_blocks(at)).max();
    let waiting: u32 = (3..6).map(|at| simulation.running_and_queued(at).1).sum();
    assert!(used(3..6) > Some(3_400), "{:?}", used(3..6));
    assert!(waiting > 5, "{waiting}");
    assert!((0..3).all(|at| simulation.running_and_queued(at).1 == 0), "prompts are computed at once");
}
