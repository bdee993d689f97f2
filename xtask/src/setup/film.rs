//! What makes a film of pictures.

use anyhow::{Result, bail};

use super::{Need, browser::install};
use crate::{
    steps::Step,
    workspace::{Workspace, output},
};

/// `ffmpeg` on `PATH`, with the encoder for WebM.
pub(super) struct Encoder;

impl Need for Encoder {
    fn name(&self) -> String {
        "ffmpeg from Debian".to_owned()
    }

    fn usual(&self) -> &'static str {
        "about 30 s"
    }

    fn is_met(&self, workspace: &Workspace) -> bool {
        output(workspace.command("ffmpeg").args(["-hide_banner", "-encoders"]))
            .is_ok_and(|encoders| encoders.contains("libvpx-vp9"))
    }

    fn meet(&self, step: &mut Step<'_>) -> Result<()> {
        install(step, &["ffmpeg"], "`ffmpeg` with libvpx-vp9")?;
        if !self.is_met(step.workspace) {
            bail!("`ffmpeg -encoders` names no libvpx-vp9 after installing ffmpeg");
        }
        Ok(())
    }
}
