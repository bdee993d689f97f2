//! `cargo xtask demo`: from a fresh checkout to the simulated cluster in a browser.

use std::{
    env,
    net::{SocketAddr, TcpStream},
    path::Path,
    process::ExitCode,
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{
    page,
    process::{self, RunningProcess},
    setup::{self, Purpose},
    steps::Steps,
    workspace::Workspace,
};

/// Default listen address of the server.
const DEFAULT_LISTEN: &str = "127.0.0.1:8321";
/// How often the starting server is tried.
const TRY_EVERY: Duration = Duration::from_millis(50);

/// Sets up, builds, starts the server and stays until it ends.
///
/// # Errors
/// When a step fails or the server ends before it listens.
pub(crate) fn run(workspace: &Workspace, parts: Parts, args: &[String]) -> Result<ExitCode> {
    let missing = setup::missing(workspace, Purpose::Demo);
    let mut steps = Steps::new(workspace, missing.len() + 2);
    setup::meet(&mut steps, &missing)?;
    let binary = workspace.target.join("demo/radixscope");
    let beside = if binary.is_file() { Vec::new() } else { start_building_the_rest(workspace, parts)? };
    page::build(&mut steps, workspace, parts.page())?;
    for mut build in beside {
        // Should it have failed, the next step fails too and shows why.
        let _ = build.wait();
    }
    build_server(&mut steps, workspace, "demo", parts.features())?;
    start(workspace, &binary, args)
}

/// Begins to build the server, which reads the page from the disk in this profile, and the bundler, beside the page: its largest
/// crate keeps one core busy for a minute. They take what the page's build leaves of the cores.
fn start_building_the_rest(workspace: &Workspace, parts: Parts) -> Result<Vec<RunningProcess>> {
    let builds = [("radixscope", "demo", parts.features()), ("radixscope-bundle", "dev", &[])];
    let start = |(package, profile, features): (&str, &str, &[&str])| {
        let mut cargo =
            workspace.cargo(["build", "--locked", "--quiet", "--package", package, "--profile", profile]);
        cargo.args(features);
        RunningProcess::start_beside(&cargo)
    };
    builds.into_iter().map(start).collect()
}

/// How much of Radixscope a demo has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parts {
    /// What a simulated cluster needs
    Needed,
    /// What the shipped binary has, but its allocator
    All,
}

impl Parts {
    const fn features(self) -> &'static [&'static str] {
        match self {
            Self::Needed => &[],
            Self::All => &FULL,
        }
    }

    const fn page(self) -> page::Build {
        match self {
            Self::Needed => page::Build::Quick,
            Self::All => page::Build::Complete,
        }
    }
}

/// Every feature of the server that users get.
pub(crate) const FULL: [&str; 2] = ["--features", "full"];
/// What a shipped binary has beyond one for development.
pub(crate) const SHIPPED: [&str; 2] = ["--features", "full,jemalloc"];

/// Builds the server; all profiles but `dev` and `demo` put the page into it.
///
/// # Errors
/// When the compiler says so.
pub(crate) fn build_server(
    steps: &mut Steps<'_>,
    workspace: &Workspace,
    profile: &str,
    features: &[&str],
) -> Result<()> {
    steps.step("The server", "about 2 min on two cores, seconds when little changed", |step| {
        let mut command =
            workspace.cargo(["build", "--locked", "--profile", profile, "--package", "radixscope"]);
        command.args(features);
        step.run(command)
    })
}

fn start(workspace: &Workspace, binary: &Path, args: &[String]) -> Result<ExitCode> {
    let mut command = workspace.command(binary);
    command.arg("demo").args(args);
    let url = url(args);
    let mut server = RunningProcess::start(&mut command)?;
    if let Some((address, url)) = url {
        while TcpStream::connect_timeout(&address, TRY_EVERY).is_err() {
            if let Some(status) = server.child.try_wait().context("looking at the server")? {
                bail!("the server ended with {status} before it listened on {address}");
            }
            thread::sleep(TRY_EVERY);
        }
        println!("\n    Radixscope shows a simulated cluster on\n\n        {url}\n\n    Ctrl-C ends it.\n");
    }
    let status = server.wait()?;
    if process::stopping() || status.success() {
        return Ok(ExitCode::SUCCESS);
    }
    bail!("the server ended with {status}");
}

/// Where the server will be found, as far as its options say; none when they make it do something else.
fn url(args: &[String]) -> Option<(SocketAddr, String)> {
    if args.iter().any(|arg| matches!(arg.as_str(), "--help" | "-h" | "--version" | "-V")) {
        return None;
    }
    if option(args, "--nats", "RADIXSCOPE_DEMO_NATS").is_some() {
        return None; // publishes to a NATS server instead of serving
    }
    let listen = option(args, "--listen", "RADIXSCOPE_LISTEN").unwrap_or_else(|| DEFAULT_LISTEN.to_owned());
    let mut address: SocketAddr = listen.parse().ok()?;
    let base = option(args, "--base-path", "RADIXSCOPE_BASE_PATH").unwrap_or_else(|| "/".to_owned());
    if address.ip().is_unspecified() {
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    Some((address, format!("http://{address}{base}")))
}

fn option(args: &[String], flag: &str, variable: &str) -> Option<String> {
    let given = args.iter().enumerate().rev().find_map(|(at, arg)| {
        if arg == flag {
            return args.get(at + 1).cloned();
        }
        arg.strip_prefix(flag)?.strip_prefix('=').map(str::to_owned)
    });
    given.or_else(|| env::var(variable).ok())
}

#[cfg(test)]
mod tests {
    use super::url;

    fn shown(args: &[&str]) -> Option<String> {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        url(&args).map(|(_, url)| url)
    }

    #[test]
    fn the_shown_address_follows_the_servers_options() {
        assert_eq!(shown(&[]).as_deref(), Some("http://127.0.0.1:8321/"));
        assert_eq!(
            shown(&["--listen", "0.0.0.0:9000", "--base-path=/x/"]).as_deref(),
            Some("http://127.0.0.1:9000/x/")
        );
        assert_eq!(shown(&["--help"]), None);
        assert_eq!(shown(&["--nats=nats://127.0.0.1:4222"]), None);
    }
}
