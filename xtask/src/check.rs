//! Static checks: formatting, lints for the host and for the browser, documentation, licences, spelling.

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::{
    setup::{self, Purpose},
    steps::Steps,
    workspace::Workspace,
};

/// Arguments of `cargo deny`. Advisories are not checked here, because their database changes daily and is fetched by git; run
/// `cargo deny check advisories` by hand.
const DENY: [&str; 9] = [
    "--workspace",
    "--all-features",
    "--locked",
    "check",
    "--show-stats",
    "--deny=warnings",
    "bans",
    "licenses",
    "sources",
];

/// The command `check`.
///
/// # Errors
/// A tool cannot be installed, or a check fails.
pub(crate) fn run(workspace: &Workspace) -> Result<ExitCode> {
    let missing = setup::missing(workspace, Purpose::Check);
    let mut steps = Steps::new(workspace, missing.len() + FORM_STEPS);
    setup::meet(&mut steps, &missing)?;
    form(&mut steps, workspace)?;
    Ok(ExitCode::SUCCESS)
}

/// Number of steps of [`form`].
pub(crate) const FORM_STEPS: usize = 7;

/// Formatting, dependencies and lints.
///
/// # Errors
/// A check fails.
pub(crate) fn form(steps: &mut Steps<'_>, workspace: &Workspace) -> Result<()> {
    steps.step("Formatting", "", |step| step.run(workspace.cargo(["fmt", "--all", "--check"])))?;
    steps.step("Spelling", "", |step| step.run(workspace.command("typos")))?;
    steps.step("Licences and versions of dependencies", "", |step| {
        let mut command = workspace.command("cargo-deny");
        command.args(DENY);
        step.run(command)
    })?;
    steps.step("Lints for the host", "about 1 min on two cores", |step| {
        step.run(clippy(workspace, &["--workspace", "--all-targets"]))
    })?;
    // A workspace of its own, which `--workspace` does not include.
    steps.step("Lints of the fuzz targets", "about 1 min on two cores", |step| {
        let target = workspace.target.join("fuzz-lint").display().to_string();
        let fuzz = ["--manifest-path=fuzz/Cargo.toml", "--all-targets", "--target-dir", &target];
        step.run(clippy(workspace, &fuzz))
    })?;
    steps.step("Documentation", "about 1 min on two cores", |step| {
        let mut command = workspace.cargo(["doc", "--no-deps", "--locked", "--workspace"]);
        command.env("RUSTDOCFLAGS", "--deny=warnings");
        step.run(command)
    })?;
    steps.step("Lints for the browser", "about 1 min on two cores", |step| {
        // The profile that tests build with: macros and build scripts are then compiled once for both.
        let page = ["--package=radixscope-app", "--target=wasm32-unknown-unknown", "--profile=wasm-quick"];
        step.run(clippy(workspace, &page))
    })
}

/// Clippy with the lock file and without warnings.
fn clippy(workspace: &Workspace, what: &[&str]) -> Command {
    workspace.cargo([&["clippy", "--locked"], what, &["--", "--deny=warnings"]].concat())
}
