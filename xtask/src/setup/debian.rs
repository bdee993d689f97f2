//! Programs that Debian packages bring, each from the package of its name.

use anyhow::{Result, bail};

use super::{Need, browser::install};
use crate::{
    steps::Step,
    workspace::{Workspace, output},
};

/// A program on `PATH`.
pub(super) struct Program {
    name: &'static str,
    usual: &'static str,
    /// What it is started with to see whether it can what is needed, …
    args: &'static [&'static str],
    /// … and what it then says.
    says: &'static str,
}

/// Makes a film of pictures, with the encoder for WebM.
pub(super) const FFMPEG: Program =
    Program { name: "ffmpeg", usual: "about 30 s", args: &["-hide_banner", "-encoders"], says: "libvpx-vp9" };
/// Sets the clock of one program, by a library that comes with it.
pub(super) const FAKETIME: Program =
    Program { name: "faketime", usual: "about 10 s", args: &["--version"], says: "faketime" };

impl Need for Program {
    fn name(&self) -> String {
        format!("{} from Debian", self.name)
    }

    fn usual(&self) -> &'static str {
        self.usual
    }

    fn is_met(&self, workspace: &Workspace) -> bool {
        output(workspace.command(self.name).args(self.args)).is_ok_and(|text| text.contains(self.says))
    }

    fn meet(&self, step: &mut Step<'_>) -> Result<()> {
        let Self { name, args, says, .. } = self;
        install(step, &[name], &format!("`{name}`"))?;
        if !self.is_met(step.workspace) {
            bail!("`{name} {}` does not say {says} after installing {name}", args.join(" "));
        }
        Ok(())
    }
}
