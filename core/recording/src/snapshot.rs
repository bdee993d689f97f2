//! A whole state in the frames that a newcomer at the socket gets, which are those of a keyframe.

use radixscope_model::frame::{self, Frame, FrameError};
use radixscope_state::cluster::{Cluster, SnapshotError};

/// Why a state could not be encoded. Neither happens with a sound state.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The state.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// A frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// The whole state as frames of a keyframe.
///
/// # Errors
/// Neither happens with a sound state.
pub fn snapshot_frames(cluster: &Cluster) -> Result<Vec<Vec<u8>>, EncodeError> {
    let seq = cluster.seq();
    let mut bodies = Vec::new();
    cluster.snapshot(|part| bodies.push(part))?;
    let parts = u32::try_from(bodies.len()).unwrap_or(u32::MAX);
    let frame = |(part, body): (u32, Vec<u8>)| {
        Ok(Frame::Snapshot { seq, part, parts, bytes: frame::Bytes(&body) }.encode()?)
    };
    (0..).zip(bodies).map(frame).collect()
}
