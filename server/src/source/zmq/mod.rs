//! Dynamo's ZeroMQ event plane, its default from 1.3 on: publishers with a socket each, as discovery names them, or
//! brokers between them and us.
//!
//! # How it works
//!
//! Every connection is a task; all of them run on one thread that does nothing else, since a publisher drops what a
//! slow subscriber does not take. A connection that ends is tried again until discovery withdraws the publisher. That
//! it broke is told when messages come again, with the publisher whose it was: its next number then says what was
//! lost. Frames are opened as far as ZeroMQ goes, the envelope is handed on as NATS would carry it.
//! `forward-pass-metrics` are left out, at a broker only after they came: its topics begin with the namespace.

mod broker;
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
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::MissedTickBehavior;

use radixscope_dynamo::subject::{Subject, Transport};
use radixscope_intake::command::{Command, ZmqChannel};
use radixscope_model::record::{LinkState, Topic};

use crate::config::ZmqEndpoint;
use crate::hub::SourceHandle;
use crate::shutdown::{Shutdown, over};
use crate::source::gate::{Crossing, Evidence, Gate};
use crate::source::link::{doubled, next_of, on_own_thread, spread};
use broker::Brokers;
use links::{Links, TargetComparison};
use peer::Waits;
use publisher::Publisher;

/// First wait after a connection ended; each further one doubles it.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// Longest wait between attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// Publishers listened to at once: a thousand workers have three thousand.
const MAX_PUBLISHERS: usize = 8_192;
/// Reports of connections that may wait.
const MAX_REPORTS: usize = 1_024;
/// How often it is looked how long something lasts.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The ZeroMQ event plane.
pub struct Source {
    /// Brokers' XPUB sockets. None: publishers are listened to.
    brokers: Vec<ZmqEndpoint>,
    /// Dynamo namespace to listen to; none: all.
    namespace: Option<String>,
    gate: Arc<Gate>,
    waits: Waits,
}

/// How one connection tells where it stands.
#[derive(Clone)]
struct Report {
    id: u64,
    to: mpsc::Sender<(u64, TargetComparison)>,
}

impl Report {
    async fn stands(&self, standing: TargetComparison) {
        // Whoever asked may have gone: then so do we.
        let _ = self.to.send((self.id, standing)).await;
    }
}

impl Source {
    /// A source that listens to these brokers, or without any to the publishers that commands name.
    pub fn new(brokers: Vec<ZmqEndpoint>, namespace: Option<String>, gate: &Arc<Gate>) -> Self {
        Self { brokers, namespace, gate: Arc::clone(gate), waits: Waits::USUAL }
    }

    /// What it listens to.
    pub fn name(&self) -> String {
        let brokers: Vec<_> = self.brokers.iter().map(ToString::to_string).collect();
        if brokers.is_empty() {
            "ZeroMQ publishers".to_owned()
        } else {
            format!("ZeroMQ broker {}", brokers.join(", "))
        }
    }

    /// Listens until the process ends, to brokers or to whom commands name.
    pub async fn run(self, to: SourceHandle, shutdown: Shutdown) {
        let first = (LinkState::Connecting, "Starting.".to_owned());
        let name = self.name();
        let (to_thread, mut stopped) = (to.clone(), shutdown.clone());
        let listen = move |say| match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(async {
                tokio::select! {
                    () = over(&mut stopped) => {}
                    () = Listening::new(self, to_thread, say).run() => {}
                }
            }),
            Err(error) => tracing::error!(%error, "no runtime to listen with"),
        };
        on_own_thread("zmq", name, first, (&to, shutdown), listen).await;
    }
}

/// Everything that is listened to. Ends with its runtime.
struct Listening {
    source: Source,
    to: SourceHandle,
    say: watch::Sender<(LinkState, String)>,
    links: Links,
    report: mpsc::Sender<(u64, TargetComparison)>,
    reports: mpsc::Receiver<(u64, TargetComparison)>,
    /// By endpoint, as it was named.
    publishers: HashMap<String, Listened>,
    /// Brokers that discovery names, by endpoint, and what they have in common.
    brokers: HashMap<String, (u64, AbortHandle)>,
    discovered: Option<Arc<Brokers>>,
    next_id: u64,
}

/// A publisher that is listened to.
struct Listened {
    id: u64,
    channel: ZmqChannel,
    task: AbortHandle,
}

impl Listening {
    fn new(source: Source, to: SourceHandle, say: watch::Sender<(LinkState, String)>) -> Self {
        let links = Links::new(if source.brokers.is_empty() { "publishers" } else { "brokers" });
        let (report, reports) = mpsc::channel(MAX_REPORTS);
        let (publishers, brokers) = (HashMap::new(), HashMap::new());
        Self { source, to, say, links, report, reports, publishers, brokers, discovered: None, next_id: 0 }
    }

    async fn run(mut self) {
        let mut commands = self.to.take_commands();
        self.listen_to_brokers();
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = look.tick() => {}
                Some((id, standing)) = self.reports.recv() => self.links.stands(id, standing),
                command = next_of(&mut commands) => self.obey(command),
            }
            let (state, mut words) = self.links.to_text();
            if let Some(refused) = self.source.gate.refusals().sentence(Crossing::ZmqConnection.as_str()) {
                words.push_str(&format!(" Connections: {refused}"));
            }
            let words = (state, words);
            self.say.send_if_modified(|last| {
                let is_new = *last != words;
                *last = words;
                is_new
            });
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

    fn obey(&mut self, command: Command) {
        match command {
            // Whoever names a broker gets what comes from there, once.
            Command::Listen(_) if !self.source.brokers.is_empty() => {}
            Command::Listen(channel) => self.listen(channel),
            // One that took over the port of another before that was withdrawn stays.
            Command::Unlisten { endpoint, publisher_id } => {
                if self
                    .publishers
                    .get(&endpoint)
                    .is_some_and(|known| known.channel.publisher_id == publisher_id)
                {
                    self.unlisten(&endpoint);
                }
            }
            // Those that the operator named are listened to, and no others.
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
            Err(words) => tokio::spawn(async move {
                report.stands(TargetComparison::Broken { words, is_refused: true }).await
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
            self.links.left_out += 1;
            return;
        }
        let ZmqChannel { endpoint, publisher_id, subject } = channel.clone();
        let topic = subject.topic.as_str();
        let report = self.link(format!("{endpoint} ({topic} of publisher {publisher_id:x})"));
        let id = report.id;
        let task = match endpoint.parse() {
            Ok(address) => {
                let subject = Arc::new(Subject { transport: Transport::Zmq, ..(*subject).clone() });
                let (to, waits, gate) = (self.to.clone(), self.source.waits, Arc::clone(&self.source.gate));
                let publisher = Publisher { endpoint: address, publisher_id, subject, to, gate, waits };
                tokio::spawn(publisher.listen(report))
            }
            Err(words) => tokio::spawn(async move {
                report.stands(TargetComparison::Broken { words, is_refused: true }).await
            }),
        };
        self.publishers.insert(endpoint, Listened { id, channel, task: task.abort_handle() });
    }

    fn unlisten(&mut self, endpoint: &str) {
        if let Some(Listened { id, task, .. }) = self.publishers.remove(endpoint) {
            task.abort();
            self.links.remove(id);
        }
    }

    /// Whether messages on a subject are decoded, and of the namespace that is asked for.
    fn is_wanted(&self, subject: &Subject) -> bool {
        let is_read = matches!(subject.topic, Topic::KvEvents | Topic::KvMetrics | Topic::ActiveSequences);
        is_read && self.source.namespace.as_deref().is_none_or(|namespace| subject.is_in(namespace))
    }

    fn link(&mut self, to: String) -> Report {
        self.next_id += 1;
        self.links.add(self.next_id, to);
        Report { id: self.next_id, to: self.report.clone() }
    }
}

/// How long to wait after so many attempts that failed in a row.
fn wait_after(failed: u32) -> Duration {
    spread(doubled(FIRST_WAIT, failed, LONGEST_WAIT))
}
