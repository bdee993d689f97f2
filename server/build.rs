//! Puts the page into the program, compressed here so that the program need not do it when it starts.
//!
//! Not in a build without optimisation (the profiles `dev` and `demo`), which reads `app/dist` from the disk: there a rebuilt page
//! shows without a rebuilt server, and neither build waits for the other.
#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io, thread};

use radixscope_compress::{Effort, forms};
use sha2::{Digest as _, Sha256};

/// Asks for the page inside such a build as well: `RADIXSCOPE_PAGE_INSIDE=1`.
const INSIDE: &str = "RADIXSCOPE_PAGE_INSIDE";

type Failure = Box<dyn Error + Send + Sync>;

/// A file of the page.
struct File {
    /// Its path in the page.
    name: String,
    path: PathBuf,
    /// SHA-256 of its content, hexadecimal.
    hash: String,
    brotli: Option<PathBuf>,
    gzip: Option<PathBuf>,
}

fn main() -> Result<(), Failure> {
    println!("cargo:rustc-check-cfg=cfg(page_inside)");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={INSIDE}");
    let is_optimised = env::var("OPT_LEVEL")? != "0";
    if !is_optimised && env::var_os(INSIDE).is_none() {
        return Ok(());
    }
    println!("cargo:rustc-cfg=page_inside");
    let dist = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../app/dist");
    println!("cargo:rerun-if-changed={}", dist.display());
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let kept = out.join("page");
    fs::create_dir_all(&kept)?;
    let mut files = found(&dist)?;
    let effort = if is_optimised { Effort::Most } else { Effort::Least };
    thread::scope(|scope| {
        let packing: Vec<_> =
            files.iter_mut().map(|file| scope.spawn(|| pack(file, &kept, effort))).collect();
        packing.into_iter().try_for_each(|one| one.join().map_err(|_| "compressing a file panicked")?)
    })?;
    forget_others(&files, &kept)?;
    fs::write(out.join("page.rs"), table(&files)?)?;
    Ok(())
}

/// The page's files, sorted; none where it is not built.
fn found(dist: &Path) -> Result<Vec<File>, Failure> {
    let mut files = Vec::new();
    let mut open = if dist.is_dir() { vec![dist.canonicalize()?] } else { Vec::new() };
    let root = open.clone();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let entries: Result<Vec<_>, io::Error> = fs::read_dir(&path)?.collect();
            open.extend(entries?.into_iter().map(|entry| entry.path()));
            continue;
        }
        let name = path.strip_prefix(&root[0])?.to_str().ok_or("a file's name is no text")?.to_owned();
        let hash = Sha256::digest(fs::read(&path)?).iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        files.push(File { name, path, hash, brotli: None, gzip: None });
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

/// Compresses a file, unless that was done for an earlier build. A form that is no smaller than the file is kept empty.
fn pack(file: &mut File, kept: &Path, effort: Effort) -> Result<(), Failure> {
    let [brotli, gzip] = ["br", "gz"].map(|form| kept.join(format!("{}.{form}", file.hash)));
    if !(brotli.is_file() && gzip.is_file()) {
        let forms = forms(&file.name, &fs::read(&file.path)?, effort);
        for (path, form) in [&brotli, &gzip].into_iter().zip(forms) {
            // Renamed when it is whole: a build that was ended half-way leaves no half a file.
            let half = path.with_extension("half");
            fs::write(&half, form.unwrap_or_default())?;
            fs::rename(&half, path)?;
        }
    }
    let is_used = |path: &PathBuf| fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0);
    (file.brotli, file.gzip) = (Some(brotli).filter(is_used), Some(gzip).filter(is_used));
    Ok(())
}

/// Removes what earlier builds of the page left.
fn forget_others(files: &[File], kept: &Path) -> Result<(), Failure> {
    let hashes: HashSet<&str> = files.iter().map(|file| file.hash.as_str()).collect();
    for entry in fs::read_dir(kept)? {
        let path = entry?.path();
        let is_current = path.file_stem().and_then(|stem| stem.to_str()).is_some_and(|s| hashes.contains(s));
        if !is_current {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// The files as an array of `Packed`.
fn table(files: &[File]) -> Result<String, Failure> {
    let mut text = String::from("[\n");
    for File { name, path, hash, brotli, gzip } in files {
        let form = |path: &Option<PathBuf>| match path {
            Some(path) => format!("Some(include_bytes!({path:?}))"),
            None => "None".to_owned(),
        };
        let (brotli, gzip, tag) = (form(brotli), form(gzip), &hash[..32]);
        writeln!(
            text,
            "Packed {{ path: {name:?}, tag: {tag:?}, plain: include_bytes!({path:?}), brotli: {brotli}, gzip: {gzip} }},"
        )?;
    }
    text.push(']');
    Ok(text)
}
