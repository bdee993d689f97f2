//! The history in memory as a recording, one segment at a time, so that a slow client does not keep dropped segments in memory.

use std::io;

use tokio::runtime::Handle;

use radixscope_insight::timeline::SecondRow;
use radixscope_model::id::{Millis, Seq};
use radixscope_recording::{Channel, RecordingError, Target};

use crate::hub::{Hub, SegmentId, StoredSegment};

/// The part of the history to download.
pub(super) struct Memory {
    pub(super) hub: Hub,
    pub(super) segments: Vec<SegmentId>,
    pub(super) rows: Vec<SecondRow>,
    /// The last record at the time of the request.
    pub(super) last: Seq,
}

impl Memory {
    /// Writes everything up to `until`. Blocks on the hub, so it must not run on a runtime thread.
    pub(super) fn copy(
        self,
        until: Millis,
        runtime: &Handle,
        into: &mut dyn Target,
    ) -> Result<(), RecordingError> {
        let mut rows = self.rows.into_iter().peekable();
        for id in self.segments {
            let segment = runtime.block_on(self.hub.read(move |view| view.retained_segment(id)));
            let StoredSegment { keyframe, batches } =
                segment.map_err(io::Error::other)?.ok_or_else(dropped)?;
            let keyframe: Vec<Vec<u8>> = keyframe.iter().map(|part| part.to_vec()).collect();
            into.keyframe(id.from_ms, &keyframe)?;
            drop(keyframe);
            for batch in batches.iter().take_while(|batch| batch.at_ms <= until && batch.first <= self.last) {
                while let Some(row) = rows.next_if(|row| row.at_ms <= batch.at_ms) {
                    let json = serde_json::to_vec(&row).unwrap_or_default();
                    into.message(Channel::Timeline, row.at_ms, &json)?;
                }
                into.message(Channel::Batches, batch.at_ms, &batch.frame)?;
            }
        }
        Ok(())
    }
}

fn dropped() -> RecordingError {
    io::Error::other("the history was dropped before it was sent, because the client reads too slowly").into()
}
