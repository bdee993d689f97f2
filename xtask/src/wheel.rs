//! The Python wheel of `cargo xtask dist --wheel`: made by maturin, then installed where nothing else is and started from there.

use std::{
    fs,
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::{demo, dist, process::RunningProcess, steps::Step, workspace::Workspace};

/// The first second that an entry of a zip archive can have, 1980-01-01: the same content makes the same wheel.
const FIRST_ZIP_TIME: &str = "315532800";
/// How long the installed program has to answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// How often it is tried.
const TRY_EVERY: Duration = Duration::from_millis(100);

/// Makes the wheel for `target` in `dist`, without one of another version beside it; its path.
///
/// # Errors
/// When maturin fails or leaves no wheel.
pub(crate) fn build(step: &mut Step<'_>, dist: &Path, target: &str, is_static: bool) -> Result<PathBuf> {
    let workspace = step.workspace;
    for old in wheels(dist)? {
        fs::remove_file(&old).with_context(|| format!("removing {}", old.display()))?;
    }
    let maturin = workspace.tool("maturin").context("maturin is missing")?;
    let mut command = workspace.command(maturin);
    command
        .args(["build", "--locked", "--release", "--target", target, "--out"])
        .arg(dist)
        .args(demo::SHIPPED);
    command.env("SOURCE_DATE_EPOCH", FIRST_ZIP_TIME);
    if is_static {
        // It needs nothing of a system: pip may take it on any Linux.
        command.args(["--compatibility", "manylinux2014", "musllinux_1_1", "--auditwheel", "skip"]);
    }
    dist::set_flags(&mut command, target);
    step.run(command)?;
    wheels(dist)?.pop().context("maturin left no wheel")
}

fn wheels(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| path.extension().is_some_and(|extension| extension == "whl")).collect())
}

/// Installs the wheel into a fresh environment and starts `radixscope demo` from there: it answers, and the page is inside.
///
/// # Errors
/// When pip refuses the wheel, or the program does not start or answer.
pub(crate) fn verify(step: &mut Step<'_>, wheel: &Path) -> Result<()> {
    let workspace = step.workspace;
    let environment = workspace.target.join("wheel");
    if environment.exists() {
        fs::remove_dir_all(&environment).context("removing an earlier environment")?;
    }
    let mut command = workspace.command("python3");
    // Without pip of its own, which Debian has in a package apart: the system's installs into it.
    command.args(["-m", "venv", "--without-pip"]).arg(&environment);
    step.run(command)?;
    let mut install = workspace.command("python3");
    install
        .args(["-m", "pip", "--disable-pip-version-check", "--python"])
        .arg(environment.join("bin/python"));
    install.args(["install", "--no-index", "--no-deps"]).arg(wheel);
    step.run(install)?;
    starts(workspace, &environment.join("bin/radixscope"))
}

fn starts(workspace: &Workspace, program: &Path) -> Result<()> {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    let address = free.context("finding a free port")?;
    let mut command = workspace.command(program);
    command.args(["demo", "--warm-up", "0", "--listen", &address.to_string()]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = RunningProcess::start(&mut command)?;
    let since = Instant::now();
    loop {
        let error = match get(address, "/healthz") {
            Ok(response) if response.starts_with("HTTP/1.1 200 ") => break,
            Ok(response) => response.lines().next().unwrap_or_default().to_owned(),
            Err(error) => error.to_string(),
        };
        if let Some(status) = server.child.try_wait().context("looking at the server")? {
            bail!("`{} demo` ended with {status}", workspace.shown(program));
        }
        if since.elapsed() > ANSWERS_WITHIN {
            bail!("/healthz did not answer within {} s: {error}", ANSWERS_WITHIN.as_secs());
        }
        thread::sleep(TRY_EVERY);
    }
    let page = get(address, "/").context("the page")?;
    if !page.starts_with("HTTP/1.1 200 ") || !page.contains("_bg.wasm") {
        bail!("the page is not inside: {}", page.lines().next().unwrap_or_default());
    }
    Ok(())
}

/// A response with its headers, as text.
fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(ANSWERS_WITHIN))?;
    // In one piece: a server that reads once has all of it.
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response)?;
    Ok(String::from_utf8_lossy(&response).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_read_to_its_end() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let serving = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            // A connection that ends with something unread is reset.
            while !request.ends_with(b"\r\n\r\n") {
                let mut piece = [0; 1_024];
                let length = stream.read(&mut piece).unwrap();
                request.extend_from_slice(&piece[..length]);
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nok").unwrap();
            String::from_utf8_lossy(&request).into_owned()
        });
        assert_eq!(get(address, "/healthz").unwrap(), "HTTP/1.1 200 OK\r\n\r\nok");
        assert!(serving.join().unwrap().starts_with("GET /healthz HTTP/1.1\r\n"));
    }
}
