//! What `--kubernetes` makes of the options: a look at the cluster, the addresses that it gives, and the sources that follow its
//! pods.

use std::sync::Arc;

use tokio::sync::watch;
use url::Url;

use radixscope_model::record::SourceKind;

use super::Failure;
use super::server::Feed;
use crate::config::{DiscoveryAt, EtcdServers, InvalidOption, Sources, TreeDumps};
use crate::source::discovery::DiscoverySource;
use crate::source::gate::Gate;
use crate::source::kubernetes::follow::{self, Pods};
pub(super) use crate::source::kubernetes::survey::Table;
use crate::source::kubernetes::survey::{Cluster, Place, Survey};
use crate::source::kubernetes::tunnel::{Listener, Target, Tunnels};
use crate::source::logs::PodLogs;
use crate::source::prometheus::PodMetrics;
use crate::source::zmq::PodEngines;

/// A cluster, and what was found in it.
pub(super) struct InKubernetes {
    cluster: Cluster,
    survey: Arc<Survey>,
    pods: watch::Receiver<Pods>,
    tunnels: Option<Arc<Tunnels>>,
    /// To NATS and etcd; they stay as long as the process.
    listeners: Vec<Listener>,
    /// Whether discovery is that of the cluster.
    has_discovery: bool,
}

/// What cannot be done from outside the cluster.
const NO_TREE_DUMPS: &str = "workers are not asked for their blocks: they answer by a connection to whoever asks, and this machine is not in the \
                             cluster; blocks stored before now stay unknown. Inside it they are: radixscope deploy --kubernetes | \
                             kubectl apply -f -";

/// Looks at the cluster and completes the options; `None`: without `--kubernetes`.
pub(super) async fn find(from: &mut Sources) -> Result<Option<InKubernetes>, Failure> {
    if !from.kubernetes.kubernetes {
        return Ok(None);
    }
    // There is no other filter: Dynamo's namespaces are named after those of Kubernetes.
    let namespace = from.nats.namespace.take();
    let usage = |error: InvalidOption| Failure::Usage(error.into());
    let cluster = Cluster::connect(&from.kubernetes, namespace).await.map_err(usage)?;
    let survey = Survey::of(&cluster).await;
    let pods = follow::follow(cluster.clone(), survey.selectors.clone(), &survey.pods);
    let tunnels = (!survey.table.is_inside).then(|| Tunnels::new(cluster.clone(), pods.clone()));
    let mut found = InKubernetes {
        cluster,
        survey: Arc::new(survey),
        pods,
        tunnels,
        listeners: Vec::new(),
        has_discovery: false,
    };
    found.complete(from).await?;
    Ok(Some(found))
}

impl InKubernetes {
    async fn complete(&mut self, from: &mut Sources) -> Result<(), Failure> {
        let survey = Arc::clone(&self.survey);
        if from.nats.nats.is_empty()
            && let Some(nats) = &survey.nats
            && let Some(url) = self.reachable(nats).await?
        {
            from.nats.nats = vec![url];
        }
        if from.discovery.discovery.is_none() {
            match &survey.etcd {
                Some(etcd) if !survey.is_registered_here => {
                    if let Some(url) = self.reachable(etcd).await? {
                        let servers = EtcdServers { servers: vec![url], login: None };
                        from.discovery.discovery = Some(DiscoveryAt::Etcd(servers));
                    }
                }
                _ => self.has_discovery = true,
            }
        }
        if self.tunnels.is_some() && from.trees.tree_dumps != TreeDumps::Off {
            from.trees.tree_dumps = TreeDumps::Off;
            tracing::warn!("{NO_TREE_DUMPS}");
        }
        Ok(())
    }

    /// The address of a service as this process reaches it. `None`: its pods are not known, and it is not in their cluster.
    async fn reachable(&mut self, place: &Place) -> Result<Option<Url>, Failure> {
        let Some(tunnels) = &self.tunnels else { return Ok(Some(place.url.clone())) };
        let Some(behind) = &place.behind else {
            tracing::warn!(
                url = %place.url.host_str().unwrap_or_default(),
                "its service is not in the namespaces that are read, so there is no port-forward to it"
            );
            return Ok(None);
        };
        let listener = tunnels.listen(Target::Service(behind.clone())).await;
        let listener = listener.map_err(|error| Failure::Failed(error.into()))?;
        let mut url = place.url.clone();
        let at = listener.at;
        self.listeners.push(listener);
        let is_set = url.set_ip_host(at.ip()).is_ok() && url.set_port(Some(at.port())).is_ok();
        Ok(is_set.then_some(url))
    }

    /// What was found.
    pub(super) fn table(&self) -> Table {
        self.survey.table.clone()
    }

    /// Discovery, if it is that of the cluster.
    pub(super) fn discovery(&self) -> Option<DiscoverySource> {
        self.has_discovery.then(|| DiscoverySource::of_cluster(&self.cluster))
    }

    /// The gate of a process that reads this cluster.
    pub(super) fn gate(&self, gate: Gate) -> Gate {
        match &self.tunnels {
            Some(tunnels) => gate.through(Arc::clone(tunnels) as _),
            None => gate,
        }
    }

    /// The sources that follow its pods.
    pub(super) fn feeds(self, from: &Sources, gate: &Arc<Gate>) -> Result<Vec<Feed>, Failure> {
        let Self { cluster, pods, tunnels, listeners, .. } = self;
        let with_namespace = cluster.namespace.is_none();
        let usage = |error: InvalidOption| Failure::Usage(error.into());
        let engines = PodEngines::new(pods.clone(), gate, tunnels.clone(), with_namespace).map_err(usage)?;
        let metrics = PodMetrics::new(&from.prometheus, pods.clone(), tunnels, with_namespace);
        let metrics = metrics.map_err(usage)?;
        let logs = PodLogs::new(cluster, pods, with_namespace);
        Ok(vec![
            Feed::new(PodMetrics::NAME.to_owned(), SourceKind::Prometheus, async move |to, stopped| {
                let _listeners = listeners;
                metrics.run(to, stopped).await;
            }),
            Feed::new(PodEngines::NAME.to_owned(), SourceKind::Engines, |to, stopped| {
                engines.run(to, stopped)
            }),
            Feed::new(PodLogs::NAME.to_owned(), SourceKind::Logs, |to, stopped| logs.run(to, stopped)),
        ])
    }
}
