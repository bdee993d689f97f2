//! Engines in the pods of a cluster: listened to as pods come, and gone for good as they go. From outside the cluster connections go
//! through port-forward: the gate does that for ZeroMQ, a listener on this machine for SGLang's HTTP server.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use url::Url;

use radixscope_dynamo::subject::Subject;
use radixscope_model::record::LinkState;

use super::super::links::{Links, POD_ENGINES};
use super::super::peer::Timeouts;
use super::super::{LinkReport, MAX_PUBLISHERS, MAX_REPORTS, STATUS_EVERY, run_with_sockets};
use super::feed::Output;
use super::server_info::{Client, Layout};
use super::{Named, Server, feed, ranks_of};
use crate::config::{InvalidOption, ZmqEndpoint};
use crate::hub::SourceHandle;
use crate::shutdown::Shutdown;
use crate::source::SourceStatus;
use crate::source::gate::{Crossing, Evidence, Gate};
use crate::source::kubernetes::engine::{PodEngine, PodEvents};
use crate::source::kubernetes::follow::Pods;
use crate::source::kubernetes::pods::PodInfo;
use crate::source::kubernetes::tunnel::{Listener, Target, Tunnels};
use crate::source::link::StatusSender;

/// Publishers of an engine that were heard of, so that it can be said that they are gone.
pub(super) type Outputs = Arc<Mutex<Vec<Arc<Output>>>>;

/// The engines of all pods.
pub struct PodEngines {
    pods: watch::Receiver<Pods>,
    client: Client,
    gate: Arc<Gate>,
    /// From outside the cluster.
    tunnels: Option<Arc<Tunnels>>,
    with_namespace: bool,
    pub(super) timeouts: Timeouts,
}

/// An engine that is listened to.
struct Attached {
    uid: String,
    ip: IpAddr,
    engine: PodEngine,
    links: Vec<u64>,
    outputs: Outputs,
    tasks: JoinSet<()>,
    _listener: Option<Listener>,
}

impl Attached {
    /// Whether it is still the engine of this pod.
    fn is_of(&self, pod: &PodInfo) -> bool {
        (&self.uid, Some(self.ip), Some(&self.engine)) == (&pod.uid, pod.ip, pod.engine.as_ref())
    }

    /// Stops listening; its publishers will not come back.
    async fn end(mut self) {
        self.tasks.shutdown().await;
        let outputs = std::mem::take(&mut *self.outputs.lock().unwrap_or_else(PoisonError::into_inner));
        for output in outputs {
            // The hub ends only with the process.
            let _ = output.ended().await;
        }
    }
}

/// What listening needs.
struct Listening {
    to: SourceHandle,
    links: Links,
    report: mpsc::Sender<(u64, super::PublisherLink)>,
    next_id: u64,
}

impl Listening {
    fn link(&mut self, name: String) -> LinkReport {
        self.next_id += 1;
        self.links.add(self.next_id, name);
        LinkReport { id: self.next_id, to: self.report.clone() }
    }
}

impl PodEngines {
    /// Its name as a source.
    pub const NAME: &str = "engines/kubernetes";

    /// # Errors
    /// TLS cannot be set up.
    pub(crate) fn new(
        pods: watch::Receiver<Pods>,
        gate: &Arc<Gate>,
        tunnels: Option<Arc<Tunnels>>,
        with_namespace: bool,
    ) -> Result<Self, InvalidOption> {
        let (client, gate) = (Client::new()?, Arc::clone(gate));
        Ok(Self { pods, client, gate, tunnels, with_namespace, timeouts: Timeouts::DEFAULT })
    }

    /// Listens until the process ends.
    pub async fn run(self, to: SourceHandle, shutdown: Shutdown) {
        let name = Self::NAME.to_owned();
        run_with_sockets(("pod-engines", name), to, shutdown, |to, status| self.listen(to, status)).await;
    }

    async fn listen(mut self, to: SourceHandle, status: StatusSender) {
        let (report, mut reports) = mpsc::channel(MAX_REPORTS);
        let mut listening = Listening { to, links: Links::new(POD_ENGINES), report, next_id: 0 };
        let mut attached = BTreeMap::new();
        let mut look = tokio::time::interval(STATUS_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.pods.mark_changed();
        let mut remark = String::new();
        loop {
            tokio::select! {
                _ = look.tick() => {}
                Some((id, status)) = reports.recv() => listening.links.set_status(id, status),
                Ok(()) = self.pods.changed() => remark = self.follow(&mut attached, &mut listening).await,
            }
            let SourceStatus { state, mut detail } = listening.links.status();
            detail.push_str(&remark);
            if let Some(refused) = self.gate.refusals().sentence(Crossing::ZmqConnection.as_str()) {
                detail.push_str(&format!(" Connections: {refused}"));
            }
            status.set(SourceStatus { state, detail });
        }
    }

    /// Goes by the pods as they are now. Gives what else there is to say of them.
    async fn follow(
        &mut self,
        attached: &mut BTreeMap<(String, String), Attached>,
        listening: &mut Listening,
    ) -> String {
        let now = self.pods.borrow_and_update().clone();
        let is_gone =
            |key: &(String, String), of: &Attached| now.all.get(key).is_none_or(|pod| !of.is_of(pod));
        let gone: Vec<_> =
            attached.iter().filter(|(key, of)| is_gone(key, of)).map(|(key, _)| key.clone()).collect();
        for of in gone.iter().filter_map(|key| attached.remove(key)) {
            of.links.iter().for_each(|&link| listening.links.remove(link));
            of.end().await;
        }
        let mut silent: Vec<(String, &str)> = Vec::new();
        listening.links.excluded = 0;
        for (key, pod) in &now.all {
            let (Some(engine), Some(ip)) = (&pod.engine, pod.ip) else { continue };
            if let PodEvents::Nowhere(why) = engine.events {
                silent.push((pod.shown(self.with_namespace), why));
            } else if listening.links.len() >= MAX_PUBLISHERS {
                listening.links.excluded += usize::from(!attached.contains_key(key));
            } else if !attached.contains_key(key)
                && let Some(begun) = self.begin(pod, ip, engine, listening).await
            {
                attached.insert(key.clone(), begun);
            }
        }
        let mut remark = now.remark().map_or(String::new(), |remark| format!(" {remark}"));
        if let Some((first, why)) = silent.first() {
            let more =
                if silent.len() > 1 { format!(" and {} more", silent.len() - 1) } else { String::new() };
            remark.push_str(&format!(" No KV events of {first}{more}: {why}."));
        }
        remark
    }

    async fn begin(
        &self,
        pod: &PodInfo,
        ip: IpAddr,
        engine: &PodEngine,
        listening: &mut Listening,
    ) -> Option<Attached> {
        let who = pod.shown(self.with_namespace);
        let named = Named {
            engine: engine.engine,
            subject: Arc::new(Subject::of_engines(&engine.pool)),
            pod_uid: pod.uid.as_str().into(),
        };
        let outputs = Outputs::default();
        let (mut links, mut tasks, mut listener) = (Vec::new(), JoinSet::new(), None);
        match engine.events {
            PodEvents::At { port, replay, ranks } => {
                let sockets = |port| ranks_of(&ZmqEndpoint { host: ip.to_string(), port }, ranks);
                let layout = Layout {
                    publishers: sockets(port),
                    replays: replay.map(sockets).unwrap_or_default(),
                    is_elsewhere: true,
                };
                for rank in 0..layout.publishers.len() {
                    let report = listening.link(format!("{} of {who}", layout.publishers[rank]));
                    links.push(report.id);
                    let way = (&self.gate, self.timeouts);
                    let (feed, output) =
                        feed((&named, &who), (&layout, Evidence::Discovery), rank, way, &listening.to);
                    output.link(LinkState::Connecting, "");
                    outputs.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&output));
                    tasks.spawn(feed.listen(output, report));
                }
            }
            PodEvents::Asked { port } => {
                let at = match &self.tunnels {
                    None => SocketAddr::new(ip, port),
                    Some(tunnels) => {
                        let target =
                            Target::Pod { namespace: pod.namespace.clone(), name: pod.name.clone(), port };
                        let opened = tunnels.listen(target).await;
                        let opened = opened.inspect_err(
                            |error| tracing::warn!(pod = who, %error, "no port for port-forward"),
                        );
                        listener.insert(opened.ok()?).at
                    }
                };
                let report = listening.link(format!("SGLang of {who}"));
                links.push(report.id);
                let server = Server {
                    url: Url::parse(&format!("http://{at}")).ok()?,
                    host: Some(ip.to_string()),
                    evidence: Some(Evidence::Discovery),
                    shown: who,
                    client: self.client.clone(),
                    named,
                    gate: Arc::clone(&self.gate),
                    timeouts: self.timeouts,
                    outputs: Arc::clone(&outputs),
                };
                tasks.spawn(server.listen(listening.to.clone(), report));
            }
            PodEvents::Nowhere(_) => return None,
        }
        let (uid, engine) = (pod.uid.clone(), engine.clone());
        Some(Attached { uid, ip, engine, links, outputs, tasks, _listener: listener })
    }
}

#[cfg(test)]
#[path = "pods_tests.rs"]
mod tests;
