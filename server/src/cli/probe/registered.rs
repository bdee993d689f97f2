//! What discovery and the frontends' worker lists show about a deployment: version, request plane, event plane, endpoints for
//! block queries.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use radixscope_dynamo::discovery::{self, ChannelTransport, DiscoveryEntry};
use radixscope_dynamo::health;
use radixscope_dynamo::request_plane::{Codec, QueryEndpoint, RequestTransport};
use radixscope_intake::command::NamedBy;
use radixscope_model::id::{Worker, WorkerId};

use crate::source::discovery::Entry;
use crate::source::gate::{Crossing, Destination, Evidence, Gate, NotConnected};

/// Maximum workers to which a connection is tried: if these are reachable, the others most likely are too.
const MAX_TRIED: usize = 32;
/// Timeout of such a connection.
const TRY_WITHIN: Duration = Duration::from_secs(1);

/// Counts of what is registered.
#[derive(Default, Debug)]
pub(super) struct Registered {
    /// Entries of discovery.
    pub(super) entries: usize,
    /// Processes that take requests as workers.
    pub(super) workers: BTreeSet<WorkerId>,
    /// Publishers of each topic over ZeroMQ, and over NATS.
    pub(super) zmq: BTreeMap<String, usize>,
    pub(super) nats: BTreeMap<String, usize>,
    /// XPUB addresses of registered brokers.
    pub(super) brokers: BTreeSet<String>,
    /// Publishers of KV events over any transport.
    pub(super) event_sources: usize,
    /// Whether a process other than a worker publishes request steps: a frontend with `--router-replica-sync`. `None`: unknown.
    pub(super) replica_sync: Option<bool>,
    /// Endpoints for block queries, by worker.
    pub(super) queries: BTreeMap<Worker, (QueryEndpoint, NamedBy)>,
    /// Why the first unreachable endpoint is unreachable.
    pub(super) unreachable: Option<String>,
    planes: BTreeSet<&'static str>,
    codecs: BTreeSet<&'static str>,
    versions: BTreeSet<Version>,
}

/// Registrations that identify a version, the oldest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Version {
    Instances,
    Channels,
    IndexerQuery,
    RankQuery,
    SourceQuery,
}

impl Registered {
    /// Reads entries of discovery. Unknown entries are ignored here; the sources count them.
    pub(super) fn add_entries(&mut self, entries: &[Entry]) {
        self.entries += entries.len();
        let mut steps = Vec::new();
        for Entry { key, value, lease } in entries {
            let named_by = || NamedBy::Entry { key: (**key).into(), lease: *lease };
            match discovery::decode(key, value) {
                Ok(DiscoveryEntry::Instance(instance)) => {
                    self.versions.insert(Version::Instances);
                    if instance.is_worker() {
                        self.workers.insert(instance.instance_id);
                        self.add_plane(instance.transport.as_ref(), instance.codec);
                    }
                    self.add_query(instance.query_endpoint(), named_by());
                }
                Ok(DiscoveryEntry::EventChannel(channel)) => {
                    self.versions.insert(Version::Channels);
                    if channel.topic == "active_sequences_events" {
                        steps.push(lease.unwrap_or(channel.publisher_id));
                    }
                    match channel.transport {
                        ChannelTransport::Zmq { .. } => *self.zmq.entry(channel.topic).or_default() += 1,
                        ChannelTransport::Nats { .. } => *self.nats.entry(channel.topic).or_default() += 1,
                        ChannelTransport::ZmqBroker { xpub } => self.brokers.extend(xpub),
                        ChannelTransport::Other => {}
                    }
                }
                Ok(DiscoveryEntry::EventSource(source)) => {
                    self.versions.insert(Version::SourceQuery);
                    self.event_sources += 1;
                    self.add_query(source.recovery, named_by());
                }
                Ok(DiscoveryEntry::ModelCard(_) | DiscoveryEntry::Other) | Err(_) => {}
            }
        }
        // If a publisher has an id of its own, only the lease identifies its process.
        let is_known = self.event_sources == 0 || entries.iter().any(|entry| entry.lease.is_some());
        let is_worker = |id: &u64| self.workers.contains(&WorkerId(*id));
        self.replica_sync = (is_known && !self.workers.is_empty()).then(|| !steps.iter().all(is_worker));
    }

    /// Reads a frontend's instance list.
    pub(super) fn add_health(&mut self, frontend: &str, response: &Bytes) {
        let Ok(Some(health)) = health::decode(response) else { return };
        for instance in &health.workers {
            self.versions.insert(Version::Instances);
            self.workers.insert(instance.instance_id);
            self.add_plane(instance.transport.as_ref(), instance.codec);
        }
        for endpoint in health.query_endpoints {
            self.add_query(Some(endpoint), NamedBy::Frontend { name: frontend.into() });
        }
    }

    /// Tries to connect to the endpoints for block queries, without sending anything.
    pub(super) async fn try_queries(&mut self, gate: &Gate) {
        let mut endpoints = BTreeMap::new();
        for (endpoint, named_by) in self.queries.values() {
            if endpoints.len() < MAX_TRIED
                && let Ok(Destination::Tcp { address, .. }) = gate.query(endpoint)
            {
                endpoints.entry(address).or_insert(named_by);
            }
        }
        let tried = endpoints.into_iter().map(async |(address, named_by)| {
            let evidence = Evidence::Named(named_by);
            match gate.connect(Crossing::TreeQuery, address, evidence, TRY_WITHIN).await {
                Ok(_) => None,
                Err(NotConnected::Refused(refused)) => Some(refused.detail),
                Err(NotConnected::Failed(error)) => Some(format!("{address}: {error}")),
                Err(NotConnected::Silent) => Some(format!("connecting to {address} timed out")),
            }
        });
        self.unreachable = futures_util::future::join_all(tried).await.into_iter().flatten().next();
    }

    fn add_plane(&mut self, transport: Option<&RequestTransport>, codec: Codec) {
        match transport {
            Some(RequestTransport::Tcp { .. }) => self.planes.insert("TCP"),
            Some(RequestTransport::Nats { .. }) => self.planes.insert("NATS"),
            None => self.planes.insert("other than TCP and NATS"),
        };
        self.codecs.insert(codec_name(codec));
    }

    fn add_query(&mut self, endpoint: Option<QueryEndpoint>, named_by: NamedBy) {
        let Some(endpoint) = endpoint else { return };
        self.versions.insert(match &*endpoint.endpoint {
            "worker_kv_indexer_query" => Version::IndexerQuery,
            name if name.starts_with("worker_kv_indexer_query_dp") => Version::RankQuery,
            _ => Version::SourceQuery,
        });
        // Endpoints that name the rank are preferred.
        let known = self.queries.get(&endpoint.worker).is_some_and(|(known, _)| known.is_rank_known);
        if !known {
            self.queries.insert(endpoint.worker, (endpoint, named_by));
        }
    }

    /// Dynamo's version, as far as the registrations show it.
    pub(super) fn version(&self) -> Option<&'static str> {
        Some(match self.versions.last()? {
            Version::Instances => "0.8 or later",
            Version::Channels => "0.9 or later",
            Version::IndexerQuery => "0.9",
            Version::RankQuery => "1.0 to 1.3",
            Version::SourceQuery => "1.4 or later",
        })
    }

    /// Request plane.
    pub(super) fn request_plane(&self) -> Option<String> {
        let all = |names: &BTreeSet<&'static str>| names.iter().copied().collect::<Vec<_>>().join(" and ");
        (!self.planes.is_empty()).then(|| format!("{}, {}", all(&self.planes), all(&self.codecs)))
    }

    /// Event plane.
    pub(super) fn event_plane(&self) -> Option<EventPlane> {
        Some(match (self.zmq.values().sum::<usize>(), self.nats.values().sum::<usize>()) {
            (0, 0) if !self.brokers.is_empty() => EventPlane::ZmqBroker,
            (0, 0) if self.event_sources > 0 => EventPlane::UnknownZmqBroker,
            (0, 0) => return None,
            (0, _) => EventPlane::Nats,
            (_, 0) => EventPlane::Zmq,
            _ => EventPlane::Both,
        })
    }
}

pub(super) fn codec_name(codec: Codec) -> &'static str {
    match codec {
        Codec::Json => "JSON",
        Codec::MsgPack => "MessagePack",
    }
}

/// Event plane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EventPlane {
    /// A socket for each publisher.
    Zmq,
    /// A registered broker.
    ZmqBroker,
    /// Publishers of KV events are registered, but no address to receive from.
    UnknownZmqBroker,
    /// NATS.
    Nats,
    /// ZeroMQ for some processes, NATS for others.
    Both,
}

impl EventPlane {
    pub(super) fn to_text(self) -> &'static str {
        match self {
            Self::Zmq => "ZeroMQ, a socket for each publisher",
            Self::ZmqBroker => "ZeroMQ through a broker",
            Self::UnknownZmqBroker => "ZeroMQ through a broker that is not registered",
            Self::Nats => "NATS",
            Self::Both => "ZeroMQ for some processes, NATS for others",
        }
    }
}
