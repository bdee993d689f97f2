//! What is written, read back.

use std::fs;
use std::path::Path;

use radixscope_model::frame::{self, BatchWriter, Frame};
use radixscope_model::id::{Seq, SourceIx};
use radixscope_model::record::{LinkState, Record};
use radixscope_recording::{Recording, SeekTo, Series};

use super::*;
use crate::config::RecordingAt;
use crate::hub::{Hub, Replayed};

/// A state that is recorded by hand.
struct Stage {
    recorder: Option<Recorder>,
    threads: Option<RecordingThreads>,
    cluster: Cluster,
    batch: BatchWriter,
    at_ms: Millis,
}

impl Stage {
    fn new(to: RecordTo) -> Self {
        Self::of(to, meta(1, 2, Millis(1_000), &[]))
    }

    fn of(to: RecordTo, meta: Meta) -> Self {
        let (recorder, threads) = Recorder::start(to, meta).unwrap();
        Self {
            recorder: Some(recorder),
            threads: Some(threads),
            cluster: Cluster::new(1_000),
            batch: BatchWriter::new(Seq(1)),
            at_ms: Millis(1_800_000_000_000),
        }
    }

    /// One record with so many bytes, published.
    fn step(&mut self, bytes: usize) {
        let recorder = self.recorder.as_mut().unwrap();
        if recorder.wants_keyframe(Instant::now()) {
            let mut bodies = Vec::new();
            self.cluster.snapshot(|part| bodies.push(part)).unwrap();
            let (seq, parts) = (self.cluster.seq(), bodies.len() as u32);
            let frame = |(part, body): (u32, &Vec<u8>)| {
                Bytes::from(Frame::Snapshot { seq, part, parts, bytes: frame::Bytes(body) }.encode().unwrap())
            };
            let frames: Vec<Bytes> = (0..).zip(&bodies).map(frame).collect();
            recorder.keyframe(self.at_ms, &frames, Instant::now(), Duration::ZERO);
        }
        self.at_ms.0 += 100;
        let first = Seq(self.cluster.seq().0 + 1);
        // Nothing that compresses.
        let detail: String = (0..bytes as u64)
            .map(|i| {
                char::from(b' ' + (((first.0 << 32) + i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as u8)
            })
            .collect();
        let record = match first.0 {
            1 => Record::Source { source: SourceIx(0), name: "test".into(), kind: SourceKind::Nats },
            _ => Record::SourceState { source: SourceIx(0), state: LinkState::Live, detail: detail.into() },
        };
        let entry = Entry { at_ms: self.at_ms, record };
        self.batch.push(&entry).unwrap();
        self.cluster.fold(first, &entry);
        let frame = self.batch.finish(self.at_ms, None).unwrap().into();
        let next = Seq(first.0 + 1);
        recorder.published(&Published { first, next, at_ms: self.at_ms, frame });
    }

    /// Waits until everything handed over is written and synced.
    fn wait_until(&self, is_so: impl Fn(&RecordingStatus) -> bool) {
        let until = Instant::now() + Duration::from_secs(60);
        while !is_so(&self.status()) {
            assert!(Instant::now() < until, "{:?}", self.status());
            std::thread::yield_now();
        }
    }

    fn status(&self) -> RecordingStatus {
        self.recorder.as_ref().unwrap().watch().status()
    }

    fn end(&mut self) {
        drop(self.recorder.take());
        self.threads.take().unwrap().writing.join().unwrap();
    }
}

fn folder(path: &Path) -> RecordTo {
    RecordTo::Folder { path: path.to_owned(), max_bytes: 16 << 20, max_age: Duration::from_secs(86_400) }
}

fn recordings(path: &Path) -> Vec<Recording<fs::File>> {
    let files = files::recordings_in(path).unwrap();
    files.iter().map(|retained| Recording::open(fs::File::open(&retained.path).unwrap()).unwrap()).collect()
}

#[test]
fn what_is_recorded_folds_to_the_live_state() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.mcap");
    let mut stage = Stage::new(RecordTo::File(file.clone()));
    (0..200).for_each(|_| stage.step(100));
    stage.end();
    let mut recording = Recording::open(fs::File::open(&file).unwrap()).unwrap();
    assert!(recording.is_finished());
    let folded = recording.state_at(SeekTo::At(stage.at_ms)).unwrap();
    assert_eq!(folded.cluster.digest(), stage.cluster.digest());
    let again = Recorder::start(RecordTo::File(file), meta(1, 2, Millis(1), &[]));
    assert!(again.is_err(), "nothing that was recorded is overwritten");
}

#[test]
fn a_folder_never_holds_more_than_it_may() {
    let folder_of = tempfile::tempdir().unwrap();
    let mut stage = Stage::new(folder(folder_of.path()));
    for _ in 0..60 {
        (0..8).for_each(|_| stage.step(100_000));
        stage.wait_until(|_| stage.recorder.as_ref().unwrap().queued_bytes() == 0);
        let on_disk: u64 = fs::read_dir(folder_of.path())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().map_or(0, |of| of.len()))
            .sum();
        assert!(on_disk <= 16 << 20, "{on_disk}");
    }
    stage.end();
    let files = recordings(folder_of.path());
    // How many the room is divided into depends on how fast they are written.
    assert!(files.len() > 1, "{} files", files.len());
    let folded = Series::of(files).unwrap().play(&mut |_| {}).unwrap();
    assert_eq!(folded.cluster.digest(), stage.cluster.digest());
}

#[test]
fn a_folder_that_is_lost_is_reported_and_tried_again() {
    let folder_of = tempfile::tempdir().unwrap();
    let path = folder_of.path().join("recordings");
    let mut stage = Stage::new(folder(&path));
    stage.step(10);
    stage.wait_until(|status| status.bytes > 0);
    fs::remove_dir_all(&path).unwrap();
    // A file where the folder was: it cannot be made again.
    fs::write(&path, b"").unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while stage.status().error.is_none() && Instant::now() < until {
        stage.step(10);
        std::thread::park_timeout(Duration::from_millis(1));
    }
    assert!(stage.status().error.is_some_and(|error| error.contains("retrying")));
    fs::remove_file(&path).unwrap();
    while stage.status().error.is_some() && Instant::now() < until {
        stage.step(10);
        std::thread::park_timeout(Duration::from_millis(1));
    }
    assert_eq!(stage.status().error, None);
    stage.step(10);
    stage.end();
    let folded = Series::of(recordings(&path)).unwrap().play(&mut |_| {}).unwrap();
    assert_eq!(folded.cluster.digest(), stage.cluster.digest());
}

#[test]
fn two_servers_do_not_write_into_one_folder_and_the_next_one_goes_on_with_the_recording() {
    let folder_of = tempfile::tempdir().unwrap();
    let mut stage = Stage::new(folder(folder_of.path()));
    stage.step(10);
    let other = Recorder::start(folder(folder_of.path()), meta(1, 3, Millis(1), &[]));
    assert!(other.is_err_and(|error| error.to_string().contains("another Radixscope")));
    stage.end();
    let mut next = Stage::of(folder(folder_of.path()), meta(9, 3, Millis(1), &[]));
    next.step(10);
    next.end();
    let of: Vec<u64> = recordings(folder_of.path()).iter().map(|file| file.meta().recording).collect();
    assert_eq!(of, [2, 2]);
}

#[tokio::test]
async fn a_replay_shows_the_end_and_goes_back_to_every_keyframe() {
    let folder_of = tempfile::tempdir().unwrap();
    let mut stage = Stage::new(folder(folder_of.path()));
    for _ in 0..20 {
        (0..4).for_each(|_| stage.step(100_000));
        stage.wait_until(|_| stage.recorder.as_ref().unwrap().queued_bytes() == 0);
    }
    stage.end();
    let mut series = open(&[RecordingAt::Path(folder_of.path().to_owned())]).unwrap();
    let keyframes: usize = series.files().iter().map(|file| file.keyframes().len()).sum();
    let replayed = Replayed::read(&mut series, None, 1 << 30).unwrap();
    let (_end, stopped) = tokio::sync::watch::channel(false);
    let hub = Hub::replay(replayed, stopped);
    let (digest, at_ms, is_replay, (segments, rows)) = hub
        .read(|view| (view.cluster.digest(), view.at_ms, view.is_replay, view.timeline(Millis(0))))
        .await
        .unwrap();
    assert_eq!((digest, at_ms, is_replay), (stage.cluster.digest(), stage.at_ms, true));
    assert!(keyframes > 3 && segments.len() == keyframes, "{} of {keyframes}", segments.len());
    assert_eq!(rows.len() as u64, 20 * 4 * 100 / 1_000, "a row a second");
    let joined = hub.join(None).await.unwrap();
    assert_eq!(joined.from, stage.cluster.seq());
    let small = Replayed::read(&mut series, None, 4 << 20).unwrap();
    let (_end, stopped) = tokio::sync::watch::channel(false);
    let retained = Hub::replay(small, stopped).read(|view| view.history().unwrap()).await.unwrap();
    assert!(
        retained.bytes <= 4 << 20 && retained.from_ms > Some(segments[0].from_ms),
        "of a longer one the end"
    );
}
