//! Engines in the pods of a cluster: listened to as pods come, and gone for good as they go. From outside the cluster connections go
//! through port-forward: the gate does that for ZeroMQ, a listener on this machine for SGLang's HTTP server.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;
use url::Url;

use radixscope_dynamo::subject::Subject;

use super::super::links::{Links, POD_ENGINES};
use super::super::peer::Timeouts;
use super::super::{MAX_PUBLISHERS, MAX_REPORTS, STATUS_EVERY, run_with_sockets};
use super::attached::{Attached, Listening};
use super::server_info::{Client, Layout};
use super::{Named, Server};
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

/// The engine of a pod that is listened to.
struct OfPod {
    uid: String,
    ip: IpAddr,
    engine: PodEngine,
    attached: Attached,
    _listener: Option<Listener>,
}

impl OfPod {
    /// Whether it is still the engine of this pod.
    fn is_of(&self, pod: &PodInfo) -> bool {
        (&self.uid, Some(self.ip), Some(&self.engine)) == (&pod.uid, pod.ip, pod.engine.as_ref())
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
        let links = Links::new(POD_ENGINES);
        let mut listening = Listening::new(to, links, (&self.gate, self.timeouts), report);
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
        attached: &mut BTreeMap<(String, String), OfPod>,
        listening: &mut Listening,
    ) -> String {
        let now = self.pods.borrow_and_update().clone();
        let is_gone = |key: &(String, String), of: &OfPod| now.all.get(key).is_none_or(|pod| !of.is_of(pod));
        let gone: Vec<_> =
            attached.iter().filter(|(key, of)| is_gone(key, of)).map(|(key, _)| key.clone()).collect();
        for of in gone.iter().filter_map(|key| attached.remove(key)) {
            listening.end(of.attached).await;
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
    ) -> Option<OfPod> {
        let who = pod.shown(self.with_namespace);
        let named = Named {
            engine: engine.engine,
            subject: Arc::new(Subject::of_engines(&engine.pool)),
            pod_uid: pod.uid.as_str().into(),
        };
        let (attached, listener) = match engine.events {
            PodEvents::At { port, replay, ranks } => {
                let at = |port| ZmqEndpoint { host: ip.to_string(), port };
                let layout = Layout::of_ranks(&at(port), replay.map(at).as_ref(), ranks);
                (listening.begin((&named, &who), &layout, Evidence::Discovery), None)
            }
            PodEvents::Asked { port } => {
                let mut attached = Attached::default();
                let (at, listener) = match &self.tunnels {
                    None => (SocketAddr::new(ip, port), None),
                    Some(tunnels) => {
                        let target =
                            Target::Pod { namespace: pod.namespace.clone(), name: pod.name.clone(), port };
                        let opened = tunnels.listen(target).await;
                        let opened = opened.inspect_err(
                            |error| tracing::warn!(pod = who, %error, "no port for port-forward"),
                        );
                        let listener = opened.ok()?;
                        (listener.at, Some(listener))
                    }
                };
                let report = listening.link(format!("SGLang of {who}"));
                attached.links.push(report.id);
                let server = Server {
                    url: Url::parse(&format!("http://{at}")).ok()?,
                    host: Some(ip.to_string()),
                    evidence: Some(Evidence::Discovery),
                    shown: who,
                    client: self.client.clone(),
                    named,
                    gate: Arc::clone(&self.gate),
                    timeouts: self.timeouts,
                    outputs: Arc::clone(&attached.outputs),
                };
                attached.tasks.spawn(server.listen(listening.to.clone(), report));
                (attached, listener)
            }
            PodEvents::Nowhere(_) => return None,
        };
        let (uid, engine) = (pod.uid.clone(), engine.clone());
        Some(OfPod { uid, ip, engine, attached, _listener: listener })
    }
}

#[cfg(test)]
#[path = "pods_tests.rs"]
mod tests;
