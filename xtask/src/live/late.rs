//! `cargo xtask late`: a real Dynamo that has run for minutes, Radixscope attached to it then, held against one that was there
//! from the start.

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, bail};
use clap::{ValueEnum, builder::PossibleValuesParser};

use super::{VERSIONS, copy_scripts, scripts, set_up};
use crate::{
    bench, demo, page,
    setup::{self, Purpose},
    steps::Steps,
    workspace::Workspace,
};

/// A worker is killed so long after we attached, and started again so long after that.
const KILLED_AFTER_S: u32 = 15;
const BACK_AFTER_S: u32 = 12;

/// How events come, and how the deployment is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Plane {
    /// Events over NATS
    Nats,
    /// The default of 1.3 and later: ZeroMQ, found by files
    ZmqFile,
    /// The same, found by etcd
    ZmqEtcd,
    /// Dynamo 0.9 with a worker-local indexer, whose blocks are asked for at once
    LocalIndexer,
}

/// What is to be run.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Dynamo's version
    #[arg(value_parser = PossibleValuesParser::new(VERSIONS))]
    version: String,
    /// How events come
    #[arg(long, value_enum, default_value = "nats")]
    plane: Plane,
    /// Seconds of traffic before we attach
    #[arg(long, default_value_t = 180)]
    after: u32,
    /// Seconds of traffic after that
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Kill a worker after we attached and start it again
    #[arg(long)]
    kill: bool,
    /// Keep our connections broken for 3 s, 20 s after we attached
    #[arg(long)]
    cut: bool,
    /// Use this `radixscope` instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
}

impl Args {
    fn name(&self) -> String {
        let plane = self.plane.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned());
        let cut = if self.cut { "-cut" } else { "" };
        format!("{}-late-{plane}{}{cut}", self.version, if self.kill { "-kill" } else { "" })
    }

    fn scenario(&self) -> &'static str {
        match self.plane {
            Plane::Nats => "healthy",
            Plane::ZmqFile => "default-plane",
            Plane::ZmqEtcd => "default-plane-etcd",
            Plane::LocalIndexer => "localindexer",
        }
    }

    /// Options of Radixscope; `$RUN` is the stack's folder.
    fn flags(&self) -> &'static str {
        match self.plane {
            Plane::Nats | Plane::LocalIndexer => {
                "--nats nats://127.0.0.1:4222 --prometheus frontend=http://127.0.0.1:8000/metrics"
            }
            Plane::ZmqFile => "--discovery file:$RUN/kv --prometheus frontend=http://127.0.0.1:8000/metrics",
            Plane::ZmqEtcd => {
                "--discovery etcd://127.0.0.1:2379 --prometheus frontend=http://127.0.0.1:8000/metrics"
            }
        }
    }

    fn steps(&self) -> String {
        if !self.kill {
            return String::new();
        }
        let killed_s = self.after + KILLED_AFTER_S;
        format!("sleep {killed_s}; ev kill; stop ${{WPID[2]}} KILL; sleep {BACK_AFTER_S}; start_worker 2")
    }
}

/// The command `late`.
///
/// # Errors
/// When something cannot be set up or the stack does not run. What differs is shown.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode> {
    let scripts = scripts(workspace)?;
    let missing = setup::missing(workspace, Purpose::Demo);
    let mut steps = Steps::new(workspace, missing.len() + 5);
    let binary = match &args.binary {
        Some(binary) => fs::canonicalize(binary).with_context(|| format!("no {}", binary.display()))?,
        None => {
            setup::meet(&mut steps, &missing)?;
            page::build(&mut steps, workspace, page::Build::Quick)?;
            demo::build_server(&mut steps, workspace, "release", &demo::SHIPPED)?;
            workspace.target.join("release/radixscope")
        }
    };
    steps.step("The program that compares", "seconds", |step| {
        step.run(workspace.cargo(["build", "--locked", "--package", bench::PACKAGE, "--bin", "late"]))
    })?;
    let folder = workspace.target.join("live");
    copy_scripts(&scripts, &folder)?;
    steps.step(&format!("Dynamo {} from PyPI", args.version), "about 30 s and 0.6 GB, once", |step| {
        set_up(step, &folder, &args.version)
    })?;
    let (name, report) = (args.name(), folder.join("late.json"));
    let _ = fs::remove_file(&report);
    let traffic_s = args.after + args.seconds;
    let hook = format!(
        "RADIXSCOPE_BIN={} {} --after {} --for {} {} {} --json {} --late \"{}\" 2>&1",
        binary.display(),
        workspace.target.join("debug/late").display(),
        args.after,
        args.seconds,
        if args.plane == Plane::LocalIndexer { "--ask" } else { "" },
        if args.cut { "--cut 20" } else { "" },
        report.display(),
        args.flags().replace("$RUN", &folder.join("run").join(&name).display().to_string()),
    );
    let ran = steps.step(&format!("{name}, {traffic_s} s of traffic"), "some minutes", |step| {
        let mut command = step.workspace.command("timeout");
        command
            .args(["--kill-after", "15", &(traffic_s + 300).to_string()])
            .arg(folder.join("run_dynamo.sh"))
            .args([&args.version, args.scenario(), &traffic_s.to_string(), &name])
            .env("B", &folder)
            .env("CAPTURE", "0")
            .env("FE_ARGS", "--router-replica-sync")
            .env("STEPS", args.steps())
            // The stack stays up until the comparison has ended, and ignores signals before its traffic has ended.
            .env(
                "HOOK",
                format!("{hook}; while touch {}/run/{name}.stop; do sleep 1; done", folder.display()),
            )
            .env("KEEP", "1");
        step.run(command)
    });
    let log = folder.join("captures").join(&name).join("hook.log.gz");
    println!("log of the comparison: {}", workspace.shown(&log));
    ran?;
    let Ok(text) = fs::read_to_string(&report) else { bail!("the comparison did not end") };
    println!("{text}");
    Ok(ExitCode::SUCCESS)
}
