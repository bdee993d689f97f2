//! The seam at which data from outside enters: what a source hands over, typed by what it is and where it came from.
//!
//! A source receives bytes, labels them once ([`Payload`]), and never opens them; everything behind the seam
//! decodes and knows nothing of connections. A [`Payload`] is cheap to clone and to send between tasks: its bytes and
//! names are shared.
//!
//! # A new source
//! 1. One file in `server/src/source` that connects, reports its link's state, and hands over payloads through its
//!    `SourceHandle`: `offer` for what is lost when the queue is full, `deliver` for what can wait.
//! 2. If it carries something without a variant (an event of a ZeroMQ publisher, a tree dump, an entry of a
//!    recording), a variant here, with its name for the sender and its bytes.
//! 3. One arm in `Ingest::take` that decodes it, with a decoder in `core/dynamo` if the bytes are Dynamo's. The compiler
//!    names every other place.
//!
//! What carries the same thing another way needs no variant: discovery hands over [`Payload::Discovery`] whether the
//! entry lay in etcd, in a file or in a custom resource, and a recording hands over what was recorded.
//!
//! For every source received = decoded + rejected, and what was lost before it got here is reported as [`super::Missing`].

use std::sync::Arc;

use bytes::Bytes;

use radixscope_dynamo::DecodeError;
use radixscope_dynamo::client_result::ClientRecord;
use radixscope_dynamo::indexer::Index;
use radixscope_dynamo::otlp::RouteSpan;
use radixscope_dynamo::subject::Subject;
use radixscope_dynamo::tree_query::{QueryFailed, TreeResponse};
use radixscope_model::id::{Millis, SourceIx, WorkerId};
use radixscope_model::record::{Engine, LinkState, Replay, Topic};

/// A payload as a source received it.
#[derive(Clone, Debug)]
pub struct Received {
    /// Who received it.
    pub source: SourceIx,
    /// When it was received, or stored by the broker if it is history.
    pub at_ms: Millis,
    /// What it is.
    pub payload: Payload,
}

/// What a source hands over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Payload {
    /// A message on one of Dynamo's NATS subjects, as it was published; see [`super::NatsSubjects`].
    Nats {
        /// Where it was published.
        subject: Arc<Subject>,
        /// Its body.
        message: Bytes,
    },
    /// A message on a NATS subject that is none of Dynamo's: counted, named and not opened.
    OtherNats {
        /// Where it was published.
        subject: Box<str>,
        /// Its body.
        message: Bytes,
    },
    /// An entry of Dynamo's discovery as it is now: an instance, a model card, an event channel or source.
    Discovery {
        /// As in etcd, `v1/mdc/…`; ids are hexadecimal there.
        key: Arc<str>,
        /// JSON. `None`: the entry is gone.
        value: Option<Bytes>,
        /// Lease that the entry lives by, where the store has such: its number is the id of the process that made the
        /// entry, which for a worker is its own.
        lease: Option<u64>,
    },
    /// A line of a log of one of Dynamo's processes.
    LogLine {
        /// Name of the log. Lines of one log come in order.
        log: Arc<str>,
        /// The line without its line feed. Of one longer than [`MAX_LOG_LINE_BYTES`] one byte more than that, so that it is
        /// counted.
        line: Bytes,
    },
    /// The span of a routed request, read where it was received: of what came with it most is not kept.
    RouteSpan(Box<RouteSpan>),
    /// A process's metrics, one whole response.
    Scrape {
        /// Name of the process.
        process: Arc<str>,
        /// In Prometheus' text format.
        text: Bytes,
    },
    /// A frontend's list of instances, one whole response of its `/health`.
    Health {
        /// Name of the frontend.
        frontend: Arc<str>,
        /// JSON.
        response: Bytes,
    },
    /// What a frontend's routers run with, one whole response of its `/router_policy`.
    RouterPolicy {
        /// Name of the frontend.
        frontend: Arc<str>,
        /// JSON.
        response: Bytes,
    },
    /// What came of a query for a worker's blocks, read where it was received: dumps are large.
    TreeResponse {
        /// Number of the [`crate::command::TreeQuery`].
        query: u64,
        /// What the worker answered, or why there is no response.
        outcome: Arc<Result<TreeResponse, QueryFailed>>,
        /// Size of the response as it was received, in bytes.
        size_bytes: usize,
    },
    /// What a standalone KV indexer holds, read where it was received: dumps are large.
    Indexer {
        /// Its address.
        name: Arc<str>,
        /// What it lists and holds.
        index: Arc<Index>,
        /// Size of both responses as they were received, in bytes.
        size_bytes: usize,
    },
    /// What a load generator measured of a request, a line of its file.
    ClientResult {
        /// The line without its line feed.
        line: Bytes,
    },
    /// The same of a request that this process sent, measured here by the clock of what else is received.
    ClientMeasured(Box<ClientRecord<'static>>),
    /// A message of which the source could not even read the outside. It counts as bad input.
    Unreadable {
        /// What it was about.
        topic: Topic,
        /// What is wrong with it.
        error: Box<DecodeError>,
        /// Its size, in bytes.
        size_bytes: usize,
    },
    /// From here on everything that publishers say is received.
    Subscribed {
        /// The publisher. `None`: all whose messages this source receives.
        publisher_id: Option<u64>,
    },
    /// The connection is lost: until [`Payload::Subscribed`] nothing that publishers say is received.
    Unsubscribed {
        /// The publisher. `None`: all whose messages this source receives.
        publisher_id: Option<u64>,
    },
    /// From or of an engine's own publisher, without Dynamo.
    Engine {
        /// Which.
        publisher: Arc<EnginePublisher>,
        /// What.
        input: EngineInput,
    },
}

/// An engine's own publisher of KV events: one data-parallel rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EnginePublisher {
    /// Where it publishes, or who it is if it connects to here. No two have the same.
    pub name: Box<str>,
    /// Its engine, as the operator named it: all ranks have the same. Metrics under this name are the engine's.
    pub engine_name: Box<str>,
    /// What it is, as far as somebody says it.
    pub engine: Option<Engine>,
    /// Made of its engine's name, so that it stays the same.
    pub worker_id: WorkerId,
    /// Its rank, where its place shows it; else its batches do.
    pub rank: Option<u32>,
    /// Tells it from other publishers.
    pub key: u64,
    /// Its pool as Dynamo would name it: topic, namespace, component, and that it comes from an engine.
    pub subject: Arc<Subject>,
}

impl EnginePublisher {
    /// What its messages are numbered under, since it began anew for the `run`th time.
    pub const fn publisher_id(&self, run: u32) -> u64 {
        // Any odd number keeps runs and publishers apart.
        self.key.wrapping_add((run as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

/// Something from or of an engine's publisher. Batches come in the order of their numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EngineInput {
    /// A batch of KV events.
    Batch {
        /// How many times it began anew before.
        run: u32,
        /// Number of the batch.
        sequence: u64,
        /// Whether it was sent once more, because it was missed.
        is_replayed: bool,
        /// The batch.
        body: Bytes,
    },
    /// The connection changed; with [`LinkState::Ended`] the publisher is gone for good.
    Link {
        /// Where it stands.
        state: LinkState,
        /// In words, if there is something to say.
        detail: Box<str>,
    },
    /// What became of asking for missed batches.
    Replay(Replay),
    /// A message of which not even the frames could be read.
    Unreadable {
        /// What is wrong with it.
        error: Box<DecodeError>,
        /// Its size, in bytes.
        size_bytes: usize,
    },
}

/// Largest payload that is opened. NATS allows 1 MiB by default, 64 MiB at most; Dynamo's own stay below 1 MiB.
pub const MAX_PAYLOAD_BYTES: usize = 8 * 1024 * 1024;

/// Longest line of a log that is read, in bytes: room for the tokens hashes of a prompt of 12,000 blocks.
pub const MAX_LOG_LINE_BYTES: usize = 256 * 1024;

impl Payload {
    /// Its topic, as far as its envelope shows it.
    pub fn topic(&self) -> Topic {
        match self {
            Self::Nats { subject, .. } => subject.topic,
            Self::OtherNats { .. } => Topic::Other,
            Self::Discovery { .. } => Topic::Discovery,
            // It says what a line of the router's log says.
            Self::LogLine { .. } | Self::RouteSpan(_) => Topic::Log,
            Self::Scrape { .. } => Topic::Metrics,
            Self::Health { .. } => Topic::Health,
            Self::RouterPolicy { .. } => Topic::RouterPolicy,
            Self::TreeResponse { .. } => Topic::TreeDump,
            Self::Indexer { .. } => Topic::Indexer,
            Self::ClientResult { .. } | Self::ClientMeasured(_) => Topic::ClientResult,
            Self::Unreadable { topic, .. } => *topic,
            Self::Subscribed { .. } | Self::Unsubscribed { .. } => Topic::Other,
            Self::Engine { .. } => Topic::KvEvents,
        }
    }

    /// How many bytes were received.
    pub fn size_bytes(&self) -> usize {
        match self {
            Self::Nats { message: bytes, .. }
            | Self::OtherNats { message: bytes, .. }
            | Self::LogLine { line: bytes, .. }
            | Self::ClientResult { line: bytes }
            | Self::Scrape { text: bytes, .. }
            | Self::Health { response: bytes, .. }
            | Self::RouterPolicy { response: bytes, .. } => bytes.len(),
            Self::Discovery { key, value, .. } => key.len() + value.as_ref().map_or(0, Bytes::len),
            Self::ClientMeasured(result) => {
                size_of::<ClientRecord<'_>>() + result.x_request_id.as_ref().map_or(0, |id| id.len())
            }
            Self::RouteSpan(span) => size_of::<RouteSpan>() + span.done.request_id.len(),
            Self::TreeResponse { size_bytes, .. }
            | Self::Indexer { size_bytes, .. }
            | Self::Unreadable { size_bytes, .. } => *size_bytes,
            Self::Subscribed { .. } | Self::Unsubscribed { .. } => 0,
            Self::Engine { input, .. } => match input {
                EngineInput::Batch { body, .. } => body.len(),
                EngineInput::Unreadable { size_bytes, .. } => *size_bytes,
                EngineInput::Link { .. } | EngineInput::Replay(_) => 0,
            },
        }
    }

    /// Whether it is a source's own status, not a message.
    pub const fn is_of_the_source(&self) -> bool {
        match self {
            Self::Subscribed { .. } | Self::Unsubscribed { .. } => true,
            Self::Engine { input, .. } => matches!(input, EngineInput::Link { .. } | EngineInput::Replay(_)),
            _ => false,
        }
    }
}
