//! Reading a capture and folding it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use base64::Engine;
use radixscope_dynamo::log_line;
use radixscope_intake::ingest::Message;
use radixscope_intake::listen::Listener;
use radixscope_model::frame::{BatchWriter, Frame};
use radixscope_model::id::{Millis, Seq};
use radixscope_model::record::{Entry, SourceKind};
use radixscope_state::cluster::Cluster;
use radixscope_state::sink::RecordSink;

/// One message of a capture.
#[derive(serde::Deserialize)]
pub(crate) struct Captured {
    /// Unix time in seconds.
    pub(crate) t: f64,
    /// Subject.
    pub(crate) s: String,
    /// Reply subject.
    pub(crate) r: Option<String>,
    /// Payload, base64.
    p: String,
}

impl Captured {
    pub(crate) fn payload(&self) -> Vec<u8> {
        base64::engine::general_purpose::STANDARD.decode(&self.p).unwrap()
    }
}

/// Lines of a gzipped file of a capture.
pub(crate) fn lines(name: &str, file: &str) -> impl Iterator<Item = String> {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/captures").join(name).join(file);
    gunzipped(&path)
}

/// Lines of a gzipped file.
pub(crate) fn gunzipped(path: &Path) -> impl Iterator<Item = String> + use<> {
    let file = std::fs::File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    BufReader::new(flate2::read::GzDecoder::new(file)).lines().map(Result::unwrap)
}

pub(crate) fn messages(name: &str) -> Vec<Captured> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/captures").join(name);
    messages_of(&folder.join("nats.jsonl.gz")).collect()
}

/// Messages of a recording's file.
pub(crate) fn messages_of(path: &Path) -> impl Iterator<Item = Captured> + use<> {
    let all = gunzipped(path).map(|line| serde_json::from_str::<Captured>(&line).unwrap());
    // Captures hear everything; `serve` does not subscribe to this topic.
    all.filter(|message| !message.s.ends_with(".forward-pass-metrics"))
}

/// A message of NATS or a line of a log.
pub(crate) enum Heard {
    Message(Captured),
    /// Name of the log, and the line.
    Line(&'static str, String),
}

/// How much later than it was written what one hears of a deployment arrives, in milliseconds.
#[derive(Clone, Copy, Default)]
pub(crate) struct Delays {
    pub(crate) messages_ms: u64,
    pub(crate) logs_ms: u64,
}

/// Messages and lines of the logs of these processes, in order of time. A line without a time comes with the one before.
pub(crate) fn heard(name: &str, logs: &[&'static str]) -> Vec<(f64, Heard)> {
    heard_late(name, logs, Delays::default())
}

/// The same, each received later than it was written. A log is read in the order in which it was written.
pub(crate) fn heard_late(name: &str, logs: &[&'static str], delays: Delays) -> Vec<(f64, Heard)> {
    let late = |ms: u64| ms as f64 / 1_000.0;
    let mut all = Vec::new();
    for &log in logs {
        let mut last = 0.0_f64;
        all.extend(lines(name, &format!("{log}.log.gz")).map(|line| {
            let at_us = log_line::decode(line.as_bytes()).ok().flatten().and_then(|line| line.at_us);
            last = at_us.map_or(last, |us| last.max(us as f64 / 1e6));
            (last + late(delays.logs_ms), Heard::Line(log, line))
        }));
    }
    let messages = messages(name).into_iter();
    all.extend(messages.map(|message| (message.t + late(delays.messages_ms), Heard::Message(message))));
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

/// A state, and one that is told everything through the frames' codec.
struct Both {
    near: Cluster,
    far: Cluster,
    batch: BatchWriter,
}

impl RecordSink for Both {
    fn cluster(&self) -> &Cluster {
        &self.near
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
    let mut listener = Listener::default();
    let mut both =
        Both { near: Cluster::default(), far: Cluster::default(), batch: BatchWriter::new(Seq(1)) };
    let source = listener.source("capture", SourceKind::Nats, Millis(1), &mut both).unwrap();
    let mut last = Millis(0);
    for (i, m) in messages(name).iter().enumerate() {
        let payload = m.payload();
        last = Millis((m.t * 1000.0) as u64);
        let message =
            Message { source, at_ms: last, subject: &m.s, reply: m.r.as_deref(), payload: &payload };
        listener.message(message, &mut both);
        if i % 500 == 0 {
            listener.flush(last, &mut both);
        }
    }
    listener.flush(last, &mut both);
    both.send();
    (both.near, both.far)
}
