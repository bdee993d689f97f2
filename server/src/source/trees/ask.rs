//! One query: sent, acknowledged, answered on a connection of its own; and in words why not.

use std::future::{Future, pending};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use radixscope_dynamo::request_plane::{Call, Codec, MAX_REFUSAL_BYTES, foreign_reply, frame, refusal};
use radixscope_dynamo::tree_query::{QueryFailed, QueryFault, Question, TreeResponse};
use radixscope_intake::command::TreeQuery;

use super::answer::{self, failed};
use super::callback::{Callback, Origin, Visit};
use super::nats::RequestPlane;
use crate::source::gate::{Crossing, Destination, Evidence, Gate, NotConnected, Refused, plain};

/// How long a worker may take to be connected to.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);
/// How long it may take to call back; a healthy one takes milliseconds.
const CALLBACK_WITHIN: Duration = Duration::from_secs(3);
/// The same for the second try, in the other codec: the operator is to know within five seconds.
const CALLBACK_AGAIN_WITHIN: Duration = Duration::from_millis(1_200);
/// How long the names of a worker's other addresses may take to be resolved.
const RESOLVE_WITHIN: Duration = Duration::from_millis(500);
/// How long a reply that is no acknowledgement may pause before it counts as ended.
const REPLY_PAUSE: Duration = Duration::from_millis(200);
/// How long our own listener may take to be connected to.
const SELF_TEST_WITHIN: Duration = Duration::from_millis(300);

/// Asks workers.
pub(super) struct Asker {
    pub(super) callback: Callback,
    /// `None`: no NATS server is named.
    pub(super) nats: Option<RequestPlane>,
    pub(super) gate: Arc<Gate>,
    /// The turn of large answers.
    large: Semaphore,
}

/// Why a try failed.
enum Fault {
    /// It took the request and does not call back at this address.
    Silent(String),
    Other(QueryFailed),
}

impl From<QueryFailed> for Fault {
    fn from(failed: QueryFailed) -> Self {
        Self::Other(failed)
    }
}

impl Asker {
    pub(super) fn new(callback: Callback, nats: Option<RequestPlane>, gate: Arc<Gate>) -> Self {
        Self { callback, nats, gate, large: Semaphore::new(1) }
    }

    /// Asks a worker; with the answer comes how many bytes were read.
    pub(super) async fn ask(&self, query: &TreeQuery) -> (Result<TreeResponse, QueryFailed>, usize) {
        let mut size_bytes = 0;
        let codec = query.endpoint.codec;
        let outcome = match self.once(query, codec, CALLBACK_WITHIN, &mut size_bytes).await {
            // A body that a worker does not understand looks like one that cannot reach us.
            Err(Fault::Silent(_)) => {
                self.once(query, other(codec), CALLBACK_AGAIN_WITHIN, &mut size_bytes).await
            }
            outcome => outcome,
        };
        let outcome = match outcome {
            Ok(answer) => Ok(answer),
            Err(Fault::Other(failed)) => Err(failed),
            Err(Fault::Silent(address)) => Err(silent(&address).await),
        };
        (outcome, size_bytes)
    }

    async fn once(
        &self,
        query: &TreeQuery,
        codec: Codec,
        within: Duration,
        size_bytes: &mut usize,
    ) -> Result<TreeResponse, Fault> {
        let body =
            Question { worker: query.endpoint.worker, start_event_id: query.start_event_id }.encode(codec);
        let (mut home, sent) = match self.gate.query(&query.endpoint).map_err(not_sent)? {
            Destination::Tcp { address, path } => {
                let mut socket = self.connected(address, query).await?;
                let local = socket.local_addr().map_err(|error| unreachable(address, &error.to_string()))?;
                let origin = self.origin(&socket, address, query).await?;
                let mut visit = self.expect(local.ip(), origin).await?;
                let message = call(&visit, codec).message(&body);
                let request = frame(&path, &message).ok_or_else(|| {
                    failed(QueryFault::Malformed, "The query is too long to be sent.".to_owned())
                })?;
                let acknowledged = over_tcp(&mut socket, &request, address);
                let home = called_home(&mut visit, acknowledged, within).await?;
                (home, Some(socket))
            }
            Destination::Nats { subject } => {
                let nats = self.nats.as_ref().ok_or_else(no_nats)?;
                let mut visit = self.expect(nats.local().await?, Origin::Anywhere).await?;
                let message = call(&visit, codec).message(&body);
                let acknowledged = nats.request(&subject, message, within);
                (called_home(&mut visit, acknowledged, within).await?, None)
            }
        };
        let read = answer::read(&mut home, (codec, query.endpoint.worker), &self.large, size_bytes).await;
        // Kept until here: a worker may take its end for ours.
        drop(sent);
        Ok(read?)
    }

    /// A connection to a worker, if what names it may name such an address.
    async fn connected(&self, address: &str, query: &TreeQuery) -> Result<TcpStream, QueryFailed> {
        let evidence = Evidence::Named(&query.named_by);
        let connected = self.gate.connect(Crossing::TreeQuery, address, evidence, CONNECT_WITHIN).await;
        let socket = connected.map_err(|failure| match failure {
            NotConnected::Refused(refused) => not_sent(refused),
            NotConnected::Failed(error) => unreachable(address, &error.to_string()),
            NotConnected::Silent => {
                unreachable(address, &format!("no connection within {} s", CONNECT_WITHIN.as_secs()))
            }
        })?;
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "no TCP_NODELAY");
        }
        Ok(socket)
    }

    /// Where the response may come from: the address that was connected to, and the others that discovery names for the same
    /// process.
    pub(super) async fn origin(
        &self,
        socket: &TcpStream,
        address: &str,
        query: &TreeQuery,
    ) -> Result<Origin, QueryFailed> {
        if self.callback.is_named() {
            return Ok(Origin::Anywhere);
        }
        let peer = socket.peer_addr().map_err(|error| unreachable(address, &error.to_string()))?;
        let mut these = vec![plain(peer.ip())];
        for other in std::iter::once(address).chain(query.publishes_at.iter().map(String::as_str)) {
            these.extend(Gate::addresses_of(other, RESOLVE_WITHIN).await);
        }
        these.sort_unstable();
        these.dedup();
        Ok(Origin::These(these))
    }

    async fn expect(&self, local: IpAddr, origin: Origin) -> Result<Visit, QueryFailed> {
        self.callback.expect(local, origin).await.map_err(|error| {
            let words = format!(
                "No port of this machine can be opened for workers' answers: {error}. Name one with --callback \
                 (RADIXSCOPE_CALLBACK)."
            );
            failed(QueryFault::NoCallback, words)
        })
    }
}

fn call(visit: &Visit, codec: Codec) -> Call<'_> {
    // The subject is as good a number of the call as any.
    Call { id: &visit.subject, subject: &visit.subject, callback: &visit.address, codec }
}

/// The connection on which the answer comes. It may come before the acknowledgement does.
async fn called_home(
    visit: &mut Visit,
    acknowledged: impl Future<Output = Result<(), QueryFailed>>,
    within: Duration,
) -> Result<TcpStream, Fault> {
    let is_accepted = AtomicBool::new(false);
    let accepted = async {
        match acknowledged.await {
            Ok(()) => {
                is_accepted.store(true, Ordering::Relaxed);
                pending::<QueryFailed>().await
            }
            Err(failed) => failed,
        }
    };
    let arrived = tokio::select! {
        biased;
        arrived = timeout(within, &mut visit.arrives) => arrived,
        refused = accepted => return Err(refused.into()),
    };
    match arrived {
        Ok(Ok(home)) => Ok(home),
        _ if let Some(foreign) = visit.foreign() => Err(failed(QueryFault::NoCallback, foreign.words).into()),
        _ if is_accepted.into_inner() => Err(Fault::Silent(visit.address.clone())),
        _ => {
            let words = format!(
                "The worker can be reached but did not take the query within {} s: it hangs, or is not what it is taken \
                 for.",
                within.as_secs_f64()
            );
            Err(failed(QueryFault::Unreachable, words).into())
        }
    }
}

/// Sends a request over a worker's own socket and waits until it is accepted.
async fn over_tcp(socket: &mut TcpStream, request: &[u8], address: &str) -> Result<(), QueryFailed> {
    let broke = |error: std::io::Error| {
        let words = format!(
            "The worker at {address} closed the connection without accepting the query ({error}). A request plane \
             with TLS (DYN_TCP_TLS_…) is not supported."
        );
        failed(QueryFault::Refused, words)
    };
    socket.write_all(request).await.map_err(broke)?;
    let mut length = [0; 4];
    socket.read_exact(&mut length).await.map_err(broke)?;
    // The first bytes of an alert of TLS.
    if matches!(length, [0x15, 3, ..]) {
        let words = format!(
            "The worker at {address} speaks TLS on its request plane (DYN_TCP_TLS_…), which is not supported: its \
             blocks are known from events only."
        );
        return Err(failed(QueryFault::Unsupported, words));
    }
    let length = u32::from_be_bytes(length) as usize;
    if length == 0 {
        return Ok(());
    }
    let reply = reply(socket, length.min(MAX_REFUSAL_BYTES)).await;
    // A refusal is as long as it says.
    if reply.len() == length && refusal(&reply).is_some() {
        return Err(refused(&reply));
    }
    Err(refused(&[&(length as u32).to_be_bytes()[..], &reply].concat()))
}

/// What comes, at most so many bytes, until a pause. Whoever speaks no Dynamo may keep the connection open.
async fn reply(socket: &mut TcpStream, most: usize) -> Vec<u8> {
    let mut reply = Vec::new();
    let mut socket = socket.take(most as u64);
    while let Ok(Ok(1..)) = timeout(REPLY_PAUSE, socket.read_buf(&mut reply)).await {}
    reply
}

/// A worker, or the NATS server for it, said no; or something else answered, of which nothing is shown.
pub(super) fn refused(reply: &[u8]) -> QueryFailed {
    let words = match refusal(reply) {
        Some(text) => format!("The worker refused the query: {}.", text.trim_end_matches('.')),
        None => format!("The query was answered by {}.", foreign_reply(reply)),
    };
    failed(QueryFault::Refused, words)
}

/// The gate does not let the query pass.
fn not_sent(Refused { words, .. }: Refused) -> QueryFailed {
    failed(QueryFault::Refused, words)
}

fn unreachable(address: &str, why: &str) -> QueryFailed {
    let words = format!(
        "The worker's request plane at {address} cannot be reached: {why}. Does a firewall or network policy keep this \
         process from the workers?"
    );
    failed(QueryFault::Unreachable, words)
}

fn no_nats() -> QueryFailed {
    let words = "The worker takes requests over NATS only; name the server with --nats (RADIXSCOPE_NATS).";
    failed(QueryFault::Unreachable, words.to_owned())
}

/// It was accepted in either codec, and nobody came.
async fn silent(address: &str) -> QueryFailed {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    let mut words = format!(
        "The worker accepted the query and did not call back: open port {port} from the workers to {host}, or set \
         --callback (RADIXSCOPE_CALLBACK) to a HOST:PORT of this process that workers reach."
    );
    let reached = timeout(SELF_TEST_WITHIN, TcpStream::connect(address)).await;
    let why = match reached {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some("no answer".to_owned()),
    };
    if let Some(why) = why {
        words.push_str(&format!(" {address} cannot be reached from here either: {why}."));
    }
    failed(QueryFault::NoCallback, words)
}

fn other(codec: Codec) -> Codec {
    match codec {
        Codec::Json => Codec::MsgPack,
        Codec::MsgPack => Codec::Json,
    }
}
