//! Runs one server for hours among everything that happens to one, and judges it: does its memory grow, do descriptors stay open, does
//! every viewer agree with it, is every loss counted. Paced by the clock; what it does at random follows from the printed seed. All it
//! starts is on this machine and ends with it.
//!
//! `RADIXSCOPE_BIN` names another binary.
#![forbid(unsafe_code)]

mod checkpoint;
mod clock;
mod deployment;
mod faults;
mod log;
mod plot;
mod run;
mod targets;
mod verdict;
mod viewers;
mod worker;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser as _, Subcommand};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::LocalSet;

#[derive(clap::Parser)]
struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// Hours that this part lasts
    #[arg(long, default_value_t = 1.0)]
    hours: f64,
    /// What random choices follow from [default: one that is printed]
    #[arg(long)]
    seed: Option<u64>,
    /// KV events a second
    #[arg(long, default_value_t = 1_000)]
    events_per_s: u64,
    /// Viewers at a time, at most
    #[arg(long, default_value_t = 20)]
    viewers: u64,
    /// Minutes until everything that the server keeps is full; memory counts from then on
    #[arg(long, default_value_t = 8.0)]
    warm_up_minutes: f64,
    /// Checkpoint file of the new run
    #[arg(long, default_value = "soak.jsonl", conflicts_with = "continued")]
    checkpoint: PathBuf,
    /// Checkpoint file of a run that this part continues
    #[arg(long = "continue", value_name = "FILE")]
    continued: Option<PathBuf>,
    /// Write the picture of all parts here
    #[arg(long)]
    plot: Option<PathBuf>,
    /// Run nothing: judge the checkpoint file once more
    #[arg(long)]
    judge: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Be a target of scrapes: what a soak starts, kills and starts again
    #[command(hide = true)]
    Target {
        /// Port to listen on
        port: u16,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(Command::Target { port }) = options.command {
        targets::serve(port).await;
        return ExitCode::SUCCESS;
    }
    let path = options.continued.as_deref().unwrap_or(&options.checkpoint);
    if options.continued.is_none() && !options.judge {
        // A new run does not continue what is left of another.
        let _ = std::fs::remove_file(path);
    }
    if !options.judge {
        let seed = options.seed.unwrap_or_else(|| radixscope_tests::viewer::now_ms().0);
        let plan = run::Plan {
            seed,
            lasts: Duration::from_secs_f64(options.hours * 3_600.0),
            warm_up: Duration::from_secs_f64(options.warm_up_minutes * 60.0),
            events_per_s: options.events_per_s,
            viewers: options.viewers,
            checkpoint: path.to_owned(),
        };
        // Conditions that are waited for borrow what they look at, so the tasks that wait stay on this thread.
        let tasks = LocalSet::new();
        let ran = tasks.run_until(async {
            tokio::select! {
                () = run::part(&plan) => true,
                () = asked_to_end() => false,
            }
        });
        // What it has started ends with it.
        if !ran.await {
            eprintln!("interrupted; --continue {} continues it", path.display());
        }
    }
    judge(path, options.plot.as_deref())
}

/// Ctrl-C, or the request to end.
async fn asked_to_end() {
    let mut terminated = signal(SignalKind::terminate()).expect("a signal can be taken");
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated.recv() => {}
    }
}

/// Prints the table and writes the picture. The exit code: 0 if every figure is within its budget, 1 if one is beyond, 2 if one is
/// not known.
fn judge(path: &Path, picture: Option<&Path>) -> ExitCode {
    let parts = match checkpoint::read(path) {
        Ok(parts) => parts,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let rows = verdict::rows(&parts);
    println!("{}", verdict::table(&rows));
    for left_out in parts.iter().flat_map(|part| &part.part.left_out) {
        println!("left out: {left_out}");
    }
    println!("checkpoints: {}", path.display());
    if let Some(picture) = picture {
        std::fs::write(picture, plot::svg(&parts))
            .unwrap_or_else(|error| panic!("{}: {error}", picture.display()));
        println!("plot: {}", picture.display());
    }
    match verdict::outcome(&rows) {
        verdict::Outcome::Beyond => ExitCode::FAILURE,
        verdict::Outcome::Unknown => ExitCode::from(2),
        verdict::Outcome::Within | verdict::Outcome::Figure => ExitCode::SUCCESS,
    }
}
