//! Builds the page into `app/dist`, and only when one of its inputs changed.

use std::{
    collections::hash_map::DefaultHasher,
    env, fs,
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{setup::WASM, steps::Steps, workspace::Workspace};

/// Everything `app/dist` is made of, relative to the checkout.
const INPUTS: [&str; 8] =
    ["app", "core", "style", "public", "xtask/bundle", "Cargo.toml", "Cargo.lock", ".cargo/config.toml"];
/// The program that [`Build::Quick`] leaves out, and its package: nothing else needs its many crates.
const OPTIONAL: (&str, &str) = ("tokenizer", "--package=radixscope-tokenizer");
/// Where the page's files are.
const DIST: &str = "app/dist";

/// How the page is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// Soon there, three times as large, and without [`OPTIONAL`]: for `demo` and tests
    Quick,
    /// The same with everything
    Complete,
    /// Small, the same bytes on every machine: what `dist` ships and `bench` measures
    Small,
}

impl Build {
    /// The cargo profile.
    pub(crate) const fn profile(self) -> &'static str {
        match self {
            Self::Quick | Self::Complete => "wasm-quick",
            Self::Small => "wasm-release",
        }
    }

    const fn usual(self) -> &'static str {
        match self {
            Self::Quick | Self::Complete => "about 2 min on two cores, 20 s when little changed",
            Self::Small => "about 8 min on two cores",
        }
    }

    const fn has_optional(self) -> bool {
        !matches!(self, Self::Quick)
    }
}

/// Builds the page as one step, or says that it is up to date.
///
/// The server embeds the files: writing the same page again would make cargo link the same server again. Therefore the inputs'
/// contents are compared first.
///
/// # Errors
/// When cargo or the bundler fails, or files cannot be read.
pub(crate) fn build(steps: &mut Steps<'_>, workspace: &Workspace, build: Build) -> Result<()> {
    build_among(steps, workspace, build, &["--locked", "--package=radixscope-bundle"])
}

/// The same where the host's programs are built too: `selection` are cargo's arguments that choose their packages.
///
/// # Errors
/// As [`build`].
pub(crate) fn build_among(
    steps: &mut Steps<'_>,
    workspace: &Workspace,
    build: Build,
    selection: &[&str],
) -> Result<()> {
    steps.step("The page", build.usual(), |step| {
        if is_built(workspace, build)? {
            return Ok(());
        }
        let (left_out, package) = OPTIONAL;
        let stamp = stamp(workspace);
        // Removed first: an interrupted build must not count as one.
        let _ = fs::remove_file(&stamp);
        let mut command = workspace.cargo([
            "build",
            "--locked",
            "--package=radixscope-app",
            "--bins",
            "--target",
            WASM,
            "--profile",
            build.profile(),
        ]);
        if build.has_optional() {
            command.arg(package);
        }
        if build == Build::Small {
            name_no_folder(&mut command);
        }
        step.run(command)?;
        // Chosen among the packages of its caller: for it alone cargo would build some of its dependencies with other features, anew.
        let mut bundler = workspace.cargo(["build", "--bin=bundle"]);
        bundler.args(selection);
        step.run(bundler)?;
        let mut command = workspace.command(workspace.target.join("debug/bundle"));
        command.arg(workspace.target.join(WASM).join(build.profile())).arg(DIST);
        if !build.has_optional() {
            // What an earlier build left may be of other sources.
            command.arg(left_out);
        }
        step.run(command)?;
        fs::write(&stamp, stamp_of(&workspace.root, build)?).context("writing the page's stamp")
    })
}

/// Where it stands what the page was made of.
fn stamp(workspace: &Workspace) -> PathBuf {
    workspace.state().join("page.stamp")
}

/// Whether the page is there, of the sources as they are.
///
/// # Errors
/// When a file cannot be read.
pub(crate) fn is_built(workspace: &Workspace, build: Build) -> Result<bool> {
    let built = fs::read_to_string(stamp(workspace)).unwrap_or_default();
    // A page that has more than is needed is as good.
    let is_same = |wanted| stamp_of(&workspace.root, wanted).map(|stamp| stamp == built);
    Ok(is_same(build)? || (build == Build::Quick && is_same(Build::Complete)?))
}

/// Compiled for the browser, it names no folder of this machine.
fn name_no_folder(command: &mut Command) {
    if let Some(flag) = nameless() {
        command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", flag);
    }
}

/// Panics name the file that they come from, those of other crates by where cargo keeps them on the machine that builds, in a
/// folder for each registry. With these flags of the compiler the same sources make the same program anywhere. Cargo adds them
/// to those of `.cargo/config.toml`.
pub(crate) fn nameless() -> Option<String> {
    let cargo_home =
        env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")));
    let registries = fs::read_dir(cargo_home?.join("registry").join("src")).ok()?;
    let folders =
        registries.flatten().filter_map(|registry| registry.path().into_os_string().into_string().ok());
    // Flags in the environment end at spaces.
    let folders = folders.filter(|folder| !folder.contains(' '));
    let mut flags: Vec<String> =
        folders.map(|folder| format!("--remap-path-prefix={folder}=crates")).collect();
    flags.sort_unstable();
    (!flags.is_empty()).then(|| flags.join(" "))
}

/// What the page was made of and what came out, in one line. The result belongs to it: something else may lie in its place.
fn stamp_of(root: &Path, build: Build) -> Result<String> {
    let mut inputs = Vec::new();
    for input in INPUTS {
        inputs.append(&mut files(&root.join(input), Some(&root.join(DIST)))?);
    }
    let (inputs, outputs) = (digest(&inputs)?, digest(&files(&root.join(DIST), None)?)?);
    Ok(format!("{build:?} {inputs:016x} {outputs:016x}"))
}

/// A digest of names and contents; it detects change, it protects against nothing.
fn digest(files: &[PathBuf]) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    for file in files {
        file.hash(&mut hasher);
        fs::read(file).with_context(|| format!("reading {}", file.display()))?.hash(&mut hasher);
    }
    Ok(hasher.finish())
}

/// The files at or below `path`, sorted, but none at or below `except`. None at all where there is no such path.
///
/// # Errors
/// When a folder cannot be read.
pub(crate) fn files(path: &Path, except: Option<&Path>) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![path.to_path_buf()];
    while let Some(path) = open.pop() {
        if path.is_file() {
            found.push(path);
        } else if path.is_dir() && except != Some(&path) {
            let entries = fs::read_dir(&path).with_context(|| format!("reading {}", path.display()))?;
            for entry in entries {
                open.push(entry?.path());
            }
        }
    }
    found.sort();
    Ok(found)
}
