//! Hands records to intake in the order of their times, as the hub does with what is received, but by the clock of the records: a
//! second is over when a record of the next one comes. What follows is written as a recording, so that everything which reads one
//! reads this.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::time::{Duration, Instant};

use radixscope_insight::check::Checks;
use radixscope_insight::timeline::RowInProgress;
use radixscope_intake::{Intake, Payload, Received};
use radixscope_model::frame::{BatchWriter, Digest};
use radixscope_model::id::{Millis, Seq, SourceIx, WorkerIx};
use radixscope_model::record::{Entry, LinkState, Record, SourceKind};
use radixscope_recording::{Channel, Meta, RecordingError, Writer, snapshot_frames};
use radixscope_state::cluster::{Cluster, Follow};
use radixscope_state::sink::RecordSink;

use super::file::LATEST;
use crate::hub::spacing::Spacing;
use crate::recording::{FinishedDecisions, second};

/// Records of at most so much time are published together, as live.
const BATCH_MS: u64 = 100;
/// A batch that grows beyond this is published at once.
const MAX_BATCH_BYTES: usize = 256 * 1024;
const SECOND_MS: u64 = 1_000;
/// How long the seconds of a pause have anything to say: findings end, and what waits for its other parts is given up.
const ACTIVE_MS: u64 = 150_000;
/// How long after the last record the recording ends: until then what belongs together is joined.
const END_AFTER_MS: u64 = 3_000;

/// The state, and the recording that it is written to.
pub(super) struct Recorded {
    cluster: Cluster,
    to: Writer<BufWriter<File>>,
    batch: BatchWriter,
    row: RowInProgress,
    ended: FinishedDecisions,
    spacing: Option<Spacing>,
    /// What times of records are counted from where an [`Instant`] is asked for.
    began: (Millis, Instant),
    published_ms: Millis,
    failed: Option<RecordingError>,
}

impl Recorded {
    /// Begins a recording with a state at a time.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn begin(
        cluster: Cluster,
        (to, meta): (File, &Meta),
        began: Millis,
    ) -> Result<Self, RecordingError> {
        let mut recorded = Self {
            batch: BatchWriter::new(Seq(cluster.seq().0 + 1)),
            cluster,
            to: Writer::new(BufWriter::new(to), meta)?,
            row: RowInProgress::default(),
            ended: FinishedDecisions::default(),
            spacing: None,
            began: (began, Instant::now()),
            published_ms: began,
            failed: None,
        };
        recorded.keyframe(began);
        Ok(recorded)
    }

    /// Goes on with another state.
    pub(super) fn restart(&mut self, cluster: Cluster, at: Millis) {
        self.publish(at, None);
        self.batch = BatchWriter::new(Seq(cluster.seq().0 + 1));
        self.cluster = cluster;
        self.keyframe(at);
    }

    /// The time is `at`: publishes what waited long enough.
    pub(super) fn reach(&mut self, at: Millis) {
        if at.since(self.published_ms) >= BATCH_MS {
            self.publish(at, None);
        }
    }

    /// Ends the recording. The state, and the file.
    ///
    /// # Errors
    /// It could not be written.
    pub(super) fn end(mut self, at: Millis) -> Result<(Cluster, File), RecordingError> {
        self.publish(at, Some(Digest(self.cluster.digest())));
        for (channel, json) in second(Millis(u64::MAX), &self.cluster, None, &mut self.ended, &mut |_| {}) {
            let written = self.to.message(channel, at, &json);
            self.note(written);
        }
        let Self { cluster, to, failed, .. } = self;
        if let Some(failed) = failed {
            return Err(failed);
        }
        let file = to.finish()?.into_inner().map_err(|error| RecordingError::from(error.into_error()))?;
        Ok((cluster, file))
    }

    /// Whether writing failed: the rest need not be read.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    fn instant(&self, at: Millis) -> Instant {
        let (began_ms, began) = self.began;
        began.checked_add(Duration::from_millis(at.since(began_ms))).unwrap_or(began)
    }

    fn publish(&mut self, at: Millis, digest: Option<Digest>) {
        self.published_ms = at;
        if self.batch.count() > 0 {
            let written = match self.batch.finish(at, digest) {
                Ok(frame) => {
                    if let Some(spacing) = &mut self.spacing {
                        spacing.published(frame.len());
                    }
                    self.to.message(Channel::Batches, at, &frame)
                }
                // Its records were encoded before; that they cannot be put together is a fault of ours.
                Err(_) => Err(RecordingError::Damaged {
                    at: self.to.len_bytes(),
                    what: "a batch that cannot be encoded",
                }),
            };
            self.note(written);
        }
        if self.spacing.is_none_or(|spacing| spacing.is_due(self.instant(at))) {
            self.keyframe(at);
        }
    }

    fn keyframe(&mut self, at: Millis) {
        let written = snapshot_frames(&self.cluster).map_err(RecordingError::from).and_then(|frames| {
            let bytes = frames.iter().map(Vec::len).sum();
            self.spacing = Some(Spacing::after(bytes, self.instant(at), Duration::ZERO));
            self.to.keyframe(at, &frames)
        });
        self.note(written);
    }

    pub(super) fn end_second(&mut self, at: Millis) {
        let digest = Digest(self.cluster.digest());
        self.publish(at, Some(digest));
        let row = self.row.end(at, &self.cluster);
        for (channel, json) in second(at, &self.cluster, Some(&row), &mut self.ended, &mut |_| {}) {
            let written = self.to.message(channel, at, &json);
            self.note(written);
        }
    }

    fn note(&mut self, written: Result<(), RecordingError>) {
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
    }
}

impl RecordSink for Recorded {
    fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    fn follow_blocks(&mut self, follow: Follow) {
        self.cluster.follow_blocks(follow);
    }

    fn append(&mut self, entry: &Entry<'_>) {
        let seq = Seq(self.cluster.seq().0 + 1);
        if self.batch.push(entry).is_err() {
            // As in the hub: skipped everywhere. Plain data always encodes.
            return;
        }
        self.row.count(&self.cluster, &entry.record);
        self.cluster.fold(seq, entry);
        self.ended.note(entry);
        if self.batch.len_bytes() > MAX_BATCH_BYTES {
            self.publish(self.published_ms, None);
        }
    }
}

/// The seconds that are over, by the clock of records.
pub(super) struct Seconds {
    /// When the current one is over.
    ends: Millis,
    /// Time of the last record.
    last: Millis,
}

impl Seconds {
    pub(super) fn new(began: Millis) -> Self {
        Self { ends: Millis(began.0.saturating_add(SECOND_MS)), last: began }
    }

    /// A record came.
    pub(super) fn note(&mut self, at: Millis) {
        self.last = at;
    }

    /// When the next second ended that is over at `to`; none is after [`LATEST`]. Of a long pause only its beginning and its end are
    /// given: nothing changes in between.
    pub(super) fn next_over(&mut self, to: Millis) -> Option<Millis> {
        let to = to.min(LATEST);
        if self.ends > to {
            return None;
        }
        let (idle_ms, left_ms) = (self.ends.since(self.last), to.since(self.ends));
        if idle_ms > ACTIVE_MS && left_ms > ACTIVE_MS {
            self.ends.0 += left_ms - ACTIVE_MS;
        }
        let over = self.ends;
        self.ends.0 += SECOND_MS;
        Some(over)
    }
}

/// A source of records.
pub(super) struct Source {
    pub(super) name: String,
    pub(super) kind: SourceKind,
    /// By how much the clock is ahead that wrote its records.
    pub(super) ahead_ms: i64,
    /// What is said of it at its end.
    pub(super) detail: String,
}

/// See the module.
pub(super) struct Timeline {
    recorded: Recorded,
    intake: Intake,
    checks: Checks,
    sources: Vec<(SourceIx, String)>,
    /// Indices of workers that the recording introduced, which may not be those that they have here.
    adopted: BTreeMap<WorkerIx, WorkerIx>,
    /// The same of sources.
    adopted_sources: BTreeMap<SourceIx, SourceIx>,
    now: Millis,
    seconds: Seconds,
}

impl Timeline {
    /// Begins a recording at a time.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn new(
        sources: &[Source],
        checks: Checks,
        to: (File, &Meta),
        began: Millis,
    ) -> Result<Self, RecordingError> {
        let recorded = Recorded::begin(Cluster::default(), to, began)?;
        Ok(Self::with(recorded, Intake::default(), sources, checks, began))
    }

    fn with(
        mut recorded: Recorded,
        mut intake: Intake,
        sources: &[Source],
        checks: Checks,
        began: Millis,
    ) -> Self {
        let mut indices = Vec::new();
        for source in sources {
            let Some(ix) = intake.source(&source.name, source.kind, began, &mut recorded) else { continue };
            intake.set_clock_ahead(ix, source.ahead_ms);
            let (state, detail) = (LinkState::Live, "Reading.".into());
            recorded
                .append(&Entry { at_ms: began, record: Record::SourceState { source: ix, state, detail } });
            indices.push((ix, source.detail.clone()));
        }
        Self {
            recorded,
            intake,
            checks,
            sources: indices,
            adopted: BTreeMap::new(),
            adopted_sources: BTreeMap::new(),
            now: began,
            seconds: Seconds::new(began),
        }
    }

    /// Begins with the state of a recording, whose records are given to [`Self::replay`].
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn upon(
        cluster: Cluster,
        sources: &[Source],
        checks: Checks,
        to: (File, &Meta),
        began: Millis,
    ) -> Result<Self, RecordingError> {
        let mut intake = Intake::default();
        intake.adopt(began, &cluster);
        Ok(Self::with(Recorded::begin(cluster, to, began)?, intake, sources, checks, began))
    }

    /// Takes the next record of the recording that it was begun with. Times never decrease.
    pub(super) fn replay(&mut self, entry: &Entry<'_>) {
        self.advance(entry.at_ms);
        self.seconds.note(self.now);
        let Self { intake, recorded, adopted, adopted_sources, now, .. } = self;
        if let Record::Source { source, name, kind } = &entry.record {
            if let Some(ix) = intake.source(name, *kind, *now, recorded) {
                adopted_sources.insert(*source, ix);
            }
            return;
        }
        if let Record::Worker(identity) = &entry.record {
            if let Some(worker) = intake.adopt_worker(*now, identity, recorded) {
                adopted.insert(identity.worker, worker);
            }
            return;
        }
        let mut record = entry.record.clone();
        // Those of the state that it was begun with have their indices.
        if let Some(source) = record.source_mut() {
            *source = adopted_sources.get(source).copied().unwrap_or(*source);
        }
        record.each_worker_mut(&mut |worker| *worker = adopted.get(worker).copied().unwrap_or(*worker));
        intake.replay(&Entry { at_ms: *now, record }, recorded);
        drop(intake.commands());
    }

    /// Takes the next record of a source. Times never decrease.
    pub(super) fn take(&mut self, source: usize, at: Millis, payload: Payload) {
        let Some(&(source, _)) = self.sources.get(source) else { return };
        self.advance(at);
        self.seconds.note(self.now);
        self.intake.handle(&Received { source, at_ms: self.now, payload }, &mut self.recorded);
        // Nobody is there to be asked.
        drop(self.intake.commands());
    }

    fn advance(&mut self, to: Millis) {
        while let Some(over) = self.seconds.next_over(to) {
            self.end_second(over);
        }
        self.now = self.now.max(to);
        self.recorded.reach(self.now);
    }

    fn end_second(&mut self, at: Millis) {
        let Self { recorded, intake, checks, now, .. } = self;
        *now = at;
        intake.flush(at, recorded);
        drop(intake.commands());
        checks.run(at, recorded);
        recorded.end_second(at);
    }

    /// The end: what waits is joined as far as it can be. The state, and the file.
    ///
    /// # Errors
    /// It could not be written.
    pub(super) fn end(mut self) -> Result<(Cluster, File), RecordingError> {
        self.advance(Millis(self.seconds.last.0.saturating_add(END_AFTER_MS)));
        for (source, detail) in std::mem::take(&mut self.sources) {
            let (state, detail) = (LinkState::Ended, detail.as_str().into());
            let record = Record::SourceState { source, state, detail };
            self.recorded.append(&Entry { at_ms: self.now, record });
        }
        self.recorded.end(self.now)
    }

    /// Whether writing failed: the rest need not be read.
    pub(super) fn has_failed(&self) -> bool {
        self.recorded.has_failed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_pause_only_the_beginning_and_the_end_are_given_however_long_it_is() {
        let mut seconds = Seconds::new(Millis(500));
        let mut over = |to: u64| std::iter::from_fn(|| seconds.next_over(Millis(to))).collect::<Vec<_>>();
        assert_eq!(over(3_600), [1_500, 2_500, 3_500].map(Millis));
        // As a recording may say whose times cannot be.
        let all = over(u64::MAX);
        assert!(all.len() < 400 && all.is_sorted(), "{}", all.len());
        assert_eq!(all[0], Millis(4_500));
        assert!(all.last().is_some_and(|last| *last <= LATEST && LATEST.since(*last) < SECOND_MS));
        assert_eq!(over(u64::MAX), []);
    }
}
