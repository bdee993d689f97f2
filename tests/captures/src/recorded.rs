//! A recording made as a server makes one, as fast as its records come, with the digests of the state that was recorded.

use std::hash::{BuildHasher as _, RandomState};
use std::io::Write;

use radixscope_intake::{Intake, NatsSubjects, Received};
use radixscope_model::frame::{self, BatchWriter, Frame};
use radixscope_model::id::{Millis, Seq};
use radixscope_model::record::{Entry, SourceKind};
use radixscope_recording::{Channel, Meta, Writer};
use radixscope_state::cluster::{Cluster, Follow};
use radixscope_state::sink::RecordSink;

use crate::{Message, Recording};

/// Records of a batch: a tenth of a second of a thousand events a second.
pub const BATCH_RECORDS: u32 = 100;
/// Batches of a chunk of the file, if it is not full before.
const CHUNK_BATCHES: usize = 10;
/// A keyframe follows after this long if anything changed, as in the server.
const MOST_APART_MS: u64 = 60_000;
/// Messages between two looks at what waits for its other parts.
const FLUSH_EVERY: usize = 500;
/// So that a capture, which is short, has several keyframes.
const CAPTURE_KEYFRAME_BYTES: usize = 32 << 10;
/// When captures begin here: their own clock starts at 0, which is no moment of the timeline.
pub const BEGIN_MS: u64 = 1_760_000_000_000;

/// Names the seed of random moments.
pub const SEED_VARIABLE: &str = "RADIXSCOPE_TEST_SEED";

/// What the state was after a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recorded {
    /// Time of the batch.
    pub at_ms: Millis,
    /// Its last record.
    pub seq: Seq,
    /// Digest of the state.
    pub digest: u64,
}

/// A live state that is recorded.
pub struct Recorder<W: Write> {
    cluster: Cluster,
    writer: Writer<W>,
    batch: BatchWriter,
    at_ms: Millis,
    /// Least bytes of batches between two keyframes.
    keyframe_bytes: usize,
    /// Of the last keyframe: its bytes, its time, and the bytes of batches since.
    last: (usize, Millis, usize),
    recorded: Vec<Recorded>,
}

/// A seed for [`random`], another one in each run: the one that [`SEED_VARIABLE`] says repeats a run that failed.
pub fn seed() -> u64 {
    let given = std::env::var(SEED_VARIABLE).ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or_else(|| RandomState::new().hash_one(0) >> 1);
    println!("{SEED_VARIABLE}={seed}");
    seed
}

/// Numbers below 2³¹ that differ only by their seed.
pub fn random(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    })
}

/// What recordings of tests say of themselves.
pub fn meta() -> Meta {
    Meta {
        by: "0.1.0".to_owned(),
        epoch: 7,
        recording: 8,
        began_ms: 1,
        sources: "nats nats://127.0.0.1:4222".to_owned(),
        redacted: false,
    }
}

impl<W: Write> Recorder<W> {
    /// Begins with a keyframe of `cluster`; others follow after so many bytes of batches, and as many as they hold themselves.
    pub fn new(to: W, meta: &Meta, cluster: Cluster, at_ms: Millis, keyframe_bytes: usize) -> Self {
        let batch = BatchWriter::new(Seq(cluster.seq().0 + 1));
        let writer = Writer::new(to, meta).expect("it can be written");
        let (last, recorded) = ((0, at_ms, 0), Vec::new());
        let mut recorder = Self { cluster, writer, batch, at_ms, keyframe_bytes, last, recorded };
        recorder.keyframe();
        recorder
    }

    fn keyframe(&mut self) {
        let mut bodies = Vec::new();
        self.cluster.snapshot(|part| bodies.push(part)).expect("a sound state");
        let (seq, parts) = (self.cluster.seq(), bodies.len() as u32);
        let frame = |(part, body): (u32, &Vec<u8>)| {
            Frame::Snapshot { seq, part, parts, bytes: frame::Bytes(body) }.encode().expect("a sound state")
        };
        let frames: Vec<Vec<u8>> = (0..).zip(&bodies).map(frame).collect();
        self.writer.keyframe(self.at_ms, &frames).expect("it can be written");
        self.last = (frames.iter().map(Vec::len).sum(), self.at_ms, 0);
    }

    /// Ends the batch.
    pub fn send(&mut self) {
        let frame = self.batch.finish(self.at_ms, None).expect("sound records");
        self.writer.message(Channel::Batches, self.at_ms, &frame).expect("it can be written");
        let (seq, digest) = (self.cluster.seq(), self.cluster.digest());
        self.recorded.push(Recorded { at_ms: self.at_ms, seq, digest });
        if self.recorded.len().is_multiple_of(CHUNK_BATCHES) {
            self.writer.cut().expect("it can be written");
        }
        let (keyframe_bytes, keyframe_ms, since) = &mut self.last;
        *since += frame.len();
        let is_far = *since > self.keyframe_bytes.max(*keyframe_bytes);
        if is_far || self.at_ms.since(*keyframe_ms) >= MOST_APART_MS {
            self.keyframe();
        }
    }

    /// Ends the recording; gives what the state was after each batch, and the state.
    pub fn finish(mut self) -> (W, Vec<Recorded>, Cluster) {
        if self.batch.count() > 0 {
            self.send();
        }
        (self.writer.finish().expect("it can be written"), self.recorded, self.cluster)
    }
}

impl<W: Write> RecordSink for Recorder<W> {
    fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    fn follow_blocks(&mut self, follow: Follow) {
        self.cluster.follow_blocks(follow);
    }

    fn append(&mut self, entry: &Entry<'_>) {
        self.at_ms = self.at_ms.max(entry.at_ms);
        self.cluster.append(entry);
        self.batch.push(entry).expect("sound records");
        if self.batch.count() == BATCH_RECORDS {
            self.send();
        }
    }
}

impl Recording {
    /// The capture as a server would have recorded it, from [`BEGIN_MS`] on.
    pub fn recorded(&self) -> (Vec<u8>, Vec<Recorded>) {
        record(self.subscribed(), &meta())
    }
}

/// Messages as a server would have recorded them, from [`BEGIN_MS`] on.
pub fn record(messages: impl IntoIterator<Item = Message>, meta: &Meta) -> (Vec<u8>, Vec<Recorded>) {
    let begin = Millis(BEGIN_MS);
    let mut recorder = Recorder::new(Vec::new(), meta, Cluster::default(), begin, CAPTURE_KEYFRAME_BYTES);
    let mut intake = Intake::default();
    let source = intake.source("capture", SourceKind::Nats, begin, &mut recorder).expect("the first");
    let mut subjects = NatsSubjects::default();
    let (mut first_s, mut last) = (None, begin);
    for (i, message) in messages.into_iter().enumerate() {
        let reply = message.reply.as_deref();
        let Some(payload) = subjects.publication(&message.subject, reply, message.payload) else {
            continue;
        };
        let since_s = message.at_s - *first_s.get_or_insert(message.at_s);
        last = Millis(BEGIN_MS + (since_s * 1_000.0) as u64);
        intake.handle(&Received { source, at_ms: last, payload }, &mut recorder);
        if i % FLUSH_EVERY == 0 {
            intake.flush(last, &mut recorder);
        }
    }
    intake.flush(last, &mut recorder);
    let (file, recorded, _) = recorder.finish();
    (file, recorded)
}
