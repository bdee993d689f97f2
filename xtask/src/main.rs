//! Sets Radixscope up, runs it, tests it and measures it; knows commands and files, nothing of what they compute.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this program talks to a terminal")]

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

mod app;
mod check;
mod demo;
mod dist;
mod live;
mod process;
mod setup;
mod steps;
mod test;
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
        /// Options for the server, after `--`; `cargo xtask demo -- --help` lists them
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Run every check and every test: sets up what is missing, builds, tests
    Test,
    /// Check form only: formatting, lints for both targets, licences and spelling
    Check,
    /// Install what a command needs, under `target/`, and do nothing else
    Setup {
        /// What to set up for
        #[arg(value_enum, default_value_t = setup::Purpose::All)]
        purpose: setup::Purpose,
    },
    /// Compare what Radixscope shows with a real Dynamo, which scripts outside the repository start
    Live {
        /// Dynamo's version
        #[arg(value_enum)]
        version: live::Version,
    },
    /// Build the one binary with the app inside, ready to be copied, in `target/dist`
    Dist,
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
        Command::Demo { args } => demo::run(&workspace, &args),
        Command::Test => test::run(&workspace),
        Command::Check => check::run(&workspace),
        Command::Setup { purpose } => setup::run(&workspace, purpose),
        Command::Live { version } => live::run(&workspace, version),
        Command::Dist => dist::run(&workspace),
    }
}
