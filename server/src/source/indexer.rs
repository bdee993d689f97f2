//! Standalone KV indexers and selection services: each is read every half minute, its list of workers, all blocks that it holds, and
//! what a selection service has reserved. Nothing is registered there and nothing is drained by it.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use url::Url;

use radixscope_dynamo::DecodeError;
use radixscope_dynamo::indexer::{self, Index};
use radixscope_intake::Payload;
use radixscope_model::number_format::{count, plural};
use radixscope_model::record::{LinkState, Topic};

use super::SourceStatus;
use super::gate::is_here;
use super::http_client::{Bounds, HttpClient};
use super::link::LastStatus;
use super::zmq::{ListedEngine, Lists};
use crate::config::{IndexerUrl, InvalidOption};
use crate::hub::{HubEnded, SourceHandle};
use crate::shutdown::{Shutdown, over};
use crate::time::now;

/// A list of workers is small; a dump has about 110 bytes a block.
const WORKERS: Bounds = Bounds { within: Duration::from_secs(5), most_bytes: 8 << 20 };
const DUMP: Bounds = Bounds { within: Duration::from_secs(30), most_bytes: 256 << 20 };
/// After a failure it is tried again so soon.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// An indexer to read.
pub struct IndexerSource {
    url: Url,
    name: String,
    every: Duration,
    http: HttpClient,
    /// Where the engines that it lists go. `None`: another source has the engines.
    lists: Option<watch::Sender<Lists>>,
}

/// What a reading gave.
struct Reading {
    index: Result<Index, DecodeError>,
    size_bytes: usize,
}

impl IndexerSource {
    /// A source for each address. `lists`: where the engines that it lists go, if they are to be listened to.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn all(
        urls: Vec<IndexerUrl>,
        every: Duration,
        lists: Option<&watch::Sender<Lists>>,
    ) -> Result<Vec<Self>, InvalidOption> {
        let http = HttpClient::new()?;
        let source = |IndexerUrl(url): IndexerUrl| Self {
            name: format!("indexer/{}", shown(&url)),
            url,
            every,
            http: http.clone(),
            lists: lists.cloned(),
        };
        Ok(urls.into_iter().map(source).collect())
    }

    /// Its name as a source.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads until the process ends.
    pub async fn run(self, to: SourceHandle, shutdown: Shutdown) {
        let mut end = shutdown;
        tokio::select! {
            () = over(&mut end) => {}
            // The hub ends only with the process.
            _ = self.read_again_and_again(&to) => {}
        }
    }

    async fn read_again_and_again(&self, to: &SourceHandle) -> Result<(), HubEnded> {
        let (name, shown): (Arc<str>, &str) = (shown(&self.url).into(), shown(&self.url));
        let mut last = LastStatus::default();
        last.report(to, &self.name, SourceStatus::connecting(format!("Connecting to {shown}."))).await?;
        loop {
            let started = Instant::now();
            let (status, wait) = match self.read().await {
                Ok(Reading { index: Ok(index), size_bytes }) => {
                    let mut detail = format!(
                        "Reading the index of {shown} every {} s: {} with {}.",
                        self.every.as_secs_f64(),
                        plural(index.listeners.len() as u64, "worker", "workers"),
                        plural(
                            index.blocks.values().map(|names| names.len() as u64).sum(),
                            "block",
                            "blocks"
                        ),
                    );
                    detail.push_str(&self.list(&index));
                    let payload =
                        Payload::Indexer { name: Arc::clone(&name), index: Arc::new(index), size_bytes };
                    to.deliver(now(), payload).await?;
                    (SourceStatus::new(LinkState::Live, detail), self.every)
                }
                Ok(Reading { index: Err(error), size_bytes }) => {
                    let detail = format!("{shown} does not answer as a KV indexer of Dynamo does: {error}.");
                    let error = Box::new(error);
                    to.deliver(now(), Payload::Unreadable { topic: Topic::Indexer, error, size_bytes })
                        .await?;
                    (SourceStatus::refused(detail), self.every)
                }
                Err(SourceStatus { state, detail }) => {
                    let wait = RETRY_AFTER.min(self.every);
                    let detail =
                        format!("{detail}. Retrying in {} s. Check --indexer.", count(wait.as_secs().max(1)));
                    (SourceStatus { state, detail }, wait)
                }
            };
            last.report(to, &self.name, status).await?;
            sleep_until(started + wait).await;
        }
    }

    /// Hands on the engines that it lists. Gives what to say of those that cannot be listened to.
    fn list(&self, index: &Index) -> String {
        let Some(lists) = &self.lists else { return String::new() };
        let (engines, unusable) = ListedEngine::all(index, self.url.host_str().is_some_and(is_here));
        lists.send_if_modified(|lists| {
            let is_new = lists.get(&self.name) != Some(&engines);
            lists.insert(self.name.clone(), engines);
            is_new
        });
        match unusable.first() {
            None => String::new(),
            Some(first) => {
                let more = match unusable.len() {
                    1 => String::new(),
                    all => format!(" and {} more", count(all as u64 - 1)),
                };
                format!(" It lists {first:?}{more}, where nothing can be connected to.")
            }
        }
    }

    async fn read(&self) -> Result<Reading, SourceStatus> {
        let workers = self.body("workers", WORKERS).await?;
        let dump = self.body("dump", DUMP).await?;
        // An indexer has none, and says so.
        let loads = match self.get("loads", WORKERS).await? {
            (_, StatusCode::OK, body) => Some(body),
            _ => None,
        };
        let size_bytes = workers.len() + dump.len() + loads.as_ref().map_or(0, Bytes::len);
        let decode = move || indexer::decode(&workers, &dump, loads.as_deref());
        let index = tokio::task::spawn_blocking(decode).await;
        let index =
            index.map_err(|error| SourceStatus::connecting(format!("reading was cancelled: {error}")))?;
        Ok(Reading { index, size_bytes })
    }

    async fn get(&self, path: &str, bounds: Bounds) -> Result<(Url, StatusCode, Bytes), SourceStatus> {
        let url =
            self.url.join(path).map_err(|error| SourceStatus::refused(format!("{}: {error}", self.url)))?;
        let (status, body) = self.http.get(&url, bounds).await?;
        Ok((url, status, body))
    }

    async fn body(&self, path: &str, bounds: Bounds) -> Result<Bytes, SourceStatus> {
        match self.get(path, bounds).await? {
            (_, StatusCode::OK, body) => Ok(body),
            (url, StatusCode::NOT_FOUND, _) => Err(SourceStatus::refused(format!(
                "{url} does not exist (404); `python -m dynamo.indexer` has it"
            ))),
            (url, status, _) => Err(SourceStatus::connecting(format!("{url} responds with {status}"))),
        }
    }
}

fn shown(url: &Url) -> &str {
    url.as_str().trim_end_matches('/')
}
