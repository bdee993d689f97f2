//! A Dynamo deployment over NATS: connects for ever, says in words where it stands, and leaves no trace there.

mod connect;
mod dedupe;
mod history;
pub(crate) mod jetstream;
mod line;
mod session;

use std::collections::HashMap;
use std::time::Duration;

use radixscope_core::record::LinkState;

pub use connect::BadOption;
pub(crate) use connect::{Failed, Target};

use crate::config::Nats;
use crate::hub::{HubEnded, SourceHandle};
use crate::shutdown::{Shutdown, over};
use crate::source::words;
use session::Session;

/// First wait after a failed attempt; each further one doubles it.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// Longest wait between attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// A NATS server to listen to.
pub struct Source {
    options: Nats,
    target: Target,
}

impl Source {
    /// A source as the command line describes it.
    ///
    /// # Errors
    /// An option that cannot be used.
    pub fn new(options: Nats) -> Result<Self, BadOption> {
        let target = Target::new(&options.nats, &options.login)?;
        Ok(Self { options, target })
    }

    /// Its address, without anything secret.
    pub fn name(&self) -> &str {
        self.target.shown()
    }

    /// Listens until the process ends.
    pub async fn run(self, to: SourceHandle, shutdown: Shutdown) {
        let mut end = shutdown.clone();
        tokio::select! {
            () = over(&mut end) => {}
            // The hub ends only with the process.
            _ = self.listen(&to, shutdown) => {}
        }
    }

    async fn listen(&self, to: &SourceHandle, shutdown: Shutdown) -> Result<(), HubEnded> {
        let mut lines = HashMap::new();
        let mut attempt = 0;
        let shown = self.target.shown();
        to.state(LinkState::Connecting, format!("Connecting to NATS at {shown}.")).await?;
        loop {
            match self.target.connect().await {
                Ok((client, signals)) => {
                    tracing::info!(nats = shown, "connected");
                    attempt = 0;
                    let session =
                        Session::new(client, signals, &self.options, to, &mut lines, shutdown.clone());
                    let why = session.run().await?;
                    tracing::warn!(nats = shown, why, "connection lost");
                    let words =
                        format!("The connection to NATS at {shown} was lost: {why}. Connecting again.");
                    to.state(LinkState::Connecting, words).await?;
                }
                Err(Failed { state, words }) => {
                    let wait = wait_after(attempt);
                    attempt += 1;
                    tracing::warn!(nats = shown, wait_s = wait.as_secs_f32(), "{words}");
                    let again = format!("{words} Trying again in {}.", words::seconds(wait));
                    to.state(state, again).await?;
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }
}

/// How long to wait after failed attempt number `attempt`, from 0: doubling, and spread by a quarter, so that many
/// clients do not return to a restarted server at the same moment.
fn wait_after(attempt: u32) -> Duration {
    let wait = FIRST_WAIT.saturating_mul(2u32.saturating_pow(attempt)).min(LONGEST_WAIT);
    let spread = (crate::time::random() % 1_000) as f64 / 1_000.0;
    wait.mul_f64(0.75 + spread / 2.0).min(LONGEST_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_stay_bounded() {
        assert!(wait_after(0) < Duration::from_millis(400));
        assert!(wait_after(3) > wait_after(0));
        assert!((5..100).all(|attempt| wait_after(attempt) <= LONGEST_WAIT && wait_after(attempt) >= LONGEST_WAIT / 2));
    }
}
