//! What is received is written to files while it is shown.
//!
//! The hub hands the bytes that it publishes to a thread of their own, over a queue that it never waits for: when the
//! queue is full, what does not fit is left out, counted, and a keyframe follows as soon as there is room. The thread ends a
//! chunk and has it written to the disk (`fsync`) once a second, so that a crash costs a second at most. Whatever keeps it
//! from writing is said in words, shown as the state of a source and tried again; the live view goes on.

mod decisions;
mod files;
mod opened;
mod redact;
mod source;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::Serialize;

use radixscope_export::decision_row;
use radixscope_insight::timeline::SecondRow;
use radixscope_model::id::Millis;
use radixscope_model::record::{Entry, Severity, SourceKind};
use radixscope_recording::{Channel, Meta};
use radixscope_state::cluster::Cluster;

use crate::hub::Published;
use crate::hub::spacing::Spacing;
pub(crate) use decisions::Ended;
use files::Files;
pub(crate) use opened::{Newest, newest, open};
pub(crate) use redact::{Key, Redacted, Redactor};
pub(crate) use source::run as tell;

/// Parts that may wait for the disk: a minute of ten batches a second, and more than their bytes would ever be.
const MAX_QUEUED: usize = 4_096;
/// Bytes that may wait for the disk: those of a large keyframe and of what follows it meanwhile.
const MAX_QUEUED_BYTES: usize = 256 * 1024 * 1024;

/// Where to write, and how much.
#[derive(Clone, Debug)]
pub enum RecordTo {
    /// One file until the end.
    File(PathBuf),
    /// A folder, in files that make room for newer ones.
    Folder {
        /// The folder.
        path: PathBuf,
        /// Most bytes of all its recordings together.
        max_bytes: u64,
        /// Files that ended longer ago are deleted.
        max_age: Duration,
    },
}

impl RecordTo {
    /// The file or the folder.
    pub(crate) fn path(&self) -> &PathBuf {
        match self {
            RecordTo::File(path) | RecordTo::Folder { path, .. } => path,
        }
    }
}

/// What is written where.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// Where.
    pub to: RecordTo,
    /// Whether names and ids become pseudonyms.
    pub redact: bool,
}

/// A part on its way to the disk.
enum Item {
    Keyframe { at_ms: Millis, frames: Vec<Bytes> },
    Message { channel: Channel, at_ms: Millis, data: Bytes },
}

impl Item {
    fn len_bytes(&self) -> usize {
        match self {
            Item::Keyframe { frames, .. } => frames.iter().map(Bytes::len).sum(),
            Item::Message { data, .. } => data.len(),
        }
    }
}

/// What the writing thread and the hub tell each other.
#[derive(Default)]
struct Shared {
    queued_bytes: AtomicUsize,
    /// The thread can write no more before it gets a keyframe.
    wants_keyframe: AtomicBool,
    /// The last thing that was to be written was left out.
    is_behind: AtomicBool,
    /// The thread has ended, which it does by itself only through a fault of ours.
    has_ended: AtomicBool,
    /// Bytes on the disk, of all files that are kept.
    bytes: AtomicU64,
    /// When the oldest file that is kept was begun; 0: there is none.
    since_ms: AtomicU64,
    /// Times that something was left out.
    gaps: AtomicU64,
    /// What keeps it from writing.
    error: Mutex<Option<String>>,
}

impl Shared {
    fn error(&self) -> Option<String> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_error(&self, error: Option<String>) {
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = error;
    }
}

/// How recording goes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RecordingStatus {
    /// The file or folder, as the operator named it.
    pub(crate) path: String,
    /// Bytes on the disk, of all files that are kept.
    pub(crate) bytes: u64,
    /// When the oldest of them was begun; `null`: nothing was written yet.
    pub(crate) since_ms: Option<Millis>,
    /// Times that something was left out because the disk was too slow or could not be written.
    pub(crate) gaps: u64,
    /// What keeps it from writing; `null`: nothing.
    pub(crate) error: Option<String>,
}

/// Answers how recording goes.
#[derive(Clone)]
pub(crate) struct RecordingWatch {
    path: String,
    shared: Arc<Shared>,
}

impl RecordingWatch {
    pub(crate) fn status(&self) -> RecordingStatus {
        let since_ms = self.shared.since_ms.load(Ordering::Relaxed);
        RecordingStatus {
            path: self.path.clone(),
            bytes: self.shared.bytes.load(Ordering::Relaxed),
            since_ms: (since_ms > 0).then_some(Millis(since_ms)),
            gaps: self.shared.gaps.load(Ordering::Relaxed),
            error: self.shared.error(),
        }
    }
}

/// The hub's end.
pub(crate) struct Recorder {
    to: SyncSender<Item>,
    watch: RecordingWatch,
    /// `None`: the next thing written has to be a keyframe.
    spacing: Option<Spacing>,
    ended: Ended,
}

impl Recorder {
    /// Starts the thread, which ends when the recorder is dropped and everything is written.
    ///
    /// # Errors
    /// The file or folder cannot be written.
    pub(crate) fn start(to: RecordTo, meta: Meta) -> Result<(Self, JoinHandle<()>), std::io::Error> {
        let shared = Arc::new(Shared::default());
        let path = to.path().display().to_string();
        let files = Files::open(to, meta, Arc::clone(&shared))?;
        let (to, items) = sync_channel(MAX_QUEUED);
        let thread = std::thread::Builder::new().name("recording".to_owned());
        let thread = thread.spawn(move || files.run(&items))?;
        let watch = RecordingWatch { path, shared };
        Ok((Self { to, watch, spacing: None, ended: Ended::default() }, thread))
    }

    /// How it goes.
    pub(crate) fn watch(&self) -> &RecordingWatch {
        &self.watch
    }

    /// Whether the state is to be written as a keyframe now.
    pub(crate) fn wants_keyframe(&self, now: Instant) -> bool {
        if self.watch.shared.has_ended.load(Ordering::Relaxed) {
            return false;
        }
        if self.watch.shared.wants_keyframe.load(Ordering::Relaxed) {
            return true;
        }
        // A keyframe waits until there is room for it.
        self.spacing.map_or_else(|| self.queued_bytes() == 0, |spacing| spacing.is_due(now))
    }

    /// The state of this moment; batches from here on follow it.
    pub(crate) fn keyframe(&mut self, at_ms: Millis, frames: &[Bytes], made: Instant, cost: Duration) {
        let bytes = frames.iter().map(Bytes::len).sum();
        self.watch.shared.wants_keyframe.store(false, Ordering::Relaxed);
        let was_sent = self.send(Item::Keyframe { at_ms, frames: frames.to_vec() });
        self.watch.shared.is_behind.store(!was_sent, Ordering::Relaxed);
        self.spacing = was_sent.then(|| Spacing::after(bytes, made, cost));
    }

    /// What was published.
    pub(crate) fn published(&mut self, batch: &Published) {
        let Some(spacing) = self.spacing.as_mut().filter(|_| batch.first < batch.next) else { return };
        spacing.published(batch.frame.len());
        let item = Item::Message { channel: Channel::Batches, at_ms: batch.at_ms, data: batch.frame.clone() };
        if !self.send(item) {
            self.spacing = None;
            self.watch.shared.is_behind.store(true, Ordering::Relaxed);
        }
    }

    /// Notes what a record, just folded, says of decisions.
    pub(crate) fn noted(&mut self, entry: &Entry<'_>) {
        self.ended.note(entry);
    }

    /// A second is over.
    pub(crate) fn second(&mut self, at_ms: Millis, cluster: &Cluster, row: Option<SecondRow>) {
        let mut over = Vec::new();
        self.ended.take(at_ms, cluster, |decided| {
            over.extend(decision_row(cluster, decided).and_then(|row| serde_json::to_vec(&row).ok()));
        });
        over.into_iter().for_each(|json| self.json(Channel::Decisions, at_ms, json));
        let Some(row) = row else { return };
        for mark in &row.findings {
            let titled = cluster.findings().iter().find(|finding| finding.code == mark.code);
            let finding = FindingLine {
                at_ms,
                state: if mark.opened { "active" } else { "resolved" },
                code: &mark.code,
                severity: mark.severity,
                title: titled.map_or("", |finding| &finding.title),
            };
            self.json(Channel::Findings, at_ms, serde_json::to_vec(&finding).unwrap_or_default());
        }
        self.json(Channel::Timeline, at_ms, serde_json::to_vec(&row).unwrap_or_default());
    }

    fn json(&self, channel: Channel, at_ms: Millis, json: Vec<u8>) {
        if self.spacing.is_some() {
            self.send(Item::Message { channel, at_ms, data: json.into() });
        }
    }

    fn queued_bytes(&self) -> usize {
        self.watch.shared.queued_bytes.load(Ordering::Relaxed)
    }

    /// Hands a part over without waiting. `false`: there was no room.
    fn send(&self, item: Item) -> bool {
        let shared = &self.watch.shared;
        let bytes = item.len_bytes();
        // One larger than all room still passes alone.
        let has_room = self.queued_bytes() == 0 || self.queued_bytes() + bytes <= MAX_QUEUED_BYTES;
        if has_room {
            shared.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
            if self.to.try_send(item).is_ok() {
                return true;
            }
            shared.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        shared.gaps.fetch_add(1, Ordering::Relaxed);
        false
    }
}

#[derive(Serialize)]
struct FindingLine<'a> {
    at_ms: Millis,
    state: &'static str,
    code: &'a str,
    severity: Severity,
    title: &'a str,
}

/// How a source is named in a recording.
pub(crate) fn source_line(name: &str, kind: SourceKind) -> String {
    format!("{} {name}", kind.as_str())
}

/// What a recording says of itself.
pub(crate) fn meta(epoch: u64, recording: u64, began_ms: Millis, sources: &[(String, SourceKind)]) -> Meta {
    let line = |(name, kind): &(String, SourceKind)| source_line(name, *kind);
    Meta {
        by: env!("CARGO_PKG_VERSION").to_owned(),
        epoch,
        recording,
        began_ms: began_ms.0,
        sources: sources.iter().map(line).collect::<Vec<_>>().join("\n"),
        redacted: false,
    }
}

#[cfg(test)]
mod tests;
