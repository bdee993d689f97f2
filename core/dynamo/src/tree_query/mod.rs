//! Queries for a worker's blocks (`worker_kv_indexer_query`, `worker_kv_query_…`) and their responses.

mod request;
mod response;

use crate::kv_event::KvEvents;

pub use request::TreeRequest;
pub use response::{MAX_TREE_HASHES, decode_response};

/// What a worker answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TreeResponse {
    /// All blocks that it holds, as events to be replayed in order, removals included; their ids mean nothing.
    TreeDump {
        /// The events.
        events: KvEvents,
        /// Id of the last event that is surely in it; later ones may be too. `None`: the version does not say (≤ 1.0).
        last_event_id: Option<u64>,
    },
    /// The events from the one that was asked for to the newest.
    Events {
        /// The events, with their own ids.
        events: KvEvents,
        /// Id of the newest. `None`: the version does not say (≤ 1.0).
        last_event_id: Option<u64>,
    },
    /// What was asked for has not happened yet.
    TooNew {
        /// Id of the newest event.
        newest_available: u64,
    },
    /// The end lies before the start.
    InvalidRange,
    /// It could not make a dump; what is known stays true (≥ 1.4).
    TreeDumpFailed {
        /// Why, shortened.
        message: String,
    },
    /// It refused.
    Error {
        /// Why, shortened.
        message: String,
        /// The rank that it has, where another was asked for.
        rank: Option<u32>,
    },
}

/// Why there is no response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueryFailed {
    /// What went wrong.
    pub why: QueryFault,
    /// In words: what happened, what was tried, what to do.
    pub detail: String,
}

/// What went wrong with a query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueryFault {
    /// The worker cannot be reached.
    Unreachable,
    /// It refused the request.
    Refused,
    /// It took the request and did not call back: it did not understand it, or it cannot reach us.
    NoCallback,
    /// The response ended early.
    Truncated,
    /// The response was not understood, or larger than is read.
    Malformed,
    /// It wants what is not supported here, as TLS or QUIC.
    Unsupported,
    /// The query was not sent: its result is no longer needed, or the server stops.
    Cancelled,
}
