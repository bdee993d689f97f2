//! Evidence: files that were collected of a run of Dynamo, put together as one recording on one time line.
//!
//! # How it works
//! ```text
//! folders, archives → find → file: kind, lines, times, ids → spool (sorted runs on disk)
//!                                         ↓ clocks, runs                 ↓ merged by time
//!                                     times put right        →  timeline: intake, checks → recording
//! ```
//! Each file is read once, in pieces, and only what intake may want of it is kept, on disk; so memory does not grow with the files. What a
//! file is, is told by its content. Clocks are compared by the requests that files have in common; of several runs the one that is asked for
//! is put together, otherwise the last. Knows neither the hub nor HTTP: what it gives is a recording.

mod bounds;
mod clocks;
mod file;
mod find;
mod kind;
mod report;
mod runs;
mod snapshot_name;
mod spool;
mod tachometer;
mod timeline;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use bytes::Bytes;

use radixscope_dynamo::subject::{self, Subject};
use radixscope_insight::baseline::{Baseline, Import, Results, Router};
use radixscope_insight::check::Checks;
use radixscope_intake::Payload;
use radixscope_model::number_format::{count, duration, plural};
use radixscope_model::record::SourceKind;
use radixscope_recording::{Recording, Series};
use radixscope_state::cluster::Cluster;

use crate::recording;
use crate::time::random;
use bounds::Budget;
use clocks::{Clock, clocks};
use file::{FileReport, Reading};
use kind::Kind;
pub(crate) use report::Report;
use runs::{Stretch, runs};
use spool::{Spool, Spooled};
use tachometer::{Response, Responses};
use timeline::{Source, Timeline};

/// Times of requests that are noted of all files together, to compare clocks; the clocks of further files are not compared.
const MAX_NOTED: usize = 500_000;

/// Said of a recording among other files.
const NOT_MERGED: &str =
    "not merged: the records of a recording are joined already; open it by itself, with radixscope replay";

/// What is put together, and how.
pub(crate) struct Options {
    /// Files, folders and archives.
    pub(crate) paths: Vec<PathBuf>,
    /// Number of the run, from 1; `None`: the last.
    pub(crate) run: Option<u32>,
    /// Most bytes of text, unpacked.
    pub(crate) max_bytes: u64,
    /// What is looked for.
    pub(crate) checks: Checks,
    /// Where the recording is written; `None`: to a file without a name.
    pub(crate) save: Option<PathBuf>,
}

/// Evidence that is put together.
pub(crate) struct Opened {
    /// The recording.
    pub(crate) series: Series<BufReader<File>>,
    /// What was found.
    pub(crate) report: Report,
    /// Summaries of runs, to compare with.
    pub(crate) baselines: Vec<Baseline>,
}

/// Reads all files and puts them together. `is_stopped`: somebody wants the end of it.
///
/// # Errors
/// A path cannot be read, there is nothing in them, or the recording cannot be written.
pub(crate) fn open(options: Options, is_stopped: &dyn Fn() -> bool) -> anyhow::Result<Opened> {
    let Options { paths, run, max_bytes, checks, save } = options;
    let (mut files, spool) = read(&paths, max_bytes, is_stopped)?;
    let has_records = files.iter().any(|file| file.kind != Kind::Recording && file.records > 0);
    if !has_records {
        return recordings(files, save);
    }
    for file in &mut files {
        if file.recording.take().is_some() {
            file.notes.push(NOT_MERGED.to_owned());
        }
    }
    let clocks = clocks_of(&files);
    let (all, chosen) = chosen_run(&files, &clocks, run)?;
    let to = match &save {
        Some(path) => OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .with_context(|| path.display().to_string())?,
        None => tempfile::tempfile()?,
    };
    let merging = Merging { files: &files, clocks: &clocks, run: chosen };
    let written = merging.write(spool, checks, to, is_stopped);
    if written.is_err()
        && let Some(path) = &save
    {
        // What there is of it is of no use, and in the way of another attempt. That it fails is not worth more words.
        let _ = std::fs::remove_file(path);
    }
    let (cluster, elsewhere, file) = written?;
    let series = Series::of(vec![Recording::open(BufReader::new(file))?])?;
    let baselines = baselines(&mut files);
    let report = Report::new(files, clocks, (all, chosen), elsewhere, &cluster);
    Ok(Opened { series, report, baselines })
}

/// The summaries of runs, as baselines to compare with: one for each folder that has some. How their requests were routed they do not say.
fn baselines(files: &mut [FileReport]) -> Vec<Baseline> {
    let mut folders: BTreeMap<String, (Results, Vec<usize>)> = BTreeMap::new();
    for (ix, file) in files.iter_mut().enumerate() {
        let Some(text) = file.summary.take() else { continue };
        let Some(folder) = sweep_folder(&file.name) else {
            file.notes.push("of a warm-up: not compared".to_owned());
            continue;
        };
        let (results, members) = folders.entry(folder.to_owned()).or_default();
        match results.add(&text) {
            Ok(()) => members.push(ix),
            Err(error) => file.notes.push(error.to_string()),
        }
    }
    let mut all = Vec::new();
    for (folder, (results, members)) in folders {
        let name = folder.rsplit('/').find(|part| !part.is_empty()).unwrap_or("runs");
        let Import { baselines, notices } = results.finish(name, Router::Other);
        for &ix in &members {
            files[ix].notes.push(format!("baseline {name} in Compare"));
            files[ix].notes.extend(notices.iter().map(ToString::to_string));
        }
        all.extend(baselines.into_iter().filter(|baseline| !baseline.rows().is_empty()));
    }
    all
}

/// The folder of a sweep that a summary is in: aiperf's runs lie in folders of their own in it. `None`: it is of a warm-up.
fn sweep_folder(name: &str) -> Option<&str> {
    let parts = || name.split('/');
    if parts().any(|part| part == "phases") {
        return None;
    }
    let own = ["profile_runs", "aggregate", "sweep_aggregate"];
    let is_own = |part: &str| own.contains(&part) || part.starts_with("concurrency_");
    let kept = parts().take_while(|part| !is_own(part)).map(|part| part.len() + 1).sum::<usize>();
    let end = name.rfind('/').unwrap_or(0).min(kept.saturating_sub(1));
    Some(&name[..end])
}

/// Reads each file once.
fn read(
    paths: &[PathBuf],
    max_bytes: u64,
    is_stopped: &dyn Fn() -> bool,
) -> anyhow::Result<(Vec<FileReport>, Spool)> {
    let mut spool = Spool::new().context("a temporary file")?;
    let (mut budget, mut noted) = (Budget::new(max_bytes), 0);
    let mut files: Vec<FileReport> = Vec::new();
    let mut names: BTreeMap<String, u32> = BTreeMap::new();
    find::find(paths, &mut |mut found| {
        let same = names.entry(found.name.clone()).or_default();
        *same += 1;
        if *same > 1 {
            // Lines of one log come in order, so no two have the same name.
            found.name = format!("{} ({same})", found.name);
        }
        tracing::debug!(file = found.name, "reading");
        let notes_requests = noted < MAX_NOTED;
        let mut with = Reading { spool: &mut spool, budget: &mut budget, notes_requests, is_stopped };
        let report = file::read(files.len(), found, &mut with)?;
        noted += report.noted.len();
        files.push(report);
        Ok(())
    })
    .map_err(|error| match error.kind() {
        io::ErrorKind::Interrupted => anyhow::anyhow!("stopped while files were read"),
        _ => error.into(),
    })?;
    tracing::debug!(bytes = spool.len_bytes(), "everything is read");
    Ok((files, spool))
}

/// Nothing but recordings.
fn recordings(mut files: Vec<FileReport>, save: Option<PathBuf>) -> anyhow::Result<Opened> {
    let mut opened = Vec::new();
    for file in &mut files {
        let Some(recording) = file.recording.take() else { continue };
        match Recording::open(BufReader::new(recording)) {
            Ok(recording) => {
                if recording.lost_bytes() > 0 {
                    file.notes.push(format!(
                        "its end is truncated: {} bytes are lost",
                        count(recording.lost_bytes())
                    ));
                }
                file.range = recording.range();
                opened.push(recording);
            }
            Err(error) => file.notes.push(error.to_string()),
        }
    }
    if opened.is_empty() {
        let listed = Report::listed(&files);
        bail!("there is no evidence in these files:\n{listed}");
    }
    let mut series = Series::of(opened)?;
    if let Some(path) = &save {
        recording::copy(&mut series, path, false).with_context(|| path.display().to_string())?;
    }
    let (from, to) = series.range();
    let cluster = series.state_at(to)?.cluster;
    let run = Stretch { from, to };
    let clocks = vec![Clock::Unchecked; files.len()];
    let baselines = baselines(&mut files);
    let report = Report::new(files, clocks, (vec![run], run), 0, &cluster);
    Ok(Opened { series, report, baselines })
}

/// What is known of each file's clock.
fn clocks_of(files: &[FileReport]) -> Vec<Clock> {
    // A frontend's is the one that the page speaks of.
    let rank = |kind| match kind {
        Kind::RequestTraces => 0,
        Kind::Log => 1,
        _ => 2,
    };
    let noted: Vec<_> = files.iter().map(|file| (rank(file.kind), &file.noted)).collect();
    clocks(&noted)
}

/// All runs, and the one that is put together.
fn chosen_run(
    files: &[FileReport],
    clocks: &[Clock],
    wanted: Option<u32>,
) -> anyhow::Result<(Vec<Stretch>, Stretch)> {
    let stretches = files.iter().zip(clocks).map(|(file, clock)| (&file.stretches, clock.ahead_ms()));
    let mut all = runs(stretches);
    if all.is_empty() {
        // No request at all: what there is, is one run.
        let ranges = files.iter().zip(clocks).filter_map(|(file, clock)| {
            let (from, to) = file.range?;
            Some(Stretch { from, to }.shifted(clock.ahead_ms()))
        });
        all.extend(ranges.reduce(|a, b| Stretch { from: a.from.min(b.from), to: a.to.max(b.to) }));
    }
    let there = all.len();
    let at = wanted.map_or(there, |number| number as usize);
    match at.checked_sub(1).and_then(|at| all.get(at)).copied() {
        Some(chosen) => Ok((all, chosen)),
        None => bail!(
            "--run {at}: there {}",
            if there == 1 { "is one run".to_owned() } else { format!("are {there} runs") }
        ),
    }
}

/// What is merged.
struct Merging<'m> {
    files: &'m [FileReport],
    clocks: &'m [Clock],
    run: Stretch,
}

impl Merging<'_> {
    /// Writes the recording: the state at its end, how many records are of other runs, and the file from its beginning.
    fn write(
        &self,
        spool: Spool,
        checks: Checks,
        to: File,
        is_stopped: &dyn Fn() -> bool,
    ) -> anyhow::Result<(Cluster, u64, File)> {
        let (sources, of_files) = self.sources();
        let named: Vec<_> = sources.iter().map(|source| (source.name.clone(), source.kind)).collect();
        let merge = spool.merge(|file| self.ahead_ms(file))?;
        let mut elsewhere = 0;
        let mut timeline: Option<Timeline> = None;
        let mut responses = Responses::default();
        let subject = subject::parse(subject::REQUEST_TRACE).map(Arc::new);
        let names: Vec<Arc<str>> = self.files.iter().map(|file| self.log_or_process(file)).collect();
        // Both go into the time line, which begins with the first record.
        let mut begins = Some((checks, to));
        for record in merge {
            let Spooled { file, at, text } = record?;
            let Some(source) = of_files.get(file).copied().flatten().filter(|_| self.run.covers(at)) else {
                elsewhere += 1;
                continue;
            };
            if timeline.is_none()
                && let Some((checks, to)) = begins.take()
            {
                let meta = recording::meta(random(), random(), at, &named);
                timeline = Some(Timeline::new(&sources, checks, (to, &meta), at)?);
            }
            let Some(timeline) = &mut timeline else { continue };
            let text = Bytes::from(text);
            let payload = match (self.files[file].kind, &subject) {
                (Kind::RequestTraces, Some(subject)) => of_trace(subject, text),
                (Kind::Log, _) => Payload::LogLine { log: Arc::clone(&names[file]), line: text },
                (Kind::ClientResults, _) => Payload::ClientResult { line: text },
                (Kind::Metrics, _) => Payload::Scrape { process: Arc::clone(&names[file]), text },
                (Kind::Tachometer, _) => {
                    for response in responses.take(file, at, &text) {
                        of_response(timeline, &of_files, response);
                    }
                    continue;
                }
                _ => continue,
            };
            timeline.take(source, at, payload);
            if timeline.has_failed() {
                break;
            }
            if is_stopped() {
                bail!("stopped while files were put together");
            }
        }
        let Some(mut timeline) = timeline else { bail!("no record is of this run") };
        for response in responses.end() {
            of_response(&mut timeline, &of_files, response);
        }
        if responses.left_out > 0 {
            tracing::warn!(
                samples = responses.left_out,
                "of Tachometer's metrics some are left out: histograms whose sum it does not have, or too many in a response"
            );
        }
        let (cluster, file) = timeline.end()?;
        Ok((cluster, elsewhere, file))
    }

    fn ahead_ms(&self, file: usize) -> i64 {
        self.clocks.get(file).map_or(0, |clock| clock.ahead_ms())
    }

    fn log_or_process(&self, file: &FileReport) -> Arc<str> {
        match file.kind {
            Kind::Metrics => file.process.as_str().into(),
            _ => file.name.as_str().into(),
        }
    }

    /// The sources of the recording: one for each kind of file and clock. With the source of each file.
    fn sources(&self) -> (Vec<Source>, Vec<Option<usize>>) {
        let mut grouped: BTreeMap<(Kind, i64), Vec<usize>> = BTreeMap::new();
        for (ix, file) in self.files.iter().enumerate() {
            if source_kind(file.kind).is_some() && file.records + file.bad > 0 {
                grouped.entry((file.kind, self.ahead_ms(ix))).or_default().push(ix);
            }
        }
        let mut of_files = vec![None; self.files.len()];
        let mut sources = Vec::new();
        for ((kind, ahead_ms), members) in grouped {
            let Some(source_kind) = source_kind(kind) else { continue };
            let records = members.iter().map(|&ix| self.files[ix].records).sum();
            let clock = clock_words(ahead_ms).map(|words| format!(", clock {words}")).unwrap_or_default();
            let detail = format!(
                "Read from {}: {}{clock}.",
                plural(members.len() as u64, "file", "files"),
                plural(records, "record", "records")
            );
            members.iter().for_each(|&ix| of_files[ix] = Some(sources.len()));
            let name = format!("files/{}{clock}", kind.as_str());
            sources.push(Source { name, kind: source_kind, ahead_ms, detail });
        }
        (sources, of_files)
    }
}

fn of_response(timeline: &mut Timeline, of_files: &[Option<usize>], response: Response) {
    let Response { file, endpoint, at, text } = response;
    if let Some(source) = of_files.get(file).copied().flatten() {
        timeline.take(source, at, Payload::Scrape { process: endpoint, text: Bytes::from(text) });
    }
}

fn of_trace(subject: &Arc<Subject>, message: Bytes) -> Payload {
    Payload::Nats { subject: Arc::clone(subject), message }
}

/// In words by how much a clock is ahead; `None`: it is not.
fn clock_words(ahead_ms: i64) -> Option<String> {
    let by = duration(ahead_ms.unsigned_abs() as f64);
    match ahead_ms {
        0 => None,
        1.. => Some(format!("{by} ahead, put right")),
        _ => Some(format!("{by} behind, put right")),
    }
}

fn source_kind(kind: Kind) -> Option<SourceKind> {
    match kind {
        Kind::RequestTraces => Some(SourceKind::RequestTraces),
        Kind::Log => Some(SourceKind::Logs),
        Kind::ClientResults => Some(SourceKind::ClientResults),
        Kind::Metrics | Kind::Tachometer => Some(SourceKind::Prometheus),
        Kind::Recording | Kind::Summary | Kind::Other => None,
    }
}
