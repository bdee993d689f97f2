//! One run of the stack: a version, how its frontend logs, whether its router replicates.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use super::topology::Topology;
use crate::steps::Step;

/// Beyond its traffic a run starts processes, makes a few single requests and stops everything, in 30 s on an idle machine: so much
/// longer means that something hangs.
const BEYOND_TRAFFIC_S: u32 = 300;
/// What is left after that is ended without a farewell.
const KILL_AFTER_S: &str = "15";
/// The router's own lines at DEBUG; everything else would only cost time.
const ROUTER_DEBUG: &str = "info,dynamo_llm::kv_router=debug,dynamo_kv_router=debug";
/// How much the frontend logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Detail {
    /// What every deployment logs
    Info,
    /// The router's DEBUG lines as well
    Debug,
}

/// The form of the frontend's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    /// Lines for people
    Text,
    /// One JSON object a line
    Jsonl,
}

/// A run.
pub(super) struct LiveRun {
    pub(super) version: String,
    pub(super) topology: Topology,
    pub(super) detail: Detail,
    pub(super) form: LogFormat,
    pub(super) is_synced: bool,
    pub(super) seconds: u32,
}

impl LiveRun {
    /// Version and settings, as the recording's folder is called.
    pub(super) fn name(&self) -> String {
        let detail = if self.detail == Detail::Debug { "debug" } else { "info" };
        let form = if self.form == LogFormat::Jsonl { "jsonl" } else { "text" };
        let sync = if self.is_synced { "sync" } else { "plain" };
        let topology = match self.topology {
            Topology::Aggregated => String::new(),
            other => format!("-{}", other.as_str()),
        };
        format!("{}{topology}-{detail}-{form}-{sync}", self.version)
    }

    /// The folder of its recording.
    pub(super) fn recording(&self, folder: &Path) -> PathBuf {
        folder.join("captures").join(self.name())
    }

    /// Runs the stack to its end, `binary` beside it; gives the recording, with Radixscope's answers in its folder `rx`.
    ///
    /// # Errors
    /// When the stack does not come up, does not end, or Radixscope does not answer.
    pub(super) fn watch(&self, step: &mut Step<'_>, folder: &Path, binary: &Path) -> Result<PathBuf> {
        let name = self.name();
        let recording = self.recording(folder);
        if recording.exists() {
            fs::remove_dir_all(&recording).context("removing the last recording")?;
        }
        let within_s = (self.seconds + BEYOND_TRAFFIC_S).to_string();
        let mut command = step.workspace.command("timeout");
        command
            .args(["--kill-after", KILL_AFTER_S, &within_s])
            .arg(folder.join("run_dynamo.sh"))
            .args([&self.version, "healthy", &self.seconds.to_string(), &name])
            .env("B", folder)
            .env("FE_LOG", if self.detail == Detail::Debug { ROUTER_DEBUG } else { "info" })
            .env("FE_JSONL", if self.form == LogFormat::Jsonl { "1" } else { "0" })
            .env("FE_ARGS", if self.is_synced { "--router-replica-sync" } else { "" })
            .env("RX", binary);
        self.topology.describe(&self.version, &mut command);
        step.run(command)?;
        let response = recording.join("rx/end.decisions.json");
        if fs::metadata(&response).map_or(0, |of| of.len()) == 0 {
            let output = step.workspace.shown(&recording.join("radixscope.log.gz"));
            bail!("Radixscope did not answer; its output: {output}");
        }
        Ok(recording)
    }
}
