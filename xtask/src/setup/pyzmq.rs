//! libzmq for the tests, the library whose sockets Dynamo's processes open: the Python package `pyzmq` carries it.

use std::fs;

use anyhow::{Context, Result, bail};

use super::Need;
use crate::{
    steps::Step,
    workspace::{Workspace, output},
};

const VERSION: &str = "27.3.0";
const FOLDER: &str = "pyzmq";

/// The package among our tools.
pub(super) struct PyZmq;

impl Need for PyZmq {
    fn name(&self) -> String {
        format!("libzmq with pyzmq {VERSION} from PyPI")
    }

    fn usual(&self) -> &'static str {
        "a few seconds"
    }

    fn is_met(&self, workspace: &Workspace) -> bool {
        let mut python = workspace.command("python3");
        python.env("PYTHONPATH", workspace.tools().join(FOLDER));
        output(python.args(["-c", "import zmq; print(zmq.pyzmq_version())"]))
            .is_ok_and(|version| version.trim() == VERSION)
    }

    fn meet(&self, step: &mut Step<'_>) -> Result<()> {
        let workspace = step.workspace;
        let (wheels, folder) = (workspace.tools().join("pyzmq-wheel"), workspace.tools().join(FOLDER));
        for old in [&wheels, &folder] {
            if old.exists() {
                fs::remove_dir_all(old).context("removing an interrupted download")?;
            }
        }
        let mut download = workspace.command("python3");
        download
            .args(["-m", "pip", "download", "--disable-pip-version-check", "--progress-bar=off"])
            .args(["--no-deps", "--only-binary=:all:", "--dest"])
            .arg(&wheels)
            .arg(format!("pyzmq=={VERSION}"));
        step.run(download).context("libzmq comes from PyPI by `python3 -m pip`")?;
        let wheel = fs::read_dir(&wheels)?.next().context("pip downloaded no wheel")??.path();
        let mut unpack = workspace.command("python3");
        unpack.args(["-m", "zipfile", "-e"]).arg(wheel).arg(&folder);
        step.run(unpack)?;
        if !self.is_met(workspace) {
            bail!("pyzmq from PyPI does not run here or is not version {VERSION}");
        }
        fs::remove_dir_all(&wheels).context("removing the wheel")
    }
}
