//! Serves a recording: the state at its end, and the history before it. There is no input, and the clock stands still.

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
use super::state::HubState;
use super::view::{DepthCache, PictureCache, Stats};
use super::{Hub, HubTask, MAX_QUERIES, QueueLimits};
use crate::shutdown::Shutdown;

/// Longer than any recording: only bytes limit the history.
const ANY_AGE: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// A loaded recording.
pub(crate) struct Replayed {
    pub(super) cluster: Cluster,
    pub(super) history: Option<History>,
    /// The end of the recording.
    pub(super) at_ms: Millis,
    pub(super) epoch: u64,
    /// Whether nothing is missing or damaged.
    pub(super) is_whole: bool,
}

impl Replayed {
    /// Reads the last `max_bytes` of a recording, or what is behind the keyframe before `from`, and keeps that as history.
    ///
    /// # Errors
    /// It has no readable keyframe.
    pub(crate) fn read<R: Read + Seek>(
        series: &mut Series<R>,
        from: Option<Millis>,
        max_bytes: usize,
    ) -> Result<Self, RecordingError> {
        let (begin_ms, _) = series.range();
        let from_ms = from.unwrap_or(begin_ms);
        // What would be forgotten again is not read.
        let read_ms = from_ms.max(series.begin_within(max_bytes as u64));
        let replayed = Self::read_from(series, read_ms, HistoryLimits { max_age: ANY_AGE, max_bytes })?;
        let retained = replayed.history.as_ref().and_then(|history| history.retention().from_ms);
        if let Some(retained) = retained.filter(|&retained| retained > from_ms) {
            let ms = retained.since(from_ms);
            tracing::warn!(ms, "the start of the recording exceeds --history-mib and is not available");
        }
        Ok(replayed)
    }

    /// Reads the end of a recording, from the keyframe before `from_ms` on.
    ///
    /// # Errors
    /// It has no readable keyframe.
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
            tracing::warn!(%damaged, "the recording is damaged; the readable part is used");
        }
        if folded.missing > 0 {
            tracing::warn!(records = folded.missing, "the recording has missing records");
        }
        let Folded { cluster, at_ms, .. } = folded;
        Ok(Self { cluster, history, at_ms, epoch, is_whole })
    }
}

impl Hub {
    /// Starts a hub for a recording.
    pub(crate) fn replay(
        Replayed { cluster, history, at_ms, epoch, .. }: Replayed,
        shutdown: Shutdown,
    ) -> Hub {
        let stats = Stats::new(cluster.sources().len());
        let task = HubTask {
            intake: Intake::default(),
            checks: Checks::default(),
            state: HubState::replayed(cluster, history, epoch, at_ms),
            inbox: Inbox::new(QueueLimits { messages: 1, bytes: 1 }),
            handles: Vec::new(),
            commands: Commands::default(),
            stats,
            depth: DepthCache::default(),
            pictures: PictureCache::default(),
        };
        let (queries, questions) = mpsc::channel(MAX_QUERIES);
        tokio::spawn(task.run(questions, shutdown));
        Hub { queries, viewers: std::sync::Arc::default(), refusals: std::sync::Arc::default() }
    }
}
