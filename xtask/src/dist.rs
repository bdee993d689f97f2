//! `cargo xtask dist`: the one binary with the app inside, and its licence, where a container build finds them.

use std::{fs, path::Path, process::ExitCode};

use anyhow::{Context, Result};

use crate::{
    app, demo,
    setup::{self, Purpose},
    steps::Steps,
    workspace::Workspace,
};

/// Builds and collects the files.
///
/// # Errors
/// When a step fails or a file cannot be copied.
pub(crate) fn run(workspace: &Workspace) -> Result<ExitCode> {
    let missing = setup::missing(workspace, Purpose::Demo)?;
    let mut steps = Steps::new(workspace, missing.len() + 2);
    setup::meet(&mut steps, &missing)?;
    app::build(&mut steps, workspace)?;
    demo::build_server(&mut steps, workspace, "release")?;
    let dist = workspace.target.join("dist");
    fs::create_dir_all(&dist).context("making the folder for the result")?;
    let binary = copy(&workspace.target.join("release/radixscope"), &dist)?;
    for file in ["LICENSE", "README.md", "CHANGELOG.md"] {
        copy(&workspace.root.join(file), &dist)?;
    }
    println!("{} ({:.1} MB)", workspace.shown(&dist.join("radixscope")), binary as f64 / 1e6);
    Ok(ExitCode::SUCCESS)
}

/// Copies a file into a folder; its size in bytes.
fn copy(file: &Path, folder: &Path) -> Result<u64> {
    let name = file.file_name().context("a file without a name")?;
    fs::copy(file, folder.join(name)).with_context(|| format!("copying {}", file.display()))
}
