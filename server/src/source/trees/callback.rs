//! Listeners for workers' responses: a connection is handed to the query that expects it; all others are closed. A connection
//! is identified by the unpredictable subject of a query. The subject is sent in clear text and can be observed, so the
//! connection must also come from the queried worker. Until both is verified, only few bytes are read, with a timeout, and the
//! number of such connections is limited, in total and per address.

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

/// How long a connection may take to send its subject.
const SUBJECT_WITHIN: Duration = Duration::from_secs(3);
/// Maximum unidentified connections, in total and per address.
const MAX_UNIDENTIFIED: usize = 256;
const MAX_UNIDENTIFIED_PER_ADDRESS: usize = 16;
/// Maximum local addresses with a listener.
const MAX_LISTENERS: usize = 16;
/// Delay after a failed accept.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

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

/// Addresses from which a response may come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// Any: only the subject identifies it, because of NAT, or because the query was sent over NATS, where the worker's address
    /// is unknown and only permitted subscribers see the subject.
    Anywhere,
    /// Addresses of the worker.
    These(Vec<IpAddr>),
}

impl Origin {
    /// Whether it may come from this address. All loopback addresses are the same machine.
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

/// Expected and unidentified connections.
struct Expected {
    gate: Arc<Gate>,
    by_subject: Mutex<HashMap<String, PendingQuery>>,
    unidentified: Mutex<HashMap<IpAddr, usize>>,
    closed: AtomicU64,
}

/// A query that waits for its connection.
struct PendingQuery {
    brings: oneshot::Sender<TcpStream>,
    origin: Origin,
    /// The last connection with this subject from another address.
    foreign: Arc<Mutex<Option<Refused>>>,
}

/// A connection that is expected for a query.
pub(super) struct ExpectedConnection {
    /// Host and port to which the worker connects.
    pub(super) address: String,
    /// The subject that it sends.
    pub(super) subject: String,
    /// The connection.
    pub(super) arrives: oneshot::Receiver<TcpStream>,
    foreign: Arc<Mutex<Option<Refused>>>,
    expected: Arc<Expected>,
}

impl ExpectedConnection {
    /// The refusal, if a connection with this subject came from another address.
    pub(super) fn foreign(&self) -> Option<Refused> {
        lock(&self.foreign).clone()
    }
}

impl Drop for ExpectedConnection {
    fn drop(&mut self) {
        lock(&self.expected.by_subject).remove(&self.subject);
    }
}

impl Callback {
    /// With the address of `--callback`, or the local address towards each worker.
    pub(super) fn new(named: Option<CallbackAddress>, gate: Arc<Gate>) -> Self {
        let expected = Expected {
            gate,
            by_subject: Mutex::default(),
            unidentified: Mutex::default(),
            closed: AtomicU64::new(0),
        };
        Self { named, listeners: tokio::sync::Mutex::default(), expected: Arc::new(expected) }
    }

    /// Whether `--callback` is set, which may mean NAT between the workers and this process.
    pub(super) fn is_named(&self) -> bool {
        self.named.is_some()
    }

    /// Starts listening on the address of `--callback`, if set.
    pub(super) async fn prepare(&self) -> io::Result<()> {
        match &self.named {
            Some(named) => self.listen(Ipv6Addr::UNSPECIFIED.into(), named.port).await.map(drop),
            None => Ok(()),
        }
    }

    /// Expects a connection from a worker. `local` is the local address towards it.
    pub(super) async fn expect(&self, local: IpAddr, origin: Origin) -> io::Result<ExpectedConnection> {
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
        let pending = PendingQuery { brings, origin, foreign: Arc::clone(&foreign) };
        lock(&self.expected.by_subject).insert(subject.clone(), pending);
        Ok(ExpectedConnection { address, subject, arrives, foreign, expected: Arc::clone(&self.expected) })
    }

    /// Number of unexpected connections that were closed.
    pub(super) fn closed(&self) -> u64 {
        self.expected.closed.load(Ordering::Relaxed)
    }

    /// Starts listening unless it already does; returns the port.
    async fn listen(&self, at: IpAddr, port: u16) -> io::Result<u16> {
        let mut listeners = self.listeners.lock().await;
        if let Some(listener) = listeners.get(&at) {
            return Ok(listener.port);
        }
        if listeners.len() >= MAX_LISTENERS {
            return Err(io::Error::other("too many local addresses to listen on; set --callback"));
        }
        let listener = match TcpListener::bind((at, port)).await {
            // A machine without IPv6.
            Err(_) if at.is_unspecified() => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await?,
            bound => bound?,
        };
        let bound = listener.local_addr()?;
        tracing::info!(%bound, "listening for workers' responses");
        let task = tokio::spawn(accept_loop(listener, Arc::clone(&self.expected))).abort_handle();
        listeners.insert(at, Listener { port: bound.port(), task });
        Ok(bound.port())
    }
}

async fn accept_loop(listener: TcpListener, expected: Arc<Expected>) {
    loop {
        match listener.accept().await {
            Ok((stream, from)) => match UnidentifiedConnection::admit(from.ip(), &expected) {
                Some(connection) => {
                    tokio::spawn(connection.receive(stream));
                }
                None => {
                    expected.close(stream, "no response is expected, or too many unidentified connections")
                }
            },
            Err(error) => {
                tracing::warn!(%error, "accepting a worker's connection failed");
                tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
            }
        }
    }
}

impl Expected {
    fn close(&self, stream: TcpStream, why: &str) {
        self.closed.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(from = ?stream.peer_addr(), why, "unexpected connection closed");
    }
}

/// A connection that has not sent its subject yet.
struct UnidentifiedConnection {
    from: IpAddr,
    expected: Arc<Expected>,
}

impl UnidentifiedConnection {
    fn admit(from: IpAddr, expected: &Arc<Expected>) -> Option<Self> {
        if lock(&expected.by_subject).is_empty() {
            return None;
        }
        let mut unidentified = lock(&expected.unidentified);
        let all: usize = unidentified.values().sum();
        let of_one = unidentified.entry(from).or_insert(0);
        if all >= MAX_UNIDENTIFIED || *of_one >= MAX_UNIDENTIFIED_PER_ADDRESS {
            return None;
        }
        *of_one += 1;
        Some(Self { from, expected: Arc::clone(expected) })
    }

    async fn receive(self, mut stream: TcpStream) {
        let subject = match timeout(SUBJECT_WITHIN, subject_of(&mut stream)).await {
            Ok(Ok(subject)) => subject,
            Ok(Err(error)) => return self.expected.close(stream, &error.to_string()),
            Err(_) => return self.expected.close(stream, "no subject within the timeout"),
        };
        match self.pending(subject) {
            // The query may have ended.
            Ok(pending) => drop(pending.brings.send(stream)),
            Err(why) => self.expected.close(stream, why),
        }
    }

    /// The query that expects this connection. If it comes from another address, the query keeps waiting.
    fn pending(&self, subject: String) -> Result<PendingQuery, &'static str> {
        let mut by_subject = lock(&self.expected.by_subject);
        let Entry::Occupied(pending) = by_subject.entry(subject) else {
            return Err("unknown subject");
        };
        if pending.get().origin.has(self.from) {
            return Ok(pending.remove());
        }
        if let Origin::These(these) = &pending.get().origin {
            let refused = self.expected.gate.refuse_response(plain(self.from), these);
            *lock(&pending.get().foreign) = Some(refused);
        }
        Err("the address is not the worker's")
    }
}

impl Drop for UnidentifiedConnection {
    fn drop(&mut self) {
        let mut unidentified = lock(&self.expected.unidentified);
        if let Some(of_one) = unidentified.get_mut(&self.from) {
            *of_one -= 1;
            if *of_one == 0 {
                unidentified.remove(&self.from);
            }
        }
    }
}

/// Reads only the first part of a connection.
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
