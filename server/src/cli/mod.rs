//! The commands: put sources, hub and HTTP together, and say in words why they cannot run.

mod check;
mod checks;
mod demo;
mod export;
mod manual;
mod publish;
mod record;
mod replay;
mod serve;
mod server;
mod sources;
mod survey;

use std::process::ExitCode;

use tokio::sync::watch;

use crate::config::{Cli, Command, without_logins};
use crate::logging;

/// Exit code of something that cannot run now but could with the same options.
const EXIT_FAILED: u8 = 1;
/// Exit code of invalid options, as clap's own.
const EXIT_USAGE: u8 = 2;

/// Why a command ended.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The options cannot be used.
    Usage(anyhow::Error),
    /// Something outside is in the way.
    Failed(anyhow::Error),
}

/// Runs the command that `cli` names.
pub fn run(cli: Cli) -> ExitCode {
    let (log, default) = match &cli.command {
        Command::Completions { shell } => return manual::completions(*shell),
        Command::Man { of } => return manual::page(of.as_deref()),
        Command::Serve(serve) => (&serve.log, logging::DEFAULT_FILTER),
        Command::Demo(demo) => (&demo.log, logging::DEFAULT_FILTER),
        Command::Check(check) => (&check.log, check::DEFAULT_LOG),
        Command::Record(record) => (&record.log, logging::DEFAULT_FILTER),
        Command::Replay(replay) => (&replay.log, logging::DEFAULT_FILTER),
        Command::Export(export) => (&export.log, check::DEFAULT_LOG),
        Command::Sources(survey) => (&survey.log, check::DEFAULT_LOG),
    };
    // A pipeline must not take what stands in the way of a check for a finding.
    let is_check = matches!(cli.command, Command::Check(_));
    let code = |code| if is_check { check::EXIT_BLIND } else { code };
    let outcome = logging::start(log.log_format, log.log.as_deref().unwrap_or(default))
        .map_err(|error| Failure::Usage(error.context("--log")))
        .and_then(|_sums| {
            let runtime = tokio::runtime::Runtime::new().map_err(|error| Failure::Failed(error.into()))?;
            let done = runtime.block_on(run_async(cli.command));
            runtime.shutdown_background();
            done
        });
    match outcome {
        Ok(done) => done,
        Err(Failure::Usage(error)) => ended(&error, code(EXIT_USAGE)),
        Err(Failure::Failed(error)) => ended(&error, code(EXIT_FAILED)),
    }
}

/// Ends because the command line asks for help or cannot be read.
pub fn not_run(said: &clap::Error) -> ExitCode {
    match said.use_stderr() {
        // What is wrong quotes what was given, and there may be a login in that.
        true => eprint(&without_logins(&said.render().to_string())),
        // Nobody is left to tell if the terminal is gone.
        false => drop(said.print()),
    }
    match said.exit_code() {
        0 => ExitCode::SUCCESS,
        _ if std::env::args().nth(1).is_some_and(|command| command == "check") => {
            ExitCode::from(check::EXIT_BLIND)
        }
        _ => ExitCode::from(EXIT_USAGE),
    }
}

#[expect(clippy::print_stderr, reason = "there is no log yet")]
fn eprint(words: &str) {
    eprint!("{words}");
}

#[expect(clippy::print_stderr, reason = "the last word before the process ends, whatever the log's filter")]
fn ended(error: &anyhow::Error, code: u8) -> ExitCode {
    eprintln!("error: {error:#}");
    ExitCode::from(code)
}

async fn run_async(command: Command) -> Result<ExitCode, Failure> {
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        asked_to_end().await;
        tracing::info!("ending");
        stop.send_replace(true);
        // A second signal means it: no more waiting for connections.
        asked_to_end().await;
        std::process::exit(i32::from(EXIT_FAILED));
    });
    match command {
        // Answered before there is a log.
        Command::Completions { .. } | Command::Man { .. } => Ok(()),
        Command::Check(options) => return check::run(*options, stopped).await,
        Command::Sources(options) => return survey::run(*options, stopped).await,
        Command::Record(options) => return record::run(*options, stopped).await,
        Command::Export(options) => return tokio::task::block_in_place(|| export::run(&options)),
        Command::Replay(options) => replay::run(*options, stopped).await,
        Command::Serve(options) => serve::run(*options, stopped).await,
        Command::Demo(options) => match options.nats.clone() {
            Some(url) => publish::run(*options, url, stopped).await,
            None => demo::run(*options, stopped).await,
        },
    }
    .map(|()| ExitCode::SUCCESS)
}

/// Waits for Ctrl-C or, where there is such a thing, SIGTERM.
async fn asked_to_end() {
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
        // Without signals only the process's end ends us.
        std::future::pending::<()>().await;
    }
}
