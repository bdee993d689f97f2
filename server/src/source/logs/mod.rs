//! Logs of Dynamo's frontends: files that are followed, and pipes. Lines that say nothing about routing stay here.

mod file;
mod lines;
mod rotated;
mod watch;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::Instant;

use radixscope_dynamo::log_line::may_matter;
use radixscope_intake::Payload;
use radixscope_model::number_format::count;
use radixscope_model::record::{LinkState, MissedCause, Topic};

use crate::config::LogFile;
use crate::hub::{HubEnded, SourceHandle};
use crate::shutdown::{Shutdown, over};
use crate::source::link::LastState;
use crate::time::now;
use file::{CHUNK_BYTES, Follower, News};
use lines::Lines;
use watch::Watch;

/// How often a file is looked at without a notification.
const ASK_EVERY: Duration = Duration::from_millis(200);
/// How often one that cannot be read is tried again.
const TRY_EVERY: Duration = Duration::from_secs(1);
/// How often the state says anew how much was read.
const SAY_EVERY: Duration = Duration::from_secs(10);

/// A log to read.
pub struct Source {
    log: LogFile,
    name: String,
}

impl Source {
    /// A source as the command line describes it.
    pub fn new(log: LogFile) -> Self {
        let name = format!("log/{}", log.name);
        Self { log, name }
    }

    /// Its name as a source: that of the log, and that it is one.
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
    log.say(LinkState::Connecting, format!("Opening {shown}.")).await?;
    loop {
        follow(path, &shown, ASK_EVERY, &mut log).await?;
        match tokio::fs::File::open(path).await {
            Ok(opened) => return pipe(opened, &shown, &mut log).await,
            Err(error) => {
                log.fails(&shown, &error).await?;
                tokio::time::sleep(TRY_EVERY).await;
            }
        }
    }
}

/// Reads a pipe to its end: at the speed at which it comes, or at the hub's.
async fn pipe(mut from: impl AsyncRead + Unpin, shown: &str, log: &mut Log<'_>) -> Result<(), HubEnded> {
    let mut buffer = vec![0; CHUNK_BYTES];
    log.is_current(shown).await?;
    let why = loop {
        match tokio::time::timeout(SAY_EVERY, from.read(&mut buffer)).await {
            Err(_) => log.is_current(shown).await?,
            Ok(Ok(0)) => break String::new(),
            Ok(Ok(count)) => {
                log.take(&buffer[..count]).await?;
                log.is_current(shown).await?;
            }
            Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(Err(error)) => break format!(" ({error})"),
        }
    };
    log.cut().await?;
    log.say(LinkState::Ended, format!("The log from {shown} has ended{why}: {}.", log.counts())).await
}

/// Follows a file as long as the path leads to one; ends when a pipe takes its place.
async fn follow(path: &Path, shown: &str, ask_every: Duration, log: &mut Log<'_>) -> Result<(), HubEnded> {
    let watch = Watch::new().inspect_err(|error| {
        tracing::warn!(log = shown, %error, "no notifications of changes; the log is looked at instead");
    });
    let (mut follower, mut buffer) = (Follower::new(path, watch.ok()), Vec::with_capacity(CHUNK_BYTES));
    loop {
        buffer.clear();
        match follower.ask(&mut buffer).await {
            Ok(News::More) => {
                log.is_catching_up(shown).await?;
                log.take(&buffer).await?;
            }
            Ok(News::Anew) => log.cut().await?,
            Ok(News::Lost(count)) => log.lost(count).await?,
            Ok(News::Nothing) => {
                log.is_current(shown).await?;
                follower.wait(ask_every).await;
            }
            Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(()),
            Err(error) => {
                log.fails(shown, &error).await?;
                follower.wait(TRY_EVERY).await;
            }
        }
    }
}

/// What is read of a log, and what the hub was told of it.
struct Log<'t> {
    /// The source's name.
    source: &'t str,
    /// The log's.
    name: Arc<str>,
    to: &'t SourceHandle,
    lines: Lines,
    /// Lines read.
    read: u64,
    /// Lines handed over, because they can say something about routing.
    passed: u64,
    last: LastState,
    said_at: Instant,
}

impl<'t> Log<'t> {
    fn new(source: &'t str, name: Arc<str>, to: &'t SourceHandle) -> Self {
        let (lines, last, said_at) = (Lines::default(), LastState::default(), Instant::now());
        Self { source, name, to, lines, read: 0, passed: 0, last, said_at }
    }

    /// Takes bytes and hands over those of their lines that can say something.
    async fn take(&mut self, bytes: &[u8]) -> Result<(), HubEnded> {
        self.lines.push(bytes);
        while let Some(line) = self.lines.next() {
            self.read += 1;
            if may_matter(line) {
                self.passed += 1;
                let (log, line) = (Arc::clone(&self.name), Bytes::copy_from_slice(line));
                self.to.deliver(now(), Payload::LogLine { log, line }).await?;
            }
        }
        Ok(())
    }

    /// What comes next continues nothing: a line without a line feed is whole.
    async fn cut(&mut self) -> Result<(), HubEnded> {
        let Some(line) = self.lines.end() else { return Ok(()) };
        self.read += 1;
        if may_matter(&line) {
            self.passed += 1;
            let (log, line) = (Arc::clone(&self.name), line.into());
            self.to.deliver(now(), Payload::LogLine { log, line }).await?;
        }
        Ok(())
    }

    fn counts(&self) -> String {
        let lines = if self.read == 1 { "line" } else { "lines" };
        format!("{} {lines} read, {} of them about routing", count(self.read), count(self.passed))
    }

    async fn is_catching_up(&mut self, shown: &str) -> Result<(), HubEnded> {
        if self.last.state().is_some_and(|state| state != LinkState::Live) {
            self.say(LinkState::CatchingUp, format!("Reading what {shown} holds already.")).await?;
        }
        Ok(())
    }

    /// Everything there is was read. Said again when the counts have changed, but not all the time.
    async fn is_current(&mut self, shown: &str) -> Result<(), HubEnded> {
        if self.last.state() == Some(LinkState::Live) && self.said_at.elapsed() < SAY_EVERY {
            return Ok(());
        }
        self.say(LinkState::Live, format!("Following {shown}: {}.", self.counts())).await
    }

    /// Files, or rests of files, went before they were read.
    async fn lost(&mut self, count: u64) -> Result<(), HubEnded> {
        tracing::warn!(log = self.source, count, "the log was rotated faster than it is read");
        self.to.missed(Topic::Log, MissedCause::LogRotated, count).await
    }

    /// Says why nothing can be read.
    async fn fails(&mut self, shown: &str, error: &io::Error) -> Result<(), HubEnded> {
        let (state, words) = match error.kind() {
            io::ErrorKind::NotFound => (LinkState::Connecting, format!("{shown} does not exist yet.")),
            io::ErrorKind::PermissionDenied => {
                (LinkState::Refused, format!("{shown} must not be read by us; give us the right to."))
            }
            io::ErrorKind::IsADirectory => {
                (LinkState::Refused, format!("{shown} is a directory; --logs takes a file in it."))
            }
            _ => (LinkState::Connecting, format!("{shown} cannot be read: {error}.")),
        };
        let wait_s = TRY_EVERY.as_secs();
        self.say(state, format!("{words} Trying again every {wait_s} s.")).await
    }

    /// Says where the log stands, unless that was said last.
    async fn say(&mut self, state: LinkState, detail: String) -> Result<(), HubEnded> {
        self.said_at = Instant::now();
        self.last.say(self.to, self.source, state, detail).await
    }
}
