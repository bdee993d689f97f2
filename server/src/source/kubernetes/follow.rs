//! The pods that matter, as they are now, for the sources that read each of them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::IpAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::sync::watch;

use super::pods::{Labels, PodInfo};
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
    pub(crate) failure: Option<String>,
    /// Whether more than [`MAX_PODS`] matter.
    pub(crate) is_cut: bool,
}

impl Pods {
    /// Pods as they were found.
    pub(crate) fn of(found: &[PodInfo]) -> Self {
        let mut pods = Self::default();
        found.iter().for_each(|pod| pods.put(pod.clone()));
        pods
    }

    /// The pod with an address.
    pub(crate) fn at(&self, ip: IpAddr) -> Option<&PodInfo> {
        self.all.values().find(|pod| pod.ip == Some(ip))
    }

    fn put(&mut self, pod: PodInfo) {
        let is_full = self.all.len() == MAX_PODS;
        match self.all.entry((pod.namespace.clone(), pod.name.clone())) {
            Entry::Occupied(mut known) => drop(known.insert(pod)),
            Entry::Vacant(_) if is_full => self.is_cut = true,
            Entry::Vacant(new) => drop(new.insert(pod)),
        }
    }
}

/// Follows the pods of a cluster, from those that were `found`, while anybody looks at them. `epps`: see [`PodInfo::of`].
pub(crate) fn follow(cluster: Cluster, epps: Vec<Labels>, found: &[PodInfo]) -> watch::Receiver<Pods> {
    let (to, pods) = watch::channel(Pods::of(found));
    tokio::spawn(async move {
        tokio::select! {
            () = to.closed() => {}
            () = forever(cluster, &epps, &to) => {}
        }
    });
    pods
}

async fn forever(mut cluster: Cluster, epps: &[Labels], to: &watch::Sender<Pods>) {
    let (mut failures, mut page) = (0, 0);
    loop {
        let failed = until_failed(&cluster, epps, to, PAGES[page], &mut failures).await;
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
    epps: &[Labels],
    to: &watch::Sender<Pods>,
    page: u32,
    failures: &mut u32,
) -> Failed {
    let config = watcher::Config::default().timeout(WATCH_S).page_size(page);
    let mut events = watcher(cluster.api::<Pod>(), config).boxed();
    let mut listing = Pods::default();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listing = Pods::default(),
            Ok(Event::InitApply(pod)) => {
                if let Some(pod) = PodInfo::of(pod, epps) {
                    listing.put(pod);
                }
            }
            Ok(Event::InitDone) => {
                *failures = 0;
                set(to, |pods| *pods = std::mem::take(&mut listing));
            }
            Ok(Event::Apply(pod)) => {
                let key = key(&pod);
                set(to, |pods| match PodInfo::of(pod, epps) {
                    Some(pod) => pods.put(pod),
                    None => drop(pods.all.remove(&key)),
                });
            }
            Ok(Event::Delete(pod)) => set(to, |pods| drop(pods.all.remove(&key(&pod)))),
            Err(error) => match cluster.failures().of_watch(PODS, &error) {
                Failed::Expired => tokio::time::sleep(WAITS[0]).await,
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

/// Changes the pods; whoever looks is told only of a difference, as most changes of pods make none.
fn set(to: &watch::Sender<Pods>, change: impl FnOnce(&mut Pods)) {
    let mut changed = to.borrow().clone();
    change(&mut changed);
    to.send_if_modified(|pods| {
        let is_new = *pods != changed;
        *pods = changed;
        is_new
    });
}
