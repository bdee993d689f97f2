//! The state and the processing of a record: number, fold, append to the batch, publish; and joining viewers.
//!
//! Synchronous throughout: nothing here waits, so no record is ever half done.

use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::broadcast;

use radixscope_model::frame::{BatchWriter, Digest, Frame};
use radixscope_model::id::{Millis, Seq};
use radixscope_model::record::Entry;
use radixscope_recording::EncodeError;
use radixscope_state::cluster::{Cluster, Follow};
use radixscope_state::sink::RecordSink;

use super::history::{History, HistoryLimits};
use super::log::{Published, RecentLog};
use super::resume::Resumed;
use super::snapshot::Snapshot;
use crate::recording::Recorder;
use crate::time::now;

/// Batches that a slow viewer may lag behind before it is resynchronised. Twelve seconds at ten a second; shared by
/// all viewers, so at most this many times [`MAX_BATCH_BYTES`] for all of them together.
const VIEWER_QUEUE_BATCHES: usize = 128;
/// A batch that grows beyond this is sent at once, so that no frame is large.
const MAX_BATCH_BYTES: usize = 256 * 1024;
/// Interval of heartbeats to viewers.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How often a batch carries the state's digest.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// The frames for a viewer that joins.
pub struct Joined {
    /// First frame.
    pub hello: Bytes,
    /// Whether the viewer resumes. Otherwise `backlog` begins with a snapshot.
    pub resumed: bool,
    /// Sequence number of the state that `backlog` begins from.
    pub from: Seq,
    /// Frames to send first, in order.
    pub backlog: Vec<Bytes>,
    /// The batches after them.
    pub live: broadcast::Receiver<Published>,
}

/// A viewer's position before it reconnected.
#[derive(Clone, Copy, Debug)]
pub struct Resume {
    /// The last record it has.
    pub after: Seq,
    /// Run of the server; `None`: not given.
    pub epoch: Option<u64>,
}

pub(super) struct HubState {
    pub(super) cluster: Cluster,
    pub(super) log: RecentLog,
    /// `None`: no history.
    pub(super) history: Option<History>,
    /// `None`: no recording.
    pub(super) recorder: Option<Recorder>,
    pub(super) batches: u64,
    /// The end of a replayed recording; `None`: live.
    replay_end_ms: Option<Millis>,
    epoch: u64,
    writer: BatchWriter,
    snapshot: Option<Snapshot>,
    live: broadcast::Sender<Published>,
    last_published: Instant,
    last_check: Instant,
    changed_since_check: bool,
}

impl HubState {
    pub(super) fn new(max_nodes: u32, log_bytes: usize, history: HistoryLimits, epoch: u64) -> Self {
        let started = Instant::now();
        let mut state = Self {
            cluster: Cluster::new(max_nodes),
            log: RecentLog::new(log_bytes),
            history: History::new(history),
            recorder: None,
            replay_end_ms: None,
            batches: 0,
            epoch,
            writer: BatchWriter::new(Seq(1)),
            snapshot: None,
            live: broadcast::Sender::new(VIEWER_QUEUE_BATCHES),
            last_published: started,
            last_check: started,
            changed_since_check: false,
        };
        // The first batch follows a keyframe of the empty state.
        state.keep_keyframe(now());
        state
    }

    /// The end of a recording, with its history.
    pub(super) fn replayed(cluster: Cluster, history: Option<History>, epoch: u64, at_ms: Millis) -> Self {
        let nothing = HistoryLimits { max_age: Duration::ZERO, max_bytes: 0 };
        let next = Seq(cluster.seq().0 + 1);
        Self {
            log: RecentLog::beginning(0, next),
            writer: BatchWriter::new(next),
            history,
            replay_end_ms: Some(at_ms),
            cluster,
            ..Self::new(1, 0, nothing, epoch)
        }
    }

    /// A resumed state. It must be published before new records.
    pub(super) fn resumed(resumed: Resumed, epoch: u64) -> Self {
        let nothing = HistoryLimits { max_age: Duration::ZERO, max_bytes: 0 };
        let Resumed { cluster, mut history, log, at_ms, .. } = resumed;
        if let Some(history) = &mut history {
            history.resume(at_ms, &cluster);
        }
        let writer = BatchWriter::new(log.next());
        Self { log, writer, history, cluster, ..Self::new(1, 0, nothing, epoch) }
    }

    /// Whether it is a replay.
    pub(super) fn is_replay(&self) -> bool {
        self.replay_end_ms.is_some()
    }

    /// Now, or the end of the recording.
    pub(super) fn now(&self) -> Millis {
        self.replay_end_ms.unwrap_or_else(now)
    }

    /// Starts recording.
    pub(super) fn record(&mut self, recorder: Recorder) {
        self.recorder = Some(recorder);
        self.keep_keyframe(now());
    }

    /// The run of the server that this state belongs to.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Publishes pending records, or a heartbeat if it is due.
    pub(super) fn tick(&mut self, at_ms: Millis) {
        let is_due = self.last_published.elapsed() >= HEARTBEAT;
        if self.writer.count() > 0 || is_due {
            self.publish(at_ms);
        }
        if self.snapshot.as_ref().is_some_and(|snapshot| !snapshot.is_fresh(Instant::now())) {
            self.snapshot = None;
        }
    }

    pub(super) fn publish(&mut self, at_ms: Millis) {
        let count = self.writer.count();
        let first = self.log.next();
        let next = Seq(first.0 + u64::from(count));
        let started = Instant::now();
        self.last_published = started;
        let check = (self.changed_since_check && started.duration_since(self.last_check) >= CHECK_EVERY)
            .then(|| {
                self.last_check = started;
                self.changed_since_check = false;
                Digest(self.cluster.digest())
            });
        let frame = match self.writer.finish(at_ms, check) {
            // Without spare capacity: it is retained for minutes, and limits count its length.
            Ok(frame) => Bytes::from(frame.into_boxed_slice()),
            Err(error) => {
                // Its records were encoded before; only their concatenation is left, and that cannot fail.
                tracing::error!(%error, "a batch could not be encoded");
                return;
            }
        };
        self.batches += 1;
        let batch = Published { first, next, at_ms, frame };
        if count > 0 {
            self.log.push(batch.clone());
        }
        if let Some(history) = &mut self.history {
            history.published(&batch);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.published(&batch);
        }
        // Fails without viewers.
        let _ = self.live.send(batch);
        self.keep_keyframe(at_ms);
    }

    /// Adds a keyframe to the history and the recording if it is due. Call it when everything folded is published.
    fn keep_keyframe(&mut self, at_ms: Millis) {
        let now = Instant::now();
        let history = self.history.as_mut().filter(|history| history.wants_keyframe(now));
        let recorder = self.recorder.as_mut().filter(|recorder| recorder.wants_keyframe(now));
        if (history.is_none() && recorder.is_none()) || self.replay_end_ms.is_some() {
            return;
        }
        match Snapshot::of(&self.cluster) {
            Ok(snapshot) => {
                if let Some(history) = history {
                    history.keyframe(at_ms, &snapshot);
                }
                if let Some(recorder) = recorder {
                    recorder.keyframe(at_ms, &snapshot.frames, snapshot.made, snapshot.cost);
                }
                self.snapshot = Some(snapshot);
            }
            // New viewers get an error too; the history continues from the previous keyframe.
            Err(error) => tracing::error!(%error, "the state could not be encoded as a keyframe"),
        }
    }

    /// Ends the timeline row of this second.
    pub(super) fn end_second(&mut self, at_ms: Millis) {
        let Self { history, recorder, cluster, .. } = self;
        let row = history.as_mut().map(|history| history.end_second(at_ms, cluster));
        if let Some(recorder) = recorder {
            recorder.second(at_ms, cluster, row);
        }
    }

    /// Joins a viewer.
    pub(super) fn join(&mut self, resume: Option<Resume>) -> Result<Joined, EncodeError> {
        let seq = self.cluster.seq();
        let hello = Frame::Hello {
            epoch: self.epoch,
            seq,
            at_ms: self.now(),
            server: env!("CARGO_PKG_VERSION").into(),
        };
        let hello = Bytes::from(hello.encode()?);
        let live = self.live.subscribe();
        if let Some(from) =
            resume.filter(|r| r.epoch.is_none_or(|epoch| epoch == self.epoch)).map(|r| r.after)
            && from <= seq
            && let Some(frames) = self.log.after(from)
        {
            return Ok(Joined { hello, resumed: true, from, backlog: frames.cloned().collect(), live });
        }
        let (from, backlog) = self.snapshot_and_after()?;
        Ok(Joined { hello, resumed: false, from, backlog, live })
    }

    fn snapshot_and_after(&mut self) -> Result<(Seq, Vec<Bytes>), EncodeError> {
        if let Some(snapshot) = self.snapshot.as_ref().filter(|snapshot| snapshot.is_fresh(Instant::now()))
            && let Some(since) = self.log.after(snapshot.seq)
        {
            return Ok((snapshot.seq, snapshot.frames.iter().chain(since).cloned().collect()));
        }
        let snapshot = Snapshot::of(&self.cluster)?;
        let (seq, frames) = (snapshot.seq, snapshot.frames.clone());
        self.snapshot = Some(snapshot);
        Ok((seq, frames))
    }
}

impl RecordSink for HubState {
    fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    fn follow_blocks(&mut self, follow: Follow) {
        self.cluster.follow_blocks(follow);
    }

    /// Numbers `entry`, folds it and appends it to the batch.
    fn append(&mut self, entry: &Entry<'_>) {
        let seq = Seq(self.cluster.seq().0 + 1);
        if let Err(error) = self.writer.push(entry) {
            // Plain data always encodes. If it did not, viewers could not follow, so the record is skipped everywhere.
            tracing::error!(%error, "a record could not be encoded and is skipped");
            return;
        }
        if let Some(history) = &mut self.history {
            history.count(&self.cluster, entry);
        }
        self.cluster.fold(seq, entry);
        if let Some(recorder) = &mut self.recorder {
            recorder.noted(entry);
        }
        self.changed_since_check = true;
        if self.writer.len_bytes() > MAX_BATCH_BYTES {
            self.publish(now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::SourceIx;
    use radixscope_model::record::{LinkState, Record, SourceKind};
    use radixscope_state::cluster::SnapshotReader;

    const HISTORY: HistoryLimits = HistoryLimits { max_age: Duration::from_secs(900), max_bytes: 1 << 26 };

    fn state() -> HubState {
        let mut state = HubState::new(1_000, 1 << 20, HISTORY, 7);
        let name = "test".into();
        append(&mut state, Record::Source { source: SourceIx(0), name, kind: SourceKind::Simulator });
        state
    }

    fn append(state: &mut HubState, record: Record<'_>) {
        state.append(&Entry { at_ms: Millis(1_000), record });
    }

    fn change(state: &mut HubState, detail: &str) {
        let source = SourceIx(0);
        append(state, Record::SourceState { source, state: LinkState::Live, detail: detail.into() });
    }

    /// A viewer that applies every frame it is given.
    #[derive(Default)]
    struct Viewer {
        reader: SnapshotReader,
        cluster: Cluster,
    }

    impl Viewer {
        fn apply(&mut self, frame: &[u8]) {
            match Frame::decode(frame).unwrap() {
                Frame::Snapshot { bytes, .. } => {
                    if let Some(cluster) = self.reader.part(bytes.0).unwrap() {
                        self.cluster = cluster;
                    }
                }
                Frame::Batch(batch) => {
                    for entry in batch.entries() {
                        let (seq, entry) = entry.unwrap();
                        self.cluster.fold(seq, &entry);
                    }
                    if let Some(check) = batch.check {
                        assert_eq!(check.0, self.cluster.digest());
                    }
                }
                Frame::Hello { .. } | Frame::Lag { .. } => {}
            }
        }

        fn follow(&mut self, joined: &mut Joined) {
            joined.backlog.drain(..).for_each(|frame| self.apply(&frame));
            while let Ok(batch) = joined.live.try_recv() {
                self.apply(&batch.frame);
            }
        }
    }

    #[test]
    fn a_newcomer_in_the_middle_of_a_batch_reaches_the_same_state() {
        let mut state = state();
        state.tick(Millis(1));
        change(&mut state, "a");
        let mut joined = state.join(None).unwrap();
        change(&mut state, "b");
        state.tick(Millis(2));
        let mut viewer = Viewer { cluster: Cluster::new(1_000), ..Viewer::default() };
        viewer.follow(&mut joined);
        assert_eq!(viewer.cluster.digest(), state.cluster.digest());
    }

    #[test]
    fn a_second_newcomer_gets_the_same_snapshot_and_what_followed() {
        let mut state = state();
        state.tick(Millis(1));
        let first = state.join(None).unwrap();
        change(&mut state, "a");
        state.tick(Millis(2));
        let mut second = state.join(None).unwrap();
        assert_eq!(second.backlog[0].as_ptr(), first.backlog[0].as_ptr(), "encoded once");
        let mut viewer = Viewer { cluster: Cluster::new(1_000), ..Viewer::default() };
        viewer.follow(&mut second);
        assert_eq!(viewer.cluster.digest(), state.cluster.digest());
    }

    #[test]
    fn a_viewer_that_comes_back_resumes_without_a_snapshot() {
        let mut state = state();
        state.tick(Millis(1));
        let mut viewer = Viewer { cluster: Cluster::new(1_000), ..Viewer::default() };
        viewer.follow(&mut state.join(None).unwrap());
        change(&mut state, "a");
        state.tick(Millis(2));
        let resume = Resume { after: viewer.cluster.seq(), epoch: Some(7) };
        let mut again = state.join(Some(resume)).unwrap();
        assert!(again.resumed);
        viewer.follow(&mut again);
        assert_eq!(viewer.cluster.digest(), state.cluster.digest());
    }

    #[test]
    fn another_epoch_or_an_unknown_future_gets_a_snapshot() {
        let mut state = state();
        state.tick(Millis(1));
        assert!(!state.join(Some(Resume { after: Seq(1), epoch: Some(8) })).unwrap().resumed);
        assert!(!state.join(Some(Resume { after: Seq(99), epoch: None })).unwrap().resumed);
        assert!(state.join(Some(Resume { after: Seq(1), epoch: None })).unwrap().resumed);
    }

    #[test]
    fn a_large_batch_is_cut_before_its_time() {
        let mut state = state();
        let mut live = state.live.subscribe();
        let long = "x".repeat(1_000);
        (0..300).for_each(|_| change(&mut state, &long));
        assert!(live.try_recv().is_ok_and(|batch| batch.frame.len() > MAX_BATCH_BYTES));
    }
}
