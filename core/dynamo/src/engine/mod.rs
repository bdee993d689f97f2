//! What engines publish of their KV caches themselves, without Dynamo: vLLM, SGLang and TensorRT-LLM over ZeroMQ.
//!
//! `[topic, sequence, batch]` at a publisher's own socket (`message`), a batch being MessagePack (`batch`). Two encodings are in use:
//! events as arrays (vLLM up to 0.23, SGLang up to 0.5.18) and as maps (later ones). Engines name blocks by their own hashes and add the
//! tokens; the router's hash of them is computed by who calls ([`TokensHasher`]), so that engines share prefixes.
//!
//! Knows no sockets, no trees, and nothing of who listens.

mod batch;
mod event;
mod groups;
mod message;

pub use batch::{EngineBatch, EngineEvent, TokensHasher};
pub use groups::CacheGroups;
pub use message::{EngineMessage, REPLAY_END, open_live, open_replay, replay_request};
