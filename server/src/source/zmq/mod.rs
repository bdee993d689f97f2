//! The ZeroMQ event plane, Dynamo's default from 1.3 on: publishers that discovery names, each with its own socket, or brokers.
//!
//! # How it works
//! Every connection is a task; all run on one dedicated thread, since a publisher drops messages for a slow subscriber. A lost
//! connection is retried until discovery removes the publisher. The break is reported, with the publisher, when messages arrive
//! again: their sequence number shows what was lost. Only the ZeroMQ framing is removed; the envelope is delivered as it is
//! over NATS. `forward-pass-metrics` are not subscribed to; brokers send them anyway, because their topics begin with the
//! namespace, and they are discarded.

mod broker;
mod engines;
mod links;
mod peer;
mod publisher;
mod received;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::MissedTickBehavior;

use radixscope_dynamo::subject::{Subject, Transport};
use radixscope_intake::command::{Command, ZmqChannel};
use radixscope_model::record::{LinkState, Topic};

use crate::config::ZmqEndpoint;
use crate::hub::SourceHandle;
use crate::shutdown::{Shutdown, over};
use crate::source::SourceStatus;
use crate::source::gate::{Crossing, Evidence, Gate};
use crate::source::link::{StatusSender, doubled, next_command, run_on_thread, with_jitter};
use broker::Brokers;
#[cfg(feature = "kubernetes")]
pub use engines::PodEngines;
pub use engines::{EngineSource, ListedEngine, ListedEngines, Lists};
use links::{Links, PublisherLink};
use peer::Timeouts;
use publisher::Publisher;

/// First wait after a lost connection; it doubles with each attempt.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// Longest wait between attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// How long the thread pauses before it waits for its sockets: one wait then finds the messages of many publishers, instead of
/// one of one. Sockets buffer much more than arrives meanwhile.
const PAUSE_BEFORE_WAIT: Duration = Duration::from_micros(500);
/// Maximum connected publishers: a thousand workers have three thousand.
const MAX_PUBLISHERS: usize = 8_192;
/// Capacity of the channel for link status reports.
const MAX_REPORTS: usize = 1_024;
/// How often the description is updated.
const STATUS_EVERY: Duration = Duration::from_secs(1);

/// The ZeroMQ event plane.
pub struct ZmqSource {
    /// XPUB sockets of brokers. Empty: publishers are connected directly.
    brokers: Vec<ZmqEndpoint>,
    /// Dynamo namespace to listen to; `None`: all.
    namespace: Option<String>,
    gate: Arc<Gate>,
    timeouts: Timeouts,
}

/// Sends the status of one connection.
#[derive(Clone)]
struct LinkReport {
    id: u64,
    to: mpsc::Sender<(u64, PublisherLink)>,
}

impl LinkReport {
    async fn set_status(&self, status: PublisherLink) {
        // Fails only during shutdown.
        let _ = self.to.send((self.id, status)).await;
    }
}

impl ZmqSource {
    /// A source for these brokers, or without brokers for the publishers in commands.
    pub fn new(brokers: Vec<ZmqEndpoint>, namespace: Option<String>, gate: &Arc<Gate>) -> Self {
        Self { brokers, namespace, gate: Arc::clone(gate), timeouts: Timeouts::DEFAULT }
    }

    /// Its name as a source.
    pub fn name(&self) -> String {
        let brokers: Vec<_> = self.brokers.iter().map(ToString::to_string).collect();
        if brokers.is_empty() {
            "ZeroMQ publishers".to_owned()
        } else {
            format!("ZeroMQ broker {}", brokers.join(", "))
        }
    }

    /// Listens until the process ends.
    pub async fn run(self, to: SourceHandle, shutdown: Shutdown) {
        let name = self.name();
        let listen = |to, status| Subscriptions::new(self, to, status).run();
        run_with_sockets(("zmq", name), to, shutdown, listen).await;
    }
}

/// Runs what listens to sockets on a thread of its own until the process ends. `name`: of the thread, and of the source.
async fn run_with_sockets<F: Future<Output = ()>>(
    (thread, name): (&str, String),
    to: SourceHandle,
    shutdown: Shutdown,
    listen: impl FnOnce(SourceHandle, StatusSender) -> F + Send + 'static,
) {
    let first = SourceStatus::new(LinkState::Connecting, "Starting.");
    let (to_thread, mut stopped) = (to.clone(), shutdown.clone());
    let pause = || std::thread::sleep(PAUSE_BEFORE_WAIT);
    let run = move |status| match Builder::new_current_thread().enable_all().on_thread_park(pause).build() {
        Ok(runtime) => runtime.block_on(async {
            tokio::select! {
                () = over(&mut stopped) => {}
                () = listen(to_thread, status) => {}
            }
        }),
        Err(error) => tracing::error!(%error, "the runtime for sockets could not be started"),
    };
    run_on_thread(thread, name, first, (&to, shutdown), run).await;
}

/// All connections. They end with the runtime.
struct Subscriptions {
    source: ZmqSource,
    to: SourceHandle,
    status: StatusSender,
    links: Links,
    report: mpsc::Sender<(u64, PublisherLink)>,
    reports: mpsc::Receiver<(u64, PublisherLink)>,
    /// By endpoint.
    publishers: HashMap<String, Subscription>,
    /// Brokers that discovery names, by endpoint, and their shared state.
    brokers: HashMap<String, (u64, AbortHandle)>,
    discovered: Option<Arc<Brokers>>,
    next_id: u64,
}

/// A connected publisher.
struct Subscription {
    id: u64,
    channel: ZmqChannel,
    task: AbortHandle,
}

impl Subscriptions {
    fn new(source: ZmqSource, to: SourceHandle, status: StatusSender) -> Self {
        let links = Links::new(if source.brokers.is_empty() { "publishers" } else { "brokers" });
        let (report, reports) = mpsc::channel(MAX_REPORTS);
        let (publishers, brokers) = (HashMap::new(), HashMap::new());
        Self { source, to, status, links, report, reports, publishers, brokers, discovered: None, next_id: 0 }
    }

    async fn run(mut self) {
        let mut commands = self.to.take_commands();
        self.listen_to_brokers();
        let mut look = tokio::time::interval(STATUS_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = look.tick() => {}
                Some((id, status)) = self.reports.recv() => self.links.set_status(id, status),
                command = next_command(&mut commands) => self.handle_command(command),
            }
            let mut status = self.links.status();
            if let Some(refused) = self.source.gate.refusals().sentence(Crossing::ZmqConnection.as_str()) {
                status.detail.push_str(&format!(" Connections: {refused}"));
            }
            self.status.set(status);
        }
    }

    fn listen_to_brokers(&mut self) {
        let endpoints = self.source.brokers.clone();
        let brokers = Brokers::new(&self.source, self.to.clone());
        for endpoint in endpoints {
            let report = self.link(endpoint.to_string());
            tokio::spawn(Arc::clone(&brokers).listen(endpoint, Evidence::Operator, report));
        }
    }

    fn handle_command(&mut self, command: Command) {
        match command {
            // With `--zmq-broker`, publishers are not connected directly, which would duplicate messages.
            Command::Listen(_) if !self.source.brokers.is_empty() => {}
            Command::Listen(channel) => self.listen(channel),
            // A publisher that reused the port before the old one was removed stays.
            Command::Unlisten { endpoint, publisher_id } => {
                if self
                    .publishers
                    .get(&endpoint)
                    .is_some_and(|known| known.channel.publisher_id == publisher_id)
                {
                    self.unlisten(&endpoint);
                }
            }
            // Brokers given as options take precedence.
            Command::ListenToBroker { endpoint } if self.source.brokers.is_empty() => {
                self.listen_to_broker(endpoint);
            }
            Command::LeaveBroker { endpoint } => {
                if let Some((id, task)) = self.brokers.remove(&endpoint) {
                    task.abort();
                    self.links.remove(id);
                }
            }
            Command::ListenToBroker { .. }
            | Command::Query(_)
            | Command::CancelQuery { .. }
            | Command::Subscribe(_) => {}
        }
    }

    /// A broker that discovery names.
    fn listen_to_broker(&mut self, endpoint: String) {
        if self.brokers.contains_key(&endpoint) || self.links.len() == MAX_PUBLISHERS {
            return;
        }
        let report = self.link(format!("broker {endpoint}"));
        let id = report.id;
        let task = match endpoint.parse() {
            Ok(address) => {
                let (source, to) = (&self.source, &self.to);
                let shared = self.discovered.get_or_insert_with(|| Brokers::new(source, to.clone()));
                tokio::spawn(Arc::clone(shared).listen(address, Evidence::Discovery, report))
            }
            Err(detail) => tokio::spawn(async move {
                report.set_status(PublisherLink::Broken { detail, is_refused: true }).await
            }),
        };
        self.brokers.insert(endpoint, (id, task.abort_handle()));
    }

    fn listen(&mut self, channel: ZmqChannel) {
        if self.publishers.get(&channel.endpoint).is_some_and(|known| known.channel == channel) {
            return;
        }
        self.unlisten(&channel.endpoint);
        if !self.is_wanted(&channel.subject) {
            return;
        }
        if self.links.len() == MAX_PUBLISHERS {
            self.links.excluded += 1;
            return;
        }
        let ZmqChannel { endpoint, publisher_id, subject } = channel.clone();
        let topic = subject.topic.as_str();
        let report = self.link(format!("{endpoint} ({topic} of publisher {publisher_id:x})"));
        let id = report.id;
        let task = match endpoint.parse() {
            Ok(address) => {
                let subject = Arc::new(Subject { transport: Transport::Zmq, ..(*subject).clone() });
                let (to, timeouts, gate) =
                    (self.to.clone(), self.source.timeouts, Arc::clone(&self.source.gate));
                let publisher = Publisher { endpoint: address, publisher_id, subject, to, gate, timeouts };
                tokio::spawn(publisher.listen(report))
            }
            Err(detail) => tokio::spawn(async move {
                report.set_status(PublisherLink::Broken { detail, is_refused: true }).await
            }),
        };
        self.publishers.insert(endpoint, Subscription { id, channel, task: task.abort_handle() });
    }

    fn unlisten(&mut self, endpoint: &str) {
        if let Some(Subscription { id, task, .. }) = self.publishers.remove(endpoint) {
            task.abort();
            self.links.remove(id);
        }
    }

    /// Whether messages on a subject are decoded, and belong to the selected namespace.
    fn is_wanted(&self, subject: &Subject) -> bool {
        let is_read = matches!(
            subject.topic,
            Topic::KvEvents | Topic::KvMetrics | Topic::ActiveSequences | Topic::SessionAffinity
        );
        is_read && self.source.namespace.as_deref().is_none_or(|namespace| subject.is_in(namespace))
    }

    fn link(&mut self, to: String) -> LinkReport {
        self.next_id += 1;
        self.links.add(self.next_id, to);
        LinkReport { id: self.next_id, to: self.report.clone() }
    }
}

/// Backoff with jitter after `failed` consecutive failures.
fn wait_after(failed: u32) -> Duration {
    with_jitter(doubled(FIRST_WAIT, failed, LONGEST_WAIT))
}
