//! `cargo xtask live`: a real Dynamo with simulated engines, Radixscope beside it on messages, metrics and the growing log,
//! and what both report compared. The scripts that start Dynamo are not part of the repository.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, anyhow, bail};
use clap::builder::PossibleValuesParser;

use crate::{
    demo, page, process,
    setup::{self, Purpose},
    steps::{Step, Steps},
    workspace::Workspace,
};

mod compare;
mod decided;
pub(crate) mod late;
mod run;
mod topology;

use decided::Configuration;
use run::{Detail, LiveRun, LogFormat};
use topology::Topology;

/// What stands for every version.
const ALL: &str = "all";
/// Dynamo's versions, one of each line.
const VERSIONS: [&str; 10] = [
    "0.8.1.post3",
    "0.9.1",
    "1.0.2",
    "1.1.1",
    "1.2.1",
    "1.3.1",
    "1.4.2",
    "1.5.1",
    "1.6.1",
    "1.7.0.dev20261026",
];

/// What is to be run.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Dynamo's version
    #[arg(value_parser = PossibleValuesParser::new(VERSIONS.into_iter().chain([ALL])))]
    version: String,
    /// What is deployed
    #[arg(long, value_enum, default_value_t)]
    topology: Topology,
    /// Detail of the frontend's log; both, one after the other, when not given
    #[arg(long, value_enum)]
    log: Option<Detail>,
    /// Form of the frontend's log
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    format: LogFormat,
    /// Start the frontend with `--router-replica-sync`
    #[arg(long)]
    sync: bool,
    /// Seconds of traffic; else 16, and as many more as the topology needs
    #[arg(long)]
    seconds: Option<u32>,
    /// Instead of that: routers whose choices something else than the cost decides, in each configuration that the version (1.6 or
    /// later) has, and what is named as having decided
    #[arg(long, conflicts_with_all = ["topology", "log", "format", "sync", "seconds", "again"])]
    decided: bool,
    /// Compare what was recorded last once more, without starting anything
    #[arg(long)]
    again: bool,
    /// Use this `radixscope` instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
}

impl Args {
    fn versions(&self) -> Vec<&str> {
        if self.version == ALL { VERSIONS.to_vec() } else { vec![&self.version] }
    }

    fn runs(&self, version: &str) -> Vec<LiveRun> {
        let details = match self.log {
            Some(detail) => vec![detail],
            // The oldest routers log every cost at INFO: more detail adds nothing.
            None if version.starts_with("0.") => vec![Detail::Info],
            None => vec![Detail::Debug, Detail::Info],
        };
        let run = |detail| {
            let version = version.to_owned();
            let seconds = self.seconds.unwrap_or(self.topology.seconds());
            let (topology, form, is_synced) = (self.topology, self.format, self.sync);
            LiveRun { version, topology, detail, form, is_synced, seconds }
        };
        details.into_iter().map(run).collect()
    }
}

/// The command `live`.
///
/// # Errors
/// When something cannot be set up, a stack does not run or a figure differs.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode> {
    let scripts = scripts(workspace)?;
    let missing = setup::missing(workspace, Purpose::Demo);
    let (versions, is_built) = (args.versions(), args.binary.is_none() && !args.again);
    let per_version = |version: &&str| match args.decided {
        true => 1 + Configuration::of(version).len(),
        false => 1 + args.runs(version).len(),
    };
    let runs: usize = versions.iter().map(per_version).sum();
    let built = if is_built { missing.len() + 2 } else { 0 } + usize::from(!args.decided);
    let mut steps = Steps::new(workspace, runs + built);
    let binary = match &args.binary {
        Some(binary) => fs::canonicalize(binary).with_context(|| format!("no {}", binary.display()))?,
        None if args.again => PathBuf::new(),
        None => {
            setup::meet(&mut steps, &missing)?;
            page::build(&mut steps, workspace, page::Build::Quick)?;
            demo::build_server(&mut steps, workspace, "release", &demo::SHIPPED)?;
            workspace.target.join("release/radixscope")
        }
    };
    if !args.decided {
        steps.step("The program that compares", "seconds", compare::build)?;
    }
    let folder = workspace.target.join("live");
    copy_scripts(&scripts, &folder)?;
    let (mut rows, mut sums, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    let mut heading = if args.decided { decided::HEADING.to_owned() } else { String::new() };
    for version in versions {
        let ready =
            steps.step(&format!("Dynamo {version} from PyPI"), "about 30 s and 0.6 GB, once", |step| {
                set_up(step, &folder, version)
            });
        if let Err(error) = ready {
            failures.push(error.context(version.to_owned()));
            continue;
        }
        if args.decided {
            for of in Configuration::of(version) {
                let outcome = steps.step(&format!("Dynamo {version}, {of:?}"), "about a minute", |step| {
                    decided::run(step, &folder, &binary, (version, of))
                });
                match outcome {
                    Ok(outcome) => {
                        print!("{}", outcome.text);
                        if outcome.wrong > 0 {
                            failures.push(anyhow!("{version}, {of:?}: {} are wrong", outcome.wrong));
                        }
                        rows.push(outcome.row);
                    }
                    Err(error) if process::stopping() => return Err(error),
                    Err(error) => failures.push(error.context(format!("{version}, {of:?}"))),
                }
            }
            continue;
        }
        for run in args.runs(version) {
            let name = run.name();
            let compared = steps
                .step(&format!("{name}, with Radixscope beside it"), "about a minute", |step| {
                    if args.again { Ok(run.recording(&folder)) } else { run.watch(step, &folder, &binary) }
                })
                .and_then(|recording| compare::recording(workspace, &name, &recording));
            match compared {
                Ok(compared) => {
                    println!("{}", compared.text);
                    if compared.differing > 0 {
                        failures.push(anyhow!("{name}: {} differ", compared.differing));
                    }
                    heading = compared.heading;
                    rows.push(compared.row);
                    sums.push(compared.sum);
                }
                Err(error) if process::stopping() => return Err(error),
                // The other versions can still be compared.
                Err(error) => failures.push(error.context(name)),
            }
        }
    }
    println!("\n{heading}\n{}\n\n{}\n", rows.join("\n"), sums.join("\n"));
    for failure in &failures {
        println!("{failure:#}");
    }
    if failures.is_empty() { Ok(ExitCode::SUCCESS) } else { bail!("{} runs are not right", failures.len()) }
}

fn set_up(step: &mut Step<'_>, folder: &Path, version: &str) -> Result<()> {
    let mut command = step.workspace.command(folder.join("run_dynamo.sh"));
    command.args(["setup", version]).env("B", folder);
    step.run(command)
}

fn scripts(workspace: &Workspace) -> Result<PathBuf> {
    let folder = env::var_os("RADIXSCOPE_DYNAMO_LIVE")
        .map_or_else(|| workspace.root.join("../shared/dynamo-live"), PathBuf::from);
    if !folder.join("run_dynamo.sh").is_file() {
        bail!(
            "no run_dynamo.sh in {}: set RADIXSCOPE_DYNAMO_LIVE to the folder with the scripts that start a real Dynamo",
            folder.display()
        );
    }
    Ok(folder)
}

/// Copies the scripts into our own folder, where they may write; environments they made there stay.
fn copy_scripts(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).context("making the scripts' folder")?;
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let file = entry?.path();
        if let Some(name) = file.file_name()
            && file.is_file()
        {
            // Removed first: a copy keeps the original's mode, which may be read-only.
            let copy = to.join(name);
            let _ = fs::remove_file(&copy);
            fs::copy(&file, &copy).with_context(|| format!("copying {}", file.display()))?;
        }
    }
    Ok(())
}
