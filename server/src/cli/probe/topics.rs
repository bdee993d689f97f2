//! The data that a deployment provides, and the missing setting for what it does not.

use serde::Serialize;

use radixscope_model::record::{EventTransport, LinkState, Replay, SourceKind};
use radixscope_state::cluster::Cluster;

use super::registered::{EventPlane, Registered};
use crate::config::Sources;

/// A kind of data.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Topic {
    /// Its name.
    pub(super) name: &'static str,
    /// `None`: unknown.
    pub(super) is_received: Option<bool>,
    /// How it is received, or why it is not.
    pub(super) how: String,
    /// The missing setting or option, if it is not received.
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

/// All kinds of data.
pub(super) fn topics(from: &Sources, registered: &Registered, cluster: &Cluster) -> Vec<Topic> {
    let seen = Observed { from, registered, cluster };
    vec![seen.kv_events(), seen.tree_dumps(), seen.loads(), seen.decisions(), seen.metrics()]
}

struct Observed<'s> {
    from: &'s Sources,
    registered: &'s Registered,
    cluster: &'s Cluster,
}

const OVER_NATS: &str = "--nats nats://HOST:4222, the NATS_SERVER of Dynamo's processes";
const ENGINES: &str =
    "--kv-events-config of the engine with publisher zmq and an endpoint that is reachable from this machine";
const REPLAY: &str =
    "replay_endpoint in the engine's --kv-events-config, and --engine-events …,replay=tcp://HOST:PORT";
const PLANE: &str = "Dynamo 1.3 and later publish over ZeroMQ unless DYN_EVENT_PLANE=nats is set on every process: give \
                     --discovery etcd://HOST:2379, kubernetes or file:FOLDER";

impl Observed<'_> {
    fn is_live(&self, kind: SourceKind) -> bool {
        let is_live = |state| matches!(state, LinkState::Live | LinkState::Partial | LinkState::CatchingUp);
        self.cluster.sources().iter().any(|source| source.kind == kind && is_live(source.state))
    }

    /// Number of workers whose KV events arrived over one of these transports.
    fn workers_with_events(&self, lines: &[EventTransport]) -> usize {
        let by = |line: EventTransport| lines.contains(&line);
        self.cluster.workers().iter().filter(|worker| worker.lines.iter().any(|of| by(of.line))).count()
    }

    /// Whether engines without Dynamo are all that is given.
    fn has_engines_only(&self) -> bool {
        !self.from.engines.engine_events.is_empty()
            && self.registered.entries == 0
            && !self.is_live(SourceKind::Nats)
    }

    fn of_engines(&self) -> Topic {
        let engines = self.cluster.engines();
        let connected = engines.iter().filter(|feed| feed.link == LinkState::Live).count();
        let publishing = engines.iter().filter(|feed| feed.received > 0).count();
        let all = engines.len().max(self.from.engines.engine_events.len());
        let how = format!("{publishing} of {} in 3 s, without Dynamo", publishers(all));
        let topic = Topic::new("KV events", (connected > 0).then_some(true).or(Some(false)), how);
        if connected > 0 { topic } else { topic.with(ENGINES) }
    }

    fn kv_events(&self) -> Topic {
        let name = "KV events";
        if self.has_engines_only() {
            return self.of_engines();
        }
        let (zmq, nats) = (self.publishers(&self.registered.zmq), self.publishers(&self.registered.nats));
        let workers_with_events =
            self.workers_with_events(&[EventTransport::Core, EventTransport::JetStream, EventTransport::Zmq]);
        let while_listening = match workers_with_events {
            0 => "no events in 3 s; is there traffic?".to_owned(),
            count => format!("from {} in 3 s", workers(count)),
        };
        if zmq > 0 && !self.is_live(SourceKind::Zmq) {
            let how = format!("ZeroMQ, {}, not reachable from this machine", publishers(zmq));
            return Topic::new(name, Some(false), how).with(
                "run this where the workers' ports are reachable, such as inside the cluster; workers register the address in \
                 DYN_EVENT_PLANE_HOST",
            );
        }
        if zmq > 0 {
            return Topic::new(name, Some(true), format!("ZeroMQ, {} ({while_listening})", publishers(zmq)));
        }
        if nats > 0 && !self.is_live(SourceKind::Nats) {
            return Topic::new(name, Some(false), format!("{} over NATS", publishers(nats))).with(OVER_NATS);
        }
        if nats > 0 || workers_with_events > 0 {
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
                "{} registered without an address: they publish through a ZeroMQ broker",
                publishers(self.registered.event_sources)
            );
            return Topic::new(name, Some(false), how)
                .with("--zmq-broker tcp://HOST:PORT, the xpub part of DYN_ZMQ_BROKER_URL");
        }
        if !self.registered.brokers.is_empty() {
            let xpub = self.registered.brokers.iter().cloned().collect::<Vec<_>>().join(",");
            return match self.is_live(SourceKind::Zmq) {
                true => Topic::new(name, Some(true), format!("ZeroMQ broker {xpub} ({while_listening})")),
                false => Topic::new(
                    name,
                    Some(false),
                    format!("ZeroMQ broker {xpub}, not reachable from this machine"),
                )
                .with("--zmq-broker tcp://HOST:PORT, an address that is reachable from this machine"),
            };
        }
        let is_discovered = self.registered.entries > 0;
        match self.is_live(SourceKind::Nats) {
            // JetStream publishers are not registered: they are known from their first event.
            true if is_discovered => Topic::new(name, None, "NATS: no events in 3 s; is there traffic?"),
            true => Topic::new(name, None, "no events on NATS in 3 s; is there traffic?").with(PLANE),
            false if is_discovered => Topic::new(name, Some(false), "no registered publisher").with(
                "prefix caching and KV events on the workers (vLLM: --kv-events-config, SGLang: --kv-events-config, mocker: \
                 on by default); Dynamo 0.8 and 0.9 publish over NATS: --nats",
            ),
            false => Topic::new(name, Some(false), "no event plane given").with(PLANE),
        }
    }

    fn publishers(&self, of: &std::collections::BTreeMap<String, usize>) -> usize {
        of.get("kv-events").copied().unwrap_or(0)
    }

    fn tree_dumps(&self) -> Topic {
        let name = "Blocks cached before start";
        if self.has_engines_only() {
            let sent =
                self.cluster.engines().iter().filter(|feed| matches!(feed.replay, Replay::From(_))).count();
            let topic = Topic::new(name, Some(sent > 0), format!("latest batches of {}", publishers(sent)));
            return if sent > 0 { topic } else { topic.with(REPLAY) };
        }
        let answering = self.registered.queries.len();
        if answering > 0
            && let Some(why) = &self.registered.unreachable
        {
            let how = format!("{} block queries, but {why}", responding(answering));
            return Topic::new(name, Some(false), how)
                .with("run this where the workers' request plane is reachable, such as inside the cluster");
        }
        let has_plane =
            self.registered.entries > 0 || self.is_live(SourceKind::Nats) || self.is_live(SourceKind::Zmq);
        if answering > 0 && !has_plane {
            let how =
                format!("{} block queries, which are only useful with KV events", responding(answering));
            return Topic::new(name, Some(false), how);
        }
        if answering > 0 {
            let how = format!("{} block queries", responding(answering));
            return Topic::new(name, Some(true), how);
        }
        if self.workers_with_events(&[EventTransport::JetStream]) > 0 {
            return Topic::new(name, Some(true), "JetStream retains the last hour");
        }
        if self.registered.workers.is_empty() {
            return Topic::new(name, None, "unknown whether workers answer block queries").with(
                "--discovery, or --prometheus http://FRONTEND:8000, whose /health lists the query endpoints",
            );
        }
        Topic::new(name, Some(false), "no worker answers block queries")
            .with("--enable-local-indexer on workers of Dynamo 0.9; default in later versions")
    }

    fn loads(&self) -> Topic {
        let name = "Worker load";
        if self.has_engines_only() {
            return Topic::new(name, Some(false), "engines publish no load");
        }
        let topic = "kv_metrics";
        let (zmq, nats) = (self.registered.zmq.get(topic), self.registered.nats.get(topic));
        let workers_with_events = self
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
            _ if workers_with_events => Topic::new(name, Some(true), "received"),
            _ => Topic::new(name, None, "none in 3 s"),
        }
    }

    fn decisions(&self) -> Topic {
        let name = "Routing decisions";
        let setting = "--router-replica-sync on the frontends, or --logs with a frontend's log, or DYN_REQUEST_TRACE=1 with \
                       --request-trace for its files or DYN_REQUEST_TRACE_SINKS=nats (from 1.4)";
        if self.has_engines_only() && self.from.logs.logs.is_empty() {
            return Topic::new(name, Some(false), "no router: engines report no decisions");
        }
        if self.registered.nats.contains_key("kv-hit-rate") && self.is_live(SourceKind::Nats) {
            return Topic::new(name, Some(true), "kv-hit-rate over NATS");
        }
        if self.registered.replica_sync == Some(true) {
            return Topic::new(name, Some(true), "published by the frontends (--router-replica-sync)");
        }
        if self.cluster.decisions().totals().count > 0 {
            return Topic::new(name, Some(true), "received");
        }
        if !self.from.logs.logs.is_empty() {
            return Topic::new(name, None, "from the frontend's log");
        }
        let is_known = self.registered.replica_sync.is_some();
        let how = if is_known { "not published by the frontends" } else { "none in 3 s" };
        Topic::new(name, is_known.then_some(false), how).with(setting)
    }

    fn metrics(&self) -> Topic {
        let name = "Latency, queues, memory";
        if self.is_live(SourceKind::Prometheus) {
            return Topic::new(name, Some(true), "metrics of the given processes");
        }
        Topic::new(name, Some(false), "no metrics given")
            .with("--prometheus http://FRONTEND:8000, and for each worker http://WORKER:DYN_SYSTEM_PORT")
    }
}

fn publishers(count: usize) -> String {
    if count == 1 { "1 publisher".to_owned() } else { format!("{count} publishers") }
}

fn responding(count: usize) -> String {
    if count == 1 { "1 worker answers".to_owned() } else { format!("{count} workers answer") }
}

fn workers(count: usize) -> String {
    if count == 1 { "1 worker".to_owned() } else { format!("{count} workers") }
}
