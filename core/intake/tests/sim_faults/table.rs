//! The signatures of all faults side by side, to read with
//! `cargo test --release -p radixscope-intake --test sim_faults -- --ignored --nocapture`.

use radixscope_model::id::Millis;
use radixscope_sim::{Config, Fault, FaultPlan};

use crate::observer::{START, Seen, run, small};

#[test]
#[ignore = "a table to read, not a check"]
fn table() {
    for reference in [false, true] {
        for fault in [None].into_iter().chain(Fault::ALL.map(Some)) {
            let after_ms = if fault.is_some_and(Fault::ends_something) { 60_000 } else { 0 };
            let plan = fault.map(|fault| FaultPlan { fault, after_ms });
            let config = if reference { Config { fault: plan, ..Config::default() } } else { small(plan) };
            let until = if reference { 420 } else { 200 };
            print(fault.map_or("healthy", Fault::name), &run(config, until), until);
        }
    }
}

#[expect(clippy::print_stdout, reason = "a table to read")]
fn print(name: &str, seen: &Seen, seconds: u64) {
    let s = seen.simulation.report().summary(Millis(START.0 + 60_000), Millis(START.0 + seconds * 1_000));
    let used: Vec<u32> = (0..3).map(|w| seen.simulation.used_blocks(w)).collect();
    println!(
        "{name:20} stores {:6} ({:6}) empty {:5} parents? {:5} removed {:6} unknown {:6} held {:?} used {used:?} overlap {:.2} engine {:.2} lost {:4} rej {:3} WARN+ {:6} failed {:3} TTFT {:.0}/{:.0} spread {:.0} fullest {:.0} done {}",
        seen.sum(|w| w.store_events_total),
        seen.sum(|w| w.stored_total),
        seen.sum(|w| w.empty_stores_total),
        seen.sum(|w| w.unknown_parents_total),
        seen.sum(|w| w.removed_total),
        seen.sum(|w| w.unknown_removed_total),
        seen.held(),
        seen.overlap(),
        seen.engine_hits(),
        seen.cluster.missed_total(),
        seen.cluster.rejected_total(),
        seen.complaints(),
        seen.simulation.report().failed_total,
        s.ttft_ms.p50,
        s.ttft_ms.p95,
        s.spread.p95,
        s.fullest.p95,
        s.requests,
    );
}
