//! The history in memory as a recording, one segment at a time: a slow client makes nobody keep what the history has dropped.

use std::io;

use tokio::runtime::Handle;

use radixscope_insight::timeline::SecondRow;
use radixscope_model::id::{Millis, Seq};
use radixscope_recording::{Channel, RecordingError, Target};

use crate::hub::{Hub, KeptSegment, SegmentId};

/// What a client reads.
pub(super) struct Memory {
    pub(super) hub: Hub,
    pub(super) segments: Vec<SegmentId>,
    pub(super) rows: Vec<SecondRow>,
    /// The last record when it was asked for.
    pub(super) last: Seq,
}

impl Memory {
    /// Hands on everything up to `until`. Waits for the hub, so it must not run on a thread of the runtime's own.
    pub(super) fn copy(
        self,
        until: Millis,
        runtime: &Handle,
        into: &mut dyn Target,
    ) -> Result<(), RecordingError> {
        let mut rows = self.rows.into_iter().peekable();
        for id in self.segments {
            let segment = runtime.block_on(self.hub.read(move |view| view.kept_segment(id)));
            let KeptSegment { keyframe, batches } = segment.map_err(io::Error::other)?.ok_or_else(dropped)?;
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
    io::Error::other(
        "the history dropped what was still to be sent: the client reads more slowly than the history grows",
    )
    .into()
}
