//! Reads one file: finds what it is, and hands its records with their times to the spool. Lines are decoded here for their times and
//! ids alone, by the decoders that read them again when they are handed to intake.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};

use radixscope_dynamo::client_result;
use radixscope_dynamo::log_line::{self, LogEvent, LogRecord};
use radixscope_dynamo::trace::{self, RequestTrace, TraceRecord};
use radixscope_intake::{MAX_LOG_LINE_BYTES, MAX_PAYLOAD_BYTES};
use radixscope_model::id::Millis;
use radixscope_model::number_format::count;

use super::bounds::{Budget, Counted, Guarded};
use super::clocks::Noted;
use super::find::Found;
use super::kind::{HEAD_BYTES, Kind, kind};
use super::runs::Stretches;
use super::snapshot_name;
use super::spool::Spool;
use super::tachometer;
use crate::source::gzip::{Unpacked, is_gzip};
use crate::source::lines::Lines;

/// No record is later, in Unix time: the year 2286. What says so has no time.
pub(super) const LATEST: Millis = Millis(10_000_000_000_000);
/// Longest summary of runs: aiperf's are some 100 kB.
const MAX_SUMMARY_BYTES: usize = 4 << 20;
/// Most bytes that are read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// What became of a file.
#[derive(Debug)]
pub(crate) struct FileReport {
    /// As it is shown.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Records that are read: requests, lines about routing, a snapshot of metrics.
    pub(crate) records: u64,
    /// Records about other things, which are passed over.
    pub(crate) passed_over: u64,
    /// Records that were not understood, or have no time.
    pub(crate) bad: u64,
    /// What is wrong with it, or to know of it, in words.
    pub(crate) notes: Vec<String>,
    /// Times of the first and the last record, by its own clock.
    pub(crate) range: Option<(Millis, Millis)>,
    /// Of metrics: the process.
    pub(super) process: String,
    pub(super) noted: Noted,
    pub(super) stretches: Stretches,
    /// A recording, from its beginning.
    pub(super) recording: Option<File>,
    /// A summary of runs, as it is.
    pub(super) summary: Option<String>,
}

impl FileReport {
    fn new(name: String) -> Self {
        Self {
            name,
            kind: Kind::Other,
            records: 0,
            passed_over: 0,
            bad: 0,
            notes: Vec::new(),
            range: None,
            process: String::new(),
            noted: Noted::default(),
            stretches: Stretches::default(),
            recording: None,
            summary: None,
        }
    }
}

/// What is shared by all files while they are read.
pub(super) struct Reading<'r> {
    pub(super) spool: &'r mut Spool,
    pub(super) budget: &'r mut Budget,
    /// Whether the times of requests are noted, to compare clocks.
    pub(super) notes_requests: bool,
    /// Whether somebody wants the end of it.
    pub(super) is_stopped: &'r dyn Fn() -> bool,
}

/// The bytes of a file, the first of which were looked at.
type Whole<'f> = io::Chain<io::Cursor<Vec<u8>>, &'f mut dyn Read>;

/// The text of a file, unpacked.
enum Text<'f> {
    Plain(Whole<'f>),
    Gzip(Guarded<Unpacked<Counted<Whole<'f>>>>),
}

impl<'f> Text<'f> {
    fn of(from: &'f mut dyn Read) -> io::Result<Self> {
        let mut head = Vec::new();
        (&mut *from).take(3).read_to_end(&mut head)?;
        let is_gzip = is_gzip(&head);
        let whole = io::Cursor::new(head).chain(from);
        Ok(match is_gzip {
            true => {
                let counted = Counted::new(whole);
                let bytes = counted.counter();
                Self::Gzip(Guarded::new(Unpacked::new(counted), bytes))
            }
            false => Self::Plain(whole),
        })
    }

    fn problem(&self) -> Option<String> {
        match self {
            Self::Plain(_) => None,
            Self::Gzip(unpacked) => unpacked.inner().problem(),
        }
    }
}

impl Read for Text<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(from) => from.read(to),
            Self::Gzip(from) => from.read(to),
        }
    }
}

/// Reads a file. What is wrong with it stands in its report.
///
/// # Errors
/// The spool cannot be written, or it was stopped.
pub(super) fn read(ix: usize, found: Found<'_>, with: &mut Reading<'_>) -> io::Result<FileReport> {
    let Found { name, path, modified, content } = found;
    let mut report = FileReport::new(name);
    let content = match content {
        Ok(content) => content,
        Err(why) => {
            report.notes.push(why);
            return Ok(report);
        }
    };
    let begun = Text::of(content).and_then(|mut text| {
        let mut head = Vec::new();
        (&mut text).take(HEAD_BYTES as u64).read_to_end(&mut head)?;
        Ok((text, head))
    });
    let (mut text, head) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            report.notes.push(error.to_string());
            return Ok(report);
        }
    };
    let (kind, why) = kind(&head);
    report.kind = kind;
    report.notes.extend(why.map(str::to_owned));
    match kind {
        Kind::Other => {}
        Kind::Recording => match path.filter(|_| matches!(text, Text::Plain(_))) {
            Some(path) => report.recording = Some(File::open(path)?),
            None => report.recording = copy(&head, &mut text, with, &mut report.notes)?,
        },
        Kind::Tachometer => {
            let file = match path.filter(|_| matches!(text, Text::Plain(_))) {
                Some(path) => Some(File::open(path)?),
                None => copy(&head, &mut text, with, &mut report.notes)?,
            };
            if let Some(file) = file {
                tachometer::read(ix, file, modified, with, &mut report)?;
            }
        }
        Kind::Summary => report.summary = summary(head, &mut text, with, &mut report.notes),
        Kind::Metrics => metrics(ix, &head, &mut text, modified, with, &mut report)?,
        Kind::RequestTraces | Kind::Log | Kind::ClientResults => {
            let max_bytes = if kind == Kind::Log { MAX_LOG_LINE_BYTES } else { MAX_PAYLOAD_BYTES };
            let mut records =
                Records { ix, last: None, waiting: Vec::new(), first_bad: None, report: &mut report, with };
            records.read(&head, &mut text, Lines::new(max_bytes))?;
        }
    }
    report.notes.extend(text.problem());
    with.spool.end_file(ix)?;
    Ok(report)
}

/// The text of a summary of runs.
fn summary(
    head: Vec<u8>,
    text: &mut Text<'_>,
    with: &mut Reading<'_>,
    notes: &mut Vec<String>,
) -> Option<String> {
    let mut whole = head;
    let rest = (MAX_SUMMARY_BYTES - whole.len().min(MAX_SUMMARY_BYTES) + 1) as u64;
    let read = text.take(rest).read_to_end(&mut whole).and_then(|_| with.budget.take(whole.len()));
    if let Err(error) = read {
        notes.push(error.to_string());
        return None;
    }
    if whole.len() > MAX_SUMMARY_BYTES {
        notes.push(format!("more than {} bytes: not read", count(MAX_SUMMARY_BYTES as u64)));
        return None;
    }
    String::from_utf8(whole).map_err(|_| notes.push("not text".to_owned())).ok()
}

/// What can only be read from a file of its own, from an archive: in a file without a name.
fn copy(
    head: &[u8],
    text: &mut Text<'_>,
    with: &mut Reading<'_>,
    notes: &mut Vec<String>,
) -> io::Result<Option<File>> {
    let mut to = tempfile::tempfile()?;
    let mut chunk = head.to_vec();
    while !chunk.is_empty() {
        if let Err(error) = with.budget.take(chunk.len()) {
            notes.push(error.to_string());
            return Ok(None);
        }
        to.write_all(&chunk)?;
        chunk.resize(CHUNK_BYTES, 0);
        let count = match text.read(&mut chunk) {
            Ok(count) => count,
            Err(error) => {
                notes.push(error.to_string());
                0
            }
        };
        chunk.truncate(count);
    }
    to.seek(SeekFrom::Start(0))?;
    Ok(Some(to))
}

/// One response of a process's `/metrics`.
fn metrics(
    ix: usize,
    head: &[u8],
    text: &mut Text<'_>,
    modified: Option<Millis>,
    with: &mut Reading<'_>,
    report: &mut FileReport,
) -> io::Result<()> {
    let mut whole = head.to_vec();
    let rest = (MAX_PAYLOAD_BYTES - head.len().min(MAX_PAYLOAD_BYTES) + 1) as u64;
    let read = text.take(rest).read_to_end(&mut whole).and_then(|_| with.budget.take(whole.len()));
    if let Err(error) = read {
        report.notes.push(error.to_string());
        return Ok(());
    }
    if whole.len() > MAX_PAYLOAD_BYTES {
        report.notes.push(format!(
            "more than {} bytes of metrics in one file: not read",
            count(MAX_PAYLOAD_BYTES as u64)
        ));
        return Ok(());
    }
    let (process, named) = snapshot_name::read(&report.name);
    report.process = process;
    let (at, note) = match (named, modified.filter(|at| *at < LATEST)) {
        (Some(at), _) => (at, "time by its name"),
        (None, Some(at)) => (at, "time by when the file was changed"),
        (None, None) => {
            report.notes.push("no time in its name, and none at which it was changed: not read".to_owned());
            return Ok(());
        }
    };
    report.notes.push(format!("{note}, process {}", report.process));
    report.range = Some((at, at));
    report.records = 1;
    with.spool.push(ix, at, &whole)
}

/// What a line is, as far as it has to be known before it is handed to intake.
enum Line<'l> {
    /// At a time, or at that of the line before.
    Record(Option<Millis>, Request<'l>),
    /// Of no interest.
    Other,
    /// Why it was not understood.
    Bad(String),
}

/// What a line says of a request.
#[derive(Default)]
struct Request<'l> {
    ids: [Option<std::borrow::Cow<'l, str>>; 3],
    begin: Option<Millis>,
    end: Option<Millis>,
    /// Whether it is about a request at all.
    is_some: bool,
}

/// The lines of a file.
struct Records<'r, 'w> {
    ix: usize,
    /// The time of the last record that has one.
    last: Option<Millis>,
    /// Records before the first one with a time. Few: beyond, they count as bad.
    waiting: Vec<Vec<u8>>,
    first_bad: Option<String>,
    report: &'r mut FileReport,
    with: &'r mut Reading<'w>,
}

/// Most records that wait for the first time in their file.
const MAX_WAITING: usize = 100;

impl Records<'_, '_> {
    fn read(&mut self, head: &[u8], text: &mut Text<'_>, mut lines: Lines) -> io::Result<()> {
        let mut chunk = head.to_vec();
        while !chunk.is_empty() {
            if (self.with.is_stopped)() {
                return Err(io::Error::from(io::ErrorKind::Interrupted));
            }
            if let Err(error) = self.with.budget.take(chunk.len()) {
                self.report.notes.push(format!("{error}; the rest is not read"));
                break;
            }
            lines.push(&chunk);
            while let Some(line) = lines.next() {
                self.line(line)?;
            }
            chunk.resize(CHUNK_BYTES, 0);
            let count = match text.read(&mut chunk) {
                Ok(count) => count,
                Err(error) => {
                    self.report.notes.push(error.to_string());
                    0
                }
            };
            chunk.truncate(count);
        }
        let rest = lines.end();
        match (rest, text.problem()) {
            (Some(rest), None) => self.line(&rest)?,
            // Half of a line.
            (Some(_), Some(_)) => self.report.bad += 1,
            (None, _) => {}
        }
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        if self.last.is_none() && !self.waiting.is_empty() {
            self.report.bad += self.waiting.len() as u64;
            self.report.records -= self.waiting.len() as u64;
            self.first_bad.get_or_insert_with(|| "no line has a time".to_owned());
            self.waiting.clear();
        }
        if let Some(why) = &self.first_bad {
            self.report.notes.push(format!("the first that was not understood: {why}"));
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let (at, request) = match self.look(line) {
            Line::Other => {
                self.report.passed_over += 1;
                return Ok(());
            }
            Line::Bad(why) => {
                self.report.bad += 1;
                self.first_bad.get_or_insert(why);
                // Handed over all the same: what was not understood is counted there too.
                return match self.last {
                    Some(last) => self.with.spool.push(self.ix, last, line),
                    None => Ok(()),
                };
            }
            Line::Record(at, request) => (at, request),
        };
        self.report.records += 1;
        let Some(at) = at.filter(|at| *at < LATEST).or(self.last) else {
            if self.waiting.len() < MAX_WAITING {
                self.waiting.push(line.to_vec());
            } else {
                self.report.bad += 1;
                self.report.records -= 1;
            }
            return Ok(());
        };
        self.last = Some(at);
        for earlier in std::mem::take(&mut self.waiting) {
            self.with.spool.push(self.ix, at, &earlier)?;
        }
        let range = self.report.range.get_or_insert((at, at));
        *range = (range.0.min(at), range.1.max(at));
        if request.is_some {
            self.report.stretches.note(at);
        }
        if self.with.notes_requests && (request.begin.is_some() || request.end.is_some()) {
            for id in request.ids.iter().flatten() {
                self.report.noted.note(id, request.begin, request.end);
            }
        }
        self.with.spool.push(self.ix, at, line)
    }

    fn look<'l>(&self, line: &'l [u8]) -> Line<'l> {
        match self.report.kind {
            Kind::RequestTraces => match trace::decode(line) {
                Ok(None) => Line::Other,
                Ok(Some(TraceRecord::Ended(ended))) => {
                    let at = ended.event_time_ms.map(Millis);
                    Line::Record(at, of_trace(*ended))
                }
                Ok(Some(TraceRecord::Selected(selection))) => Line::Record(
                    selection.event_time_ms.map(Millis),
                    Request { is_some: true, ..Request::default() },
                ),
                Err(error) => Line::Bad(error.detail),
            },
            Kind::ClientResults => match client_result::decode(line) {
                Ok(result) => {
                    let (begin, end) = (Some(result.measured.sent_ms), Some(result.measured.ended_ms));
                    let ids = [result.x_request_id, None, None];
                    Line::Record(end, Request { ids, begin, end, is_some: true })
                }
                Err(error) => Line::Bad(error.detail),
            },
            _ => match log_line::decode(line) {
                Ok(None) => Line::Other,
                Ok(Some(record)) => Line::Record(record.at_ms(), of_log(record)),
                Err(error) => Line::Bad(error.detail),
            },
        }
    }
}

fn of_trace(ended: RequestTrace<'_>) -> Request<'_> {
    Request {
        ids: [Some(ended.request_id), ended.x_request_id, None],
        begin: ended.request_received_ms.map(Millis),
        end: ended.event_time_ms.map(Millis),
        is_some: true,
    }
}

fn of_log(record: LogRecord<'_>) -> Request<'_> {
    let at = record.at_ms();
    let (begin, end) = match &record.event {
        LogEvent::RequestReceived(_) => (at, None),
        LogEvent::RequestDone(_) => (None, at),
        LogEvent::StartedWith(_)
        | LogEvent::WorkerAdded(_)
        | LogEvent::WorkerRemoved(_)
        | LogEvent::InstanceRemoved(_)
        | LogEvent::Stopping
        | LogEvent::Signal { .. } => return Request::default(),
        _ => return Request { is_some: true, ..Request::default() },
    };
    let (router, http) = record.event.request_ids();
    let owned = |id: &str| std::borrow::Cow::Owned(id.to_owned());
    let ids = [router.map(owned), http.map(owned), record.client_id];
    Request { ids, begin, end, is_some: true }
}
