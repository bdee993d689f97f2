//! Chromium, in which the tests open the app as a person would, and what drives it for the tests of components.

use anyhow::{Result, bail};
use nix::unistd::geteuid;

use super::Need;
use crate::{
    steps::Step,
    workspace::{Workspace, output},
};

/// The browser, its driver, and a font, without which a bare machine draws no text.
const PACKAGES: [&str; 3] = ["chromium", "chromium-driver", "fonts-dejavu-core"];
/// What must be on `PATH`.
const PROGRAMS: [&str; 2] = ["chromium", "chromedriver"];

/// [`PROGRAMS`].
pub(super) struct Browser;

impl Need for Browser {
    fn name(&self) -> String {
        "Chromium and its driver from Debian".to_owned()
    }

    fn usual(&self) -> &'static str {
        "about 30 s"
    }

    fn is_met(&self, workspace: &Workspace) -> bool {
        PROGRAMS.iter().all(|program| output(workspace.command(*program).arg("--version")).is_ok())
    }

    fn meet(&self, step: &mut Step<'_>) -> Result<()> {
        let packages = PACKAGES.join(" ");
        install(step, &PACKAGES, "`chromium` and `chromedriver`")?;
        if !self.is_met(step.workspace) {
            bail!("`chromium --version` or `chromedriver --version` fails after installing {packages}");
        }
        Ok(())
    }
}

/// Installs Debian packages, which put `programs` on `PATH`.
///
/// # Errors
/// When this is no Debian or its user not root: then in words, with what to do.
pub(super) fn install(step: &mut Step<'_>, packages: &[&str], programs: &str) -> Result<()> {
    if which::which("apt-get").is_err() {
        bail!("the tests need {programs} on PATH; please install them");
    }
    if !geteuid().is_root() {
        let packages = packages.join(" ");
        bail!(
            "the tests need Debian packages that only root may install. Please run\n\n    \
               sudo apt-get update && sudo apt-get install {packages}\n\nand start again"
        );
    }
    for args in [&["update", "-qq"][..], &["install", "-y", "-qq", "--no-install-recommends"]] {
        let mut command = step.workspace.command("apt-get");
        command
            .args(["-o", "Acquire::Retries=3", "-o", "DPkg::Lock::Timeout=120", "-o", "Dpkg::Use-Pty=0"])
            .args(args)
            .env("DEBIAN_FRONTEND", "noninteractive");
        if args[0] == "install" {
            command.args(packages);
        }
        step.run(command)?;
    }
    Ok(())
}
