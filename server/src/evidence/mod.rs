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
mod joined;
mod kind;
mod merging;
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

use anyhow::{Context as _, bail};
use radixscope_insight::baseline::{Baseline, Import, Results, Router};
use radixscope_insight::check::Checks;
use radixscope_model::number_format::{count, duration};
use radixscope_model::record::SourceKind;
use radixscope_recording::{Recording, Series};

use crate::recording;
use bounds::Budget;
use clocks::{Clock, clocks};
use file::{FileReport, Reading};
use joined::Base;
use kind::Kind;
use merging::{Merged, Merging};
pub(crate) use report::Report;
use runs::{Stretch, runs};
use spool::Spool;

/// Times of requests that are noted of all files together, to compare clocks; the clocks of further files are not compared.
const MAX_NOTED: usize = 500_000;

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
    let base = recording_among(&mut files);
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
    let written = match base {
        None => merging.write(spool, checks, to, is_stopped),
        Some(base) => merging.join(spool, checks, base, to, is_stopped),
    };
    if written.is_err()
        && let Some(path) = &save
    {
        // What there is of it is of no use, and in the way of another attempt. That it fails is not worth more words.
        let _ = std::fs::remove_file(path);
    }
    let Merged { cluster, elsewhere, file, joined } = written?;
    if let Some((ix, joins)) = joined {
        files[ix].notes.push(joins.to_string());
    }
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

/// The recording among other files. One that cannot be joined with them is named.
fn recording_among(files: &mut [FileReport]) -> Option<Base> {
    let opened = opened(files);
    let ix = files.iter().position(|file| file.kind == Kind::Recording && file.range.is_some())?;
    let file = &mut files[ix];
    let read = |series| Base::read(ix, series, &mut file.noted, &mut file.stretches);
    match Series::of(opened).and_then(read) {
        Ok(base) => Some(base),
        Err(error) => {
            file.notes.push(format!("not joined with the other files: {error}"));
            None
        }
    }
}

/// The recordings of files. What is wrong with one stands in its notes.
fn opened(files: &mut [FileReport]) -> Vec<Recording<BufReader<File>>> {
    let mut opened = Vec::new();
    for file in files {
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
    opened
}

/// Nothing but recordings.
fn recordings(mut files: Vec<FileReport>, save: Option<PathBuf>) -> anyhow::Result<Opened> {
    let opened = opened(&mut files);
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
    // A frontend's is the one that the page speaks of, unless there is a recording.
    let rank = |kind| match kind {
        Kind::Recording => 0,
        Kind::RequestTraces => 1,
        Kind::Log => 2,
        _ => 3,
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
