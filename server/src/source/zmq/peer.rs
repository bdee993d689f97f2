//! One connection to a publishing ZeroMQ socket: greeting, subscription, messages, heartbeats; and to one that is asked. It knows
//! nothing of Dynamo. A silent peer is pinged, so that a machine that disappeared is detected. A peer that violates the protocol or a
//! bound is disconnected.

use std::fmt;
use std::io;
use std::pin::pin;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until, timeout};

use radixscope_dynamo::DecodeError;
use radixscope_dynamo::zmtp::{self, Command, Frames, GREETING, GREETING_BYTES, Inbound, Unit, Version};
use radixscope_model::id::Millis;

use crate::config::ZmqEndpoint;
use crate::source::SourceStatus;
use crate::source::gate::{Evidence, Gate, NotConnected};
use crate::time::now;

/// Timeouts. A subscription is not acknowledged, so it counts as effective after a while.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    /// For connecting, and again for the handshake.
    pub(super) connect: Duration,
    /// Until a subscription counts as effective, if no message arrives first.
    pub(super) effective: Duration,
    /// Silence after which the peer is pinged.
    pub(super) ping: Duration,
    /// Silence after which the connection is closed.
    pub(super) dead: Duration,
}

impl Timeouts {
    pub(super) const DEFAULT: Self = Self {
        connect: Duration::from_secs(5),
        effective: Duration::from_millis(200),
        ping: Duration::from_secs(5),
        dead: Duration::from_secs(12),
    };
}

/// Write timeout.
const WRITE_WITHIN: Duration = Duration::from_secs(5);

/// How much is read of a peer until other tasks have their turn: one that never has to be waited for would hold its thread for tens of MB.
const TURN_BYTES: usize = 1024 * 1024;

/// Maximum bytes of a peer's error that are shown.
const MAX_REASON_BYTES: usize = 80;

/// Receives the events of a connection.
pub(super) trait Subscriber {
    /// The subscription is effective. `false`: the queue was full; called again.
    fn effective(&mut self) -> bool;
    /// A message was received.
    fn message(&mut self, frames: Frames<'_>);
}

/// What we are to a peer.
#[derive(Clone, Copy)]
pub(super) enum Role<'r> {
    /// Subscribed to topics with one of these prefixes.
    Subscriber(&'r [String]),
    /// Who asks a ROUTER: many replies follow one request.
    Dealer,
}

impl Role<'_> {
    const fn socket_type(self) -> &'static str {
        match self {
            Self::Subscriber(_) => "SUB",
            Self::Dealer => "DEALER",
        }
    }
}

/// A connected and subscribed peer.
pub(super) struct Peer {
    stream: TcpStream,
    inbound: Inbound,
    version: Version,
    timeouts: Timeouts,
    /// When it was last known to be alive.
    alive_ms: Millis,
    alive: Instant,
}

/// Why a connection failed.
#[derive(Debug)]
enum PeerError {
    Io(io::Error),
    Closed,
    Silent,
    /// A protocol error: another attempt will not succeed.
    Protocol(String),
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::Closed => f.write_str("the connection was closed"),
            Self::Silent => f.write_str("timed out"),
            Self::Protocol(detail) => f.write_str(detail),
        }
    }
}

impl From<io::Error> for PeerError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                Self::Closed
            }
            io::ErrorKind::TimedOut => Self::Silent,
            _ => Self::Io(error),
        }
    }
}

impl From<NotConnected> for PeerError {
    fn from(failure: NotConnected) -> Self {
        match failure {
            NotConnected::Refused(refused) => Self::Protocol(refused.detail),
            NotConnected::Failed(error) => error.into(),
            NotConnected::Silent => Self::Silent,
        }
    }
}

impl From<DecodeError> for PeerError {
    fn from(error: DecodeError) -> Self {
        Self::Protocol(error.detail)
    }
}

impl From<PeerError> for SourceStatus {
    fn from(error: PeerError) -> Self {
        let detail = error.to_string();
        if let PeerError::Protocol(_) = error { Self::refused(detail) } else { Self::connecting(detail) }
    }
}

impl Peer {
    /// Connects, and subscribes if that is the role.
    ///
    /// # Errors
    /// Why the connection failed.
    pub(super) async fn connect(
        endpoint: &ZmqEndpoint,
        (gate, evidence): (&Gate, Evidence<'_>),
        role: Role<'_>,
        timeouts: Timeouts,
    ) -> Result<Self, SourceStatus> {
        let stream = gate.connect_zmq(endpoint, evidence, timeouts.connect).await.map_err(PeerError::from)?;
        Self::greet(stream, role, timeouts).await
    }

    /// The same with who is connected already: both sides greet alike.
    pub(super) async fn greet(
        stream: TcpStream,
        role: Role<'_>,
        timeouts: Timeouts,
    ) -> Result<Self, SourceStatus> {
        let ready = timeout(timeouts.connect, Self::ready(stream, role, timeouts)).await;
        Ok(ready.map_err(|_| PeerError::Silent)??)
    }

    async fn ready(mut stream: TcpStream, role: Role<'_>, timeouts: Timeouts) -> Result<Self, PeerError> {
        stream.set_nodelay(true)?;
        stream.write_all(&GREETING).await?;
        let mut greeting = [0; GREETING_BYTES];
        stream.read_exact(&mut greeting).await?;
        let version = zmtp::read_greeting(&greeting)?;
        stream.write_all(&zmtp::ready(role.socket_type())).await?;
        let mut inbound = Inbound::default();
        while !is_ready(&mut inbound, role)? {
            if stream.read_buf(inbound.room()).await? == 0 {
                return Err(PeerError::Closed);
            }
        }
        if let Role::Subscriber(prefixes) = role {
            for prefix in prefixes {
                stream.write_all(&zmtp::subscribe(prefix, version)).await?;
            }
        }
        Ok(Self { stream, inbound, version, timeouts, alive_ms: now(), alive: Instant::now() })
    }

    /// When it was last known to be alive.
    pub(super) fn alive_ms(&self) -> Millis {
        self.alive_ms
    }

    /// Sends a request and waits for the next message.
    ///
    /// # Errors
    /// Why none came.
    pub(super) async fn request<T>(
        &mut self,
        request: Option<&[u8]>,
        read: impl FnOnce(Frames<'_>) -> T,
    ) -> Result<T, SourceStatus> {
        Ok(self.request_once(request, read).await?)
    }

    async fn request_once<T>(
        &mut self,
        request: Option<&[u8]>,
        read: impl FnOnce(Frames<'_>) -> T,
    ) -> Result<T, PeerError> {
        if let Some(request) = request {
            write(&mut self.stream, request).await?;
        }
        loop {
            let mut pong = None;
            match self.inbound.next()? {
                Some(Unit::Message(frames)) => return Ok(read(frames)),
                Some(Unit::Command(Command::Ping { context })) => pong = Some(zmtp::pong(context)),
                Some(Unit::Command(Command::Error { reason })) => return Err(refusal(reason)),
                Some(Unit::Command(_)) => {}
                None => {
                    let room = self.inbound.room();
                    let read = timeout(self.timeouts.dead, self.stream.read_buf(room)).await;
                    if read.map_err(|_| PeerError::Silent)?? == 0 {
                        return Err(PeerError::Closed);
                    }
                }
            }
            if let Some(pong) = pong {
                write(&mut self.stream, &pong).await?;
            }
        }
    }

    /// Listens until the connection ends; returns the reason.
    pub(super) async fn listen(&mut self, to: &mut impl Subscriber) -> SourceStatus {
        let Err(error) = self.listen_on(to).await;
        error.into()
    }

    async fn listen_on(&mut self, to: &mut impl Subscriber) -> Result<std::convert::Infallible, PeerError> {
        let Timeouts { effective, ping, dead, .. } = self.timeouts;
        let mut effective_at = Some(Instant::now() + effective);
        let (mut is_asked, mut in_turn) = (false, 0);
        // One timer for all reads: it rings no later than the next deadline, and is set again only then.
        let mut alarm = pin!(sleep_until(Instant::now() + effective));
        loop {
            let replies = self.handle(to, &mut effective_at)?;
            if !replies.is_empty() {
                write(&mut self.stream, &replies).await?;
            }
            let silent_until = self.alive + if is_asked { dead } else { ping };
            // ZMTP before 3.1 has no heartbeats.
            let has_heartbeats = self.version.has_commands();
            let wake = match effective_at {
                Some(at) if !has_heartbeats || at < silent_until => Some(at),
                _ => has_heartbeats.then_some(silent_until),
            };
            if let Some(at) = wake
                && (at < alarm.deadline() || alarm.is_elapsed())
            {
                alarm.as_mut().reset(at);
            }
            tokio::select! {
                read = self.stream.read_buf(self.inbound.room()) => {
                    let length = read?;
                    if length == 0 {
                        return Err(PeerError::Closed);
                    }
                    (self.alive, self.alive_ms, is_asked) = (Instant::now(), now(), false);
                    in_turn += length;
                    if in_turn >= TURN_BYTES {
                        in_turn = 0;
                        yield_now().await;
                    }
                }
                () = alarm.as_mut(), if wake.is_some() => {
                    let time = Instant::now();
                    if effective_at.is_some_and(|at| at <= time) {
                        effective_at = (!to.effective()).then(|| time + effective);
                    }
                    if has_heartbeats && silent_until <= time {
                        if is_asked {
                            return Err(PeerError::Silent);
                        }
                        write(&mut self.stream, &zmtp::ping(0)).await?;
                        is_asked = true;
                    }
                }
            }
        }
    }

    /// Delivers what was received; returns replies to send.
    fn handle(
        &mut self,
        to: &mut impl Subscriber,
        effective_at: &mut Option<Instant>,
    ) -> Result<Vec<u8>, PeerError> {
        let mut replies = Vec::new();
        while let Some(unit) = self.inbound.next()? {
            match unit {
                Unit::Message(frames) => {
                    if effective_at.is_some() && to.effective() {
                        *effective_at = None;
                    }
                    to.message(frames);
                }
                Unit::Command(Command::Ping { context }) => replies.extend(zmtp::pong(context)),
                Unit::Command(Command::Error { reason }) => return Err(refusal(reason)),
                Unit::Command(_) => {}
            }
        }
        Ok(replies)
    }
}

/// Whether the peer is ready. It sends nothing before.
fn is_ready(inbound: &mut Inbound, role: Role<'_>) -> Result<bool, PeerError> {
    match (inbound.next()?, role) {
        (None, _) => Ok(false),
        (Some(Unit::Command(Command::Ready { socket_type: b"PUB" | b"XPUB" })), Role::Subscriber(_))
        | (Some(Unit::Command(Command::Ready { socket_type: b"ROUTER" })), Role::Dealer) => Ok(true),
        (Some(Unit::Command(Command::Ready { socket_type })), role) => {
            let name = String::from_utf8_lossy(socket_type);
            let what = match role {
                Role::Subscriber(_) => "does not publish",
                Role::Dealer => "does not replay; expected a ROUTER",
            };
            Err(PeerError::Protocol(format!("a ZeroMQ socket of type {name:?} {what}")))
        }
        (Some(Unit::Command(Command::Error { reason })), _) => Err(refusal(reason)),
        (Some(_), _) => Err(PeerError::Protocol("it sends messages before READY".to_owned())),
    }
}

/// The error of a ZeroMQ peer, truncated and escaped.
fn refusal(reason: &[u8]) -> PeerError {
    let reason = reason.get(..MAX_REASON_BYTES).unwrap_or(reason);
    PeerError::Protocol(format!("rejected by the peer: {}", reason.escape_ascii()))
}

async fn write(stream: &mut TcpStream, bytes: &[u8]) -> Result<(), PeerError> {
    let written = timeout(WRITE_WITHIN, stream.write_all(bytes)).await;
    Ok(written.map_err(|_| PeerError::Silent)??)
}
