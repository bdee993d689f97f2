//! Sources of messages. A source delivers bytes and reports its link state; it knows nothing of decoding or the cluster state.

mod cause;
pub mod demo;
pub mod discovery;
mod file_identity;
pub mod gate;
pub(crate) mod gzip;
pub(crate) mod http_client;
pub(crate) mod http_tls;
pub mod indexer;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
pub(crate) mod lines;
mod link;
pub mod logs;
pub mod nats;
pub mod otlp;
pub mod prometheus;
pub mod traces;
pub mod trees;
pub mod zmq;

pub(crate) use link::{LastStatus, SourceStatus, doubled, with_jitter};
