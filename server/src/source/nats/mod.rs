//! The NATS source: connects to a Dynamo deployment over NATS, reconnects, and reports its state. It only reads. A connection
//! runs on a dedicated thread.
//!
//! # How it works
//! Core subscriptions to the subjects that are decoded, never `>`. Copies that JetStream delivers to routers (`$JS.ACK.`
//! replies) are skipped. JetStream history: subscribe first, read the stream by sequence up to its end, then forward the live
//! messages that were not in it, compared by content. After a reconnect, reading continues at the last position if the message
//! there is still the one that was received; otherwise from the last position at which both agree, and a gap is recorded.

mod agreement;
mod connect;
mod dedupe;
mod denied;
mod follower;
mod history;
pub(crate) mod jetstream;
mod session;
mod status;
mod tls;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc;

use radixscope_intake::{Command, NatsSubjects, Payload};
use radixscope_model::id::Millis;
use radixscope_model::record::LinkState;

pub(crate) use connect::{INBOX, Signals, Target, Whereabouts};
pub(crate) use denied::missing_right;

use crate::config::{InvalidOption, Nats};
use crate::hub::SourceHandle;
use crate::shutdown::{Shutdown, over};
use crate::source::SourceStatus;
use crate::source::gate::Gate;
use crate::source::link::{StatusSender, doubled, run_on_thread, seconds, with_jitter};
use crate::time::now;
use follower::StreamFollower;
use session::Session;

/// First wait after a failed attempt; each further one doubles it.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// Longest wait between attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// A NATS server to listen to.
pub struct NatsSource {
    name: String,
    options: Nats,
    /// Where the server is, which may change.
    at: Whereabouts,
    gate: Arc<Gate>,
}

/// State that survives a reconnect.
struct SessionState {
    /// Interned subjects of live messages.
    subjects: NatsSubjects,
    /// Commands from intake; `None`: the channel is closed.
    commands: Option<mpsc::Receiver<Command>>,
    /// Streams by name.
    streams: HashMap<String, StreamFollower>,
    /// Whether any JetStream message was ever received.
    has_stream_messages: bool,
    /// When the last connection was last known to be alive. `None`: first connection.
    alive_ms: Option<Millis>,
    /// Id of the server; it changes with every start of the server.
    server_id: String,
    /// The connection was lost, but the queue was full, so the hub has not been notified yet.
    pending_disconnect: bool,
}

impl SessionState {
    /// Notifies the hub of the lost connection once there is room in the queue, behind the messages received before.
    fn report_disconnect(&mut self, to: &SourceHandle) {
        if self.pending_disconnect {
            self.pending_disconnect = !to.offer(now(), Payload::Unsubscribed { publisher_id: None }, true);
        }
    }
}

impl NatsSource {
    /// A source as the command line describes it.
    ///
    /// # Errors
    /// An option that cannot be used.
    pub fn new(options: Nats, gate: &Arc<Gate>) -> Result<Self, InvalidOption> {
        let target = Target::new(&options.nats, &options.login)?;
        let name = target.display_address().to_owned();
        Ok(Self { name, options, at: target.fixed(), gate: Arc::clone(gate) })
    }

    /// A server that may move, come and go.
    #[cfg(feature = "kubernetes")]
    pub(crate) fn following(name: String, at: Whereabouts, options: Nats, gate: &Arc<Gate>) -> Self {
        Self { name, options, at, gate: Arc::clone(gate) }
    }

    /// Its address without credentials, or what it is named after.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Listens until the process ends.
    pub async fn run(self, to: SourceHandle, shutdown: Shutdown) {
        let status = match &*self.at.borrow() {
            Ok(target) => connecting(target),
            Err(why) => SourceStatus::new(LinkState::Live, why),
        };
        let name = self.name.clone();
        let background = Handle::current();
        let (to_thread, stopped) = (to.clone(), shutdown.clone());
        let listen = move |status| self.listen(&to_thread, &status, &stopped, &background);
        run_on_thread("nats", name, status, (&to, shutdown), listen).await;
    }

    /// Connects and reconnects. Each connection has its own runtime, which ends with it, so that the client never reconnects by
    /// itself.
    fn listen(mut self, to: &SourceHandle, status: &StatusSender, shutdown: &Shutdown, background: &Handle) {
        let mut session = SessionState {
            subjects: NatsSubjects::default(),
            commands: to.take_commands(),
            streams: HashMap::new(),
            has_stream_messages: false,
            alive_ms: None,
            server_id: String::new(),
            pending_disconnect: false,
        };
        let mut attempt = 0;
        while !*shutdown.borrow() {
            let runtime = match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    status.set(SourceStatus::refused(format!(
                        "The runtime for NATS could not be started: {error}."
                    )));
                    return;
                }
            };
            runtime.block_on(async {
                let mut end = shutdown.clone();
                tokio::select! {
                    () = over(&mut end) => {}
                    () = self.once(to, status, (shutdown, background), &mut session, &mut attempt) => {}
                }
            });
        }
    }

    /// One connection: connects, runs until the connection is lost, or waits before the next attempt.
    async fn once(
        &mut self,
        to: &SourceHandle,
        status: &StatusSender,
        (shutdown, background): (&Shutdown, &Handle),
        session: &mut SessionState,
        attempt: &mut u32,
    ) {
        let target = match &*self.at.borrow_and_update() {
            Ok(target) => Ok(target.clone()),
            Err(why) => Err(why.clone()),
        };
        let target = match target {
            Ok(target) => target,
            Err(why) => {
                session.report_disconnect(to);
                // Nothing is missed where nothing is.
                status.set(SourceStatus::new(LinkState::Live, why));
                return moved(&mut self.at).await;
            }
        };
        let shown = target.display_address();
        match target.connect().await {
            Ok(connected) => {
                tracing::info!(nats = shown, "connected to NATS");
                *attempt = 0;
                session.pending_disconnect = false;
                let runs_in = (shutdown.clone(), background.clone());
                let running =
                    Session::new(connected, (&self.options, &self.gate), to, session, status, runs_in).run();
                let why = tokio::select! {
                    why = running => why,
                    () = moved(&mut self.at) => "it is at another address or gone".to_owned(),
                };
                session.pending_disconnect = true;
                session.report_disconnect(to);
                tracing::warn!(nats = shown, why, "connection to NATS lost");
                let lost = format!("NATS at {shown}: connection lost ({why}). Reconnecting.");
                status.set(SourceStatus::connecting(lost));
            }
            Err(SourceStatus { state, detail: why }) => {
                session.report_disconnect(to);
                let wait = wait_after(*attempt);
                *attempt += 1;
                tracing::warn!(nats = shown, wait_s = wait.as_secs_f32(), "{why}");
                status.set(SourceStatus::new(state, format!("{why} Retrying in {}.", seconds(wait))));
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = moved(&mut self.at) => *attempt = 0,
                }
            }
        }
    }
}

fn connecting(target: &Target) -> SourceStatus {
    SourceStatus::connecting(format!("Connecting to NATS at {}.", target.display_address()))
}

/// Waits until the server is elsewhere.
async fn moved(at: &mut Whereabouts) {
    if at.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Exponential backoff after attempt number `attempt`, from 0, with 25 % jitter.
fn wait_after(attempt: u32) -> Duration {
    with_jitter(doubled(FIRST_WAIT, attempt, LONGEST_WAIT)).min(LONGEST_WAIT)
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
