//! Discovery in a folder, Dynamo's `DYN_FILE_KV`: a file per entry, named by the escaped key; its process renews the
//! modification time. Polled, because the folder may be on a network file system without notifications.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use percent_encoding::percent_decode_str;

use radixscope_model::number_format::count;
use radixscope_model::record::LinkState;

use super::budget::{MAX_ENTRIES, MAX_VALUE_BYTES};
use super::entries::{EntryValue, Found, wants};
use super::{Follower, Stop};
use crate::hub::HubEnded;
use crate::source::SourceStatus;

/// The folders that are read, one per kind.
const KINDS: [&str; 4] = ["event_channels", "event_sources", "instances", "mdc"];
/// Maximum files that are read: twice the maximum of entries, because of files of terminated processes.
const MAX_FILES: usize = 2 * MAX_ENTRIES;
/// Maximum bytes read in one poll; the next poll follows at once.
const MAX_LOOK_BYTES: usize = 4 * 1024 * 1024;
/// Poll interval.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Entries that were not renewed for this long are ignored, as by Dynamo itself.
const HOLDS: Duration = Duration::from_secs(10);
/// Prefix of files that are being written.
const UNFINISHED: &str = ".tmp_";

/// A folder of entries.
pub(super) struct Files {
    folder: PathBuf,
    /// The namespace to read; all otherwise.
    namespace: Option<String>,
    /// By their paths, which compare as bytes: a `Path` is taken apart at each comparison.
    known: BTreeMap<OsString, Known>,
    /// Number of expired files.
    old: usize,
}

/// Modification time and length when the file was last read.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Known {
    modified: SystemTime,
    len: u64,
}

impl Files {
    pub(super) fn new(folder: PathBuf, namespace: Option<String>) -> Self {
        Self { folder, namespace, known: BTreeMap::new(), old: 0 }
    }

    /// Polls until the folder cannot be read.
    pub(super) async fn follow(&mut self, to: &mut Follower<'_>) -> Result<SourceStatus, HubEnded> {
        loop {
            match self.list(to).await {
                Ok(()) => {}
                Err(Stop::Failed(failed)) => return Ok(failed),
                Err(Stop::Hub(ended)) => return Err(ended),
            }
            let old = match self.old {
                0 => String::new(),
                count => {
                    format!(" {count} expired entries: not renewed for 10 s, so their processes are gone.")
                }
            };
            let detail = format!("{}: {}.{old}", self.folder.display(), to.count());
            to.say(LinkState::Live, detail).await?;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Delivers the changes since the last poll.
    pub(super) async fn list(&mut self, to: &mut Follower<'_>) -> Result<(), Stop> {
        if to.entries.take_room() {
            // The skipped entries are not known, so all are read again.
            self.known.values_mut().for_each(|known| known.len = u64::MAX);
        }
        // Initially, and after the folder could not be read, missing entries count as removed.
        let is_first = self.known.is_empty();
        if is_first {
            to.begin_pass();
        }
        loop {
            let (folder, namespace) = (self.folder.clone(), self.namespace.clone());
            let known = std::mem::take(&mut self.known);
            let poll = tokio::task::spawn_blocking(move || poll(&folder, namespace.as_deref(), known)).await;
            let poll = poll.unwrap_or_else(|ended| Err(io::Error::other(ended)));
            let poll = poll.map_err(|error| self.unreadable(&error))?;
            (self.known, self.old) = (poll.known, poll.old);
            for found in poll.found {
                to.put(found).await?;
            }
            for key in poll.removed {
                to.end(&key).await?;
            }
            if poll.has_all {
                if is_first && poll.cut.is_empty() {
                    to.end_pass().await?;
                }
                to.cut = poll.cut;
                return Ok(());
            }
        }
    }

    fn unreadable(&self, error: &io::Error) -> SourceStatus {
        let folder = self.folder.display();
        match error.kind() {
            io::ErrorKind::NotFound => SourceStatus::connecting(format!(
                "No Dynamo entries in {folder} (no folder v1 in it). Is it the DYN_FILE_KV of the frontend and the workers, and do \
                 they use file discovery?"
            )),
            io::ErrorKind::PermissionDenied => SourceStatus::refused(format!(
                "Permission denied for {folder}: allow this user to read it, or run as Dynamo's user."
            )),
            _ => SourceStatus::connecting(format!("{folder} cannot be read: {error}.")),
        }
    }
}

/// The result of a poll.
#[derive(Default)]
struct Poll {
    known: BTreeMap<OsString, Known>,
    /// New and changed entries.
    found: Vec<Found>,
    /// Keys of removed or expired files, including entries that were never put.
    removed: Vec<String>,
    old: usize,
    /// Whether all changes were read.
    has_all: bool,
    cut: String,
}

/// Reads the changes. A file that disappears meanwhile counts as removed.
fn poll(folder: &Path, namespace: Option<&str>, mut before: BTreeMap<OsString, Known>) -> io::Result<Poll> {
    let mut poll = Poll { has_all: true, ..Poll::default() };
    let (now, mut files, mut bytes) = (SystemTime::now(), 0, 0);
    // Modification times in the future do not expire.
    let is_old = |file: Known| now.duration_since(file.modified).is_ok_and(|since| since > HOLDS);
    fs::read_dir(folder.join("v1"))?;
    for file in KINDS.iter().filter_map(|kind| fs::read_dir(folder.join("v1").join(kind)).ok()).flatten() {
        let path = file?.path();
        files += 1;
        if files > MAX_FILES {
            let most = count(MAX_FILES as u64);
            poll.cut = format!(" More than {most} files are there: entries may be missing.");
            break;
        }
        let Some(key) = key(folder, &path).filter(|key| wants(namespace, key)) else { continue };
        let Some(file) = known(&path) else { continue };
        if is_old(file) {
            poll.old += 1;
            continue;
        }
        match before.remove(path.as_os_str()) {
            Some(was) if was == file => drop(poll.known.insert(path.into(), was)),
            was if bytes > MAX_LOOK_BYTES => {
                poll.has_all = false;
                poll.known.extend(was.map(|was| (path.into(), was)));
            }
            _ => match read(&path, file.len) {
                Some(value) => {
                    bytes += key.len() + if let EntryValue::Read(value) = &value { value.len() } else { 0 };
                    poll.found.push(Found { key, value, lease: None });
                    poll.known.insert(path.into(), file);
                }
                None => poll.removed.push(key),
            },
        }
    }
    for (path, was) in before {
        // If the folder was not read completely, known files are checked one by one.
        match known(path.as_ref()).filter(|file| !poll.cut.is_empty() && !is_old(*file)) {
            Some(_) => drop(poll.known.insert(path, was)),
            None => poll.removed.extend(key(folder, path.as_ref())),
        }
    }
    Ok(poll)
}

/// The file's current state, unless it is being written.
fn known(path: &Path) -> Option<Known> {
    if path.file_name()?.as_encoded_bytes().starts_with(UNFINISHED.as_bytes()) {
        return None;
    }
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some(Known { modified: metadata.modified().ok()?, len: metadata.len() })
}

/// The content of a file; a file above the size limit is not opened.
fn read(path: &Path, len: u64) -> Option<EntryValue> {
    if len > MAX_VALUE_BYTES as u64 {
        return Some(EntryValue::TooLarge { bytes: len });
    }
    let mut value = Vec::new();
    fs::File::open(path).ok()?.take(MAX_VALUE_BYTES as u64 + 1).read_to_end(&mut value).ok()?;
    Some(EntryValue::of(value.len(), || Bytes::from(value)))
}

/// The key in a file's name.
fn key(folder: &Path, path: &Path) -> Option<String> {
    let mut parts = path.strip_prefix(folder).ok()?.components().map(|part| part.as_os_str().to_str());
    let (version, kind, name) = (parts.next()??, parts.next()??, parts.next()??);
    let name = percent_decode_str(name).decode_utf8().ok()?;
    Some(format!("{version}/{kind}/{name}"))
}

#[cfg(test)]
mod tests {
    use super::super::To;
    use super::super::entries::{Entries, Entry};
    use super::*;

    const NAME: &str = "v1/instances/dynamo%2Fbackend%2Fworker%5Fkv%5Findexer%5Fquery%2F707863cde70bcda";

    fn write(folder: &Path, name: &str, value: &str) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value).unwrap();
    }

    fn renewed(folder: &Path, name: &str, at: SystemTime) {
        fs::File::options().append(true).open(folder.join(name)).unwrap().set_modified(at).unwrap();
    }

    /// What a poll hands over; what is followed after it.
    async fn poll(files: &mut Files, entries: &mut Option<Entries>) -> (Vec<(String, String)>, usize) {
        let mut all = Vec::new();
        let mut to = Follower::new(To::List(&mut all), None);
        to.entries = entries.take().unwrap_or(to.entries);
        assert!(files.list(&mut to).await.is_ok());
        let followed = to.entries.len();
        *entries = Some(to.entries);
        let text = |entry: Entry| (entry.key, String::from_utf8(entry.value.to_vec()).unwrap());
        (all.into_iter().map(text).collect(), followed)
    }

    #[tokio::test]
    async fn a_file_is_an_entry_while_it_is_renewed() {
        let folder = tempfile::tempdir().unwrap();
        let (mut files, mut entries) = (Files::new(folder.path().to_owned(), None), None);
        let key = "v1/instances/dynamo/backend/worker_kv_indexer_query/707863cde70bcda";
        write(folder.path(), NAME, "1");
        write(folder.path(), "v1/instances/.tmp_7", "half");
        assert_eq!(poll(&mut files, &mut entries).await, (vec![(key.to_owned(), "1".to_owned())], 1));
        assert_eq!(poll(&mut files, &mut entries).await, (vec![], 1));
        write(folder.path(), NAME, "22");
        assert_eq!(poll(&mut files, &mut entries).await, (vec![(key.to_owned(), "22".to_owned())], 1));
        let now = SystemTime::now();
        renewed(folder.path(), NAME, now - HOLDS - Duration::from_secs(1));
        assert_eq!((poll(&mut files, &mut entries).await, files.old), ((vec![], 0), 1));
        renewed(folder.path(), NAME, now);
        assert_eq!(poll(&mut files, &mut entries).await.1, 1);
        fs::remove_file(folder.path().join(NAME)).unwrap();
        assert_eq!((poll(&mut files, &mut entries).await, files.old), ((vec![], 0), 0));
    }

    #[tokio::test]
    async fn what_went_while_the_folder_could_not_be_read_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let (mut files, mut entries) = (Files::new(folder.path().to_owned(), None), None);
        write(folder.path(), NAME, "1");
        assert_eq!(poll(&mut files, &mut entries).await.1, 1);
        fs::remove_dir_all(folder.path().join("v1")).unwrap();
        let mut all = Vec::new();
        assert!(files.list(&mut Follower::new(To::List(&mut all), None)).await.is_err());
        write(folder.path(), "v1/mdc/dynamo%2Fbackend%2Fgenerate%2F7", "1");
        assert_eq!(
            poll(&mut files, &mut entries).await,
            (vec![("v1/mdc/dynamo/backend/generate/7".into(), "1".into())], 1)
        );
    }

    #[tokio::test]
    async fn a_folder_without_entries_says_what_it_should_be() {
        let folder = tempfile::tempdir().unwrap();
        let mut all = Vec::new();
        let mut files = Files::new(folder.path().to_owned(), None);
        match files.list(&mut Follower::new(To::List(&mut all), None)).await {
            Err(Stop::Failed(failed)) => assert!(failed.detail.contains("DYN_FILE_KV"), "{}", failed.detail),
            _ => panic!("there is nothing to read"),
        }
    }

    #[tokio::test]
    async fn files_that_are_larger_than_any_entry_are_not_read_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let (mut files, mut entries) = (Files::new(folder.path().to_owned(), None), None);
        for name in [NAME, "v1/zz/of%20others"] {
            write(folder.path(), name, "");
            let file = fs::File::options().append(true).open(folder.path().join(name)).unwrap();
            file.set_len(8 * 1024 * 1024).unwrap();
        }
        write(folder.path(), "v1/mdc/dynamo%2Fbackend%2Fgenerate%2F7", "1");
        assert_eq!(poll(&mut files, &mut entries).await.1, 1);
        let remarks = entries.as_ref().unwrap().remarks();
        assert!(remarks.starts_with(" 1 key skipped: v1/instances/dynamo/backend/"), "{remarks}");
        assert!(remarks.ends_with("(8.4 MB, more than 64 KiB)."), "{remarks}");
        fs::remove_file(folder.path().join(NAME)).unwrap();
        poll(&mut files, &mut entries).await;
        assert_eq!(entries.unwrap().remarks(), "");
    }

    #[tokio::test]
    async fn what_one_look_may_not_read_the_next_one_does() {
        let folder = tempfile::tempdir().unwrap();
        let value = "x".repeat(MAX_VALUE_BYTES);
        let count = MAX_LOOK_BYTES / MAX_VALUE_BYTES + 3;
        for n in 0..count {
            write(folder.path(), &format!("v1/mdc/dynamo%2Fbackend%2Fgenerate%2F{n}"), &value);
        }
        let one = super::poll(folder.path(), None, BTreeMap::new()).unwrap();
        assert!(!one.has_all && one.found.len() < count, "{}", one.found.len());
        let (mut files, mut entries) = (Files::new(folder.path().to_owned(), None), None);
        assert_eq!(poll(&mut files, &mut entries).await.1, count);
    }
}
