//! The simulated cluster next to the measured reference scenario: its lesson as a test. The whole table is printed by
//! `cargo xtask bench scenario`.

use radixscope_model::id::Millis;
use radixscope_router::{Formula, RouterSettings};
use radixscope_sim::{Config, Simulation, Summary};

use crate::observed::START;

const SWEEPS: u64 = 3;

/// One level of the reference sweep: 300 s after 60 s of warm-up, as there.
fn level(concurrency: u32, router: RouterSettings, seed: u64) -> Summary {
    let config = Config { concurrency, router, seed, ..Config::default() };
    let mut simulation = Simulation::new(config, START).expect("the reference scenario is valid");
    let (from, until) = (Millis(START.0 + 60_000), Millis(START.0 + 360_000));
    simulation.run_until(until, &mut |_| {});
    simulation.report().summary(from, until)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    values.sum::<f64>() / SWEEPS as f64
}

const KV: RouterSettings = RouterSettings::new(Formula::A);

/// Round-robin and KV routing at so many users, one summary a seed.
fn sweeps(concurrency: u32) -> [Vec<Summary>; 2] {
    [RouterSettings::round_robin(), KV]
        .map(|router| (1..=SWEEPS).map(|seed| level(concurrency, router, seed)).collect())
}

fn of(sweep: &[Summary], value: fn(&Summary) -> f64) -> f64 {
    mean(sweep.iter().map(value))
}

fn assert_hit_rates(rr: &[Summary], kv: &[Summary]) {
    assert!(of(kv, |s| s.hit_rate) > 0.88);
    assert!((0.75..0.9).contains(&of(rr, |s| s.hit_rate)), "a high hit rate alone proves nothing");
}

#[test]
fn kv_routing_is_ahead_while_batches_have_room() {
    let [rr, kv] = sweeps(120);
    let ttft_p95 = |sweep: &[Summary]| of(sweep, |s| s.ttft_ms.p95);
    assert!(ttft_p95(&kv) < ttft_p95(&rr));
    assert_hit_rates(&rr, &kv);
}

#[test]
fn kv_routing_is_behind_once_its_bursts_overfill_a_batch() {
    let [rr, kv] = sweeps(180);
    let ttft_p95 = |sweep: &[Summary]| of(sweep, |s| s.ttft_ms.p95);
    assert!(ttft_p95(&kv) > 2.0 * ttft_p95(&rr), "those that queue are much slower");
    let better: [fn(&Summary) -> f64; 3] = [|s| -s.ttft_ms.p50, |s| -s.itl_ms.p50, |s| s.output_tokens_per_s];
    for value in better {
        assert!(of(&kv, value) > of(&rr, value), "which medians and rates do not show");
    }
    let spread = |sweep: &[Summary]| of(sweep, |s| s.spread.p95);
    assert!(spread(&kv) > 1.5 * spread(&rr), "but the momentary spread does");
    assert!(of(&kv, |s| s.fullest.p95) > 66.0, "a worker passes the batch limit of 64");
    assert_hit_rates(&rr, &kv);
}
