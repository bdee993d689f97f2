//! How a source is doing, and backoff.

use std::io;
use std::thread;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use radixscope_intake::Command;
use radixscope_model::record::LinkState;

use crate::hub::{HubEnded, SourceHandle};
use crate::shutdown::{Shutdown, over};

/// How a source is doing, as it reports it to the hub. As an error: what an attempt failed with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SourceStatus {
    /// [`LinkState::Refused`] if only the operator can help.
    pub(crate) state: LinkState,
    /// What happened, what is tried and what to do, as sentences.
    pub(crate) detail: String,
}

impl SourceStatus {
    pub(super) fn new(state: LinkState, detail: impl Into<String>) -> Self {
        Self { state, detail: detail.into() }
    }

    /// Another attempt may succeed.
    pub(super) fn connecting(detail: String) -> Self {
        Self { state: LinkState::Connecting, detail }
    }

    /// The operator has to change something.
    pub(super) fn refused(detail: String) -> Self {
        Self { state: LinkState::Refused, detail }
    }
}

/// The status that was last reported to the hub.
#[derive(Default)]
pub(crate) struct LastStatus(Option<SourceStatus>);

impl LastStatus {
    /// `None`: nothing was reported yet.
    pub(crate) fn state(&self) -> Option<LinkState> {
        self.0.as_ref().map(|status| status.state)
    }

    /// Reports the state of `source` if it changed. Only changes of the state are logged; the description changes often.
    pub(crate) async fn report(
        &mut self,
        to: &SourceHandle,
        source: &str,
        status: SourceStatus,
    ) -> Result<(), HubEnded> {
        if self.0.as_ref() == Some(&status) {
            return Ok(());
        }
        let SourceStatus { state, detail } = &status;
        if self.state() != Some(*state) {
            tracing::info!(source, state = state.as_str(), "{detail}");
        }
        to.state(*state, detail.clone()).await?;
        self.0 = Some(status);
        Ok(())
    }
}

/// How often the counts of a source that follows files are updated in the state.
pub(super) const REPORT_EVERY: Duration = Duration::from_secs(10);

/// Reports how a source is doing that follows files, with counts that change all the time.
pub(super) struct FileStatus<'t> {
    source: &'t str,
    to: &'t SourceHandle,
    last: LastStatus,
    reported_at: Instant,
}

impl<'t> FileStatus<'t> {
    pub(super) fn new(source: &'t str, to: &'t SourceHandle) -> Self {
        Self { source, to, last: LastStatus::default(), reported_at: Instant::now() }
    }

    /// What was reported last; `None`: nothing yet.
    pub(super) fn state(&self) -> Option<LinkState> {
        self.last.state()
    }

    /// Whether it was reported a short while ago that everything is read.
    pub(super) fn is_current(&self) -> bool {
        self.state() == Some(LinkState::Live) && self.reported_at.elapsed() < REPORT_EVERY
    }

    /// Reports the state if it changed.
    pub(super) async fn say(&mut self, state: LinkState, detail: String) -> Result<(), HubEnded> {
        self.reported_at = Instant::now();
        self.last.report(self.to, self.source, SourceStatus { state, detail }).await
    }
}

/// Why a file cannot be read.
pub(super) fn unreadable(shown: &str, error: &io::Error) -> SourceStatus {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            SourceStatus::refused(format!("Permission denied for {shown}; allow this user to read it."))
        }
        _ => SourceStatus::connecting(format!("{shown} cannot be read: {error}.")),
    }
}

/// Sends how a source is doing. Only the latest is sent, because the connection must not wait for the hub.
pub(super) struct StatusSender(watch::Sender<SourceStatus>);

impl StatusSender {
    pub(super) fn set(&self, new: SourceStatus) {
        self.0.send_if_modified(|status| {
            let is_new = *status != new;
            *status = new;
            is_new
        });
    }
}

/// Exponential backoff: `first` doubled `times` times, at most `longest`.
pub(crate) fn doubled(first: Duration, times: u32, longest: Duration) -> Duration {
    first.saturating_mul(2u32.saturating_pow(times)).min(longest)
}

/// Adds up to 25 % jitter, so that many clients do not reconnect at the same moment.
pub(crate) fn with_jitter(wait: Duration) -> Duration {
    let by = (crate::time::random() % 1_000) as f64 / 1_000.0;
    wait.mul_f64(0.75 + by / 2.0)
}

/// Reports to the hub what a [`StatusSender`] sends.
async fn forward_status(
    mut status_rx: watch::Receiver<SourceStatus>,
    name: String,
    to: &SourceHandle,
) -> Result<(), HubEnded> {
    let mut last = LastStatus::default();
    loop {
        let status = status_rx.borrow_and_update().clone();
        last.report(to, &name, status).await?;
        if status_rx.changed().await.is_err() {
            return Ok(());
        }
    }
}

/// Runs `listen` on a dedicated thread until it or the process ends, and forwards how it is doing. The scheduler then gives
/// reading its share of CPU time however busy decoding is.
pub(super) async fn run_on_thread(
    thread: &str,
    source: String,
    first: SourceStatus,
    (to, shutdown): (&SourceHandle, Shutdown),
    listen: impl FnOnce(StatusSender) + Send + 'static,
) {
    let (status_tx, status_rx) = watch::channel(first);
    let (ended, has_ended) = oneshot::channel();
    let thread = thread::Builder::new().name(thread.to_owned()).spawn(move || {
        listen(StatusSender(status_tx));
        let _ = ended.send(());
    });
    if let Err(error) = thread {
        tracing::error!(%error, "the source's thread could not be started");
        return;
    }
    let mut end = shutdown;
    tokio::select! {
        () = over(&mut end) => {}
        _ = has_ended => {}
        // The hub ends only with the process.
        _ = forward_status(status_rx, source, to) => {}
    }
}

/// Waits for a command; never returns if the channel is closed.
pub(super) async fn next_command(commands: &mut Option<mpsc::Receiver<Command>>) -> Command {
    if let Some(receiver) = commands {
        if let Some(command) = receiver.recv().await {
            return command;
        }
        *commands = None;
    }
    std::future::pending().await
}

/// A wait as text, to half a second.
pub(super) fn seconds(wait: Duration) -> String {
    let halves = (wait.as_secs_f64() * 2.0).round();
    if halves < 2.0 { "less than 1 s".to_owned() } else { format!("{} s", halves / 2.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_reads_well() {
        assert_eq!(seconds(Duration::from_millis(300)), "less than 1 s");
        assert_eq!(seconds(Duration::from_millis(3_700)), "3.5 s");
    }
}
