//! Reading a capture and folding it.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use base64::Engine;
use radixscope_core::cluster::Cluster;
use radixscope_core::frame::{BatchWriter, Frame};
use radixscope_core::id::{Millis, Seq};
use radixscope_core::ingest::{Ingest, Message};
use radixscope_core::record::{Entry, SourceKind};

/// One message of a capture.
#[derive(serde::Deserialize)]
pub(crate) struct Captured {
    /// Unix time in seconds.
    t: f64,
    /// Subject.
    s: String,
    /// Reply subject.
    r: Option<String>,
    /// Payload, base64.
    p: String,
}

pub(crate) fn messages(name: &str) -> Vec<Captured> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/fixtures/captures")
        .join(name)
        .join("nats.jsonl.gz");
    let file = std::fs::File::open(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let lines = BufReader::new(flate2::read::GzDecoder::new(file)).lines();
    let all = lines.map(|line| serde_json::from_str::<Captured>(&line.unwrap()).unwrap());
    // Captures hear everything; `serve` does not subscribe to this topic.
    all.filter(|message| !message.s.ends_with(".forward-pass-metrics")).collect()
}

/// Folds a capture; with every record also goes through the frames' codec into a second state.
pub(crate) fn fold(name: &str) -> (Cluster, Cluster) {
    let mut ingest = Ingest::default();
    let (mut near, mut far) = (Cluster::default(), Cluster::default());
    let mut seq = 0;
    let mut batch = BatchWriter::new(Seq(1));
    let mut near_fold = |entry: Entry<'_>| {
        seq += 1;
        near.fold(Seq(seq), &entry);
        batch.push(&entry).unwrap();
        if batch.count() == 100 {
            send(&mut far, &mut batch);
        }
    };
    let source = ingest.source("capture", SourceKind::Nats, Millis(1), &mut near_fold).unwrap();
    let mut last = Millis(0);
    for (i, m) in messages(name).iter().enumerate() {
        let payload = base64::engine::general_purpose::STANDARD.decode(&m.p).unwrap();
        last = Millis((m.t * 1000.0) as u64);
        let message =
            Message { source, at_ms: last, subject: &m.s, reply: m.r.as_deref(), payload: &payload };
        ingest.message(message, &mut near_fold);
        if i % 500 == 0 {
            ingest.flush(last, &mut near_fold);
        }
    }
    ingest.flush(last, &mut near_fold);
    send(&mut far, &mut batch);
    (near, far)
}

fn send(far: &mut Cluster, batch: &mut BatchWriter) {
    let bytes = batch.finish(Millis(0), None).unwrap();
    let Frame::Batch(batch) = Frame::decode(&bytes).unwrap() else { panic!("not a batch") };
    for entry in batch.entries() {
        let (seq, entry) = entry.unwrap();
        far.fold(seq, &entry);
    }
}
