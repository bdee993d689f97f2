//! The finished files of the buffer that are not stored yet: the writer thread adds them and makes room, the upload takes the oldest. Within the
//! bound nothing is deleted before the store has confirmed it; what must be is counted.

use std::collections::VecDeque;
use std::io::{Error, ErrorKind};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::sync::Notify;

use radixscope_model::id::Millis;

use super::files::{RecordingFile, sidecars};

/// What a file brought into the store.
#[derive(Default)]
pub(super) struct Uploaded {
    /// Objects that were not there before.
    pub(super) objects: u64,
    /// Their bytes.
    pub(super) bytes: u64,
    /// Time of the file's last message.
    pub(super) until_ms: Option<Millis>,
}

impl Uploaded {
    /// One object more.
    pub(super) fn add(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes += bytes;
    }
}

/// What is stored and what is not.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct StoredStatus {
    /// Objects that this process stored and the store confirmed.
    pub(crate) objects: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Everything received before is stored, but for lost files and gaps; `null`: nothing is yet.
    pub(crate) until_ms: Option<Millis>,
    /// Finished files that wait in the buffer.
    pub(crate) waiting_files: u64,
    /// Their bytes.
    pub(crate) waiting_bytes: u64,
    /// Files that were deleted before they were stored, because the buffer was full.
    pub(crate) lost_files: u64,
    /// Their bytes.
    pub(crate) lost_bytes: u64,
}

/// Files on their way into a store.
#[derive(Default)]
pub(crate) struct Backlog {
    state: Mutex<State>,
    /// A file was added, or there will be no more.
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// Finished and not stored, oldest first.
    waiting: VecDeque<RecordingFile>,
    /// The first of them is being sent.
    is_sending: bool,
    /// The last one that was stored: the state is resumed from it after a restart.
    last: Option<RecordingFile>,
    status: StoredStatus,
    error: Option<String>,
    is_closed: bool,
}

impl Backlog {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a finished file.
    pub(crate) fn push(&self, file: RecordingFile) {
        self.state().waiting.push_back(file);
        self.changed.notify_one();
    }

    /// There will be no more files.
    pub(crate) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_one();
    }

    /// Whether there will be no more files.
    pub(super) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// Waits until a file is added or there will be no more.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The oldest file, which stays in the buffer until [`Backlog::stored`] or [`Backlog::failed`].
    pub(super) fn take_oldest(&self) -> Option<RecordingFile> {
        let mut state = self.state();
        let oldest = state.waiting.front().cloned();
        state.is_sending = oldest.is_some();
        oldest
    }

    /// The oldest file is stored.
    pub(super) fn stored(&self, uploaded: Uploaded) {
        let mut state = self.state();
        state.is_sending = false;
        state.error = None;
        state.status.objects += uploaded.objects;
        state.status.bytes += uploaded.bytes;
        state.status.until_ms = state.status.until_ms.max(uploaded.until_ms);
        let Some(file) = state.waiting.pop_front() else { return };
        let beside = sidecars(&file.path);
        let before = state.last.replace(file);
        drop(state);
        // What cannot be deleted is found and deleted at the next start.
        for path in beside.into_iter().chain(before.map(|before| before.path)) {
            let _ = std::fs::remove_file(path);
        }
    }

    /// The oldest file is gone from the buffer: somebody deleted it.
    pub(super) fn vanished(&self) {
        let mut state = self.state();
        state.is_sending = false;
        if let Some(file) = state.waiting.pop_front() {
            state.lose(&file);
        }
    }

    /// The oldest file is not stored; why.
    pub(super) fn failed(&self, error: String) {
        let mut state = self.state();
        state.is_sending = false;
        state.error = Some(error);
    }

    /// The store answers.
    pub(super) fn reached(&self) {
        self.state().error = None;
    }

    /// Bytes of its files in the buffer, and when the first begins.
    pub(crate) fn buffered(&self) -> (u64, Option<Millis>) {
        let state = self.state();
        let first = state.last.as_ref().or(state.waiting.front());
        (state.bytes(), first.map(|file| file.began_ms))
    }

    /// Deletes files until at most `most` bytes are left: first what is stored, then what is oldest, which is lost. The one that is being
    /// sent stays.
    pub(crate) fn make_room(&self, most: u64) -> Result<(), Error> {
        loop {
            // Nothing waits for the disk here but this thread.
            let next = self.state().next_to_delete(most);
            match next {
                None => return Ok(()),
                Some(ToDelete::Stored(file)) => remove(&file.path)?,
                Some(ToDelete::Waiting(file)) => {
                    remove(&file.path)?;
                    for sidecar in sidecars(&file.path) {
                        remove(&sidecar)?;
                    }
                    self.state().deleted(&file);
                }
            }
        }
    }

    /// What is stored, and why no more is.
    pub(crate) fn status(&self) -> (StoredStatus, Option<String>) {
        let state = self.state();
        let waiting_bytes = state.waiting.iter().map(|file| file.bytes).sum();
        let waiting_files = state.waiting.len() as u64;
        (StoredStatus { waiting_files, waiting_bytes, ..state.status.clone() }, state.error.clone())
    }
}

/// A file that makes room.
enum ToDelete {
    /// It is stored and no longer listed.
    Stored(RecordingFile),
    /// It is listed until it is deleted.
    Waiting(RecordingFile),
}

impl State {
    /// What is deleted next where at most `most` bytes may be left.
    fn next_to_delete(&mut self, most: u64) -> Option<ToDelete> {
        if self.bytes() <= most {
            return None;
        }
        if let Some(last) = self.last.take() {
            return Some(ToDelete::Stored(last));
        }
        self.waiting.get(usize::from(self.is_sending)).cloned().map(ToDelete::Waiting)
    }

    /// A file is deleted. If sending it began meanwhile, it can still be read, and sending it decides.
    fn deleted(&mut self, file: &RecordingFile) {
        let at = self.waiting.iter().position(|waiting| waiting.path == file.path);
        let Some(at) = at.filter(|&at| at > 0 || !self.is_sending) else { return };
        self.waiting.remove(at);
        self.lose(file);
    }

    fn bytes(&self) -> u64 {
        self.waiting.iter().chain(&self.last).map(|file| file.bytes).sum()
    }

    fn lose(&mut self, file: &RecordingFile) {
        self.status.lost_files += 1;
        self.status.lost_bytes += file.bytes;
        tracing::warn!(file = %file.path.display(), "deleted before it was stored: the buffer is full");
    }
}

fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::files::recordings_in;

    /// A backlog of files of 100 bytes each, with some decisions.
    fn backlog(folder: &Path, files: u64) -> Backlog {
        for number in 0..files {
            std::fs::write(folder.join(format!("radixscope-{number}.mcap")), [0; 80]).unwrap();
            std::fs::write(folder.join(format!("radixscope-{number}.rows")), [0; 20]).unwrap();
        }
        let backlog = Backlog::default();
        recordings_in(folder).unwrap().into_iter().for_each(|file| backlog.push(file));
        backlog
    }

    fn on_disk(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_stored_goes_first_then_the_oldest_which_is_counted_but_not_the_one_on_its_way() {
        let folder = tempfile::tempdir().unwrap();
        let backlog = backlog(folder.path(), 5);
        assert_eq!(backlog.buffered().0, 500);
        backlog.take_oldest().unwrap();
        backlog.stored(Uploaded { objects: 2, bytes: 90, until_ms: Some(Millis(7)) });
        let (status, _) = backlog.status();
        assert_eq!((status.waiting_files, status.waiting_bytes, status.until_ms), (4, 400, Some(Millis(7))));
        assert_eq!(on_disk(folder.path())[0], "radixscope-0.mcap", "to resume from");

        let sent = backlog.take_oldest().unwrap();
        backlog.make_room(430).unwrap();
        assert_eq!(backlog.status().0.lost_files, 0, "that was stored");
        backlog.make_room(200).unwrap();
        let (status, _) = backlog.status();
        assert_eq!((status.lost_files, status.lost_bytes, status.waiting_files), (2, 200, 2));
        assert!(sent.path.exists());
        let left = ["radixscope-1.mcap", "radixscope-1.rows", "radixscope-4.mcap", "radixscope-4.rows"];
        assert_eq!(on_disk(folder.path()), left);
        backlog.failed("why".to_owned());
        backlog.make_room(0).unwrap();
        assert_eq!((backlog.status().0.lost_files, backlog.buffered().0), (4, 0));
        assert_eq!(on_disk(folder.path()), Vec::<String>::new());
    }
}
