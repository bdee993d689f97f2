//! One query: request, acknowledgement, response on a separate connection; and descriptions of failures.

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
use radixscope_dynamo::tree_query::{QueryFailed, QueryFault, TreeRequest, TreeResponse};
use radixscope_intake::command::TreeQuery;

use super::callback::{Callback, ExpectedConnection, Origin};
use super::nats::RequestPlane;
use super::response::{self, failed};
use crate::source::gate::{Crossing, Destination, Evidence, Gate, NotConnected, Refused, plain};

/// Connect timeout.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);
/// How long a worker may take to connect back; a healthy one takes milliseconds.
const CALLBACK_WITHIN: Duration = Duration::from_secs(3);
/// The same for the second attempt with the other codec, so that a failure is known within five seconds.
const CALLBACK_AGAIN_WITHIN: Duration = Duration::from_millis(1_200);
/// Timeout for resolving a worker's other addresses.
const RESOLVE_WITHIN: Duration = Duration::from_millis(500);
/// Idle timeout of a reply that is no acknowledgement.
const REPLY_PAUSE: Duration = Duration::from_millis(200);
/// Timeout for connecting to our own listener.
const SELF_TEST_WITHIN: Duration = Duration::from_millis(300);

/// Sends queries to workers.
pub(super) struct QueryClient {
    pub(super) callback: Callback,
    /// `None`: no NATS server is given.
    pub(super) nats: Option<RequestPlane>,
    pub(super) gate: Arc<Gate>,
    /// Limits concurrent large responses.
    large: Semaphore,
}

/// Why an attempt failed.
enum Fault {
    /// The worker accepted the request but did not connect back to this address.
    Silent(String),
    Other(QueryFailed),
}

impl From<QueryFailed> for Fault {
    fn from(failed: QueryFailed) -> Self {
        Self::Other(failed)
    }
}

impl QueryClient {
    pub(super) fn new(callback: Callback, nats: Option<RequestPlane>, gate: Arc<Gate>) -> Self {
        Self { callback, nats, gate, large: Semaphore::new(1) }
    }

    /// Queries a worker. Also returns the number of bytes read.
    pub(super) async fn query(&self, query: &TreeQuery) -> (Result<TreeResponse, QueryFailed>, usize) {
        let mut size_bytes = 0;
        let codec = query.endpoint.codec;
        let outcome = match self.once(query, codec, CALLBACK_WITHIN, &mut size_bytes).await {
            // A worker that cannot decode the body behaves like one that cannot connect back.
            Err(Fault::Silent(_)) => {
                self.once(query, other(codec), CALLBACK_AGAIN_WITHIN, &mut size_bytes).await
            }
            outcome => outcome,
        };
        let outcome = match outcome {
            Ok(response) => Ok(response),
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
            TreeRequest { worker: query.endpoint.worker, start_event_id: query.start_event_id }.encode(codec);
        let (mut home, sent) = match self.gate.query(&query.endpoint).map_err(not_sent)? {
            Destination::Tcp { address, path } => {
                let mut socket = self.connected(address, query).await?;
                let local = socket.local_addr().map_err(|error| unreachable(address, &error.to_string()))?;
                let origin = self.origin(&socket, address, query).await?;
                let mut expected = self.expect(local.ip(), origin).await?;
                let message = call(&expected, codec).message(&body);
                let request = frame(&path, &message).ok_or_else(|| {
                    failed(QueryFault::Malformed, "The query is too long to send.".to_owned())
                })?;
                let acknowledged = over_tcp(&mut socket, &request, address);
                let home = await_callback(&mut expected, acknowledged, within).await?;
                (home, Some(socket))
            }
            Destination::Nats { subject } => {
                let nats = self.nats.as_ref().ok_or_else(no_nats)?;
                let mut expected = self.expect(nats.local().await?, Origin::Anywhere).await?;
                let message = call(&expected, codec).message(&body);
                let acknowledged = nats.request(&subject, message, within);
                (await_callback(&mut expected, acknowledged, within).await?, None)
            }
        };
        let read = response::read(&mut home, (codec, query.endpoint.worker), &self.large, size_bytes).await;
        // Kept open until here, because a worker may treat its end as a cancellation.
        drop(sent);
        Ok(read?)
    }

    /// Connects to a worker, if the gate allows the address.
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
            tracing::debug!(%error, "TCP_NODELAY cannot be set");
        }
        Ok(socket)
    }

    /// Addresses from which the response may come: the one that was connected to, and others of the same process in discovery.
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

    async fn expect(&self, local: IpAddr, origin: Origin) -> Result<ExpectedConnection, QueryFailed> {
        self.callback.expect(local, origin).await.map_err(|error| {
            let detail = format!(
                "No port can be opened for workers' responses: {error}. Set one with --callback (RADIXSCOPE_CALLBACK)."
            );
            failed(QueryFault::NoCallback, detail)
        })
    }
}

fn call(expected: &ExpectedConnection, codec: Codec) -> Call<'_> {
    // The subject is unique, so it is used as the id too.
    Call { id: &expected.subject, subject: &expected.subject, callback: &expected.address, codec }
}

/// Waits for the connection with the response. It may arrive before the acknowledgement.
async fn await_callback(
    expected: &mut ExpectedConnection,
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
        arrived = timeout(within, &mut expected.arrives) => arrived,
        refused = accepted => return Err(refused.into()),
    };
    match arrived {
        Ok(Ok(home)) => Ok(home),
        _ if let Some(foreign) = expected.foreign() => {
            Err(failed(QueryFault::NoCallback, foreign.detail).into())
        }
        _ if is_accepted.into_inner() => Err(Fault::Silent(expected.address.clone())),
        _ => {
            let detail = format!(
                "The worker is reachable but did not accept the query within {} s: it hangs, or is not a Dynamo worker.",
                within.as_secs_f64()
            );
            Err(failed(QueryFault::Unreachable, detail).into())
        }
    }
}

/// Sends a request over TCP and waits for the acknowledgement.
async fn over_tcp(socket: &mut TcpStream, request: &[u8], address: &str) -> Result<(), QueryFailed> {
    let broke = |error: std::io::Error| {
        let detail = format!(
            "The worker at {address} closed the connection without accepting the query ({error}). A request plane \
             with TLS (DYN_TCP_TLS_…) is not supported."
        );
        failed(QueryFault::Refused, detail)
    };
    socket.write_all(request).await.map_err(broke)?;
    let mut length = [0; 4];
    socket.read_exact(&mut length).await.map_err(broke)?;
    // The first bytes of a TLS alert.
    if matches!(length, [0x15, 3, ..]) {
        let detail = format!(
            "The worker at {address} uses TLS on its request plane (DYN_TCP_TLS_…), which is not supported: its blocks are \
             known from events only."
        );
        return Err(failed(QueryFault::Unsupported, detail));
    }
    let length = u32::from_be_bytes(length) as usize;
    if length == 0 {
        return Ok(());
    }
    let reply = reply(socket, length.min(MAX_REFUSAL_BYTES)).await;
    // A rejection has exactly the announced length.
    if reply.len() == length && refusal(&reply).is_some() {
        return Err(refused(&reply));
    }
    Err(refused(&[&(length as u32).to_be_bytes()[..], &reply].concat()))
}

/// Reads up to `most` bytes until the idle timeout, because another protocol may keep the connection open.
async fn reply(socket: &mut TcpStream, most: usize) -> Vec<u8> {
    let mut reply = Vec::new();
    let mut socket = socket.take(most as u64);
    while let Ok(Ok(1..)) = timeout(REPLY_PAUSE, socket.read_buf(&mut reply)).await {}
    reply
}

/// The worker, or the NATS server, rejected the query; replies that are not Dynamo's are not quoted.
pub(super) fn refused(reply: &[u8]) -> QueryFailed {
    let detail = match refusal(reply) {
        Some(text) => format!("The worker rejected the query: {}.", text.trim_end_matches('.')),
        None => format!("The query was answered by {}.", foreign_reply(reply)),
    };
    failed(QueryFault::Refused, detail)
}

/// The gate refused the query.
fn not_sent(Refused { detail, .. }: Refused) -> QueryFailed {
    failed(QueryFault::Refused, detail)
}

fn unreachable(address: &str, why: &str) -> QueryFailed {
    let detail = format!(
        "The worker's request plane at {address} is not reachable: {why}. Check firewalls and network policies between this \
         process and the workers."
    );
    failed(QueryFault::Unreachable, detail)
}

fn no_nats() -> QueryFailed {
    let detail = "The worker accepts requests only over NATS; set the server with --nats (RADIXSCOPE_NATS).";
    failed(QueryFault::Unreachable, detail.to_owned())
}

/// The query was accepted with both codecs, but the worker did not connect back.
async fn silent(address: &str) -> QueryFailed {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    let mut detail = format!(
        "The worker accepted the query but did not connect back: open port {port} from the workers to {host}, or set --callback \
         (RADIXSCOPE_CALLBACK) to a HOST:PORT at which workers reach this process."
    );
    let reached = timeout(SELF_TEST_WITHIN, TcpStream::connect(address)).await;
    let why = match reached {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some("timed out".to_owned()),
    };
    if let Some(why) = why {
        detail.push_str(&format!(" {address} is not reachable from this process either: {why}."));
    }
    failed(QueryFault::NoCallback, detail)
}

fn other(codec: Codec) -> Codec {
    match codec {
        Codec::Json => Codec::MsgPack,
        Codec::MsgPack => Codec::Json,
    }
}
