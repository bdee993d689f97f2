//! Scrapes the metrics of a process over HTTP, and for a frontend also its list of workers and what its routers run with.

mod client;
#[cfg(feature = "kubernetes")]
mod pods;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use url::Url;

use axum::http::StatusCode;

use radixscope_dynamo::prometheus::{WorkerList, may_be_metrics, worker_list};
use radixscope_intake::Payload;
use radixscope_model::record::LinkState;

use crate::config::{InvalidOption, MetricsUrl, Prometheus, without_query};
use crate::hub::{HubEnded, SourceHandle};
use crate::shutdown::{Shutdown, over};
use crate::source::SourceStatus;
use crate::source::link::{LastStatus, doubled, seconds};
use crate::time::now;
use client::{Client, Response};

#[cfg(feature = "kubernetes")]
pub use pods::PodMetrics;

/// Longest wait after failures, unless the interval itself is longer.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// How often a frontend's list of workers is requested, and what its routers run with. Frontends log each request at INFO.
const LIST_EVERY: Duration = Duration::from_secs(5);
/// Longest wait while a frontend responds that it is not ready: up to 1.0 it logs an error for each such response, possibly to
/// a log that is being read.
const LONGEST_LIST_WAIT: Duration = Duration::from_secs(60);
/// Consecutive responses without a list of workers after which it is no longer requested.
const NO_LISTS: u8 = 2;
/// The same of settings. Frontends up to 1.6 respond 404 and log an error for it, so that one is enough.
const NO_POLICIES: u8 = 1;

/// A process to scrape.
pub struct PrometheusSource {
    process: MetricsUrl,
    name: String,
    interval: Duration,
    has_token: bool,
    client: Client,
}

impl PrometheusSource {
    /// Sources as the command line describes them.
    ///
    /// # Errors
    /// An option that cannot be used.
    pub fn all(options: Prometheus) -> Result<Vec<Self>, InvalidOption> {
        if options.prometheus.is_empty() {
            return Ok(Vec::new());
        }
        let client = Client::new(&options)?;
        let source = |process: &MetricsUrl| Self {
            process: process.clone(),
            name: format!("metrics/{}", process.name),
            interval: options.prometheus_interval,
            has_token: options.prometheus_token.is_some(),
            client: client.clone(),
        };
        Ok(options.prometheus.iter().map(source).collect())
    }

    /// Its name as a source.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Scrapes until the process ends.
    pub async fn run(self, to: SourceHandle, shutdown: Shutdown) {
        let mut end = shutdown;
        tokio::select! {
            () = over(&mut end) => {}
            // The hub ends only with the process.
            _ = self.scrape(&to) => {}
        }
    }

    async fn scrape(&self, to: &SourceHandle) -> Result<(), HubEnded> {
        let url = &without_query(&self.process.url);
        let process: Arc<str> = self.process.name.as_str().into();
        let mut last = LastStatus::default();
        let mut list = List::new(&self.process, ListKind::Workers);
        let mut policy = List::new(&self.process, ListKind::RouterPolicy);
        let mut failures = 0;
        last.report(to, &self.name, SourceStatus::connecting(format!("Connecting to {url}."))).await?;
        loop {
            let started = Instant::now();
            let wait = match self.fetch().await {
                Ok(text) => {
                    let listed = worker_list(&text);
                    to.deliver(now(), Payload::Scrape { process: Arc::clone(&process), text }).await?;
                    if failures > 0 {
                        list.start_again();
                        policy.start_again();
                    }
                    failures = 0;
                    // Only a frontend's /health lists workers and their query endpoints. A worker's own may respond 503 for
                    // long, and logs an error each time.
                    let is_frontend = listed != WorkerList::Nowhere;
                    if is_frontend {
                        list.request_if_due(&self.client, to).await?;
                        policy.request_if_due(&self.client, to).await?;
                    }
                    let given = |list: &List, text| if list.is_given && is_frontend { text } else { "" };
                    let detail = format!(
                        "Scraping {url} every {} s{}{}.",
                        self.interval.as_secs_f64(),
                        given(&list, ", and its list of workers"),
                        given(&policy, ", and its router policy")
                    );
                    last.report(to, &self.name, SourceStatus::new(LinkState::Live, detail)).await?;
                    self.interval
                }
                Err(SourceStatus { state, detail }) => {
                    let wait = wait_after(self.interval, failures);
                    failures = failures.saturating_add(1);
                    let detail = format!("{detail} Retrying in {}.", seconds(wait));
                    last.report(to, &self.name, SourceStatus { state, detail }).await?;
                    wait
                }
            };
            tokio::time::sleep_until(started + wait).await;
        }
    }

    async fn fetch(&self) -> Result<Bytes, SourceStatus> {
        let response = self.client.get(&self.process.url).await?;
        self.metrics(response)
    }

    /// The metrics of a response, or why there are none.
    fn metrics(&self, response: Response) -> Result<Bytes, SourceStatus> {
        let url = &without_query(&self.process.url);
        let Response { status, body, location } = response;
        match status {
            StatusCode::OK if may_be_metrics(&body) => Ok(body),
            StatusCode::OK => Err(SourceStatus::refused(format!(
                "{url} does not return Prometheus metrics. Is the path right? Dynamo's is /metrics."
            ))),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(SourceStatus::refused(if self.has_token {
                    format!(
                        "{url} rejects the token ({status}). Check --prometheus-token (RADIXSCOPE_PROMETHEUS_TOKEN)."
                    )
                } else {
                    format!(
                        "{url} requires authentication ({status}). Set a token with --prometheus-token \
                     (RADIXSCOPE_PROMETHEUS_TOKEN)."
                    )
                }))
            }
            StatusCode::NOT_FOUND => Err(SourceStatus::refused(format!(
                "{url} does not exist (404). A frontend serves /metrics on its HTTP port, a worker on DYN_SYSTEM_PORT."
            ))),
            status if status.is_redirection() => {
                // The location may repeat the query, which can contain a token.
                let to = |to: String| format!(" to {:?}", to.split('?').next().unwrap_or_default());
                let location = location.map(to).unwrap_or_default();
                Err(SourceStatus::refused(format!(
                    "{url} redirects{location} ({status}); use that address instead."
                )))
            }
            status => Err(SourceStatus::connecting(format!("{url} responds with {status}."))),
        }
    }
}

/// Responses of the processes at `/health`, each with its name. Processes that do not respond are omitted.
///
/// # Errors
/// An option that cannot be used.
pub(crate) async fn health(options: &Prometheus) -> Result<Vec<(String, Bytes)>, InvalidOption> {
    if options.prometheus.is_empty() {
        return Ok(Vec::new());
    }
    let client = Client::new(options)?;
    let responses = options.prometheus.iter().map(async |process| {
        let response = client.get(&List::new(process, ListKind::Workers).url).await;
        response.ok().map(|response| (process.name.clone(), response.body))
    });
    Ok(futures_util::future::join_all(responses).await.into_iter().flatten().collect())
}

/// What a frontend lists.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ListKind {
    /// Workers, at `/health`.
    Workers,
    /// What its routers run with, at `/router_policy` (from 1.7).
    RouterPolicy,
}

impl ListKind {
    const fn path(self) -> &'static str {
        match self {
            Self::Workers => "/health",
            Self::RouterPolicy => "/router_policy",
        }
    }

    /// What a response contains that is a list.
    const fn key(self) -> &'static [u8] {
        match self {
            Self::Workers => b"\"instances\"",
            Self::RouterPolicy => b"\"routers\"",
        }
    }

    /// Consecutive responses without one after which this version has none.
    const fn most_without(self) -> u8 {
        match self {
            Self::Workers => NO_LISTS,
            Self::RouterPolicy => NO_POLICIES,
        }
    }

    fn payload(self, frontend: Arc<str>, response: Bytes) -> Payload {
        match self {
            Self::Workers => Payload::Health { frontend, response },
            Self::RouterPolicy => Payload::RouterPolicy { frontend, response },
        }
    }
}

/// A list that a frontend may give.
struct List {
    kind: ListKind,
    url: Url,
    frontend: Arc<str>,
    /// Whether the process returned a list.
    is_given: bool,
    /// Consecutive responses without one.
    without: u8,
    /// Consecutive "not ready" responses.
    unready: u32,
    due: Instant,
}

impl List {
    fn new(process: &MetricsUrl, kind: ListKind) -> Self {
        let mut url = process.url.clone();
        url.set_path(kind.path());
        url.set_query(None);
        let frontend = process.name.as_str().into();
        Self { kind, url, frontend, is_given: false, without: 0, unready: 0, due: Instant::now() }
    }

    /// Starts over after failures, because it may be another process.
    fn start_again(&mut self) {
        (self.without, self.unready) = (0, 0);
        self.due = Instant::now();
    }

    /// Requests the list if it is due, and delivers it. A missing list is no failure: most processes have none.
    async fn request_if_due(&mut self, client: &Client, to: &SourceHandle) -> Result<(), HubEnded> {
        if self.without >= self.kind.most_without() || Instant::now() < self.due {
            return Ok(());
        }
        self.due = Instant::now() + LIST_EVERY;
        // Failed: requested again.
        let Ok(Response { status, body, .. }) = client.get(&self.url).await else { return Ok(()) };
        if status == StatusCode::SERVICE_UNAVAILABLE {
            self.due = Instant::now() + list_wait(self.unready);
            self.unready = self.unready.saturating_add(1);
        } else {
            self.unready = 0;
        }
        // A frontend without workers responds 503, with its list.
        let is_answer = matches!(status, StatusCode::OK | StatusCode::SERVICE_UNAVAILABLE);
        if is_answer && memchr::memmem::find(&body, self.kind.key()).is_some() {
            self.is_given = true;
            self.without = 0;
            let frontend = Arc::clone(&self.frontend);
            return to.deliver(now(), self.kind.payload(frontend, body)).await;
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            return Ok(());
        }
        self.without += 1;
        if self.without >= self.kind.most_without() {
            self.is_given = false;
        }
        Ok(())
    }
}

/// Backoff after "not ready" response number `unready`, from 0.
fn list_wait(unready: u32) -> Duration {
    doubled(LIST_EVERY, unready.saturating_add(1), LONGEST_LIST_WAIT)
}

/// Backoff after failed scrape number `failures`, from 0.
fn wait_after(interval: Duration, failures: u32) -> Duration {
    doubled(interval, failures, LONGEST_WAIT.max(interval))
}

#[cfg(test)]
mod tests;
