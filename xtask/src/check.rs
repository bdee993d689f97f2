//! Checks of form: formatting, lints for the host and for the browser, documentation, licences, spelling.

use std::process::ExitCode;

use anyhow::Result;

use crate::{
    setup::{self, Purpose},
    steps::Steps,
    workspace::Workspace,
};

/// What `cargo deny` judges. Not known faults: those need a data base that changes by the day and is fetched by git, so that
/// they are asked for by hand, `cargo deny check advisories`.
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
/// When something cannot be set up or a check finds something.
pub(crate) fn run(workspace: &Workspace) -> Result<ExitCode> {
    let missing = setup::missing(workspace, Purpose::Check);
    let mut steps = Steps::new(workspace, missing.len() + FORM_STEPS);
    setup::meet(&mut steps, &missing)?;
    form(&mut steps, workspace)?;
    Ok(ExitCode::SUCCESS)
}

/// How many steps [`form`] takes.
pub(crate) const FORM_STEPS: usize = 6;

/// Formatting, dependencies and lints.
///
/// # Errors
/// When one of them finds something.
pub(crate) fn form(steps: &mut Steps<'_>, workspace: &Workspace) -> Result<()> {
    steps.step("Formatting", "", |step| step.run(workspace.cargo(["fmt", "--all", "--check"])))?;
    steps.step("Spelling", "", |step| step.run(workspace.command("typos")))?;
    steps.step("Licences and versions of dependencies", "", |step| {
        let mut command = workspace.command("cargo-deny");
        command.args(DENY);
        step.run(command)
    })?;
    steps.step("Lints for the host", "about 1 min on two cores", |step| {
        step.run(workspace.cargo([
            "clippy",
            "--locked",
            "--workspace",
            "--all-targets",
            "--",
            "--deny=warnings",
        ]))
    })?;
    steps.step("Documentation", "about 1 min on two cores", |step| {
        let mut command = workspace.cargo(["doc", "--no-deps", "--locked", "--workspace"]);
        command.env("RUSTDOCFLAGS", "--deny=warnings");
        step.run(command)
    })?;
    steps.step("Lints for the browser", "about 1 min on two cores", |step| {
        step.run(workspace.cargo([
            "clippy",
            "--locked",
            "--package=radixscope-app",
            "--target=wasm32-unknown-unknown",
            // The profile that tests build with: macros and build scripts are then compiled once for both.
            "--profile=wasm-quick",
            "--",
            "--deny=warnings",
        ]))
    })
}
