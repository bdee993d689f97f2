//! Our listener: a bounded number of connections, each with time limits, with TLS if asked for, and an orderly end. Knows
//! nothing of what is asked and answered.

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

/// From its start a connection has this long to say what it wants; then it is closed.
const HEADERS_WITHIN: Duration = Duration::from_secs(10);
/// The same from the answer before: longer than proxies keep connections for the next request, usually a minute.
const NEXT_WITHIN: Duration = Duration::from_secs(75);
/// How long a TLS handshake may take.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// A connection that takes nothing of what it is sent for this long is closed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest header of a request: what every browser and proxy stays below.
const MAX_HEADER_BYTES: usize = 32 * 1024;
/// Time to the next try when the system has no room for a connection.
const RETRY_AFTER: Duration = Duration::from_millis(50);
/// Least time between two lines of the log about that.
const LOG_EVERY: Duration = Duration::from_secs(10);
/// Connections at a time that are told that they are too many; more are only closed.
const MAX_REFUSALS: usize = 16;
/// How long a connection has to hear it.
const REFUSED_WITHIN: Duration = Duration::from_millis(500);
const REFUSAL: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 2\r\n\
Connection: close\r\nContent-Length: 123\r\n\r\n\
{\"error\":{\"code\":\"too_many_connections\",\"message\":\"the limit of --max-connections is reached; try again in a few seconds\"}}";

/// Who is at the other end of a connection, known to every handler.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    /// Its address.
    pub(super) address: IpAddr,
    /// Our address that it reached.
    pub(super) local: IpAddr,
    /// Whether the connection is encrypted by us.
    pub(super) is_tls: bool,
    /// Its place.
    pub(super) slot: Arc<ConnectionSlot>,
}

/// A listener before it serves.
pub(super) struct Listener {
    socket: TcpListener,
    slots: Arc<ConnectionSlots>,
    tls: Option<tls::Current>,
    refusals: Arc<Semaphore>,
}

impl Listener {
    /// For at most so many connections, if there are file descriptors for as many.
    pub(super) fn new(socket: TcpListener, max_connections: usize, tls: Option<Tls>) -> Self {
        Self {
            socket,
            slots: Arc::new(ConnectionSlots::new(descriptors::connections(max_connections))),
            tls: tls.map(Tls::follow),
            refusals: Arc::new(Semaphore::new(MAX_REFUSALS)),
        }
    }

    /// All places.
    pub(super) fn slots(&self) -> Arc<ConnectionSlots> {
        Arc::clone(&self.slots)
    }

    /// Serves until `shutdown` turns true and the last connection has ended.
    pub(super) async fn serve<S>(self, service: S, mut shutdown: Shutdown)
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
                            "no connection can be accepted: {error}. {} are open; idle ones are closed",
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
        // Batches are small and wanted at once; Nagle's algorithm would hold them back.
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "no TCP_NODELAY");
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
            None => tokio::spawn(serve_connection(io, peer, service, shutdown)),
            Some(settings) => {
                let acceptor = TlsAcceptor::from(Arc::clone(&settings.borrow()));
                tokio::spawn(serve_tls(acceptor, io, peer, service, shutdown))
            }
        };
    }

    /// Says that there is no place, to as many as can be told without having places of their own.
    fn refuse(&self, mut socket: TcpStream) {
        let is_plain = self.tls.is_none();
        let Some(permit) = Arc::clone(&self.refusals).try_acquire_owned().ok().filter(|_| is_plain) else {
            return;
        };
        tokio::spawn(async move {
            let say = async {
                let mut unread = [0; 4096];
                // An answer to what was not asked yet is none.
                let _ = socket.read(&mut unread).await?;
                socket.write_all(REFUSAL.as_bytes()).await?;
                socket.shutdown().await?;
                // Closing with something unread would take the words back.
                while socket.read(&mut unread).await? > 0 {}
                Ok::<_, std::io::Error>(())
            };
            let _ = tokio::time::timeout(REFUSED_WITHIN, say).await;
            drop(permit);
        });
    }
}

/// Whether an error of accepting is one connection's own.
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
        Ok(Err(error)) => tracing::debug!(%error, "no TLS handshake"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

/// Answers the requests of one connection.
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
    // It has something to do until the whole body is sent.
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
