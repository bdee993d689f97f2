//! Load that is out of balance, memory that is too small, and slowness.

use radixscope_model::id::Millis;
use radixscope_sim::{Config, Fault, FaultPlan, Simulation, Summary};

use crate::sim_faults::observer::{START, Seen, run, small, with};

fn reference(fault: Option<Fault>, seconds: u64) -> Seen {
    let fault = fault.map(|fault| FaultPlan { fault, after_ms: 0 });
    run(Config { fault, ..Config::default() }, seconds)
}

fn summary(seen: &Seen) -> Summary {
    seen.simulation.report().summary(Millis(START.0 + 60_000), Millis(u64::MAX))
}

/// Mean share of each worker's blocks that running requests used, from second 100 to 200.
fn used(fault: Fault) -> Vec<f64> {
    let fault = Some(FaultPlan { fault, after_ms: 0 });
    let mut simulation =
        Simulation::new(Config { fault, ..Config::default() }, START).expect("a valid configuration");
    let capacity = f64::from(simulation.config().blocks_per_worker);
    let mut sums = vec![0.0; 3];
    for second in 101..=200 {
        simulation.run_until(Millis(START.0 + second * 1_000), &mut |_| {});
        (0..3_u16).zip(&mut sums).for_each(|(w, sum)| *sum += f64::from(simulation.used_blocks(w)));
    }
    sums.iter().map(|sum| sum / 100.0 / capacity).collect()
}

/// Share of all requests that went to a worker.
fn share(seen: &Seen, worker: u16) -> f64 {
    seen.worker(worker).sequences.added as f64 / seen.simulation.report().routed_total as f64
}

#[test]
fn a_hot_worker_gets_most_requests_and_a_starved_one_next_to_none() {
    let (hot, starved, healthy) =
        (with(Fault::HotWorker, 120), with(Fault::StarvedWorker, 120), run(small(None), 120));
    assert!(share(&hot, 0) > 0.6, "{}", share(&hot, 0));
    assert!(share(&starved, 2) < 0.06, "{}", share(&starved, 2));
    assert!((0..3).all(|w| (0.25..0.42).contains(&share(&healthy, w))));
    assert_eq!(hot.complaints() + starved.complaints(), 0);
    for seen in [hot, starved] {
        assert_eq!(seen.sum(|w| w.unknown_parents_total + w.unknown_removed_total + w.missed_total), 0);
    }
}

#[test]
fn blocks_that_churn_are_gone_before_their_prompt_comes_again() {
    let (seen, healthy) = (reference(Some(Fault::Churn), 300), reference(None, 300));
    let removed = |seen: &Seen| seen.sum(|w| w.removed_total);
    assert!(removed(&seen) > 3 * removed(&healthy), "{} and {}", removed(&seen), removed(&healthy));
    assert!(seen.engine_hits() < 0.6, "{} of {}", seen.engine_hits(), healthy.engine_hits());
    assert!((seen.overlap() - seen.engine_hits()).abs() < 0.05, "and the router knows it");
    let used = used(Fault::Churn);
    assert!(used.iter().all(|&share| share < 0.75), "while running requests leave room: {used:?}");
    assert_eq!(seen.complaints(), 0);
}

#[test]
fn full_memory_is_full_of_running_requests_and_others_wait() {
    let seen = reference(Some(Fault::MemoryFull), 200);
    for worker in 0..3 {
        let process = format!("worker-{}", worker + 1);
        assert!(seen.value(&process, "vllm:kv_cache_usage_perc") >= 0.9);
        assert!(seen.value(&process, "vllm:num_requests_waiting") > 0.0);
        assert!(seen.value(&process, "vllm:num_requests_running") < 64.0, "the batch is not what limits");
        let state = seen.worker(worker);
        let used = state.engine_used_blocks.expect("the engine spoke") as f64;
        assert!(used / state.capacity_blocks.expect("a card") as f64 >= 0.9);
    }
    let used = used(Fault::MemoryFull);
    assert!(used.iter().all(|&share| share >= 0.95), "{used:?}");
    assert_eq!(seen.complaints(), 0);
}

#[test]
fn slow_prefill_breaks_the_time_to_first_token_and_little_else() {
    let (slow, healthy) = (summary(&reference(Some(Fault::Slow), 180)), summary(&reference(None, 180)));
    assert!(slow.ttft_ms.p95 > 700.0 && healthy.ttft_ms.p95 < 600.0, "{slow:?}");
    assert!(slow.itl_ms.p50 < 60.0);
}

#[test]
fn two_frontends_estimate_the_same_worker_differently() {
    let seen = with(Fault::Replicas, 60);
    for worker in 0..3 {
        assert_eq!(seen.worker(worker).router_loads.len(), 2);
    }
    let routed = |log| seen.count_lines_of(log, "Selected worker");
    assert!(routed("frontend") > 3 * routed("frontend-2") && routed("frontend-2") > 20);
    assert_eq!((routed("frontend") + routed("frontend-2")) as u64, seen.simulation.report().routed_total);
    let requests = |frontend| seen.value(frontend, "dynamo_frontend_input_sequence_tokens_count");
    assert!(requests("frontend") > 3.0 * requests("frontend-2"));
    assert!(
        seen.subjects.keys().all(|s| !s.ends_with("active_sequences_events")),
        "nor do they tell each other"
    );
    assert!(seen.overlap() > 0.6 && seen.complaints() == 0);
}
