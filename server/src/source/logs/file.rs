//! A file that grows, is moved away for a new one, or is emptied: followed by notifications, and by looking a few times a
//! second where none come, over NFS and on mounts of virtual machines.
//!
//! A file that was emptied is known by its length, and by how it begins if it has grown past its old length meanwhile.
//! Files that were rotated away unread are read first ([`super::rotated`]); what cannot be read any more is a loss.

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

/// Most bytes read at once.
pub(super) const CHUNK_BYTES: usize = 64 * 1024;

/// As much of a file's beginning as tells it from another: the first line bears a time in microseconds.
pub(super) const HEAD_BYTES: u64 = 64;

/// Notifications come later than this only from a system that is overloaded: what appeared until then is known.
const SETTLED: Duration = Duration::from_millis(50);

/// Shortest time from one look to the next, so that a busy log is read in pieces and not byte by byte.
const PAUSE: Duration = Duration::from_millis(2);

/// What a look led to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum News {
    /// More bytes, appended to the buffer.
    More,
    /// Nothing new for now.
    Nothing,
    /// The file begins anew, because another took its place or because it was emptied: what comes next continues nothing.
    Anew,
    /// So many files, or rests of files, went before they were read.
    Lost(u64),
}

/// Follows one file from its beginning.
pub(super) struct Follower {
    path: PathBuf,
    /// Where `path` led when it was opened last.
    real: PathBuf,
    open: Option<Open>,
    /// How far which file was read, for one that has to be opened again after a failure.
    read: Option<Mark>,
    /// Files to read before the one that `path` leads to, open lest they go.
    queue: VecDeque<Open>,
    /// Files that were read to their end, latest last.
    was_read: VecDeque<Mark>,
    lost: u64,
    /// Times that a file had taken the path when it last settled, and files found since then.
    appeared: Option<u64>,
    found: u64,
    watch: Option<Watch>,
    last_wait: Instant,
    is_overdue: bool,
}

struct Open {
    file: File,
    identity: Identity,
    offset: u64,
    /// How the file began when it was read.
    head: Vec<u8>,
    /// Length and time of the last change when it was looked at last.
    len: u64,
    modified: SystemTime,
    /// It goes on where the one before it ended.
    is_rest: bool,
    since: Instant,
    /// Whether it is known to be the last that appeared under the path.
    is_settled: bool,
}

/// How far which file was read.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) identity: Identity,
    pub(super) offset: u64,
    pub(super) head: Vec<u8>,
    pub(super) modified: SystemTime,
}

/// Which file it is, whatever it is called.
pub(super) type Identity = (u64, u64);

#[cfg(unix)]
pub(super) fn identity(metadata: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino())
}

/// Where files have no number only a shorter one is noticed.
#[cfg(not(unix))]
pub(super) fn identity(_: &Metadata) -> Identity {
    (0, 0)
}

impl Follower {
    /// Without `watch` the file is followed by looking alone.
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

    /// Waits until there may be something new: for a notification, at most for `most`.
    pub(super) async fn wait(&mut self, most: Duration) {
        let most =
            if self.open.as_ref().is_none_or(|open| open.is_settled) { most } else { most.min(SETTLED) };
        let Some(watch) = &mut self.watch else { return tokio::time::sleep(most).await };
        match watch.aim(&self.path, self.is_overdue).await {
            Ok(false) => {}
            // Whatever was not notified because nobody watched.
            Ok(true) => return self.is_overdue = false,
            Err(error) => {
                let log = self.path.display();
                tracing::warn!(%log, %error, "no notifications of changes; the log is looked at instead");
                self.watch = None;
                return;
            }
        }
        tokio::time::sleep_until(self.last_wait + PAUSE).await;
        self.is_overdue = tokio::time::timeout(most, watch.changed()).await.is_err();
        self.last_wait = Instant::now();
    }

    /// Looks once. After an error the next call opens the file again and goes on where it was.
    ///
    /// # Errors
    /// The file cannot be opened or read; [`io::ErrorKind::Unsupported`]: it is a pipe or the like.
    pub(super) async fn ask(&mut self, buffer: &mut Vec<u8>) -> io::Result<News> {
        let asked = self.look(buffer).await;
        if asked.is_err()
            && let Some(open) = self.open.take()
        {
            self.read = Some(open.mark().await);
            self.appeared = None;
        }
        match asked {
            Ok(News::Nothing) if self.lost > 0 => Ok(News::Lost(std::mem::take(&mut self.lost))),
            asked => asked,
        }
    }

    async fn look(&mut self, buffer: &mut Vec<u8>) -> io::Result<News> {
        let Some(open) = &mut self.open else { return self.open_next().await };
        if !open.begins_as_before().await? {
            return self.emptied().await;
        }
        if open.read(buffer).await? > 0 {
            self.settle_early().await;
            return Ok(News::More);
        }
        let now = match tokio::fs::metadata(&self.path).await {
            Ok(metadata) => metadata,
            // Moved away and nothing new there yet: who writes may still write to the old one.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(News::Nothing),
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
        self.settle();
        Ok(News::Nothing)
    }

    /// What appeared until now is known, even if it takes long to read the file to its end.
    async fn settle_early(&mut self) {
        let Some(open) = self.open.as_ref().filter(|open| !open.is_settled) else { return };
        if open.since.elapsed() >= SETTLED
            && let Ok(now) = tokio::fs::metadata(&self.path).await
            && identity(&now) == open.identity
        {
            self.settle();
        }
    }

    /// The path leads to the open file now. What appeared there before it and was not found is lost.
    fn settle(&mut self) {
        let (Some(open), Some(watch)) = (&mut self.open, &self.watch) else { return };
        if open.since.elapsed() < SETTLED {
            return;
        }
        open.is_settled = true;
        let appeared = watch.appeared();
        let (before, found) = (self.appeared.replace(appeared), std::mem::take(&mut self.found));
        // Found nothing: this very file may have gone and come back.
        if let Some(before) = before.filter(|_| found > 0) {
            self.lost += appeared.saturating_sub(before).saturating_sub(found);
        }
    }

    /// Opens what was rotated away unread, or else the file that the path leads to.
    async fn open_next(&mut self) -> io::Result<News> {
        if let Some(next) = self.queue.pop_front() {
            let news = if next.is_rest { News::More } else { News::Anew };
            self.open = Some(next);
            return Ok(news);
        }
        // Looked at before it is opened: a pipe opens only once something writes to it.
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
            return Ok(News::More);
        };
        if open.identity == mark.identity && open.goes_on(&mark).await? {
            self.open = Some(open);
            return Ok(News::More);
        }
        // Another one, after a time in which nothing could be read.
        self.take_up(&mark).await?;
        self.queue.push_back(open);
        self.open_next_of_queue()
    }

    fn open_next_of_queue(&mut self) -> io::Result<News> {
        self.open = self.queue.pop_front();
        Ok(if self.open.as_ref().is_some_and(|open| open.is_rest) { News::More } else { News::Anew })
    }

    /// The file was emptied in its place: what it held unread may be in a copy.
    async fn emptied(&mut self) -> io::Result<News> {
        let Some(open) = self.open.take() else { return Ok(News::Nothing) };
        let mark = Mark { modified: open.modified, ..open.mark().await };
        let is_read = open.len <= open.offset;
        if !self.take_up(&mark).await? && !is_read {
            self.lost += 1;
        }
        self.was_read.push_back(mark);
        self.queue.push_back(Open::from(open.file).await?);
        self.open_next_of_queue()
    }

    /// Another file has taken the place, or others one after the other.
    async fn replaced(&mut self, now: &Metadata, buffer: &mut Vec<u8>) -> io::Result<News> {
        let Some(open) = &mut self.open else { return Ok(News::Nothing) };
        let mark = open.mark().await;
        let mut later = if self.queue.is_empty() { self.unread_after(&mark).await? } else { Vec::new() };
        later.retain(|rotated| rotated.offset == 0);
        let is_written = now.len() > 0 || !self.queue.is_empty() || later.iter().any(|l| l.len > 0);
        // Who writes may write to the old one until there is something in a newer one; then once more, for what was
        // written meanwhile.
        let Some(open) = &mut self.open else { return Ok(News::Nothing) };
        if open.read(buffer).await? > 0 {
            return Ok(News::More);
        }
        if !is_written {
            return Ok(News::Nothing);
        }
        if self.queue.is_empty() {
            self.found += later.len() as u64 + 1;
        }
        self.was_read.push_back(mark);
        self.open = None;
        self.queue_up(later).await;
        if self.queue.is_empty() {
            self.open_next().await?;
            return Ok(News::Anew);
        }
        self.open_next_of_queue()
    }

    /// Queues what is left of the file that was read up to `mark`, and those that came after it. Gives whether there is
    /// such a rest.
    async fn take_up(&mut self, mark: &Mark) -> io::Result<bool> {
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
        open.file.seek(SeekFrom::Start(offset)).await?;
        (open.offset, open.is_rest) = (offset, offset > 0);
        Ok(open)
    }

    /// An open file, from its beginning.
    async fn from(mut file: File) -> io::Result<Self> {
        file.seek(SeekFrom::Start(0)).await?;
        let metadata = file.metadata().await?;
        Ok(Self {
            file,
            identity: identity(&metadata),
            offset: 0,
            head: Vec::new(),
            len: metadata.len(),
            modified: metadata.modified()?,
            is_rest: false,
            since: Instant::now(),
            is_settled: false,
        })
    }

    async fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let count = (&mut self.file).take(CHUNK_BYTES as u64).read_to_end(buffer).await?;
        self.offset += count as u64;
        if count == CHUNK_BYTES {
            // More to read: it takes a while, and how much there was is then known.
            self.len = self.file.metadata().await?.len();
        }
        Ok(count)
    }

    /// Whether the file still begins as it did; stays where it was.
    async fn begins_as_before(&mut self) -> io::Result<bool> {
        let mut head = Vec::new();
        self.file.seek(SeekFrom::Start(0)).await?;
        (&mut self.file).take(HEAD_BYTES).read_to_end(&mut head).await?;
        self.file.seek(SeekFrom::Start(self.offset)).await?;
        let is_same = head.starts_with(&self.head);
        if is_same {
            self.head = head;
        }
        Ok(is_same)
    }

    /// Goes on at `mark`, if the file begins as it did then and is as long.
    async fn goes_on(&mut self, mark: &Mark) -> io::Result<bool> {
        let goes_on = self.head.starts_with(&mark.head) && self.file.metadata().await?.len() >= mark.offset;
        if goes_on {
            self.file.seek(SeekFrom::Start(mark.offset)).await?;
            self.offset = mark.offset;
        }
        Ok(goes_on)
    }

    async fn mark(&self) -> Mark {
        let modified = self.file.metadata().await.and_then(|metadata| metadata.modified());
        Mark {
            identity: self.identity,
            offset: self.offset,
            head: self.head.clone(),
            modified: modified.unwrap_or(SystemTime::UNIX_EPOCH),
        }
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
