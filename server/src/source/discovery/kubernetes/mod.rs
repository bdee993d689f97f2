//! Discovery in Kubernetes, as with Dynamo's operator: a custom resource for each process, which counts while an `EndpointSlice`
//! says that its pod is ready. Watches both kinds; after an expired version both are listed again, and what changed meanwhile is
//! handed over. Only reads.

mod object;
mod registry;

use std::fmt::Debug;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use radixscope_model::record::LinkState;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep_until};

use super::budget::Pass;
use super::{FIRST_WAIT, Follower, Stop};
use crate::config::{Discovery, InvalidOption, KubernetesAt};
use crate::hub::HubEnded;
use crate::source::SourceStatus;
use crate::source::kubernetes::survey::Cluster;
use crate::source::kubernetes::{
    Failed, Failures, PAGES, Reach, Resource, SELECTOR, SLICES, WATCH_S, WORKERS,
};
use object::{Object, ResourceKind, WorkerResource};
use registry::Registry;

/// How long changes are gathered: a rollout changes a resource and a slice for every step of every pod.
const GATHER: Duration = Duration::from_millis(50);
/// Versions that are no longer kept, one after the other, after which it is a failure: a list may take longer than its version is
/// kept.
const MAX_EXPIRED: u32 = 3;

/// A namespace of a cluster.
pub(super) struct Kubernetes {
    reach: Reach,
    /// `None`: it is not connected yet, or has to be again.
    client: Option<Client>,
    failures: Failures,
    registry: Registry,
    /// Of [`PAGES`].
    page: usize,
    /// Whether everything was handed over once.
    is_published: bool,
}

impl Kubernetes {
    /// `namespace`: the one of Dynamo's to read; all otherwise.
    pub(super) fn new(
        at: &KubernetesAt,
        options: &Discovery,
        namespace: Option<String>,
    ) -> Result<Self, InvalidOption> {
        let (reach, of_kubernetes) = Reach::of_options(at, options)?;
        Ok(Self::at(reach, Some(of_kubernetes), namespace))
    }

    /// A cluster that is connected already.
    pub(super) fn of_cluster(cluster: &Cluster) -> Self {
        let this = Self::at(cluster.reach.clone(), cluster.namespace.clone(), None);
        Self { client: Some(cluster.client.clone()), ..this }
    }

    fn at(reach: Reach, of_kubernetes: Option<String>, namespace: Option<String>) -> Self {
        let failures = Failures { api: reach.shown().to_owned(), namespace: of_kubernetes };
        Self {
            reach,
            client: None,
            failures,
            registry: Registry::new(namespace),
            page: 0,
            is_published: false,
        }
    }

    /// The namespace of Kubernetes as it is shown.
    pub(super) fn namespace(&self) -> &str {
        self.failures.namespace.as_deref().unwrap_or("*")
    }

    /// Reads everything that is registered by processes that are ready.
    pub(super) async fn list(&mut self, to: &mut Follower<'_>) -> Result<(), Stop> {
        self.watch(Until::Listed, to).await
    }

    /// Reports what is there, and what changes, until something fails.
    pub(super) async fn follow(&mut self, to: &mut Follower<'_>) -> Result<SourceStatus, HubEnded> {
        match self.watch(Until::Failed, to).await {
            Ok(()) => Ok(SourceStatus::connecting("The watches ended.".to_owned())),
            Err(Stop::Failed(failed)) => Ok(failed),
            Err(Stop::Hub(ended)) => Err(ended),
        }
    }

    async fn client(&mut self) -> Result<Client, SourceStatus> {
        if let Some(client) = &self.client {
            return Ok(client.clone());
        }
        let client = self.reach.connect().await?;
        Ok(self.client.insert(client).clone())
    }

    async fn watch(&mut self, until: Until, to: &mut Follower<'_>) -> Result<(), Stop> {
        to.cut.clear();
        let mut changes = self.changes().await?;
        let mut lists = [Listed::No(Pass::begin()), Listed::No(Pass::begin())];
        let (mut tell_at, mut expired) = (None, 0);
        loop {
            let change = tokio::select! {
                change = changes.next() => change,
                () = sleep_until(tell_at.unwrap_or_else(Instant::now)), if tell_at.is_some() => {
                    self.publish(to).await?;
                    tell_at = None;
                    continue;
                }
            };
            // A watcher never ends.
            let Some((kind, change)) = change else { return Ok(()) };
            let list = &mut lists[kind as usize];
            match change {
                Ok(Event::Init) => {
                    self.registry.begin_pass(kind);
                    *list = Listed::No(Pass::begin());
                }
                Ok(Event::InitApply(object)) => {
                    self.registry.put(&object);
                    if let Listed::No(pass) = list {
                        pass.took(object.bytes() as u64);
                        if pass.is_over() {
                            return self.cut(pass.to_text(), to).await;
                        }
                    }
                }
                Ok(Event::InitDone) => {
                    self.registry.end_pass(kind);
                    *list = Listed::Yes;
                }
                Ok(Event::Apply(object)) => self.registry.put(&object),
                Ok(Event::Delete(object)) => self.registry.end(&object),
                Err(error) => {
                    self.failed(kind, &error)?;
                    expired += 1;
                    if expired == MAX_EXPIRED {
                        return Err(Failed::Expired.status().into());
                    }
                    // Not at once, in case it is the response to every watch. A watch that could not begin at its version would
                    // be begun there again.
                    tokio::time::sleep(FIRST_WAIT).await;
                    changes = self.changes().await?;
                    lists = [Listed::No(Pass::begin()), Listed::No(Pass::begin())];
                }
            }
            // At once: there may be many of them before changes are handed over.
            self.report_unreadable(to).await?;
            if lists.iter().all(|list| matches!(list, Listed::Yes)) {
                expired = 0;
                if until == Until::Listed {
                    return Ok(self.hand_over(to).await?);
                }
                tell_at = tell_at.or_else(|| Some(Instant::now() + GATHER));
            }
        }
    }

    /// What becomes of objects of both kinds.
    async fn changes(&mut self) -> Result<BoxStream<'static, Change>, SourceStatus> {
        let client = self.client().await?;
        let config = watcher::Config::default().timeout(WATCH_S).page_size(PAGES[self.page]);
        let workers = self.of_kind::<WorkerResource>(&client, config.clone(), ResourceKind::Worker);
        let slices = self.of_kind::<EndpointSlice>(&client, config.labels(SELECTOR), ResourceKind::Slice);
        Ok(stream::select(workers, slices).boxed())
    }

    fn of_kind<K>(
        &self,
        client: &Client,
        config: watcher::Config,
        kind: ResourceKind,
    ) -> BoxStream<'static, Change>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned
            + Send
            + Into<Object>
            + 'static,
    {
        let api: Api<K> = match &self.failures.namespace {
            Some(namespace) => Api::namespaced(client.clone(), namespace),
            None => Api::all(client.clone()),
        };
        watcher(api, config).map(move |event| (kind, event.map(to_object))).boxed()
    }

    /// A watch failed. `Ok`: its version is no longer kept, and everything has to be listed anew.
    fn failed(&mut self, kind: ResourceKind, error: &watcher::Error) -> Result<(), Stop> {
        match self.failures.of_watch(resource(kind), error) {
            Failed::Expired => Ok(()),
            Failed::TooLong(_) if self.page + 1 < PAGES.len() => {
                self.page += 1;
                Err(SourceStatus::connecting(format!(
                    "A page of {} objects is too long: the next have {}.",
                    PAGES[self.page - 1],
                    PAGES[self.page]
                ))
                .into())
            }
            failed => {
                if matches!(failed, Failed::Credentials(_)) {
                    self.client = None;
                }
                Err(failed.status().into())
            }
        }
    }

    /// A list is longer than lists may be: what was read counts, and nothing else is gone.
    async fn cut(&mut self, why: String, to: &mut Follower<'_>) -> Result<(), Stop> {
        self.report_unreadable(to).await?;
        self.hand_over(to).await?;
        Err(SourceStatus::refused(format!("{why}. Is {} Kubernetes' API?", self.failures.api)).into())
    }

    async fn publish(&mut self, to: &mut Follower<'_>) -> Result<(), HubEnded> {
        if self.is_published {
            self.hand_over(to).await?;
        } else {
            // What another store had, which was read before this one, is gone unless it is here too.
            self.is_published = true;
            self.registry.hand_over_all();
            to.begin_pass();
            self.hand_over(to).await?;
            to.end_pass().await?;
        }
        let (count, remarks) = (to.count(), self.registry.remarks());
        let place = match &self.failures.namespace {
            Some(namespace) => format!("Kubernetes namespace {namespace}"),
            None => "All namespaces of Kubernetes".to_owned(),
        };
        to.say(LinkState::Live, format!("{place}: {count}.{remarks}")).await
    }

    /// Hands over what changed: what came or is other first, so that no process that moved seems to be gone meanwhile.
    async fn hand_over(&mut self, to: &mut Follower<'_>) -> Result<(), HubEnded> {
        if to.entries.take_room() {
            self.registry.hand_over_all();
        }
        let (put, removed) = self.registry.changes();
        for found in put {
            to.put(found).await?;
        }
        for key in removed {
            to.end(&key).await?;
        }
        Ok(())
    }

    async fn report_unreadable(&mut self, to: &Follower<'_>) -> Result<(), HubEnded> {
        for error in self.registry.take_faults() {
            to.unreadable(error).await?;
        }
        Ok(())
    }
}

/// How far a watch goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Everything is listed once.
    Listed,
    Failed,
}

/// Whether all objects of a kind are known.
enum Listed {
    Yes,
    No(Pass),
}

/// What became of an object, or of the watch.
type Change = (ResourceKind, Result<Event<Object>, watcher::Error>);

fn to_object<K: Into<Object>>(event: Event<K>) -> Event<Object> {
    match event {
        Event::Init => Event::Init,
        Event::InitApply(object) => Event::InitApply(object.into()),
        Event::InitDone => Event::InitDone,
        Event::Apply(object) => Event::Apply(object.into()),
        Event::Delete(object) => Event::Delete(object.into()),
    }
}

fn resource(kind: ResourceKind) -> Resource {
    match kind {
        ResourceKind::Worker => WORKERS,
        ResourceKind::Slice => SLICES,
    }
}
