//! The HTTP listener: a bounded number of connections with timeouts, optional TLS and graceful shutdown. Knows nothing of
//! routes.

mod descriptors;
mod slots;
mod tls;

use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tower::{Service, ServiceExt as _};

use crate::shutdown::{Shutdown, over};
pub(super) use slots::{Busy, ConnectionSlot, ConnectionSlots};
pub use tls::{Tls, TlsFiles};

/// Timeout for the headers of the first request.
const HEADERS_WITHIN: Duration = Duration::from_secs(10);
/// Timeout for the headers of a further request: longer than the keep-alive of proxies, usually a minute.
const NEXT_WITHIN: Duration = Duration::from_secs(75);
/// Timeout of a TLS handshake.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// Write timeout: a connection that reads nothing for this long is closed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of request headers; browsers and proxies stay below it.
const MAX_HEADER_BYTES: usize = 32 * 1024;
/// Delay after a failed accept.
const RETRY_AFTER: Duration = Duration::from_millis(50);
/// Minimum interval of log lines about that.
const LOG_EVERY: Duration = Duration::from_secs(10);
/// Maximum concurrent 503 responses to excess connections; more are closed without a response.
const MAX_REFUSALS: usize = 16;
/// Timeout of such a response.
const REFUSED_WITHIN: Duration = Duration::from_millis(500);
/// What a client of HTTP/2 begins with (RFC 9113, 3.4).
const HTTP2_PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const REFUSAL: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 2\r\n\
Connection: close\r\nContent-Length: 144\r\n\r\n\
{\"error\":{\"code\":\"too_many_connections\",\"message\":\"too many connections are open (for the page --max-connections); try again in a few seconds\"}}";

/// The peer of a connection, available to every handler.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// Its address.
    pub(crate) address: IpAddr,
    /// The local address.
    pub(super) local: IpAddr,
    /// Whether this listener terminates TLS.
    pub(super) is_tls: bool,
    /// Its slot.
    pub(super) slot: Arc<ConnectionSlot>,
}

/// A bound listener.
pub(crate) struct Listener {
    socket: TcpListener,
    slots: Arc<ConnectionSlots>,
    tls: Option<tls::Current>,
    refusals: Arc<Semaphore>,
    http2: Option<Arc<RefuseHttp2>>,
}

/// Called with the address of a client that begins with HTTP/2; gives what it is sent before its connection is closed.
type RefuseHttp2 = dyn Fn(IpAddr) -> Vec<u8> + Send + Sync;

impl Listener {
    /// For at most `max_connections`, limited by the file descriptors.
    pub(crate) fn new(socket: TcpListener, max_connections: usize, tls: Option<Tls>) -> Self {
        Self {
            socket,
            slots: Arc::new(ConnectionSlots::new(descriptors::connections(max_connections))),
            tls: tls.map(Tls::follow),
            refusals: Arc::new(Semaphore::new(MAX_REFUSALS)),
            http2: None,
        }
    }

    /// The same, which answers clients of HTTP/2 without TLS; without it such a connection is just closed.
    pub(crate) fn refusing_http2(self, with: impl Fn(IpAddr) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self { http2: Some(Arc::new(with)), ..self }
    }

    /// All slots.
    pub(super) fn slots(&self) -> Arc<ConnectionSlots> {
        Arc::clone(&self.slots)
    }

    /// Serves until `shutdown` turns true and the last connection has ended.
    pub(crate) async fn serve<S>(self, service: S, mut shutdown: Shutdown)
    where
        S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
        S::Future: Send,
    {
        let mut reported: Option<Instant> = None;
        loop {
            let accepted = tokio::select! {
                () = over(&mut shutdown) => break,
                accepted = self.socket.accept() => accepted,
            };
            match accepted {
                Ok((socket, address)) => self.accept(socket, address, &service, &shutdown),
                Err(error) if is_of_the_connection(error.kind()) => {
                    tracing::debug!(%error, "a connection ended before it was accepted");
                }
                Err(error) => {
                    self.slots.not_accepted.fetch_add(1, Ordering::Relaxed);
                    if reported.is_none_or(|reported| reported.elapsed() > LOG_EVERY) {
                        reported = Some(Instant::now());
                        tracing::error!(
                            "accepting connections fails: {error}; {} are open, closing idle ones",
                            self.slots.len()
                        );
                    }
                    self.slots.evict_idle();
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
        }
        let Self { socket, slots, .. } = self;
        drop(socket);
        slots.all_free().await;
    }

    fn accept<S>(&self, socket: TcpStream, address: SocketAddr, service: &S, shutdown: &Shutdown)
    where
        S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
        S::Future: Send,
    {
        // Batches are small and time-critical; Nagle's algorithm would delay them.
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY cannot be set");
        }
        let Ok(local) = socket.local_addr() else { return };
        let Some(slot) = self.slots.take() else {
            self.refuse(socket);
            return;
        };
        let peer = Peer {
            address: address.ip().to_canonical(),
            local: local.ip(),
            is_tls: self.tls.is_some(),
            slot,
        };
        let (service, shutdown) = (service.clone(), shutdown.clone());
        let mut io = Box::pin(TimeoutStream::new(socket));
        io.as_mut().set_write_timeout_pinned(Some(WRITE_TIMEOUT));
        match &self.tls {
            None => {
                let http2 = self.http2.clone();
                tokio::spawn(async move {
                    if let Some(refuse) = http2 {
                        match begins_with_http2(io.get_ref(), &peer.slot, shutdown.clone()).await {
                            Some(true) => return refuse_http2(io, &refuse(peer.address)).await,
                            Some(false) => {}
                            None => return,
                        }
                    }
                    serve_connection(io, peer, service, shutdown).await;
                })
            }
            Some(settings) => {
                let acceptor = TlsAcceptor::from(Arc::clone(&settings.borrow()));
                tokio::spawn(serve_tls(acceptor, io, peer, service, shutdown))
            }
        };
    }

    /// Responds 503, for at most [`MAX_REFUSALS`] connections at a time.
    fn refuse(&self, mut socket: TcpStream) {
        let is_plain = self.tls.is_none();
        let Some(permit) = Arc::clone(&self.refusals).try_acquire_owned().ok().filter(|_| is_plain) else {
            return;
        };
        tokio::spawn(async move {
            let say = async {
                let mut unread = [0; 4096];
                // Wait for the request: an early response would be ignored.
                let _ = socket.read(&mut unread).await?;
                socket.write_all(REFUSAL.as_bytes()).await?;
                socket.shutdown().await?;
                // Closing with unread data would reset the connection before the response is read.
                while socket.read(&mut unread).await? > 0 {}
                Ok::<_, std::io::Error>(())
            };
            let _ = tokio::time::timeout(REFUSED_WITHIN, say).await;
            drop(permit);
        });
    }
}

/// Whether a client begins with the preface of HTTP/2, which comes in one piece. What it sent stays to be read. `None`: the connection is
/// over before anything came.
async fn begins_with_http2(
    socket: &TcpStream,
    slot: &ConnectionSlot,
    mut shutdown: Shutdown,
) -> Option<bool> {
    let mut first = [0; HTTP2_PREFACE.len()];
    tokio::select! {
        sent = socket.peek(&mut first) => sent.ok().map(|_| first == *HTTP2_PREFACE),
        () = tokio::time::sleep(HEADERS_WITHIN) => None,
        () = slot.ended() => None,
        () = over(&mut shutdown) => None,
    }
}

async fn refuse_http2(mut io: Pin<Box<TimeoutStream<TcpStream>>>, with: &[u8]) {
    let mut unread = [0; 4096];
    let say = async {
        io.write_all(with).await?;
        io.shutdown().await?;
        // Closing with unread data would reset the connection before this is read.
        while io.read(&mut unread).await? > 0 {}
        Ok::<_, std::io::Error>(())
    };
    let _ = tokio::time::timeout(REFUSED_WITHIN, say).await;
}

/// Whether an accept error concerns only one connection.
fn is_of_the_connection(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionRefused
            | ErrorKind::Interrupted
            | ErrorKind::NetworkDown
            | ErrorKind::NetworkUnreachable
            | ErrorKind::HostUnreachable
    )
}

async fn serve_tls<S>(
    acceptor: TlsAcceptor,
    io: Pin<Box<TimeoutStream<TcpStream>>>,
    peer: Peer,
    service: S,
    shutdown: Shutdown,
) where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let slot = Arc::clone(&peer.slot);
    let mut stopped = shutdown.clone();
    let shaken = tokio::select! {
        () = slot.ended() => return,
        () = over(&mut stopped) => return,
        shaken = tokio::time::timeout(HANDSHAKE_WITHIN, acceptor.accept(io)) => shaken,
    };
    match shaken {
        Ok(Ok(io)) => serve_connection(io, peer, service, shutdown).await,
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => tracing::debug!("TLS handshake timed out"),
    }
}

/// Serves the requests of one connection.
async fn serve_connection<I, S>(io: I, peer: Peer, service: S, mut shutdown: Shutdown)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let slot = Arc::clone(&peer.slot);
    let respond = service_fn(move |request| respond(service.clone(), peer.clone(), request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(NEXT_WITHIN)
        .max_buf_size(MAX_HEADER_BYTES)
        .serve_connection(TokioIo::new(io), respond)
        .with_upgrades();
    let mut connection = pin!(connection);
    let late = async {
        tokio::time::sleep(HEADERS_WITHIN).await;
        if slot.has_sent_request() {
            std::future::pending::<()>().await;
        }
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = slot.ended() => return,
        () = late => return,
        () = over(&mut shutdown) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn respond<S>(service: S, peer: Peer, request: hyper::Request<Incoming>) -> Result<Response, Infallible>
where
    S: Service<Request, Response = Response, Error = Infallible>,
{
    let busy: Busy = peer.slot.busy();
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(peer);
    let response = service.oneshot(request).await?;
    // The connection counts as busy until the whole body is sent.
    Ok(response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _ = &busy;
            frame
        }))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_is_as_long_as_it_says() {
        let (head, body) = REFUSAL.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{}", body.len());
        serde_json::from_str::<serde_json::Value>(body).unwrap();
    }
}
