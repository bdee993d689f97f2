//! The log source: follows log files of Dynamo's processes, and reads pipes. Only lines that may matter to intake are
//! delivered.

mod follower;
#[cfg(feature = "kubernetes")]
mod pods;
mod rotated;
mod watch;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use radixscope_dynamo::log_line::may_matter;
use radixscope_intake::{MAX_LOG_LINE_BYTES, Payload};
use radixscope_model::number_format::count;
use radixscope_model::record::{LinkState, MissedCause, Topic};

use crate::config::LogFile;
use crate::hub::{HubEnded, SourceHandle};
use crate::shutdown::{Shutdown, over};
use crate::source::SourceStatus;
use crate::source::lines::Lines;
use crate::source::link::{FileStatus, REPORT_EVERY, unreadable};
use crate::time::now;
use follower::{CHUNK_BYTES, Follower, ReadOutcome};
use watch::Watch;

#[cfg(feature = "kubernetes")]
pub use pods::PodLogs;

/// Poll interval of a file.
const POLL_EVERY: Duration = Duration::from_millis(200);
/// Retry interval if a file cannot be read.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// A log to read.
pub struct LogSource {
    log: LogFile,
    name: String,
}

impl LogSource {
    /// A source as the command line describes it.
    pub fn new(log: LogFile) -> Self {
        let name = format!("log/{}", log.name);
        Self { log, name }
    }

    /// Its name as a source.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads until the log or the process ends.
    pub async fn run(self, to: SourceHandle, shutdown: Shutdown) {
        let mut end = shutdown;
        let log = Log::new(&self.name, self.log.name.as_str().into(), &to);
        tokio::select! {
            () = over(&mut end) => {}
            // The hub ends only with the process.
            _ = read(&self.log.path, log) => {}
        }
    }
}

async fn read(path: &Option<PathBuf>, mut log: Log<'_>) -> Result<(), HubEnded> {
    let Some(path) = path else {
        return pipe(tokio::io::stdin(), "standard input", &mut log).await;
    };
    let shown = path.display().to_string();
    log.status.say(LinkState::Connecting, format!("Opening {shown}.")).await?;
    loop {
        follow(path, &shown, POLL_EVERY, &mut log).await?;
        match tokio::fs::File::open(path).await {
            Ok(opened) => return pipe(opened, &shown, &mut log).await,
            Err(error) => {
                log.fails(&shown, &error).await?;
                tokio::time::sleep(RETRY_EVERY).await;
            }
        }
    }
}

/// Reads a pipe to its end, with back-pressure from the hub.
async fn pipe(mut from: impl AsyncRead + Unpin, shown: &str, log: &mut Log<'_>) -> Result<(), HubEnded> {
    let mut buffer = vec![0; CHUNK_BYTES];
    log.is_current(shown).await?;
    let why = loop {
        match tokio::time::timeout(REPORT_EVERY, from.read(&mut buffer)).await {
            Err(_) => log.is_current(shown).await?,
            Ok(Ok(0)) => break String::new(),
            Ok(Ok(count)) => {
                log.handle(&buffer[..count]).await?;
                log.is_current(shown).await?;
            }
            Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(Err(error)) => break format!(" ({error})"),
        }
    };
    log.cut().await?;
    log.status.say(LinkState::Ended, format!("End of {shown}{why}: {}.", log.counts())).await
}

/// Follows a file. Returns if the path is not a regular file.
async fn follow(path: &Path, shown: &str, poll_every: Duration, log: &mut Log<'_>) -> Result<(), HubEnded> {
    let watch = Watch::new().inspect_err(|error| {
        tracing::warn!(log = shown, %error, "no notifications of changes; the log is looked at instead");
    });
    let (mut follower, mut buffer) = (Follower::new(path, watch.ok()), Vec::with_capacity(CHUNK_BYTES));
    loop {
        buffer.clear();
        match follower.poll(&mut buffer).await {
            Ok(ReadOutcome::More) => {
                log.is_catching_up(shown).await?;
                log.handle(&buffer).await?;
            }
            Ok(ReadOutcome::Restarted) => log.cut().await?,
            Ok(ReadOutcome::Lost(count)) => log.lost(count).await?,
            Ok(ReadOutcome::Nothing) => {
                log.is_current(shown).await?;
                follower.wait(poll_every).await;
            }
            Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(()),
            Err(error) => {
                log.fails(shown, &error).await?;
                follower.wait(RETRY_EVERY).await;
            }
        }
    }
}

/// A log that is being read.
struct Log<'t> {
    /// The source's name.
    source: &'t str,
    /// The log's name.
    name: Arc<str>,
    to: &'t SourceHandle,
    lines: Lines,
    /// Lines read.
    read: u64,
    /// Lines delivered because they may matter to intake.
    forwarded: u64,
    status: FileStatus<'t>,
}

impl<'t> Log<'t> {
    fn new(source: &'t str, name: Arc<str>, to: &'t SourceHandle) -> Self {
        let (lines, status) = (Lines::new(MAX_LOG_LINE_BYTES), FileStatus::new(source, to));
        Self { source, name, to, lines, read: 0, forwarded: 0, status }
    }

    /// Splits bytes into lines and delivers those that may matter.
    async fn handle(&mut self, bytes: &[u8]) -> Result<(), HubEnded> {
        self.lines.push(bytes);
        let mut lines = std::mem::replace(&mut self.lines, Lines::new(MAX_LOG_LINE_BYTES));
        let mut delivered = Ok(());
        while let Some(line) = lines.next() {
            delivered = self.line(line).await;
            if delivered.is_err() {
                break;
            }
        }
        self.lines = lines;
        delivered
    }

    /// Delivers a line if it may matter.
    async fn line(&mut self, line: &[u8]) -> Result<(), HubEnded> {
        self.read += 1;
        if may_matter(line) {
            self.forwarded += 1;
            let (log, line) = (Arc::clone(&self.name), Bytes::copy_from_slice(line));
            self.to.deliver(now(), Payload::LogLine { log, line }).await?;
        }
        Ok(())
    }

    /// The next bytes do not continue the current line: delivers it without its line feed.
    async fn cut(&mut self) -> Result<(), HubEnded> {
        match self.lines.end() {
            Some(line) => self.line(&line).await,
            None => Ok(()),
        }
    }

    fn counts(&self) -> String {
        let lines = if self.read == 1 { "line" } else { "lines" };
        format!("{} {lines} read, {} of them about routing", count(self.read), count(self.forwarded))
    }

    async fn is_catching_up(&mut self, shown: &str) -> Result<(), HubEnded> {
        if self.status.state().is_some_and(|state| state != LinkState::Live) {
            self.status.say(LinkState::CatchingUp, format!("Reading existing lines of {shown}.")).await?;
        }
        Ok(())
    }

    /// Everything was read. Reported again with new counts, at most every [`REPORT_EVERY`].
    async fn is_current(&mut self, shown: &str) -> Result<(), HubEnded> {
        if self.status.is_current() {
            return Ok(());
        }
        self.status.say(LinkState::Live, format!("Following {shown}: {}.", self.counts())).await
    }

    /// Files, or remainders of files, were removed before they were read.
    async fn lost(&mut self, count: u64) -> Result<(), HubEnded> {
        tracing::warn!(log = self.source, count, "rotated log files were removed before they were read");
        self.to.missed(Topic::Log, MissedCause::LogRotated, count).await
    }

    /// Reports why the log cannot be read.
    async fn fails(&mut self, shown: &str, error: &io::Error) -> Result<(), HubEnded> {
        let SourceStatus { state, detail } = match error.kind() {
            io::ErrorKind::NotFound => SourceStatus::connecting(format!("{shown} does not exist yet.")),
            io::ErrorKind::IsADirectory => {
                SourceStatus::refused(format!("{shown} is a directory; give --logs a file in it."))
            }
            _ => unreadable(shown, error),
        };
        let wait_s = RETRY_EVERY.as_secs();
        self.status.say(state, format!("{detail} Retrying every {wait_s} s.")).await
    }
}
