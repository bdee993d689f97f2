//! The figures as tables for people and as JSON.

use std::process::Command;

use serde::Serialize;

use crate::memory::{Memory, SnapshotCost};
use crate::scoring::{Counterfactual, Scoring};
use crate::throughput::{Comparison, Costs, Throughput};

/// Least ratio of throughputs, decoding included.
const LEAST_RATIO: f64 = 2.0;
/// Largest share of their memory per resident block.
const LARGEST_SHARE: f64 = 0.45;
/// Captures of fewer resident blocks have no budget: fixed parts are most of their memory.
const LEAST_RESIDENT: u64 = 10_000;
/// Longest time to score a thousand workers, look-up included.
const SCORING_MS: f64 = 2.0;
/// Least ratio of throughputs, look-up included.
const SCORING_RATIO: f64 = 1.0;

#[derive(Serialize)]
pub(crate) struct BenchReport {
    machine: Machine,
    /// Version of the crate compared with.
    rival: &'static str,
    pub(crate) throughput: Vec<Throughput>,
    pub(crate) memory: Vec<Memory>,
    pub(crate) snapshots: Vec<SnapshotCost>,
    pub(crate) scoring: Vec<Scoring>,
    pub(crate) counterfactual: Vec<Counterfactual>,
}

#[derive(Serialize)]
struct Machine {
    cpu: String,
    cores: usize,
    rustc: String,
}

impl Machine {
    fn here() -> Self {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu =
            cpuinfo.lines().find_map(|l| l.strip_prefix("model name")?.split_once(": ").map(|(_, v)| v));
        let rustc = Command::new("rustc").arg("--version").output().ok();
        Self {
            cpu: cpu.unwrap_or("unknown").to_owned(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            rustc: rustc.map_or_else(String::new, |o| String::from_utf8_lossy(&o.stdout).trim().to_owned()),
        }
    }
}

impl BenchReport {
    pub(crate) fn new() -> Self {
        Self {
            machine: Machine::here(),
            rival: "dynamo-kv-router 1.6.1, RadixTree",
            throughput: Vec::new(),
            memory: Vec::new(),
            snapshots: Vec::new(),
            scoring: Vec::new(),
            counterfactual: Vec::new(),
        }
    }

    #[expect(clippy::print_stdout, reason = "what the program is for")]
    pub(crate) fn print(&self) {
        let Machine { cpu, cores, rustc } = &self.machine;
        println!("{cpu}, {cores} cores, {rustc}\nagainst {}\n", self.rival);
        println!(
            "{:<22} {:<10} {:>8} {:<18} {:>10} {:>10} {:>7}  quartiles",
            "capture", "wire", "blocks", "million a second", "ours", "theirs", "ratio"
        );
        for t in &self.throughput {
            let head = format!("{:<22} {:<10} {:>8}", t.capture, t.wire, t.blocks);
            print_comparison(&head, "decode + apply", &t.decode_and_apply);
            print_comparison("", "  in events", &t.decode_and_apply_events);
            let Costs { ours_ns_per_event, theirs_ns_per_event, ours_ns_per_block, theirs_ns_per_block } =
                &t.costs;
            println!(
                "{:<42} {:<18} {ours_ns_per_event:>10.1} {theirs_ns_per_event:>10.1}",
                "", "  ns an event"
            );
            println!(
                "{:<42} {:<18} {ours_ns_per_block:>10.1} {theirs_ns_per_block:>10.1}",
                "", "  ns a block"
            );
            print_comparison("", "apply only", &t.apply);
            print_comparison("", "overlap", &t.overlap);
        }
        let worst = self.throughput.iter().map(|t| t.decode_and_apply.ratio).fold(f64::INFINITY, f64::min);
        println!(
            "\ndecode + apply: {worst:.2} × at least, budget {LEAST_RATIO} ×: {}",
            met(worst >= LEAST_RATIO)
        );
        println!(
            "\n{:<22} {:>9} {:>9} {:>12} {:>12} {:>12} {:>7} {:>7} {:>7}",
            "bytes", "nodes", "resident", "ours", "heap_bytes", "theirs", "ours/b", "their/b", "share"
        );
        for m in &self.memory {
            println!(
                "{:<22} {:>9} {:>9} {:>12} {:>12} {:>12} {:>7.1} {:>7.1} {:>7.3}",
                m.what,
                m.nodes,
                m.resident,
                m.ours_bytes,
                m.ours_heap_bytes,
                m.theirs_bytes,
                m.ours_per_block,
                m.theirs_per_block,
                m.share
            );
        }
        let is_judged = |m: &&Memory| m.resident > LEAST_RESIDENT;
        let worst = self.memory.iter().filter(is_judged).map(|m| m.share).fold(0.0, f64::max);
        println!(
            "\nmemory above {LEAST_RESIDENT} blocks: {worst:.3} of theirs at most, budget {LARGEST_SHARE}: {}",
            met(worst <= LARGEST_SHARE)
        );
        println!(
            "\n{:<22} {:>9} {:>12} {:>7} {:>9} {:>10} {:>11}",
            "snapshot", "nodes", "bytes", "parts", "b/node", "encode ms", "restore ms"
        );
        for s in &self.snapshots {
            let per_node = s.bytes as f64 / s.nodes.max(1) as f64;
            println!(
                "{:<22} {:>9} {:>12} {:>7} {:>9.1} {:>10.1} {:>11.1}",
                s.what, s.nodes, s.bytes, s.parts, per_node, s.encode_ms, s.restore_ms
            );
        }
        self.print_scoring();
    }

    #[expect(clippy::print_stdout, reason = "what the program is for")]
    fn print_scoring(&self) {
        println!(
            "\n{:<30} {:>8} {:>8} {:>9} {:>10} {:>7}",
            "scoring", "workers", "blocks", "ours ms", "theirs ms", "ratio"
        );
        for s in &self.scoring {
            println!(
                "{:<30} {:>8} {:>8} {:>9.3} {:>10.3} {:>7.2}",
                s.what, s.workers, s.prompt_blocks, s.ours_ms, s.theirs_ms, s.comparison.ratio
            );
        }
        let worst = self.scoring.iter().map(|s| s.ours_ms).fold(0.0, f64::max);
        let ratio = self.scoring.iter().map(|s| s.comparison.ratio).fold(f64::INFINITY, f64::min);
        println!(
            "\nscoring: {worst:.3} ms at most, budget {SCORING_MS} ms; {ratio:.2} × at least, budget {SCORING_RATIO} ×: {}",
            met(worst <= SCORING_MS && ratio >= SCORING_RATIO)
        );
        println!("\n{:<30} {:>9} {:>10} {:>10}", "counterfactual", "decisions", "candidates", "median ms");
        for c in &self.counterfactual {
            println!("{:<30} {:>9} {:>10} {:>10.2}", c.what, c.decisions, c.candidates, c.median_ms);
        }
    }
}

#[expect(clippy::print_stdout, reason = "what the program is for")]
fn print_comparison(head: &str, what: &str, comparison: &Comparison) {
    let [low, high] = comparison.ratio_quartiles;
    println!(
        "{head:<42} {what:<18} {:>10.2} {:>10.2} {:>7.2}  {low:.2} – {high:.2}",
        comparison.ours_per_s / 1e6,
        comparison.theirs_per_s / 1e6,
        comparison.ratio
    );
}

fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}
