//! What entries of discovery and lists of frontends say of a deployment as a whole: its version, how requests and events
//! travel, who answers queries for blocks.

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

/// Most workers to which a connection is tried: if these can be reached, so can others like them.
const MAX_TRIED: usize = 32;
/// How long such a connection may take.
const TRY_WITHIN: Duration = Duration::from_secs(1);

/// What is registered, counted.
#[derive(Default, Debug)]
pub(super) struct Registered {
    /// Entries of discovery.
    pub(super) entries: usize,
    /// Processes that take requests as workers.
    pub(super) workers: BTreeSet<WorkerId>,
    /// Publishers of each topic over ZeroMQ, and over NATS.
    pub(super) zmq: BTreeMap<String, usize>,
    pub(super) nats: BTreeMap<String, usize>,
    /// Where a registered broker is subscribed to.
    pub(super) brokers: BTreeSet<String>,
    /// Publishers of KV events, however their messages come.
    pub(super) event_sources: usize,
    /// Whether a process that is no worker publishes steps of requests: a frontend with `--router-replica-sync`. `None`: it
    /// cannot be told.
    pub(super) replica_sync: Option<bool>,
    /// Who answers queries for blocks, by worker.
    pub(super) queries: BTreeMap<Worker, (QueryEndpoint, NamedBy)>,
    /// Why the first of those that were tried cannot be reached from here.
    pub(super) unreachable: Option<String>,
    planes: BTreeSet<&'static str>,
    codecs: BTreeSet<&'static str>,
    versions: BTreeSet<Version>,
}

/// What tells a version, the oldest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Version {
    Instances,
    Channels,
    IndexerQuery,
    RankQuery,
    SourceQuery,
}

impl Registered {
    /// Reads entries of discovery. What is not understood is passed over: the sources count it.
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
        // Of a publisher under an id of its own only the lease tells the process.
        let is_told = self.event_sources == 0 || entries.iter().any(|entry| entry.lease.is_some());
        let is_worker = |id: &u64| self.workers.contains(&WorkerId(*id));
        self.replica_sync = (is_told && !self.workers.is_empty()).then(|| !steps.iter().all(is_worker));
    }

    /// Reads a frontend's list of instances.
    pub(super) fn add_health(&mut self, frontend: &str, answer: &Bytes) {
        let Ok(Some(health)) = health::decode(answer) else { return };
        for instance in &health.workers {
            self.versions.insert(Version::Instances);
            self.workers.insert(instance.instance_id);
            self.add_plane(instance.transport.as_ref(), instance.codec);
        }
        for endpoint in health.query_endpoints {
            self.add_query(Some(endpoint), NamedBy::Frontend { name: frontend.into() });
        }
    }

    /// Tries whether those who answer queries can be reached: connects as a query would, and sends nothing.
    pub(super) async fn try_queries(&mut self, gate: &Gate) {
        let mut places = BTreeMap::new();
        for (endpoint, named_by) in self.queries.values() {
            if places.len() < MAX_TRIED
                && let Ok(Destination::Tcp { address, .. }) = gate.query(endpoint)
            {
                places.entry(address).or_insert(named_by);
            }
        }
        let tried = places.into_iter().map(async |(address, named_by)| {
            let evidence = Evidence::Named(named_by);
            match gate.connect(Crossing::TreeQuery, address, evidence, TRY_WITHIN).await {
                Ok(_) => None,
                Err(NotConnected::Refused(refused)) => Some(refused.words),
                Err(NotConnected::Failed(error)) => Some(format!("{address}: {error}")),
                Err(NotConnected::Silent) => Some(format!("{address} does not answer")),
            }
        });
        self.unreachable = futures_util::future::join_all(tried).await.into_iter().flatten().next();
    }

    fn add_plane(&mut self, transport: Option<&RequestTransport>, codec: Codec) {
        match transport {
            Some(RequestTransport::Tcp { .. }) => self.planes.insert("TCP"),
            Some(RequestTransport::Nats { .. }) => self.planes.insert("NATS"),
            None => self.planes.insert("another than TCP and NATS"),
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
        // What names the rank is better.
        let known = self.queries.get(&endpoint.worker).is_some_and(|(known, _)| known.is_rank_known);
        if !known {
            self.queries.insert(endpoint.worker, (endpoint, named_by));
        }
    }

    /// Dynamo's version, as far as what is registered tells it.
    pub(super) fn version(&self) -> Option<&'static str> {
        Some(match self.versions.last()? {
            Version::Instances => "0.8 or later",
            Version::Channels => "0.9 or later",
            Version::IndexerQuery => "0.9",
            Version::RankQuery => "1.0 to 1.3",
            Version::SourceQuery => "1.4 or later",
        })
    }

    /// How requests travel.
    pub(super) fn request_plane(&self) -> Option<String> {
        let all = |names: &BTreeSet<&'static str>| names.iter().copied().collect::<Vec<_>>().join(" and ");
        (!self.planes.is_empty()).then(|| format!("{}, {}", all(&self.planes), all(&self.codecs)))
    }

    /// How events travel.
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

/// How events travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EventPlane {
    /// Every publisher has a socket of its own.
    Zmq,
    /// Through a broker that is registered.
    ZmqBroker,
    /// Publishers of KV events are registered and where to hear them is not.
    UnknownZmqBroker,
    /// Over NATS.
    Nats,
    /// Some publish over ZeroMQ and some over NATS.
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
