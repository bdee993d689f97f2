//! Opens recordings for reading, and warns about damage.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use radixscope_recording::{Recording, RecordingError, Series};

/// Opens the files of a recording, in any order; a folder stands for all recordings in it.
///
/// # Errors
/// One of them cannot be read, or they do not belong together.
pub(crate) fn open(paths: &[PathBuf]) -> anyhow::Result<Series<BufReader<File>>> {
    let mut files = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => {
                files.extend(super::files::recordings_in(path)?.into_iter().map(|retained| retained.path))
            }
            false => files.push(path.clone()),
        }
    }
    let open = |path: &PathBuf| {
        let open = || Ok(Recording::open(BufReader::new(File::open(path)?))?);
        let opened: anyhow::Result<_> = open();
        let recording = opened.with_context(|| path.display().to_string())?;
        if recording.lost_bytes() > 0 {
            let lost = recording.lost_bytes();
            tracing::warn!(file = %path.display(), lost, "the file has a truncated end; its last bytes are lost");
        }
        Ok(recording)
    };
    let opened: anyhow::Result<Vec<_>> = files.iter().map(open).collect();
    Ok(Series::of(opened?)?)
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
