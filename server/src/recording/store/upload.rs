//! Brings finished files into a store, oldest first, in a thread of its own: the recording of a file, its decisions as Parquet, and whether the
//! store has both whole. At most one part of a file is in memory.

use std::fs::File;
use std::io::{Error, ErrorKind, Read as _};
use std::path::Path as FilePath;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStoreExt as _, PutPayload};
use tokio::time::Instant;

use radixscope_model::id::Millis;
use radixscope_recording::Recording;

use super::Store;
use super::failure::StoreFailure;
use super::layout::ObjectNames;
use super::table::parquet_of_rows;
use crate::recording::backlog::{Backlog, Uploaded};
use crate::recording::files::{PARQUET, ROWS, RecordingFile};
use crate::source::{doubled, with_jitter};

/// Size of a part; a smaller file is sent at once. All parts but the last must have the same size and at least 5 MiB.
const PART_BYTES: u64 = 8 << 20;
/// After a failure it is tried again so soon, then twice as late each time up to the longest.
const RETRY_FIRST: Duration = Duration::from_secs(2);
const RETRY_LONGEST: Duration = Duration::from_secs(60);
/// The same while the process ends.
const RETRY_AT_END: Duration = Duration::from_secs(1);
/// How long giving up an upload may take.
const ABORT_WITHIN: Duration = Duration::from_secs(2);
/// Names that are tried where other objects have them.
const MAX_COPIES: u32 = 10;

/// Starts the thread, which ends when everything is stored after the backlog was closed, or cannot be.
///
/// # Errors
/// The thread cannot be started.
pub(in crate::recording) fn start(
    store: Store,
    recording: u64,
    backlog: Arc<Backlog>,
) -> Result<JoinHandle<()>, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let thread = std::thread::Builder::new().name("upload".to_owned());
    thread.spawn(move || runtime.block_on(Upload { store, recording, backlog }.run()))
}

struct Upload {
    store: Store,
    /// Id of the recording, for a file whose own cannot be read.
    recording: u64,
    backlog: Arc<Backlog>,
}

/// Why a file is not stored.
enum NotStored {
    /// It is not in the buffer any more.
    Vanished,
    Failed(StoreFailure),
}

impl From<StoreFailure> for NotStored {
    fn from(failure: StoreFailure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Error> for NotStored {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound => Self::Vanished,
            _ => StoreFailure::passing(format!("the buffer cannot be read: {error}")).into(),
        }
    }
}

impl Upload {
    async fn run(self) {
        let mut failures = 0;
        // Wrong credentials are known before the first file is finished.
        let mut is_known = false;
        loop {
            let file = self.backlog.take_oldest();
            let done = match &file {
                Some(file) => self.file(file).await,
                None if !is_known => {
                    self.store.probe().await.map(|()| Uploaded::default()).map_err(Into::into)
                }
                None if self.backlog.is_closed() => return,
                None => {
                    self.backlog.changed().await;
                    continue;
                }
            };
            match done {
                Ok(uploaded) => {
                    (failures, is_known) = (0, true);
                    match file {
                        Some(_) => self.backlog.stored(uploaded),
                        None => self.backlog.reached(),
                    }
                }
                Err(NotStored::Vanished) => self.backlog.vanished(),
                Err(NotStored::Failed(failure)) => {
                    if self.backlog.is_closed() && (file.is_none() || !failure.is_passing) {
                        return self.backlog.failed(failure.to_string());
                    }
                    if self.backlog.is_closed() {
                        self.backlog.failed(failure.to_string());
                        tokio::time::sleep(RETRY_AT_END).await;
                        continue;
                    }
                    let wait = with_jitter(doubled(RETRY_FIRST, failures, RETRY_LONGEST));
                    failures = failures.saturating_add(1);
                    tracing::warn!(%failure, retry_in_s = wait.as_secs(), "storing the recording failed");
                    self.backlog.failed(format!("{failure}; retrying"));
                    self.wait(wait).await;
                }
            }
        }
    }

    /// Waits, at most until the process ends.
    async fn wait(&self, wait: Duration) {
        let until = Instant::now() + wait;
        while Instant::now() < until && !self.backlog.is_closed() {
            tokio::select! {
                () = tokio::time::sleep_until(until) => {}
                () = self.backlog.changed() => {}
            }
        }
    }

    /// Stores a file and its decisions.
    async fn file(&self, file: &RecordingFile) -> Result<Uploaded, NotStored> {
        let (recording, until_ms) = read_file(&file.path)?.unwrap_or((self.recording, None));
        let mut uploaded = Uploaded { until_ms, ..Uploaded::default() };
        let mut names = None;
        for copy in 0..MAX_COPIES {
            let tried = ObjectNames::of(&file.path, recording, copy);
            match self.object(&tried.recording, &file.path).await? {
                Stored::New(len) => uploaded.add(len),
                // An earlier process stored it and was killed before it could note that.
                Stored::Before { is_same_size: true } => {}
                Stored::Before { is_same_size: false } => continue,
            }
            names = Some(tried);
            break;
        }
        let taken = || StoreFailure::passing("other objects have the names of the recording's files");
        let names = names.ok_or_else(taken)?;
        let rows = file.path.with_extension(ROWS);
        if !rows.exists() {
            return Ok(uploaded);
        }
        let parquet = file.path.with_extension(PARQUET);
        if parquet_of_rows(&rows, &parquet).map_err(|error| {
            StoreFailure::passing(format!("the decisions cannot be written to the buffer: {error:#}"))
        })? && let Stored::New(len) = self.object(&names.decisions, &parquet).await?
        {
            uploaded.add(len);
        }
        Ok(uploaded)
    }

    /// Stores one file under a name, unless there is an object of that name.
    async fn object(&self, name: &str, path: &FilePath) -> Result<Stored, NotStored> {
        let to = self.store.named(name);
        let mut file = File::open(path)?;
        let len = file.metadata()?.len();
        if let Some(found) = self.store.head(&to).await? {
            return Ok(Stored::Before { is_same_size: found.size == len });
        }
        if len <= PART_BYTES {
            let payload = PutPayload::from(part(&mut file)?);
            self.store.objects.put(&to, payload).await.map_err(|error| self.store.failure(&error))?;
        } else {
            self.parts(&to, &mut file).await?;
        }
        match self.store.head(&to).await?.map(|found| found.size) {
            Some(size) if size == len => Ok(Stored::New(len)),
            size => {
                let size = size.unwrap_or_default();
                Err(StoreFailure::passing(format!("the store has {size} bytes of {len} of {to}")).into())
            }
        }
    }

    async fn parts(&self, to: &Path, file: &mut File) -> Result<(), NotStored> {
        let failure = |error| self.store.failure(&error);
        let mut upload = self.store.objects.put_multipart(to).await.map_err(failure)?;
        let sent = async {
            loop {
                let part = part(file)?;
                if part.is_empty() {
                    break;
                }
                upload.put_part(part.into()).await.map_err(failure)?;
            }
            Ok(upload.complete().await.map(drop).map_err(failure)?)
        };
        let sent = sent.await;
        if sent.is_err() {
            // The parts take room until the bucket's lifecycle rule removes them.
            let _ = tokio::time::timeout(ABORT_WITHIN, upload.abort()).await;
        }
        sent
    }
}

/// What became of an object.
enum Stored {
    /// It is stored, with so many bytes.
    New(u64),
    /// There was one of that name before.
    Before { is_same_size: bool },
}

/// The next part of a file; empty at its end.
fn part(file: &mut File) -> Result<Bytes, Error> {
    let mut part = Vec::new();
    file.take(PART_BYTES).read_to_end(&mut part)?;
    Ok(part.into())
}

/// The id of a file's recording and the time of its last message; `None`: it cannot be read.
fn read_file(path: &FilePath) -> Result<Option<(u64, Option<Millis>)>, Error> {
    let file = std::io::BufReader::new(File::open(path)?);
    let opened = Recording::open(file).ok();
    Ok(opened.map(|opened| (opened.meta().recording, opened.range().map(|(_, end)| end))))
}
