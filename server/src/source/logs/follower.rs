//! Follows a file that grows, is rotated or is truncated: by notifications, and by polling a few times a second where there are
//! none, such as over NFS and on mounts of virtual machines. A truncated file is detected by its length, or by its first bytes
//! if it has already grown past the old length. Files that were rotated away unread are read first ([`super::rotated`]); what
//! can no longer be read is counted as lost.

use std::collections::VecDeque;
use std::fs::Metadata;
use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio::time::Instant;

use super::rotated::{self, MAX_ROTATED, Rotated};
use super::watch::Watch;
use crate::source::file_identity::{Identity, identity};

/// Maximum bytes read at once.
pub(super) const CHUNK_BYTES: usize = 64 * 1024;

/// Length of a file's beginning that identifies it: the first line has a timestamp in microseconds.
pub(super) const HEAD_BYTES: u64 = 64;

/// Maximum delay of notifications, except on an overloaded system.
const CONFIRMED_AFTER: Duration = Duration::from_millis(50);

/// Minimum time between polls, so that a busy log is read in chunks and not byte by byte.
const PAUSE: Duration = Duration::from_millis(2);

/// The outcome of a poll.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReadOutcome {
    /// More bytes, appended to the buffer.
    More,
    /// Nothing new for now.
    Nothing,
    /// The file starts over, because it was replaced or truncated: the next bytes do not continue a line.
    Restarted,
    /// This many files, or remainders of files, were removed before they were read.
    Lost(u64),
}

/// Follows one file from its beginning.
pub(super) struct Follower {
    path: PathBuf,
    /// The canonical path when it was last opened.
    real: PathBuf,
    open: Option<Open>,
    /// The file and offset reached, for reopening after a failure.
    read: Option<Mark>,
    /// Files to read before the one at `path`, opened so that they cannot be removed.
    queue: VecDeque<Open>,
    /// Files that were read completely, newest last.
    was_read: VecDeque<Mark>,
    lost: u64,
    /// How many files had appeared at the path when its path was last confirmed, and files found since then.
    appeared: Option<u64>,
    found: u64,
    watch: Option<Watch>,
    last_wait: Instant,
    is_overdue: bool,
}

struct Open {
    follower: File,
    identity: Identity,
    offset: u64,
    /// The file's first bytes when it was read.
    head: Vec<u8>,
    /// Length and modification time at the last poll.
    len: u64,
    modified: SystemTime,
    /// It continues where the previous file ended.
    is_rest: bool,
    since: Instant,
    /// Whether it is known to be the newest file at the path.
    is_confirmed: bool,
}

/// A file and the offset reached in it.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) identity: Identity,
    pub(super) offset: u64,
    pub(super) head: Vec<u8>,
    pub(super) modified: SystemTime,
}

impl Follower {
    /// Without `watch` the file is polled.
    pub(super) fn new(path: &Path, watch: Option<Watch>) -> Self {
        Self {
            path: path.to_owned(),
            real: path.to_owned(),
            open: None,
            read: None,
            queue: VecDeque::new(),
            was_read: VecDeque::new(),
            lost: 0,
            appeared: None,
            found: 0,
            watch,
            last_wait: Instant::now(),
            is_overdue: true,
        }
    }

    /// Waits for a notification, at most for `most`.
    pub(super) async fn wait(&mut self, most: Duration) {
        let most = if self.open.as_ref().is_none_or(|open| open.is_confirmed) {
            most
        } else {
            most.min(CONFIRMED_AFTER)
        };
        let Some(watch) = &mut self.watch else { return tokio::time::sleep(most).await };
        match watch.retarget(&self.path, self.is_overdue).await {
            Ok(false) => {}
            // Changes before the watch was set up were not notified.
            Ok(true) => return self.is_overdue = false,
            Err(error) => {
                let log = self.path.display();
                tracing::warn!(%log, %error, "no file notifications; polling the log instead");
                self.watch = None;
                return;
            }
        }
        tokio::time::sleep_until(self.last_wait + PAUSE).await;
        self.is_overdue = tokio::time::timeout(most, watch.changed()).await.is_err();
        self.last_wait = Instant::now();
    }

    /// Polls once. After an error the next call reopens the file and continues.
    ///
    /// # Errors
    /// The file cannot be opened or read; [`io::ErrorKind::Unsupported`]: it is not a regular file.
    pub(super) async fn poll(&mut self, buffer: &mut Vec<u8>) -> io::Result<ReadOutcome> {
        let outcome = self.read_next(buffer).await;
        if outcome.is_err()
            && let Some(open) = self.open.take()
        {
            self.read = Some(open.mark().await);
            self.appeared = None;
        }
        match outcome {
            Ok(ReadOutcome::Nothing) if self.lost > 0 => {
                Ok(ReadOutcome::Lost(std::mem::take(&mut self.lost)))
            }
            outcome => outcome,
        }
    }

    async fn read_next(&mut self, buffer: &mut Vec<u8>) -> io::Result<ReadOutcome> {
        let Some(open) = &mut self.open else { return self.open_next().await };
        if !open.begins_as_before().await? {
            return self.emptied().await;
        }
        if open.read(buffer).await? > 0 {
            self.check_path_early().await;
            return Ok(ReadOutcome::More);
        }
        let now = match tokio::fs::metadata(&self.path).await {
            Ok(metadata) => metadata,
            // Moved away without a new file yet: the writer may still write to the old one.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ReadOutcome::Nothing),
            Err(error) => return Err(error),
        };
        if identity(&now) != open.identity {
            return self.replaced(&now, buffer).await;
        }
        if now.len() < open.offset {
            return self.emptied().await;
        }
        open.len = now.len();
        open.modified = now.modified().unwrap_or(open.modified);
        self.confirm_path();
        Ok(ReadOutcome::Nothing)
    }

    /// Confirms the path before the file is read to its end, which may take long.
    async fn check_path_early(&mut self) {
        let Some(open) = self.open.as_ref().filter(|open| !open.is_confirmed) else { return };
        if open.since.elapsed() >= CONFIRMED_AFTER
            && let Ok(now) = tokio::fs::metadata(&self.path).await
            && identity(&now) == open.identity
        {
            self.confirm_path();
        }
    }

    /// The open file is the one at the path. Files that appeared there before it and were not found are lost.
    fn confirm_path(&mut self) {
        let (Some(open), Some(watch)) = (&mut self.open, &self.watch) else { return };
        if open.since.elapsed() < CONFIRMED_AFTER {
            return;
        }
        open.is_confirmed = true;
        let appeared = watch.appeared();
        let (before, found) = (self.appeared.replace(appeared), std::mem::take(&mut self.found));
        // If none was found, this file may have been moved away and back.
        if let Some(before) = before.filter(|_| found > 0) {
            self.lost += appeared.saturating_sub(before).saturating_sub(found);
        }
    }

    /// Opens the next rotated file that is unread, or else the file at the path.
    async fn open_next(&mut self) -> io::Result<ReadOutcome> {
        if let Some(next) = self.queue.pop_front() {
            let news = if next.is_rest { ReadOutcome::More } else { ReadOutcome::Restarted };
            self.open = Some(next);
            return Ok(news);
        }
        // Checked before opening: opening a pipe blocks until there is a writer.
        let what = tokio::fs::metadata(&self.path).await?;
        if what.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !what.is_file() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.real = tokio::fs::canonicalize(&self.path).await?;
        let mut open = Open::at(&self.path, 0).await?;
        let Some(mark) = self.read.take() else {
            self.open = Some(open);
            return Ok(ReadOutcome::More);
        };
        if open.identity == mark.identity && open.goes_on(&mark).await? {
            self.open = Some(open);
            return Ok(ReadOutcome::More);
        }
        // Another file, after an outage.
        self.queue_rotated(&mark).await?;
        self.queue.push_back(open);
        self.open_next_of_queue()
    }

    fn open_next_of_queue(&mut self) -> io::Result<ReadOutcome> {
        self.open = self.queue.pop_front();
        Ok(if self.open.as_ref().is_some_and(|open| open.is_rest) {
            ReadOutcome::More
        } else {
            ReadOutcome::Restarted
        })
    }

    /// The file was truncated in place: its unread part may be in a copy.
    async fn emptied(&mut self) -> io::Result<ReadOutcome> {
        let Some(open) = self.open.take() else { return Ok(ReadOutcome::Nothing) };
        let mark = Mark { modified: open.modified, ..open.mark().await };
        let is_read = open.len <= open.offset;
        if !self.queue_rotated(&mark).await? && !is_read {
            self.lost += 1;
        }
        self.was_read.push_back(mark);
        self.queue.push_back(Open::from(open.follower).await?);
        self.open_next_of_queue()
    }

    /// The file was replaced, possibly several times.
    async fn replaced(&mut self, now: &Metadata, buffer: &mut Vec<u8>) -> io::Result<ReadOutcome> {
        let Some(open) = &mut self.open else { return Ok(ReadOutcome::Nothing) };
        let mark = open.mark().await;
        let mut later = if self.queue.is_empty() { self.unread_after(&mark).await? } else { Vec::new() };
        later.retain(|rotated| rotated.offset == 0);
        let is_written = now.len() > 0 || !self.queue.is_empty() || later.iter().any(|l| l.len > 0);
        // The writer may write to the old file until a newer one has content; then the old one is read once more.
        let Some(open) = &mut self.open else { return Ok(ReadOutcome::Nothing) };
        if open.read(buffer).await? > 0 {
            return Ok(ReadOutcome::More);
        }
        if !is_written {
            return Ok(ReadOutcome::Nothing);
        }
        if self.queue.is_empty() {
            self.found += later.len() as u64 + 1;
        }
        self.was_read.push_back(mark);
        self.open = None;
        self.queue_up(later).await;
        if self.queue.is_empty() {
            self.open_next().await?;
            return Ok(ReadOutcome::Restarted);
        }
        self.open_next_of_queue()
    }

    /// Queues the remainder of the file that was read up to `mark`, and the files after it. Returns whether there is a
    /// remainder.
    async fn queue_rotated(&mut self, mark: &Mark) -> io::Result<bool> {
        let found = self.unread_after(mark).await?;
        let has_rest = found.first().is_some_and(|first| first.offset > 0);
        self.queue_up(found).await;
        Ok(has_rest)
    }

    async fn unread_after(&self, mark: &Mark) -> io::Result<Vec<Rotated>> {
        let (log, mark) = (self.real.clone(), mark.clone());
        let was_read: Vec<Mark> = self.was_read.iter().cloned().collect();
        let found = tokio::task::spawn_blocking(move || rotated::after(&log, &mark, &was_read)).await;
        found.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    async fn queue_up(&mut self, found: Vec<Rotated>) {
        for rotated in found {
            let is_room = self.queue.len() < MAX_ROTATED;
            match Open::at(&rotated.path, rotated.offset).await {
                Ok(open) if is_room => self.queue.push_back(open),
                _ => self.lost += 1,
            }
        }
        let known = self.was_read.len();
        self.was_read.drain(..known.saturating_sub(MAX_ROTATED));
    }
}

impl Open {
    async fn at(path: &Path, offset: u64) -> io::Result<Self> {
        let mut open = Self::from(File::open(path).await?).await?;
        open.begins_as_before().await?;
        open.follower.seek(SeekFrom::Start(offset)).await?;
        (open.offset, open.is_rest) = (offset, offset > 0);
        Ok(open)
    }

    /// An open file at its start.
    async fn from(mut follower: File) -> io::Result<Self> {
        follower.seek(SeekFrom::Start(0)).await?;
        let metadata = follower.metadata().await?;
        Ok(Self {
            follower,
            identity: identity(&metadata),
            offset: 0,
            head: Vec::new(),
            len: metadata.len(),
            modified: metadata.modified()?,
            is_rest: false,
            since: Instant::now(),
            is_confirmed: false,
        })
    }

    async fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let count = (&mut self.follower).take(CHUNK_BYTES as u64).read_to_end(buffer).await?;
        self.offset += count as u64;
        if count == CHUNK_BYTES {
            // There is more to read; updates the length meanwhile.
            self.len = self.follower.metadata().await?.len();
        }
        Ok(count)
    }

    /// Whether the file still has the same first bytes. Keeps the offset.
    async fn begins_as_before(&mut self) -> io::Result<bool> {
        let mut head = Vec::new();
        self.follower.seek(SeekFrom::Start(0)).await?;
        (&mut self.follower).take(HEAD_BYTES).read_to_end(&mut head).await?;
        self.follower.seek(SeekFrom::Start(self.offset)).await?;
        let is_same = head.starts_with(&self.head);
        if is_same {
            self.head = head;
        }
        Ok(is_same)
    }

    /// Continues at `mark`, if the file has the same first bytes and is long enough.
    async fn goes_on(&mut self, mark: &Mark) -> io::Result<bool> {
        let goes_on =
            self.head.starts_with(&mark.head) && self.follower.metadata().await?.len() >= mark.offset;
        if goes_on {
            self.follower.seek(SeekFrom::Start(mark.offset)).await?;
            self.offset = mark.offset;
        }
        Ok(goes_on)
    }

    async fn mark(&self) -> Mark {
        let modified = self.follower.metadata().await.and_then(|metadata| metadata.modified());
        Mark {
            identity: self.identity,
            offset: self.offset,
            head: self.head.clone(),
            modified: modified.unwrap_or(SystemTime::UNIX_EPOCH),
        }
    }
}

#[cfg(test)]
#[path = "follower_tests.rs"]
mod tests;
