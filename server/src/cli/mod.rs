//! The commands: combine sources, hub and HTTP, and print why a command cannot run.

mod check;
mod checks;
mod demo;
#[cfg(feature = "kubernetes")]
mod deploy;
mod export;
mod fleet;
#[cfg_attr(not(feature = "kubernetes"), path = "without_kubernetes.rs")]
mod in_kubernetes;
mod manual;
mod open;
mod plan;
mod policy_file;
mod probe;
mod publish;
mod record;
mod replay;
mod serve;
mod server;
mod sources;
mod stage;

use std::process::ExitCode;
use std::time::Duration;

use tokio::sync::watch;

use crate::config::{Cli, Command, without_logins};
use crate::logging;

/// Exit code of a failure that is not due to the options.
const EXIT_FAILED: u8 = 1;
/// Exit code of invalid options, as clap's own.
const EXIT_USAGE: u8 = 2;

/// How long a thread for work that blocks waits for more of it. Threads take turns: while a log is read hundreds of times a second,
/// tokio's ten seconds would keep as many as ever worked at once, each with memory of its own.
const IDLE_THREAD_KEPT: Duration = Duration::from_millis(10);

/// Why a command fails.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The options cannot be used.
    Usage(anyhow::Error),
    /// The environment prevents it: network, files, ports.
    Failed(anyhow::Error),
}

/// Runs the command that `cli` names.
pub fn run(cli: Cli) -> ExitCode {
    let (log, default) = match &cli.command {
        Command::Completions { shell } => return manual::completions(*shell),
        Command::Man { of } => return manual::page(of.as_deref()),
        Command::Serve(serve) => (&serve.log, logging::DEFAULT_FILTER),
        Command::Demo(demo) => (&demo.log, logging::DEFAULT_FILTER),
        Command::Stage(stage) => (&stage.serve.log, logging::DEFAULT_FILTER),
        Command::Check(check) => (&check.log, check::DEFAULT_LOG),
        Command::Record(record) => (&record.log, logging::DEFAULT_FILTER),
        Command::Open(open) => (&open.log, logging::DEFAULT_FILTER),
        Command::Fleet(fleet) => (&fleet.log, logging::DEFAULT_FILTER),
        Command::Replay(replay) => (&replay.log, logging::DEFAULT_FILTER),
        Command::Export(export) => (&export.log, check::DEFAULT_LOG),
        Command::Sources(probe) => (&probe.log, check::DEFAULT_LOG),
        Command::Plan(plan) => (&plan.log, check::DEFAULT_LOG),
        Command::Deploy(deploy) => (&deploy.log, check::DEFAULT_LOG),
    };
    // A pipeline must not mistake a failed check for a finding.
    let is_check = matches!(cli.command, Command::Check(_));
    let code = |code| if is_check { check::EXIT_NO_DATA } else { code };
    let outcome = logging::start(log.log_format, log.log.as_deref().unwrap_or(default))
        .map_err(|error| Failure::Usage(error.context("--log")))
        .and_then(|_sums| {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .thread_keep_alive(IDLE_THREAD_KEPT)
                .build()
                .map_err(|error| Failure::Failed(error.into()))?;
            let done = runtime.block_on(run_async(cli.command));
            runtime.shutdown_background();
            done
        });
    match outcome {
        Ok(done) => done,
        Err(Failure::Usage(error)) => fail(&error, code(EXIT_USAGE)),
        Err(Failure::Failed(error)) => fail(&error, code(EXIT_FAILED)),
    }
}

/// Prints help, or what is wrong with the command line.
pub fn usage_error(error: &clap::Error) -> ExitCode {
    match error.use_stderr() {
        // The message quotes the arguments, which may contain credentials.
        true => eprint(&without_logins(&error.render().to_string())),
        // A closed terminal is ignored.
        false => drop(error.print()),
    }
    match error.exit_code() {
        0 => ExitCode::SUCCESS,
        _ if std::env::args().nth(1).is_some_and(|command| command == "check") => {
            ExitCode::from(check::EXIT_NO_DATA)
        }
        _ => ExitCode::from(EXIT_USAGE),
    }
}

#[expect(clippy::print_stderr, reason = "there is no log yet")]
fn eprint(text: &str) {
    eprint!("{text}");
}

#[expect(clippy::print_stderr, reason = "printed whatever the log's filter")]
fn fail(error: &anyhow::Error, code: u8) -> ExitCode {
    eprintln!("error: {error:#}");
    ExitCode::from(code)
}

async fn run_async(command: Command) -> Result<ExitCode, Failure> {
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        termination_signal().await;
        tracing::info!("stopping");
        stop.send_replace(true);
        // A second signal ends the process at once.
        termination_signal().await;
        std::process::exit(i32::from(EXIT_FAILED));
    });
    match command {
        // Handled before the log starts.
        Command::Completions { .. } | Command::Man { .. } => Ok(()),
        Command::Check(options) => return check::run(*options, stopped).await,
        Command::Sources(options) => return probe::run(*options, stopped).await,
        Command::Record(options) => return record::run(*options, stopped).await,
        Command::Export(options) => return tokio::task::block_in_place(|| export::run(&options)),
        Command::Plan(options) => plan::run(*options, stopped).await,
        Command::Open(options) => open::run(*options, stopped).await,
        Command::Fleet(options) => fleet::run(*options, stopped).await,
        Command::Replay(options) => replay::run(*options, stopped).await,
        #[cfg(feature = "kubernetes")]
        Command::Deploy(options) => deploy::run(*options).await,
        #[cfg(not(feature = "kubernetes"))]
        Command::Deploy(_) => Err(in_kubernetes::needs_feature("deploy")),
        Command::Serve(options) => serve::run(*options, stopped).await,
        Command::Stage(options) => stage::run(*options, stopped).await,
        Command::Demo(options) => match options.nats.clone() {
            Some(url) => publish::run(*options, url, stopped).await,
            None => demo::run(*options, stopped).await,
        },
    }
    .map(|()| ExitCode::SUCCESS)
}

/// Waits for Ctrl-C or, where there is such a thing, SIGTERM.
async fn termination_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    if tokio::signal::ctrl_c().await.is_err() {
        // Without signal handling only the end of the process stops us.
        std::future::pending::<()>().await;
    }
}
