//! Discovery in a folder, Dynamo's `DYN_FILE_KV`: a file an entry, whose name is the escaped key and whose time its process
//! renews. Looked at a few times a second: processes may write it over a network file system, which notifies nobody.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use percent_encoding::percent_decode_str;

use radixscope_intake::MAX_PAYLOAD_BYTES;
use radixscope_model::record::LinkState;

use super::entries::MAX_ENTRIES;
use super::{Entry, Follower};
use crate::hub::HubEnded;
use crate::source::Failed;

/// How often the folder is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// After this time without renewal an entry counts no more, as for Dynamo itself.
const HOLDS: Duration = Duration::from_secs(10);
/// Files that are being written begin so.
const UNFINISHED: &str = ".tmp_";

/// A folder of entries.
pub(super) struct Files {
    folder: PathBuf,
    known: BTreeMap<PathBuf, Known>,
    /// Files that were not renewed for long.
    old: usize,
}

/// A file as it was read last.
#[derive(Clone)]
struct Known {
    modified: SystemTime,
    len: u64,
    value: Bytes,
}

impl Files {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, known: BTreeMap::new(), old: 0 }
    }

    /// Tells what is there until the folder cannot be read.
    pub(super) async fn follow(&mut self, to: &mut Follower<'_>) -> Result<Failed, HubEnded> {
        loop {
            match self.list().await {
                Ok(all) => to.all(all).await?,
                Err(failed) => return Ok(failed),
            }
            let old = match self.old {
                0 => String::new(),
                count => format!(" {count} more were not renewed for 10 s: their processes are gone."),
            };
            let words = format!("Reading {}: {}.{old}", self.folder.display(), to.count());
            to.say(LinkState::Live, words).await?;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// All entries that count now.
    pub(super) async fn list(&mut self) -> Result<Vec<Entry>, Failed> {
        let (folder, known) = (self.folder.clone(), std::mem::take(&mut self.known));
        let look = tokio::task::spawn_blocking(move || look(&folder, &known)).await;
        let look = look.unwrap_or_else(|ended| Err(io::Error::other(ended)));
        let Look { known, old } = look.map_err(|error| self.unreadable(&error))?;
        (self.known, self.old) = (known, old);
        let entry = |(path, known): (&PathBuf, &Known)| {
            Some(Entry { key: key(&self.folder, path)?, value: known.value.clone(), lease: None })
        };
        Ok(self.known.iter().filter_map(entry).collect())
    }

    fn unreadable(&self, error: &io::Error) -> Failed {
        let folder = self.folder.display();
        match error.kind() {
            io::ErrorKind::NotFound => Failed::connecting(format!(
                "There is no entry of Dynamo in {folder} (no folder v1 in it). Is it the DYN_FILE_KV of the frontend and the \
                 workers, and do they run with file discovery?"
            )),
            io::ErrorKind::PermissionDenied => Failed::refused(format!(
                "{folder} may not be read: let this user read it, or run as the user that Dynamo runs as."
            )),
            _ => Failed::connecting(format!("{folder} cannot be read: {error}.")),
        }
    }
}

struct Look {
    known: BTreeMap<PathBuf, Known>,
    old: usize,
}

/// Reads what changed. A file that goes while it is looked at is gone.
fn look(folder: &Path, before: &BTreeMap<PathBuf, Known>) -> io::Result<Look> {
    let mut look = Look { known: BTreeMap::new(), old: 0 };
    let now = SystemTime::now();
    for kind in fs::read_dir(folder.join("v1"))? {
        let Ok(files) = fs::read_dir(kind?.path()) else { continue };
        for file in files {
            let path = file?.path();
            let is_unfinished = path
                .file_name()
                .is_none_or(|name| name.as_encoded_bytes().starts_with(UNFINISHED.as_bytes()));
            if is_unfinished || look.known.len() == MAX_ENTRIES {
                continue;
            }
            let Ok(metadata) = fs::metadata(&path) else { continue };
            let Ok(modified) = metadata.modified() else { continue };
            // A clock that is ahead of ours makes no entry old.
            if now.duration_since(modified).is_ok_and(|since| since > HOLDS) {
                look.old += 1;
                continue;
            }
            let known =
                before.get(&path).filter(|known| known.modified == modified && known.len == metadata.len());
            let value = match known {
                Some(known) => Some(known.value.clone()),
                None if metadata.is_file() => read(&path),
                None => None,
            };
            if let Some(value) = value {
                look.known.insert(path, Known { modified, len: metadata.len(), value });
            }
        }
    }
    Ok(look)
}

/// The whole of a file that is no longer than an entry may be.
fn read(path: &Path) -> Option<Bytes> {
    let mut value = Vec::new();
    fs::File::open(path).ok()?.take(MAX_PAYLOAD_BYTES as u64 + 1).read_to_end(&mut value).ok()?;
    (value.len() <= MAX_PAYLOAD_BYTES).then(|| value.into())
}

/// The key that a file is named after.
fn key(folder: &Path, path: &Path) -> Option<String> {
    let mut parts = path.strip_prefix(folder).ok()?.components().map(|part| part.as_os_str().to_str());
    let (version, kind, name) = (parts.next()??, parts.next()??, parts.next()??);
    let name = percent_decode_str(name).decode_utf8().ok()?;
    Some(format!("{version}/{kind}/{name}"))
}

#[cfg(test)]
mod tests {
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

    async fn keys(files: &mut Files) -> Vec<(String, String)> {
        let text = |entry: Entry| (entry.key, String::from_utf8(entry.value.to_vec()).unwrap());
        files.list().await.unwrap().into_iter().map(text).collect()
    }

    #[tokio::test]
    async fn a_file_is_an_entry_while_it_is_renewed() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Files::new(folder.path().to_owned());
        let key = "v1/instances/dynamo/backend/worker_kv_indexer_query/707863cde70bcda";
        write(folder.path(), NAME, "1");
        write(folder.path(), "v1/instances/.tmp_7", "half");
        assert_eq!(keys(&mut files).await, [(key.to_owned(), "1".to_owned())]);
        write(folder.path(), NAME, "22");
        assert_eq!(keys(&mut files).await, [(key.to_owned(), "22".to_owned())]);
        let now = SystemTime::now();
        renewed(folder.path(), NAME, now - HOLDS - Duration::from_secs(1));
        assert_eq!((keys(&mut files).await, files.old), (vec![], 1));
        renewed(folder.path(), NAME, now);
        assert_eq!(keys(&mut files).await.len(), 1);
        fs::remove_file(folder.path().join(NAME)).unwrap();
        assert_eq!((keys(&mut files).await, files.old), (vec![], 0));
    }

    #[tokio::test]
    async fn a_folder_without_entries_says_what_it_should_be() {
        let folder = tempfile::tempdir().unwrap();
        let failed = Files::new(folder.path().to_owned()).list().await.unwrap_err();
        assert!(failed.words.contains("DYN_FILE_KV"), "{}", failed.words);
    }

    #[tokio::test]
    async fn a_file_larger_than_any_entry_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), NAME, "");
        let file = fs::File::options().append(true).open(folder.path().join(NAME)).unwrap();
        file.set_len(MAX_PAYLOAD_BYTES as u64 + 1).unwrap();
        assert_eq!(keys(&mut Files::new(folder.path().to_owned())).await, []);
    }
}
