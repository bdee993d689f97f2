//! Finds rotated files of a log by their names. Reads only their first bytes.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::follower::{HEAD_BYTES, Mark};
use crate::source::file_identity::identity;

/// Maximum rotated files that are queued. Rotation keeps fewer.
pub(super) const MAX_ROTATED: usize = 64;
/// Minimum digits of a date before the extension: `frontend-2.log` is another frontend's log.
const DATE_DIGITS: usize = 8;

/// A rotated file with unread lines.
#[derive(Debug)]
pub(super) struct Rotated {
    pub(super) path: PathBuf,
    /// Where reading starts: not 0 in the remainder of the file that was read last.
    pub(super) offset: u64,
    /// Length.
    pub(super) len: u64,
    modified: SystemTime,
    created: Option<SystemTime>,
}

/// Rotated files that are newer than the one at `mark`, oldest first; before them the remainder of that one, if it still exists
/// under another name or as a copy. Files in `was_read_before` are omitted.
///
/// # Errors
/// The folder cannot be read.
pub(super) fn after(log: &Path, mark: &Mark, was_read_before: &[Mark]) -> io::Result<Vec<Rotated>> {
    let (Some(folder), Some(name)) = (log.parent(), log.file_name()) else { return Ok(Vec::new()) };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let (mut rest, mut later) = (None, Vec::new());
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    for entry in entries.flatten() {
        if !is_rotated(entry.file_name().as_encoded_bytes(), name.as_encoded_bytes()) {
            continue;
        }
        let Ok(metadata) = entry.metadata() else { continue };
        let Ok(modified) = metadata.modified() else { continue };
        let id = identity(&metadata);
        if !metadata.is_file() || modified < mark.modified && id != mark.identity {
            continue;
        }
        let (path, len, created) = (entry.path(), metadata.len(), metadata.created().ok());
        let found = |offset| Rotated { path: path.clone(), offset, len, modified, created };
        // Inodes are reused, so the first bytes must match too.
        let was_read = |read: &Mark| (read.identity == id || read.offset == len) && read.begins(&path, len);
        if id == mark.identity || mark.begins(&path, len) {
            rest = Some(found(mark.offset)).filter(|rest| rest.len > rest.offset).or(rest);
        } else if !was_read_before.iter().any(was_read) {
            later.push(found(0));
        }
    }
    later.sort_by(|a, b| (a.modified, a.created, &b.path).cmp(&(b.modified, b.created, &a.path)));
    Ok(rest.into_iter().chain(later).collect())
}

impl Mark {
    /// Whether the file at `path` has the same first bytes and is at least as long as was read.
    fn begins(&self, path: &Path, len: u64) -> bool {
        let mut head = Vec::new();
        !self.head.is_empty()
            && len >= self.offset
            && File::open(path).and_then(|follower| follower.take(HEAD_BYTES).read_to_end(&mut head)).is_ok()
            && head.starts_with(&self.head)
    }
}

/// Whether a name is that of a rotated, uncompressed log: `LOG.1`, `LOG-20261121`, `LOG.20261121-101500`,
/// `NAME-2026-11-21T10-15-00.log`.
fn is_rotated(name: &[u8], log: &[u8]) -> bool {
    let is_number = |text: &[u8]| {
        text.first().is_some_and(u8::is_ascii_digit)
            && text.iter().all(|c| c.is_ascii_digit() || b".-_:+TZ".contains(c))
    };
    let behind = |text: &[u8], front: &[u8]| match text.strip_prefix(front)? {
        [b'.' | b'-' | b'_', suffix @ ..] => Some(suffix.to_vec()),
        _ => None,
    };
    if behind(name, log).is_some_and(|suffix| is_number(&suffix) || suffix == b"old") {
        return true;
    }
    let Some(dot) = log.iter().rposition(|c| *c == b'.') else { return false };
    let (stem, extension) = log.split_at(dot);
    let date = name.strip_suffix(extension).and_then(|name| behind(name, stem));
    let digits = |date: &[u8]| date.iter().filter(|c| c.is_ascii_digit()).count();
    date.is_some_and(|date| is_number(&date) && digits(&date) >= DATE_DIGITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rotated_logs_are_distinguished_from_other_logs() {
        for name in [
            "frontend.log.1",
            "frontend.log.12",
            "frontend.log-20261121",
            "frontend.log.20261121-101500",
            "frontend.log.old",
            "frontend-2026-11-21T10-15-00.123.log",
        ] {
            assert!(is_rotated(name.as_bytes(), b"frontend.log"), "{name}");
        }
        for name in [
            "frontend.log",
            "frontend.log.1.gz",
            "frontend-2.log",
            "frontend.2.log",
            "frontend2.log.1",
            "frontend.log.swp",
            "worker.log.1",
        ] {
            assert!(!is_rotated(name.as_bytes(), b"frontend.log"), "{name}");
        }
        assert!(is_rotated(b"log.1", b"log"));
    }
}
