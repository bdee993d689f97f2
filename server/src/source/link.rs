//! Where the link of a source stands and why an attempt failed, in words; waits, and waits as people say them.

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
    /// What happened and what to do, a whole sentence or several.
    pub(crate) words: String,
}

impl Failed {
    /// Another attempt may do.
    pub(super) fn connecting(words: String) -> Self {
        Self { state: LinkState::Connecting, words }
    }

    /// The operator has to change something.
    pub(super) fn refused(words: String) -> Self {
        Self { state: LinkState::Refused, words }
    }
}

/// The state that the hub was told last.
#[derive(Default)]
pub(super) struct LastState(Option<(LinkState, String)>);

impl LastState {
    /// `None`: nothing was said yet.
    pub(super) fn state(&self) -> Option<LinkState> {
        self.0.as_ref().map(|(state, _)| *state)
    }

    /// Says where `source` stands, unless that was said last. Only changes of state are logged: words change often.
    pub(super) async fn say(
        &mut self,
        to: &SourceHandle,
        source: &str,
        state: LinkState,
        words: String,
    ) -> Result<(), HubEnded> {
        if self.0.as_ref().is_some_and(|(known, said)| *known == state && *said == words) {
            return Ok(());
        }
        if self.state() != Some(state) {
            tracing::info!(source, state = state.as_str(), "{words}");
        }
        to.state(state, words.clone()).await?;
        self.0 = Some((state, words));
        Ok(())
    }
}

/// `first` doubled so many times, but no longer than `longest`.
pub(super) fn doubled(first: Duration, times: u32, longest: Duration) -> Duration {
    first.saturating_mul(2u32.saturating_pow(times)).min(longest)
}

/// A wait made up to a quarter shorter or longer, so that many clients do not return at the same moment.
pub(super) fn spread(wait: Duration) -> Duration {
    let by = (crate::time::random() % 1_000) as f64 / 1_000.0;
    wait.mul_f64(0.75 + by / 2.0)
}

/// Tells the hub where the link stands, whenever that changes: the latest only, because the hub may be slow and the
/// connection must not wait for it.
async fn pass_words(
    mut said: watch::Receiver<(LinkState, String)>,
    name: String,
    to: &SourceHandle,
) -> Result<(), HubEnded> {
    let mut last = LastState::default();
    loop {
        let (state, words) = said.borrow_and_update().clone();
        last.say(to, &name, state, words).await?;
        if said.changed().await.is_err() {
            return Ok(());
        }
    }
}

/// Runs `listen` on a thread that does nothing else, until it ends or the process does, and passes on where it says that it
/// stands. However busy decoding is, the system gives reading its share.
pub(super) async fn on_own_thread(
    thread: &str,
    source: String,
    first: (LinkState, String),
    (to, shutdown): (&SourceHandle, Shutdown),
    listen: impl FnOnce(watch::Sender<(LinkState, String)>) + Send + 'static,
) {
    let (say, said) = watch::channel(first);
    let (ended, has_ended) = oneshot::channel();
    let thread = thread::Builder::new().name(thread.to_owned()).spawn(move || {
        listen(say);
        let _ = ended.send(());
    });
    if let Err(error) = thread {
        tracing::error!(%error, "no thread to listen on");
        return;
    }
    let mut end = shutdown;
    tokio::select! {
        () = over(&mut end) => {}
        _ = has_ended => {}
        // The hub ends only with the process.
        _ = pass_words(said, source, to) => {}
    }
}

/// Waits for a command, for ever if none can come.
pub(super) async fn next_of(commands: &mut Option<mpsc::Receiver<Command>>) -> Command {
    if let Some(receiver) = commands {
        if let Some(command) = receiver.recv().await {
            return command;
        }
        *commands = None;
    }
    std::future::pending().await
}

/// A wait, to half a second.
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
