//! Discovery in Kubernetes, as with Dynamo's operator: a custom resource for each process, which counts while an `EndpointSlice`
//! says that its pod is ready. Lists both kinds, then watches them; after an expired version both are listed again, and what
//! changed meanwhile is told. Only reads.

mod client;
mod registry;

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use radixscope_dynamo::discovery::kubernetes::{Change, change, page, version};
use radixscope_dynamo::error::DecodeError;
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

    async fn read_all(&mut self) -> Result<[(String, Vec<DecodeError>); 2], Failed> {
        Ok([self.read(Kind::Worker).await?, self.read(Kind::Slice).await?])
    }

    /// Tells what is there, and what changes, until the connection fails.
    pub(super) async fn follow(&mut self, to: &mut Follower<'_>) -> Result<Failed, HubEnded> {
        loop {
            let read = match self.read_all().await {
                Ok(read) => read,
                Err(failed) => return Ok(failed),
            };
            for error in read.iter().flat_map(|(_, errors)| errors) {
                to.unreadable(error.clone()).await?;
            }
            let versions = read.map(|(version, _)| version);
            match self.watch(versions, to).await? {
                // Not at once, in case it is the answer to every watch.
                Ended::ReadAgain => tokio::time::sleep(FIRST_WAIT).await,
                Ended::Failed(failed) => return Ok(failed),
            }
        }
    }

    /// Reads all objects of a kind; the version to watch from, and what is wrong with those that cannot be read.
    async fn read(&mut self, kind: Kind) -> Result<(String, Vec<DecodeError>), Failed> {
        let (mut names, mut errors, mut next, mut lists) = (BTreeSet::new(), Vec::new(), String::new(), 1);
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
                let (name, error) = self.registry.put(kind, object);
                names.insert(name);
                errors.extend(error);
            }
            if page.next.is_empty() {
                self.registry.retain(kind, &names);
                return Ok((page.version, errors));
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
            let line = tokio::select! {
                line = workers.next(&self.client) => line.map(|line| (Kind::Worker, line)),
                line = slices.next(&self.client) => line.map(|line| (Kind::Slice, line)),
                () = sleep_until(tell_at.unwrap_or_else(Instant::now)), if tell_at.is_some() => {
                    to.all(self.registry.entries()).await?;
                    let (count, namespace) = (to.count(), self.namespace());
                    let remarks = self.registry.remarks();
                    let words = format!("Watching {count} of Dynamo in Kubernetes, namespace {namespace}.{remarks}");
                    to.say(LinkState::Live, words).await?;
                    tell_at = None;
                    continue;
                }
            };
            let (kind, line) = match line {
                Ok(line) => line,
                Err(ended) => return Ok(ended),
            };
            let watch = if kind == Kind::Worker { &mut workers } else { &mut slices };
            let Some(line) = line else {
                match Watch::begin(&self.client, kind, std::mem::take(&mut watch.version)).await {
                    Ok(next) => *watch = next,
                    Err(ended) => return Ok(ended),
                }
                continue;
            };
            let error = match change(&line) {
                Ok(Change::Failed(status)) if status.code == 410 => return Ok(Ended::ReadAgain),
                Ok(Change::Failed(status)) => return Ok(Ended::Failed(self.client.ended(&status.message))),
                Ok(Change::Bookmark(object)) => watch.passed(object).err(),
                Ok(Change::Put(object)) => {
                    let error = self.registry.put(kind, object).1;
                    watch.passed(object).err().or(error)
                }
                Ok(Change::End(object)) => {
                    watch.passed(object).and_then(|()| self.registry.end(kind, object)).err()
                }
                Err(error) => return Ok(Ended::Failed(self.client.strange(&error))),
            };
            if let Some(error) = error {
                to.unreadable(error).await?;
            }
            tell_at = tell_at.or_else(|| Some(Instant::now() + GATHER));
        }
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

    /// Goes on after this object.
    fn passed(&mut self, object: &[u8]) -> Result<(), DecodeError> {
        let version = version(object)?;
        if !version.is_empty() {
            self.version = version;
        }
        Ok(())
    }
}
