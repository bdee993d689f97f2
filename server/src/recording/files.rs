//! The writer thread: writes one file after the other, bounded by size and age, each starting with a keyframe.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufWriter, Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use radixscope_model::id::{DecisionId, Millis};
use radixscope_recording::{Meta, Recording, RecordingError, Writer};

use super::{Backlog, Item, RecordTo, RedactionKey, Redactor, Shared};
use crate::time::now;

/// How often a chunk is ended and synced to disk.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// Retry delay after a failure.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// Approximate number of files in a folder, so that deleting the oldest removes little.
const FILES: u64 = 20;
/// Range of the file size beyond which the next keyframe starts a new file.
const FILE_BYTES: std::ops::RangeInclusive<u64> = 256 * 1024..=512 * 1024 * 1024;
const PREFIX: &str = "radixscope-";
const SUFFIX: &str = ".mcap";
/// Ending of the file of decisions beside a recording that goes to a store.
pub(super) const ROWS: &str = "rows";
/// Ending of the Parquet file that is made of it.
pub(super) const PARQUET: &str = "parquet";
/// Name of a file before it contains a state.
const UNNAMED: &str = "radixscope.new";
/// Lock file of the process that writes into a folder.
const LOCK: &str = "radixscope.lock";

/// A file that is being written.
struct OpenFile {
    writer: Writer<BufWriter<File>>,
    /// The same file, for syncing.
    file: File,
    path: PathBuf,
    /// Decisions, for a store.
    rows: Option<BufWriter<File>>,
    /// Its temporary name until it contains a state, so that every file with a final name can be opened.
    unnamed: Option<PathBuf>,
    began: Instant,
    began_ms: Millis,
    has_news: bool,
}

impl OpenFile {
    /// Hands decisions to the system.
    fn flush_rows(&mut self) -> Result<(), Error> {
        let Some(rows) = &mut self.rows else { return Ok(()) };
        std::io::Write::flush(rows)?;
        rows.get_ref().sync_data()
    }
}

/// A completed file.
#[derive(Clone)]
pub(super) struct RecordingFile {
    pub(super) path: PathBuf,
    pub(super) began_ms: Millis,
    ended_ms: Millis,
    /// With what is beside it.
    pub(super) bytes: u64,
}

/// Paths of what may be beside a recording that goes to a store.
pub(super) fn sidecars(recording: &Path) -> [PathBuf; 2] {
    [ROWS, PARQUET].map(|ending| recording.with_extension(ending))
}

/// Reports the end of the thread, also after a panic.
struct EndGuard(Arc<Shared>, Option<Arc<Backlog>>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.0.has_ended.store(true, Ordering::Relaxed);
        if let Some(backlog) = &self.1 {
            backlog.close();
        }
        if std::thread::panicking() {
            self.0.set_error(Some(
                "the recording thread failed (a bug in Radixscope); restart to record again".to_owned(),
            ));
        }
    }
}

/// The thread's state.
pub(super) struct Files {
    to: RecordTo,
    meta: Meta,
    shared: Arc<Shared>,
    current: Option<OpenFile>,
    /// Oldest first; those that go to a store are in the backlog instead.
    retained: Vec<RecordingFile>,
    /// `None`: the recording stays on the disk.
    backlog: Option<Arc<Backlog>>,
    /// `None`: no redaction.
    redactor: Option<Redactor>,
    failed: Option<Instant>,
    /// Lock of the folder.
    _lock: Option<File>,
}

impl Files {
    /// Reads the folder. Nothing is written before the first keyframe.
    pub(super) fn open(
        to: RecordTo,
        meta: Meta,
        shared: Arc<Shared>,
        backlog: Option<Arc<Backlog>>,
    ) -> Result<Self, Error> {
        let mut lock = None;
        let mut retained = Vec::new();
        match &to {
            RecordTo::File(path) if path.exists() => {
                return Err(Error::new(ErrorKind::AlreadyExists, "the file exists; choose another name"));
            }
            RecordTo::File(path) => drop(OpenOptions::new().write(true).create_new(true).open(path)?),
            RecordTo::Folder { path, .. } | RecordTo::Store { buffer: path, .. } => {
                std::fs::create_dir_all(path)?;
                lock = Some(lock_folder(path)?);
                retained = recordings_in(path)?;
            }
        }
        let before = meta_in(&retained);
        if let Some(before) = before.as_ref().filter(|before| before.redacted != meta.redacted) {
            let what = if before.redacted { "redacted" } else { "not redacted" };
            let message = format!("the recordings there are {what} (--redact); choose another folder");
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let recording = before.map_or(meta.recording, |before| before.recording);
        let mut meta = Meta { recording, ..meta };
        let mut redactor = None;
        if meta.redacted {
            let key = match &to {
                RecordTo::File(_) => RedactionKey::random()?,
                RecordTo::Folder { path, .. } | RecordTo::Store { buffer: path, .. } => {
                    RedactionKey::of_folder(path)?
                }
            };
            let redactor = redactor.insert(Redactor::new(key));
            meta.sources = redactor.sources(&meta.sources);
        }
        if let (Some(backlog), Some(folder)) = (&backlog, to.folder()) {
            remove_orphans(folder)?;
            retained.drain(..).for_each(|file| backlog.push(file));
        }
        let files =
            Self { to, meta, shared, current: None, retained, backlog, redactor, failed: None, _lock: lock };
        files.report();
        Ok(files)
    }

    /// Id of the recording.
    pub(super) const fn recording(&self) -> u64 {
        self.meta.recording
    }

    /// Writes until the channel is closed.
    pub(super) fn run(mut self, items: &Receiver<Item>) {
        let _ending = EndGuard(Arc::clone(&self.shared), self.backlog.clone());
        let mut synced = Instant::now();
        loop {
            let wait = SYNC_EVERY.saturating_sub(synced.elapsed());
            match items.recv_timeout(wait) {
                Ok(item) => {
                    let bytes = item.len_bytes();
                    let written = self.write(item);
                    self.shared.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
                    self.check(written);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if synced.elapsed() >= SYNC_EVERY {
                synced = Instant::now();
                let done = self.sync();
                self.check(done);
                self.retry();
            }
        }
        if self.shared.is_behind.load(Ordering::Relaxed) {
            // Items were dropped, so the file is not marked as finished.
            let synced = self.sync();
            return self.check(synced);
        }
        let ended = self.end();
        self.check(ended);
    }

    /// Appends a decision to the file beside the recording.
    fn write_row(&mut self, id: DecisionId, data: &[u8]) -> Result<(), RecordingError> {
        let Some(rows) = self.current.as_mut().and_then(|current| current.rows.as_mut()) else {
            return Ok(());
        };
        let redacted = match &self.redactor {
            Some(redactor) => match redactor.values(id) {
                Some(values) => Some(values.encode()),
                None => return Ok(()),
            },
            None => None,
        };
        Ok(std::io::Write::write_all(rows, redacted.as_deref().unwrap_or(data))?)
    }

    fn write(&mut self, item: Item) -> Result<(), RecordingError> {
        match item {
            Item::Keyframe { at_ms, frames } => {
                if self.current.as_ref().is_none_or(|current| self.is_full(current)) {
                    self.end()?;
                    self.begin(at_ms)?;
                }
                let Some(current) = &mut self.current else { return Ok(()) };
                current.has_news = true;
                match &mut self.redactor {
                    Some(redactor) => current.writer.keyframe(at_ms, &redactor.keyframe(&frames)?)?,
                    None => current.writer.keyframe(at_ms, &frames)?,
                }
                if current.unnamed.is_some() { self.sync() } else { Ok(()) }
            }
            Item::Message { channel, at_ms, data } => {
                let Some(current) = &mut self.current else { return Ok(()) };
                let data = match &mut self.redactor {
                    Some(redactor) => redactor.message(channel, &data)?,
                    None => Some(data),
                };
                let Some(data) = data else { return Ok(()) };
                current.has_news = true;
                current.writer.message(channel, at_ms, &data)
            }
            Item::Row { id, data } => self.write_row(id, &data),
        }
    }

    fn is_full(&self, current: &OpenFile) -> bool {
        let (max_bytes, most) = match self.to {
            RecordTo::File(_) => return false,
            RecordTo::Folder { max_bytes, max_age, .. } => (max_bytes, max_age / FILES as u32),
            RecordTo::Store { max_bytes, every, .. } => (max_bytes, every),
        };
        current.began.elapsed() >= most || current.writer.len_bytes() >= file_bytes(max_bytes)
    }

    fn begin(&mut self, at_ms: Millis) -> Result<(), RecordingError> {
        let (path, unnamed, file) = match &self.to {
            // The file was created at the start; after a failure another one continues.
            RecordTo::File(path) if self.retained.is_empty() => {
                (path.clone(), None, OpenOptions::new().write(true).create(true).truncate(true).open(path)?)
            }
            RecordTo::File(path) => {
                let mut name = path.file_stem().unwrap_or_default().to_owned();
                name.push(format!("-{}{SUFFIX}", self.retained.len() + 1));
                let path = path.with_file_name(name);
                (path.clone(), None, OpenOptions::new().write(true).create_new(true).open(path)?)
            }
            RecordTo::Folder { path, .. } | RecordTo::Store { buffer: path, .. } => {
                std::fs::create_dir_all(path)?;
                let named = |number| path.join(format!("{PREFIX}{number}{SUFFIX}"));
                let mut number = at_ms.0;
                // The folder is locked, so there is no race.
                while named(number).exists() {
                    number += 1;
                }
                let unnamed = path.join(UNNAMED);
                let file = OpenOptions::new().write(true).create(true).truncate(true).open(&unnamed)?;
                (named(number), Some(unnamed), file)
            }
        };
        self.make_room(0)?;
        let meta = Meta { began_ms: at_ms.0, ..self.meta.clone() };
        let rows = match &self.backlog {
            Some(_) => Some(BufWriter::new(File::create(path.with_extension(ROWS))?)),
            None => None,
        };
        let writer = Writer::new(BufWriter::new(file.try_clone()?), &meta)?;
        tracing::info!(file = %path.display(), "writing recording");
        self.current = Some(OpenFile {
            writer,
            file,
            path,
            rows,
            unnamed,
            began: Instant::now(),
            began_ms: at_ms,
            has_news: true,
        });
        if self.failed.take().is_some() {
            self.shared.set_error(None);
        }
        Ok(())
    }

    /// Ends the chunk, so that it is readable, and syncs the file.
    fn sync(&mut self) -> Result<(), RecordingError> {
        // What a store gets is late by no more than the time after which a file ends: keyframes may be rarer.
        let is_late = |current: &OpenFile| self.backlog.is_some() && self.is_full(current);
        if self.current.as_ref().is_some_and(is_late) {
            self.shared.wants_keyframe.store(true, Ordering::Relaxed);
        }
        let Some(current) = self.current.as_mut().filter(|current| current.has_news) else { return Ok(()) };
        current.flush_rows()?;
        current.writer.cut()?;
        current.file.sync_data()?;
        current.has_news = false;
        if let Some(unnamed) = current.unnamed.take() {
            std::fs::rename(unnamed, &current.path)?;
        }
        // The file may have been deleted.
        if !current.path.exists() {
            return Err(Error::new(ErrorKind::NotFound, "the file was deleted while it was written").into());
        }
        let bytes = current.writer.len_bytes();
        let is_far_too_large = match self.to {
            RecordTo::Folder { max_bytes, .. } | RecordTo::Store { max_bytes, .. } => {
                bytes >= 2 * file_bytes(max_bytes)
            }
            RecordTo::File(_) => false,
        };
        if is_far_too_large {
            self.shared.wants_keyframe.store(true, Ordering::Relaxed);
        }
        self.make_room(bytes)?;
        self.report();
        Ok(())
    }

    /// Deletes files beyond the limits, oldest first; the current file has `current` bytes.
    fn make_room(&mut self, current: u64) -> Result<(), Error> {
        let room = |max_bytes: u64| max_bytes.saturating_sub(current.max(file_bytes(max_bytes)));
        let (most, max_age) = match self.to {
            RecordTo::File(_) => return Ok(()),
            RecordTo::Folder { max_bytes, max_age, .. } => (room(max_bytes), max_age),
            RecordTo::Store { max_bytes, .. } => {
                return self.backlog.as_ref().map_or(Ok(()), |backlog| backlog.make_room(room(max_bytes)));
            }
        };
        let max_age_ms = u64::try_from(max_age.as_millis()).unwrap_or(u64::MAX);
        while let Some(oldest) = self.retained.first() {
            let bytes: u64 = self.retained.iter().map(|retained| retained.bytes).sum();
            if bytes <= most && now().since(oldest.ended_ms) <= max_age_ms {
                break;
            }
            match std::fs::remove_file(&oldest.path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => drop(self.retained.remove(0)),
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), RecordingError> {
        let Some(mut current) = self.current.take() else { return Ok(()) };
        current.flush_rows()?;
        let OpenFile { writer, file, path, began_ms, .. } = current;
        writer.finish()?;
        file.sync_all()?;
        self.add_file(path, began_ms);
        Ok(())
    }

    fn add_file(&mut self, path: PathBuf, began_ms: Millis) {
        let file = existing_file(path, began_ms);
        match &self.backlog {
            Some(backlog) => file.into_iter().for_each(|file| backlog.push(file)),
            None => self.retained.extend(file),
        }
        self.report();
    }

    /// Handles the result of a write. A failed file is left as it is; its synced part is readable.
    fn check(&mut self, done: Result<(), RecordingError>) {
        let Err(error) = done else { return };
        let message = format!("{error}; retrying every {} s", RETRY_AFTER.as_secs());
        tracing::warn!(%error, "writing the recording failed");
        self.shared.set_error(Some(message));
        self.shared.gaps.fetch_add(1, Ordering::Relaxed);
        self.failed = Some(Instant::now());
        if let Some(current) = self.current.take() {
            if let Some(unnamed) = &current.unnamed {
                // It contains no state, and its space may be needed.
                let _ = std::fs::remove_file(unnamed);
                let _ = std::fs::remove_file(current.path.with_extension(ROWS));
            }
            self.add_file(current.path.clone(), current.began_ms);
        }
    }

    fn retry(&mut self) {
        if self.current.is_none() && self.failed.is_some_and(|failed| failed.elapsed() >= RETRY_AFTER) {
            self.shared.wants_keyframe.store(true, Ordering::Relaxed);
        }
    }

    fn report(&self) {
        let current = self.current.as_ref().map_or(0, |current| current.writer.len_bytes());
        let (retained, first) = match &self.backlog {
            Some(backlog) => backlog.buffered(),
            None => {
                let bytes = self.retained.iter().map(|retained| retained.bytes).sum();
                (bytes, self.retained.first().map(|retained| retained.began_ms))
            }
        };
        self.shared.bytes.store(retained + current, Ordering::Relaxed);
        let since = first.or_else(|| self.current.as_ref().map(|current| current.began_ms));
        self.shared.since_ms.store(since.unwrap_or_default().0, Ordering::Relaxed);
    }
}

/// A file's share of a folder.
fn file_bytes(max_bytes: u64) -> u64 {
    (max_bytes / FILES).clamp(*FILE_BYTES.start(), *FILE_BYTES.end())
}

fn lock_folder(folder: &Path) -> Result<File, Error> {
    let lock = OpenOptions::new().write(true).create(true).truncate(false).open(folder.join(LOCK))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(Error::new(
            ErrorKind::ResourceBusy,
            "another Radixscope process records there; choose another folder",
        )),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Start time of a file, from its name.
pub(super) fn began_ms(path: &Path) -> Option<Millis> {
    let number = path.file_name()?.to_str()?.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    number.parse().ok().map(Millis)
}

fn existing_file(path: PathBuf, began_ms: Millis) -> Option<RecordingFile> {
    let of = std::fs::metadata(&path).ok()?;
    let ended = of.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    let ended_ms = Millis(u64::try_from(ended.as_millis()).ok()?);
    let beside = sidecars(&path).into_iter().filter_map(|path| std::fs::metadata(path).ok());
    let bytes = of.len() + beside.map(|of| of.len()).sum::<u64>();
    Some(RecordingFile { path, began_ms, ended_ms, bytes })
}

/// The recordings in a folder, oldest first. Other files are ignored.
pub(super) fn recordings_in(folder: &Path) -> Result<Vec<RecordingFile>, Error> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if let Some(began_ms) = began_ms(&path) {
            found.extend(existing_file(path, began_ms));
        }
    }
    found.sort_by_key(|retained| retained.began_ms);
    Ok(found)
}

/// Deletes what stands beside recordings that are not there: a process was killed before its first state was on the disk.
fn remove_orphans(folder: &Path) -> Result<(), Error> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let recording = path.with_extension(&SUFFIX[1..]);
        if sidecars(&path).contains(&path) && began_ms(&recording).is_some() && !recording.exists() {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Metadata of the newest recording in a folder, which new files continue.
fn meta_in(retained: &[RecordingFile]) -> Option<Meta> {
    let newest =
        retained.iter().rev().find_map(|retained| Recording::open(File::open(&retained.path).ok()?).ok())?;
    Some(newest.meta().clone())
}
