//! Discovery in Kubernetes, as with Dynamo's operator: a custom resource for each process, which counts while an `EndpointSlice`
//! says that its pod is ready. Lists both kinds, then watches them; after an expired version both are listed again, and what
//! changed meanwhile is told. Only reads.

mod client;
mod registry;

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use radixscope_dynamo::discovery::kubernetes::{Change, change, page, version};
use radixscope_model::record::LinkState;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::http::{Lines, NoAnswer};
use super::{Entry, FIRST_WAIT, Follower};
use crate::config::{Discovery, InvalidOption, KubernetesAt};
use crate::hub::HubEnded;
use crate::source::Failed;
use client::{Client, Resource, SLICES, WATCH_S, WORKERS};
use registry::{Kind, Registry};

/// How long changes are gathered: a rollout changes a resource and a slice for every step of every pod.
const GATHER: Duration = Duration::from_millis(50);
/// How much longer than asked for a watch may last.
const OVERTIME: Duration = Duration::from_secs(5);
/// A watch that ends sooner is a failure: else it would begin again at once, for ever.
const SHORTEST_WATCH: Duration = Duration::from_secs(1);
/// Lists that are begun again because they took longer than their version was kept.
const MAX_LISTS: u32 = 3;

/// A namespace of a cluster.
pub(super) struct Kubernetes {
    client: Client,
    registry: Registry,
}

impl Kubernetes {
    pub(super) fn new(at: &KubernetesAt, options: &Discovery) -> Result<Self, InvalidOption> {
        Ok(Self { client: Client::new(at, options)?, registry: Registry::default() })
    }

    pub(super) fn namespace(&self) -> &str {
        &self.client.namespace
    }

    /// Everything that is registered by processes that are ready.
    pub(super) async fn list(&mut self) -> Result<Vec<Entry>, Failed> {
        self.read_all().await?;
        Ok(self.registry.entries())
    }

    /// The versions to watch from.
    async fn read_all(&mut self) -> Result<[String; 2], Failed> {
        Ok([self.read(Kind::Worker).await?, self.read(Kind::Slice).await?])
    }

    /// Tells what is there, and what changes, until the connection fails.
    pub(super) async fn follow(&mut self, to: &mut Follower<'_>) -> Result<Failed, HubEnded> {
        loop {
            let read = self.read_all().await;
            // Also what was read before it failed, and where only watching is forbidden.
            self.tell_unreadable(to).await?;
            let versions = match read {
                Ok(versions) => versions,
                Err(failed) => return Ok(failed),
            };
            to.all(self.registry.entries()).await?;
            match self.watch(versions, to).await? {
                // Not at once, in case it is the answer to every watch.
                Ended::ReadAgain => tokio::time::sleep(FIRST_WAIT).await,
                Ended::Failed(failed) => return Ok(failed),
            }
        }
    }

    /// Reads all objects of a kind; the version to watch from.
    async fn read(&mut self, kind: Kind) -> Result<String, Failed> {
        let (mut names, mut next, mut lists) = (BTreeSet::new(), String::new(), 1);
        loop {
            let bytes = match self.client.page(resource(kind), &next).await {
                Ok(bytes) => bytes,
                Err(Ended::ReadAgain) if lists < MAX_LISTS => {
                    (names, next, lists) = (BTreeSet::new(), String::new(), lists + 1);
                    continue;
                }
                Err(Ended::ReadAgain) => return Err(self.client.ended("the list expires while it is read")),
                Err(Ended::Failed(failed)) => return Err(failed),
            };
            let page = page(&bytes).map_err(|error| self.client.strange(&error))?;
            for object in page.objects {
                names.insert(self.registry.put(kind, object));
            }
            if page.next.is_empty() {
                self.registry.retain(kind, &names);
                return Ok(page.version);
            }
            next = page.next;
        }
    }

    /// Tells what changes from these versions on.
    async fn watch(
        &mut self,
        [workers, slices]: [String; 2],
        to: &mut Follower<'_>,
    ) -> Result<Ended, HubEnded> {
        let begun = async {
            let workers = Watch::begin(&self.client, Kind::Worker, workers).await?;
            Ok((workers, Watch::begin(&self.client, Kind::Slice, slices).await?))
        };
        let (mut workers, mut slices) = match begun.await {
            Ok(begun) => begun,
            Err(ended) => return Ok(ended),
        };
        let mut tell_at = Some(Instant::now());
        loop {
            let (watch, line) = tokio::select! {
                line = workers.next(&self.client) => (&mut workers, line),
                line = slices.next(&self.client) => (&mut slices, line),
                () = sleep_until(tell_at.unwrap_or_else(Instant::now)), if tell_at.is_some() => {
                    self.tell(to).await?;
                    tell_at = None;
                    continue;
                }
            };
            let taken = match line {
                Ok(Some(line)) => self.take(watch, &line),
                Ok(None) => watch.begin_again(&self.client).await,
                Err(ended) => Err(ended),
            };
            if let Err(ended) = taken {
                self.tell_unreadable(to).await?;
                return Ok(ended);
            }
            tell_at = tell_at.or_else(|| Some(Instant::now() + GATHER));
        }
    }

    /// Takes a line of a watch.
    fn take(&mut self, watch: &mut Watch, line: &[u8]) -> Result<(), Ended> {
        let object = match change(line) {
            Ok(Change::Put(object)) => {
                self.registry.put(watch.kind, object);
                object
            }
            Ok(Change::End(object)) => {
                self.registry.end(watch.kind, object);
                object
            }
            Ok(Change::Bookmark(object)) => object,
            Ok(Change::Failed(status)) if status.code == 410 => return Err(Ended::ReadAgain),
            Ok(Change::Failed(status)) => return Err(Ended::Failed(self.client.ended(&status.message))),
            Err(error) => return Err(Ended::Failed(self.client.strange(&error))),
        };
        // An object that says no version is one that cannot be read: the watch goes on after the one before.
        if let Some(version) = version(object).ok().filter(|version| !version.is_empty()) {
            watch.version = version;
        }
        Ok(())
    }

    async fn tell(&mut self, to: &mut Follower<'_>) -> Result<(), HubEnded> {
        self.tell_unreadable(to).await?;
        to.all(self.registry.entries()).await?;
        let (count, namespace, remarks) = (to.count(), self.namespace(), self.registry.remarks());
        let words = format!("Watching {count} of Dynamo in Kubernetes, namespace {namespace}.{remarks}");
        to.say(LinkState::Live, words).await
    }

    async fn tell_unreadable(&mut self, to: &Follower<'_>) -> Result<(), HubEnded> {
        for error in self.registry.untold() {
            to.unreadable(error).await?;
        }
        Ok(())
    }
}

fn resource(kind: Kind) -> Resource {
    match kind {
        Kind::Worker => WORKERS,
        Kind::Slice => SLICES,
    }
}

/// Why watching ended.
enum Ended {
    /// The version to watch from is no longer kept.
    ReadAgain,
    Failed(Failed),
}

/// A watch of one kind of objects. The API server ends it after a while; then it goes on from where it was.
struct Watch {
    kind: Kind,
    version: String,
    since: Instant,
    lines: Lines,
}

impl Watch {
    async fn begin(client: &Client, kind: Kind, version: String) -> Result<Self, Ended> {
        let lines = client.watch(resource(kind), &version).await?;
        Ok(Self { kind, version, since: Instant::now(), lines })
    }

    /// The next line; `None`: it is over. Cancel-safe.
    async fn next(&mut self, client: &Client) -> Result<Option<Bytes>, Ended> {
        let until = self.since + Duration::from_secs(WATCH_S) + OVERTIME;
        match timeout_at(until, self.lines.next()).await.unwrap_or(Err(NoAnswer::Silent)) {
            Ok(line) => Ok(Some(line)),
            // Silent: its connection is dead, or it goes on for longer than it should.
            Err(NoAnswer::Ended | NoAnswer::Silent) if self.since.elapsed() >= SHORTEST_WATCH => Ok(None),
            Err(why) => Err(Ended::Failed(client.failed("watch", resource(self.kind), why))),
        }
    }

    /// Another one that goes on where this one ended.
    async fn begin_again(&mut self, client: &Client) -> Result<(), Ended> {
        *self = Self::begin(client, self.kind, std::mem::take(&mut self.version)).await?;
        Ok(())
    }
}
