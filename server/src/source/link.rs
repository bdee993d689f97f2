//! Where the link of a source stands and why an attempt failed, in words; waits, and waits as people say them.

use std::time::Duration;

use tokio::sync::watch;

use radixscope_model::record::LinkState;

use crate::hub::{HubEnded, SourceHandle};

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
pub(super) async fn pass_words(
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
