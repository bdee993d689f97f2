//! What can be received of a deployment, and what to set where it cannot.

use serde::Serialize;

use radixscope_model::record::{EventTransport, LinkState, SourceKind};
use radixscope_state::cluster::Cluster;

use super::registered::{EventPlane, Registered};
use crate::config::Sources;

/// Something that can be received, or not.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Topic {
    /// What it is, for people.
    pub(super) name: &'static str,
    /// `None`: it cannot be told yet.
    pub(super) is_received: Option<bool>,
    /// How, or why not.
    pub(super) how: String,
    /// What to set or give to have it, if it is not there.
    pub(super) setting: Option<String>,
}

impl Topic {
    fn new(name: &'static str, is_received: Option<bool>, how: impl Into<String>) -> Self {
        Self { name, is_received, how: how.into(), setting: None }
    }

    fn with(self, setting: impl Into<String>) -> Self {
        Self { setting: Some(setting.into()), ..self }
    }
}

/// Everything that is looked for.
pub(super) fn topics(from: &Sources, registered: &Registered, cluster: &Cluster) -> Vec<Topic> {
    let seen = Seen { from, registered, cluster };
    vec![seen.kv_events(), seen.tree_dumps(), seen.loads(), seen.decisions(), seen.metrics()]
}

struct Seen<'s> {
    from: &'s Sources,
    registered: &'s Registered,
    cluster: &'s Cluster,
}

const OVER_NATS: &str = "--nats nats://HOST:4222, the NATS_SERVER of Dynamo's processes";
const PLANE: &str = "Dynamo 1.3 and later publish over ZeroMQ unless DYN_EVENT_PLANE=nats is set on every process: give \
                     --discovery etcd://HOST:2379, kubernetes or file:FOLDER";

impl Seen<'_> {
    fn is_live(&self, kind: SourceKind) -> bool {
        let is_live = |state| matches!(state, LinkState::Live | LinkState::Partial | LinkState::CatchingUp);
        self.cluster.sources().iter().any(|source| source.kind == kind && is_live(source.state))
    }

    /// Workers of which KV events came one of these ways while we listened.
    fn heard(&self, lines: &[EventTransport]) -> usize {
        let by = |line: EventTransport| lines.contains(&line);
        self.cluster.workers().iter().filter(|worker| worker.lines.iter().any(|of| by(of.line))).count()
    }

    fn kv_events(&self) -> Topic {
        let name = "KV events";
        let (zmq, nats) = (self.publishers(&self.registered.zmq), self.publishers(&self.registered.nats));
        let heard = self.heard(&[EventTransport::Core, EventTransport::JetStream, EventTransport::Zmq]);
        let while_listening = match heard {
            0 => "none in 3 s; is there traffic?".to_owned(),
            count => format!("of {} in 3 s", workers(count)),
        };
        if zmq > 0 && !self.is_live(SourceKind::Zmq) {
            let how = format!("ZeroMQ, {}, which cannot be reached from here", publishers(zmq));
            return Topic::new(name, Some(false), how).with(
                "run this where the workers' ports can be reached, as inside the cluster; DYN_EVENT_PLANE_HOST is the address \
                 that they register",
            );
        }
        if zmq > 0 {
            return Topic::new(name, Some(true), format!("ZeroMQ, {} ({while_listening})", publishers(zmq)));
        }
        if nats > 0 && !self.is_live(SourceKind::Nats) {
            return Topic::new(name, Some(false), format!("{} over NATS", publishers(nats))).with(OVER_NATS);
        }
        if nats > 0 || heard > 0 {
            return Topic::new(name, Some(true), format!("NATS ({while_listening})"));
        }
        if self.registered.event_plane() == Some(EventPlane::UnknownZmqBroker) {
            if !self.from.zmq.zmq_broker.is_empty() {
                return Topic::new(
                    name,
                    Some(true),
                    format!("ZeroMQ through the broker ({while_listening})"),
                );
            }
            let how = format!(
                "{} registered, and no address where they are received: they publish through a ZeroMQ broker",
                publishers(self.registered.event_sources)
            );
            return Topic::new(name, Some(false), how)
                .with("--zmq-broker tcp://HOST:PORT, the xpub part of DYN_ZMQ_BROKER_URL");
        }
        if !self.registered.brokers.is_empty() {
            let xpub = self.registered.brokers.iter().cloned().collect::<Vec<_>>().join(",");
            return match self.is_live(SourceKind::Zmq) {
                true => Topic::new(name, Some(true), format!("ZeroMQ broker {xpub} ({while_listening})")),
                false => {
                    Topic::new(name, Some(false), format!("ZeroMQ broker {xpub} cannot be reached from here"))
                        .with("--zmq-broker tcp://HOST:PORT, where it can be reached")
                }
            };
        }
        let is_discovered = self.registered.entries > 0;
        match self.is_live(SourceKind::Nats) {
            // A stream of JetStream is registered nowhere: it shows with the first event.
            true if is_discovered => Topic::new(name, None, "NATS, if workers publish (none in 3 s; is there traffic?)"),
            true => Topic::new(name, None, "none on NATS in 3 s; is there traffic?").with(PLANE),
            false if is_discovered => Topic::new(name, Some(false), "no publisher is registered").with(
                "prefix caching and KV events on the workers (vLLM: --kv-events-config, SGLang: --kv-events-config, mocker: \
                 on by default); Dynamo 0.8 and 0.9 publish over NATS: --nats",
            ),
            false => Topic::new(name, Some(false), "no event plane is given").with(PLANE),
        }
    }

    fn publishers(&self, of: &std::collections::BTreeMap<String, usize>) -> usize {
        of.get("kv-events").copied().unwrap_or(0)
    }

    fn tree_dumps(&self) -> Topic {
        let name = "Blocks stored before we listened";
        let answering = self.registered.queries.len();
        if answering > 0
            && let Some(why) = &self.registered.unreachable
        {
            let how = format!("{} to queries for all blocks, but {why}", answer(answering));
            return Topic::new(name, Some(false), how)
                .with("run this where the workers' request plane can be reached, as inside the cluster");
        }
        let has_plane =
            self.registered.entries > 0 || self.is_live(SourceKind::Nats) || self.is_live(SourceKind::Zmq);
        if answering > 0 && !has_plane {
            let how = format!("{} to queries for all blocks, of use only with KV events", answer(answering));
            return Topic::new(name, Some(false), how);
        }
        if answering > 0 {
            let how = format!("{} to queries for all blocks", answer(answering));
            return Topic::new(name, Some(true), how);
        }
        if self.heard(&[EventTransport::JetStream]) > 0 {
            return Topic::new(name, Some(true), "JetStream keeps the last hour");
        }
        if self.registered.workers.is_empty() {
            return Topic::new(name, None, "whether workers answer queries for all blocks is unknown")
                .with("--discovery, or --prometheus http://FRONTEND:8000, whose /health lists who answers");
        }
        Topic::new(name, Some(false), "no worker answers queries for all blocks")
            .with("--enable-local-indexer on workers of Dynamo 0.9; later versions do so by default")
    }

    fn loads(&self) -> Topic {
        let name = "Load of workers";
        let topic = "kv_metrics";
        let (zmq, nats) = (self.registered.zmq.get(topic), self.registered.nats.get(topic));
        let heard = self
            .cluster
            .workers()
            .iter()
            .any(|worker| !worker.router_loads.is_empty() || worker.engine_used_ms.is_some());
        match (zmq, nats) {
            (Some(&count), _) => Topic::new(name, Some(true), format!("ZeroMQ, {}", publishers(count))),
            (None, Some(&count)) if self.is_live(SourceKind::Nats) => {
                Topic::new(name, Some(true), format!("NATS, {}", publishers(count)))
            }
            (None, Some(_)) => Topic::new(name, Some(false), "over NATS").with(OVER_NATS),
            _ if heard => Topic::new(name, Some(true), "received"),
            _ => Topic::new(name, None, "none in 3 s"),
        }
    }

    fn decisions(&self) -> Topic {
        let name = "Routing decisions";
        let setting = "--router-replica-sync on the frontends, or --logs with a frontend's log, or DYN_REQUEST_TRACE=1 with \
                       DYN_REQUEST_TRACE_SINKS=nats (from 1.4)";
        if self.registered.nats.contains_key("kv-hit-rate") && self.is_live(SourceKind::Nats) {
            return Topic::new(name, Some(true), "kv-hit-rate over NATS");
        }
        if self.registered.replica_sync == Some(true) {
            return Topic::new(name, Some(true), "frontends publish them (--router-replica-sync)");
        }
        if self.cluster.decisions().totals().count > 0 {
            return Topic::new(name, Some(true), "received");
        }
        if !self.from.logs.logs.is_empty() {
            return Topic::new(name, None, "by the frontend's log");
        }
        let is_told = self.registered.replica_sync.is_some();
        let how = if is_told { "frontends do not publish them" } else { "none in 3 s" };
        Topic::new(name, is_told.then_some(false), how).with(setting)
    }

    fn metrics(&self) -> Topic {
        let name = "Latency, queues, memory";
        if self.is_live(SourceKind::Prometheus) {
            return Topic::new(name, Some(true), "metrics of the processes that were given");
        }
        Topic::new(name, Some(false), "no metrics are read")
            .with("--prometheus http://FRONTEND:8000, and of each worker http://WORKER:DYN_SYSTEM_PORT")
    }
}

fn publishers(count: usize) -> String {
    if count == 1 { "1 publisher".to_owned() } else { format!("{count} publishers") }
}

fn answer(count: usize) -> String {
    if count == 1 { "1 worker answers".to_owned() } else { format!("{count} workers answer") }
}

fn workers(count: usize) -> String {
    if count == 1 { "1 worker".to_owned() } else { format!("{count} workers") }
}
