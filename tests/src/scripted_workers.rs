//! A server that receives the events of workers of Dynamo 0.9, which store and evict what a test says.

use crate::capture::Message;
use crate::envelope::envelope;
use crate::figures::number;
use crate::nats::Nats;
use crate::radixscope::Radixscope;
use crate::replay::publish_one;
use crate::wait;
use serde_json::{Value, json};

/// The server, and what the workers publish with.
pub struct ScriptedWorkers {
    client: async_nats::Client,
    /// The server that receives what they publish.
    pub server: Radixscope,
    events: u64,
    _nats: Nats,
}

impl ScriptedWorkers {
    /// Nothing is published yet.
    pub async fn start() -> Self {
        let nats = Nats::start().await;
        let server = Radixscope::serve(&nats.url()).await;
        server.until_ready().await;
        Self { client: nats.client().await, server, events: 0, _nats: nats }
    }

    /// A worker stores a prompt; hashes of its blocks are hashes of their tokens too.
    pub async fn store(&mut self, worker: u64, blocks: impl IntoIterator<Item = u64>) {
        let block = |hash| json!({"block_hash": hash, "tokens_hash": hash, "mm_extra_info": null});
        let blocks: Vec<Value> = blocks.into_iter().map(block).collect();
        self.publish(worker, json!({"stored": {"parent_hash": null, "blocks": blocks}})).await;
    }

    /// A worker evicts blocks.
    pub async fn remove(&mut self, worker: u64, blocks: impl IntoIterator<Item = u64>) {
        let hashes: Vec<u64> = blocks.into_iter().collect();
        self.publish(worker, json!({"removed": {"block_hashes": hashes}})).await;
    }

    async fn publish(&mut self, worker: u64, data: Value) {
        self.events += 1;
        let event = self.events;
        let payload = json!({"worker_id": worker, "event": {"event_id": event, "data": data, "dp_rank": 0}});
        let payload = envelope(worker, event, "kv-events", &payload).into();
        let subject = "namespace.dynamo.component.backend.kv-events".to_owned();
        publish_one(&self.client, &Message { at_s: 0.0, subject, reply: None, payload }).await;
        self.client.flush().await.expect("NATS takes what it is sent");
    }

    /// Waits until the server's tree has so many distinct blocks; gives `/api/v1/cluster` then.
    pub async fn until_nodes(&self, nodes: u64) -> Value {
        self.server
            .until_cluster("the tree is as large as it should be", |cluster| {
                let now = number(&cluster["tree"], "nodes");
                wait::expect(now == nodes, || format!("{now} of {nodes}"))
            })
            .await
    }
}
