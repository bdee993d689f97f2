//! Things that stand between a browser and our server: a site that frames us, a server of another version.

use std::sync::Arc;

use futures_util::SinkExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;

/// Something that listens on a port of its own until dropped.
pub struct Site {
    port: u16,
    task: JoinHandle<()>,
}

impl Site {
    /// A site of one page.
    pub async fn of_page(html: &str) -> Self {
        let response = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{html}",
            html.len()
        );
        let response = Arc::new(response);
        Self::listen(move |mut stream| {
            let response = Arc::clone(&response);
            async move {
                let mut request = [0; 4096];
                // Whatever is asked for, it is the page; browsers also come by for an icon.
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(response.as_bytes()).await;
            }
        })
        .await
    }

    /// The server at `port`, but its socket sends `frames` and then nothing.
    pub async fn with_other_socket(port: u16, frames: Vec<Vec<u8>>) -> Self {
        let frames = Arc::new(frames);
        Self::listen(move |mut stream| {
            let frames = Arc::clone(&frames);
            async move {
                let mut start = [0; 8];
                let is_socket = loop {
                    match stream.peek(&mut start).await {
                        Ok(n) if n >= start.len() => break &start[..7] == b"GET /ws",
                        Ok(0) | Err(_) => return,
                        Ok(_) => tokio::task::yield_now().await,
                    }
                };
                if !is_socket {
                    let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await else { return };
                    let _ = copy_bidirectional(&mut stream, &mut server).await;
                    return;
                }
                let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
                for frame in frames.iter() {
                    let _ = socket.send(Message::binary(frame.clone())).await;
                }
                // Stays open, as a server would, until the other side goes.
                while futures_util::StreamExt::next(&mut socket).await.is_some_and(|m| m.is_ok()) {}
            }
        })
        .await
    }

    /// Where it is, at 127.0.0.1.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Its origin.
    pub fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    async fn listen<F: Future<Output = ()> + Send + 'static>(
        serve: impl Fn(TcpStream) -> F + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        });
        Self { port, task }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}
