//! A recorded deployment that was already running, replayed through real sockets to a server that attaches to it: its messages
//! by a real NATS server or by ZeroMQ publishers, what it registered by a folder, by a real etcd, by a frontend or by what a
//! test brings, and its workers' responses by a worker that is asked over TCP. Everything goes as fast as the server takes it.

mod registry;
pub mod truth;
mod workers;

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;
use radixscope_captures::publisher::Publisher;
use radixscope_captures::{DiscoveryChange, HeldBlocks, Recording, ZmqMessage};
use serde_json::{Value, json};

use crate::capture::Message;
use crate::discovery::Folder;
use crate::envelope::{payload, published};
use crate::etcd::Etcd;
use crate::fake_worker::FakeWorker;
use crate::nats::Nats;
use crate::radixscope::Radixscope;
use crate::replay::publish_one;
use crate::viewer::now_ms;
use crate::wait;
use registry::Registry;
use workers::Workers;

/// [`Deployment::at_once`] unless a test says otherwise.
const AT_ONCE: u64 = 500;

/// How one attaches to which recording.
#[derive(Clone, Copy, Debug)]
pub struct Attaching {
    /// The recording's name.
    pub name: &'static str,
    /// So many seconds before the first of the queries of this occasion. `None`: when the recording begins.
    pub before: Option<(&'static str, f64)>,
    /// What tells who is there.
    pub found_by: FoundBy,
    /// Which messages with KV events are lost on their way, of those numbered from 1.
    pub loses: fn(u64) -> bool,
}

/// What tells who is there.
#[derive(Clone, Copy, Debug)]
pub enum FoundBy {
    /// A frontend's list.
    Frontend,
    /// A folder that all processes write.
    Folder,
    /// etcd.
    Etcd,
    /// Something else, which this starts.
    Other(fn() -> BoxFuture<'static, Box<dyn Registrar>>),
}

/// Where the processes of a deployment register.
pub trait Registrar: Send + Sync {
    /// The flags of `serve` that lead to it.
    fn flags(&self) -> Vec<String>;

    /// Takes an entry under the key that it would have in etcd, with the lease of its process if it has one.
    fn put(&mut self, key: &str, value: &Value, lease: Option<u64>);

    /// Removes an entry.
    fn remove(&self, key: &str);
}

enum TapeItem {
    Nats(Message),
    Zmq(ZmqMessage),
    Registered(DiscoveryChange),
}

/// The deployment.
pub struct Deployment {
    tape: Vec<(f64, TapeItem)>,
    /// Recorded time from which on answers were given, and by how many workers.
    answers_from: Option<(f64, usize)>,
    truth: BTreeMap<u64, HeldBlocks>,
    nats: Option<(Nats, async_nats::Client)>,
    registry: Registry,
    /// Publishers, with what they say, by where they were when it was recorded.
    publishers: BTreeMap<String, (String, Publisher)>,
    /// Where they were, by their entries.
    channels: BTreeMap<String, String>,
    is_attached: bool,
    workers: Workers,
    worker: FakeWorker,
    loses: fn(u64) -> bool,
    kv_messages: u64,
    published: u64,
    losses: Losses,
    /// Messages between two waits for the server's word that it has them all, which takes a second each time.
    pub at_once: u64,
}

/// Messages that were lost on their way, of one publisher for each worker.
#[derive(Default)]
struct Losses {
    /// Those that show: something of the same worker arrived before and after them.
    shown: u64,
    /// Those since something arrived from each known worker.
    latest: BTreeMap<u64, u64>,
}

impl Deployment {
    /// A deployment that ran until one attaches to it, with what it had registered by then.
    pub async fn start(attaching: Attaching) -> Self {
        let recording = Recording::late(attaching.name);
        let workers = Workers::of(&recording, attaching.before.is_none());
        let (from, answers_from) = match attaching.before {
            Some((tag, before)) => {
                let (first, count) = workers.first(tag);
                (first - before, Some((first, count)))
            }
            None => (f64::NEG_INFINITY, None),
        };
        let answering = workers.clone();
        let worker = FakeWorker::start(move |call| answering.response(call)).await;
        let is_nats = recording.folder().join("nats.jsonl.gz").is_file();
        let nats = match is_nats {
            true => {
                let nats = Nats::start().await;
                let client = nats.client().await;
                Some((nats, client))
            }
            false => None,
        };
        let registry = match attaching.found_by {
            FoundBy::Frontend => Registry::frontend(&recording, worker.port()).await,
            FoundBy::Folder => Registry::Folder(Folder::default()),
            FoundBy::Etcd => Registry::etcd(Etcd::start().await),
            FoundBy::Other(start) => Registry::Other(start().await),
        };
        let mut deployment = Self {
            tape: Vec::new(),
            answers_from,
            truth: recording.truth(),
            nats,
            registry,
            publishers: BTreeMap::new(),
            channels: BTreeMap::new(),
            is_attached: false,
            workers,
            worker,
            loses: attaching.loses,
            kv_messages: 0,
            published: 0,
            losses: Losses::default(),
            at_once: AT_ONCE,
        };
        deployment.load(&recording, from).await;
        deployment
    }

    /// Takes what was published from then on, and registers what was registered by then.
    async fn load(&mut self, recording: &Recording, from: f64) {
        let mut tape: Vec<(f64, TapeItem)> = Vec::new();
        if self.nats.is_some() {
            // Subjects without subscribers are not published.
            let messages = recording.subscribed().filter(|message| message.subject.starts_with("namespace."));
            tape.extend(messages.map(|message| (message.at_s, TapeItem::Nats(message))));
        }
        tape.extend(recording.zmq_messages().map(|message| (message.at_s, TapeItem::Zmq(message))));
        tape.retain(|(at, _)| *at >= from);
        let begins = tape.iter().map(|(at, _)| *at).fold(f64::INFINITY, f64::min);
        for change in recording.discovery_changes() {
            if change.at_s < begins {
                self.register(&change).await;
            } else {
                tape.push((change.at_s, TapeItem::Registered(change)));
            }
        }
        tape.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.tape = tape;
    }

    /// The flags of `serve` that lead to it.
    pub fn flags(&self) -> Vec<String> {
        let mut flags = Vec::new();
        if let Some((nats, _)) = &self.nats {
            flags.extend(["--nats".to_owned(), nats.url()]);
        }
        flags.extend(self.registry.flags());
        flags
    }

    /// A server that attaches to it now, and hears everything from now on.
    pub async fn attach(&mut self) -> Radixscope {
        let server = Radixscope::start(["serve".to_owned()].into_iter().chain(self.flags())).await;
        server.until_ready().await;
        self.publishers.values().for_each(|(topic, publisher)| publisher.wait_for_subscribers(topic, 1));
        self.is_attached = true;
        server
    }

    /// Says everything. `requests`: workers are asked by somebody who reads the page.
    pub async fn play(&mut self, server: &Radixscope, requests: bool) {
        let mut answers_from = self.answers_from;
        for (at, published) in std::mem::take(&mut self.tape) {
            if let Some((_, count)) = answers_from.take_if(|(from, _)| *from <= at) {
                self.until_received(server).await;
                if requests {
                    self.request(server, count).await;
                }
                self.until_queried(count).await;
            }
            self.workers.pass(at);
            match published {
                TapeItem::Nats(message) => self.publish(message).await,
                TapeItem::Zmq(message) => self.publish_zmq(&message),
                TapeItem::Registered(change) => {
                    if change.value.is_none() {
                        self.until_repaired(server).await;
                    }
                    self.register(&change).await;
                }
            }
            if self.published.is_multiple_of(self.at_once) {
                self.until_received(server).await;
            }
        }
        self.workers.pass(f64::INFINITY);
        self.until_received(server).await;
    }

    /// How many messages with KV events were lost on their way, as far as anybody can tell.
    pub fn lost(&self) -> u64 {
        self.losses.shown
    }

    /// What workers were asked so far, by their ids: from which of their events on.
    pub fn queried(&self) -> Vec<(u64, Option<u64>)> {
        self.workers.queried()
    }

    /// What each worker held at the end, and that everything that led to it was said.
    pub fn truth(&self) -> &BTreeMap<u64, HeldBlocks> {
        for (worker, last) in self.workers.last_events() {
            assert_eq!(self.truth[&worker].last_event_id, last, "the last event of {worker}");
        }
        &self.truth
    }

    async fn publish(&mut self, mut message: Message) {
        if message.subject.ends_with("kv-events") && !self.arrives(&message.payload) {
            return;
        }
        message.payload = published(message.payload, |_| now_ms().0);
        let (_, client) = self.nats.as_ref().expect("it is recorded");
        publish_one(client, &message).await;
        self.published += 1;
    }

    fn publish_zmq(&mut self, message: &ZmqMessage) {
        if message.topic() == "kv-events" && !self.arrives(&message.envelope()) {
            return;
        }
        let mut frames = message.frames.clone();
        frames[3] = published(frames[3].clone(), |_| now_ms().0);
        let (_, publisher) = self.publishers.get(&message.endpoint).expect("it is registered");
        publisher.publish(&frames);
        self.published += 1;
    }

    /// Notes what a worker said. Whether it arrives.
    fn arrives(&mut self, envelope: &[u8]) -> bool {
        let worker = self.workers.published(payload(envelope));
        self.kv_messages += 1;
        if (self.loses)(self.kv_messages) {
            self.losses.latest.entry(worker).and_modify(|count| *count += 1);
            return false;
        }
        self.losses.shown += self.losses.latest.insert(worker, 0).unwrap_or(0);
        true
    }

    async fn flush(&self) {
        if let Some((_, client)) = &self.nats {
            client.flush().await.expect("NATS takes what it is sent");
        }
    }

    /// Registers an entry, with our own addresses in place of those recorded, or removes it.
    async fn register(&mut self, change: &DiscoveryChange) {
        let Some(mut value) = change.value.clone() else {
            // Whoever publishes there has ended.
            if let Some(endpoint) = self.channels.remove(&change.key) {
                self.publishers.remove(&endpoint);
            }
            self.registry.remove(&change.key).await;
            return;
        };
        registry::lead_to(&mut value, self.worker.port());
        let topic = value["topic"].as_str().unwrap_or_default().to_owned();
        let endpoint = value["transport"]["config"]["endpoint"].as_str().map(str::to_owned);
        // Engine metrics of each step have no subscribers and are not in the recordings.
        let Some(endpoint) = endpoint.filter(|_| topic != "forward-pass-metrics") else {
            self.registry.put(&change.key, &value, change.lease).await;
            return;
        };
        let publisher = Publisher::bind(1);
        value["transport"]["config"]["endpoint"] = json!(publisher.endpoint());
        self.registry.put(&change.key, &value, change.lease).await;
        if self.is_attached {
            publisher.wait_for_subscribers(&topic, 1);
        }
        self.channels.insert(change.key.clone(), endpoint.clone());
        self.publishers.insert(endpoint, (topic, publisher));
    }

    /// Somebody requests the blocks of all workers, none of which was asked before.
    async fn request(&self, server: &Radixscope, workers: usize) {
        wait::until("every worker is known", async || {
            let known = server.cluster().await["workers"].as_array().map_or(0, Vec::len);
            wait::expect(known == workers, || format!("{known} of {workers}"))
        })
        .await;
        assert_eq!(self.queried(), [], "no worker is queried without a request");
        let response = server.post("/api/v1/tree-dumps", "{}", &[]).await.json();
        let asked = response["workers"].as_array().expect("a list");
        assert!(asked.len() == workers && asked.iter().all(|one| one["asked"] == true), "{response}");
    }

    async fn until_queried(&self, workers: usize) {
        wait::until("every worker is asked", async || {
            let asked = self.queried().len();
            wait::expect(asked >= workers, || format!("{asked} of {workers}"))
        })
        .await;
    }

    /// Waits until nothing published so far is missing, because workers that leave next no longer answer.
    async fn until_repaired(&self, server: &Radixscope) {
        self.until_received(server).await;
        server
            .until_cluster("every worker is complete", |cluster| {
                let mut there = cluster["workers"].as_array().into_iter().flatten();
                let partial =
                    there.find(|one| one["gone"].is_null() && one["knowledge"]["state"] != "complete");
                wait::expect(partial.is_none(), || format!("{partial:?}"))
            })
            .await;
    }

    /// Waits until the server has received everything published so far.
    async fn until_received(&self, server: &Radixscope) {
        self.flush().await;
        let kind = if self.nats.is_some() { "nats" } else { "zmq" };
        server
            .until_cluster("everything is received", |cluster| {
                let source = source(cluster, kind);
                wait::expect(source["received"] == self.published, || {
                    format!("{} expected: {source}", self.published)
                })
            })
            .await;
    }
}

/// A source of this kind.
pub fn source<'c>(cluster: &'c Value, kind: &str) -> &'c Value {
    let sources = cluster["sources"].as_array().expect("sources");
    sources.iter().find(|source| source["kind"] == kind).unwrap_or_else(|| panic!("no {kind}: {cluster}"))
}
