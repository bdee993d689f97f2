//! `cargo xtask dist`: the one binary with every feature and the page inside, where a container build finds it, as an archive with
//! what belongs to it, and as a Python wheel. The same commit gives the same binary by the same compiler, wherever checkout and cargo's home are.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail};
use flate2::{Compression, GzBuilder};

use crate::{
    demo, page,
    setup::{self, MUSL, Purpose},
    steps::Steps,
    wheel,
    workspace::{Workspace, output},
};

/// What is beside the binary.
const DOCUMENTS: [&str; 3] = ["LICENSE", "README.md", "CHANGELOG.md"];
/// Shells with completions, and what their users' completion files are called.
const SHELLS: [(&str, &str); 3] =
    [("bash", "radixscope.bash"), ("zsh", "_radixscope"), ("fish", "radixscope.fish")];

/// The command's options.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Without any library of the system, linked with musl
    #[arg(long = "static")]
    is_static: bool,
    /// Also a Python wheel, which is installed into a fresh environment and started: `pip install` it, then `radixscope demo`
    #[arg(long)]
    wheel: bool,
}

/// Builds and collects the files.
///
/// # Errors
/// When a step fails or a file cannot be written.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode> {
    let mut missing = setup::missing(workspace, if args.is_static { Purpose::Static } else { Purpose::Demo });
    if args.wheel {
        missing.append(&mut setup::missing(workspace, Purpose::Wheel));
    }
    if args.is_static && workspace.tool("musl-gcc").is_none() {
        bail!("musl-gcc is missing, which compiles what is C in it: apt-get install musl-tools");
    }
    let mut steps = Steps::new(workspace, missing.len() + 3 + 2 * usize::from(args.wheel));
    setup::meet(&mut steps, &missing)?;
    page::build(&mut steps, workspace, page::Build::Small)?;
    // Named also where it is this machine's own: flags are then for the binary alone, not for what builds it.
    let target = if args.is_static {
        MUSL.to_owned()
    } else {
        output(workspace.command("rustc").args(["--print", "host-tuple"]))?
    };
    steps.step("The server", "about 6 min on two cores", |step| {
        let mut command =
            workspace.cargo(["build", "--locked", "--release", "--package=radixscope", "--target", &target]);
        command.args(demo::SHIPPED);
        set_flags(&mut command, &target);
        step.run(command)
    })?;
    let dist = workspace.target.join("dist");
    fs::create_dir_all(&dist).context("making the folder for the result")?;
    let binary = copy(&workspace.target.join(&target).join("release/radixscope"), &dist)?;
    for file in DOCUMENTS {
        copy(&workspace.root.join(file), &dist)?;
    }
    let archive = steps.step("The archive", "", |_| archive(workspace, &dist, &target))?;
    if args.wheel {
        let wheel = steps
            .step("The wheel", "about 2 min", |step| wheel::build(step, &dist, &target, args.is_static))?;
        steps.step("The wheel, installed and started", "", |step| wheel::verify(step, &wheel))?;
        write_sum(workspace, &wheel)?;
        println!("{}", workspace.shown(&wheel));
    }
    let sum = sum(workspace, &dist.join("radixscope"))?;
    println!("{} ({:.1} MB, sha256 {sum})", workspace.shown(&dist.join("radixscope")), binary as f64 / 1e6);
    println!("{}", workspace.shown(&archive));
    Ok(ExitCode::SUCCESS)
}

/// Sets the compiler's flags: the same sources make the same binary anywhere.
pub(crate) fn set_flags(command: &mut Command, target: &str) {
    let variable = format!("CARGO_TARGET_{}_RUSTFLAGS", target.to_uppercase().replace('-', "_"));
    command.envs(page::nameless().map(|flag| (variable, flag)));
    // The compiler numbers what it takes from one unit into another by where it was compiled: names alone differ.
    command.env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
}

/// `radixscope-VERSION-TARGET.tar.gz` with the binary, documents, completions and man pages, and its checksum beside it. Times,
/// owners and order are fixed: the same content makes the same bytes.
fn archive(workspace: &Workspace, dist: &Path, target: &str) -> Result<PathBuf> {
    let binary = dist.join("radixscope");
    let version = output(workspace.command(&binary).arg("--version"))?;
    let version = version.split_whitespace().last().context("the binary says no version")?;
    let name = format!("radixscope-{version}-{target}");
    let path = dist.join(format!("{name}.tar.gz"));
    let file = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
    let mut tar = tar::Builder::new(GzBuilder::new().mtime(0).write(file, Compression::best()));
    let mut add = |to: &str, content: &[u8], mode: u32| {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(mode);
        tar.append_data(&mut header, format!("{name}/{to}"), content).with_context(|| format!("adding {to}"))
    };
    add("radixscope", &fs::read(&binary).context("reading the binary")?, 0o755)?;
    for file in DOCUMENTS {
        add(file, &fs::read(dist.join(file)).with_context(|| format!("reading {file}"))?, 0o644)?;
    }
    for (shell, file) in SHELLS {
        let script = output(workspace.command(&binary).args(["completions", shell]))?;
        add(&format!("completions/{file}"), format!("{script}\n").as_bytes(), 0o644)?;
    }
    let manual = output(workspace.command(&binary).arg("man"))?;
    add("man/radixscope.1", format!("{manual}\n").as_bytes(), 0o644)?;
    tar.into_inner().and_then(|gz| gz.finish()).context("finishing the archive")?;
    write_sum(workspace, &path)?;
    Ok(path)
}

/// Writes a file's SHA-256 beside it, as `sha256sum --check` reads it.
fn write_sum(workspace: &Workspace, path: &Path) -> Result<()> {
    let name = path.file_name().context("a file without a name")?.to_string_lossy();
    let line = format!("{}  {name}\n", sum(workspace, path)?);
    fs::write(path.with_file_name(format!("{name}.sha256")), line).context("writing the checksum")
}

/// A file's SHA-256, hexadecimal.
fn sum(workspace: &Workspace, path: &Path) -> Result<String> {
    let line = output(workspace.command("sha256sum").arg(path))?;
    Ok(line.split_whitespace().next().unwrap_or_default().to_owned())
}

/// Copies a file into a folder; its size in bytes.
fn copy(file: &Path, folder: &Path) -> Result<u64> {
    let name = file.file_name().context("a file without a name")?;
    fs::copy(file, folder.join(name)).with_context(|| format!("copying {}", file.display()))
}
