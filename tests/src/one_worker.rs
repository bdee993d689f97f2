//! A worker that runs for long, with a real NATS server: registered in a folder, publishing events, answering queries for its
//! blocks as scripted.

use serde_json::{Value, json};

use crate::discovery::{Folder, Registered};
use crate::envelope::envelope;
use crate::fake_worker::{Call, FakeWorker, Script, whole};
use crate::nats::Nats;
use crate::radixscope::Radixscope;
use crate::wait;

/// Its id.
pub const WORKER: u64 = 7_668_682_384_961_603_590;
/// Publisher of its events.
pub const PUBLISHER: u64 = 3_916_204_183_855_218;
/// Subject of its events.
pub const SUBJECT: &str = "namespace.dynamo.component.backend.endpoint.generate.kv-events";
/// Blocks are stored below `parent`; their hashes are their tokens' hashes.
pub fn stored(event_id: u64, parent: Option<u64>, blocks: impl IntoIterator<Item = u64>) -> Value {
    let blocks: Vec<Value> =
        blocks.into_iter().map(|hash| json!({"block_hash": hash, "tokens_hash": hash})).collect();
    event(event_id, &json!({"stored": {"parent_hash": parent, "blocks": blocks}}))
}

/// Blocks are removed.
pub fn removed(event_id: u64, hashes: &[u64]) -> Value {
    event(event_id, &json!({"removed": {"block_hashes": hashes}}))
}

/// An event of the worker.
pub fn event(event_id: u64, data: &Value) -> Value {
    json!({"worker_id": WORKER, "event": {"event_id": event_id, "dp_rank": 0, "data": data}})
}

/// A whole response, in the codec of the call.
pub fn response(call: &Call, response: &Value) -> Script {
    let item = json!({"data": response, "complete_final": false});
    let item = match call.is_msgpack() {
        true => rmp_serde::to_vec_named(&item).expect("plain data"),
        false => item.to_string().into_bytes(),
    };
    Script::response(whole(&item, call.is_msgpack()))
}

/// A response with all blocks.
pub fn tree(events: &[Value], last_event_id: u64) -> Value {
    json!({"TreeDump": {"events": events, "last_event_id": last_event_id, "reset_scope": "all"}})
}

/// A worker that runs for long: registered in a folder, publishing over NATS, answering as scripted.
pub struct Deployment {
    /// The broker.
    pub nats: Nats,
    /// A client of it.
    pub client: async_nats::Client,
    /// Where it is registered.
    pub folder: Folder,
    registered: Vec<String>,
    /// The worker.
    pub worker: FakeWorker,
    /// The number of the next message; raised by hand, so many are lost.
    pub sequence: u64,
}

impl Deployment {
    /// Starts everything; nothing is published yet.
    pub async fn start(behaviour: impl Fn(&Call) -> Script + Send + Sync + 'static) -> Self {
        let nats = Nats::start().await;
        let client = nats.client().await;
        let worker = FakeWorker::start(behaviour).await;
        let (folder, registered) = (Folder::default(), Vec::new());
        let mut deployment = Self { nats, client, folder, registered, worker, sequence: 300 };
        deployment.register(PUBLISHER);
        deployment
    }

    /// Registers the worker as the process that publishes under this id, in place of what it registered before.
    pub fn register(&mut self, publisher_id: u64) {
        let tcp_port = self.worker.port();
        let entries = Registered { worker_id: WORKER, publisher_id, zmq_port: 1, tcp_port }.entries();
        // NATS is the event plane: no channel is registered.
        let entries = entries.into_iter().filter(|(key, _)| !key.contains("event_channels"));
        self.keep(entries.collect());
    }

    /// Keeps these entries and no others.
    pub fn keep(&mut self, entries: Vec<(String, Value)>) {
        self.registered.drain(..).for_each(|key| self.folder.remove(&key));
        for (key, value) in entries {
            self.folder.put(&key, &value);
            self.registered.push(key);
        }
    }

    /// Publishes events in one message.
    pub async fn publish(&mut self, events: &[Value]) {
        self.publish_as(PUBLISHER, events).await;
    }

    /// The same as another process.
    pub async fn publish_as(&mut self, publisher_id: u64, events: &[Value]) {
        let message = envelope(publisher_id, self.sequence, "kv-events", &events);
        self.sequence += 1;
        self.client.publish(SUBJECT, message.into()).await.expect("the server lives");
        self.client.flush().await.expect("the server lives");
    }

    /// Waits until the worker was queried; gives the first query.
    pub async fn until_queried(&self) -> Call {
        wait::until("it is queried", async || {
            self.worker.calls().into_iter().next().ok_or_else(|| "no query".to_owned())
        })
        .await
    }

    /// A server that comes late.
    pub async fn attach(&self, more: &[&str]) -> Radixscope {
        let folder = self.folder.url();
        let more: Vec<&str> = ["--discovery", &folder].iter().chain(more).copied().collect();
        let server = Radixscope::serve_with(&self.nats.url(), &more).await;
        server
            .until_cluster("NATS is read", |cluster| {
                let sources = cluster["sources"].as_array().expect("sources");
                let nats = sources
                    .iter()
                    .find(|source| source["name"].as_str().is_some_and(|n| n.starts_with("nats")));
                wait::expect(nats.is_some_and(|nats| nats["state"] == "live"), || {
                    cluster["sources"].to_string()
                })
            })
            .await;
        server
    }
}
