//! A recording in place of a deployment: the state at its end, and everything before it to go back to. Nothing comes in, and
//! the clock stands still.

use std::io::{Read, Seek};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;

use radixscope_insight::check::Checks;
use radixscope_intake::Intake;
use radixscope_model::id::Millis;
use radixscope_recording::{Folded, RecordingError, Series};
use radixscope_replay::{PassItem, read};
use radixscope_state::cluster::Cluster;

use super::commands::Commands;
use super::history::{History, HistoryLimits};
use super::inbox::Inbox;
use super::log::Published;
use super::snapshot::Snapshot;
use super::state::State;
use super::view::{DepthCache, PictureCache, Stats};
use super::{Hub, HubTask, MAX_QUESTIONS, QueueLimits};
use crate::shutdown::Shutdown;

/// Longer than any recording: what is kept of one is bounded by its bytes alone.
const ANY_AGE: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// A recording that was read.
pub(crate) struct Replayed {
    pub(super) cluster: Cluster,
    pub(super) history: Option<History>,
    /// The end of the recording.
    pub(super) at_ms: Millis,
    pub(super) epoch: u64,
    /// Whether nothing in it was missing or damaged.
    pub(super) is_whole: bool,
}

impl Replayed {
    /// Reads a recording; at most `max_bytes` of it are kept to go back to, of its end.
    ///
    /// # Errors
    /// There is no keyframe in it that can be read.
    pub(crate) fn read<R: Read + Seek>(
        series: &mut Series<R>,
        max_bytes: usize,
    ) -> Result<Self, RecordingError> {
        let (from_ms, _) = series.range();
        let replayed = Self::read_from(series, from_ms, HistoryLimits { max_age: ANY_AGE, max_bytes })?;
        let kept = replayed.history.as_ref().and_then(|history| history.kept().from_ms);
        if let Some(kept) = kept.filter(|&kept| kept > from_ms) {
            let ms = kept.since(from_ms);
            tracing::warn!(ms, "the beginning of the recording does not fit into --history-mib");
        }
        Ok(replayed)
    }

    /// Reads the end of a recording, from the keyframe before `from_ms` on.
    ///
    /// # Errors
    /// There is no keyframe in it that can be read.
    pub(super) fn read_from<R: Read + Seek>(
        series: &mut Series<R>,
        from_ms: Millis,
        limits: HistoryLimits,
    ) -> Result<Self, RecordingError> {
        let mut history = History::new(limits);
        let epoch = series.files().last().map_or(0, |file| file.meta().epoch);
        let folded = read(series, from_ms, &mut |met| {
            let Some(history) = &mut history else { return };
            match met {
                PassItem::Keyframe { at_ms, seq, frames } => {
                    let frames = frames.into_iter().map(Bytes::from).collect();
                    history.keyframe(at_ms, &Snapshot::read(seq, frames));
                }
                PassItem::Batch { first, next, at_ms, frame } => {
                    let frame = Bytes::copy_from_slice(frame);
                    history.published(&Published { first, next, at_ms, frame });
                }
                PassItem::Row(row) => history.row(row),
            }
        })?;
        let is_whole = folded.damaged.is_none() && folded.missing == 0;
        if let Some(damaged) = folded.damaged {
            tracing::warn!(%damaged, "the recording is not whole");
        }
        if folded.missing > 0 {
            tracing::warn!(records = folded.missing, "records are missing in the recording");
        }
        let Folded { cluster, at_ms, .. } = folded;
        Ok(Self { cluster, history, at_ms, epoch, is_whole })
    }
}

impl Hub {
    /// Shows a recording.
    pub(crate) fn replay(
        Replayed { cluster, history, at_ms, epoch, .. }: Replayed,
        shutdown: Shutdown,
    ) -> Hub {
        let stats = Stats::new(cluster.sources().len());
        let task = HubTask {
            intake: Intake::default(),
            checks: Checks::default(),
            state: State::replayed(cluster, history, epoch, at_ms),
            inbox: Inbox::new(QueueLimits { messages: 1, bytes: 1 }),
            handles: Vec::new(),
            commands: Commands::default(),
            stats,
            depth: DepthCache::default(),
            pictures: PictureCache::default(),
        };
        let (asks, questions) = mpsc::channel(MAX_QUESTIONS);
        tokio::spawn(task.run(questions, shutdown));
        Hub { asks, viewers: std::sync::Arc::default(), refusals: std::sync::Arc::default() }
    }
}
