//! Chromium and its driver, in which the tests open the app as a person would.

use anyhow::{Result, bail};
use nix::unistd::geteuid;

use super::Need;
use crate::{
    steps::Step,
    workspace::{Workspace, output},
};

/// The browser, its driver, and a font, without which a bare machine draws no text.
const PACKAGES: [&str; 3] = ["chromium", "chromium-driver", "fonts-dejavu-core"];

/// `chromium` and `chromedriver` on `PATH`, of the same major version.
pub(super) struct Browser;

impl Need for Browser {
    fn name(&self) -> String {
        "Chromium and ChromeDriver from Debian".to_owned()
    }

    fn usual(&self) -> &'static str {
        "about 30 s"
    }

    fn is_met(&self, workspace: &Workspace) -> bool {
        let major = |program: &str| {
            let output_text = output(workspace.command(program).arg("--version")).ok()?;
            major_version(&output_text)
        };
        // The driver first: it answers at once, and without it the browser need not be asked.
        major("chromedriver").is_some_and(|driver| major("chromium") == Some(driver))
    }

    fn meet(&self, step: &mut Step<'_>) -> Result<()> {
        let packages = PACKAGES.join(" ");
        install(step, &PACKAGES, "`chromium` and `chromedriver`, of one version,")?;
        if !self.is_met(step.workspace) {
            bail!(
                "`chromium --version` and `chromedriver --version` do not agree after installing {packages}"
            );
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

/// The first number with a dot behind it: "Chromium 156.0.8078.79 built on Debian" → 156.
fn major_version(output_text: &str) -> Option<u32> {
    output_text.split_whitespace().find_map(|word| word.split_once('.')?.0.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::major_version;

    #[test]
    fn browser_and_driver_are_compared_by_their_major_version() {
        assert_eq!(major_version("Chromium 156.0.8078.79 built on Debian GNU/Linux 12"), Some(156));
        assert_eq!(major_version("ChromeDriver 156.0.8078.79 (0af1)"), Some(156));
        assert_eq!(major_version("no version"), None);
    }
}
