//! The request plane over NATS, on a separate connection that is opened with the first query.

use std::net::IpAddr;
use std::time::Duration;

use async_nats::{Client, RequestErrorKind};
use tokio::net::UdpSocket;
use tokio::sync::Mutex;
use tokio::time::timeout;

use radixscope_dynamo::tree_query::{QueryFailed, QueryFault};

use super::query::refused;
use super::response::failed;
use crate::source::SourceStatus;
use crate::source::nats::{INBOX, Signals, Target, Whereabouts, missing_right};

/// How often server errors are checked: they arrive within milliseconds.
const COMPLAINTS_EVERY: Duration = Duration::from_millis(100);
/// Timeout for resolving the server's name.
const RESOLVE_WITHIN: Duration = Duration::from_secs(3);

/// Queries to workers over NATS.
pub(super) struct RequestPlane {
    link: Mutex<Link>,
}

struct Link {
    /// Where the server is, which may change.
    at: Whereabouts,
    connected: Option<(Client, Signals)>,
}

impl RequestPlane {
    pub(super) fn new(at: Whereabouts) -> Self {
        Self { link: Mutex::new(Link { at, connected: None }) }
    }

    /// The local address towards the server, which is also the way to the workers.
    pub(super) async fn local(&self) -> Result<IpAddr, QueryFailed> {
        let target = self.link.lock().await.target()?;
        let mut why = "it has no address".to_owned();
        for (host, port) in target.addresses() {
            match timeout(RESOLVE_WITHIN, local_address_towards(&host, port)).await {
                Ok(Ok(local)) => return Ok(local),
                Ok(Err(error)) => why = error.to_string(),
                Err(_) => why = format!("its name was not resolved within {} s", RESOLVE_WITHIN.as_secs()),
            }
        }
        Err(unreachable(&target, &why))
    }

    /// Publishes a request and waits for its acknowledgement.
    pub(super) async fn request(
        &self,
        subject: &str,
        message: Vec<u8>,
        within: Duration,
    ) -> Result<(), QueryFailed> {
        let (target, (client, signals)) = self.link.lock().await.client().await?;
        let accepted = tokio::select! {
            accepted = timeout(within, client.request(subject.to_owned(), message.into())) => accepted,
            right = denied(&signals, subject) => {
                let detail =
                    format!("NATS at {} rejected the query: {right}.", target.display_address());
                return Err(failed(QueryFault::Refused, detail));
            }
        };
        match accepted {
            Ok(Ok(reply)) if reply.payload.is_empty() => Ok(()),
            Ok(Ok(reply)) => Err(refused(&reply.payload)),
            Ok(Err(error)) if error.kind() == RequestErrorKind::NoResponders => {
                let detail = format!("No worker listens on the NATS subject {subject}; it may have left.");
                Err(failed(QueryFault::Unreachable, detail))
            }
            Ok(Err(error)) => Err(unreachable(&target, &error.to_string())),
            Err(_) => Err(failed(
                QueryFault::Unreachable,
                format!("The request on the NATS subject {subject} was not acknowledged in time."),
            )),
        }
    }
}

impl Link {
    /// Where the server is now.
    fn target(&mut self) -> Result<Target, QueryFailed> {
        if self.at.has_changed().unwrap_or(false) {
            self.connected = None;
        }
        match &*self.at.borrow_and_update() {
            Ok(target) => Ok(target.clone()),
            Err(why) => Err(failed(
                QueryFault::Unreachable,
                format!("The worker accepts requests only over NATS. {why}"),
            )),
        }
    }

    /// The connection, reopened if it was lost.
    async fn client(&mut self) -> Result<(Target, (Client, Signals)), QueryFailed> {
        let target = self.target()?;
        if let Some(connected) = &self.connected
            && !*connected.1.lost.borrow()
        {
            return Ok((target, connected.clone()));
        }
        self.connected = None;
        let new = target.connect().await;
        let new = new.map_err(|SourceStatus { detail, .. }| failed(QueryFault::Unreachable, detail))?;
        self.connected = Some(new.clone());
        Ok((target, new))
    }
}

fn unreachable(target: &Target, why: &str) -> QueryFailed {
    let detail = format!(
        "NATS at {}, the workers' request plane, cannot be reached: {why}.",
        target.display_address()
    );
    failed(QueryFault::Unreachable, detail)
}

/// Waits for a permissions violation of the request or its reply; returns the missing permission. A denied request gets no
/// response.
async fn denied(signals: &Signals, subject: &str) -> String {
    let mut look = tokio::time::interval(COMPLAINTS_EVERY);
    let (subject, inbox) = (format!("\"{subject}\""), format!("\"{INBOX}."));
    let is_ours = |right: &String| right.contains(&subject) || right.contains(&inbox);
    loop {
        look.tick().await;
        if let Some(right) = signals.take_error(|complaint| missing_right(complaint).filter(is_ours)) {
            return right;
        }
    }
}

/// The local address towards `host`; nothing is sent.
async fn local_address_towards(host: &str, port: u16) -> std::io::Result<IpAddr> {
    let mut last = std::io::Error::other("its name has no address");
    for address in tokio::net::lookup_host((host, port)).await? {
        let any: IpAddr = match address {
            std::net::SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
            std::net::SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        };
        let connected = async {
            let socket = UdpSocket::bind((any, 0)).await?;
            socket.connect(address).await?;
            socket.local_addr()
        };
        match connected.await {
            Ok(local) => return Ok(local.ip()),
            Err(error) => last = error,
        }
    }
    Err(last)
}
