//! `cargo xtask fuzz`: the fuzz targets in `fuzz/`, each for a while, on the stable compiler.

use std::{fs, process::ExitCode};

use anyhow::{Context, Result, bail};

use crate::{
    setup::{self, Purpose},
    steps::Steps,
    workspace::{Workspace, output},
};

/// Runs `only`, or every target, each for `seconds`.
///
/// # Errors
/// When a target finds an input that makes it fail, or cannot be built.
pub(crate) fn run(workspace: &Workspace, only: Option<&str>, seconds: u32) -> Result<ExitCode> {
    if !workspace.root.join("fuzz/Cargo.toml").is_file() {
        bail!("there are no fuzz targets: fuzz/Cargo.toml is missing");
    }
    let missing = setup::missing(workspace, Purpose::Fuzz)?;
    let mut setting_up = Steps::new(workspace, missing.len());
    setup::meet(&mut setting_up, &missing)?;
    let known = output(&mut cargo_fuzz(workspace, "list"))?;
    let known: Vec<&str> = known.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let chosen: Vec<&str> =
        known.iter().copied().filter(|name| only.is_none_or(|only| only == *name)).collect();
    if chosen.is_empty() {
        bail!("no such target; there are {}", known.join(", "));
    }
    let mut steps = Steps::new(workspace, chosen.len());
    for target in chosen {
        steps.step(&format!("fuzz {target}"), &format!("{seconds} s after it is built"), |step| {
            // New inputs are kept in the first folder; the seeds are part of the repository and stay as they are.
            let corpus = workspace.root.join("fuzz/corpus").join(target);
            let seeds = workspace.root.join("fuzz/seeds").join(target);
            fs::create_dir_all(&corpus).context("making the folder for found inputs")?;
            let mut command = cargo_fuzz(workspace, "run");
            command.arg("--target-dir").arg(workspace.target.join("fuzz")).arg(target).arg(corpus);
            if seeds.is_dir() {
                command.arg(seeds);
            }
            command.args(["--", &format!("-max_total_time={seconds}"), "-print_final_stats=1"]);
            step.run(command)
                .with_context(|| format!("an input that makes it fail is in fuzz/artifacts/{target}"))
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

fn cargo_fuzz(workspace: &Workspace, verb: &str) -> std::process::Command {
    let mut command = workspace.cargo(["fuzz", verb]);
    // The sanitizer's flags are for nightly compilers only, although stable ones ship the sanitizer too.
    command.env("RUSTC_BOOTSTRAP", "1");
    command
}
