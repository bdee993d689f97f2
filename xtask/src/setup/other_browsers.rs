//! Firefox, and WebKit with its driver and the screen that it draws on.

use anyhow::{Result, bail};

use super::{Need, browser};
use crate::{steps::Step, workspace::Workspace};

/// Firefox; WebKit's driver and small browser; a screen without a monitor.
const PACKAGES: [&str; 3] = ["firefox-esr", "webkit2gtk-driver", "xvfb"];
/// What they put on `PATH`.
const PROGRAMS: [&str; 3] = ["firefox-esr", "WebKitWebDriver", "Xvfb"];

/// All of them on `PATH`.
pub(super) struct OtherBrowsers;

impl Need for OtherBrowsers {
    fn name(&self) -> String {
        "Firefox and WebKit from Debian".to_owned()
    }

    fn usual(&self) -> &'static str {
        "about 1 min"
    }

    fn is_met(&self, _workspace: &Workspace) -> bool {
        PROGRAMS.into_iter().all(|program| which::which(program).is_ok())
    }

    fn meet(&self, step: &mut Step<'_>) -> Result<()> {
        browser::install(step, &PACKAGES, &PROGRAMS.map(|program| format!("`{program}`")).join(", "))?;
        if !self.is_met(step.workspace) {
            bail!("{} are not all on PATH after installing {}", PROGRAMS.join(", "), PACKAGES.join(" "));
        }
        Ok(())
    }
}
