//! Discovery in Kubernetes, as with Dynamo's operator: a custom resource for each process, which counts while an `EndpointSlice`
//! says that its pod is ready. Lists both kinds, then watches them; after an expired version both are listed again, and what
//! changed meanwhile is handed over. Only reads.

mod client;
mod registry;

use std::time::Duration;

use radixscope_dynamo::discovery::kubernetes::{WatchEvent, change, object_in_front, page, version};
use radixscope_dynamo::discovery::pieces::{DocumentPart, Piece, Skipped};
use radixscope_model::record::LinkState;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::budget::Pass;
use super::http::{NoResponse, Parts};
use super::{FIRST_WAIT, Follower, Stop};
use crate::config::{Discovery, InvalidOption, KubernetesAt};
use crate::hub::HubEnded;
use crate::source::SourceStatus;
use client::{Client, Resource, SLICES, WATCH_S, WORKERS};
use registry::{Registry, ResourceKind};

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
    /// `namespace`: the one of Dynamo's to read; all otherwise.
    pub(super) fn new(
        at: &KubernetesAt,
        options: &Discovery,
        namespace: Option<String>,
    ) -> Result<Self, InvalidOption> {
        Ok(Self { client: Client::new(at, options)?, registry: Registry::new(namespace) })
    }

    pub(super) fn namespace(&self) -> &str {
        &self.client.namespace
    }

    /// Reads everything that is registered by processes that are ready.
    pub(super) async fn list(&mut self, to: &mut Follower<'_>) -> Result<(), Stop> {
        self.read_all(to).await?;
        self.hand_over(to).await.map_err(Stop::from)
    }

    /// The versions to watch from.
    async fn read_all(&mut self, to: &mut Follower<'_>) -> Result<[String; 2], Stop> {
        to.cut.clear();
        let workers = self.read(ResourceKind::Worker, to).await?;
        Ok([workers, self.read(ResourceKind::Slice, to).await?])
    }

    /// Reports what is there, and what changes, until the connection fails.
    pub(super) async fn follow(&mut self, to: &mut Follower<'_>) -> Result<SourceStatus, HubEnded> {
        loop {
            let versions = match self.read_all(to).await {
                Ok(versions) => versions,
                Err(Stop::Failed(failed)) => return Ok(failed),
                Err(Stop::Hub(ended)) => return Err(ended),
            };
            // Also where only watching is forbidden.
            self.hand_over(to).await?;
            match self.watch(versions, to).await? {
                // Not at once, in case it is the response to every watch.
                Ended::ReadAgain => tokio::time::sleep(FIRST_WAIT).await,
                Ended::Failed(failed) => return Ok(failed),
            }
        }
    }

    /// Reads all objects of a kind; the version to watch from.
    async fn read(&mut self, kind: ResourceKind, to: &mut Follower<'_>) -> Result<String, Stop> {
        let mut pass = Pass::begin();
        let (mut next, mut version, mut lists) = (String::new(), None, 1);
        self.registry.begin_pass();
        loop {
            if pass.is_over() {
                to.cut(&pass.to_text());
                return version.ok_or_else(|| self.client.cut(&pass).into());
            }
            let mut parts = match self.client.page(resource(kind), &next, &pass).await {
                Ok(parts) => parts,
                Err(Ended::ReadAgain) if lists < MAX_LISTS => {
                    (next, lists) = (String::new(), lists + 1);
                    self.registry.begin_pass();
                    continue;
                }
                Err(Ended::ReadAgain) => {
                    return Err(self.client.ended("the list expires while it is read").into());
                }
                Err(Ended::Failed(failed)) => return Err(failed.into()),
            };
            let around = self.read_page(kind, &mut parts, to).await;
            pass.took(parts.received_bytes());
            let Some(around) = around? else {
                pass.end();
                continue;
            };
            let page = page(&around.json).map_err(|error| self.client.strange(&error))?;
            if page.next.is_empty() {
                self.registry.end_pass(kind);
                return Ok(page.version);
            }
            (next, version) = (page.next, Some(page.version));
        }
    }

    /// Reads the objects of a page; what is around them. `None`: it is longer than is read.
    async fn read_page(
        &mut self,
        kind: ResourceKind,
        parts: &mut Parts,
        to: &mut Follower<'_>,
    ) -> Result<Option<Piece>, Stop> {
        loop {
            match parts.next().await {
                Ok(DocumentPart::Element(Piece { json, left_out: Skipped::Nothing, .. })) => {
                    self.registry.put(kind, &json);
                }
                Ok(DocumentPart::Element(Piece { json, bytes, .. })) => {
                    self.registry.put_too_large(kind, &json, bytes);
                }
                Ok(DocumentPart::End(around)) => return Ok(Some(around)),
                Err(NoResponse::Endless) => return Ok(None),
                Err(why) => return Err(self.client.failed("list", resource(kind), why).into()),
            }
            self.report_unreadable(to).await?;
        }
    }

    /// Reports what changes from these versions on.
    async fn watch(
        &mut self,
        [workers, slices]: [String; 2],
        to: &mut Follower<'_>,
    ) -> Result<Ended, HubEnded> {
        let begun = async {
            let workers = Watch::begin(&self.client, ResourceKind::Worker, workers).await?;
            Ok((workers, Watch::begin(&self.client, ResourceKind::Slice, slices).await?))
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
                    self.publish(to).await?;
                    tell_at = None;
                    continue;
                }
            };
            let taken = match line {
                Ok(Some(line)) if line.left_out == Skipped::Nothing => self.handle_line(watch, &line.json),
                Ok(Some(line)) => {
                    self.skip_too_large(watch.kind, &line);
                    Ok(())
                }
                Ok(None) => watch.begin_again(&self.client).await,
                Err(ended) => Err(ended),
            };
            // At once: there may be many of them before changes are handed over.
            self.report_unreadable(to).await?;
            if let Err(ended) = taken {
                return Ok(ended);
            }
            tell_at = tell_at.or_else(|| Some(Instant::now() + GATHER));
        }
    }

    /// Takes a line of a watch.
    fn handle_line(&mut self, watch: &mut Watch, line: &[u8]) -> Result<(), Ended> {
        let object = match change(line) {
            Ok(WatchEvent::Put(object)) => {
                self.registry.put(watch.kind, object);
                object
            }
            Ok(WatchEvent::End(object)) => {
                self.registry.end(watch.kind, object);
                object
            }
            Ok(WatchEvent::Bookmark(object)) => object,
            Ok(WatchEvent::Failed(status)) if status.code == 410 => return Err(Ended::ReadAgain),
            Ok(WatchEvent::Failed(status)) => return Err(Ended::Failed(self.client.ended(&status.message))),
            Err(error) => return Err(Ended::Failed(self.client.strange(&error))),
        };
        // An object that says no version is one that cannot be read: the watch goes on after the one before.
        if let Some(version) = version(object).ok().filter(|version| !version.is_empty()) {
            watch.version = version;
        }
        Ok(())
    }

    /// Takes a line of a watch with an object that is larger than one may be. The watch goes on after the one before.
    fn skip_too_large(&mut self, kind: ResourceKind, line: &Piece) {
        match change(&line.json) {
            Ok(WatchEvent::End(object)) => self.registry.end_too_large(kind, object, line.bytes),
            Ok(WatchEvent::Put(object)) => self.registry.put_too_large(kind, object, line.bytes),
            // Of a line that is cut only the front can be read.
            _ => {
                let object = object_in_front(&line.json).unwrap_or_default();
                self.registry.put_too_large(kind, object, line.bytes);
            }
        }
    }

    async fn publish(&mut self, to: &mut Follower<'_>) -> Result<(), HubEnded> {
        self.hand_over(to).await?;
        let (count, namespace, remarks) = (to.count(), self.namespace(), self.registry.remarks());
        let detail = format!("Kubernetes namespace {namespace}: {count}.{remarks}");
        to.say(LinkState::Live, detail).await
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

fn resource(kind: ResourceKind) -> Resource {
    match kind {
        ResourceKind::Worker => WORKERS,
        ResourceKind::Slice => SLICES,
    }
}

/// Why watching ended.
enum Ended {
    /// The version to watch from is no longer kept.
    ReadAgain,
    Failed(SourceStatus),
}

/// A watch of one kind of objects. The API server ends it after a while; then it goes on from where it was.
struct Watch {
    kind: ResourceKind,
    version: String,
    since: Instant,
    lines: Parts,
}

impl Watch {
    async fn begin(client: &Client, kind: ResourceKind, version: String) -> Result<Self, Ended> {
        let lines = client.watch(resource(kind), &version).await?;
        Ok(Self { kind, version, since: Instant::now(), lines })
    }

    /// The next line; `None`: it is over. Cancel-safe.
    async fn next(&mut self, client: &Client) -> Result<Option<Piece>, Ended> {
        let until = self.since + Duration::from_secs(WATCH_S) + OVERTIME;
        match timeout_at(until, self.lines.next()).await.unwrap_or(Err(NoResponse::Silent)) {
            Ok(DocumentPart::Element(line) | DocumentPart::End(line)) => Ok(Some(line)),
            // Silent: its connection is dead, or it goes on for longer than it should.
            Err(NoResponse::Ended | NoResponse::Silent) if self.since.elapsed() >= SHORTEST_WATCH => Ok(None),
            Err(why) => Err(Ended::Failed(client.failed("watch", resource(self.kind), why))),
        }
    }

    /// Another one that goes on where this one ended.
    async fn begin_again(&mut self, client: &Client) -> Result<(), Ended> {
        *self = Self::begin(client, self.kind, std::mem::take(&mut self.version)).await?;
        Ok(())
    }
}
