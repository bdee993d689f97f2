//! Writes recordings to files. The hub sends the published bytes to a writer thread over a bounded queue and never waits: if
//! the queue is full, items are dropped and counted, and a keyframe follows as soon as there is room. The thread ends a chunk
//! and syncs it (`fsync`) once a second, so that a crash loses at most a second. Errors are shown as the state of a source and
//! retried; the live view is not affected.

#[cfg_attr(not(feature = "object-store"), allow(dead_code, reason = "only uploads take files from it"))]
mod backlog;
mod copy;
mod decision_values;
mod decisions;
#[cfg_attr(not(feature = "parquet"), path = "without_parquet.rs")]
mod decisions_parquet;
mod files;
mod opened;
mod redact;
mod source;
#[cfg_attr(not(feature = "object-store"), path = "without_store.rs")]
mod store;

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
use radixscope_model::id::{DecisionId, Millis};
use radixscope_model::record::{Entry, Severity, SourceKind};
use radixscope_recording::{Channel, Meta};
use radixscope_state::cluster::{Cluster, DecisionEntry};

use crate::config::StoreAt;
use crate::hub::Published;
use crate::hub::spacing::Spacing;
use backlog::Backlog;
pub(crate) use backlog::StoredStatus;
pub(crate) use copy::copy;
use decision_values::DecisionValues;
pub(crate) use decisions::FinishedDecisions;
pub(crate) use decisions_parquet::Decisions as DecisionsParquet;
use files::Files;
pub(crate) use opened::{Newest, RecordingReader, log_fetched, newest, open, open_between};
pub(crate) use redact::{Redacted, RedactionKey, Redactor};
pub(crate) use source::run as report_status;
use store::Store;

/// Maximum queued items: several minutes of ten batches per second.
const MAX_QUEUED: usize = 4_096;
/// Maximum queued bytes: a large keyframe and the batches after it.
const MAX_QUEUED_BYTES: usize = 256 * 1024 * 1024;

/// Target of a recording.
#[derive(Clone, Debug)]
pub enum RecordTo {
    /// One file.
    File(PathBuf),
    /// A folder of files, of which the oldest are deleted.
    Folder {
        /// The folder.
        path: PathBuf,
        /// Maximum bytes of all its recordings.
        max_bytes: u64,
        /// Files that ended longer ago are deleted.
        max_age: Duration,
    },
    /// Objects in a bucket.
    Store {
        /// Where.
        at: StoreAt,
        /// Folder of the files that are not stored yet.
        buffer: PathBuf,
        /// Maximum bytes of these.
        max_bytes: u64,
        /// A file ends, and is stored, after this time.
        every: Duration,
    },
}

impl RecordTo {
    /// The file or the folder that is written.
    pub(crate) fn path(&self) -> &PathBuf {
        match self {
            Self::File(path) | Self::Folder { path, .. } | Self::Store { buffer: path, .. } => path,
        }
    }

    /// The folder, if it is one.
    pub(crate) fn folder(&self) -> Option<&PathBuf> {
        match self {
            Self::File(_) => None,
            Self::Folder { path, .. } | Self::Store { buffer: path, .. } => Some(path),
        }
    }

    /// As the user named it.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::File(path) | Self::Folder { path, .. } => path.display().to_string(),
            Self::Store { at, .. } => at.to_string(),
        }
    }
}

/// Options of a recording.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// Target.
    pub to: RecordTo,
    /// Whether names and ids are replaced by pseudonyms.
    pub redact: bool,
}

/// A queued item.
enum Item {
    Keyframe {
        at_ms: Millis,
        frames: Vec<Bytes>,
    },
    Message {
        channel: Channel,
        at_ms: Millis,
        data: Bytes,
    },
    /// A decision for the table beside the recording.
    Row {
        id: DecisionId,
        data: Bytes,
    },
}

impl Item {
    fn len_bytes(&self) -> usize {
        match self {
            Item::Keyframe { frames, .. } => frames.iter().map(Bytes::len).sum(),
            Item::Message { data, .. } | Item::Row { data, .. } => data.len(),
        }
    }
}

/// State shared by the writer thread and the hub.
#[derive(Default)]
struct Shared {
    queued_bytes: AtomicUsize,
    /// The thread needs a keyframe before it can continue.
    wants_keyframe: AtomicBool,
    /// The last item was dropped.
    is_behind: AtomicBool,
    /// The thread has ended; before shutdown that is a bug.
    has_ended: AtomicBool,
    /// Bytes on disk, of all retained files.
    bytes: AtomicU64,
    /// Start of the oldest retained file; 0: none.
    since_ms: AtomicU64,
    /// Number of gaps.
    gaps: AtomicU64,
    /// The current error.
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

/// Status of a recording.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RecordingStatus {
    /// The file, folder or address, as given.
    pub(crate) path: String,
    /// The folder or file that is written.
    #[serde(skip)]
    pub(crate) on_disk: PathBuf,
    /// Bytes on disk, of all retained files.
    pub(crate) bytes: u64,
    /// Start of the oldest of them; `null`: nothing was written yet.
    pub(crate) since_ms: Option<Millis>,
    /// Number of gaps, because the disk was too slow or could not be written.
    pub(crate) gaps: u64,
    /// What is in object storage; `null`: the recording stays on the disk.
    pub(crate) stored: Option<StoredStatus>,
    /// The current error, of the disk or of the store; `null`: none.
    pub(crate) error: Option<String>,
    /// Whether nothing can be written to the disk.
    #[serde(skip)]
    pub(crate) is_disk_failing: bool,
}

/// Reads the status of a recording.
#[derive(Clone)]
pub(crate) struct RecordingWatch {
    path: String,
    on_disk: PathBuf,
    shared: Arc<Shared>,
    /// `None`: the recording stays on the disk.
    backlog: Option<Arc<Backlog>>,
}

impl RecordingWatch {
    pub(crate) fn status(&self) -> RecordingStatus {
        let since_ms = self.shared.since_ms.load(Ordering::Relaxed);
        let (stored, not_stored) = self.backlog.as_ref().map(|backlog| backlog.status()).unzip();
        let of_disk = self.shared.error();
        RecordingStatus {
            path: self.path.clone(),
            on_disk: self.on_disk.clone(),
            bytes: self.shared.bytes.load(Ordering::Relaxed),
            since_ms: (since_ms > 0).then_some(Millis(since_ms)),
            gaps: self.shared.gaps.load(Ordering::Relaxed),
            stored,
            is_disk_failing: of_disk.is_some(),
            error: of_disk.or(not_stored.flatten()),
        }
    }
}

/// The threads of a recording.
pub(crate) struct RecordingThreads {
    /// Writes the files.
    pub(crate) writing: JoinHandle<()>,
    /// Stores them, after the files are written until all are stored.
    pub(crate) uploading: Option<JoinHandle<()>>,
}

/// The hub's handle to the writer thread.
pub(crate) struct Recorder {
    to: SyncSender<Item>,
    watch: RecordingWatch,
    /// `None`: the next item must be a keyframe.
    spacing: Option<Spacing>,
    ended: FinishedDecisions,
}

impl Recorder {
    /// Starts the threads, which end when the recorder is dropped and everything is written, and stored if possible.
    ///
    /// # Errors
    /// The file or folder cannot be written, or the store cannot be used as it is set up.
    pub(crate) fn start(to: RecordTo, meta: Meta) -> anyhow::Result<(Self, RecordingThreads)> {
        let shared = Arc::new(Shared::default());
        let (path, on_disk) = (to.name(), to.path().clone());
        let store = match &to {
            RecordTo::Store { at, .. } => Some((Store::open(at.clone())?, Arc::new(Backlog::default()))),
            RecordTo::File(_) | RecordTo::Folder { .. } => None,
        };
        let backlog = store.as_ref().map(|(_, backlog)| Arc::clone(backlog));
        let files = Files::open(to, meta, Arc::clone(&shared), backlog.clone())?;
        let uploading = match store {
            Some((store, backlog)) => Some(store::start(store, files.recording(), backlog)?),
            None => None,
        };
        let (to, items) = sync_channel(MAX_QUEUED);
        let thread = std::thread::Builder::new().name("recording".to_owned());
        let writing = thread.spawn(move || files.run(&items))?;
        let watch = RecordingWatch { path, on_disk, shared, backlog };
        let recorder = Self { to, watch, spacing: None, ended: FinishedDecisions::default() };
        Ok((recorder, RecordingThreads { writing, uploading }))
    }

    /// Its status.
    pub(crate) fn watch(&self) -> &RecordingWatch {
        &self.watch
    }

    /// Whether a keyframe is due.
    pub(crate) fn wants_keyframe(&self, now: Instant) -> bool {
        if self.watch.shared.has_ended.load(Ordering::Relaxed) {
            return false;
        }
        if self.watch.shared.wants_keyframe.load(Ordering::Relaxed) {
            return true;
        }
        // Without a keyframe, one is due once the queue is empty.
        self.spacing.map_or_else(|| self.queued_bytes() == 0, |spacing| spacing.is_due(now))
    }

    /// Writes a keyframe; later batches follow it.
    pub(crate) fn keyframe(&mut self, at_ms: Millis, frames: &[Bytes], made: Instant, cost: Duration) {
        let bytes = frames.iter().map(Bytes::len).sum();
        self.watch.shared.wants_keyframe.store(false, Ordering::Relaxed);
        let was_sent = self.send(Item::Keyframe { at_ms, frames: frames.to_vec() });
        self.watch.shared.is_behind.store(!was_sent, Ordering::Relaxed);
        self.spacing = was_sent.then(|| Spacing::after(bytes, made, cost));
    }

    /// Writes a published batch.
    pub(crate) fn published(&mut self, batch: &Published) {
        let Some(spacing) = self.spacing.as_mut().filter(|_| batch.first < batch.next) else { return };
        spacing.published(batch.frame.len());
        let item = Item::Message { channel: Channel::Batches, at_ms: batch.at_ms, data: batch.frame.clone() };
        if !self.send(item) {
            self.spacing = None;
            self.watch.shared.is_behind.store(true, Ordering::Relaxed);
        }
    }

    /// Notes a decision in a folded record.
    pub(crate) fn noted(&mut self, entry: &Entry<'_>) {
        self.ended.note(entry);
    }

    /// Writes the decisions, findings and timeline row of this second.
    pub(crate) fn second(&mut self, at_ms: Millis, cluster: &Cluster, row: Option<SecondRow>) {
        let has_table = self.watch.backlog.is_some();
        let mut rows = Vec::new();
        let messages = second(at_ms, cluster, row.as_ref(), &mut self.ended, &mut |decided| {
            let values = if has_table { DecisionValues::of(cluster, decided) } else { None };
            rows.extend(values.map(|values| (decided.decision.id, values.encode())));
        });
        for (channel, json) in messages {
            self.json(channel, at_ms, json);
        }
        for (id, row) in rows.into_iter().filter(|_| self.spacing.is_some()) {
            self.send(Item::Row { id, data: row.into() });
        }
    }

    fn json(&self, channel: Channel, at_ms: Millis, json: Vec<u8>) {
        if self.spacing.is_some() {
            self.send(Item::Message { channel, at_ms, data: json.into() });
        }
    }

    fn queued_bytes(&self) -> usize {
        self.watch.shared.queued_bytes.load(Ordering::Relaxed)
    }

    /// Queues an item without waiting. `false`: the queue is full.
    fn send(&self, item: Item) -> bool {
        let shared = &self.watch.shared;
        let bytes = item.len_bytes();
        // An item above the limit passes if the queue is empty.
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

/// What a recording has of a second beside its records: decisions that ended, each of which `each` gets too, findings that began or ended,
/// the row of the timeline.
pub(crate) fn second(
    at_ms: Millis,
    cluster: &Cluster,
    row: Option<&SecondRow>,
    ended: &mut FinishedDecisions,
    each: &mut dyn FnMut(&DecisionEntry),
) -> Vec<(Channel, Vec<u8>)> {
    let mut messages = Vec::new();
    ended.drain_finished(at_ms, cluster, |decided| {
        each(decided);
        let json = decision_row(cluster, decided).and_then(|row| serde_json::to_vec(&row).ok());
        messages.extend(json.map(|json| (Channel::Decisions, json)));
    });
    let Some(row) = row else { return messages };
    for mark in &row.findings {
        let titled = cluster.findings().iter().find(|finding| finding.code == mark.code);
        let finding = FindingRow {
            at_ms,
            state: if mark.opened { "active" } else { "resolved" },
            code: &mark.code,
            severity: mark.severity,
            title: titled.map_or("", |finding| &finding.title),
        };
        messages.push((Channel::Findings, serde_json::to_vec(&finding).unwrap_or_default()));
    }
    messages.push((Channel::Timeline, serde_json::to_vec(row).unwrap_or_default()));
    messages
}

#[derive(Serialize)]
struct FindingRow<'a> {
    at_ms: Millis,
    state: &'static str,
    code: &'a str,
    severity: Severity,
    title: &'a str,
}

/// Name of a source in a recording.
pub(crate) fn source_line(name: &str, kind: SourceKind) -> String {
    format!("{} {name}", kind.as_str())
}

/// Metadata of a recording.
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
