//! `cargo xtask dist`: the one binary with the app inside, and its licence, where a container build finds them. The same commit
//! gives the same bytes by the same compiler, wherever checkout and cargo's home are.

use std::{fs, path::Path, process::ExitCode};

use anyhow::{Context, Result, bail};

use crate::{
    app,
    setup::{self, MUSL, Purpose},
    steps::Steps,
    workspace::{Workspace, output},
};

/// Builds and collects the files; with `is_static` a binary that needs no library of the system.
///
/// # Errors
/// When a step fails or a file cannot be copied.
pub(crate) fn run(workspace: &Workspace, is_static: bool) -> Result<ExitCode> {
    let missing = setup::missing(workspace, if is_static { Purpose::Static } else { Purpose::Demo })?;
    if is_static && workspace.tool("musl-gcc").is_none() {
        bail!("musl-gcc is missing, which compiles what is C in it: apt-get install musl-tools");
    }
    let mut steps = Steps::new(workspace, missing.len() + 2);
    setup::meet(&mut steps, &missing)?;
    app::build(&mut steps, workspace)?;
    // Named also where it is this machine's own: flags are then for the binary alone, not for what builds it.
    let target = if is_static {
        MUSL.to_owned()
    } else {
        output(workspace.command("rustc").args(["--print", "host-tuple"]))?
    };
    steps.step("The server", "about 6 min on two cores", |step| {
        let mut command =
            workspace.cargo(["build", "--locked", "--release", "--package=radixscope", "--target", &target]);
        let variable = format!("CARGO_TARGET_{}_RUSTFLAGS", target.to_uppercase().replace('-', "_"));
        command.envs(app::nameless().map(|flag| (variable, flag)));
        // The compiler numbers what it takes from one unit into another by where it was compiled: names alone differ.
        command.env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
        step.run(command)
    })?;
    let dist = workspace.target.join("dist");
    fs::create_dir_all(&dist).context("making the folder for the result")?;
    let binary = copy(&workspace.target.join(target).join("release/radixscope"), &dist)?;
    for file in ["LICENSE", "README.md", "CHANGELOG.md"] {
        copy(&workspace.root.join(file), &dist)?;
    }
    let sum = output(workspace.command("sha256sum").arg(dist.join("radixscope")))?;
    let sum = sum.split_whitespace().next().unwrap_or_default();
    println!("{} ({:.1} MB, sha256 {sum})", workspace.shown(&dist.join("radixscope")), binary as f64 / 1e6);
    Ok(ExitCode::SUCCESS)
}

/// Copies a file into a folder; its size in bytes.
fn copy(file: &Path, folder: &Path) -> Result<u64> {
    let name = file.file_name().context("a file without a name")?;
    fs::copy(file, folder.join(name)).with_context(|| format!("copying {}", file.display()))
}
