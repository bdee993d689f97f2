//! Opens recordings for reading, and warns about damage.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::Context as _;

use radixscope_model::id::Millis;
use radixscope_recording::{Recording, RecordingError, Series};

use super::store::{self, OPENED_AT_ONCE, StoreFile};
use crate::config::{RecordingAt, StoreAt};

/// Where a recording is read from.
pub(crate) enum RecordingReader {
    /// A file.
    File(BufReader<File>),
    /// An object.
    Object(Box<StoreFile>),
}

impl Read for RecordingReader {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::File(file) => file.read(to),
            Self::Object(object) => object.read(to),
        }
    }
}

impl Seek for RecordingReader {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        match self {
            Self::File(file) => file.seek(to),
            Self::Object(object) => object.seek(to),
        }
    }
}

/// Opens the files of a recording, in any order; a folder stands for all recordings in it, a prefix in a bucket for all objects under it.
///
/// # Errors
/// One of them cannot be read, or they do not belong together.
pub(crate) fn open(at: &[RecordingAt]) -> anyhow::Result<Series<RecordingReader>> {
    open_between(at, (Millis(0), Millis(u64::MAX)))
}

/// The same; of a bucket, only objects that may hold something of a time range.
///
/// # Errors
/// One of them cannot be read, or they do not belong together.
pub(crate) fn open_between(
    at: &[RecordingAt],
    between: (Millis, Millis),
) -> anyhow::Result<Series<RecordingReader>> {
    let mut opened = Vec::new();
    for at in at {
        match at {
            RecordingAt::Path(path) if path.is_dir() => {
                for file in super::files::recordings_in(path)? {
                    opened.push(open_file(&file.path)?);
                }
            }
            RecordingAt::Path(path) => opened.push(open_file(path)?),
            RecordingAt::Store(at) => open_objects(at, between, &mut opened)?,
        }
    }
    Ok(Series::of(opened)?)
}

fn open_file(path: &Path) -> anyhow::Result<Recording<RecordingReader>> {
    let name = || path.display().to_string();
    let file = File::open(path).with_context(name)?;
    let opened = Recording::open(RecordingReader::File(BufReader::new(file))).with_context(name)?;
    warn_of_lost(&opened, &name());
    Ok(opened)
}

fn open_objects(
    at: &StoreAt,
    between: (Millis, Millis),
    opened: &mut Vec<Recording<RecordingReader>>,
) -> anyhow::Result<()> {
    let mut objects = store::open(at, between)?;
    while !objects.is_empty() {
        let rest = objects.split_off(objects.len().min(OPENED_AT_ONCE));
        StoreFile::prefetch(&objects)?;
        for object in std::mem::replace(&mut objects, rest) {
            let name = object.name();
            let reader = RecordingReader::Object(Box::new(object));
            let recording = Recording::open_by_index(reader).with_context(|| name.clone())?;
            warn_of_lost(&recording, &name);
            opened.push(recording);
        }
    }
    Ok(())
}

fn warn_of_lost(opened: &Recording<RecordingReader>, file: &str) {
    if opened.lost_bytes() > 0 {
        let lost = opened.lost_bytes();
        tracing::warn!(file, lost, "the file has a truncated end; its last bytes are lost");
    }
}

/// Says how much of objects was read.
pub(crate) fn log_fetched(series: &Series<RecordingReader>) {
    let objects = series.files().iter().filter_map(|file| match file.reader() {
        RecordingReader::Object(object) => Some(object),
        RecordingReader::File(_) => None,
    });
    let Some(first) = objects.clone().next() else { return };
    let (fetched_bytes, requests) = first.fetched();
    let of_bytes = objects.map(|object| object.len_bytes()).sum::<u64>();
    tracing::info!(fetched_bytes, of_bytes, requests, "read from the store");
}

/// The newest recording of a folder.
pub(crate) struct Newest {
    /// Its latest files.
    pub(crate) series: Series<BufReader<File>>,
    /// Whether the last of them was finished, so that it contains everything that was published.
    pub(crate) is_finished: bool,
}

/// Opens the latest files in a folder that cover `max_age_ms` before the end of the recording. `None`: no file of the latest
/// recording contains a state.
///
/// # Errors
/// The latest file cannot be read, or is of another version.
pub(crate) fn newest(folder: &Path, max_age_ms: u64) -> anyhow::Result<Option<Newest>> {
    let mut files: Vec<Recording<BufReader<File>>> = Vec::new();
    let mut is_finished = None;
    for path in super::files::recordings_in(folder)?.into_iter().rev().map(|retained| retained.path) {
        let opened = Recording::open(BufReader::new(File::open(&path)?));
        let opened = match opened {
            Ok(opened) => opened,
            // The process was killed before the first state was on disk, or it is another kind of file.
            Err(RecordingError::NotARecording) => {
                is_finished = Some(false);
                continue;
            }
            Err(error) if files.is_empty() => return Err(error).context(path.display().to_string()),
            Err(_) => break,
        };
        let is_another = files.first().is_some_and(|last| last.meta().recording != opened.meta().recording);
        if is_another {
            break;
        }
        is_finished.get_or_insert(opened.is_finished() && opened.range().is_some());
        let Some((begin, _)) = opened.range() else { continue };
        files.push(opened);
        let end = files.first().and_then(Recording::range).map_or(begin, |(_, end)| end);
        if end.since(begin) >= max_age_ms {
            break;
        }
    }
    if files.is_empty() {
        return Ok(None);
    }
    Ok(Some(Newest { series: Series::of(files)?, is_finished: is_finished.unwrap_or(false) }))
}
