//! Where messages come from. A source hands over bytes and says where its link stands; it knows neither decoding nor
//! state.

pub mod demo;
pub mod discovery;
pub mod gate;
mod http_tls;
mod link;
pub mod logs;
pub mod nats;
pub mod prometheus;
pub mod trees;
pub mod zmq;

pub(crate) use link::Failed;
