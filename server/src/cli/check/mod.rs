//! `radixscope check`: listens for a while without serving anything, then prints the findings as text or JSON and sets the exit
//! code.
//!
//! # How it works
//! `radixscope check` is `serve` without HTTP: the same sources and the same hub, polled twice a second until the time is over.
//! Time counts from when a source is connected and its history is read, because the rules do not run before. The exit code
//! depends on the findings that are active at the end. If there is no data, or an option is invalid, it is 3, so that no
//! pipeline mistakes that for a finding. Text and JSON are those of the panel and of `/api/v1/findings`. Given recordings, it
//! folds them and reports every finding in them with its times. Tests replay recorded deployments through real sockets: NATS
//! from a real server, each `/metrics` from a server that responds as of the recording's time and refuses connections for a
//! process that was down, logs line by line. Times in envelopes and log lines are moved to today, otherwise every message would
//! be days late. Rules use the wall clock: at six times the pace they report later in recorded time, so those tests check only
//! the order, and `cargo xtask test findings` checks the times at the recorded pace.

mod progress;
mod recorded;
mod report;

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::Failure;
use super::checks::checks;
use super::server::listen;
use super::{in_kubernetes, sources};
use crate::config::{Check, CheckMode};
use crate::hub::Hub;
use crate::shutdown::{Shutdown, over};
use progress::Progress;
use report::CheckReport;

/// Exit code of a check without data, whatever the reason.
pub(super) const EXIT_NO_DATA: u8 = 3;
/// Default log filter: the report and the progress line cover the rest.
pub(super) const DEFAULT_LOG: &str = "warn,async_nats=off,kube_client=off,kube_runtime=off,object_store=off";
/// How often the state is polled. The rules run once a second.
const POLL_EVERY: Duration = Duration::from_millis(500);
/// How often the progress line is printed.
const PRINT_EVERY: Duration = Duration::from_secs(5);

/// Listens, then prints the findings.
pub(super) async fn run(options: Check, stopped: Shutdown) -> Result<ExitCode, Failure> {
    if !options.recordings.is_empty() {
        return tokio::task::block_in_place(|| recorded::run(&options));
    }
    let Check { mut from, slo, mode, limits, .. } = options;
    // The hub must still answer after the stop signal, so it has a signal of its own.
    let (end, ended) = watch::channel(false);
    let found = in_kubernetes::find(&mut from).await?;
    let listening = listen(&limits, checks(&slo)?, sources::feeds(from, found)?, None, &ended)?;
    let period = watch_over(&listening.hub, &mode, stopped).await?;
    let read =
        listening.hub.read(move |view| CheckReport::of(view.cluster, view.at_ms, period, mode.output)).await;
    let report = read.map_err(failed)?.map_err(failed)?;
    end.send_replace(true);
    listening.end().await;
    print(&report)
}

fn print(report: &CheckReport) -> Result<ExitCode, Failure> {
    let written = std::io::stdout().write_all(report.text.as_bytes());
    written.map_err(|error| Failure::Failed(anyhow!(error).context("writing the report")))?;
    Ok(ExitCode::from(report.exit_code))
}

/// The time that the check listened for.
#[derive(Clone, Copy, Debug, Default)]
struct ObservedPeriod {
    /// Whether any source was ever live.
    any_live: bool,
    /// Time since then.
    duration: Duration,
    /// Whether it is the time that a recording covers.
    is_recorded: bool,
}

/// Waits until the time is over, a finding of the severity in `mode` is active, or the process is stopped.
async fn watch_over(hub: &Hub, mode: &CheckMode, mut stopped: Shutdown) -> Result<ObservedPeriod, Failure> {
    let started = Instant::now();
    let mut since: Option<Instant> = None;
    let mut printed = started;
    let mut tick = tokio::time::interval(POLL_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let enough = mode.until_found.map(Into::into);
    let is_terminal = std::io::stderr().is_terminal();
    loop {
        let is_stopped = tokio::select! {
            () = over(&mut stopped) => true,
            _ = tick.tick() => false,
        };
        let progress = hub.read(|view| Progress::of(view.cluster)).await.map_err(failed)?;
        // Reading history does not count as listening.
        if since.is_none() && progress.any_live && !progress.catching_up {
            since = Some(Instant::now());
        }
        let period = ObservedPeriod {
            any_live: since.is_some() || progress.any_live,
            duration: since.map(|since| since.elapsed()).unwrap_or_default(),
            is_recorded: false,
        };
        let is_over = match since {
            Some(_) => period.duration >= mode.listen_for,
            None => started.elapsed() >= mode.listen_for && !progress.catching_up,
        };
        let is_enough = enough.is_some_and(|enough| progress.worst >= Some(enough));
        if is_over || is_enough || is_stopped {
            return Ok(period);
        }
        if is_terminal && printed.elapsed() >= PRINT_EVERY {
            printed = Instant::now();
            print_progress(&progress, period, mode);
        }
    }
}

#[expect(clippy::print_stderr, reason = "progress for the person who waits, whatever the log's filter")]
fn print_progress(progress: &Progress, period: ObservedPeriod, mode: &CheckMode) {
    eprintln!("{} s of {} s: {progress}", period.duration.as_secs(), mode.listen_for.as_secs());
}

fn failed(error: impl Into<anyhow::Error>) -> Failure {
    Failure::Failed(error.into())
}
