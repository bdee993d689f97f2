//! A flood of KV events in the formats of three versions of Dynamo: minutes of a cluster's events at once.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use async_nats::jetstream::{self, stream};
use async_nats::{Client, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::envelope::envelope;

/// Workers that publish in turn.
pub const WORKERS: u64 = 16;
/// Blocks in a stored event: a prompt's new part.
const BLOCKS: u64 = 4;
/// A worker's cache: every second event drops what was stored so many events before, as in a warm engine.
const EVENTS_HELD: u64 = 400;
/// Messages between two waits for the connection to take them.
const AT_ONCE: u64 = 500;
/// Messages that wait for the stream's receipt at most: half of what the client keeps for a subscriber.
const MAX_UNDER_WAY: u64 = 30_000;
/// A receipt that takes longer does not come.
const RECEIPT_WITHIN: Duration = Duration::from_secs(2);
/// Name of the stream that keeps events of 0.9.
const STREAM: &str = "namespace-dynamo-component-backend-kv-events";

/// How events travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// JSON without a number on the component's subject (0.8.1 with a local indexer).
    Json,
    /// JSON on the subject of a JetStream stream (0.8, 0.9).
    Stream,
    /// A batch in a MessagePack envelope on the endpoint's subject (1.4 and later).
    Envelope,
}

impl Form {
    /// Every form.
    pub const ALL: [Self; 3] = [Self::Json, Self::Stream, Self::Envelope];

    /// Name in options of programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Stream => "stream",
            Self::Envelope => "envelope",
        }
    }

    fn subject(self) -> &'static str {
        match self {
            Self::Json => "namespace.dynamo.component.backend.kv-events",
            Self::Stream => "namespace-dynamo-component-backend-kv-events.kv-events",
            Self::Envelope => "namespace.dynamo.component.backend.endpoint.generate.kv-events",
        }
    }

    /// Event number `n` of all, as it is published.
    pub fn message(self, n: u64) -> Bytes {
        let (worker, own) = (1 + n % WORKERS, n / WORKERS);
        let event = event(worker, own);
        match self {
            Self::Json | Self::Stream => event.to_string().into(),
            Self::Envelope => envelope(worker + 1_000_000, own, "kv-events", &[event]).into(),
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Form {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|form| form.as_str() == text).ok_or("expected json, stream or envelope")
    }
}

/// A worker's event number `own`: blocks stored and removed in turn.
pub fn event(worker: u64, own: u64) -> Value {
    let hashes = |own: u64| (0..BLOCKS).map(move |block| worker << 48 | own << 8 | block);
    let data = match own.checked_sub(EVENTS_HELD) {
        Some(old) if own % 2 == 1 => {
            json!({"removed": {"block_hashes": hashes(old - 1).collect::<Vec<_>>()}})
        }
        _ => {
            let block = |hash: u64| json!({"block_hash": hash, "tokens_hash": hash, "mm_extra_info": null});
            json!({"stored": {"parent_hash": null, "blocks": hashes(own).map(block).collect::<Vec<_>>()}})
        }
    };
    json!({"worker_id": worker, "event": {"event_id": own + 1, "data": data, "dp_rank": 0}})
}

/// Makes the stream as Dynamo's workers do.
pub async fn create_stream(jetstream: &jetstream::Context) {
    let config = stream::Config {
        name: STREAM.to_owned(),
        subjects: vec![format!("{STREAM}.*")],
        max_age: Duration::from_secs(3600),
        ..stream::Config::default()
    };
    jetstream.get_or_create_stream(config).await.expect("JetStream makes a stream");
}

/// How many messages the stream has ever stored.
pub async fn stored(jetstream: &jetstream::Context) -> u64 {
    let stream = jetstream.get_stream(STREAM).await.expect("the stream exists");
    stream.get_info().await.expect("JetStream answers").state.last_sequence
}

/// Publishes to the stream and counts its receipts, as Dynamo's publishers get them.
pub struct Receipts {
    client: Client,
    inbox: String,
    receipts: Subscriber,
    /// Messages published.
    pub sent: u64,
    /// Of them, those that the stream says it has stored.
    pub stored: u64,
}

impl Receipts {
    /// On a connection of its own.
    pub async fn new(client: Client) -> Self {
        let inbox = client.new_inbox();
        let receipts = client.subscribe(inbox.clone()).await.expect("NATS lets us subscribe");
        Self { client, inbox, receipts, sent: 0, stored: 0 }
    }

    /// Publishes messages as fast as the stream stores them, with so many under way as one publisher ever has.
    pub async fn send(&mut self, messages: impl Iterator<Item = Bytes>) {
        for message in messages {
            let published =
                self.client.publish_with_reply(Form::Stream.subject(), self.inbox.clone(), message);
            published.await.expect("NATS takes what it is sent");
            self.sent += 1;
            if self.sent.is_multiple_of(AT_ONCE) {
                self.client.flush().await.expect("NATS takes what it is sent");
                self.wait(MAX_UNDER_WAY, RECEIPT_WITHIN).await;
            }
        }
        self.client.flush().await.expect("NATS takes what it is sent");
    }

    /// Waits until no more than `most` receipts are missing, as long as some come.
    pub async fn wait(&mut self, most: u64, within: Duration) {
        while self.sent - self.stored > most {
            let Ok(Some(receipt)) = tokio::time::timeout(within, self.receipts.next()).await else { return };
            self.stored += u64::from(!receipt.payload.windows(7).any(|part| part == b"\"error\""));
        }
    }

    /// Counts the receipts that came before the connection ended, if it has ended.
    pub async fn end(mut self) -> (u64, u64) {
        self.wait(0, RECEIPT_WITHIN).await;
        (self.sent, self.stored)
    }
}

/// Publishes these events as fast as NATS takes them.
pub async fn publish(client: &Client, form: Form, events: Range<u64>) {
    send(client, form, events.clone(), events.map(|n| form.message(n))).await;
}

/// Publishes messages made before, so that making them takes no time.
pub async fn send(client: &Client, form: Form, events: Range<u64>, messages: impl Iterator<Item = Bytes>) {
    for (n, message) in events.zip(messages) {
        client.publish(form.subject(), message).await.expect("NATS takes what it is sent");
        if n % AT_ONCE == AT_ONCE - 1 {
            client.flush().await.expect("NATS takes what it is sent");
        }
    }
    client.flush().await.expect("NATS takes what it is sent");
}
