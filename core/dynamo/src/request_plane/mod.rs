//! Dynamo's request plane, as far as it takes to ask a worker something: where its endpoint is and how it is spoken to.
//!
//! A call goes over TCP as one frame, or over NATS as one message. It is acknowledged there, and answered on a TCP
//! connection of its own that the worker opens to the address that the call names. The bytes: the project's notes on
//! attaching late, §2.

mod call;
mod response;

pub use call::{Call, frame};
pub(crate) use response::shortened;
pub use response::{
    Control, MAX_HEADER_BYTES, MAX_REFUSAL_BYTES, PRELUDE_BYTES, PartSize, call_home, foreign_reply, refusal,
};

use radixscope_model::id::Worker;

/// The endpoint of a worker that answers queries for its blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueryEndpoint {
    /// Whose blocks. Where nothing names the rank it is 0; the response then has the right one.
    pub worker: Worker,
    /// Whether something named the rank.
    pub is_rank_known: bool,
    /// Dynamo namespace.
    pub namespace: String,
    /// Dynamo component.
    pub component: String,
    /// Its name, as `worker_kv_query_source_4cfa61f9f4e8`.
    pub endpoint: String,
    /// Where it is.
    pub transport: RequestTransport,
    /// How requests and answers are written.
    pub codec: Codec,
    /// Publisher of the events that the blocks come from (≥ 1.4). `None`: not part of the endpoint.
    pub publisher_id: Option<u64>,
}

/// Where an endpoint takes requests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RequestTransport {
    /// A TCP socket.
    Tcp {
        /// Host and port.
        address: String,
        /// The part after the first `/` of discovery's value.
        path: String,
    },
    /// A NATS subject.
    Nats {
        /// The subject.
        subject: String,
    },
}

/// How requests and answers are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Codec {
    /// Text; what an endpoint means that names no codec (≤ 1.2, and some later).
    #[default]
    Json,
    /// MessagePack.
    MsgPack,
}
