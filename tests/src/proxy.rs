//! A TCP proxy on the way to a server, which can be cut and mended: a network that fails while both ends live.

use std::net::Ipv4Addr;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A proxy before a port of this machine.
pub struct Proxy {
    port: u16,
    is_up: Arc<watch::Sender<bool>>,
}

impl Proxy {
    /// Listens on a free port and passes everything on to `to`.
    pub async fn start(to: u16) -> Self {
        Self::start_at(Ipv4Addr::LOCALHOST, to).await
    }

    /// Listens at one of this machine's addresses.
    pub async fn start_at(at: Ipv4Addr, to: u16) -> Self {
        let listener = TcpListener::bind((at, 0)).await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let is_up = Arc::new(watch::Sender::new(true));
        let up = Arc::clone(&is_up);
        tokio::spawn(async move {
            while let Ok((mut inner, _)) = listener.accept().await {
                let mut down = up.subscribe();
                // While it is cut, connections are taken and dropped, as a broken load balancer does.
                if !*down.borrow() {
                    continue;
                }
                tokio::spawn(async move {
                    let Ok(mut outer) = TcpStream::connect((Ipv4Addr::LOCALHOST, to)).await else { return };
                    tokio::select! {
                        _ = copy_bidirectional(&mut inner, &mut outer) => {}
                        _ = down.wait_for(|is_up| !is_up) => {}
                    }
                });
            }
        });
        Self { port, is_up }
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where clients connect.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Ends every connection and takes no new one.
    pub fn cut(&self) {
        self.is_up.send_replace(false);
    }

    /// Takes connections again.
    pub fn mend(&self) {
        self.is_up.send_replace(true);
    }
}
