//! The simulated cluster next to the measured reference scenario: its lesson as a test. The whole table is printed by
//! `cargo xtask bench scenario`.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use radixscope_model::id::Millis;
use radixscope_router::{Formula, RouterSettings};
use radixscope_sim::{Config, Simulation, Summary};

const START: Millis = Millis(1_767_225_600_000);
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

#[test]
fn kv_routing_is_ahead_until_its_bursts_overfill_a_batch() {
    let sweep = |concurrency, router| -> Vec<Summary> {
        (1..=SWEEPS).map(|seed| level(concurrency, router, seed)).collect()
    };
    let of = |sweep: &[Summary], value: fn(&Summary) -> f64| mean(sweep.iter().map(value));
    let [(rr_120, kv_120), (rr_180, kv_180)] =
        [120, 180].map(|n| (sweep(n, RouterSettings::round_robin()), sweep(n, KV)));
    let ttft_p95 = |sweep: &[Summary]| of(sweep, |s| s.ttft_ms.p95);
    assert!(ttft_p95(&kv_120) < ttft_p95(&rr_120));
    assert!(ttft_p95(&kv_180) > 2.0 * ttft_p95(&rr_180), "those that queue are much slower");
    let better: [fn(&Summary) -> f64; 3] = [|s| -s.ttft_ms.p50, |s| -s.itl_ms.p50, |s| s.output_tokens_per_s];
    for value in better {
        assert!(of(&kv_180, value) > of(&rr_180, value), "which medians and rates do not show");
    }
    let spread = |sweep: &[Summary]| of(sweep, |s| s.spread.p95);
    assert!(spread(&kv_180) > 1.5 * spread(&rr_180), "but the momentary spread does");
    assert!(of(&kv_180, |s| s.fullest.p95) > 66.0, "a worker passes the batch limit of 64");
    for (rr, kv) in [(rr_120, kv_120), (rr_180, kv_180)] {
        assert!(of(&kv, |s| s.hit_rate) > 0.88);
        assert!((0.75..0.9).contains(&of(&rr, |s| s.hit_rate)), "a high hit rate alone proves nothing");
    }
}
