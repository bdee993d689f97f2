//! The link state of a source, why an attempt failed, and backoff.

use std::thread;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

use radixscope_intake::Command;
use radixscope_model::record::LinkState;

use crate::hub::{HubEnded, SourceHandle};
use crate::shutdown::{Shutdown, over};

/// Why an attempt failed.
#[derive(Debug)]
pub(crate) struct Failed {
    /// [`LinkState::Refused`] if only the operator can help.
    pub(crate) state: LinkState,
    /// What happened and what to do, as sentences.
    pub(crate) detail: String,
}

impl Failed {
    /// Another attempt may succeed.
    pub(super) fn connecting(detail: String) -> Self {
        Self { state: LinkState::Connecting, detail }
    }

    /// The operator has to change something.
    pub(super) fn refused(detail: String) -> Self {
        Self { state: LinkState::Refused, detail }
    }
}

/// The state that was last reported to the hub.
#[derive(Default)]
pub(super) struct LastState(Option<(LinkState, String)>);

impl LastState {
    /// `None`: nothing was reported yet.
    pub(super) fn state(&self) -> Option<LinkState> {
        self.0.as_ref().map(|(state, _)| *state)
    }

    /// Reports the state of `source` if it changed. Only changes of the state are logged; the description changes often.
    pub(super) async fn report(
        &mut self,
        to: &SourceHandle,
        source: &str,
        state: LinkState,
        detail: String,
    ) -> Result<(), HubEnded> {
        if self.0.as_ref().is_some_and(|(known, reported)| *known == state && *reported == detail) {
            return Ok(());
        }
        if self.state() != Some(state) {
            tracing::info!(source, state = state.as_str(), "{detail}");
        }
        to.state(state, detail.clone()).await?;
        self.0 = Some((state, detail));
        Ok(())
    }
}

/// Exponential backoff: `first` doubled `times` times, at most `longest`.
pub(super) fn doubled(first: Duration, times: u32, longest: Duration) -> Duration {
    first.saturating_mul(2u32.saturating_pow(times)).min(longest)
}

/// Adds up to 25 % jitter, so that many clients do not reconnect at the same moment.
pub(super) fn with_jitter(wait: Duration) -> Duration {
    let by = (crate::time::random() % 1_000) as f64 / 1_000.0;
    wait.mul_f64(0.75 + by / 2.0)
}

/// Reports changes of the link state to the hub. Only the latest is sent, because the connection must not wait for the hub.
async fn forward_status(
    mut status_rx: watch::Receiver<(LinkState, String)>,
    name: String,
    to: &SourceHandle,
) -> Result<(), HubEnded> {
    let mut last = LastState::default();
    loop {
        let (state, detail) = status_rx.borrow_and_update().clone();
        last.report(to, &name, state, detail).await?;
        if status_rx.changed().await.is_err() {
            return Ok(());
        }
    }
}

/// Runs `listen` on a dedicated thread until it or the process ends, and forwards its link state. The scheduler then gives
/// reading its share of CPU time however busy decoding is.
pub(super) async fn run_on_thread(
    thread: &str,
    source: String,
    first: (LinkState, String),
    (to, shutdown): (&SourceHandle, Shutdown),
    listen: impl FnOnce(watch::Sender<(LinkState, String)>) + Send + 'static,
) {
    let (status_tx, status_rx) = watch::channel(first);
    let (ended, has_ended) = oneshot::channel();
    let thread = thread::Builder::new().name(thread.to_owned()).spawn(move || {
        listen(status_tx);
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
