//! Runs a command with what tests share: one Chromium, and a demo of each topology that stands still. `cargo xtask test` runs the
//! tests with it; without it each test starts its own. Everything ends with the command.
#![forbid(unsafe_code)]

use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use clap::Parser as _;
use futures_util::future::join_all;
use radixscope_tests::browser::{Chromium, SHARED, STARTED};
use radixscope_tests::process;
use radixscope_tests::radixscope::{Radixscope, STANDING, standing_variable};
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long the command may take to end once it was asked to.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

#[derive(clap::Parser)]
#[command(
    about = "Runs a command with one Chromium and a standing demo of each topology, which its tests share"
)]
struct Options {
    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Options { command } = Options::parse();
    let mut signals = Signals::listen();
    let folder = tempfile::tempdir().expect("a writable folder");
    let started_file = folder.path().join("browsers");
    let begun = Instant::now();
    // What is started ends with its value: also when something panics.
    let (chromium, servers) = tokio::select! {
        started = start() => started,
        () = signals.any() => return ExitCode::FAILURE,
    };
    let seconds = begun.elapsed().as_secs_f64();
    println!("Shared by tests: Chromium, demos that stand still: {} ({seconds:.1} s)", STANDING.join(", "));
    let (program, args) = command.split_first().expect("it is required");
    let mut command = Command::new(program);
    command.args(args).env(SHARED, chromium.address()).env(STARTED, &started_file).kill_on_drop(true);
    for (topology, server) in &servers {
        command.env(standing_variable(topology), server.port().to_string());
    }
    let mut child = command.spawn().unwrap_or_else(|e| panic!("{program}: {e}"));
    let status = tokio::select! {
        status = child.wait() => status.expect("the child is ours"),
        () = signals.any() => end(&mut child).await,
    };
    chromium.close().await;
    let by_tests = std::fs::read_to_string(&started_file).map_or(0, |lines| lines.lines().count());
    println!("Browsers started: {}, of which {by_tests} by single tests", by_tests + 1);
    code_of(status)
}

/// The browser, and a demo for each topology.
async fn start() -> (Chromium, Vec<(&'static str, Radixscope)>) {
    let servers = STANDING.map(async |topology| (topology, Radixscope::start_standing(topology).await));
    tokio::join!(Chromium::start(&[]), join_all(servers))
}

/// Asks the command to end; one that does not is killed.
async fn end(child: &mut Child) -> ExitStatus {
    if let Some(id) = child.id() {
        process::signal("TERM", id);
    }
    if let Ok(status) = tokio::time::timeout(ENDS_WITHIN, child.wait()).await {
        return status.expect("the child is ours");
    }
    child.kill().await.expect("the child is ours");
    child.wait().await.expect("the child is ours")
}

/// The command's own exit code; as shells have it, 128 and more for one that a signal ended.
fn code_of(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// What asks a program to end.
struct Signals([Signal; 3]);

impl Signals {
    fn listen() -> Self {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        Self(kinds.map(|kind| signal(kind).expect("a system with signals")))
    }

    async fn any(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
