//! The simulated cluster next to the measured reference scenario. Ignored by default, because it is a table to
//! read: `cargo test --release -p radixscope-core --test sim_calibration -- --ignored --nocapture`.

use radixscope_core::id::Millis;
use radixscope_core::sim::{Config, RouterMode, Simulation, Summary};

const START: Millis = Millis(1_767_225_600_000);
const SWEEPS: u64 = 3;

/// One level of the reference sweep: 300 s after 60 s of warm-up, as there.
fn level(concurrency: u32, router: RouterMode, seed: u64) -> Summary {
    let config = Config { concurrency, router, seed, ..Config::default() };
    let mut simulation = Simulation::new(config, START).expect("the reference scenario is valid");
    let (from, until) = (Millis(START.0 + 60_000), Millis(START.0 + 360_000));
    simulation.run_until(until, &mut |_| {});
    simulation.report().summary(from, until)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    values.sum::<f64>() / SWEEPS as f64
}

#[test]
#[ignore = "a table to read, not a check"]
fn table() {
    println!(
        "conc      TTFT p50/p95    hit%  tok/s  req/s  ITL p50/p95  E2E p50/p95   ISL p50/p95  queue p95  spread p50/p95/max  fullest p50/p95"
    );
    for concurrency in [60, 80, 100, 120, 140, 160, 180] {
        for (name, router) in [
            ("RR", RouterMode::RoundRobin),
            ("KV", RouterMode::Kv { overlap_score_weight: 1.0, temperature: 0.0 }),
        ] {
            let s: Vec<Summary> = (1..=SWEEPS).map(|seed| level(concurrency, router, seed)).collect();
            let m = |of: fn(&Summary) -> f64| mean(s.iter().map(of));
            println!(
                "{concurrency:4} {name} {:6.0} {:6.0}   {:6.1} {:6.0} {:6.2}   {:4.0} {:4.0}    {:5.1} {:5.1}   {:6.0} {:6.0}  {:7.0}   {:4.0} {:4.0} {:4.0}        {:4.0} {:4.0}",
                m(|s| s.ttft_ms.p50),
                m(|s| s.ttft_ms.p95),
                m(|s| s.hit_rate * 100.0),
                m(|s| s.output_tokens_per_s),
                m(|s| s.requests_per_s),
                m(|s| s.itl_ms.p50),
                m(|s| s.itl_ms.p95),
                m(|s| s.e2e_ms.p50 / 1e3),
                m(|s| s.e2e_ms.p95 / 1e3),
                m(|s| s.isl_tokens.p50),
                m(|s| s.isl_tokens.p95),
                m(|s| s.queued_ms.p95),
                m(|s| s.spread.p50),
                m(|s| s.spread.p95),
                m(|s| s.spread.max),
                m(|s| s.fullest.p50),
                m(|s| s.fullest.p95),
            );
        }
    }
}
