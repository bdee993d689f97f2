//! Where workers call back with their answers: listeners that hand a connection to whoever expects it, and close every
//! other.
//!
//! A connection is known by the subject that a call named, which nobody outside can foresee. It travels in clear, so that whoever
//! reads along knows it: the connection also has to come from the worker that was queried. Until both is certain it is a
//! stranger's: few bytes are read of it, within little time, and few such connections are open at once, fewer still from
//! one address.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use radixscope_dynamo::request_plane::{PRELUDE_BYTES, PartSize, call_home};

use crate::config::CallbackAddress;
use crate::random;
use crate::source::gate::{Gate, Refused, Special, plain};

/// How long a connection may take to say whose answer it brings.
const SUBJECT_WITHIN: Duration = Duration::from_secs(3);
/// Connections that have not said it yet, of all and of one address.
const MAX_STRANGERS: usize = 256;
const MAX_STRANGERS_OF_ONE: usize = 16;
/// Addresses of this machine that are listened on.
const MAX_LISTENERS: usize = 16;
/// Wait after a connection could not be taken.
const TAKE_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The listeners.
pub(super) struct Callback {
    named: Option<CallbackAddress>,
    listeners: tokio::sync::Mutex<HashMap<IpAddr, Listener>>,
    expected: Arc<Expected>,
}

struct Listener {
    port: u16,
    task: AbortHandle,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Where a response may come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// Only the subject tells: there is NAT between the workers and us, or the query went over NATS, where no address of the
    /// worker is known and only those who may subscribe to its subject learn the id.
    Anywhere,
    /// Addresses of the worker.
    These(Vec<IpAddr>),
}

impl Origin {
    /// Whether it may come from there. All addresses of loopback are one machine's.
    pub(super) fn has(&self, from: IpAddr) -> bool {
        let from = plain(from);
        let is_loopback = |ip: IpAddr| Special::of(ip) == Some(Special::Loopback);
        match self {
            Self::Anywhere => true,
            Self::These(these) => {
                these.iter().any(|&one| one == from || (is_loopback(one) && is_loopback(from)))
            }
        }
    }
}

/// Who is waited for, and who is at the door.
struct Expected {
    gate: Arc<Gate>,
    by_subject: Mutex<HashMap<String, Awaited>>,
    strangers: Mutex<HashMap<IpAddr, usize>>,
    closed: AtomicU64,
}

/// A connection that a query waits for.
struct Awaited {
    brings: oneshot::Sender<TcpStream>,
    origin: Origin,
    /// The last that named the subject and came from elsewhere.
    foreign: Arc<Mutex<Option<Refused>>>,
}

/// A connection that is waited for.
pub(super) struct Visit {
    /// Where the worker is to connect, as host and port.
    pub(super) address: String,
    /// What it is to say.
    pub(super) subject: String,
    /// The connection.
    pub(super) arrives: oneshot::Receiver<TcpStream>,
    foreign: Arc<Mutex<Option<Refused>>>,
    expected: Arc<Expected>,
}

impl Visit {
    /// Whether a connection named the subject and came from elsewhere than the worker.
    pub(super) fn foreign(&self) -> Option<Refused> {
        lock(&self.foreign).clone()
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        lock(&self.expected.by_subject).remove(&self.subject);
    }
}

impl Callback {
    /// Named by `--callback`, or found anew for each worker.
    pub(super) fn new(named: Option<CallbackAddress>, gate: Arc<Gate>) -> Self {
        let expected = Expected {
            gate,
            by_subject: Mutex::default(),
            strangers: Mutex::default(),
            closed: AtomicU64::new(0),
        };
        Self { named, listeners: tokio::sync::Mutex::default(), expected: Arc::new(expected) }
    }

    /// Whether `--callback` says that there is something between the workers and us.
    pub(super) fn is_named(&self) -> bool {
        self.named.is_some()
    }

    /// Listens at once where `--callback` says.
    pub(super) async fn prepare(&self) -> io::Result<()> {
        match &self.named {
            Some(named) => self.listen(Ipv6Addr::UNSPECIFIED.into(), named.port).await.map(drop),
            None => Ok(()),
        }
    }

    /// Waits for a connection of a worker to which this machine is `local`.
    pub(super) async fn expect(&self, local: IpAddr, origin: Origin) -> io::Result<Visit> {
        let address = match &self.named {
            Some(named) => {
                self.listen(Ipv6Addr::UNSPECIFIED.into(), named.port).await?;
                named.address.clone()
            }
            None => SocketAddr::new(local, self.listen(local, 0).await?).to_string(),
        };
        let subject = random::id()?;
        let (brings, arrives) = oneshot::channel();
        let foreign: Arc<Mutex<Option<Refused>>> = Arc::default();
        let awaited = Awaited { brings, origin, foreign: Arc::clone(&foreign) };
        lock(&self.expected.by_subject).insert(subject.clone(), awaited);
        Ok(Visit { address, subject, arrives, foreign, expected: Arc::clone(&self.expected) })
    }

    /// Connections that were closed because nobody expected them.
    pub(super) fn closed(&self) -> u64 {
        self.expected.closed.load(Ordering::Relaxed)
    }

    /// Listens there, if that is not done already, and gives the port.
    async fn listen(&self, at: IpAddr, port: u16) -> io::Result<u16> {
        let mut listeners = self.listeners.lock().await;
        if let Some(listener) = listeners.get(&at) {
            return Ok(listener.port);
        }
        if listeners.len() >= MAX_LISTENERS {
            return Err(io::Error::other(
                "too many addresses of this machine are listened on; set --callback",
            ));
        }
        let listener = match TcpListener::bind((at, port)).await {
            // A machine without IPv6.
            Err(_) if at.is_unspecified() => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await?,
            bound => bound?,
        };
        let bound = listener.local_addr()?;
        tracing::info!(%bound, "listening for workers' answers");
        let task = tokio::spawn(take_all(listener, Arc::clone(&self.expected))).abort_handle();
        listeners.insert(at, Listener { port: bound.port(), task });
        Ok(bound.port())
    }
}

async fn take_all(listener: TcpListener, expected: Arc<Expected>) {
    loop {
        match listener.accept().await {
            Ok((stream, from)) => match Stranger::admit(from.ip(), &expected) {
                Some(stranger) => {
                    tokio::spawn(stranger.receive(stream));
                }
                None => expected.close(stream, "no response is expected, or too many connections wait"),
            },
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(TAKE_AGAIN_AFTER).await;
            }
        }
    }
}

impl Expected {
    fn close(&self, stream: TcpStream, why: &str) {
        self.closed.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(from = ?stream.peer_addr(), why, "a connection was closed");
    }
}

/// A connection that has not said yet whose it is.
struct Stranger {
    from: IpAddr,
    expected: Arc<Expected>,
}

impl Stranger {
    fn admit(from: IpAddr, expected: &Arc<Expected>) -> Option<Self> {
        if lock(&expected.by_subject).is_empty() {
            return None;
        }
        let mut strangers = lock(&expected.strangers);
        let all: usize = strangers.values().sum();
        let of_one = strangers.entry(from).or_insert(0);
        if all >= MAX_STRANGERS || *of_one >= MAX_STRANGERS_OF_ONE {
            return None;
        }
        *of_one += 1;
        Some(Self { from, expected: Arc::clone(expected) })
    }

    async fn receive(self, mut stream: TcpStream) {
        let subject = match timeout(SUBJECT_WITHIN, subject_of(&mut stream)).await {
            Ok(Ok(subject)) => subject,
            Ok(Err(error)) => return self.expected.close(stream, &error.to_string()),
            Err(_) => return self.expected.close(stream, "it sends nothing"),
        };
        match self.awaited(subject) {
            // Whoever waited may have gone.
            Ok(awaited) => drop(awaited.brings.send(stream)),
            Err(why) => self.expected.close(stream, why),
        }
    }

    /// Who waits for this connection. One from elsewhere than the worker leaves the query waiting.
    fn awaited(&self, subject: String) -> Result<Awaited, &'static str> {
        let mut by_subject = lock(&self.expected.by_subject);
        let Entry::Occupied(awaited) = by_subject.entry(subject) else {
            return Err("its subject belongs to no query");
        };
        if awaited.get().origin.has(self.from) {
            return Ok(awaited.remove());
        }
        if let Origin::These(these) = &awaited.get().origin {
            let refused = self.expected.gate.refuse_response(plain(self.from), these);
            *lock(&awaited.get().foreign) = Some(refused);
        }
        Err("it comes from elsewhere than the worker")
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let mut strangers = lock(&self.expected.strangers);
        if let Some(of_one) = strangers.get_mut(&self.from) {
            *of_one -= 1;
            if *of_one == 0 {
                strangers.remove(&self.from);
            }
        }
    }
}

/// Reads the first part of a connection and nothing beyond.
async fn subject_of(stream: &mut TcpStream) -> io::Result<String> {
    let mut prelude = [0; PRELUDE_BYTES];
    stream.read_exact(&mut prelude).await?;
    let size = PartSize::read(&prelude, 0).map_err(io::Error::other)?;
    let mut header = vec![0; size.header];
    stream.read_exact(&mut header).await?;
    call_home(&header).map_err(io::Error::other)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
