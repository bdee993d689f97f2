//! Engines that connect to this process, as those do whose endpoint names a host: this side binds, and each connection is a publisher.
//!
//! A publisher is known by its topic, where it has one (llm-d's convention is `kv@POD@MODEL`), else by its address.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use radixscope_dynamo::engine::open_live;
use radixscope_dynamo::zmtp::Frames;
use radixscope_model::id::Millis;
use radixscope_model::record::LinkState;

use super::super::LinkReport;
use super::super::links::PublisherLink;
use super::super::peer::{Peer, Role, Subscriber, Timeouts};
use super::super::wait_after;
use super::Named;
use super::feed::{Output, Session};
use crate::config::ZmqEndpoint;
use crate::hub::SourceHandle;
use crate::source::SourceStatus;

/// Most connections at a time, and most publishers that are known.
const MAX_CONNECTIONS: usize = 4_096;
/// Longest name of a publisher, in bytes.
const MAX_NAME_BYTES: usize = 256;
/// Pause after a connection could not be taken.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// A socket for one rank of engines.
pub(super) struct Bound {
    pub(super) endpoint: ZmqEndpoint,
    pub(super) named: Named,
    /// `None`: any.
    pub(super) rank: Option<u32>,
    pub(super) to: SourceHandle,
    pub(super) timeouts: Timeouts,
}

/// What its connections share.
struct Shared {
    bound: Bound,
    /// By name.
    publishers: Mutex<HashMap<String, Known>>,
}

struct Known {
    output: Arc<Output>,
    /// When its connection was last known to be alive, if it has ended.
    broke_ms: Option<Millis>,
    /// Whether it is connected.
    is_taken: bool,
}

impl Bound {
    /// Takes connections until the process ends.
    pub(super) async fn listen(self, report: LinkReport) {
        let shared = Arc::new(Shared { bound: self, publishers: Mutex::default() });
        let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut failed = 0;
        loop {
            let ZmqEndpoint { host, port } = &shared.bound.endpoint;
            let listener = match TcpListener::bind((host.as_str(), *port)).await {
                Ok(listener) => listener,
                Err(error) => {
                    let is_refused = error.kind() != io::ErrorKind::AddrInUse;
                    let detail = format!("cannot listen there: {error}");
                    report.set_status(PublisherLink::Broken { detail, is_refused }).await;
                    failed += 1;
                    sleep(wait_after(failed)).await;
                    continue;
                }
            };
            report.set_status(PublisherLink::Connected).await;
            loop {
                // Who comes while all are taken waits in the system's queue.
                let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
                let Ok((stream, from)) = listener.accept().await else {
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    let failed = shared.serve(stream, from.ip()).await;
                    tracing::debug!(detail = failed.detail, %from, "an engine's connection ended");
                    drop(permit);
                });
            }
        }
    }
}

impl Shared {
    async fn serve(&self, stream: TcpStream, from: IpAddr) -> SourceStatus {
        let role = Role::Subscriber(&[String::new()]);
        let mut peer = match Peer::greet(stream, role, self.bound.timeouts).await {
            Ok(peer) => peer,
            Err(failed) => return failed,
        };
        let mut connection = Connection { shared: self, from, session: None };
        let failed = peer.listen(&mut connection).await;
        if let Some((name, output, session)) = connection.session {
            output.link(failed.state, &failed.detail);
            let broke_ms = session.end(peer.alive_ms());
            self.with(|known| {
                if let Some(known) = known.get_mut(&name) {
                    (known.is_taken, known.broke_ms) = (false, broke_ms);
                }
            });
        }
        failed
    }

    fn with<T>(&self, ask: impl FnOnce(&mut HashMap<String, Known>) -> T) -> T {
        ask(&mut self.publishers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The publisher of a new connection. `None`: there are too many, or it is connected already.
    fn publisher(&self, topic: &[u8], from: IpAddr) -> Option<(String, Arc<Output>, Session)> {
        let Bound { endpoint, named, rank, to, .. } = &self.bound;
        let topic = topic.get(..MAX_NAME_BYTES).unwrap_or(topic);
        let topic = String::from_utf8_lossy(topic);
        let who = if topic.is_empty() { from.to_string() } else { topic.into_owned() };
        // A rank has a port of its own, and its engine the same topic at each.
        let name = format!("{who} at port {}", endpoint.port);
        self.with(|publishers| {
            if publishers.len() >= MAX_CONNECTIONS && !publishers.contains_key(&name) {
                return None;
            }
            let known = publishers.entry(name.clone()).or_insert_with(|| {
                let output = Output::new(named.publisher(&who, &name, *rank), false, to.clone());
                Known { output, broke_ms: None, is_taken: false }
            });
            if std::mem::replace(&mut known.is_taken, true) {
                return None;
            }
            let session = Session::new(&known.output, known.broke_ms.take());
            Some((name, Arc::clone(&known.output), session))
        })
    }
}

/// One connection, of which the publisher is known with its first message.
struct Connection<'s> {
    shared: &'s Shared,
    from: IpAddr,
    session: Option<(String, Arc<Output>, Session)>,
}

impl Subscriber for Connection<'_> {
    fn effective(&mut self) -> bool {
        self.session.as_mut().is_none_or(|(_, _, session)| session.effective())
    }

    fn message(&mut self, frames: Frames<'_>) {
        if self.session.is_none() {
            let topic = open_live(frames).map(|message| message.topic).unwrap_or_default();
            self.session = self.shared.publisher(topic, self.from);
            if let Some((_, output, session)) = &mut self.session {
                session.effective();
                output.link(LinkState::Live, "");
            }
        }
        if let Some((_, _, session)) = &mut self.session {
            session.message(frames);
        }
    }
}
