//! One connection to a ZeroMQ socket that publishes: greeting, subscription, messages, heartbeats. It knows nothing of
//! Dynamo.
//!
//! A peer that is silent is asked for a sign of life, so that a machine that went away without a word is noticed; a
//! peer that breaks the protocol or a bound is left.

use std::fmt;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};

use radixscope_dynamo::DecodeError;
use radixscope_dynamo::zmtp::{self, Command, Frames, GREETING, GREETING_BYTES, Inbound, Unit, Version};
use radixscope_model::id::Millis;

use crate::config::ZmqEndpoint;
use crate::source::Failed;
use crate::source::gate::{Evidence, Gate, NotConnected};
use crate::time::now;

/// How long what may take. A subscription is not acknowledged: it counts as effective after a while.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waits {
    /// Until the connection is there, and once more until both sides are ready.
    pub(super) connect: Duration,
    /// From the subscription to where it counts as effective, if no message comes first.
    pub(super) effective: Duration,
    /// A peer that said nothing for so long is asked for a sign of life.
    pub(super) ping: Duration,
    /// One that then goes on saying nothing is given up so long after its last byte.
    pub(super) dead: Duration,
}

impl Waits {
    pub(super) const USUAL: Self = Self {
        connect: Duration::from_secs(5),
        effective: Duration::from_millis(200),
        ping: Duration::from_secs(5),
        dead: Duration::from_secs(12),
    };
}

/// The peer takes what little we send, or is given up.
const WRITE_WITHIN: Duration = Duration::from_secs(5);

/// Most of a peer's reason for refusing that is shown.
const MAX_REASON_BYTES: usize = 80;

/// What comes of a connection.
pub(super) trait Subscriber {
    /// From here on everything that the peer publishes is received. `false`: there was no room to say so; asked again.
    fn effective(&mut self) -> bool;
    /// A message.
    fn message(&mut self, frames: Frames<'_>);
}

/// A peer that is ready and subscribed to.
pub(super) struct Peer {
    stream: TcpStream,
    inbound: Inbound,
    version: Version,
    waits: Waits,
    /// The last sign of life.
    alive_ms: Millis,
    alive: Instant,
}

/// Why a peer cannot be listened to.
#[derive(Debug)]
enum Trouble {
    Io(io::Error),
    Closed,
    Silent,
    /// Another attempt will not do better.
    Wrong(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::Closed => f.write_str("the connection was closed"),
            Self::Silent => f.write_str("no answer"),
            Self::Wrong(words) => f.write_str(words),
        }
    }
}

impl From<io::Error> for Trouble {
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

impl From<NotConnected> for Trouble {
    fn from(failure: NotConnected) -> Self {
        match failure {
            NotConnected::Refused(refused) => Self::Wrong(refused.words),
            NotConnected::Failed(error) => error.into(),
            NotConnected::Silent => Self::Silent,
        }
    }
}

impl From<DecodeError> for Trouble {
    fn from(error: DecodeError) -> Self {
        Self::Wrong(error.detail)
    }
}

impl From<Trouble> for Failed {
    fn from(trouble: Trouble) -> Self {
        let words = trouble.to_string();
        if let Trouble::Wrong(_) = trouble { Self::refused(words) } else { Self::connecting(words) }
    }
}

impl Peer {
    /// Connects and subscribes to topics that begin with one of `prefixes`.
    ///
    /// # Errors
    /// In words, why it cannot be listened to.
    pub(super) async fn connect(
        endpoint: &ZmqEndpoint,
        (gate, evidence): (&Gate, Evidence<'_>),
        prefixes: &[String],
        waits: Waits,
    ) -> Result<Self, Failed> {
        let stream = gate.connect_zmq(endpoint, evidence, waits.connect).await.map_err(Trouble::from)?;
        let ready = timeout(waits.connect, Self::ready(stream, prefixes, waits)).await;
        Ok(ready.map_err(|_| Trouble::Silent)??)
    }

    async fn ready(mut stream: TcpStream, prefixes: &[String], waits: Waits) -> Result<Self, Trouble> {
        stream.set_nodelay(true)?;
        stream.write_all(&GREETING).await?;
        let mut greeting = [0; GREETING_BYTES];
        stream.read_exact(&mut greeting).await?;
        let version = zmtp::read_greeting(&greeting)?;
        stream.write_all(&zmtp::ready("SUB")).await?;
        let mut inbound = Inbound::default();
        while !is_ready(&mut inbound)? {
            if stream.read_buf(inbound.room()).await? == 0 {
                return Err(Trouble::Closed);
            }
        }
        for prefix in prefixes {
            stream.write_all(&zmtp::subscribe(prefix, version)).await?;
        }
        Ok(Self { stream, inbound, version, waits, alive_ms: now(), alive: Instant::now() })
    }

    /// The last sign of life.
    pub(super) fn alive_ms(&self) -> Millis {
        self.alive_ms
    }

    /// Listens until the connection ends; says why it did.
    pub(super) async fn listen(&mut self, to: &mut impl Subscriber) -> Failed {
        let Err(trouble) = self.listen_on(to).await;
        trouble.into()
    }

    async fn listen_on(&mut self, to: &mut impl Subscriber) -> Result<std::convert::Infallible, Trouble> {
        let Waits { effective, ping, dead, .. } = self.waits;
        let mut effective_at = Some(Instant::now() + effective);
        let mut is_asked = false;
        loop {
            let replies = self.take(to, &mut effective_at)?;
            if !replies.is_empty() {
                write(&mut self.stream, &replies).await?;
            }
            let silent_until = self.alive + if is_asked { dead } else { ping };
            // Those before 3.1 have no heartbeats.
            let has_heartbeats = self.version.has_commands();
            let wake = match effective_at {
                Some(at) if !has_heartbeats || at < silent_until => Some(at),
                _ => has_heartbeats.then_some(silent_until),
            };
            tokio::select! {
                read = self.stream.read_buf(self.inbound.room()) => {
                    if read? == 0 {
                        return Err(Trouble::Closed);
                    }
                    (self.alive, self.alive_ms, is_asked) = (Instant::now(), now(), false);
                }
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {
                    let time = Instant::now();
                    if effective_at.is_some_and(|at| at <= time) {
                        effective_at = (!to.effective()).then(|| time + effective);
                    }
                    if has_heartbeats && silent_until <= time {
                        if is_asked {
                            return Err(Trouble::Silent);
                        }
                        write(&mut self.stream, &zmtp::ping(0)).await?;
                        is_asked = true;
                    }
                }
            }
        }
    }

    /// Hands over what was received; gives what is to be answered.
    fn take(
        &mut self,
        to: &mut impl Subscriber,
        effective_at: &mut Option<Instant>,
    ) -> Result<Vec<u8>, Trouble> {
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

/// Whether the peer is ready. Publishers send nothing else before.
fn is_ready(inbound: &mut Inbound) -> Result<bool, Trouble> {
    match inbound.next()? {
        None => Ok(false),
        Some(Unit::Command(Command::Ready { socket_type: b"PUB" | b"XPUB" })) => Ok(true),
        Some(Unit::Command(Command::Ready { socket_type })) => {
            let name = String::from_utf8_lossy(socket_type);
            Err(Trouble::Wrong(format!("a ZeroMQ socket of type {name:?} publishes nothing")))
        }
        Some(Unit::Command(Command::Error { reason })) => Err(refusal(reason)),
        Some(_) => Err(Trouble::Wrong("it is not ready and sends already".to_owned())),
    }
}

/// What a peer of ZeroMQ says when it refuses, shortened and escaped.
fn refusal(reason: &[u8]) -> Trouble {
    let reason = reason.get(..MAX_REASON_BYTES).unwrap_or(reason);
    Trouble::Wrong(format!("it refuses: {}", reason.escape_ascii()))
}

async fn write(stream: &mut TcpStream, bytes: &[u8]) -> Result<(), Trouble> {
    let written = timeout(WRITE_WITHIN, stream.write_all(bytes)).await;
    Ok(written.map_err(|_| Trouble::Silent)??)
}
