//! Rust's standard library for the browser.

use std::{path::PathBuf, process::Command};

use anyhow::{Result, bail};

use super::Need;
use crate::{
    steps::Step,
    workspace::{Workspace, output},
};

/// The target the app is compiled for.
pub(crate) const WASM: &str = "wasm32-unknown-unknown";

/// The target's standard library, as part of the toolchain in use.
pub(super) struct WasmTarget;

impl Need for WasmTarget {
    fn name(&self) -> String {
        format!("Rust's standard library for {WASM}")
    }

    fn usual(&self) -> &'static str {
        "a few seconds"
    }

    fn is_met(&self, workspace: &Workspace) -> bool {
        output(workspace.command("rustc").args(["--print", "sysroot"]))
            .is_ok_and(|sysroot| PathBuf::from(sysroot).join("lib/rustlib").join(WASM).join("lib").is_dir())
    }

    fn meet(&self, step: &mut Step<'_>) -> Result<()> {
        if which::which("rustup").is_err() {
            bail!("install Rust's {WASM} target: rustup, which would add it, is not on PATH");
        }
        let mut command: Command = step.workspace.command("rustup");
        command.args(["target", "add", WASM]);
        step.run(command)
    }
}
