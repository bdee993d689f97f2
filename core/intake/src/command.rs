//! What intake wants sources to do: query a worker for its blocks, and subscribe to publishers that discovery lists.
//!
//! Intake does no I/O. Whoever keeps it takes the commands after each turn and gives them to the sources
//! that carry them out; what comes of them returns as payloads.

use std::fmt;
use std::sync::Arc;

use radixscope_dynamo::request_plane::QueryEndpoint;
use radixscope_dynamo::subject::Subject;

/// Something that a source is to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Ask a worker. Answered by one [`crate::Payload::TreeResponse`] with the same number, whatever comes of it.
    Query(TreeQuery),
    /// The response is no longer needed. The query still gets a response, with
    /// [`QueryFault::Cancelled`](radixscope_dynamo::tree_query::QueryFault::Cancelled) unless it was answered before.
    CancelQuery {
        /// Number of the query.
        id: u64,
    },
    /// Listen to a ZeroMQ publisher.
    Listen(ZmqChannel),
    /// Subscribe to a subject of NATS that those which are subscribed to anyway do not hold.
    Subscribe(NamedSubject),
    /// Listen to a ZeroMQ broker, at one of its sockets that publish.
    ListenToBroker {
        /// `tcp://HOST:PORT`.
        endpoint: String,
    },
    /// The broker is gone.
    LeaveBroker {
        /// Where it was.
        endpoint: String,
    },
    /// The publisher is gone.
    Unlisten {
        /// Where it was.
        endpoint: String,
        /// Which: another one may be there already.
        publisher_id: u64,
    },
}

/// The origin of a query endpoint; the sender of the query decides whether to trust it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NamedBy {
    /// An entry of discovery.
    Entry {
        /// Its key.
        key: Box<str>,
        /// The lease that it lives by, where the store has such.
        lease: Option<u64>,
    },
    /// The list of a frontend.
    Frontend {
        /// Name of the frontend.
        name: Box<str>,
    },
}

impl fmt::Display for NamedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Whoever writes an entry chooses its key.
            Self::Entry { key, lease: None } => write!(f, "the entry {}", key.escape_default()),
            Self::Entry { key, lease: Some(lease) } => {
                write!(f, "the entry {} with lease {lease:x}", key.escape_default())
            }
            Self::Frontend { name } => write!(f, "the list of frontend {name}"),
        }
    }
}

/// A query for a worker's blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TreeQuery {
    /// Number of the query; none is given twice.
    pub id: u64,
    /// Whom to ask.
    pub endpoint: QueryEndpoint,
    /// The origin of the endpoint.
    pub named_by: NamedBy,
    /// Sockets at which the same process publishes by discovery, `tcp://HOST:PORT`: it may answer from those addresses.
    pub publishes_at: Vec<String>,
    /// From which event on. `None`: everything that it holds.
    pub start_event_id: Option<u64>,
}

/// A publisher of the ZeroMQ event plane.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZmqChannel {
    /// `tcp://HOST:PORT`.
    pub endpoint: String,
    /// Publisher id.
    pub publisher_id: u64,
    /// Topic, namespace, component and endpoint that its messages are of.
    pub subject: Arc<Subject>,
}

/// A NATS subject that discovery lists and whose tokens do not show its topic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedSubject {
    /// The subject.
    pub text: String,
    /// Topic, namespace, component and endpoint that its messages are of.
    pub subject: Arc<Subject>,
}
