//! A file that grows, is moved away for a new one, or is emptied: followed by asking, a few times a second.
//!
//! Asking works where notifications do not come, over NFS and on mounts of virtual machines. A file that was emptied is known
//! by its length, and by how it begins if it has grown past its old length meanwhile.

use std::fs::Metadata;
use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};

use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

/// Most bytes read at once.
pub(super) const CHUNK_BYTES: usize = 64 * 1024;

/// As much of a file's beginning as tells it from another: the first line bears a time in microseconds.
const HEAD_BYTES: u64 = 64;

/// What asking led to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum News {
    /// More bytes, appended to the buffer.
    More,
    /// Nothing new for now.
    Nothing,
    /// The file begins anew, because another took its place or because it was emptied: what comes next continues nothing.
    Anew,
}

/// Follows one file from its beginning.
pub(super) struct Follower {
    path: PathBuf,
    open: Option<Open>,
    /// How far which file was read, for one that has to be opened again after a failure.
    read: Option<(Identity, u64)>,
}

struct Open {
    file: File,
    identity: Identity,
    offset: u64,
    /// Another file has taken the place; what is still in this one is read to its end first.
    is_replaced: bool,
    /// How the file began when all of it was read.
    head: Vec<u8>,
    /// All of it was read; time has passed since.
    is_resting: bool,
}

/// Which file it is, whatever it is called.
type Identity = (u64, u64);

#[cfg(unix)]
fn identity(metadata: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino())
}

/// Where files have no number only a shorter one is noticed.
#[cfg(not(unix))]
fn identity(_: &Metadata) -> Identity {
    (0, 0)
}

impl Follower {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), open: None, read: None }
    }

    /// Asks once. After an error the next call opens the file again and goes on where it was.
    ///
    /// # Errors
    /// The file cannot be opened or read; [`io::ErrorKind::Unsupported`]: it is a pipe or the like.
    pub(super) async fn ask(&mut self, buffer: &mut Vec<u8>) -> io::Result<News> {
        let asked = self.ask_open_file(buffer).await;
        if asked.is_err() {
            self.read = self.open.take().map(|open| (open.identity, open.offset)).or(self.read);
        }
        asked
    }

    async fn ask_open_file(&mut self, buffer: &mut Vec<u8>) -> io::Result<News> {
        if self.open.is_none() {
            let (open, is_known) = open(&self.path, self.read).await?;
            self.open = Some(open);
            if self.read.take().is_some() && !is_known {
                return Ok(News::Anew);
            }
        }
        let Some(open) = &mut self.open else { return Ok(News::Nothing) };
        if std::mem::take(&mut open.is_resting) && !open.begins_as_before().await? {
            open.restart().await?;
            return Ok(News::Anew);
        }
        if open.read(buffer).await? > 0 {
            return Ok(News::More);
        }
        if open.is_replaced {
            self.open = None;
            return Ok(News::Anew);
        }
        let metadata = match tokio::fs::metadata(&self.path).await {
            Ok(metadata) => metadata,
            // Moved away and nothing new there yet: who writes may still write to the old one.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(News::Nothing),
            Err(error) => return Err(error),
        };
        if identity(&metadata) != open.identity {
            // Asked once more, for what was written between the last read and the change of place.
            open.is_replaced = true;
            return Ok(if open.read(buffer).await? > 0 { News::More } else { News::Nothing });
        }
        if metadata.len() < open.offset {
            open.restart().await?;
            return Ok(News::Anew);
        }
        open.is_resting = true;
        Ok(News::Nothing)
    }
}

impl Open {
    async fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let count = (&mut self.file).take(CHUNK_BYTES as u64).read_to_end(buffer).await?;
        self.offset += count as u64;
        Ok(count)
    }

    /// Whether the file still begins as it did; stays where it was.
    async fn begins_as_before(&mut self) -> io::Result<bool> {
        let mut head = Vec::new();
        self.file.seek(SeekFrom::Start(0)).await?;
        (&mut self.file).take(HEAD_BYTES).read_to_end(&mut head).await?;
        self.file.seek(SeekFrom::Start(self.offset)).await?;
        let is_same = head.starts_with(&self.head);
        self.head = head;
        Ok(is_same)
    }

    async fn restart(&mut self) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0)).await?;
        (self.offset, self.head) = (0, Vec::new());
        Ok(())
    }
}

/// Opens a file, where it was read to if it is the one that was read, and says whether it is.
async fn open(path: &Path, read: Option<(Identity, u64)>) -> io::Result<(Open, bool)> {
    // Looked at before it is opened: a pipe opens only once something writes to it.
    let what = tokio::fs::metadata(path).await?;
    if what.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !what.is_file() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let mut file = File::open(path).await?;
    let metadata = file.metadata().await?;
    let identity = identity(&metadata);
    let known = read.filter(|(of, offset)| *of == identity && *offset <= metadata.len());
    let offset = known.map_or(0, |(_, offset)| offset);
    file.seek(SeekFrom::Start(offset)).await?;
    Ok((
        Open { file, identity, offset, is_replaced: false, head: Vec::new(), is_resting: false },
        known.is_some(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{OpenOptions, remove_file, rename, write};
    use std::io::Write as _;

    struct Followed {
        _folder: tempfile::TempDir,
        path: PathBuf,
        follower: Follower,
    }

    impl Followed {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("frontend.log");
            Self { follower: Follower::new(&path), path, _folder: folder }
        }

        fn append(&self, text: &str) {
            let mut file = OpenOptions::new().append(true).create(true).open(&self.path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }

        /// Everything there is now; `|` where the file begins anew.
        async fn heard(&mut self) -> String {
            let (mut said, mut quiet) = (String::new(), 0);
            // A change of place is noticed in one turn and acted on in the next.
            while quiet < 3 {
                let mut bytes = Vec::new();
                match self.follower.ask(&mut bytes).await.unwrap() {
                    News::More => said.push_str(std::str::from_utf8(&bytes).unwrap()),
                    News::Anew => said.push('|'),
                    News::Nothing => quiet += 1,
                }
            }
            said
        }
    }

    #[tokio::test]
    async fn what_is_there_and_what_is_appended_is_read_once() {
        let mut log = Followed::new();
        log.append("one\ntw");
        assert_eq!(log.heard().await, "one\ntw");
        assert_eq!(log.heard().await, "");
        log.append("o\nthree\n");
        assert_eq!(log.heard().await, "o\nthree\n");
    }

    #[tokio::test]
    async fn a_file_that_was_moved_away_is_read_to_its_end_before_the_new_one() {
        let mut log = Followed::new();
        log.append("one\n");
        assert_eq!(log.heard().await, "one\n");
        log.append("two\n");
        let moved = log.path.with_extension("1");
        rename(&log.path, &moved).unwrap();
        let mut writer = OpenOptions::new().append(true).open(&moved).unwrap();
        assert_eq!(log.heard().await, "two\n", "nothing took its place");
        writer.write_all(b"three\n").unwrap();
        log.append("new one\n");
        assert_eq!(log.heard().await, "three\n|new one\n");
    }

    #[tokio::test]
    async fn a_file_that_was_emptied_begins_anew() {
        let mut log = Followed::new();
        log.append("one\ntwo\nthree\n");
        assert_eq!(log.heard().await, "one\ntwo\nthree\n");
        write(&log.path, "new\n").unwrap();
        assert_eq!(log.heard().await, "|new\n");
    }

    #[tokio::test]
    async fn a_file_that_was_emptied_and_has_grown_past_its_old_length_begins_anew() {
        let mut log = Followed::new();
        log.append("one\n");
        assert_eq!(log.heard().await, "one\n");
        log.append("two\n");
        assert_eq!(log.heard().await, "two\n");
        write(&log.path, "three\nfour\nfive\n").unwrap();
        assert_eq!(log.heard().await, "|three\nfour\nfive\n");
        log.append("six\n");
        assert_eq!(log.heard().await, "six\n");
    }

    #[tokio::test]
    async fn a_large_file_comes_in_pieces() {
        let mut log = Followed::new();
        let text = "0123456789abcdef".repeat(3 * CHUNK_BYTES / 16 + 1);
        log.append(&text);
        let mut bytes = Vec::new();
        while log.follower.ask(&mut bytes).await.unwrap() != News::More {}
        assert_eq!(bytes.len(), CHUNK_BYTES);
        assert_eq!(log.heard().await, text[CHUNK_BYTES..]);
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_an_error_until_it_can() {
        let mut log = Followed::new();
        let mut bytes = Vec::new();
        let error = log.follower.ask(&mut bytes).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        std::fs::create_dir(&log.path).unwrap();
        let error = log.follower.ask(&mut bytes).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
        std::fs::remove_dir(&log.path).unwrap();
        log.append("one\n");
        assert_eq!(log.heard().await, "one\n");
        // A directory takes the place of the file for a while; the same file comes back.
        let aside = log.path.with_extension("aside");
        rename(&log.path, &aside).unwrap();
        std::fs::create_dir(&log.path).unwrap();
        while log.follower.ask(&mut bytes).await.is_ok() {}
        std::fs::remove_dir(&log.path).unwrap();
        rename(&aside, &log.path).unwrap();
        log.append("two\n");
        assert!(log.heard().await.ends_with("two\n"));
        remove_file(&log.path).unwrap();
    }
}
