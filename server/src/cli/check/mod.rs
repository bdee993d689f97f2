//! `radixscope check`: listens for a while without serving anything, and says what is wrong in text or JSON and by its
//! exit code.
//!
//! # How it works
//!
//! `radixscope check` is `serve` without HTTP: the same sources and the same hub, looked at twice a second until the
//! time is over. Time counts from when a source is connected and its history is read, because the rules say nothing
//! before. The exit code goes by what is present at the end; whatever keeps it from looking, an option that cannot be
//! meant included, ends with 3, so that no pipeline takes it for a finding. Text and JSON are those of the panel and
//! of `/api/v1/findings`.
//!
//! Given recordings, it folds them and says what was found while they were made, each finding with its times.
//!
//! Recorded deployments are said again through real sockets: NATS by a real server, each `/metrics` by a server that
//! answers as of the recording's time and refuses for a process that was dead, logs line by line. The times in
//! envelopes and log lines are moved to today, or every message would seem to be days late. Rules wait by our clock:
//! at six times the pace they report later in recorded time, so tests judge order there, and `cargo xtask test
//! findings` judges times at the recorded pace.

mod answer;
mod glance;
mod recorded;

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::Failure;
use super::checks::checks;
use super::server::listen;
use super::sources;
use crate::config::{Check, Look};
use crate::hub::Hub;
use crate::shutdown::{Shutdown, over};
use answer::Answer;
use glance::Glance;

/// Exit code of a check that could not look, whatever stood in the way.
pub(super) const EXIT_BLIND: u8 = 3;
/// Log unless told otherwise: the answer and the progress say the rest.
pub(super) const DEFAULT_LOG: &str = "warn,async_nats=off";
/// How often the state is looked at. The rules run once a second.
const GLANCE_EVERY: Duration = Duration::from_millis(500);
/// How often a terminal is told how it goes.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// Listens, then prints what was found.
pub(super) async fn run(options: Check, stopped: Shutdown) -> Result<ExitCode, Failure> {
    if !options.recordings.is_empty() {
        return tokio::task::block_in_place(|| recorded::run(&options));
    }
    let Check { from, judged, look, limits, .. } = options;
    // The hub has to answer after we were asked to stop: it ends by a signal of its own.
    let (end, ended) = watch::channel(false);
    let listening = listen(&limits, checks(&judged)?, sources::feeds(from)?, None, &ended)?;
    let listened = watch_over(&listening.hub, &look, stopped).await?;
    let read =
        listening.hub.read(move |view| Answer::of(view.cluster, view.at_ms, listened, look.output)).await;
    let answer = read.map_err(failed)?.map_err(failed)?;
    end.send_replace(true);
    listening.end().await;
    print(&answer)
}

fn print(answer: &Answer) -> Result<ExitCode, Failure> {
    let written = std::io::stdout().write_all(answer.text.as_bytes());
    written.map_err(|error| Failure::Failed(anyhow!(error).context("writing what was found")))?;
    Ok(ExitCode::from(answer.exit_code))
}

/// How it went until the end of listening.
#[derive(Clone, Copy, Debug, Default)]
struct Listened {
    /// Whether a source was ever connected and current.
    any_live: bool,
    /// How long, since then.
    whole: Duration,
    /// Whether that was when a recording was made.
    is_recorded: bool,
}

/// Waits until the time is over, enough is found, or somebody wants it to end.
async fn watch_over(hub: &Hub, look: &Look, mut stopped: Shutdown) -> Result<Listened, Failure> {
    let started = Instant::now();
    let mut since: Option<Instant> = None;
    let mut said = started;
    let mut tick = tokio::time::interval(GLANCE_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let enough = look.until_found.map(Into::into);
    let is_terminal = std::io::stderr().is_terminal();
    loop {
        let is_stopped = tokio::select! {
            () = over(&mut stopped) => true,
            _ = tick.tick() => false,
        };
        let glance = hub.read(|view| Glance::of(view.cluster)).await.map_err(failed)?;
        // What was kept before we came does not count as time in which we listened.
        if since.is_none() && glance.any_live && !glance.catching_up {
            since = Some(Instant::now());
        }
        let listened = Listened {
            any_live: since.is_some() || glance.any_live,
            whole: since.map(|since| since.elapsed()).unwrap_or_default(),
            is_recorded: false,
        };
        let is_over = match since {
            Some(_) => listened.whole >= look.listen_for,
            None => started.elapsed() >= look.listen_for && !glance.catching_up,
        };
        let is_enough = enough.is_some_and(|enough| glance.worst >= Some(enough));
        if is_over || is_enough || is_stopped {
            return Ok(listened);
        }
        if is_terminal && said.elapsed() >= SAY_EVERY {
            said = Instant::now();
            say(&glance, listened, look);
        }
    }
}

#[expect(clippy::print_stderr, reason = "progress for the person who waits, whatever the log's filter")]
fn say(glance: &Glance, listened: Listened, look: &Look) {
    eprintln!("{} s of {} s: {glance}", listened.whole.as_secs(), look.listen_for.as_secs());
}

fn failed(error: impl Into<anyhow::Error>) -> Failure {
    Failure::Failed(error.into())
}
