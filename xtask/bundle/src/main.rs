//! `bundle PROGRAMS OUT [WITHOUT]`: from the WebAssembly that cargo left in PROGRAMS, makes the page's files in OUT. WITHOUT is the
//! program of a Web Worker that the page does without; the document says so.
//!
//! The page's program is cut at its split points (`#[wasm_split]`) into a first program and chunks that are loaded when they
//! are needed; the programs of Web Workers stay whole. Names hold a digest of their content where the document names them, so
//! that browsers keep them for ever. The same input makes the same files, byte for byte.
#![forbid(unsafe_code)]

mod document;
mod program;

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result, bail};

use program::{Names, Program};

/// What every viewer loads first.
const PAGE: &str = "page";
/// Programs of Web Workers, started by the page when they are needed; their names hold no digest.
const WORKERS: [&str; 3] = ["worker", "player", "tokenizer"];
/// The page's document, beside which its sources lie.
const DOCUMENT: &str = "app/index.html";
/// What is copied as it is, each with the name it gets.
const COPIED: [(&str, &str); 2] = [("public/vendor", "vendor"), ("public/nav.svg", "nav.svg")];

fn main() -> Result<()> {
    let args: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let (programs, out, without) = match args.as_slice() {
        [programs, out] => (programs, out, None),
        [programs, out, without] => (programs, out, without.to_str()),
        _ => bail!("usage: bundle PROGRAMS OUT [WITHOUT]"),
    };
    if let Some(unknown) = without.filter(|without| !WORKERS.contains(without)) {
        bail!("{unknown} is no program of a Web Worker; there are {}", WORKERS.join(", "));
    }
    // Whoever serves the folder meanwhile never sees half a page.
    let half = out.with_extension("half");
    if half.is_dir() {
        fs::remove_dir_all(&half).with_context(|| format!("removing {}", half.display()))?;
    }
    fs::create_dir_all(&half).with_context(|| format!("creating {}", half.display()))?;
    bundle(programs, &half, without)?;
    if out.is_dir() {
        fs::remove_dir_all(out).with_context(|| format!("removing {}", out.display()))?;
    }
    fs::rename(&half, out).with_context(|| format!("renaming {} to {}", half.display(), out.display()))
}

fn bundle(programs: &Path, out: &Path, without: Option<&str>) -> Result<()> {
    let read = |name: &str| {
        let path = programs.join(name).with_extension("wasm");
        fs::read(&path).with_context(|| format!("reading {}", path.display()))
    };
    let page = Program::split(PAGE, &read(PAGE)?)?;
    let names = Names { without: without.map(str::to_owned), ..page.write_with_digests(out)? };
    for worker in WORKERS.into_iter().filter(|worker| Some(*worker) != without) {
        Program::whole(worker, &read(worker)?)?.write_as_worker(out)?;
    }
    for (from, name) in COPIED {
        copy(Path::new(from), &out.join(name))?;
    }
    let document = fs::read_to_string(DOCUMENT).with_context(|| format!("reading {DOCUMENT}"))?;
    let folder = Path::new(DOCUMENT).parent().unwrap_or(Path::new("."));
    let document = document::assembled(&document, folder, out, &names)?;
    fs::write(out.join("index.html"), document).context("writing the document")
}

/// A file, or a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let context = || format!("copying {}", from.display());
    if !from.is_dir() {
        return fs::copy(from, to).map(drop).with_context(context);
    }
    fs::create_dir_all(to).with_context(context)?;
    for entry in fs::read_dir(from).with_context(context)? {
        let entry = entry.with_context(context)?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
