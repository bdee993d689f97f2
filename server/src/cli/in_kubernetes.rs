//! What `--kubernetes` makes of the options: a look at the cluster, the addresses that it gives, and the sources that follow its
//! pods.

use std::sync::Arc;

use tokio::sync::watch;

use radixscope_model::record::SourceKind;

use super::Failure;
use super::server::Feed;
use crate::config::{EtcdServers, InvalidOption, Sources, TreeDumps};
use crate::source::discovery::DiscoverySource;
use crate::source::gate::Gate;
use crate::source::kubernetes::follow::{self, Followed};
use crate::source::kubernetes::places::Places;
use crate::source::kubernetes::reached::Reaching;
pub(super) use crate::source::kubernetes::survey::Table;
use crate::source::kubernetes::survey::{Cluster, Survey};
use crate::source::kubernetes::tunnel::Tunnels;
use crate::source::logs::PodLogs;
use crate::source::nats::{NatsSource, Target, Whereabouts};
use crate::source::prometheus::PodMetrics;
use crate::source::zmq::PodEngines;

/// A cluster, and what was found in it.
pub(super) struct InKubernetes {
    cluster: Cluster,
    table: Table,
    followed: Followed,
    tunnels: Option<Arc<Tunnels>>,
    /// Where its NATS is; `None`: another one is given.
    nats: Option<Whereabouts>,
    /// Where its etcd is, if that has its discovery; `None`: another discovery is given.
    etcd: Option<watch::Receiver<Option<EtcdServers>>>,
}

/// The source of a cluster's NATS.
const NATS: &str = "nats/kubernetes";
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
    let followed = follow::follow(&cluster, &survey);
    let Survey { table, .. } = survey;
    let tunnels = (!table.is_inside).then(|| Tunnels::new(cluster.clone(), followed.pods.clone()));
    if tunnels.is_some() && from.trees.tree_dumps != TreeDumps::Off {
        from.trees.tree_dumps = TreeDumps::Off;
        tracing::warn!("{NO_TREE_DUMPS}");
    }
    let place = table.namespace().map_or("any namespace".to_owned(), |name| format!("namespace {name}"));
    let reaching =
        |pick, none| Reaching { places: followed.places.clone(), tunnels: tunnels.clone(), pick, none };
    let nats = match from.nats.nats.is_empty() {
        true => {
            let login = from.nats.login.clone();
            let none =
                format!("There is no NATS in {place} that could be found; it is connected to once there is.");
            let reaching = reaching(|places: &Places| places.nats.as_ref(), none);
            let made = reaching.follow(move |reached| {
                let (url, shown) = reached?;
                let target = Target::new(&[url], &login).map_err(|error| error.to_string())?;
                Ok(target.shown_as(&shown))
            });
            Some(made.await)
        }
        false => None,
    };
    let etcd = match from.discovery.discovery {
        Some(_) => None,
        None => {
            let made = reaching(Places::discovery, String::new()).follow(|reached| {
                reached.ok().map(|(url, _)| EtcdServers { servers: vec![url], login: None })
            });
            Some(made.await)
        }
    };
    Ok(Some(InKubernetes { cluster, table, followed, tunnels, nats, etcd }))
}

impl InKubernetes {
    /// What was found.
    pub(super) fn table(&self) -> Table {
        self.table.clone()
    }

    /// Discovery, if it is that of the cluster.
    pub(super) fn discovery(&self, from: &Sources) -> Result<Option<DiscoverySource>, Failure> {
        let Some(etcd) = &self.etcd else { return Ok(None) };
        let source = DiscoverySource::of_cluster(&self.cluster, etcd.clone(), from.discovery.clone());
        source.map(Some).map_err(|error| Failure::Usage(error.into()))
    }

    /// Forgets what is not there now: a look of a few seconds does not wait for it.
    pub(super) fn forget_missing(&mut self) {
        self.nats.take_if(|at| at.borrow().is_err());
    }

    /// Where its NATS is; `None`: another one is given.
    pub(super) fn nats(&self) -> Option<Whereabouts> {
        self.nats.clone()
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
        let Self { cluster, followed, tunnels, nats, .. } = self;
        let pods = followed.pods;
        let with_namespace = cluster.namespace.is_none();
        let usage = |error: InvalidOption| Failure::Usage(error.into());
        let engines = PodEngines::new(pods.clone(), gate, tunnels.clone(), with_namespace).map_err(usage)?;
        let metrics = PodMetrics::new(&from.prometheus, pods.clone(), tunnels, with_namespace);
        let metrics = metrics.map_err(usage)?;
        let logs = PodLogs::new(cluster, pods, with_namespace);
        let mut feeds = vec![
            Feed::new(PodMetrics::NAME.to_owned(), SourceKind::Prometheus, |to, stopped| {
                metrics.run(to, stopped)
            }),
            Feed::new(PodEngines::NAME.to_owned(), SourceKind::Engines, |to, stopped| {
                engines.run(to, stopped)
            }),
            Feed::new(PodLogs::NAME.to_owned(), SourceKind::Logs, |to, stopped| logs.run(to, stopped)),
        ];
        feeds.extend(nats.map(|at| {
            let source = NatsSource::following(NATS.to_owned(), at, from.nats.clone(), gate);
            Feed::new(NATS.to_owned(), SourceKind::Nats, |to, stopped| source.run(to, stopped))
        }));
        Ok(feeds)
    }
}
