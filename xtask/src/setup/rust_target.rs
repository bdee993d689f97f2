//! Rust's standard library for other targets than this machine.

use std::path::PathBuf;

use anyhow::{Result, bail};

use super::Need;
use crate::{
    steps::Step,
    workspace::{Workspace, output},
};

/// The target the app is compiled for.
pub(crate) const WASM: &str = "wasm32-unknown-unknown";
/// The target of a binary that needs no library of the system.
pub(crate) const MUSL: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-musl" } else { "x86_64-unknown-linux-musl" };

/// A target's standard library, as part of the toolchain in use.
pub(super) struct TargetLibrary(&'static str);

/// For the browser.
pub(super) const WASM_LIBRARY: TargetLibrary = TargetLibrary(WASM);
/// For a static binary.
pub(super) const MUSL_LIBRARY: TargetLibrary = TargetLibrary(MUSL);

impl Need for TargetLibrary {
    fn name(&self) -> String {
        format!("Rust's standard library for {}", self.0)
    }

    fn usual(&self) -> &'static str {
        "a few seconds"
    }

    fn is_met(&self, workspace: &Workspace) -> bool {
        output(workspace.command("rustc").args(["--print", "sysroot"]))
            .is_ok_and(|sysroot| PathBuf::from(sysroot).join("lib/rustlib").join(self.0).join("lib").is_dir())
    }

    fn meet(&self, step: &mut Step<'_>) -> Result<()> {
        if which::which("rustup").is_err() {
            bail!("install Rust's {} target: rustup, which would add it, is not on PATH", self.0);
        }
        let mut command = step.workspace.command("rustup");
        command.args(["target", "add", self.0]);
        step.run(command)
    }
}
