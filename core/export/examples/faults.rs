//! Simulates each fault with several seeds in virtual time and prints what the checks make of it: whether its cause is named
//! first, how long that takes, whether the fix is one to copy, and what else was found.
//!
//! `faults [--seeds N] [--seed FIRST] [--spare SECONDS] [--findings] [FAULT …]`; `healthy` is a fault that must raise nothing.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "its table is what it is for")]
#![expect(
    clippy::expect_used,
    reason = "a measuring program: a wrong option or a fault that cannot be simulated ends it"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use radixscope_captures::{Played, contradictions, is_incomplete, play};
use radixscope_export::FindingFilter;
use radixscope_export::finding_ticket::{finding_ticket, setting_line};
use radixscope_insight::check::Checks;
use radixscope_model::id::Millis;
use radixscope_model::record::Finding;
use radixscope_sim::{Config, Fault, FaultPlan};
use radixscope_state::cluster::Cluster;

const START: Millis = Millis(1_767_225_600_000);
/// What is not wrong from the start begins after so many seconds: what is usual is known by then.
const BEGINS_S: u64 = 180;
/// A fault that is not named within this time counts as missed, seconds.
const PATIENCE_S: u64 = 300;
/// Name of the run without a fault.
const HEALTHY: &str = "healthy";

/// What is right for a fault.
struct Expected {
    fault: Fault,
    /// Code of its finding.
    code: &'static str,
    /// Lines to copy, one of which the finding has to offer; `#` stands for a number. Empty: there is nothing to set.
    fix: &'static [&'static str],
    /// Codes that name the same event, reported beside it.
    also: &'static [&'static str],
}

const WEIGHT: &[&str] = &["--kv-overlap-score-weight #"];

const fn expected(fault: Fault, code: &'static str, fix: &'static [&'static str]) -> Expected {
    Expected { fault, code, fix, also: &[] }
}

const ALL: [Expected; 21] = [
    expected(Fault::BlockSize, "block_size_mismatch", &["--block-size 64"]),
    expected(Fault::BlockSizeOversize, "block_size_mismatch", &["--kv-block-size 64"]),
    expected(Fault::BlockSizePartial, "block_size_mismatch", &["kv_cache_config:\n  tokens_per_block: 32"]),
    expected(Fault::BlockSizeCard, "block_size_mismatch", &["--block-size 64"]),
    expected(Fault::NoEvents, "no_events", KV_EVENTS),
    expected(Fault::NoEventsOne, "no_events", KV_EVENTS),
    expected(Fault::HotWorker, "hot_worker", WEIGHT),
    expected(Fault::StarvedWorker, "starved_worker", WEIGHT),
    expected(Fault::Gap, "event_gaps", &["write_deadline: \"10s\""]),
    expected(Fault::KillWorker, "worker_gone", &["--migration-limit #"]),
    expected(Fault::GhostWorker, "ghost_worker", &[]),
    Expected {
        also: &["router_restarted"],
        ..expected(Fault::RouterRestart, "cold_tree", &["DYN_STORE_KV=etcd"])
    },
    expected(Fault::HashSeed, "engine_hashes_differ", &["PYTHONHASHSEED=0"]),
    expected(Fault::MixedPlanes, "event_planes_mixed", &["--enable-local-indexer"]),
    expected(Fault::UnknownParents, "unknown_parents", &[]),
    expected(Fault::UnknownRemovals, "unknown_removals", &[]),
    expected(Fault::Churn, "churn", &["--gpu-memory-utilization #"]),
    expected(Fault::MemoryFull, "memory_full", &["--max-num-seqs #"]),
    expected(Fault::Slow, "prefill_slower", &["nvidia-smi -q -d PERFORMANCE,CLOCK,POWER,TEMPERATURE"]),
    expected(Fault::Replicas, "replicas_disagree", &["--router-replica-sync"]),
    expected(
        Fault::Approximate,
        "approximate_mode",
        &["DYN_KV_EVENTS=true", "DYN_ROUTER_USE_KV_EVENTS=true"],
    ),
];

const KV_EVENTS: &[&str] = &[
    "--kv-events-config '{\"publisher\":\"zmq\",\"topic\":\"kv-events\",\"endpoint\":\"tcp://*:20080\",\"enable_kv_cache_events\":true}'",
];

/// What one run showed.
#[derive(Default)]
struct Run {
    /// Seconds from the beginning of the fault until its finding was active.
    named_s: Option<u64>,
    /// Seconds in which its finding was active, and of these, those in which it was the first one listed.
    active_s: u64,
    first_s: u64,
    /// Whether a line to copy was as expected when it was last active.
    is_fix_right: bool,
    /// Lines to copy of its finding, as of then.
    lines: Vec<String>,
    /// Other findings with whether they named a cause when they were last active: a symptom may come before its cause is
    /// certain.
    beside: BTreeMap<String, bool>,
    /// Settings without a value.
    incomplete: BTreeSet<String>,
    /// Remedies of symptoms, which their cause has.
    remedies_of_symptoms: BTreeSet<String>,
    contradictions: BTreeSet<String>,
    /// Tickets of all findings as they were first, by code.
    findings: BTreeMap<String, String>,
}

impl Run {
    fn of(expected: Option<&Expected>, seed: u64, spare_s: u64) -> Self {
        let plan = expected.map(|of| {
            let fault = of.fault;
            FaultPlan { fault, after_ms: if fault.is_set_up() { 0 } else { BEGINS_S * 1_000 } }
        });
        let begins_s = plan.map_or(0, |plan| plan.after_ms / 1_000);
        let config = Config { fault: plan, seed, ..Config::default() };
        let played = Played { start: START, warm_up_s: 0, live_s: begins_s + PATIENCE_S };
        let (mut run, mut checks, mut cluster) = (Self::default(), Checks::default(), Cluster::default());
        let second = |now: Millis, cluster: &mut Cluster| {
            checks.run(now, cluster);
            let at_s = now.since(START) / 1_000;
            run.look(cluster, expected, at_s.saturating_sub(begins_s));
            run.named_s.is_none_or(|named_s| at_s < begins_s + named_s + spare_s)
        };
        play(config, played, &mut cluster, second).expect("every fault can be simulated");
        run
    }

    fn look(&mut self, cluster: &Cluster, expected: Option<&Expected>, at_s: u64) {
        let active = FindingFilter::default().of(cluster);
        for finding in &active {
            let ticket = || format!("after {at_s} s\n{}", finding_ticket(cluster, finding));
            self.findings.entry(finding.code.to_string()).or_insert_with(ticket);
            let is_own = expected.is_some_and(|expected| finding.code == expected.code);
            if !is_own {
                self.beside.insert(finding.code.to_string(), !finding.cause.is_empty());
            }
            if !is_own && !finding.cause.is_empty() {
                self.remedies_of_symptoms
                    .extend(finding.fix.iter().map(|fix| format!("{}: {}", finding.code, setting_line(fix))));
            }
            let incomplete = finding.fix.iter().filter(|fix| is_incomplete(fix));
            self.incomplete.extend(incomplete.map(|fix| format!("{}: {}", finding.code, setting_line(fix))));
        }
        self.contradictions.extend(contradictions(active.iter().copied()));
        let Some(expected) = expected else { return };
        let Some(own) = active.iter().find(|finding| finding.code == expected.code) else { return };
        self.named_s.get_or_insert(at_s);
        self.active_s += 1;
        self.first_s += u64::from(active.first().is_some_and(|first| first.code == expected.code));
        self.lines = lines(own);
        self.is_fix_right = match expected.fix {
            [] => !own.fix.is_empty() && own.cause.is_empty(),
            fix => fix.iter().any(|fix| self.lines.iter().any(|line| is_like(line, fix))),
        };
    }
}

/// What is to be copied from a finding.
fn lines(finding: &Finding) -> Vec<String> {
    finding.fix.iter().map(setting_line).filter(|line| !line.is_empty()).collect()
}

/// Whether a line is as expected; `#` in that stands for a number.
fn is_like(line: &str, expected: &str) -> bool {
    match expected.split_once('#') {
        Some((before, _)) => line.strip_prefix(before).is_some_and(|rest| rest.parse::<f64>().is_ok()),
        None => line == expected,
    }
}

fn main() -> ExitCode {
    let (mut seeds, mut first, mut spare_s, mut named, mut shows) = (10, 1, 90, Vec::new(), false);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || args.next().and_then(|n| n.parse().ok()).expect("a number follows");
        match arg.as_str() {
            "--seeds" => seeds = number(),
            "--seed" => first = number(),
            "--spare" => spare_s = number(),
            "--findings" => shows = true,
            option if option.starts_with('-') => panic!("unknown option {option}"),
            fault => named.push(fault.to_owned()),
        }
    }
    let is_meant = |name: &str| named.is_empty() || named.iter().any(|n| n == name);
    println!(
        "| Fault | Finding | Named | Listed first | Until named, s (min, median, max) | Right fix | Symptoms beside it | Else found | Wrong advice |"
    );
    println!("|---|---|---:|---:|---:|---|---|---|---|");
    let all = ALL.iter().map(Some).chain([None]);
    let mut all_right = true;
    for expected in all.filter(|expected| is_meant(expected.map_or(HEALTHY, |of| of.fault.name()))) {
        let runs: Vec<Run> = (first..first + seeds).map(|seed| Run::of(expected, seed, spare_s)).collect();
        let (row, is_right) = row(expected, &runs);
        println!("{row}");
        for (run, seed) in runs.iter().zip(first..).filter(|_| shows) {
            run.findings.values().for_each(|text| println!("\nseed {seed}: {text}"));
        }
        all_right &= is_right;
    }
    if all_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn row(expected: Option<&Expected>, runs: &[Run]) -> (String, bool) {
    let all = runs.len();
    let of_runs = |number: usize| format!("{number}/{all}");
    let mut seconds: Vec<u64> = runs.iter().filter_map(|run| run.named_s).collect();
    seconds.sort_unstable();
    let named = seconds.len();
    let times = match seconds.as_slice() {
        [] => "never".to_owned(),
        [least, .., most] => format!("{least}, {}, {most}", seconds[named / 2]),
        [only] => only.to_string(),
    };
    let right = runs.iter().filter(|run| run.is_fix_right).count();
    let (first, active) = runs.iter().fold((0, 0), |(f, a), run| (f + run.first_s, a + run.active_s));
    let lines: BTreeSet<&str> = runs.iter().filter_map(|run| run.lines.first()).map(String::as_str).collect();
    let lines: Vec<String> =
        lines.into_iter().take(3).map(|line| format!("`{}`", line.replace('\n', " "))).collect();
    let also = expected.map_or(&[][..], |of| of.also);
    let beside = |is_symptom: bool| -> Vec<BTreeSet<String>> {
        let of_run = |run: &Run| {
            let codes = run.beside.iter().filter(|(_, named)| **named == is_symptom).map(|(code, _)| code);
            codes.filter(|code| !also.contains(&code.as_str())).cloned().collect()
        };
        runs.iter().map(of_run).collect()
    };
    let (symptoms, others) = (counted(beside(true).iter()), counted(beside(false).iter()));
    let wrong: Vec<String> = [
        ("no value", counted(runs.iter().map(|run| &run.incomplete))),
        ("of a symptom", counted(runs.iter().map(|run| &run.remedies_of_symptoms))),
        ("contradiction", counted(runs.iter().map(|run| &run.contradictions))),
    ]
    .into_iter()
    .filter(|(_, what)| what != NONE)
    .map(|(kind, what)| format!("{kind}: {what}"))
    .collect();
    let is_right = others == NONE
        && wrong.is_empty()
        && expected.is_none_or(|_| named == all && right == all && first == active);
    let name = expected.map_or(HEALTHY, |of| of.fault.name());
    let share = format!("{:.0} %", first as f64 / active.max(1) as f64 * 100.0);
    let row = format!(
        "| {name} | {} | {} | {} | {times} | {} {} | {} | {others} | {} |",
        expected.map_or("none", |of| of.code),
        of_runs(named),
        if active == 0 { "–".to_owned() } else { share },
        of_runs(right),
        lines.join(" "),
        symptoms,
        if wrong.is_empty() { NONE.to_owned() } else { wrong.join("; ") },
    );
    (row, is_right)
}

const NONE: &str = "nothing";

/// Each of some names, with the number of runs that had it.
fn counted<'a>(runs: impl Iterator<Item = &'a BTreeSet<String>>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for name in runs.flatten() {
        *counts.entry(name.replace('\n', " ").replace('|', "\\|")).or_default() += 1;
    }
    let text: Vec<String> = counts.into_iter().map(|(name, runs)| format!("{name} ×{runs}")).collect();
    if text.is_empty() { NONE.to_owned() } else { text.join(", ") }
}
