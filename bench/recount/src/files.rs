//! The files of a recording, compressed or not, under either of the names they go by.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use flate2::read::MultiGzDecoder;

/// The first of `names` that is in `folder`.
pub(crate) fn find(folder: &Path, names: &[&str]) -> Option<PathBuf> {
    names.iter().map(|name| folder.join(name)).find(|path| path.is_file())
}

/// The lines of a file. What is cut off in the middle of a compressed file ends it.
///
/// # Errors
/// When it cannot be opened or is no text.
pub(crate) fn lines(path: &Path) -> Result<Vec<String>> {
    let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    let is_compressed = path.extension().is_some_and(|extension| extension == "gz");
    let reader: Box<dyn Read> =
        if is_compressed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    BufReader::new(reader)
        .lines()
        .collect::<Result<_, _>>()
        .with_context(|| format!("reading {}", path.display()))
}
