//! An hour of a deployment whose caches are full, written as fast as the recorder can: a thousand events a second, by the time
//! that they have.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::Instant;

use radixscope_bench::synthetic_tree::{Change, Event, SyntheticTree, worker_id};
use radixscope_captures::recorded::{BEGIN_MS, Recorded, Recorder, meta};
use radixscope_model::id::{Millis, Worker, WorkerIx};
use radixscope_model::record::{Entry, Record};
use radixscope_recording::{FoldStep, Recording, Series};
use radixscope_state::cluster::Cluster;
use radixscope_state::sink::RecordSink;
use serde_json::Value;

use crate::row;

const WORKERS: u16 = 8;
/// Every run has the same trees.
const SEED: u64 = 2_026;
/// As in the server: a keyframe once the batches since hold more than this, and than the last keyframe.
const KEYFRAME_BYTES: usize = 1 << 20;

/// A recording, and the state after each of its batches.
pub(crate) struct Hour {
    pub(crate) path: PathBuf,
    pub(crate) blocks: u64,
    pub(crate) states: Vec<Recorded>,
    bytes: u64,
    events: u64,
    keyframes: usize,
    written_s: Option<f64>,
}

impl Hour {
    /// Writes it, unless it is in the folder.
    pub(crate) fn of(folder: &Path, blocks: u64, events: u64) -> Self {
        let path = folder.join(format!("{blocks}-{events}.mcap"));
        let since = Instant::now();
        let (states, written_s) = if path.is_file() {
            (played(&path), None)
        } else {
            let partial = path.with_extension("part");
            let states = write(&partial, blocks, events);
            fs::rename(&partial, &path).expect("written");
            (states, Some(since.elapsed().as_secs_f64()))
        };
        let bytes = fs::metadata(&path).expect("written").len();
        let keyframes = open(&path).keyframes().len();
        Self { path, blocks, states, bytes, events, keyframes, written_s }
    }

    /// What it is.
    pub(crate) fn rows(&self) -> Vec<Value> {
        let what = |label: &str| format!("recording of {} blocks: {label}", self.blocks);
        let mut rows = vec![
            row(&what("size"), self.bytes as f64 / 1e6, "MB", None),
            row(&what("per event"), self.bytes as f64 / self.events as f64, "bytes", None),
            row(&what("keyframes"), self.keyframes as f64, "", None),
        ];
        rows.extend(self.written_s.map(|s| row(&what("written in"), s, "s", None)));
        rows
    }
}

fn open(path: &Path) -> Recording<File> {
    Recording::open(File::open(path).expect("there")).expect("a recording")
}

fn played(path: &Path) -> Vec<Recorded> {
    let mut states = Vec::new();
    let mut series = Series::of(vec![open(path)]).expect("one file");
    let played = series.play(&mut |step| {
        if let FoldStep::Batch { message, after, .. } = step {
            states.push(Recorded { at_ms: message.at_ms, seq: after.seq(), digest: after.digest() });
        }
    });
    assert!(played.expect("a keyframe").damaged.is_none());
    states
}

fn write(path: &Path, blocks: u64, events: u64) -> Vec<Recorded> {
    let begin = Millis(BEGIN_MS);
    let mut cluster = Cluster::new(u32::try_from(blocks * 2).expect("a tree of our size"));
    for worker in 0..WORKERS {
        let (worker, id) = (WorkerIx(worker.into()), Worker::new(worker_id(worker), 0));
        let record = Record::new_worker(worker, id, "dynamo", "backend");
        cluster.append(&Entry { at_ms: begin, record });
    }
    let mut synthetic = SyntheticTree::new(blocks, WORKERS, SEED);
    for event in synthetic.by_ref() {
        cluster.append(&Entry { at_ms: begin, record: record(event) });
    }
    let file = BufWriter::new(File::create(path).expect("a writable folder"));
    let mut recorder = Recorder::new(file, &meta(), cluster, begin, KEYFRAME_BYTES);
    for number in 1..=events {
        recorder.append(&Entry { at_ms: Millis(begin.0 + number), record: record(synthetic.live()) });
    }
    let (_, states, cluster) = recorder.finish();
    let nodes: u64 = cluster.trees().map(|(_, tree)| tree.totals().nodes).sum();
    assert!(nodes.abs_diff(blocks) <= blocks / 100, "{nodes} blocks: it keeps its size");
    states
}

fn record(event: Event) -> Record<'static> {
    let worker = WorkerIx(event.worker.into());
    match event.change {
        Change::Stored { parent, blocks } => Record::Stored { worker, parent, blocks: blocks.into() },
        Change::Removed(hashes) => Record::Removed { worker, hashes: hashes.into() },
    }
}
