//! Where things are: the checkout, its target directory, our tools in it. Knows no command's purpose.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, anyhow};

/// Columns of cargo's progress line; wide enough for its counter and the first crate names.
const CARGO_PROGRESS_COLUMNS: &str = "90";

/// The checkout this command works on.
pub(crate) struct Workspace {
    /// The folder with the workspace's `Cargo.toml`.
    pub(crate) root: PathBuf,
    /// Cargo's target directory, wherever the user's settings put it.
    pub(crate) target: PathBuf,
}

impl Workspace {
    /// Finds the checkout from what cargo says of it.
    ///
    /// # Errors
    /// When cargo cannot be run or does not know the workspace.
    pub(crate) fn find() -> Result<Self> {
        let manifest_dir = env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest_dir.parent().context("xtask has no parent folder")?.to_path_buf();
        let metadata = output(Command::new(cargo_program()).current_dir(&root).args([
            "metadata",
            "--no-deps",
            "--format-version=1",
        ]))?;
        let metadata: serde_json::Value = serde_json::from_str(&metadata).context("cargo metadata")?;
        let target =
            metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
        Ok(Self { root, target: PathBuf::from(target) })
    }

    /// Where our tools are installed: under the target directory, never in the user's home.
    pub(crate) fn tools(&self) -> PathBuf {
        self.target.join("tools")
    }

    /// The folder with the tools' executables.
    pub(crate) fn tools_bin(&self) -> PathBuf {
        self.tools().join("bin")
    }

    /// Where xtask keeps its logs and stamps.
    pub(crate) fn state(&self) -> PathBuf {
        self.target.join("xtask")
    }

    /// `name` as our tools hold it, or as found on the user's `PATH`.
    pub(crate) fn tool(&self, name: &str) -> Option<PathBuf> {
        let own = self.tools_bin().join(name);
        if own.is_file() { Some(own) } else { which::which(name).ok() }
    }

    /// A command in the checkout, with our tools first on `PATH`.
    pub(crate) fn command(&self, program: impl Into<OsString>) -> Command {
        let mut command = Command::new(program.into());
        command.current_dir(&self.root).env("PATH", self.path());
        command
    }

    /// Cargo in the checkout, reporting progress although no terminal listens.
    pub(crate) fn cargo<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = self.command(cargo_program());
        command.args(args);
        cargo_progress(&mut command);
        command
    }

    /// A path as a person in the checkout would type it.
    pub(crate) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }

    fn path(&self) -> OsString {
        let rest = env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.tools_bin()).chain(env::split_paths(&rest));
        // Joining fails only when a folder's name holds the separator; then the tools are found by full path.
        env::join_paths(folders).unwrap_or(rest)
    }
}

/// Makes a command that runs cargo, directly or further down, report its progress to us.
pub(crate) fn cargo_progress(command: &mut Command) {
    command
        .env("CARGO_TERM_PROGRESS_WHEN", "always")
        .env("CARGO_TERM_PROGRESS_WIDTH", CARGO_PROGRESS_COLUMNS)
        .env("CARGO_TERM_COLOR", "never");
}

/// The standard output of a short command, trimmed.
///
/// # Errors
/// When it cannot be started or fails; its standard error is part of the message.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("starting {name}"))?;
    if !output.status.success() {
        let output_text = String::from_utf8_lossy(&output.stderr);
        return Err(anyhow!("{name}: {}: {}", output.status, output_text.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn cargo_program() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
