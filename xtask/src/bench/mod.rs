//! `cargo xtask bench`: runs every measurement, each a program of its own, and puts the figures into one table.
//!
//! A measuring program writes JSON to the file that `--json` names. What of it belongs into the table are its
//! `rows`: `[{"what": …, "value": number, "unit": …, "budget": text or absent, "within": bool or absent}]`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde_json::Value;

use crate::{
    demo, page,
    setup::{self, Purpose},
    steps::Steps,
    workspace::Workspace,
};

mod core;
mod machine;

/// The package of most measuring programs; only the commands that start one build it.
pub(crate) const PACKAGE: &str = "radixscope-bench";

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchPart {
    /// Decoding, folding, memory and what-if, beside Dynamo's own router crate
    Core,
    /// From an event on NATS to a viewer's socket, with few viewers and with many
    Latency,
    /// The page's main thread with the ledger open, at 1,000 decisions a second
    Ledger,
    /// The page with prefix trees of 10,000 to a million blocks; `-- --blocks 1m` for one, `-- --serve 1m` to look at it
    Tree,
    /// Sent, received and reported as lost, for bursts of up to 1.2 million events and for breaks; only when it is named
    Loss,
    /// A worker's whole tree of a million blocks: from asking to complete, with bytes and memory
    Dump,
    /// 10,000 ZeroMQ messages a second from 100 publishers: processor time
    Zmq,
    /// KV events of 1,000 workers per second of one core, over NATS and over ZeroMQ
    Scale,
    /// Memory after 100,000 workers, 256 at a time
    Rollouts,
    /// Start time, idle processor time, memory of a viewer, and a viewer's gaps while others attack; memory over rollouts; about 8 min
    Attack,
    /// Sizes of what the browser loads
    Sizes,
    /// From the request of the page to its first figures, over loopback and over a slow line
    FirstView,
    /// Counterfactuals of 10,000 decisions, natively and in the browser
    Counterfactual,
    /// Where the reuse of 10,000 decisions is lost, natively and in the browser
    Reuse,
    /// The simulated reference scenario: seven levels under two routers
    Scenario,
    /// The colour of TTFT against the simulator's exact percentiles: ten minutes at seven levels
    Colours,
    /// Log lines read, requests simulated and simulated again, a page of a large tree written
    Speed,
    /// What recording to files costs, its size, and the time of a jump
    Recording,
    /// An hour's recording in the page: jumps and scrubbing at 100,000 and a million blocks; memory of the server's history
    Moments,
    /// 100 recording servers killed at random points of their writing, and what each leaves; only when it is named
    Killed,
    /// Three views left open for two hours among sleep and changes of network: memory, long tasks; only when it is named
    Endurance,
}

/// A program that measures.
#[derive(Clone, Copy)]
struct Program {
    package: &'static str,
    name: &'static str,
    /// Whether it is an example of its package.
    is_example: bool,
}

impl BenchPart {
    const fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Latency => "latency",
            Self::Ledger => "ledger",
            Self::Tree => "tree",
            Self::Loss => "loss",
            Self::Dump => "dump",
            Self::Zmq => "zmq",
            Self::Scale => "scale",
            Self::Rollouts => "rollouts",
            Self::Attack => "attack",
            Self::Sizes => "sizes",
            Self::FirstView => "first-view",
            Self::Counterfactual => "counterfactual",
            Self::Reuse => "reuse",
            Self::Scenario => "scenario",
            Self::Colours => "colours",
            Self::Speed => "speed",
            Self::Recording => "recording",
            Self::Moments => "moments",
            Self::Killed => "killed",
            Self::Endurance => "endurance",
        }
    }

    /// The program that measures.
    const fn program(self) -> Program {
        let (package, name) = match self {
            Self::Core => ("radixscope-oracle", "bench"),
            Self::Latency => (PACKAGE, "latency"),
            Self::Ledger => (PACKAGE, "ledger"),
            Self::Loss => (PACKAGE, "loss"),
            Self::Dump => (PACKAGE, "dump"),
            Self::Zmq => (PACKAGE, "zmq"),
            Self::Scale => (PACKAGE, "scale"),
            Self::Rollouts => ("radixscope-intake", "rollouts"),
            Self::Tree => (PACKAGE, "tree"),
            Self::FirstView => (PACKAGE, "first_view"),
            Self::Counterfactual => (PACKAGE, "counterfactual"),
            Self::Reuse => (PACKAGE, "reuse"),
            Self::Attack => (PACKAGE, "attack"),
            Self::Scenario => ("radixscope-insight", "scenario"),
            Self::Colours => ("radixscope-insight", "colours"),
            Self::Speed => ("radixscope-export", "speed"),
            Self::Recording => ("radixscope-recording", "recording"),
            Self::Moments => (PACKAGE, "moments"),
            Self::Killed => (PACKAGE, "killed"),
            Self::Endurance => (PACKAGE, "endurance"),
            Self::Sizes => (PACKAGE, "sizes"),
        };
        Program { package, name, is_example: self.is_example() }
    }

    /// Whether it needs the page, the server and their tools.
    const fn needs_server(self) -> bool {
        !self.is_example() && !matches!(self, Self::Core)
    }

    const fn is_example(self) -> bool {
        matches!(self, Self::Rollouts | Self::Scenario | Self::Colours | Self::Speed | Self::Recording)
    }
}

impl Program {
    fn path(self, workspace: &Workspace) -> PathBuf {
        let folder = workspace.target.join("release");
        if self.is_example { folder.join("examples").join(self.name) } else { folder.join(self.name) }
    }
}

/// Measures `parts`, or everything; `args` go to the measuring programs.
///
/// # Errors
/// When something cannot be built or a measurement does not end well. A missed budget is shown, not an error.
pub(crate) fn run(workspace: &Workspace, parts: &[BenchPart], args: &[String]) -> Result<ExitCode> {
    // These take from half an hour on, or give no figure of speed: only who names them gets them.
    let is_usual =
        |part: &BenchPart| !matches!(part, BenchPart::Loss | BenchPart::Killed | BenchPart::Endurance);
    let usual: Vec<_> = BenchPart::value_variants().iter().copied().filter(is_usual).collect();
    let parts = if parts.is_empty() { usual.as_slice() } else { parts };
    let needs_server = parts.iter().any(|part| part.needs_server());
    let missing = if needs_server { setup::missing(workspace, Purpose::Test) } else { Vec::new() };
    let programs: Vec<_> = parts.iter().map(|part| part.program()).collect();
    let mut steps = Steps::new(workspace, missing.len() + if needs_server { 2 } else { 0 } + 1 + parts.len());
    if needs_server {
        setup::meet(&mut steps, &missing)?;
        page::build(&mut steps, workspace, page::Build::Small)?;
        demo::build_server(&mut steps, workspace, "release", &demo::SHIPPED)?;
    }
    steps.step("The measuring programs", "about 3 min on two cores", |step| {
        let mut command = workspace.cargo(["build", "--locked", "--release"]);
        for Program { package, name, is_example } in &programs {
            command.args(["--package", package, if *is_example { "--example" } else { "--bin" }, name]);
        }
        step.run(command)
    })?;
    let folder = workspace.target.join("bench");
    fs::create_dir_all(&folder).context("making the folder for the figures")?;
    let mut rows = Vec::new();
    for part in parts {
        let file = folder.join(format!("{}.json", part.name()));
        let mut report = steps.step(&format!("Measuring {}", part.name()), "", |step| {
            let _ = fs::remove_file(&file);
            let mut command = workspace.command(part.program().path(workspace));
            command
                .args(args)
                .arg("--json")
                .arg(&file)
                .env("RADIXSCOPE_BIN", workspace.target.join("release/radixscope"))
                .env("RADIXSCOPE_NATS_SERVER", workspace.tools_bin().join("nats-server"));
            step.run_with(command, |_| true)?;
            read_report(&file)
        })?;
        report["machine"] = machine::describe().into();
        fs::write(&file, format!("{report:#}\n")).context("writing the figures")?;
        rows.extend(report["rows"].as_array().cloned().unwrap_or_default());
    }
    println!("\n{}\n\n{}", machine::describe(), table(&rows));
    println!("Also in {}", workspace.shown(&PathBuf::from(&folder)));
    Ok(ExitCode::SUCCESS)
}

/// Builds measuring programs and the server without optimisation, as one step: beside tests, hardly anything is compiled for them.
///
/// # Errors
/// When the compiler says so.
pub(crate) fn build_with_server(
    steps: &mut Steps<'_>,
    workspace: &Workspace,
    programs: &[&str],
) -> Result<()> {
    steps.step(
        "The server and the measuring program",
        "about 3 min on two cores, seconds when little changed",
        |step| {
            let mut command =
                workspace.cargo(["build", "--locked", "--package", "radixscope", "--bin", "radixscope"]);
            command.args(["--package", PACKAGE]);
            for program in programs {
                command.args(["--bin", program]);
            }
            step.run(command)
        },
    )
}

/// A program's report, with rows.
fn read_report(file: &Path) -> Result<Value> {
    let text = fs::read_to_string(file).context("the program wrote no report")?;
    let mut report: Value = serde_json::from_str(&text).context("the program's report")?;
    if report["rows"].is_null() {
        report["rows"] = core::rows(&report).into();
    }
    if report["rows"].as_array().is_none_or(Vec::is_empty) {
        bail!("the program measured nothing");
    }
    Ok(report)
}

/// The figures as a Markdown table.
fn table(rows: &[Value]) -> String {
    let mut text = String::from("| What | Figure | Budget | |\n|---|---:|---|---|\n");
    for row in rows {
        let within = match row["within"].as_bool() {
            Some(true) => "within",
            Some(false) => "missed",
            None => "",
        };
        text.push_str(&format!(
            "| {} | {} {} | {} | {within} |\n",
            row["what"].as_str().unwrap_or_default(),
            row["value"].as_f64().map(shown).unwrap_or_default(),
            row["unit"].as_str().unwrap_or_default(),
            row["budget"].as_str().unwrap_or_default(),
        ));
    }
    text
}

/// A figure with about three significant digits.
fn shown(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 || size == 0.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_missed_budget_is_named_in_the_table() {
        let rows = [
            json!({"what": "decode and fold", "value": 2.345, "unit": "× RadixTree", "budget": "≥ 2", "within": true}),
            json!({"what": "p95", "value": 312.0, "unit": "ms", "budget": "≤ 250 ms", "within": false}),
        ];
        let table = table(&rows);
        assert!(table.contains("| decode and fold | 2.35 × RadixTree | ≥ 2 | within |"), "{table}");
        assert!(table.contains("| p95 | 312 ms | ≤ 250 ms | missed |"), "{table}");
    }
}
