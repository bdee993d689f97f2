//! Reading a capture and folding it.

use radixscope_captures::Recording;
use radixscope_dynamo::log_line;
use radixscope_intake::{Intake, NatsSubjects, Payload, Received};
use radixscope_model::frame::{BatchWriter, Frame};
use radixscope_model::id::{Millis, Seq};
use radixscope_model::record::{Entry, SourceKind};
use radixscope_state::cluster::{Cluster, Follow};
use radixscope_state::sink::RecordSink;

/// The messages of a recording as they were published, with their Unix times in seconds.
pub(crate) fn publications(recording: &Recording) -> impl Iterator<Item = (f64, Payload)> + use<> {
    let mut subjects = NatsSubjects::default();
    recording
        .subscribed()
        .filter_map(move |m| Some((m.at_s, subjects.publication(&m.subject, m.reply.as_deref(), m.payload)?)))
}

/// Unix time in milliseconds.
pub(crate) fn millis(seconds: f64) -> Millis {
    Millis((seconds * 1_000.0) as u64)
}

/// How much later than it was written what one hears of a deployment arrives, in milliseconds.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Delays {
    pub(crate) messages_ms: u64,
    pub(crate) logs_ms: u64,
}

/// Messages and lines of the logs of these processes, in order of time. A line without a time comes with the one before.
pub(crate) fn received(name: &str, logs: &[&str]) -> Vec<(Millis, Payload)> {
    received_late(name, logs, Delays::default())
}

/// The same, each received later than it was written. A log is read in the order in which it was written.
pub(crate) fn received_late(name: &str, logs: &[&str], delays: Delays) -> Vec<(Millis, Payload)> {
    let late = |ms: u64| ms as f64 / 1_000.0;
    let recording = Recording::fixture(name);
    let mut all: Vec<(f64, Payload)> = Vec::new();
    for &log in logs {
        let mut last = 0.0_f64;
        all.extend(recording.log(log).map(|line| {
            let at_us = log_line::decode(line.as_bytes()).ok().flatten().and_then(|line| line.at_us);
            last = at_us.map_or(last, |us| last.max(us as f64 / 1e6));
            (last + late(delays.logs_ms), Payload::LogLine { log: log.into(), line: line.into() })
        }));
    }
    all.extend(publications(&recording).map(|(at, payload)| (at + late(delays.messages_ms), payload)));
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all.into_iter().map(|(at, payload)| (millis(at), payload)).collect()
}

/// A state, and one that gets everything through the frames' codec.
struct Both {
    near: Cluster,
    far: Cluster,
    batch: BatchWriter,
}

impl RecordSink for Both {
    fn cluster(&self) -> &Cluster {
        &self.near
    }

    fn follow_blocks(&mut self, follow: Follow) {
        self.near.follow_blocks(follow);
    }

    fn append(&mut self, entry: &Entry<'_>) {
        self.near.append(entry);
        self.batch.push(entry).unwrap();
        if self.batch.count() == 100 {
            self.send();
        }
    }
}

impl Both {
    fn send(&mut self) {
        let bytes = self.batch.finish(Millis(0), None).unwrap();
        let Frame::Batch(batch) = Frame::decode(&bytes).unwrap() else { panic!("not a batch") };
        for entry in batch.entries() {
            let (seq, entry) = entry.unwrap();
            self.far.fold(seq, &entry);
        }
    }
}

/// Folds a capture; every record also goes through the frames' codec into a second state.
pub(crate) fn fold(name: &str) -> (Cluster, Cluster) {
    fold_recording(&Recording::fixture(name))
}

/// The same of any recording.
pub(crate) fn fold_recording(recording: &Recording) -> (Cluster, Cluster) {
    let mut intake = Intake::default();
    let mut both =
        Both { near: Cluster::default(), far: Cluster::default(), batch: BatchWriter::new(Seq(1)) };
    let source = intake.source("capture", SourceKind::Nats, Millis(1), &mut both).unwrap();
    let mut last = Millis(0);
    for (i, (at, payload)) in publications(recording).enumerate() {
        last = millis(at);
        intake.handle(&Received { source, at_ms: last, payload }, &mut both);
        if i % 500 == 0 {
            intake.flush(last, &mut both);
        }
    }
    intake.flush(last, &mut both);
    both.send();
    (both.near, both.far)
}
