//! Memory of the state, of a second one that hears of it, and of the intake after a day of rollouts, 256 workers at a time:
//! `rollouts [--json FILE]`.
#![allow(clippy::unwrap_used, reason = "shared with a test, which fails by panicking")]
#![expect(clippy::print_stdout, reason = "its figures are what it is for")]

#[path = "../tests/it/rollouts/rollout.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod rollout;

use rollout::{Size, heap_bytes_after};
use serde_json::{Value, json};

/// A day of rollouts has so many workers.
const WORKERS: [u64; 3] = [1_024, 10_240, 100_096];
/// Most bytes of heap after all of them: the ids of 65,536 departed workers are remembered, of their states nothing is.
const BUDGET_MIB: f64 = 10.0;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rows: Vec<Value> = WORKERS.iter().map(|&workers| row(workers)).collect();
    let mut args = std::env::args().skip_while(|arg| arg != "--json").skip(1);
    if let Some(file) = args.next() {
        std::fs::write(file, serde_json::to_vec(&json!({ "rows": rows }))?)?;
    }
    Ok(())
}

fn row(workers: u64) -> Value {
    let bytes = heap_bytes_after(workers, Size { processes: 32, ranks: 8 });
    let mib = bytes as f64 / f64::from(1 << 20);
    println!("{workers} workers, 256 at a time: {mib:.1} MiB");
    json!({
        "what": format!("heap after {workers} workers, 256 at a time, two states"), "value": mib, "unit": "MiB",
        "budget": format!("≤ {BUDGET_MIB}"), "within": mib <= BUDGET_MIB,
    })
}
