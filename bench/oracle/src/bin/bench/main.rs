//! Our decoding, fold, tree and scoring beside Dynamo's own, on the same input in the same run.
//!
//! `bench [--json FILE] [--quick] CAPTURE…`; without a capture, all of the repository's. `bench --repeat N --side ours|visible|theirs
//! CAPTURE…` decodes and applies each capture N times and prints nothing: for a profiler. `bench --brief CAPTURE…` prints a line a
//! capture of that alone, `bench --visible CAPTURE…` one of what it costs that prompts are visible.

mod counting;
mod memory;
mod report;
mod scoring;
mod throughput;

use anyhow::{Context, Result};
use radixscope_oracle::capture;
use radixscope_oracle::talk::Talk;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// Blocks over eight workers of the made-up trees.
const SIZES: [(usize, &str); 2] = [(100_000, "talk, 100 k blocks"), (1_000_000, "talk, 1 M blocks")];

fn main() -> Result<()> {
    let (mut json, mut captures, mut quick) = (None, Vec::new(), false);
    let (mut repeat, mut side, mut brief) = (None, throughput::Side::Ours, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => json = Some(arguments.next().context("--json needs a file")?),
            "--quick" => quick = true,
            "--repeat" => repeat = Some(arguments.next().context("--repeat needs a number")?.parse()?),
            "--brief" => brief = Some(throughput::brief as Brief),
            "--visible" => brief = Some(throughput::visible as Brief),
            "--side" => side = arguments.next().context("--side needs a name")?.parse()?,
            _ => captures.push(argument),
        }
    }
    if captures.is_empty() {
        captures = capture::names();
    }
    if let Some(rounds) = repeat {
        return captures.iter().try_for_each(|name| throughput::repeat(name, side, rounds));
    }
    if let Some(brief) = brief {
        return print_brief(brief, &captures);
    }
    let mut report = report::BenchReport::new();
    for name in &captures {
        if let Some(measured) = throughput::measure(name)? {
            let memory = memory::measure(&measured.capture, &capture::events(name)?);
            // Where the block sizes do not match nothing is ever stored: there is no block to divide by.
            report.memory.extend((memory.resident > 0).then_some(memory));
            report.throughput.push(measured);
        }
    }
    let sizes = if quick { &SIZES[..1] } else { &SIZES[..] };
    for &(resident, what) in sizes {
        let events = Talk::events_until(resident, 1);
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

/// One line about a capture.
type Brief = fn(&str) -> Result<Option<String>>;

#[expect(clippy::print_stdout, reason = "what the program is for")]
fn print_brief(brief: Brief, captures: &[String]) -> Result<()> {
    for name in captures {
        if let Some(line) = brief(name)? {
            println!("{line}");
        }
    }
    Ok(())
}
