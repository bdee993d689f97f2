//! A TCP balancer before several servers, as a Kubernetes service is: each connection goes to the next server that takes it.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

/// The balancer; it ends with the test's runtime.
pub struct Balancer {
    port: u16,
}

impl Balancer {
    /// Listens on a free port for `servers`, ports of this machine.
    pub async fn start(servers: impl Into<Arc<[u16]>>) -> Self {
        let servers: Arc<[u16]> = servers.into();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let next = Arc::new(AtomicUsize::new(0));
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (servers, next) = (Arc::clone(&servers), Arc::clone(&next));
                tokio::spawn(async move {
                    let first = next.fetch_add(1, Ordering::Relaxed);
                    for tried in 0..servers.len() {
                        let to = servers[(first + tried) % servers.len()];
                        if let Ok(mut server) = TcpStream::connect((Ipv4Addr::LOCALHOST, to)).await {
                            // That one side breaks off is what this is for.
                            let _ = copy_bidirectional(&mut client, &mut server).await;
                            return;
                        }
                    }
                });
            }
        });
        Self { port }
    }

    /// Where clients connect: host and port.
    pub fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}
