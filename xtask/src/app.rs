//! Builds the browser's side with Trunk into `app/dist`, and only when one of its inputs changed.

use std::{
    collections::hash_map::DefaultHasher,
    env, fs,
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{
    steps::Steps,
    workspace::{Workspace, cargo_progress},
};

/// Everything `app/dist` is made of, relative to the checkout.
const INPUTS: [&str; 8] =
    ["app", "core", "style", "public", "Cargo.toml", "Cargo.lock", "Trunk.toml", ".cargo/config.toml"];
/// What Trunk makes.
const DIST: &str = "app/dist";

/// Builds the app as one step, or says that it is up to date.
///
/// Trunk rewrites every file it makes, and the server embeds them: building the same app again would make
/// cargo link the same server again. Therefore the inputs' contents are compared first.
///
/// # Errors
/// When Trunk fails or files cannot be read.
pub(crate) fn build(steps: &mut Steps<'_>, workspace: &Workspace) -> Result<()> {
    steps.step("The app for the browser", "about 3 min on two cores, 1 min when little changed", |step| {
        let stamp = workspace.state().join("app.stamp");
        let built = fs::read_to_string(&stamp).unwrap_or_default();
        if built == stamp_of(&workspace.root)? {
            return Ok(());
        }
        // Removed first: an interrupted build must not count as one.
        let _ = fs::remove_file(&stamp);
        // Trunk asks cargo for one program after the other; asked for all at once, cargo links them side by side.
        let mut command = workspace.cargo([
            "build",
            "--locked",
            "--package=radixscope-app",
            "--bins",
            "--target=wasm32-unknown-unknown",
            "--profile=wasm-release",
        ]);
        name_no_folder(&mut command);
        step.run(command)?;
        let trunk = workspace.tool("trunk").context("Trunk is not installed: cargo xtask setup demo")?;
        let mut command = workspace.command(trunk);
        command.args(["build", "--release", "--locked"]);
        if !workspace.root.join("Trunk.toml").is_file() {
            command.current_dir(workspace.root.join("app"));
        }
        // Trunk reads NO_COLOR as a flag and accepts only `true` and `false`, where others write `1`.
        command.env_remove("NO_COLOR");
        name_no_folder(&mut command);
        cargo_progress(&mut command);
        step.run(command)?;
        for program in files(&workspace.root.join(DIST), None)? {
            if program.extension().is_some_and(|extension| extension == "wasm") {
                let bare = without_comments(&fs::read(&program)?)
                    .with_context(|| format!("{} is no program", program.display()))?;
                fs::write(&program, bare)?;
            }
        }
        fs::write(&stamp, stamp_of(&workspace.root)?).context("writing the app's stamp")
    })
}

/// A program without custom sections, which only tools read: wasm-bindgen describes each closure in words and says who made the
/// program, and Trunk has no option to leave that out.
fn without_comments(program: &[u8]) -> Result<Vec<u8>> {
    let mut bare = wasm_encoder::Module::new();
    for payload in wasmparser::Parser::new(0).parse_all(program) {
        let payload = payload?;
        if matches!(&payload, wasmparser::Payload::CustomSection(_)) {
            continue;
        }
        if let Some((id, range)) = payload.as_section() {
            bare.section(&wasm_encoder::RawSection {
                id,
                data: &program[range.start as usize..range.end as usize],
            });
        }
    }
    Ok(bare.finish())
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

/// What the app was made of and what came out, in one line. The result belongs to it because people run Trunk
/// themselves while they develop, and then something else lies in its place.
fn stamp_of(root: &Path) -> Result<String> {
    let mut inputs = Vec::new();
    for input in INPUTS {
        inputs.append(&mut files(&root.join(input), Some(&root.join(DIST)))?);
    }
    Ok(format!("{:016x} {:016x}", digest(&inputs)?, digest(&files(&root.join(DIST), None)?)?))
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

#[cfg(test)]
mod tests {
    use super::without_comments;

    #[test]
    fn what_only_tools_read_is_left_out_of_a_program() {
        // A type, names before and after it, and another custom section.
        let header = b"\0asm\x01\0\0\0";
        let (names, types) = (b"\x00\x06\x04name\x01", b"\x01\x04\x01\x60\0\0");
        let other = b"\x00\x06\x04made\x01";
        let program = [&header[..], names, types, other, names].concat();
        assert_eq!(without_comments(&program).expect("a program"), [&header[..], types].concat());
        assert!(without_comments(&program[..20]).is_err(), "cut");
        assert!(without_comments(b"no program").is_err());
    }
}
