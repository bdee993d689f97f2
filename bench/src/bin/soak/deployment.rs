//! The workers of a soak, of which one half publishes over NATS and the other over ZeroMQ: registered in etcd, replaced one after
//! another, publishing at a steady rate. Counts every message to which a publisher gave a number, delivered or not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::Client;
use async_nats::connection::State;
use radixscope_captures::publisher::{Publisher, frames};
use serde_json::Value;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::worker::Cache;
use radixscope_tests::discovery::Registered;
use radixscope_tests::envelope::envelope;
use radixscope_tests::etcd::Etcd;
use radixscope_tests::fake_worker::FakeWorker;

const SUBJECT: &str = "namespace.dynamo.component.backend.endpoint.generate.kv-events";
const TOPIC: &str = "kv-events";
/// Steps a second in which messages are published.
const STEPS_PER_S: u64 = 50;
/// A lease outlives every outage of a soak: a worker leaves when it says so.
const LEASE_S: u32 = 3_600;
/// How long NATS may take a message before it counts as lost. A client that reconnects retains what it is given until then, and
/// a publisher must not wait for it.
const TAKEN_WITHIN: Duration = Duration::from_millis(200);
/// Ids of publishers are those of their workers and this.
const PUBLISHER_IDS: u64 = 1 << 40;

/// How a worker's events travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EventPlane {
    /// Over NATS.
    Nats,
    /// Over a ZeroMQ socket of its own.
    Zmq,
}

/// A worker that runs.
pub(super) struct Worker {
    registered: Registered,
    plane: EventPlane,
    publisher: Option<Publisher>,
    cache: Arc<Mutex<Cache>>,
    /// Answers queries for its blocks.
    _answers: FakeWorker,
    /// The number of its next message.
    sequence: u64,
}

impl Worker {
    /// A worker that is registered and publishes nothing yet; one with a socket has its subscriber, so that the server has every
    /// message of it that is not lost on the way.
    pub(super) async fn join(worker_id: u64, plane: EventPlane, etcd: &Etcd) -> Self {
        let cache = Arc::new(Mutex::new(Cache::new(worker_id)));
        let of = Arc::clone(&cache);
        let answers = FakeWorker::start(move |call| lock(&of).respond(call)).await;
        let publisher = (plane == EventPlane::Zmq).then(|| Publisher::bind(1));
        let registered = Registered {
            worker_id,
            publisher_id: worker_id | PUBLISHER_IDS,
            zmq_port: publisher.as_ref().map_or(0, |publisher| publisher.address().port()),
            tcp_port: answers.port(),
        };
        etcd.lease(worker_id, LEASE_S).await;
        for (key, value) in registered.entries() {
            // A publisher without a socket announces none.
            if plane == EventPlane::Zmq || !key.starts_with("v1/event_channels/") {
                etcd.put(&key, &value, Some(worker_id)).await;
            }
        }
        Self { registered, plane, publisher, cache, _answers: answers, sequence: 0 }
    }

    /// Whether messages of it would reach somebody.
    pub(super) fn is_subscribed(&self) -> bool {
        self.publisher.as_ref().is_none_or(|publisher| publisher.subscribers(TOPIC) > 0)
    }

    /// Its id.
    pub(super) fn id(&self) -> u64 {
        self.registered.worker_id
    }

    /// How its events travel.
    pub(super) fn plane(&self) -> EventPlane {
        self.plane
    }

    fn next_message(&mut self) -> (u64, Vec<u8>) {
        let event: Value = lock(&self.cache).next_event();
        let sequence = self.sequence;
        self.sequence += 1;
        (sequence, envelope(self.registered.publisher_id, sequence, TOPIC, &[event]))
    }
}

/// The workers that run, and what they published.
pub(super) struct Deployment {
    client: Client,
    /// In the order in which they joined.
    workers: Vec<Worker>,
    /// Counts the messages, of which each worker in turn publishes one.
    turn: usize,
    /// Messages published over NATS, and over ZeroMQ.
    published: [u64; 2],
}

impl Deployment {
    /// Nobody yet.
    pub(super) fn new(client: Client) -> Self {
        Self { client, workers: Vec::new(), turn: 0, published: [0; 2] }
    }

    /// Messages to which a publisher of this plane gave a number.
    pub(super) fn published(&self, plane: EventPlane) -> u64 {
        self.published[plane as usize]
    }

    /// One more, the youngest.
    pub(super) fn add(&mut self, worker: Worker) {
        self.workers.push(worker);
    }

    /// The oldest stops, except for so many that stay.
    pub(super) fn remove_oldest(&mut self, but: usize) -> Option<Worker> {
        (self.workers.len() > but).then(|| self.workers.remove(but))
    }

    /// Ids of the workers.
    pub(super) fn ids(&self) -> Vec<u64> {
        self.workers.iter().map(Worker::id).collect()
    }

    /// The blocks that each worker holds, by its id.
    pub(super) fn held_blocks(&self) -> Vec<(u64, u64)> {
        self.workers.iter().map(|worker| (worker.id(), lock(&worker.cache).blocks())).collect()
    }

    /// Ends the connections of every second ZeroMQ publisher.
    pub(super) fn disconnect_publishers(&self) {
        let publishers = self.workers.iter().filter_map(|worker| worker.publisher.as_ref());
        publishers.step_by(2).for_each(Publisher::disconnect);
    }

    /// So many messages, in turn by all workers.
    async fn publish(&mut self, messages: u64) {
        for _ in 0..messages {
            let Some(at) = self.turn.checked_rem(self.workers.len()) else { return };
            self.turn += 1;
            let worker = &mut self.workers[at];
            let (sequence, message) = worker.next_message();
            self.published[worker.plane as usize] += 1;
            match &worker.publisher {
                // A real socket drops too what its subscriber does not take.
                Some(publisher) => {
                    publisher.offer(&frames(TOPIC, worker.registered.publisher_id, sequence, &message));
                }
                None if self.client.connection_state() == State::Connected => {
                    let taken = timeout(TAKEN_WITHIN, self.client.publish(SUBJECT, message.into())).await;
                    drop(taken); // what is not taken is lost, and its number is used
                }
                None => {}
            }
        }
    }
}

/// Publishes so many events a second, until it is over.
pub(super) async fn publish(
    deployment: Arc<tokio::sync::Mutex<Deployment>>,
    events_per_s: u64,
    is_over: Arc<AtomicBool>,
) {
    let mut every = interval(Duration::from_millis(1_000 / STEPS_PER_S));
    // A step that is late is made up for, so that the rate is kept.
    every.set_missed_tick_behavior(MissedTickBehavior::Burst);
    while !is_over.load(Ordering::Relaxed) {
        every.tick().await;
        deployment.lock().await.publish(events_per_s / STEPS_PER_S).await;
    }
    // What the client still holds.
    let client = deployment.lock().await.client.clone();
    client.flush().await.expect("NATS takes what it is sent");
}

fn lock(cache: &Mutex<Cache>) -> std::sync::MutexGuard<'_, Cache> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}
