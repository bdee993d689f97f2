//! One pass through a recording: its keyframes, its batches, and a row of the timeline for each second.

use std::io::{Read, Seek};

use radixscope_insight::timeline::{RowInProgress, SecondRow};
use radixscope_model::id::{Millis, Seq};
use radixscope_recording::{FoldStep, Folded, RecordingError, Series};

/// Rows as a live server makes them.
const ROW_EVERY_MS: u64 = 1_000;

/// What a pass comes across.
pub enum PassItem<'a> {
    /// A keyframe, whole.
    Keyframe {
        /// When it was recorded.
        at_ms: Millis,
        /// The state is the one after this record.
        seq: Seq,
        /// Its frames.
        frames: Vec<Vec<u8>>,
    },
    /// A batch that follows what is known.
    Batch {
        /// Number of its first record.
        first: Seq,
        /// Number of the first record after it.
        next: Seq,
        /// When it was recorded.
        at_ms: Millis,
        /// Its frame.
        frame: &'a [u8],
    },
    /// A second is over.
    Row(SecondRow),
}

/// A pass on its way.
#[derive(Default)]
pub(crate) struct Pass {
    /// Of the keyframe that is being read.
    frames: Vec<Vec<u8>>,
    row: RowInProgress,
    row_ms: Millis,
}

impl Pass {
    /// Rows begin at a time.
    pub(crate) fn from(row_ms: Millis) -> Self {
        Self { row_ms, ..Self::default() }
    }

    pub(crate) fn observe(&mut self, step: FoldStep<'_>, each: &mut dyn FnMut(PassItem<'_>)) {
        match step {
            FoldStep::Keyframe { seq, part, parts, message } => {
                if part == 0 {
                    self.frames.clear();
                }
                self.frames.push(message.data.to_vec());
                if part.checked_add(1) == Some(parts) {
                    let frames = std::mem::take(&mut self.frames);
                    each(PassItem::Keyframe { at_ms: message.at_ms, seq, frames });
                }
            }
            FoldStep::Record { before, entry } => self.row.count(before, &entry.record),
            FoldStep::Batch { first, next, message, after } => {
                let at_ms = message.at_ms;
                each(PassItem::Batch { first, next, at_ms, frame: message.data });
                if at_ms.since(self.row_ms) >= ROW_EVERY_MS {
                    self.row_ms = at_ms;
                    each(PassItem::Row(self.row.end(at_ms, after)));
                }
            }
        }
    }
}

/// Reads a recording from the keyframe before `from` on, all of it where there is none before; the state at its end.
///
/// # Errors
/// No keyframe can be read.
pub fn read<R: Read + Seek>(
    series: &mut Series<R>,
    from: Millis,
    each: &mut dyn FnMut(PassItem<'_>),
) -> Result<Folded, RecordingError> {
    let mut pass = Pass::from(from.max(series.range().0));
    series.play_from(from, &mut |step| pass.observe(step, each))
}
