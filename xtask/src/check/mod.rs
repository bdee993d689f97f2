//! Checks of form: formatting, words, style sheets, lints for the host and for the browser, documentation, licences, spelling.

mod styles;
mod words;

use std::process::ExitCode;

use anyhow::Result;

use crate::{
    setup::{self, Purpose},
    steps::Steps,
    workspace::Workspace,
};

/// Checkers that are used when they are installed, and what they are asked.
const OPTIONAL: [(&str, &[&str]); 2] = [
    ("cargo-deny", &["--workspace", "--all-features", "check", "bans", "licenses", "sources"]),
    ("typos", &[]),
];

/// The command `check`.
///
/// # Errors
/// When something cannot be set up or a check finds something.
pub(crate) fn run(workspace: &Workspace) -> Result<ExitCode> {
    let missing = setup::missing(workspace, Purpose::Check)?;
    let installed: Vec<_> = OPTIONAL.iter().filter(|(tool, _)| workspace.tool(tool).is_some()).collect();
    let mut steps = Steps::new(workspace, missing.len() + FORM_STEPS + installed.len());
    setup::meet(&mut steps, &missing)?;
    form(&mut steps, workspace)?;
    for (tool, args) in installed {
        steps.step(tool, "", |step| {
            let mut command = workspace.command(*tool);
            command.args(*args);
            step.run(command)
        })?;
    }
    for (tool, _) in OPTIONAL.iter().filter(|(tool, _)| workspace.tool(tool).is_none()) {
        println!("{tool} is not installed: its check was left out");
    }
    Ok(ExitCode::SUCCESS)
}

/// How many steps [`form`] takes.
pub(crate) const FORM_STEPS: usize = 6;

/// Formatting and lints.
///
/// # Errors
/// When one of them finds something.
pub(crate) fn form(steps: &mut Steps<'_>, workspace: &Workspace) -> Result<()> {
    steps.step("Formatting", "", |step| step.run(workspace.cargo(["fmt", "--all", "--check"])))?;
    steps.step("Words", "", |_| words::check(&workspace.root))?;
    steps.step("Style sheets", "", |_| styles::check(&workspace.root))?;
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
            // The profile that Trunk builds with: macros and build scripts are then compiled once for both.
            "--profile=wasm-release",
            "--",
            "--deny=warnings",
        ]))
    })
}
