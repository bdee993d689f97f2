//! The pods that matter, as they are now, for the sources that read each of them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::IpAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::sync::watch;

use super::pods::{PodInfo, Selectors};
use super::survey::Cluster;
use super::{Failed, PAGES, PODS, WATCH_S};
use crate::source::SourceStatus;
use crate::source::link::doubled;

/// Most pods that matter: a hundred thousand GPUs have fewer.
const MAX_PODS: usize = 20_000;
/// First and longest wait after a failure.
const WAITS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(10)];

/// The pods that matter.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Pods {
    /// By namespace and name.
    pub(crate) all: BTreeMap<(String, String), PodInfo>,
    /// Why they may be others by now.
    failure: Option<String>,
    /// Whether more than [`MAX_PODS`] matter.
    is_cut: bool,
}

impl Pods {
    /// Pods as they were found.
    pub(crate) fn of(found: &[PodInfo]) -> Self {
        let mut pods = Self::default();
        for pod in found {
            pods.put(pod.clone());
        }
        pods
    }

    /// Why they may not be all, or others by now.
    pub(crate) fn remark(&self) -> Option<String> {
        let cut = || self.is_cut.then(|| "More than 20,000 pods matter: the others are left out.".to_owned());
        self.failure.clone().or_else(cut)
    }

    /// The pod with an address.
    pub(crate) fn at(&self, ip: IpAddr) -> Option<&PodInfo> {
        self.all.values().find(|pod| pod.ip == Some(ip))
    }

    /// A pod is so now. Returns whether that is new.
    fn put(&mut self, pod: PodInfo) -> bool {
        let is_full = self.all.len() == MAX_PODS;
        match self.all.entry((pod.namespace.clone(), pod.name.clone())) {
            Entry::Occupied(known) if *known.get() == pod => false,
            Entry::Occupied(mut known) => {
                known.insert(pod);
                true
            }
            Entry::Vacant(_) if is_full => !std::mem::replace(&mut self.is_cut, true),
            Entry::Vacant(new) => {
                new.insert(pod);
                true
            }
        }
    }
}

/// Follows the pods of a cluster, from those that were `found`, while anybody looks at them. `by`: see [`PodInfo::of`].
pub(crate) fn follow(cluster: Cluster, by: Selectors, found: &[PodInfo]) -> watch::Receiver<Pods> {
    let (to, pods) = watch::channel(Pods::of(found));
    tokio::spawn(async move {
        tokio::select! {
            () = to.closed() => {}
            () = forever(cluster, &by, &to) => {}
        }
    });
    pods
}

async fn forever(mut cluster: Cluster, by: &Selectors, to: &watch::Sender<Pods>) {
    let (mut failures, mut page) = (0, 0);
    loop {
        let failed = until_failed(&cluster, by, to, PAGES[page], &mut failures).await;
        if matches!(failed, Failed::TooLong(_)) && page + 1 < PAGES.len() {
            page += 1;
        }
        let is_refused = matches!(failed, Failed::Credentials(_));
        let SourceStatus { detail, .. } = failed.status();
        to.send_if_modified(|pods| {
            let is_new = pods.failure.as_ref() != Some(&detail);
            pods.failure = Some(detail);
            is_new
        });
        tokio::time::sleep(doubled(WAITS[0], failures, WAITS[1])).await;
        failures = failures.saturating_add(1);
        if is_refused && let Ok(client) = cluster.reach.connect().await {
            cluster.client = client;
        }
    }
}

async fn until_failed(
    cluster: &Cluster,
    by: &Selectors,
    to: &watch::Sender<Pods>,
    page: u32,
    failures: &mut u32,
) -> Failed {
    let config = watcher::Config::default().timeout(WATCH_S).page_size(page);
    let mut events = watcher(cluster.api::<Pod>(), config.clone()).boxed();
    let mut listing = Pods::default();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listing = Pods::default(),
            Ok(Event::InitApply(pod)) => {
                if let Some(pod) = PodInfo::of(pod, by) {
                    listing.put(pod);
                }
            }
            Ok(Event::InitDone) => {
                *failures = 0;
                let listed = std::mem::take(&mut listing);
                to.send_if_modified(|pods| {
                    let is_new = *pods != listed;
                    *pods = listed;
                    is_new
                });
            }
            // Most changes of a pod change nothing that matters here.
            Ok(Event::Apply(pod)) => {
                let key = key(&pod);
                let pod = PodInfo::of(pod, by);
                to.send_if_modified(|pods| match pod {
                    Some(pod) => pods.put(pod),
                    None => pods.all.remove(&key).is_some(),
                });
            }
            Ok(Event::Delete(pod)) => {
                to.send_if_modified(|pods| pods.all.remove(&key(&pod)).is_some());
            }
            Err(error) => match cluster.failures().of_watch(PODS, &error) {
                // Everything is listed anew: a watch that could not begin at its version would be begun there again.
                Failed::Expired => {
                    tokio::time::sleep(WAITS[0]).await;
                    events = watcher(cluster.api::<Pod>(), config.clone()).boxed();
                }
                failed => return failed,
            },
        }
    }
    Failed::Expired
}

fn key(pod: &Pod) -> (String, String) {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    (text(&pod.metadata.namespace), text(&pod.metadata.name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn frontend(name: &str, ip: &str) -> PodInfo {
        let pod = json!({"metadata": {"name": name, "namespace": "ns", "labels": {"nvidia.com/dynamo-component-type": "frontend"}},
            "spec": {"containers": [{"name": "main"}]}, "status": {"podIP": ip}});
        PodInfo::of(serde_json::from_value(pod).unwrap(), &Selectors::default()).unwrap()
    }

    #[test]
    fn only_what_is_different_is_told_and_no_more_pods_are_held_than_may_be() {
        let mut pods = Pods::of(&[frontend("a", "10.0.0.1")]);
        assert!(!pods.put(frontend("a", "10.0.0.1")));
        assert!(pods.put(frontend("a", "10.0.0.2")));
        let ip = |ip: &str| ip.parse::<IpAddr>().unwrap();
        assert_eq!(pods.at(ip("10.0.0.2")).map(|pod| &*pod.name), Some("a"));
        assert_eq!(pods.at(ip("10.0.0.1")), None);
        assert_eq!(pods.remark(), None);
        for n in 1..MAX_PODS {
            assert!(pods.put(frontend(&n.to_string(), "10.0.0.3")));
        }
        assert!(pods.put(frontend("one-more", "10.0.0.4")), "that there are too many is new");
        assert!(!pods.put(frontend("and-another", "10.0.0.4")));
        assert_eq!(pods.all.len(), MAX_PODS);
        assert!(pods.remark().unwrap().contains("20,000"));
        assert!(pods.put(frontend("a", "10.0.0.5")), "those that are known change nevertheless");
    }
}
