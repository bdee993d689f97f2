//! A Dynamo deployment over NATS: connects for ever, says in words where it stands, and leaves no trace there.
//!
//! Everything of a connection runs on one thread that does nothing else.
//!
//! # How it works
//!
//! Core subscriptions to the subjects that are decoded, never `>`. Copies that JetStream delivers to routers
//! (`$JS.ACK.` replies) are skipped. JetStream history: subscribe first, read the stream by sequence up to its end,
//! then take the live messages that were not read already, reported apart by their content. After a reconnect the same
//! from where we were, if the message there is still the one that was received: else from where the stream and what
//! was received agree, and it is a gap.

mod agree;
mod connect;
mod dedupe;
mod denied;
mod history;
pub(crate) mod jetstream;
mod line;
mod session;
mod status;
pub(super) mod tls;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::{mpsc, watch};

use radixscope_intake::{Command, NatsSubjects, Payload};
use radixscope_model::id::Millis;
use radixscope_model::record::LinkState;

pub(crate) use connect::{INBOX, Signals, Target};
pub(crate) use denied::missing_right;

use crate::config::{InvalidOption, Nats};
use crate::hub::SourceHandle;
use crate::shutdown::{Shutdown, over};
use crate::source::Failed;
use crate::source::gate::Gate;
use crate::source::link::{doubled, on_own_thread, seconds, spread};
use crate::time::now;
use line::Line;
use session::Session;

/// First wait after a failed attempt; each further one doubles it.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// Longest wait between attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// A NATS server to listen to.
pub struct Source {
    options: Nats,
    target: Target,
    gate: Arc<Gate>,
}

/// What is kept from one connection to the next.
struct Kept {
    /// Subjects of live messages.
    subjects: NatsSubjects,
    /// What intake wants; `None`: nobody can want anything any more.
    commands: Option<mpsc::Receiver<Command>>,
    /// Streams by name.
    lines: HashMap<String, Line>,
    /// Whether messages of a stream ever came.
    has_stream_messages: bool,
    /// The last sign of life of the last connection. `None`: there was none yet.
    alive_ms: Option<Millis>,
    /// Which server that was: a server has another id after each start.
    server_id: String,
    /// The connection is lost and there was no room to say so.
    is_to_say_lost: bool,
}

impl Kept {
    /// Says that nothing is received any more, once there is room. What was received before lies in the queue before it.
    fn say_lost(&mut self, to: &SourceHandle) {
        if self.is_to_say_lost {
            self.is_to_say_lost = !to.offer(now(), Payload::Unsubscribed { publisher_id: None }, true);
        }
    }
}

/// Where the link stands, in words too: the latest only, because the hub may be slow and the connection must not wait
/// for it.
struct Words(watch::Sender<(LinkState, String)>);

impl Words {
    fn say(&self, words: (LinkState, String)) {
        self.0.send_if_modified(|said| {
            let is_new = *said != words;
            *said = words;
            is_new
        });
    }
}

impl Source {
    /// A source as the command line describes it.
    ///
    /// # Errors
    /// An option that cannot be used.
    pub fn new(options: Nats, gate: &Arc<Gate>) -> Result<Self, InvalidOption> {
        let target = Target::new(&options.nats, &options.login)?;
        Ok(Self { options, target, gate: Arc::clone(gate) })
    }

    /// Its address, without anything secret.
    pub fn name(&self) -> &str {
        self.target.shown()
    }

    /// Listens until the process ends.
    pub async fn run(self, to: SourceHandle, shutdown: Shutdown) {
        let words = (LinkState::Connecting, format!("Connecting to NATS at {}.", self.target.shown()));
        let name = self.target.shown().to_owned();
        let elsewhere = Handle::current();
        let (to_thread, stopped) = (to.clone(), shutdown.clone());
        let listen = move |say| self.listen(&to_thread, &Words(say), &stopped, &elsewhere);
        on_own_thread("nats", name, words, (&to, shutdown), listen).await;
    }

    /// Connects for ever. Each connection has a runtime of its own, with which everything of the client ends: it does
    /// not reconnect behind our back.
    fn listen(&self, to: &SourceHandle, words: &Words, shutdown: &Shutdown, elsewhere: &Handle) {
        let mut kept = Kept {
            subjects: NatsSubjects::default(),
            commands: to.take_commands(),
            lines: HashMap::new(),
            has_stream_messages: false,
            alive_ms: None,
            server_id: String::new(),
            is_to_say_lost: false,
        };
        let mut attempt = 0;
        while !*shutdown.borrow() {
            let runtime = match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    words.say((LinkState::Refused, format!("This process cannot listen: {error}.")));
                    return;
                }
            };
            runtime.block_on(async {
                let mut end = shutdown.clone();
                tokio::select! {
                    () = over(&mut end) => {}
                    () = self.once(to, words, (shutdown, elsewhere), &mut kept, &mut attempt) => {}
                }
            });
        }
    }

    /// One attempt to connect, and the connection to its end or the wait for the next attempt.
    async fn once(
        &self,
        to: &SourceHandle,
        words: &Words,
        (shutdown, elsewhere): (&Shutdown, &Handle),
        kept: &mut Kept,
        attempt: &mut u32,
    ) {
        let shown = self.target.shown();
        match self.target.connect().await {
            Ok(connected) => {
                tracing::info!(nats = shown, "connected");
                *attempt = 0;
                kept.is_to_say_lost = false;
                let runs_in = (shutdown.clone(), elsewhere.clone());
                let why = Session::new(connected, (&self.options, &self.gate), to, kept, words, runs_in)
                    .run()
                    .await;
                kept.is_to_say_lost = true;
                kept.say_lost(to);
                tracing::warn!(nats = shown, why, "connection lost");
                let lost = format!("The connection to NATS at {shown} was lost: {why}. Connecting again.");
                words.say((LinkState::Connecting, lost));
            }
            Err(Failed { state, words: why }) => {
                kept.say_lost(to);
                let wait = wait_after(*attempt);
                *attempt += 1;
                tracing::warn!(nats = shown, wait_s = wait.as_secs_f32(), "{why}");
                words.say((state, format!("{why} Trying again in {}.", seconds(wait))));
                tokio::time::sleep(wait).await;
            }
        }
    }
}

/// How long to wait after failed attempt number `attempt`, from 0: doubling, and spread by a quarter, so that many
/// clients do not return to a restarted server at the same moment.
fn wait_after(attempt: u32) -> Duration {
    spread(doubled(FIRST_WAIT, attempt, LONGEST_WAIT)).min(LONGEST_WAIT)
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
