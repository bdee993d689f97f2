//! What matters of a cluster, as it is now: pods, for the sources that read each of them, and where NATS and etcd are. InferencePools
//! and services are followed too, as they say which pods are engines and endpoint pickers, and lead to NATS and etcd.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Debug;
use std::net::IpAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::{self as core, Pod};
use kube::Api;
use kube::runtime::watcher::{self, Event, watcher};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::places::{Places, Service};
use super::pods::{PodInfo, Selectors};
use super::pools::Pool;
use super::survey::{Cluster, Survey};
use super::{Failed, PAGES, PODS, POOLS, Resource, SERVICES, WATCH_S};
use crate::source::SourceStatus;
use crate::source::link::doubled;

/// Most objects of a kind that matter: a hundred thousand GPUs have fewer pods.
const MAX_OBJECTS: usize = 20_000;
/// First and longest wait after a failure.
const WAITS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(10)];
/// How often it is asked whether Kubernetes knows a kind of object by now.
const ASK_AGAIN: Duration = Duration::from_secs(30);
/// How long changes of pools are gathered: after each all pods are listed again.
const GATHER: Duration = Duration::from_millis(500);

/// Namespace and name.
type Key = (String, String);

/// The objects of a kind that matter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Objects<T> {
    pub(crate) all: BTreeMap<Key, T>,
    /// Why they may be others by now.
    failure: Option<String>,
    /// Whether more than [`MAX_OBJECTS`] matter.
    is_cut: bool,
}

/// The pods that matter.
pub(crate) type Pods = Objects<PodInfo>;

impl<T> Default for Objects<T> {
    fn default() -> Self {
        Self { all: BTreeMap::new(), failure: None, is_cut: false }
    }
}

impl<T: PartialEq> Objects<T> {
    fn of(found: impl IntoIterator<Item = (Key, T)>) -> Self {
        let mut objects = Self::default();
        for (key, object) in found {
            objects.put(key, object);
        }
        objects
    }

    /// Why they may not be all, or others by now.
    pub(crate) fn remark(&self) -> Option<String> {
        let cut = || self.is_cut.then(|| "More than 20,000 pods matter: the others are left out.".to_owned());
        self.failure.clone().or_else(cut)
    }

    /// An object is so now. Returns whether that is new.
    fn put(&mut self, key: Key, object: T) -> bool {
        let is_full = self.all.len() == MAX_OBJECTS;
        match self.all.entry(key) {
            Entry::Occupied(known) if *known.get() == object => false,
            Entry::Occupied(mut known) => {
                known.insert(object);
                true
            }
            Entry::Vacant(_) if is_full => !std::mem::replace(&mut self.is_cut, true),
            Entry::Vacant(new) => {
                new.insert(object);
                true
            }
        }
    }
}

impl Pods {
    /// Pods as they were found.
    pub(crate) fn found(pods: &[PodInfo]) -> Self {
        Self::of(pods.iter().map(|pod| ((pod.namespace.clone(), pod.name.clone()), pod.clone())))
    }

    /// The pod with an address.
    pub(crate) fn at(&self, ip: IpAddr) -> Option<&PodInfo> {
        self.all.values().find(|pod| pod.ip == Some(ip))
    }
}

/// What is followed.
#[derive(Clone)]
pub(crate) struct Followed {
    pub(crate) pods: watch::Receiver<Pods>,
    pub(crate) places: watch::Receiver<Places>,
}

/// Follows a cluster, from what was found in it, until the process ends.
pub(crate) fn follow(cluster: &Cluster, survey: &Survey) -> Followed {
    let Survey { pods, services, pools, places, .. } = survey;
    let key = |namespace: &String, name: &String| (namespace.clone(), name.clone());
    let services = services.iter().map(|of| (key(&of.namespace, &of.name), of.clone()));
    let pools = pools.iter().map(|of| (key(&of.namespace, &of.name), of.clone()));
    let (pods_to, pods) = watch::channel(Pods::found(pods));
    let (services_to, services) = watch::channel(Objects::of(services));
    let (pools_to, pools) = watch::channel(Objects::of(pools));
    let (selectors_to, selectors) =
        watch::channel(Selectors::of(pools.borrow().all.values(), services.borrow().all.values()));
    let (places_to, of_places) = watch::channel(places.clone());
    let has_workers = survey.has_workers;
    let followed = Followed { pods: pods.clone(), places: of_places };
    let cluster = cluster.clone();
    tokio::spawn(async move {
        let services_api = Cluster::api::<core::Service>;
        tokio::join!(
            follow_kind((cluster.clone(), SERVICES, services_api), Service::of, &services_to),
            follow_kind((cluster.clone(), POOLS, Cluster::pools), Pool::of, &pools_to),
            follow_pods(&cluster, selectors, &pods_to),
            derive(pools, services.clone(), &selectors_to, |pools, services| {
                Selectors::of(pools.all.values(), services.all.values())
            }),
            derive(pods, services, &places_to, |pods, services| {
                let places = Places::of(pods.all.values(), services.all.values());
                // Where there were workers at the start they register, whatever pods say.
                Places { is_registered_here: places.is_registered_here || has_workers, ..places }
            }),
        );
    });
    followed
}

/// Follows what two others make, and tells when that is new.
async fn derive<A, B, T: PartialEq>(
    mut a: watch::Receiver<A>,
    mut b: watch::Receiver<B>,
    to: &watch::Sender<T>,
    of: impl Fn(&A, &B) -> T,
) {
    loop {
        let now = of(&a.borrow_and_update(), &b.borrow_and_update());
        to.send_if_modified(|known| {
            let is_new = *known != now;
            *known = now;
            is_new
        });
        let changed = tokio::select! {
            changed = a.changed() => changed,
            changed = b.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
    }
}

/// Follows pods; what they are depends on InferencePools, so another selector lists them again.
async fn follow_pods(cluster: &Cluster, mut selectors: watch::Receiver<Selectors>, to: &watch::Sender<Pods>) {
    loop {
        let by = selectors.borrow_and_update().clone();
        let of = (cluster.clone(), PODS, Cluster::api::<Pod>);
        tokio::select! {
            () = follow_kind(of, |pod| PodInfo::of(pod, &by), to) => {}
            changed = selectors.changed() => {
                if changed.is_err() {
                    return;
                }
                tokio::time::sleep(GATHER).await;
            }
        }
    }
}

/// Follows the objects of a kind; `read` gives what is needed of those that matter.
async fn follow_kind<K, T>(
    (mut cluster, of, api): (Cluster, Resource, impl Fn(&Cluster) -> Api<K>),
    read: impl Fn(K) -> Option<T>,
    to: &watch::Sender<Objects<T>>,
) where
    K: kube::Resource + Clone + Debug + DeserializeOwned + Send + 'static,
    T: PartialEq,
{
    let (mut failures, mut page) = (0, 0);
    loop {
        let failed =
            until_failed(&cluster, (of, api(&cluster)), &read, to, (PAGES[page], &mut failures)).await;
        if matches!(failed, Failed::TooLong(_)) && page + 1 < PAGES.len() {
            page += 1;
        }
        if matches!(failed, Failed::NoSuchResource(_)) && of == POOLS {
            // There is nothing to be followed, which is no failure.
            to.send_if_modified(|objects| {
                let is_new = !objects.all.is_empty();
                *objects = Objects::default();
                is_new
            });
            tokio::time::sleep(ASK_AGAIN).await;
            continue;
        }
        let is_refused = matches!(failed, Failed::Credentials(_));
        let SourceStatus { detail, .. } = failed.status();
        let is_new = to.send_if_modified(|objects| {
            let is_new = objects.failure.as_ref() != Some(&detail);
            objects.failure = Some(detail.clone());
            is_new
        });
        if is_new {
            tracing::warn!(kind = of.name, "{detail}");
        }
        tokio::time::sleep(doubled(WAITS[0], failures, WAITS[1])).await;
        failures = failures.saturating_add(1);
        if is_refused && let Ok(client) = cluster.reach.connect().await {
            cluster.client = client;
        }
    }
}

async fn until_failed<K, T>(
    cluster: &Cluster,
    (of, api): (Resource, Api<K>),
    read: impl Fn(K) -> Option<T>,
    to: &watch::Sender<Objects<T>>,
    (page, failures): (u32, &mut u32),
) -> Failed
where
    K: kube::Resource + Clone + Debug + DeserializeOwned + Send + 'static,
    T: PartialEq,
{
    let config = watcher::Config::default().timeout(WATCH_S).page_size(page);
    let mut events = watcher(api.clone(), config.clone()).boxed();
    let mut listing = Objects::default();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listing = Objects::default(),
            Ok(Event::InitApply(object)) => {
                let key = key(&object);
                if let Some(object) = read(object) {
                    listing.put(key, object);
                }
            }
            Ok(Event::InitDone) => {
                *failures = 0;
                let listed = std::mem::take(&mut listing);
                to.send_if_modified(|objects| {
                    let is_new = *objects != listed;
                    *objects = listed;
                    is_new
                });
            }
            // Most changes of a pod change nothing that matters here.
            Ok(Event::Apply(object)) => {
                let key = key(&object);
                let object = read(object);
                to.send_if_modified(|objects| match object {
                    Some(object) => objects.put(key, object),
                    None => objects.all.remove(&key).is_some(),
                });
            }
            Ok(Event::Delete(object)) => {
                to.send_if_modified(|objects| objects.all.remove(&key(&object)).is_some());
            }
            Err(error) => match cluster.failures().of_watch(of, &error) {
                // Everything is listed anew: a watch that could not begin at its version would be begun there again.
                Failed::Expired => {
                    tokio::time::sleep(WAITS[0]).await;
                    events = watcher(api.clone(), config.clone()).boxed();
                }
                failed => return failed,
            },
        }
    }
    Failed::Expired
}

fn key(object: &impl kube::Resource) -> Key {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    (text(&object.meta().namespace), text(&object.meta().name))
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
        let mut pods = Pods::found(&[frontend("a", "10.0.0.1")]);
        let put = |pods: &mut Pods, name: &str, ip: &str| {
            pods.put(("ns".to_owned(), name.to_owned()), frontend(name, ip))
        };
        assert!(!put(&mut pods, "a", "10.0.0.1"));
        assert!(put(&mut pods, "a", "10.0.0.2"));
        let ip = |ip: &str| ip.parse::<IpAddr>().unwrap();
        assert_eq!(pods.at(ip("10.0.0.2")).map(|pod| &*pod.name), Some("a"));
        assert_eq!(pods.at(ip("10.0.0.1")), None);
        assert_eq!(pods.remark(), None);
        for n in 1..MAX_OBJECTS {
            assert!(put(&mut pods, &n.to_string(), "10.0.0.3"));
        }
        assert!(put(&mut pods, "one-more", "10.0.0.4"), "that there are too many is new");
        assert!(!put(&mut pods, "and-another", "10.0.0.4"));
        assert_eq!(pods.all.len(), MAX_OBJECTS);
        assert!(pods.remark().unwrap().contains("20,000"));
        assert!(put(&mut pods, "a", "10.0.0.5"), "those that are known change nevertheless");
    }
}
