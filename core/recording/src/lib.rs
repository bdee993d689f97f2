//! A deployment's records in a file, written as they come and read at any moment.
//!
//! The file is an MCAP file (mcap.dev/spec): chunks, each compressed and with a checksum, an index at the end, and readers
//! in many languages. A keyframe is the whole state, in the frames that a newcomer at the socket gets; the batches after
//! it are the very frames that viewers get. So any moment is a keyframe and the batches up to it, and nothing is encoded
//! for the file alone. What is found without folding (decisions, findings, a row a second) is JSON in channels of its own.
//!
//! A chunk ends where a keyframe begins and whenever the writer ends it: a finished chunk can be read whatever happens
//! later. The reader needs no index (one is used for what is far away), works chunk by chunk, and trusts nothing in the file. It knows no clock,
//! no network and no folder.

mod bytes;
mod channel;
mod chunk;
mod error;
mod fold;
mod index;
mod meta;
mod reader;
#[cfg(feature = "native")]
mod reduced;
#[cfg(feature = "native")]
mod schema;
mod series;
mod snapshot;
mod upgrade;
mod walk;
#[cfg(feature = "native")]
mod writer;

pub use channel::Channel;
pub use error::RecordingError;
pub use fold::FoldStep;
pub use meta::Meta;
pub use reader::{Folded, Keyframe, Messages, RecordedMessage, Recording, SeekTo};
#[cfg(feature = "native")]
pub use reduced::Reduced;
pub use series::{Series, SeriesPosition};
pub use snapshot::{EncodeError, snapshot_frames};
pub use walk::{MAX_CHUNK_BYTES, MAX_CHUNKS};
#[cfg(feature = "native")]
pub use writer::{Target, Writer};
