//! The frames of one stretch of a recording: a keyframe and the batches that follow it, up to the next keyframe.

use std::io::{Read, Seek};

use radixscope_model::frame::Frame;
use radixscope_model::id::{Millis, Seq};
use radixscope_recording::{RecordingError, Series};

use crate::append_frame;

/// The frames of the stretch that was begun at `recorded`, and the record that its keyframe is after; without those up to record
/// `after`, where that is given and the keyframe is not later, and without those later than `until`. `None`: its keyframe
/// cannot be read.
///
/// Where something is damaged or missing it ends: the next keyframe goes on.
pub(crate) fn frames<R: Read + Seek>(
    series: &mut Series<R>,
    recorded: Millis,
    after: Option<Seq>,
    until: Option<Millis>,
) -> Result<Option<(Seq, Vec<u8>)>, RecordingError> {
    let (mut body, mut begin, mut after) = (Vec::new(), None, after);
    let mut next = None;
    series.stretch(recorded, &mut |data| match Frame::decode(data) {
        Ok(Frame::Snapshot { seq, .. }) => {
            begin = Some(seq);
            next = Some(seq.0.saturating_add(1));
            after = after.filter(|after| *after >= seq);
            if after.is_none() {
                append_frame(&mut body, data);
            }
            true
        }
        Ok(Frame::Batch(batch)) if until.is_some_and(|until| batch.at_ms > until) => false,
        Ok(Frame::Batch(batch)) => {
            let follows = next.is_some_and(|next| batch.first_seq.0 <= next);
            let end = batch.first_seq.0.saturating_add(u64::from(batch.count));
            let is_known = after.is_some_and(|after| end <= after.0.saturating_add(1));
            if follows && !is_known {
                append_frame(&mut body, data);
            }
            next = next.max(Some(end));
            follows
        }
        Ok(Frame::Hello { .. } | Frame::Lag { .. }) | Err(_) => false,
    })?;
    Ok(begin.map(|begin| (begin, body)))
}
