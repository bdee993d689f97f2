//! HTTP as bytes: requests that no client would send, and connections that are left as they are.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::wait;

/// What came back for bytes.
#[derive(Debug)]
pub struct RawAnswer {
    /// Status code; 0 if the connection ended without an answer.
    pub status: u16,
    /// Everything, headers and body.
    pub text: String,
}

/// A connection to the server on this port of this machine.
pub async fn connect(port: u16) -> TcpStream {
    TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).await.expect("it listens")
}

/// Sends `request` as it stands and reads until the server closes: the request has to ask for that.
pub async fn ask(port: u16, request: &str) -> RawAnswer {
    let mut socket = connect(port).await;
    socket.write_all(request.as_bytes()).await.expect("the request is sent");
    rest(&mut socket).await
}

/// Everything that comes until the server closes.
pub async fn rest(socket: &mut TcpStream) -> RawAnswer {
    let mut bytes = Vec::new();
    // A connection that is reset has ended too.
    let _ = wait::within("the server closes the connection", socket.read_to_end(&mut bytes)).await;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    RawAnswer { status, text }
}

/// The status that comes for `request`, on a connection that may stay open.
pub async fn status(port: u16, request: &str) -> u16 {
    answered(port, request).await.0
}

/// The same, with the connection.
pub async fn answered(port: u16, request: &str) -> (u16, TcpStream) {
    let mut socket = connect(port).await;
    socket.write_all(request.as_bytes()).await.expect("the request is sent");
    let mut head = [0; 12];
    let status = match wait::within("an answer comes", socket.read_exact(&mut head)).await {
        Ok(_) => String::from_utf8_lossy(&head[9..]).parse().expect("a status"),
        Err(_) => 0,
    };
    (status, socket)
}
