//! From observations to records: worker indices, publishers' sequences, losses, the parts of a decision joined, block lifetimes.
//!
//! [`payload`] is the one seam at which data from outside enters; [`Intake`] takes it. Reads the state and never
//! changes it; does no I/O.
#![forbid(unsafe_code)]

mod attach;
mod block_lifetime;
pub mod command;
mod ingest;
mod intake;
mod nats_subjects;
pub mod payload;
pub mod routing;

pub use attach::TreeDumps;
pub use block_lifetime::BlockLifetimes;
pub use command::Command;
pub use ingest::{Break, Missing};
pub use intake::Intake;
pub use nats_subjects::NatsSubjects;
pub use payload::{EngineInput, EnginePublisher, MAX_LOG_LINE_BYTES, MAX_PAYLOAD_BYTES, Payload, Received};
