//! What recording costs and what a jump takes: `recording [--json FILE]`. The traffic is that of the longest capture, as fast as
//! it can be folded; jumps are to the end of a stretch between keyframes, the farthest that there are. A jump's time is
//! that of the processor where the system reports it, so that others on the machine do not count.
#![expect(clippy::print_stdout, reason = "its figures are what it is for")]

use std::error::Error;
use std::io::Cursor;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use radixscope_captures::Recording as Capture;
use radixscope_intake::{Intake, NatsSubjects, Payload, Received};
use radixscope_model::frame::{self, BatchWriter, Frame, FrameError};
use radixscope_model::id::{BlockHash, Millis, Seq, TokensHash, Worker, WorkerIx};
use radixscope_model::record::{Block, Entry, Record, SourceKind};
use radixscope_recording::{Channel, Meta, Recording, RecordingError, SeekTo, Writer};
use radixscope_state::cluster::{Cluster, Follow};
use radixscope_state::sink::RecordSink;
use serde_json::{Value, json};

/// Records of a batch: a tenth of a second of a thousand events a second.
const BATCH_RECORDS: u32 = 100;
/// The capture is folded so many times with and without recording, in turn.
const PAIRS: usize = 15;
/// Batches that may wait for the writing thread, as in the server.
const MOST_WAITING: usize = 4_096;
/// Each jump is measured so many times.
const RUNS: usize = 7;
/// As in the server: a keyframe once the batches since hold more bytes than this and than the last keyframe …
const MIN_BYTES: usize = 1024 * 1024;
/// … and not before this many times its cost.
const APART_PER_COST: u32 = 40;
const WORKERS: u64 = 16;
/// Blocks of a prompt in the generated tree.
const CHAIN: u64 = 50;

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().collect();
    let mut rows = ingest()?;
    for blocks in [100_000, 1_000_000] {
        rows.extend(jumps(blocks)?);
    }
    for row in &rows {
        println!("{}: {} {}", row["what"], row["value"], row["unit"]);
    }
    if let Some(at) = args.iter().position(|arg| arg == "--json")
        && let Some(file) = args.get(at + 1)
    {
        std::fs::write(file, serde_json::to_vec(&json!({ "rows": rows }))?)?;
    }
    Ok(())
}

/// What this thread has had of the processor, on Linux.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

fn meta() -> Meta {
    Meta {
        by: env!("CARGO_PKG_VERSION").to_owned(),
        epoch: 1,
        recording: 1,
        began_ms: 1,
        sources: String::new(),
        redacted: false,
    }
}

fn frames(cluster: &Cluster) -> Result<Vec<Vec<u8>>, Failure> {
    let mut bodies = Vec::new();
    cluster.snapshot(|part| bodies.push(part))?;
    let (seq, parts) = (cluster.seq(), u32::try_from(bodies.len())?);
    let frame = |(part, body): (u32, &Vec<u8>)| {
        Frame::Snapshot { seq, part, parts, bytes: frame::Bytes(body) }.encode()
    };
    Ok((0..).zip(&bodies).map(frame).collect::<Result<_, FrameError>>()?)
}

/// A state that is folded and published as in the hub, and recorded or not.
struct Live {
    cluster: Cluster,
    batch: BatchWriter,
    at_ms: Millis,
    published: usize,
    recorded: Option<Recorded>,
    failed: Option<Failure>,
}

/// What the writing thread is handed.
enum Written {
    Keyframe(Millis, Vec<Vec<u8>>),
    Batch(Millis, Vec<u8>),
}

struct Recorded {
    to: SyncSender<Written>,
    /// Gives the bytes of the file, and what the thread has had of the processor.
    writing: JoinHandle<Result<(usize, Option<Duration>), RecordingError>>,
    since_bytes: usize,
    keyframe_bytes: usize,
    made: Instant,
    keyframe_cost: Duration,
}

impl Live {
    fn new(is_recorded: bool) -> Result<Self, Failure> {
        let recorded = is_recorded.then(Recorded::new).transpose()?;
        Ok(Self {
            cluster: Cluster::default(),
            batch: BatchWriter::new(Seq(1)),
            at_ms: Millis(1),
            published: 0,
            recorded,
            failed: None,
        })
    }

    fn publish(&mut self) -> Result<(), Failure> {
        let frame = self.batch.finish(self.at_ms, None)?;
        self.published += frame.len();
        match &mut self.recorded {
            Some(recorded) => recorded.take(&self.cluster, self.at_ms, frame),
            None => Ok(()),
        }
    }
}

impl Recorded {
    fn new() -> Result<Self, RecordingError> {
        let (to, from) = sync_channel(MOST_WAITING);
        let mut writer = Writer::new(Vec::new(), &meta())?;
        let writing = std::thread::spawn(move || {
            for written in from {
                match written {
                    Written::Keyframe(at_ms, frames) => writer.keyframe(at_ms, &frames)?,
                    Written::Batch(at_ms, frame) => writer.message(Channel::Batches, at_ms, &frame)?,
                }
            }
            Ok((writer.finish()?.len(), processor_time()))
        });
        let (made, keyframe_cost) = (Instant::now(), Duration::ZERO);
        Ok(Self { to, writing, since_bytes: usize::MAX, keyframe_bytes: 0, made, keyframe_cost })
    }

    fn take(&mut self, cluster: &Cluster, at_ms: Millis, frame: Vec<u8>) -> Result<(), Failure> {
        self.since_bytes = self.since_bytes.saturating_add(frame.len());
        self.to.send(Written::Batch(at_ms, frame))?;
        let is_far = self.since_bytes > MIN_BYTES.max(self.keyframe_bytes);
        if is_far && self.made.elapsed() >= self.keyframe_cost * APART_PER_COST {
            let started = Instant::now();
            let frames = frames(cluster)?;
            (self.keyframe_cost, self.keyframe_bytes) =
                (started.elapsed(), frames.iter().map(Vec::len).sum());
            self.to.send(Written::Keyframe(at_ms, frames))?;
            (self.since_bytes, self.made) = (0, Instant::now());
        }
        Ok(())
    }

    fn finish(self) -> Result<(usize, Option<Duration>), Failure> {
        drop(self.to);
        Ok(self.writing.join().map_err(|_| "the writing thread failed")??)
    }
}

impl RecordSink for Live {
    fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    fn follow_blocks(&mut self, follow: Follow) {
        self.cluster.follow_blocks(follow);
    }

    fn append(&mut self, entry: &Entry<'_>) {
        self.at_ms = self.at_ms.max(entry.at_ms);
        self.cluster.append(entry);
        let pushed = self.batch.push(entry).map_err(Into::into);
        let is_full = self.batch.count() >= BATCH_RECORDS;
        let done = pushed.and_then(|()| if is_full { self.publish() } else { Ok(()) });
        self.failed = self.failed.take().or(done.err());
    }
}

/// What recording costs beside decoding, folding and publishing the same.
fn ingest() -> Result<Vec<Value>, Failure> {
    let captures = Capture::all();
    let capture = captures.iter().max_by_key(|capture| capture.subscribed().count()).ok_or("no capture")?;
    let mut subjects = NatsSubjects::default();
    let messages: Vec<(Millis, Payload)> = capture
        .subscribed()
        .filter_map(|m| {
            let payload = subjects.publication(&m.subject, m.reply.as_deref(), m.payload)?;
            Some((Millis((m.at_s * 1_000.0) as u64), payload))
        })
        .collect();
    let (mut of_processor, mut of_clock, mut writing, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for run in 0..PAIRS {
        // Who comes second finds the caches as the other left them: they take turns.
        let is_recorded_first = run % 2 == 1;
        let (one, first) = fold(&messages, is_recorded_first)?;
        let (other, second) = fold(&messages, !is_recorded_first)?;
        let (plain, with) = if is_recorded_first { (other, one) } else { (one, other) };
        let recorded = first.recorded.or(second.recorded).ok_or("not recorded")?;
        let (len, written) = recorded.finish()?;
        bytes = len;
        let lost = |plain: Duration, with: Duration| (1.0 - plain.as_secs_f64() / with.as_secs_f64()) * 100.0;
        of_clock.push(lost(plain.clock, with.clock));
        let (plain_time, with_time) =
            (plain.processor.unwrap_or(plain.clock), with.processor.unwrap_or(with.clock));
        of_processor.push(lost(plain_time, with_time));
        writing.extend(written.map(|written| written.as_secs_f64() / plain_time.as_secs_f64() * 100.0));
    }
    let per_event = bytes as f64 / messages.len() as f64;
    let lost = median(&mut of_processor);
    Ok(vec![
        json!({
            "what": format!("recording, ingest throughput lost on the hub's thread, median of {PAIRS} pairs"), "value": lost,
            "unit": "% of processor time", "budget": "≤ 5 %", "within": lost <= 5.0,
        }),
        json!({"what": "recording, the same by the clock", "value": median(&mut of_clock), "unit": "%"}),
        json!({
            "what": "recording, the writing thread (zstd)", "value": median(&mut writing), "unit": "% of decode, fold, publish",
        }),
        json!({"what": "recording, bytes per event", "value": per_event, "unit": "bytes"}),
        json!({"what": "recording, an hour at 1,000 events/s", "value": per_event * 3.6, "unit": "MB"}),
    ])
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// What a run took.
struct Took {
    clock: Duration,
    processor: Option<Duration>,
}

fn fold(messages: &[(Millis, Payload)], is_recorded: bool) -> Result<(Took, Live), Failure> {
    let mut live = Live::new(is_recorded)?;
    let mut intake = Intake::default();
    let source = intake.source("capture", SourceKind::Nats, Millis(1), &mut live).ok_or("no source")?;
    let (started, before) = (Instant::now(), processor_time());
    for (i, (at_ms, payload)) in messages.iter().enumerate() {
        intake.handle(&Received { source, at_ms: *at_ms, payload: payload.clone() }, &mut live);
        if i % 1_000 == 999 {
            intake.flush(*at_ms, &mut live);
        }
    }
    live.publish()?;
    let processor = before.and_then(|before| processor_time()?.checked_sub(before));
    let took = Took { clock: started.elapsed(), processor };
    match live.failed.take() {
        Some(failed) => Err(failed),
        None => Ok((took, live)),
    }
}

/// The state at the end of the longest stretch that there is between keyframes, and what the keyframe alone takes.
fn jumps(blocks: u64) -> Result<Vec<Value>, Failure> {
    let mut cluster = Cluster::new(u32::try_from(blocks * 2)?);
    let mut seq = 0;
    let mut next = |cluster: &mut Cluster, batch: Option<&mut BatchWriter>, record: Record<'_>| {
        seq += 1;
        let entry = Entry { at_ms: Millis(1_000 + seq), record };
        if let Some(batch) = batch {
            batch.push(&entry)?;
        }
        cluster.fold(Seq(seq), &entry);
        Ok::<(), FrameError>(())
    };
    for worker in 0..WORKERS {
        let id = Worker::new(worker + 1, 0);
        let worker = WorkerIx(worker as u32);
        next(&mut cluster, None, Record::new_worker(worker, id, "dynamo", "backend"))?;
    }
    let chain = |i: u64| -> Record<'static> {
        // A third of each prompt is shared by eight others.
        let hash = |at: u64| match at {
            at if at < CHAIN / 3 => (i / 8) << 20 | at,
            at => 1 << 60 | i << 20 | at,
        };
        let block = |at| Block { block_hash: BlockHash(hash(at)), tokens_hash: TokensHash(hash(at)) };
        let worker = WorkerIx((i / 8 % WORKERS) as u32);
        Record::Stored { worker, parent: None, blocks: (0..CHAIN).map(block).collect::<Vec<_>>().into() }
    };
    let mut chains = 0;
    while cluster.trees().map(|(_, tree)| tree.totals().nodes).sum::<u64>() < blocks {
        for _ in 0..100 {
            next(&mut cluster, None, chain(chains))?;
            chains += 1;
        }
    }
    let frames = frames(&cluster)?;
    let keyframe_bytes: usize = frames.iter().map(Vec::len).sum();
    let mut writer = Writer::new(Vec::new(), &meta())?;
    let begin = Millis(1_000_000_000);
    writer.keyframe(begin, &frames)?;
    let (mut batch, mut since, mut at_ms) = (BatchWriter::new(Seq(cluster.seq().0 + 1)), 0, begin);
    while since <= keyframe_bytes.max(MIN_BYTES) {
        for _ in 0..BATCH_RECORDS / 2 {
            let Record::Stored { worker, blocks, .. } = chain(chains) else { continue };
            let hashes: Vec<BlockHash> = blocks.iter().rev().map(|block| block.block_hash).collect();
            next(&mut cluster, Some(&mut batch), Record::Stored { worker, parent: None, blocks })?;
            next(&mut cluster, Some(&mut batch), Record::Removed { worker, hashes: hashes.into() })?;
            chains += 1;
        }
        at_ms.0 += 100;
        let frame = batch.finish(at_ms, None)?;
        since += frame.len();
        writer.message(Channel::Batches, at_ms, &frame)?;
    }
    let file = writer.finish()?;
    let mut recording = Recording::open(Cursor::new(file))?;
    let mut time = |moment: SeekTo, digest: Option<u64>| -> Result<f64, Failure> {
        let mut times = Vec::new();
        for _ in 0..RUNS {
            let (started, before) = (Instant::now(), processor_time());
            let folded = recording.state_at(moment)?;
            let wall = started.elapsed();
            let processor = before.and_then(|before| processor_time()?.checked_sub(before));
            times.push(processor.unwrap_or(wall));
            if digest.is_some_and(|digest| folded.cluster.digest() != digest) {
                return Err("another state than the one that was recorded".into());
            }
        }
        times.sort();
        Ok(times[RUNS / 2].as_secs_f64() * 1e3)
    };
    let nearest = time(SeekTo::At(begin), None)?;
    let farthest = time(SeekTo::At(at_ms), Some(cluster.digest()))?;
    let what = |which: &str| format!("jump in a recording of {blocks} blocks, {which}");
    Ok(vec![
        json!({"what": what("to a keyframe"), "value": nearest, "unit": "ms"}),
        json!({"what": what("farthest from one"), "value": farthest, "unit": "ms"}),
        json!({"what": format!("keyframe of {blocks} blocks"), "value": keyframe_bytes as f64 / 1e6, "unit": "MB"}),
    ])
}
