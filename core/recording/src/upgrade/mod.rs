//! Recordings of older versions, brought to the present form as they are read. A file a version: it has copies of what was
//! different then, frozen as it was written, and knows the way to the next version alone.
//!
//! A batch means something only after the keyframe before it, so an [`Upgrade`] is fed the messages of a file in order, from
//! a keyframe on.

mod v11;
mod v12;
mod v13;

use radixscope_model::frame::{Frame, FrameError, PROTOCOL_VERSION};
use radixscope_model::record::RECORD_VERSION;

use crate::channel::Channel;
use crate::error::RecordingError;

/// The oldest version that is read.
pub(crate) const OLDEST: u8 = 11;
const _: () = assert!(RECORD_VERSION == 14, "a version of its own needs a way from the one before");

/// Brings the messages of a file to the present form.
#[derive(Clone)]
pub(crate) struct Upgrade {
    from: u8,
    state: v12::Context,
}

impl Upgrade {
    /// For a file of this version. `None`: it is the present one.
    pub(crate) fn of(version: u8) -> Option<Self> {
        (version < RECORD_VERSION).then(|| Self { from: version, state: v12::Context::default() })
    }

    /// The frame of a message in the present form. JSON has had the same form ever since.
    ///
    /// # Errors
    /// It is not what its version wrote.
    pub(crate) fn message(
        &mut self,
        channel: Channel,
        data: &[u8],
    ) -> Result<Option<Vec<u8>>, RecordingError> {
        if !matches!(channel, Channel::Keyframes | Channel::Batches) {
            return Ok(None);
        }
        // The frames themselves have not changed since.
        let mut frame = data.to_vec();
        match frame.first_mut() {
            Some(version) if *version == self.from => *version = PROTOCOL_VERSION,
            Some(theirs) => return Err(FrameError::Version { theirs: *theirs }.into()),
            None => return Err(FrameError::Empty.into()),
        }
        match Frame::decode(&frame)? {
            Frame::Snapshot { seq, part, parts, bytes } => {
                let former;
                let bytes = match self.from {
                    13 => bytes.0,
                    from => {
                        former = self.state.part(from, bytes.0)?;
                        former.as_slice()
                    }
                };
                let bytes = v13::part(bytes)?;
                let bytes = radixscope_model::frame::Bytes(&bytes);
                Ok(Some(Frame::Snapshot { seq, part, parts, bytes }.encode()?))
            }
            // Records of version 13 are read as they are; the digest is of the former state.
            Frame::Batch(batch) if self.from == 13 => Ok(Some(v13::batch(&batch)?)),
            Frame::Batch(batch) => Ok(Some(self.state.batch(self.from, &batch)?)),
            Frame::Hello { .. } | Frame::Lag { .. } => Ok(Some(frame.clone())),
        }
    }
}
