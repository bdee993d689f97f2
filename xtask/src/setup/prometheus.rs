//! Prometheus, which scrapes us in a test, and `promtool`, which judges names and rules.

use anyhow::{Result, bail};

use super::{Need, browser};
use crate::{
    steps::Step,
    workspace::{Workspace, output},
};

/// Debian's package has both.
const PACKAGES: [&str; 1] = ["prometheus"];
const PROGRAMS: [&str; 2] = ["prometheus", "promtool"];

/// Both on `PATH`.
pub(super) struct Prometheus;

impl Need for Prometheus {
    fn name(&self) -> String {
        "Prometheus and promtool from Debian".to_owned()
    }

    fn usual(&self) -> &'static str {
        "about 20 s"
    }

    fn is_met(&self, workspace: &Workspace) -> bool {
        PROGRAMS.into_iter().all(|program| output(workspace.command(program).arg("--version")).is_ok())
    }

    fn meet(&self, step: &mut Step<'_>) -> Result<()> {
        browser::install(step, &PACKAGES, "`prometheus` and `promtool`")?;
        if !self.is_met(step.workspace) {
            bail!("`prometheus` and `promtool` do not run after installing {}", PACKAGES.join(" "));
        }
        Ok(())
    }
}
