//! Sets Radixscope up, runs it, tests it and measures it; knows commands and files, nothing of what they compute.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this program talks to a terminal")]

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

mod bench;
mod check;
mod components;
mod demo;
mod dist;
mod fuzz;
mod live;
mod manifests;
mod page;
mod process;
mod sbom;
mod screens;
mod setup;
mod soak;
mod steps;
mod test;
mod wheel;
mod workspace;

use workspace::Workspace;

/// Everything a person does with this repository. The two that matter first: `demo` and `test`.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Show the simulated cluster in a browser: sets up what is missing, builds, starts the server
    Demo {
        /// With what a simulated cluster does not need: Kubernetes, object storage, Parquet, OTLP export, the page's tokenizer
        #[arg(long)]
        full: bool,
        /// Options for the server, after `--`; `cargo xtask demo -- --help` lists them
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Run the tests that each change must pass: sets up what is missing, builds, tests
    Test {
        /// Instead what is left out because it takes long, or one part of that
        #[arg(value_enum)]
        part: Option<test::TestPart>,
        /// Recordings for it: folders, or names of the repository's own; all of these when none is named
        recordings: Vec<String>,
        /// Options for its program, after `--`
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Measure: throughput, memory, latency, sizes; prints one table, keeps `target/bench/*.json`
    Bench {
        /// Only these; everything when none is named
        #[arg(value_enum)]
        parts: Vec<bench::BenchPart>,
        /// Options for the measuring programs, after `--`
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Check form: formatting, spelling, licences, lints for host and browser
    Check,
    /// Install what a command needs, under `target/`, and do nothing else
    Setup {
        /// What to set up for
        #[arg(value_enum, default_value_t = setup::Purpose::All)]
        purpose: setup::Purpose,
    },
    /// Compare what Radixscope shows with a real Dynamo, which scripts outside the repository start
    Live(live::Args),
    /// Attach Radixscope late to a real Dynamo and hold it against one that was there from the start
    Late(live::late::Args),
    /// Run the fuzz targets of what comes from outside, each for a while
    Fuzz(fuzz::Args),
    /// Render what is for Kubernetes with kubectl and Helm and validate it, without a cluster
    Manifests,
    /// Run one server for hours among workers, viewers, brokers and a disk that come, go and fail; memory, losses and digests judged
    Soak(soak::Args),
    /// Make screenshots of every panel, in `target/screens`
    Screens(screens::Args),
    /// Build the one binary with the page inside, as a file, an archive and a wheel, in `target/dist`
    Dist(dist::Args),
    /// List what that binary is made of, as a CycloneDX document in `target/dist`
    Sbom,
}

fn main() -> ExitCode {
    let Some(command) = Cli::parse().command else {
        return match Cli::command().print_help() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    };
    let done = process::end_children_on_signals().and_then(|()| run(command));
    if process::stopping() {
        return ExitCode::from(process::EXIT_INTERRUPTED);
    }
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    match command {
        Command::Demo { full, args } => {
            let parts = if full { demo::Parts::All } else { demo::Parts::Needed };
            demo::run(&workspace, parts, &args)
        }
        Command::Test { part: None, .. } => test::run(&workspace),
        Command::Test { part: Some(part), recordings, args } => {
            test::run_part(&workspace, part, &[args, recordings].concat())
        }
        Command::Check => check::run(&workspace),
        Command::Setup { purpose } => setup::run(&workspace, purpose),
        Command::Bench { parts, args } => bench::run(&workspace, &parts, &args),
        Command::Fuzz(args) => fuzz::run(&workspace, &args),
        Command::Soak(args) => soak::run(&workspace, &args),
        Command::Screens(args) => screens::run(&workspace, &args),
        Command::Manifests => manifests::run(&workspace),
        Command::Live(args) => live::run(&workspace, &args),
        Command::Late(args) => live::late::run(&workspace, &args),
        Command::Dist(args) => dist::run(&workspace, &args),
        Command::Sbom => sbom::run(&workspace),
    }
}
