//! The one gate for what leaves this process to where somebody else says: queries, subscriptions, connections. Knows names
//! and addresses, and nothing of what is sent.
//!
//! # How it works
//!
//! Who writes to discovery, or answers in place of a frontend, names where workers are. Without a check this process would
//! send requests with its own rights wherever such a writer likes. So a name has to be one that Dynamo gives (`names`), and
//! what is sent is built from its fields; an address is resolved once, checked, and that address is connected to. Addresses
//! that mean this machine, its links or its cloud (`address`) are refused, unless the evidence says otherwise: loopback is
//! where workers are if what names them is on this machine too, and whatever `--allow-target` holds was named by the operator.
//! What the operator names on the command line passes without a check.
//!
//! What is refused is counted by what it was and why, and the last of each is kept in words ([`Refusals`]).

mod address;
mod names;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use ipnet::IpNet;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use radixscope_dynamo::request_plane::QueryEndpoint;
use radixscope_intake::command::NamedBy;

pub use address::{Special, plain};
pub use names::Destination;

use crate::config::{DiscoveryAt, Sources, ZmqEndpoint};
use crate::hub::Refusals;

/// Addresses of one name that are looked at: a pod has two, a service a few.
const MAX_ADDRESSES: usize = 16;
/// Most of what names a target that is shown; Dynamo's longest keys have half of it.
const MAX_EVIDENCE_CHARS: usize = 300;

/// What is checked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Crossing {
    /// A query to a worker.
    TreeQuery,
    /// A connection to a ZeroMQ publisher or broker.
    ZmqConnection,
    /// A subscription over NATS.
    NatsSubscription,
    /// A request for the messages of a JetStream stream.
    StreamRequest,
    /// A connection that brings the response to a query.
    Response,
}

impl Crossing {
    /// As a label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TreeQuery => "tree_query",
            Self::ZmqConnection => "zmq_connection",
            Self::NatsSubscription => "nats_subscription",
            Self::StreamRequest => "stream_request",
            Self::Response => "response",
        }
    }
}

/// Why something does not pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// As a label.
    pub why: &'static str,
    /// In whole sentences, with what would let it pass.
    pub detail: String,
}

/// Labels of what is no special address.
const NOT_DYNAMO: &str = "not_dynamo";
const OTHER_ADDRESS: &str = "other_address";

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum NotConnected {
    /// The gate does not let it pass.
    Refused(Refused),
    /// Nothing listens there, or the name has no address.
    Failed(io::Error),
    /// Not within the time.
    Silent,
}

/// What names a target.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Evidence<'e> {
    /// An entry of discovery or the list of a frontend.
    Named(&'e NamedBy),
    /// Discovery, whatever entry.
    Discovery,
    /// The list of a KV indexer, which may be on this machine.
    Indexer { is_here: bool },
    /// The command line.
    Operator,
}

/// Connects to addresses that this machine has no way to.
pub(crate) trait Dial: Send + Sync {
    /// A connection there.
    fn connect(&self, to: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>>;
}

/// See the module.
#[derive(Default)]
pub struct Gate {
    /// By `--allow-target`.
    allowed: Vec<IpNet>,
    /// Whether discovery is on this machine.
    is_discovery_here: bool,
    /// Frontends on this machine, by name.
    frontends_here: BTreeSet<String>,
    /// What connects instead of this machine.
    dial: Option<Arc<dyn Dial>>,
    refusals: Arc<Refusals>,
}

impl Gate {
    /// The gate of a process that reads these sources.
    pub fn new(from: &Sources) -> Self {
        let is_discovery_here = match &from.discovery.discovery {
            Some(DiscoveryAt::Files(_)) => true,
            Some(DiscoveryAt::Etcd(etcd)) => {
                etcd.servers.iter().all(|url| url.host_str().is_some_and(is_here))
            }
            // The loopback of a pod is its own, wherever the API server is.
            Some(DiscoveryAt::Kubernetes(_)) | None => false,
        };
        let is_here = |url: &url::Url| url.host_str().is_some_and(is_here);
        let here = from.prometheus.prometheus.iter().filter(|process| is_here(&process.url));
        let frontends_here = here.map(|process| process.name.clone()).collect();
        let allowed = from.trees.allow_target.clone();
        Self { allowed, is_discovery_here, frontends_here, dial: None, refusals: Arc::default() }
    }

    /// The same outside a cluster: what leads there connects. Its discovery is elsewhere, whatever the address of a tunnel to it.
    #[cfg(feature = "kubernetes")]
    pub(crate) fn through(self, dial: Arc<dyn Dial>) -> Self {
        Self { dial: Some(dial), is_discovery_here: false, ..self }
    }

    /// One that lets through what is on this machine, for tests.
    #[cfg(test)]
    pub(crate) fn of_this_machine() -> Arc<Self> {
        Arc::new(Self { is_discovery_here: true, ..Self::default() })
    }

    /// What was refused so far.
    pub fn refusals(&self) -> &Arc<Refusals> {
        &self.refusals
    }

    /// Where a query to this endpoint goes, as far as names tell.
    ///
    /// # Errors
    /// It is no endpoint of Dynamo's that answers queries. Counted.
    pub fn query<'e>(&self, endpoint: &'e QueryEndpoint) -> Result<Destination<'e>, Refused> {
        names::destination(endpoint).map_err(|wrong| {
            let detail = format!("Not queried: {wrong}.");
            self.refuse(Crossing::TreeQuery, NOT_DYNAMO, detail)
        })
    }

    /// Whether a NATS subject that discovery names may be subscribed to.
    ///
    /// # Errors
    /// It is none on which Dynamo publishes. Counted.
    pub fn subscription(&self, subject: &str) -> Result<(), Refused> {
        if names::is_event_subject(subject) {
            return Ok(());
        }
        let detail = format!(
            "Discovery names the NATS subject {}, which is none of Dynamo's: not subscribed to.",
            names::quoted(subject)
        );
        Err(self.refuse(Crossing::NatsSubscription, NOT_DYNAMO, detail))
    }

    /// Whether the messages of a JetStream stream may be asked for.
    pub fn is_stream(&self, name: &str) -> bool {
        let is_stream = names::is_stream(name);
        if !is_stream {
            let detail = format!("The stream {} is none of Dynamo's: not read.", names::quoted(name));
            self.refuse(Crossing::StreamRequest, NOT_DYNAMO, detail);
        }
        is_stream
    }

    /// Connects to `HOST:PORT`: resolves it once, and connects to an address that passed.
    pub(crate) async fn connect(
        &self,
        crossing: Crossing,
        address: &str,
        evidence: Evidence<'_>,
        within: Duration,
    ) -> Result<TcpStream, NotConnected> {
        let connected = async {
            let addresses = self.resolve(crossing, address, evidence).await?;
            let mut last = io::Error::other("its name has no address");
            for address in addresses {
                match self.dial(address).await {
                    Ok(stream) => return Ok(stream),
                    Err(error) => last = error,
                }
            }
            Err(NotConnected::Failed(last))
        };
        timeout(within, connected).await.unwrap_or(Err(NotConnected::Silent))
    }

    async fn dial(&self, to: SocketAddr) -> io::Result<TcpStream> {
        match &self.dial {
            Some(dial) => dial.connect(to).await,
            None => TcpStream::connect(to).await,
        }
    }

    /// The same for a ZeroMQ socket.
    pub(crate) async fn connect_zmq(
        &self,
        endpoint: &ZmqEndpoint,
        evidence: Evidence<'_>,
        within: Duration,
    ) -> Result<TcpStream, NotConnected> {
        let address = endpoint.to_string();
        let address = address.strip_prefix("tcp://").unwrap_or(&address);
        self.connect(Crossing::ZmqConnection, address, evidence, within).await
    }

    /// The addresses of a host from which a worker that discovery names there may answer. Nothing is sent there.
    pub(crate) async fn addresses_of(address: &str, within: Duration) -> Vec<IpAddr> {
        let address = address.strip_prefix("tcp://").unwrap_or(address);
        let Some(at) = names::host_and_port(address) else { return Vec::new() };
        match timeout(within, lookup_host(at)).await {
            Ok(Ok(found)) => found.take(MAX_ADDRESSES).map(|at| plain(at.ip())).collect(),
            Ok(Err(_)) | Err(_) => Vec::new(),
        }
    }

    /// A response came from another address than those of the worker that was queried.
    pub(crate) fn refuse_response(&self, from: IpAddr, expected: &[IpAddr]) -> Refused {
        let expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
        let detail = format!(
            "A response came from {from} and not from the worker at {}: it was not read. If there is NAT between the \
             workers and this process, set --callback (RADIXSCOPE_CALLBACK).",
            expected.join(" or ")
        );
        self.refuse(Crossing::Response, OTHER_ADDRESS, detail)
    }

    /// The addresses of a target that may be connected to.
    async fn resolve(
        &self,
        crossing: Crossing,
        address: &str,
        evidence: Evidence<'_>,
    ) -> Result<Vec<SocketAddr>, NotConnected> {
        let Some(at) = names::host_and_port(address) else {
            let detail = format!("Not connected: {} is no host and port.", names::quoted(address));
            return Err(NotConnected::Refused(self.refuse(crossing, NOT_DYNAMO, detail)));
        };
        let found = lookup_host(at).await.map_err(NotConnected::Failed)?;
        let (mut passed, mut special) = (Vec::new(), None);
        for address in found.take(MAX_ADDRESSES) {
            match self.special(address.ip(), evidence) {
                None => passed.push(address),
                Some(found) => special = Some((address.ip(), found)),
            }
        }
        match special {
            Some((ip, special)) if passed.is_empty() => {
                let detail = self.not_connected(at.0, ip, special, evidence);
                Err(NotConnected::Refused(self.refuse(crossing, special.as_str(), detail)))
            }
            _ => Ok(passed),
        }
    }

    /// Why an address is not connected to. `None`: it is.
    fn special(&self, ip: IpAddr, evidence: Evidence<'_>) -> Option<Special> {
        let is_allowed = |network: &IpNet| network.contains(&ip) || network.contains(&plain(ip));
        let is_local = match evidence {
            Evidence::Operator => return None,
            Evidence::Discovery | Evidence::Named(NamedBy::Entry { .. }) => self.is_discovery_here,
            Evidence::Indexer { is_here } => is_here,
            Evidence::Named(NamedBy::Frontend { name }) => self.frontends_here.contains(&**name),
        };
        Special::of(ip)
            .filter(|special| !(is_local && *special == Special::Loopback))
            .filter(|_| !self.allowed.iter().any(is_allowed))
    }

    fn not_connected(&self, host: &str, ip: IpAddr, special: Special, evidence: Evidence<'_>) -> String {
        let by = match evidence {
            Evidence::Named(by) => by.to_string().chars().take(MAX_EVIDENCE_CHARS).collect(),
            Evidence::Indexer { .. } => "a KV indexer".to_owned(),
            Evidence::Discovery | Evidence::Operator => "discovery".to_owned(),
        };
        let name = if host.parse::<IpAddr>().is_ok() { String::new() } else { format!("{host} has ") };
        let verb = if name.is_empty() { "is" } else { "which is" };
        format!(
            "Not connected: {name}{ip}, named by {by}, {verb} {}. If a worker is there, allow it with --allow-target \
             (RADIXSCOPE_ALLOW_TARGET).",
            special.in_text()
        )
    }

    fn refuse(&self, crossing: Crossing, why: &'static str, detail: String) -> Refused {
        // Targets are tried again and again; where each stands is in the state of its source.
        match self.refusals.count(crossing.as_str(), why, &detail) {
            1 => tracing::warn!(crossing = crossing.as_str(), why, "{detail}"),
            count => tracing::debug!(crossing = crossing.as_str(), why, count, "{detail}"),
        }
        Refused { why, detail }
    }
}

/// Whether a host, as a URL has it, is this machine: by its name or by one of its addresses.
pub(crate) fn is_here(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        // Only an address of this machine can be bound; nothing is sent.
        Ok(ip) => Special::of(ip) == Some(Special::Loopback) || UdpSocket::bind((ip, 0)).is_ok(),
        Err(_) => bare == "localhost" || bare.ends_with(".localhost"),
    }
}
