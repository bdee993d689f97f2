//! The source of request traces in files, as frontends write them by default: one file that grows, or segments, compressed or not; and
//! of what a load generator measured of each request, in the same kind of files. Of traces only
//! records of the ends of requests are delivered, and of those that were there at the start only the recent ones: what ran before
//! concerns no worker that is there now.

mod segment;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use radixscope_dynamo::subject::{self, Subject};
use radixscope_dynamo::trace::TraceKind;
use radixscope_dynamo::{DecodeError, Reason};
use radixscope_intake::Payload;
use radixscope_model::id::Millis;
use radixscope_model::number_format::{count, plural};
use radixscope_model::record::{LinkState, Topic};

use crate::hub::{HubEnded, SourceHandle};
use crate::shutdown::{Shutdown, over};
use crate::source::SourceStatus;
use crate::source::link::{FileStatus, unreadable};
use crate::time::now;
use segment::{Segment, SegmentRead};

/// Poll interval. A frontend writes once a second.
const POLL_EVERY: Duration = Duration::from_millis(500);
/// Requests that ended longer before the start are not delivered.
const RECENT_MS: u64 = 10 * 60_000;
/// Maximum segments that are followed, the latest by name.
const MAX_SEGMENTS: usize = 256;
/// Maximum entries of a folder that are looked at.
const MAX_ENTRIES: usize = 16_384;

/// What the lines of files are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceFiles {
    /// Request traces of a frontend.
    RequestTraces,
    /// What a load generator measured of each request.
    ClientResults,
}

impl TraceFiles {
    /// Its option, which its sources are named by.
    const fn option(self) -> &'static str {
        match self {
            Self::RequestTraces => "request-trace",
            Self::ClientResults => "client-results",
        }
    }

    /// What there is none of yet.
    const fn contents(self) -> &'static str {
        match self {
            Self::RequestTraces => "request traces",
            Self::ClientResults => "results of clients",
        }
    }

    const fn topic(self) -> Topic {
        match self {
            Self::RequestTraces => Topic::RequestTrace,
            Self::ClientResults => Topic::ClientResult,
        }
    }

    /// Whether a file of a folder is one of them: beside aiperf's results lie its inputs and others.
    fn is_named(self, name: &str) -> bool {
        let is_lines = name.ends_with(".jsonl") || name.ends_with(".jsonl.gz");
        is_lines
            && (self == Self::RequestTraces || (name.contains("profile_export") && !name.contains("_raw")))
    }
}

/// Files of one frontend, or of one load generator, to follow.
pub struct TraceSource {
    files: TraceFiles,
    path: PathBuf,
    name: String,
}

impl TraceSource {
    /// A source for each path of the command line.
    ///
    /// # Errors
    /// A path that is given twice.
    pub fn all(files: TraceFiles, paths: Vec<PathBuf>) -> Result<Vec<Self>, String> {
        for (at, path) in paths.iter().enumerate() {
            if paths[..at].contains(path) {
                return Err(format!("--{}: {} is given twice", files.option(), path.display()));
            }
        }
        Ok(paths
            .into_iter()
            .map(|path| Self { files, name: format!("{}/{}", files.option(), path.display()), path })
            .collect())
    }

    /// Its name as a source.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads until the process ends.
    pub async fn run(self, to: SourceHandle, shutdown: Shutdown) {
        let mut end = shutdown;
        let Some(subject) = subject::parse(subject::REQUEST_TRACE) else { return };
        let since = Millis(now().0.saturating_sub(RECENT_MS));
        let mut traces = Traces::new(&self, subject, since, &to);
        tokio::select! {
            () = over(&mut end) => {}
            // The hub ends only with the process.
            _ = traces.follow() => {}
        }
    }
}

/// What is read of one path.
struct Traces<'t> {
    files: TraceFiles,
    path: &'t Path,
    source: &'t str,
    subject: Arc<Subject>,
    since: Millis,
    to: &'t SourceHandle,
    /// By name, which is the order in which they were begun.
    segments: BTreeMap<OsString, Segment>,
    delivered: u64,
    /// Requests that ended before `since`.
    older: u64,
    status: FileStatus<'t>,
}

impl<'t> Traces<'t> {
    fn new(source: &'t TraceSource, subject: Subject, since: Millis, to: &'t SourceHandle) -> Self {
        Self {
            files: source.files,
            path: &source.path,
            source: &source.name,
            subject: Arc::new(subject),
            since,
            to,
            segments: BTreeMap::new(),
            delivered: 0,
            older: 0,
            status: FileStatus::new(&source.name, to),
        }
    }

    async fn follow(&mut self) -> Result<(), HubEnded> {
        loop {
            match self.find().await {
                Ok(()) if self.segments.is_empty() => {
                    let shown = self.path.display();
                    let detail = format!(
                        "No {} at {shown} yet: no such file, no file in it and none that begins with its name ends in \
                         .jsonl or .jsonl.gz.",
                        self.files.contents()
                    );
                    self.status.say(LinkState::Connecting, detail).await?;
                }
                Ok(()) => self.read_all().await?,
                Err(error) => self.fails(&error).await?,
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    /// Finds the segments that are there.
    async fn find(&mut self) -> io::Result<()> {
        let (path, files) = (self.path.to_owned(), self.files);
        let found = tokio::task::spawn_blocking(move || segments_of(&path, files)).await;
        let found = found.unwrap_or_else(|error| Err(io::Error::other(error)))?;
        self.segments.retain(|name, _| found.contains_key(name));
        for (name, path) in found {
            self.segments.entry(name).or_insert_with(|| Segment::new(path));
        }
        Ok(())
    }

    /// Reads what is new, the oldest segment first.
    async fn read_all(&mut self) -> Result<(), HubEnded> {
        let names: Vec<OsString> = self.segments.keys().cloned().collect();
        for name in names {
            while let Some(segment) = self.segments.get_mut(&name) {
                let (lines, broken) = match segment.read().await {
                    Ok(SegmentRead::More(lines)) => (lines, None),
                    Ok(SegmentRead::Broken(lines, why)) => (lines, Some(why)),
                    Ok(SegmentRead::Nothing) => break,
                    Err(error) => return self.fails(&error).await,
                };
                for line in lines {
                    self.deliver(line).await?;
                }
                if let Some(why) = broken {
                    self.reject(&name, why).await?;
                }
            }
        }
        self.is_current().await
    }

    async fn deliver(&mut self, line: Bytes) -> Result<(), HubEnded> {
        if self.files == TraceFiles::ClientResults {
            // Also those of a run that is over: logs are read from their beginning too.
            self.delivered += 1;
            return self.to.deliver(now(), Payload::ClientResult { line }).await;
        }
        // Other records than ends of requests and choices concern no router. What cannot be read is rejected where it is decoded.
        match TraceKind::of(&line) {
            TraceKind::At(at) if at < self.since.0 => {
                self.older += 1;
                return Ok(());
            }
            TraceKind::Other => return Ok(()),
            TraceKind::At(_) | TraceKind::Unknown => {}
        }
        self.delivered += 1;
        let payload = Payload::Nats { subject: Arc::clone(&self.subject), message: line };
        self.to.deliver(now(), payload).await
    }

    /// A part of a segment cannot be read.
    async fn reject(&mut self, name: &OsString, why: String) -> Result<(), HubEnded> {
        let problem = format!("{}: {why}", name.to_string_lossy());
        tracing::warn!(source = self.source, "{problem}");
        let error = Box::new(DecodeError::new(Reason::Malformed, problem));
        let payload = Payload::Unreadable { topic: self.files.topic(), error, size_bytes: 0 };
        self.to.deliver(now(), payload).await
    }

    /// Everything was read. Reported again with new counts now and then.
    async fn is_current(&mut self) -> Result<(), HubEnded> {
        if self.status.is_current() {
            return Ok(());
        }
        let files = plural(self.segments.len() as u64, "file", "files");
        let older = match self.older {
            0 => String::new(),
            older => format!("; {} that ended more than 10 min before the start left out", count(older)),
        };
        let detail = format!(
            "Following {files} at {}: {} requests{older}.",
            self.path.display(),
            count(self.delivered)
        );
        self.status.say(LinkState::Live, detail).await
    }

    /// Reports why the traces cannot be read.
    async fn fails(&mut self, error: &io::Error) -> Result<(), HubEnded> {
        let SourceStatus { state, detail } = unreadable(&self.path.display().to_string(), error);
        self.status.say(state, detail).await
    }
}

/// Files of a path, by name: those in a folder, a file of that name, and those that begin with it, `PATH.000000.jsonl.gz`. The latest
/// [`MAX_SEGMENTS`].
fn segments_of(path: &Path, files: TraceFiles) -> io::Result<BTreeMap<OsString, PathBuf>> {
    let mut found = BTreeMap::new();
    let (folder, prefix) = if path.is_dir() {
        (path, None)
    } else {
        let name = path.file_name().unwrap_or_default();
        if path.is_file() {
            found.insert(name.to_owned(), path.to_owned());
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        (folder, Some(format!("{}.", name.to_string_lossy())))
    };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(error),
    };
    for entry in entries.take(MAX_ENTRIES) {
        let entry = entry?;
        let name = entry.file_name();
        let text = name.to_string_lossy();
        if files.is_named(&text) && prefix.as_ref().is_none_or(|prefix| text.starts_with(prefix.as_str())) {
            let path = entry.path();
            found.insert(name, path);
        }
    }
    while found.len() > MAX_SEGMENTS {
        found.pop_first();
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
