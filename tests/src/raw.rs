//! HTTP as bytes: requests that no client would send, and connections that are left as they are.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;

use crate::wait;

/// What came back for bytes.
#[derive(Debug)]
pub struct RawResponse {
    /// Status code; 0 if the connection ended without a response.
    pub status: u16,
    /// Everything, headers and body.
    pub text: String,
}

/// A connection to the server on this port of this machine.
pub async fn connect(port: u16) -> TcpStream {
    TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).await.expect("it listens")
}

/// Sends `request` as it stands and reads until the server closes: the request has to ask for that.
pub async fn ask(port: u16, request: &str) -> RawResponse {
    let mut socket = connect(port).await;
    socket.write_all(request.as_bytes()).await.expect("the request is sent");
    rest(&mut socket).await
}

/// Everything that comes until the server closes.
pub async fn rest(socket: &mut TcpStream) -> RawResponse {
    let mut bytes = Vec::new();
    // A connection that is reset has ended too.
    let _ = wait::within("the server closes the connection", socket.read_to_end(&mut bytes)).await;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    RawResponse { status, text }
}

/// The status that comes for `request`, on a connection that may stay open.
pub async fn status(port: u16, request: &str) -> u16 {
    answered(port, request).await.0
}

/// The same, with the connection.
pub async fn answered(port: u16, request: &str) -> (u16, TcpStream) {
    let mut socket = connect(port).await;
    let status = status_of(&mut socket, request).await;
    (status, socket)
}

/// Sends `request` and reads the status; 0 if there is no response.
async fn status_of(socket: &mut TcpStream, request: &str) -> u16 {
    socket.write_all(request.as_bytes()).await.expect("the request is sent");
    let mut head = [0; 12];
    match wait::within("a response comes", socket.read_exact(&mut head)).await {
        Ok(_) => String::from_utf8_lossy(&head[9..]).parse().expect("a status"),
        Err(_) => 0,
    }
}

/// Shows wrong access tokens as fast as it can, until it is aborted; counts responses.
pub async fn guess(port: u16, answered: Arc<AtomicU64>) {
    let host = format!("Host: 127.0.0.1:{port}");
    for number in 0_usize.. {
        let path = ["/api/v1/cluster", "/readyz"][number % 2];
        let request = format!("GET {path} HTTP/1.1\r\n{host}\r\nAuthorization: Bearer {number}\r\n\r\n");
        if status(port, &request).await != 0 {
            answered.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A client that reads so slowly that the server waits for it, without ever stopping for long.
pub struct SlowReader {
    /// Status of the response; 0 if there is none.
    pub status: u16,
    reading: JoinHandle<()>,
}

impl SlowReader {
    /// Bytes that the system may keep for it: few, so that the server notices how slowly it reads.
    const BUFFER_BYTES: u32 = 8 * 1024;
    /// What it reads at a time, and how often.
    const READ_BYTES: usize = 1024;
    const READ_EVERY: Duration = Duration::from_millis(100);

    /// Requests `path`.
    pub async fn get(port: u16, path: &str) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(Self::BUFFER_BYTES).expect("a small buffer");
        let mut socket = socket.connect(SocketAddr::from(([127, 0, 0, 1], port))).await.expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
        let status = status_of(&mut socket, &request).await;
        let reading = tokio::spawn(async move {
            let mut some = [0; Self::READ_BYTES];
            let mut pace = tokio::time::interval(Self::READ_EVERY);
            while socket.read(&mut some).await.is_ok_and(|read| read > 0) {
                pace.tick().await;
            }
        });
        Self { status, reading }
    }

    /// Whether it still gets something.
    pub fn is_served(&self) -> bool {
        self.status == 200 && !self.reading.is_finished()
    }
}

impl Drop for SlowReader {
    fn drop(&mut self) {
        self.reading.abort();
    }
}
