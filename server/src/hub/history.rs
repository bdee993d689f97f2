//! The history in memory: keyframes, the batches after each, and a timeline row per second. It shares the published bytes.
//! Knows no viewer and no file.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;
use radixscope_insight::timeline::{RowInProgress, SecondRow};
use radixscope_model::id::{Millis, Seq};
use radixscope_model::record::Entry;
use radixscope_replay::{Retention, SegmentRow};
use radixscope_state::cluster::Cluster;

use super::log::Published;
use super::snapshot::Snapshot;
use super::spacing::Spacing;

/// Limits of the history.
#[derive(Clone, Copy, Debug)]
pub struct HistoryLimits {
    /// Maximum age; zero: no history.
    pub max_age: Duration,
    /// Maximum bytes of keyframes and batches.
    pub max_bytes: usize,
}

/// A keyframe and the batches after it.
struct Segment {
    /// The keyframe is the state after this record.
    seq: Seq,
    from_ms: Millis,
    to_ms: Millis,
    keyframe: Vec<Bytes>,
    batches: Vec<Published>,
    len_bytes: usize,
    /// What [`History::elapsed_ms`] was at its end.
    ended_ms: u64,
}

impl Segment {
    fn id(&self) -> SegmentId {
        SegmentId { seq: self.seq, from_ms: self.from_ms }
    }
}

/// Frames that lead to a moment, in order.
pub(crate) struct SegmentFrames {
    /// Time of the keyframe.
    pub(crate) from_ms: Millis,
    /// The keyframe is the state after this record.
    pub(crate) seq: Seq,
    /// Keyframe and batches.
    pub(crate) frames: Vec<Bytes>,
}

/// Id of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentId {
    /// Its keyframe is the state after this record.
    seq: Seq,
    /// Time of the keyframe.
    pub(crate) from_ms: Millis,
}

/// A copy of a segment, for writing it elsewhere.
pub(crate) struct StoredSegment {
    /// Frames of the keyframe.
    pub(crate) keyframe: Vec<Bytes>,
    /// Batches after it.
    pub(crate) batches: Vec<Published>,
}

/// The history.
pub(super) struct History {
    limits: HistoryLimits,
    segments: VecDeque<Segment>,
    len_bytes: usize,
    /// `None`: there is no keyframe.
    spacing: Option<Spacing>,
    rows: VecDeque<SecondRow>,
    now: RowInProgress,
    /// Milliseconds that passed, without steps of the clock. Age is counted in these: by the clock, what was retained while it was ahead
    /// would stay until the clock is there again.
    elapsed_ms: u64,
    /// The latest time.
    last_ms: Millis,
}

/// A batch is published each second: a longer time between two is a step of the clock, or a machine that slept.
const LONGEST_STEP_MS: u64 = 60_000;

impl History {
    /// `None` if disabled.
    pub(super) fn new(limits: HistoryLimits) -> Option<Self> {
        (!limits.max_age.is_zero() && limits.max_bytes > 0).then(|| Self {
            limits,
            segments: VecDeque::new(),
            len_bytes: 0,
            spacing: None,
            rows: VecDeque::new(),
            now: RowInProgress::default(),
            elapsed_ms: 0,
            last_ms: Millis(0),
        })
    }

    /// Continues after an outage.
    pub(super) fn resume(&mut self, until: Millis, cluster: &Cluster) {
        self.now.resume(until, cluster);
    }

    /// Retained batches, oldest first.
    pub(super) fn batches(&self) -> impl Iterator<Item = &Published> {
        self.segments.iter().flat_map(|segment| &segment.batches)
    }

    /// Counts `entry` for the timeline; `before` is the state that it is about to change.
    pub(super) fn count(&mut self, before: &Cluster, entry: &Entry<'_>) {
        self.now.count(before, &entry.record);
    }

    /// Ends and returns the row of this second.
    pub(super) fn end_second(&mut self, at_ms: Millis, cluster: &Cluster) -> SecondRow {
        let row = self.now.end(at_ms, cluster);
        self.row(row.clone());
        row
    }

    /// Appends an existing row.
    pub(super) fn row(&mut self, row: SecondRow) {
        self.pass(row.at_ms);
        self.rows.push_back(row);
        self.forget();
    }

    /// Whether a keyframe is due.
    pub(super) fn wants_keyframe(&self, now: Instant) -> bool {
        self.spacing.is_none_or(|spacing| spacing.is_due(now))
    }

    /// Appends a keyframe; later batches follow it.
    pub(super) fn keyframe(&mut self, at_ms: Millis, snapshot: &Snapshot) {
        self.pass(at_ms);
        let len_bytes = snapshot.frames.iter().map(Bytes::len).sum();
        self.spacing = Some(Spacing::after(len_bytes, snapshot.made, snapshot.cost));
        // Keeps the order if the clock was set back.
        let from_ms = self.segments.back().map_or(at_ms, |last| last.to_ms.max(at_ms));
        self.len_bytes += len_bytes;
        let (seq, keyframe) = (snapshot.seq, snapshot.frames.clone());
        let batches = Vec::new();
        let ended_ms = self.elapsed_ms;
        self.segments.push_back(Segment {
            seq,
            from_ms,
            to_ms: from_ms,
            keyframe,
            batches,
            len_bytes,
            ended_ms,
        });
        self.forget();
    }

    /// Appends a published batch, which may be an empty heartbeat.
    pub(super) fn published(&mut self, batch: &Published) {
        self.pass(batch.at_ms);
        let mut segment = self.segments.back_mut();
        if let Some(segment) = &mut segment {
            segment.to_ms = segment.to_ms.max(batch.at_ms);
            segment.ended_ms = self.elapsed_ms;
        }
        if batch.first == batch.next {
            return;
        }
        let bytes = batch.frame.len();
        if let Some(spacing) = &mut self.spacing {
            spacing.published(bytes);
        }
        // Skipped until the next keyframe.
        let Some(segment) = segment else { return };
        segment.len_bytes += bytes;
        self.len_bytes += bytes;
        segment.batches.push(batch.clone());
        self.forget();
    }

    /// It is `at_ms` now.
    fn pass(&mut self, at_ms: Millis) {
        self.elapsed_ms += at_ms.since(self.last_ms).min(LONGEST_STEP_MS);
        self.last_ms = at_ms;
    }

    /// Drops segments beyond the limits, oldest first.
    fn forget(&mut self) {
        let max_age_ms = u64::try_from(self.limits.max_age.as_millis()).unwrap_or(u64::MAX);
        while let Some(oldest) = self.segments.front() {
            let is_old = self.segments.len() > 1 && self.elapsed_ms - oldest.ended_ms > max_age_ms;
            if !is_old && self.len_bytes <= self.limits.max_bytes {
                break;
            }
            self.len_bytes -= oldest.len_bytes;
            self.segments.pop_front();
        }
        let from = self.segments.front().map(|oldest| oldest.from_ms);
        let max_rows = usize::try_from(max_age_ms / 1_000).unwrap_or(usize::MAX).saturating_add(120);
        while self.rows.len() > max_rows
            || self.rows.front().is_some_and(|row| from.is_none_or(|from| row.at_ms < from))
        {
            self.rows.pop_front();
        }
    }

    /// Extent of the history.
    pub(super) fn retention(&self) -> Retention {
        Retention {
            from_ms: self.segments.front().map(|segment| segment.from_ms),
            bytes: self.len_bytes,
            max_bytes: self.limits.max_bytes,
            max_age_ms: u64::try_from(self.limits.max_age.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// The segments, oldest first.
    pub(super) fn segments(&self) -> Vec<SegmentRow> {
        let row = |segment: &Segment| SegmentRow {
            from_ms: segment.from_ms,
            to_ms: segment.to_ms,
            first_seq: Some(Seq(segment.seq.0 + 1)),
            bytes: segment.len_bytes,
        };
        self.segments.iter().map(row).collect()
    }

    /// Segments of a time range, from the keyframe before its start, and its rows.
    pub(super) fn between(&self, from: Millis, to: Millis) -> (Vec<SegmentId>, Vec<SecondRow>) {
        let first = self.segments.partition_point(|segment| segment.from_ms <= from).saturating_sub(1);
        let is_meant = |segment: &&Segment| segment.from_ms <= to && segment.to_ms >= from;
        let segments: Vec<_> = self.segments.iter().skip(first).filter(is_meant).map(Segment::id).collect();
        let begin = segments.first().map_or(to, |segment| segment.from_ms);
        let is_in = |row: &&SecondRow| row.at_ms >= begin && row.at_ms <= to;
        (segments, self.rows.iter().filter(is_in).cloned().collect())
    }

    /// A segment; `None`: no longer retained.
    pub(super) fn segment(&self, id: SegmentId) -> Option<StoredSegment> {
        let segment = self.segments.iter().find(|segment| segment.id() == id)?;
        Some(StoredSegment { keyframe: segment.keyframe.clone(), batches: segment.batches.clone() })
    }

    /// Rows of the timeline after `after`.
    pub(super) fn rows_after(&self, after: Millis) -> Vec<SecondRow> {
        let known = self.rows.partition_point(|row| row.at_ms <= after);
        self.rows.range(known..).cloned().collect()
    }

    /// The frames that lead to the state at `at`. With `after`, only batches behind that record; with `until`, no later ones.
    /// `None`: not retained.
    pub(super) fn segment_at(
        &self,
        at: Millis,
        after: Option<Seq>,
        until: Option<Millis>,
    ) -> Option<SegmentFrames> {
        let next = self.segments.partition_point(|segment| segment.from_ms <= at);
        let segment = self.segments.get(next.checked_sub(1)?)?;
        let after = after.filter(|after| *after >= segment.seq);
        let known = |batch: &Published| after.is_some_and(|after| batch.next.0 <= after.0.saturating_add(1));
        let is_wanted = |batch: &&Published| until.is_none_or(|until| batch.at_ms <= until);
        let batches = &segment.batches[segment.batches.partition_point(known)..];
        let batches = batches.iter().take_while(is_wanted);
        let keyframe = if after.is_none() { segment.keyframe.as_slice() } else { &[] };
        let frames = keyframe.iter().chain(batches.map(|batch| &batch.frame)).cloned().collect();
        Some(SegmentFrames { from_ms: segment.from_ms, seq: segment.seq, frames })
    }
}

#[cfg(test)]
mod tests;
