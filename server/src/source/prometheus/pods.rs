//! Scrapes the metrics of pods as they come and go: at their addresses in the cluster, from outside through port-forward.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use url::Url;

use super::PrometheusSource;
use super::client::Client;
use crate::config::{InvalidOption, MetricsUrl, Prometheus};
use crate::hub::{HubEnded, Parts, SourceHandle};
use crate::shutdown::{Shutdown, over};
use crate::source::kubernetes::follow::Pods;
use crate::source::kubernetes::pods::PodInfo;
use crate::source::kubernetes::tunnel::{Listener, Target, Tunnels};
use radixscope_model::record::LinkState;

/// Most pods that are scraped.
const MAX_SCRAPED: usize = 1_000;

/// The metrics of all pods of Dynamo.
pub struct PodMetrics {
    options: Prometheus,
    client: Client,
    pods: watch::Receiver<Pods>,
    /// From outside the cluster.
    tunnels: Option<Arc<Tunnels>>,
    with_namespace: bool,
}

/// A pod that is scraped; it ends with this.
struct Scraped {
    pod: PodInfo,
    name: Arc<str>,
    scraping: JoinHandle<()>,
    _listener: Option<Listener>,
}

impl Drop for Scraped {
    fn drop(&mut self) {
        self.scraping.abort();
    }
}

impl PodMetrics {
    /// Its name as a source.
    pub const NAME: &str = "metrics/kubernetes";

    /// # Errors
    /// An option that cannot be used.
    pub(crate) fn new(
        options: &Prometheus,
        pods: watch::Receiver<Pods>,
        tunnels: Option<Arc<Tunnels>>,
        with_namespace: bool,
    ) -> Result<Self, InvalidOption> {
        let client = Client::new(options)?;
        Ok(Self { options: options.clone(), client, pods, tunnels, with_namespace })
    }

    /// Scrapes until the process ends.
    pub async fn run(self, to: SourceHandle, shutdown: Shutdown) {
        let parts = Parts::new(to, "pods are scraped");
        let mut end = shutdown.clone();
        tokio::select! {
            () = over(&mut end) => {}
            // The hub ends only with the process.
            _ = parts.report() => {}
            _ = self.follow(&parts, &shutdown) => {}
        }
    }

    async fn follow(mut self, parts: &Arc<Parts>, shutdown: &Shutdown) -> Result<(), HubEnded> {
        let mut scraped = BTreeMap::<(String, String), Scraped>::new();
        loop {
            let now = self.pods.borrow_and_update().clone();
            let is_target = |pod: &&PodInfo| pod.metrics_port.is_some() && pod.ip.is_some();
            let targets: Vec<&PodInfo> = now.all.values().filter(is_target).collect();
            let beyond = targets.len().saturating_sub(MAX_SCRAPED);
            scraped.retain(|key, scraped| {
                // Another pod of that name, or at another address, is another process.
                let is_there = now.all.get(key).is_some_and(|pod| {
                    (&pod.uid, pod.ip, pod.metrics_port)
                        == (&scraped.pod.uid, scraped.pod.ip, scraped.pod.metrics_port)
                });
                if !is_there {
                    parts.remove(&scraped.name);
                }
                is_there
            });
            for pod in targets.into_iter().take(MAX_SCRAPED) {
                let key = (pod.namespace.clone(), pod.name.clone());
                if !scraped.contains_key(&key)
                    && let Some(begun) = self.begin(pod, parts, shutdown).await
                {
                    scraped.insert(key, begun);
                }
            }
            parts.set_whole(now.remark().map(|why| (LinkState::Partial, why)), beyond);
            if self.pods.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    async fn begin(&self, pod: &PodInfo, parts: &Arc<Parts>, shutdown: &Shutdown) -> Option<Scraped> {
        let name: Arc<str> = pod.shown(self.with_namespace).into();
        let (ip, port) = (pod.ip?, pod.metrics_port?);
        let (address, listener) = match &self.tunnels {
            None => (std::net::SocketAddr::new(ip, port), None),
            Some(tunnels) => {
                let target = Target::Pod { namespace: pod.namespace.clone(), name: pod.name.clone(), port };
                match tunnels.listen(target).await {
                    Ok(listener) => (listener.at, Some(listener)),
                    Err(error) => {
                        tracing::warn!(pod = &*name, %error, "no port for port-forward");
                        return None;
                    }
                }
            }
        };
        let url = Url::parse(&format!("http://{address}/metrics")).ok()?;
        let source = PrometheusSource {
            process: MetricsUrl { name: name.to_string(), url },
            name: format!("metrics/{name}"),
            interval: self.options.prometheus_interval,
            has_token: self.options.prometheus_token.is_some(),
            client: self.client.clone(),
        };
        let scraping = tokio::spawn(source.run(parts.handle(Arc::clone(&name)), shutdown.clone()));
        Some(Scraped { pod: pod.clone(), name, scraping, _listener: listener })
    }
}
