//! A NATS server, a `radixscope serve` that listens to it, and workers whose caches hold a synthetic tree.

use std::time::{Duration, Instant};

use async_nats::Client;
use radixscope_bench::synthetic_tree::{SUBJECT, SyntheticTree, Wire};
use radixscope_tests::figures::{number, sum};
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;
use serde_json::Value;

/// Workers whose caches they are.
pub(crate) const WORKERS: u16 = 8;
/// Every run has the same trees.
const SEED: u64 = 2_026;
/// Messages that may be on their way to the server while the tree grows.
const AHEAD: u64 = 200;
/// Steps in which live events are published.
const STEP: Duration = Duration::from_millis(10);
/// How long the server may take to hear of everything.
const PATIENCE: Duration = Duration::from_secs(120);

/// What was published.
pub(crate) struct PublishedEvents {
    pub(crate) events: u64,
    pub(crate) messages: u64,
}

/// All of it.
pub(crate) struct Stage {
    pub(crate) server: Radixscope,
    pub(crate) tree: SyntheticTree,
    wire: Wire,
    client: Client,
    published: u64,
    _nats: Nats,
}

impl Stage {
    /// With a tree of this many distinct blocks, all of which the server has received. The server listens on `port`, or on a
    /// free one if that is 0.
    pub(crate) async fn with(blocks: u64, port: u16) -> Self {
        let nats = Nats::start().await;
        let server = Radixscope::start_on(port, ["serve", "--nats", &nats.url()]).await;
        server.until_ready().await;
        let client = nats.client().await;
        let tree = SyntheticTree::new(blocks, WORKERS, SEED);
        let mut stage = Self { server, tree, wire: Wire::new(WORKERS), client, published: 0, _nats: nats };
        stage.publish_all().await;
        stage
    }

    async fn publish_all(&mut self) {
        let mut next_look = AHEAD;
        while let Some(event) = self.tree.next() {
            if let Some(message) = self.wire.take(event) {
                self.publish(message).await;
            }
            if self.published >= next_look {
                self.until_received(AHEAD / 2).await;
                next_look = self.published + AHEAD / 2;
            }
        }
        for message in self.wire.flush() {
            self.publish(message).await;
        }
        let cluster = self.until_received(0).await;
        let tree = (number(&cluster["tree"], "nodes"), number(&cluster["tree"], "resident"));
        assert_eq!(
            tree,
            (self.tree.distinct_blocks(), self.tree.held_blocks()),
            "the whole tree is received"
        );
    }

    /// Publishes live events at a steady rate, for so long.
    pub(crate) async fn live(&mut self, events_per_s: u64, seconds: u64) -> PublishedEvents {
        let steps = u128::from(seconds) * 1000 / STEP.as_millis();
        let mut tick = tokio::time::interval(STEP);
        let (mut events, mut owed, before) = (0, 0, self.published);
        for _ in 0..steps {
            tick.tick().await;
            owed += u128::from(events_per_s) * STEP.as_millis();
            while owed >= 1000 {
                owed -= 1000;
                events += 1;
                let event = self.tree.live();
                if let Some(message) = self.wire.take(event) {
                    self.publish(message).await;
                }
            }
            for message in self.wire.flush() {
                self.publish(message).await;
            }
            self.client.flush().await.expect("NATS takes what it is sent");
        }
        PublishedEvents { events, messages: self.published - before }
    }

    /// Messages that the server has received.
    pub(crate) async fn received(&self) -> u64 {
        received(&self.server.cluster().await)
    }

    async fn publish(&mut self, message: Vec<u8>) {
        self.published += 1;
        self.client.publish(SUBJECT, message.into()).await.expect("NATS takes what it is sent");
    }

    /// Waits until at most so many messages are on their way.
    pub(crate) async fn until_received(&self, on_their_way: u64) -> Value {
        self.client.flush().await.expect("NATS takes what it is sent");
        let since = Instant::now();
        loop {
            let cluster = self.server.cluster().await;
            let received = received(&cluster);
            if received + on_their_way >= self.published {
                return cluster;
            }
            assert!(since.elapsed() < PATIENCE, "{received} of {} messages received", self.published);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Messages that a server has received.
fn received(cluster: &Value) -> u64 {
    sum(cluster["sources"].as_array().expect("sources"), "received")
}
