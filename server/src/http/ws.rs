//! A viewer's WebSocket: hello, then resume or snapshot, then batches. A slow viewer is resynchronised and never delays others;
//! frames are encoded once for all viewers.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::Uri;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use radixscope_model::frame::Frame;
use radixscope_model::id::Seq;

use super::App;
use super::api::params::Params;
use super::error::{ApiError, code};
use super::listen::Peer;
use super::origin::AllowedPage;
use crate::hub::{Hub, Joined, QueryError, Resume};
use crate::shutdown::{Shutdown, over};

/// Maximum size of messages from viewers, which are ignored.
const MAX_INCOMING_BYTES: usize = 4 * 1024;
/// Ping interval.
const PING_EVERY: Duration = Duration::from_secs(20);
/// A viewer that sent nothing for this long is disconnected.
const SILENT_FOR: Duration = Duration::from_secs(65);
/// A new viewer that sends nothing for this long is disconnected. Browsers respond to pings by themselves.
const JOIN_WITHIN: Duration = Duration::from_secs(10);
/// Timeout for sending the close frame.
const CLOSE_WITHIN: Duration = Duration::from_millis(500);
/// Write timeout; the viewer can resume after it reconnects.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) async fn open(
    _: AllowedPage,
    State(app): State<App>,
    peer: Option<Extension<Peer>>,
    uri: Uri,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let params = Params::of(&uri, &["after", "epoch"])?;
    let (after, epoch) = (params.u64("after")?, params.u64("epoch")?);
    let resume = after.map(|after| Resume { after: Seq(after), epoch });
    let upgrade = upgrade.map_err(|_| {
        ApiError::new(code::UPGRADE_REQUIRED, "this endpoint is a WebSocket (ws:// or wss://)")
    })?;
    let most = app.options.max_viewers;
    let seat = app.hub.viewers().enter(most).ok_or_else(|| {
        let message = format!("{most} viewers are connected, the limit of --max-viewers");
        ApiError::new(code::TOO_MANY_VIEWERS, message)
    })?;
    let upgrade = upgrade.max_message_size(MAX_INCOMING_BYTES).max_frame_size(MAX_INCOMING_BYTES);
    // The connection counts as busy as long as the viewer is connected.
    let busy = peer.map(|Extension(peer)| peer.slot.busy());
    Ok(upgrade.on_upgrade(async move |socket| {
        Viewer::follow(socket, app.hub.clone(), resume, app.shutdown.clone()).await;
        drop((seat, busy));
    }))
}

/// Waits for the first message of a new viewer.
async fn sign_of_life(incoming: &mut SplitStream<WebSocket>) -> Result<(), End> {
    match tokio::time::timeout(JOIN_WITHIN, incoming.next()).await {
        Ok(Some(Ok(message))) if !matches!(message, Message::Close(_)) => Ok(()),
        _ => Err(End::Disconnected),
    }
}

struct Viewer {
    out: SplitSink<WebSocket, Message>,
    hub: Hub,
    /// The last record sent.
    reached: Seq,
}

/// Why a viewer's connection ends.
enum End {
    /// The viewer disconnected, or its connection is dead.
    Disconnected,
    /// The server stops.
    ShuttingDown,
    /// The hub failed.
    Failed(QueryError),
}

impl From<QueryError> for End {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Ended => Self::ShuttingDown,
            error => Self::Failed(error),
        }
    }
}

impl Viewer {
    async fn follow(socket: WebSocket, hub: Hub, resume: Option<Resume>, shutdown: Shutdown) {
        let (out, incoming) = socket.split();
        let mut viewer = Self { out, hub, reached: Seq(0) };
        let end = viewer.run(incoming, resume, shutdown).await;
        let (code, reason) = match end {
            End::Disconnected => (close_code::NORMAL, "no response to pings"),
            End::ShuttingDown => (close_code::AWAY, "the server is shutting down"),
            End::Failed(error) => {
                tracing::warn!(%error, "a viewer was disconnected by an error");
                (close_code::ERROR, "the server could not answer")
            }
        };
        let close = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
        // Fails if the viewer has disconnected.
        let _ = tokio::time::timeout(CLOSE_WITHIN, viewer.out.send(close)).await;
    }

    async fn run(
        &mut self,
        mut incoming: SplitStream<WebSocket>,
        resume: Option<Resume>,
        mut shutdown: Shutdown,
    ) -> End {
        let Joined { hello, backlog, from, mut live, .. } = match self.hub.join(resume).await {
            Ok(joined) => joined,
            Err(error) => return error.into(),
        };
        self.reached = from;
        let greet = async {
            self.send(Message::Ping(Bytes::new())).await?;
            self.send_all(std::iter::once(hello).chain(backlog)).await
        };
        let joined = tokio::select! {
            () = over(&mut shutdown) => Err(End::ShuttingDown),
            joined = async { tokio::try_join!(greet, sign_of_life(&mut incoming)) } => joined.map(drop),
        };
        if let Err(end) = joined {
            return end;
        }
        let mut ping = tokio::time::interval_at(Instant::now() + PING_EVERY, PING_EVERY);
        let mut last_received = Instant::now();
        loop {
            let sent = tokio::select! {
                () = over(&mut shutdown) => return End::ShuttingDown,
                batch = live.recv() => match batch {
                    Ok(batch) => {
                        self.reached = self.reached.max(Seq(batch.next.0.saturating_sub(1)));
                        self.send(Message::Binary(batch.frame)).await
                    }
                    Err(RecvError::Lagged(_)) => match self.resynchronise().await {
                        Ok(again) => {
                            live = again;
                            Ok(())
                        }
                        Err(end) => Err(end),
                    },
                    Err(RecvError::Closed) => return End::ShuttingDown,
                },
                message = incoming.next() => match message {
                    Some(Ok(Message::Close(_))) | Some(Err(_)) | None => return End::Disconnected,
                    Some(Ok(_)) => {
                        last_received = Instant::now();
                        Ok(())
                    }
                },
                _ = ping.tick() => {
                    if last_received.elapsed() > SILENT_FOR {
                        return End::Disconnected;
                    }
                    self.send(Message::Ping(Bytes::new())).await
                }
            };
            if let Err(end) = sent {
                return end;
            }
        }
    }

    /// Sends the number of missed records and a new snapshot.
    async fn resynchronise(
        &mut self,
    ) -> Result<tokio::sync::broadcast::Receiver<crate::hub::Published>, End> {
        let Joined { backlog, from, live, .. } = self.hub.join(None).await?;
        let skipped = from.0.saturating_sub(self.reached.0);
        let viewers = self.hub.viewers();
        viewers.resyncs.fetch_add(1, Ordering::Relaxed);
        viewers.skipped_records.fetch_add(skipped, Ordering::Relaxed);
        let lag =
            Frame::Lag { skipped }.encode().map_err(|error| End::Failed(QueryError::Encode(error.into())))?;
        self.reached = from;
        self.send_all(std::iter::once(Bytes::from(lag)).chain(backlog)).await?;
        Ok(live)
    }

    async fn send_all(&mut self, frames: impl Iterator<Item = Bytes>) -> Result<(), End> {
        for frame in frames {
            self.send(Message::Binary(frame)).await?;
        }
        Ok(())
    }

    async fn send(&mut self, message: Message) -> Result<(), End> {
        match tokio::time::timeout(WRITE_TIMEOUT, self.out.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(End::Disconnected),
        }
    }
}
