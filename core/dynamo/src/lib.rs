//! What Dynamo says: bytes and text in, observations out; one file a topic.
//!
//! Every decoder takes bytes from outside and never panics, never recurses on their depth, never reserves memory
//! because a length field says so, and returns what it understood together with what it did not. Unknown keys are
//! ignored: Dynamo adds some with every release. Nothing here knows of workers' indices, trees or state.
#![forbid(unsafe_code)]

pub mod active_sequence;
pub mod chat_chunk;
pub mod client_result;
pub mod discovery;
pub mod engine;
pub mod envelope;
pub mod error;
pub mod health;
pub mod hit_rate;
pub mod indexer;
pub mod kv_event;
pub mod load;
pub mod log_line;
pub mod otlp;
pub mod prometheus;
pub mod request_plane;
pub mod router_policy;
pub mod session_affinity;
pub mod subject;
pub mod trace;
pub mod tree_query;
mod typed;
mod wire;
pub mod zmq_message;
pub mod zmtp;

pub use envelope::{Body, Envelope, Format};
pub use error::{DecodeError, Faults, Reason};
