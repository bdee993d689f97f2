//! A viewer without a browser: takes the socket's frames and folds them, as the app does.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::{SinkExt, StreamExt};
use radixscope_model::frame::Frame;
use radixscope_model::id::{Millis, Seq};
use radixscope_state::cluster::{Cluster, SnapshotReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, client_async, connect_async};

use crate::radixscope::Radixscope;
use crate::wait;

/// Where a viewer stopped: its state and the run of the server that it belongs to.
pub struct Resume {
    state: Cluster,
    epoch: u64,
}

impl Resume {
    /// The last record known.
    pub fn seq(&self) -> Seq {
        self.state.seq()
    }
}

/// What a viewer saw.
#[derive(Default)]
pub struct Seen {
    /// The state so far; `None` before the first snapshot.
    pub state: Option<Cluster>,
    /// Names the server's run.
    pub epoch: u64,
    /// What the first frame called the server.
    pub server: String,
    /// Time of the last batch.
    pub at_ms: Millis,
    /// Snapshots received in full.
    pub snapshots: u32,
    /// Batches received.
    pub batches: u64,
    /// Records folded from batches.
    pub records: u64,
    /// Digests that came with batches and were compared.
    pub checks: u64,
    /// Records the server says it skipped for us.
    pub skipped: u64,
    /// Time from a record's own time to its arrival here, milliseconds, if asked for.
    pub delays_ms: Vec<u64>,
    /// Times between two batches.
    pub gaps: Vec<Duration>,
    /// When the last batch arrived.
    last_batch: Option<Instant>,
    /// Whether a digest of the server was another than ours; then the connection is ended.
    pub differs: bool,
    /// Why the connection ended.
    pub ended: Option<String>,
}

/// A viewer on a socket.
pub struct Viewer {
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

/// A socket of which nothing was read yet.
pub type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

impl Viewer {
    /// Connects and follows.
    ///
    /// # Panics
    /// If the server takes no viewer.
    pub async fn connect(url: &str, resume: Option<Resume>) -> Self {
        Self::try_connect(url, resume).await.unwrap_or_else(|(why, _)| panic!("{url}: {why}"))
    }

    /// The same where the server may take no viewer now.
    ///
    /// # Errors
    /// Why it took none, with what to resume.
    pub async fn try_connect(url: &str, resume: Option<Resume>) -> Result<Self, (String, Option<Resume>)> {
        let url = match &resume {
            Some(resume) => format!("{url}?after={}&epoch={}", resume.seq(), resume.epoch),
            None => url.to_owned(),
        };
        match connect_async(&url).await {
            Ok((socket, _)) => Ok(Self::follow(socket, resume)),
            Err(error) => Err((error.to_string(), resume)),
        }
    }

    /// Reads from a socket that was opened without reading.
    pub fn follow(mut socket: Socket, resume: Option<Resume>) -> Self {
        let seen = Seen { state: resume.map(|resume| resume.state), ..Seen::default() };
        let seen = Arc::new(Mutex::new(seen));
        let shared = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            let mut snapshot = SnapshotReader::default();
            loop {
                let ended = match socket.next().await {
                    Some(Ok(Message::Binary(bytes))) => {
                        let mut seen = lock(&shared);
                        match seen.take(&bytes, &mut snapshot) {
                            Ok(()) => continue,
                            Err(why) => why,
                        }
                    }
                    Some(Ok(Message::Close(why))) => format!("closed: {why:?}"),
                    Some(Ok(_)) => continue, // pings are answered below us
                    Some(Err(error)) => error.to_string(),
                    None => "closed".to_owned(),
                };
                lock(&shared).ended = Some(ended);
                return;
            }
        });
        Self { seen, task }
    }

    /// Looks at what it saw.
    pub fn with<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&lock(&self.seen))
    }

    /// The times between batches since the last call.
    pub fn take_gaps(&self) -> Vec<Duration> {
        std::mem::take(&mut lock(&self.seen).gaps)
    }

    /// Waits for what it sees.
    pub async fn until<T>(&self, what: &str, look: impl Fn(&Seen) -> Result<T, String>) -> T {
        wait::until(what, async || {
            self.with(|seen| match (look(seen), &seen.ended) {
                (Ok(value), _) => Ok(value),
                (Err(now), None) => Err(now),
                (Err(now), Some(why)) => panic!("the viewer ended ({why}) before {what}: {now}"),
            })
        })
        .await
    }

    /// Waits until it is at the same record as the server's API, and compares the digests there; gives the record. Asks anew
    /// each time, because the checks keep producing records.
    pub async fn agrees_with(&self, server: &Radixscope) -> Seq {
        wait::until("the viewer is where the server is", async || {
            let cluster = server.cluster().await;
            self.with(|seen| {
                assert_eq!(seen.ended, None, "the viewer ended");
                let state = seen.state.as_ref().ok_or("no state yet")?;
                let (here, there) = (state.seq(), &cluster["seq"]);
                wait::expect(*there == here.0, || format!("at {here}, the server at {there}"))?;
                assert_eq!(cluster["digest"], state.digest().to_string(), "at {here}");
                Ok(here)
            })
        })
        .await
    }

    /// Cuts the connection and keeps the state.
    pub fn cut(self) -> Resume {
        self.task.abort();
        let mut seen = lock(&self.seen);
        Resume { state: seen.state.take().expect("a viewer that saw something"), epoch: seen.epoch }
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Seen {
    fn take(&mut self, bytes: &[u8], snapshot: &mut SnapshotReader) -> Result<(), String> {
        match Frame::decode(bytes).map_err(|e| e.to_string())? {
            Frame::Hello { epoch, server, .. } => {
                self.epoch = epoch;
                self.server = server.into_owned();
            }
            Frame::Snapshot { seq, bytes, .. } => {
                if let Some(state) = snapshot.part(bytes.0).map_err(|e| e.to_string())? {
                    if state.seq() != seq {
                        return Err(format!("a snapshot of {} under the name of {seq}", state.seq()));
                    }
                    self.snapshots += 1;
                    self.state = Some(state);
                }
            }
            Frame::Batch(batch) => {
                let state = self.state.as_mut().ok_or("a batch before any state")?;
                let expected = state.seq().0 + 1;
                if batch.first_seq.0 > expected {
                    return Err(format!("batch begins at {} instead of {expected}", batch.first_seq));
                }
                let arrived = Instant::now();
                self.gaps.extend(self.last_batch.replace(arrived).map(|last| arrived - last));
                let now = now_ms();
                for entry in batch.entries() {
                    let (seq, entry) = entry.map_err(|e| e.to_string())?;
                    self.delays_ms.push(now.since(entry.at_ms));
                    state.fold(seq, &entry);
                    self.records += 1;
                }
                self.batches += 1;
                self.at_ms = batch.at_ms;
                if let Some(check) = batch.check {
                    let end = batch.first_seq.0 + u64::from(batch.count) - 1;
                    if state.seq().0 == end && state.digest() != check.0 {
                        self.differs = true;
                        return Err(format!(
                            "digest {} at {end}, the server's is {}",
                            state.digest(),
                            check.0
                        ));
                    }
                    self.checks += 1;
                }
            }
            Frame::Lag { skipped } => self.skipped += skipped,
        }
        Ok(())
    }
}

/// Opens a socket with little room for what arrives, gives the one sign of life that shows a viewer, and reads nothing
/// from it.
pub async fn stalled(url: &str) -> Socket {
    let (_, authority) = url.split_once("://").expect("an address with a scheme");
    let (authority, _) = authority.split_once('/').expect("and a path");
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a small buffer");
    let stream = socket.connect(authority.parse().expect("an address of numbers")).await.expect("it listens");
    let (mut socket, _) = client_async(url, MaybeTlsStream::Plain(stream)).await.expect("it takes viewers");
    let first = wait::within("the server greets", socket.next()).await;
    assert!(matches!(first, Some(Ok(Message::Ping(_)))), "{first:?}");
    socket.flush().await.expect("the response is sent");
    socket
}

/// Unix time.
pub fn now_ms() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    Millis(u64::try_from(since.as_millis()).expect("a clock of this age"))
}

fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
