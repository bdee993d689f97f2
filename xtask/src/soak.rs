//! `cargo xtask soak`: one server for hours among everything that happens to one.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, bail};

use crate::{
    bench, demo, page,
    process::RunningProcess,
    setup::{self, Purpose},
    steps::Steps,
    test,
    workspace::Workspace,
};

/// Exit code of the program when the run was too short to know.
const UNKNOWN: u8 = 2;

/// How long, and where from.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Hours that this part of the run lasts
    #[arg(long)]
    hours: f64,
    /// Write the picture of the whole run here
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Checkpoint file of a run that this part continues [default: a new run, in target/soak.jsonl]
    #[arg(long = "continue", value_name = "FILE")]
    continued: Option<PathBuf>,
    /// Without optimisation: builds what the tests use anyway
    #[arg(long)]
    debug: bool,
    /// Options for the program, after `--`; `-- --help` lists them
    #[arg(last = true)]
    args: Vec<String>,
}

/// Builds, then runs until it has ended.
///
/// # Errors
/// When something cannot be built, or a figure is beyond its budget. That the run was too short to know is shown, with an exit code of
/// its own.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode> {
    let missing = setup::missing(workspace, Purpose::Soak);
    let mut steps = Steps::new(workspace, missing.len() + if args.debug { 1 } else { 3 });
    setup::meet(&mut steps, &missing)?;
    let profile = if args.debug { "debug" } else { "release" };
    if args.debug {
        // Without the page, which such a server reads from the disk when a browser asks for it.
        bench::build_with_server(&mut steps, workspace, &["soak"])?;
    } else {
        page::build(&mut steps, workspace, page::Build::Small)?;
        demo::build_server(&mut steps, workspace, "release", &demo::SHIPPED)?;
        steps.step("The program that soaks it", "about 3 min on two cores", |step| {
            let build = ["build", "--locked", "--release", "--package", bench::PACKAGE, "--bin", "soak"];
            step.run(workspace.cargo(build))
        })?;
    }
    let folder = workspace.target.join(profile);
    let mut command = test::with_programs(workspace.command(folder.join("soak")), workspace);
    command.env("RADIXSCOPE_BIN", folder.join("radixscope")).args(["--hours", &args.hours.to_string()]);
    // Paths are meant from where the command was given.
    let here = std::env::current_dir().context("the current folder")?;
    match &args.continued {
        Some(file) => command.arg("--continue").arg(here.join(file)),
        None => command.arg("--checkpoint").arg(workspace.target.join("soak.jsonl")),
    };
    if let Some(plot) = &args.plot {
        command.arg("--plot").arg(here.join(plot));
    }
    // Its output goes to the terminal: hours of it are no step.
    let status = RunningProcess::start(command.args(&args.args))?.wait()?;
    match status.code() {
        Some(0) => Ok(ExitCode::SUCCESS),
        Some(code) if code == i32::from(UNKNOWN) => Ok(ExitCode::from(UNKNOWN)),
        _ => bail!("the soak ended with {status}"),
    }
}
