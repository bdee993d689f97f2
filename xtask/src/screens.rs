//! `cargo xtask screens`: screenshots of every panel, in both themes; or a film of the tree.

use std::{fs, process::ExitCode};

use anyhow::{Context, Result, bail};

use crate::{
    bench, page,
    setup::{self, Purpose},
    steps::Steps,
    test,
    workspace::Workspace,
};

/// What is made.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A film of the tree in place of the pictures: 20 seconds as WebM, `target/screens/tree.webm`
    #[arg(long)]
    film: bool,
}

/// Builds, makes the pictures or the film, and says where they are.
///
/// # Errors
/// When a step fails or nothing was made.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode> {
    if args.film { film(workspace) } else { pictures(workspace) }
}

fn film(workspace: &Workspace) -> Result<ExitCode> {
    let missing = setup::missing(workspace, Purpose::Film);
    let mut steps = Steps::new(workspace, missing.len() + 3);
    setup::meet(&mut steps, &missing)?;
    page::build(&mut steps, workspace, page::Build::Quick)?;
    bench::build_with_server(&mut steps, workspace, &["film"])?;
    let mut said = Vec::new();
    steps.step("The film", "about 2 min", |step| {
        let program = workspace.command(workspace.target.join("debug/film"));
        step.run_with(test::with_programs(program, workspace), |line| {
            said.push(line.to_owned());
            true
        })
    })?;
    println!("{}", said.join("\n"));
    Ok(ExitCode::SUCCESS)
}

fn pictures(workspace: &Workspace) -> Result<ExitCode> {
    let missing = setup::missing(workspace, Purpose::Test);
    let mut steps = Steps::new(workspace, missing.len() + 3);
    setup::meet(&mut steps, &missing)?;
    page::build(&mut steps, workspace, page::Build::Quick)?;
    bench::build_with_server(&mut steps, workspace, &["screens"])?;
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
