//! `cargo xtask screens`: screenshots of every panel, in both themes.

use std::{fs, process::ExitCode};

use anyhow::{Context, Result, bail};

use crate::{
    page,
    setup::{self, Purpose},
    steps::Steps,
    test,
    workspace::Workspace,
};

/// Builds, makes the screenshots, and says where the pictures are.
///
/// # Errors
/// When a step fails or no picture was made.
pub(crate) fn run(workspace: &Workspace) -> Result<ExitCode> {
    let missing = setup::missing(workspace, Purpose::Test);
    let mut steps = Steps::new(workspace, missing.len() + 3);
    setup::meet(&mut steps, &missing)?;
    page::build(&mut steps, workspace, page::Build::Quick)?;
    test::build(&mut steps, workspace)?;
    let folder = workspace.target.join("screens");
    let _ = fs::remove_dir_all(&folder);
    steps.step("Screenshots", "about 1 min", |step| {
        let program = workspace.command(workspace.target.join("debug/screens"));
        step.run(test::with_programs(program, workspace))
    })?;
    let mut pictures: Vec<_> = fs::read_dir(&folder)
        .context("no screenshots were made")?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "png"))
        .collect();
    pictures.sort();
    if pictures.is_empty() {
        bail!("no screenshots were made in {}", folder.display());
    }
    for picture in pictures {
        println!("{}", workspace.shown(&picture));
    }
    Ok(ExitCode::SUCCESS)
}
