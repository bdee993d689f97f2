//! What can be wrong with a recording, as text for the person who opens it.

use radixscope_model::frame::FrameError;
use radixscope_model::record::RECORD_VERSION;
use radixscope_state::cluster::SnapshotError;

use crate::snapshot::EncodeError;

/// Why a recording cannot be read, or not at this moment.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// It does not begin like one.
    #[error("this is not a recording of Radixscope")]
    NotARecording,
    /// It holds records of another version.
    #[error(
        "recorded by Radixscope {by} with record version {theirs}; this is version {RECORD_VERSION}, use a release of that version"
    )]
    Version {
        /// The release that wrote it.
        by: String,
        /// Its version of records.
        theirs: u8,
    },
    /// It ends before the first whole state.
    #[error("the recording holds no keyframe: it ended before the first state was written")]
    NoKeyframe,
    /// A moment that the recording does not reach.
    #[error(
        "the moment {at_ms} is outside of the recording, which reaches from {from_ms} to {to_ms} (Unix milliseconds)"
    )]
    Outside {
        /// The moment.
        at_ms: u64,
        /// Time of the first keyframe.
        from_ms: u64,
        /// Time of the last batch.
        to_ms: u64,
    },
    /// Files that do not belong together.
    #[error("these files record different deployments or runs ({0:016x} and {1:016x}); open them one by one")]
    OtherDeployment(u64, u64),
    /// A part that is not what was written.
    #[error("damaged at byte {at}: {what}")]
    Damaged {
        /// Where the part begins.
        at: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A keyframe.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The library that writes.
    #[cfg(feature = "native")]
    #[error(transparent)]
    Write(mcap::McapError),
}

impl From<EncodeError> for RecordingError {
    fn from(error: EncodeError) -> Self {
        match error {
            EncodeError::Snapshot(error) => Self::Snapshot(error),
            EncodeError::Frame(error) => Self::Frame(error),
        }
    }
}

#[cfg(feature = "native")]
impl From<mcap::McapError> for RecordingError {
    fn from(error: mcap::McapError) -> Self {
        match error {
            // Its own text leaves out what is wrong.
            mcap::McapError::Io(error) => Self::Io(error),
            other => Self::Write(other),
        }
    }
}
