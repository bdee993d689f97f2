//! A TCP proxy on the way to a server, which can be cut and mended: a network that fails while both ends live.

use std::net::Ipv4Addr;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A proxy before a port of this machine.
pub struct Proxy {
    port: u16,
    state: Arc<watch::Sender<State>>,
}

/// How a proxy treats connections.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    is_up: bool,
    /// Connections that were made in another network go nowhere.
    network: u64,
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
        let state = Arc::new(watch::Sender::new(State { is_up: true, network: 0 }));
        let states = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((mut inner, _)) = listener.accept().await {
                let mut states = states.subscribe();
                // While it is cut, connections are taken and dropped, as a broken load balancer does.
                let State { is_up: true, network } = *states.borrow() else { continue };
                tokio::spawn(async move {
                    let Ok(mut outer) = TcpStream::connect((Ipv4Addr::LOCALHOST, to)).await else { return };
                    let changed = tokio::select! {
                        _ = copy_bidirectional(&mut inner, &mut outer) => return,
                        changed = states.wait_for(|now| !now.is_up || now.network != network) => changed.map(|now| *now),
                    };
                    // Neither end hears of it.
                    if changed.is_ok_and(|now| now.is_up) {
                        let _ = states.wait_for(|now| !now.is_up).await;
                    }
                });
            }
        });
        Self { port, state }
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
        self.state.send_modify(|state| state.is_up = false);
    }

    /// Takes connections again.
    pub fn mend(&self) {
        self.state.send_modify(|state| state.is_up = true);
    }

    /// Connections that exist go nowhere from now on, without an end; new ones are as before: a laptop in another network.
    pub fn change_network(&self) {
        self.state.send_modify(|state| state.network += 1);
    }
}
