//! What sets the clock of one program.

use anyhow::{Result, bail};

use super::{Need, browser::install};
use crate::{
    steps::Step,
    workspace::{Workspace, output},
};

/// `faketime` on `PATH`, which comes with the library.
pub(super) struct Faketime;

impl Need for Faketime {
    fn name(&self) -> String {
        "faketime from Debian".to_owned()
    }

    fn usual(&self) -> &'static str {
        "about 10 s"
    }

    fn is_met(&self, workspace: &Workspace) -> bool {
        output(workspace.command("faketime").arg("--version")).is_ok()
    }

    fn meet(&self, step: &mut Step<'_>) -> Result<()> {
        install(step, &["faketime"], "`faketime`")?;
        if !self.is_met(step.workspace) {
            bail!("`faketime --version` fails after installing faketime");
        }
        Ok(())
    }
}
