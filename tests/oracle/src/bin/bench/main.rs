//! Our decoding, fold, tree and scoring beside Dynamo's own, on the same input in the same run.
//!
//! `bench [--json FILE] [--quick] CAPTURE…`; without a capture, all of the repository's.

mod counting;
mod memory;
mod report;
mod scoring;
mod throughput;

use anyhow::{Context, Result};
use radixscope_oracle::capture;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// Blocks over eight workers of the made-up trees.
const SIZES: [(usize, &str); 2] = [(100_000, "talk, 100 k blocks"), (1_000_000, "talk, 1 M blocks")];

fn main() -> Result<()> {
    let (mut json, mut captures, mut quick) = (None, Vec::new(), false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => json = Some(arguments.next().context("--json needs a file")?),
            "--quick" => quick = true,
            _ => captures.push(argument),
        }
    }
    if captures.is_empty() {
        captures = capture::names();
    }
    let mut report = report::Report::new();
    for name in &captures {
        if let Some(measured) = throughput::measure(name)? {
            let memory = memory::measure(&measured.capture, &memory::capture_events(name)?);
            // Where the block sizes do not match nothing is ever stored: there is no block to divide by.
            report.memory.extend((memory.resident > 0).then_some(memory));
            report.throughput.push(measured);
        }
    }
    let sizes = if quick { &SIZES[..1] } else { &SIZES[..] };
    for &(resident, what) in sizes {
        let events = memory::talk_events(resident, 1);
        report.memory.push(memory::measure(what, &events));
        report.snapshots.push(memory::snapshot(what, &events)?);
    }
    report.scoring = scoring::measure()?;
    report.counterfactual = scoring::counterfactual()?;
    report.print();
    if let Some(file) = json {
        std::fs::write(&file, serde_json::to_vec_pretty(&report)?).context(file)?;
    }
    Ok(())
}
