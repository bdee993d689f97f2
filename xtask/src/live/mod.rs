//! `cargo xtask live`: a real Dynamo with simulated engines, Radixscope beside it, and the figures of both compared.
//! The scripts that start Dynamo are not part of the repository.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::{
    app, demo, process,
    setup::{self, Purpose},
    steps::{Step, Steps},
    workspace::Workspace,
};

mod capture;
mod compare;

/// Seconds of traffic.
const TRAFFIC_S: &str = "60";
/// Messages still on their way when the traffic ends; the cluster is idle then, so nothing else changes.
const SETTLE: Duration = Duration::from_secs(2);
/// How long the answers may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// What the scripts print once the traffic is over and they wait to be told to stop.
const UP_AND_IDLE: &str = "stack stays up";
const HOOK: &str = include_str!("hook.sh");

/// The Dynamo releases the comparison knows: one of each line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Version {
    /// KV events over JetStream, decisions as `kv-hit-rate`
    #[value(name = "0.9.1")]
    V0_9_1,
    /// KV events over NATS core, each request's worker with its first token
    #[value(name = "1.6.1")]
    V1_6_1,
}

impl Version {
    const fn as_str(self) -> &'static str {
        match self {
            Self::V0_9_1 => "0.9.1",
            Self::V1_6_1 => "1.6.1",
        }
    }
}

/// The command `live`.
///
/// # Errors
/// When the stack does not run or a figure differs.
pub(crate) fn run(workspace: &Workspace, version: Version) -> Result<ExitCode> {
    let scripts = scripts(workspace)?;
    let missing = setup::missing(workspace, Purpose::Demo)?;
    let mut steps = Steps::new(workspace, missing.len() + 4);
    setup::meet(&mut steps, &missing)?;
    app::build(&mut steps, workspace)?;
    demo::build_server(&mut steps, workspace)?;
    let version = version.as_str();
    let folder = workspace.target.join("live");
    steps.step(&format!("Dynamo {version} from PyPI"), "about 30 s and 0.5 GB, once", |step| {
        copy_scripts(&scripts, &folder)?;
        let mut command = step.workspace.command(folder.join("run_dynamo.sh"));
        command.args(["setup", version]).env("B", &folder);
        step.run(command)
    })?;
    let answers = folder.join("answers");
    steps.step(
        &format!("Dynamo {version} under traffic, with Radixscope beside it"),
        "about 90 s",
        |step| observe(step, &folder, &answers, version),
    )?;
    let recording = folder.join(format!("captures/{version}-healthy/cap.nats.jsonl.gz"));
    compare::run(&capture::Capture::read(&recording)?, &answers)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the stack to its end; asks Radixscope in between, when the traffic is over.
fn observe(step: &mut Step<'_>, folder: &Path, answers: &Path, version: &str) -> Result<()> {
    if answers.exists() {
        fs::remove_dir_all(answers).context("removing the last answers")?;
    }
    fs::create_dir_all(answers).context("making a folder for the answers")?;
    let hook = folder.join("hook.sh");
    fs::write(&hook, HOOK).context("writing the hook")?;
    let mut command = step.workspace.command(folder.join("run_dynamo.sh"));
    command
        .args([version, "healthy", TRAFFIC_S])
        .env("B", folder)
        .env("KEEP", "1")
        .env("HOOK", format!("exec bash '{}'", hook.display()))
        .env("LIVE", answers)
        .env("RADIXSCOPE", step.workspace.target.join("release/radixscope"));
    let stop = folder.join(format!("run/{version}-healthy.stop"));
    let mut asked = Ok(());
    step.run_with(command, |line| {
        if line.contains(UP_AND_IDLE) {
            asked = ask(answers).and_then(|()| fs::write(&stop, "").context("telling the stack to stop"));
        }
        false
    })?;
    asked
}

/// Has the hook ask Radixscope, and waits until it has.
fn ask(answers: &Path) -> Result<()> {
    thread::sleep(SETTLE);
    fs::write(answers.join("ask"), "").context("asking for answers")?;
    let since = Instant::now();
    while !answers.join("answered").exists() {
        if since.elapsed() > ANSWER_WITHIN || process::stopping() {
            bail!("Radixscope did not answer; its output: {}", answers.join("serve.log").display());
        }
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
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
