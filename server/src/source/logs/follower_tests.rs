//! A file's life, as those who write and rotate it make it.

use super::*;
use std::fs::{File, OpenOptions, copy, create_dir, remove_file, rename, write};
use std::io::Write as _;

struct Followed {
    _folder: tempfile::TempDir,
    path: PathBuf,
    follower: Follower,
}

/// Longer than any test runs: what comes is notified.
const NEVER: Duration = Duration::from_secs(3_600);

impl Followed {
    /// Followed by notifications alone.
    fn watched() -> Self {
        let mut log = Self::new();
        log.follower.watch = Some(Watch::new().unwrap());
        log
    }

    /// The path with another ending.
    fn beside(&self, extension: &str) -> PathBuf {
        PathBuf::from(format!("{}.{extension}", self.path.display()))
    }

    /// What comes until it ends like this, by notifications.
    async fn until(&mut self, end: &str) -> String {
        let mut text = String::new();
        while !text.ends_with(end) {
            let mut bytes = Vec::new();
            match self.follower.poll(&mut bytes).await {
                Ok(ReadOutcome::More) => text.push_str(std::str::from_utf8(&bytes).unwrap()),
                Ok(ReadOutcome::Restarted) => text.push('|'),
                Ok(ReadOutcome::Lost(count)) => text.push_str(&format!("<lost {count}>")),
                Ok(ReadOutcome::Nothing) | Err(_) => self.follower.wait(NEVER).await,
            }
        }
        text
    }

    /// Waits until all that appeared is known.
    async fn confirmed(&mut self) {
        while {
            assert_eq!(self.follower.poll(&mut Vec::new()).await.unwrap(), ReadOutcome::Nothing);
            !self.follower.open.as_ref().is_some_and(|open| open.is_confirmed)
        } {
            self.follower.wait(NEVER).await;
        }
    }

    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("frontend.log");
        Self { follower: Follower::new(&path, None), path, _folder: folder }
    }

    fn append(&self, text: &str) {
        let mut follower = OpenOptions::new().append(true).create(true).open(&self.path).unwrap();
        follower.write_all(text.as_bytes()).unwrap();
    }

    /// Everything there is now; `|` where the file begins anew.
    async fn read(&mut self) -> String {
        let (mut text, mut quiet) = (String::new(), 0);
        // A change of place is noticed in one turn and acted on in the next.
        while quiet < 3 {
            let mut bytes = Vec::new();
            match self.follower.poll(&mut bytes).await.unwrap() {
                ReadOutcome::More => text.push_str(std::str::from_utf8(&bytes).unwrap()),
                ReadOutcome::Restarted => text.push('|'),
                ReadOutcome::Lost(count) => text.push_str(&format!("<lost {count}>")),
                ReadOutcome::Nothing => quiet += 1,
            }
        }
        text
    }
}

#[tokio::test]
async fn what_is_there_and_what_is_appended_is_read_once() {
    let mut log = Followed::new();
    log.append("one\ntw");
    assert_eq!(log.read().await, "one\ntw");
    assert_eq!(log.read().await, "");
    log.append("o\nthree\n");
    assert_eq!(log.read().await, "o\nthree\n");
}

#[tokio::test]
async fn a_file_that_was_moved_away_is_read_to_its_end_before_the_new_one() {
    let mut log = Followed::new();
    log.append("one\n");
    assert_eq!(log.read().await, "one\n");
    log.append("two\n");
    let moved = log.path.with_extension("1");
    rename(&log.path, &moved).unwrap();
    let mut writer = OpenOptions::new().append(true).open(&moved).unwrap();
    assert_eq!(log.read().await, "two\n", "nothing took its place");
    File::create(&log.path).unwrap();
    writer.write_all(b"two and a half\n").unwrap();
    assert_eq!(log.read().await, "two and a half\n", "the new file is still empty");
    writer.write_all(b"three\n").unwrap();
    log.append("new one\n");
    assert_eq!(log.read().await, "three\n|new one\n");
}

#[tokio::test]
async fn a_file_that_was_emptied_begins_anew() {
    let mut log = Followed::new();
    log.append("one\ntwo\nthree\n");
    assert_eq!(log.read().await, "one\ntwo\nthree\n");
    write(&log.path, "new\n").unwrap();
    assert_eq!(log.read().await, "|new\n");
}

#[tokio::test]
async fn a_file_that_was_emptied_and_has_grown_past_its_old_length_begins_anew() {
    let mut log = Followed::new();
    log.append("one\n");
    assert_eq!(log.read().await, "one\n");
    log.append("two\n");
    assert_eq!(log.read().await, "two\n");
    write(&log.path, "three\nfour\nfive\n").unwrap();
    assert_eq!(log.read().await, "|three\nfour\nfive\n");
    log.append("six\n");
    assert_eq!(log.read().await, "six\n");
}

#[tokio::test]
async fn a_large_file_comes_in_pieces() {
    let mut log = Followed::new();
    let text = "0123456789abcdef".repeat(3 * CHUNK_BYTES / 16 + 1);
    log.append(&text);
    let mut bytes = Vec::new();
    while bytes.is_empty() {
        log.follower.poll(&mut bytes).await.unwrap();
    }
    assert_eq!(bytes.len(), CHUNK_BYTES);
    assert_eq!(log.read().await, text[CHUNK_BYTES..]);
}

#[tokio::test]
async fn what_cannot_be_read_is_an_error_until_it_can() {
    let mut log = Followed::new();
    let mut bytes = Vec::new();
    let error = log.follower.poll(&mut bytes).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    std::fs::create_dir(&log.path).unwrap();
    let error = log.follower.poll(&mut bytes).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
    std::fs::remove_dir(&log.path).unwrap();
    log.append("one\n");
    assert_eq!(log.read().await, "one\n");
    // A directory takes the place of the file for a while; the same file comes back.
    let aside = log.path.with_extension("aside");
    rename(&log.path, &aside).unwrap();
    std::fs::create_dir(&log.path).unwrap();
    while log.follower.poll(&mut bytes).await.is_ok() {}
    std::fs::remove_dir(&log.path).unwrap();
    rename(&aside, &log.path).unwrap();
    log.append("two\n");
    assert!(log.read().await.ends_with("two\n"));
    remove_file(&log.path).unwrap();
}

#[tokio::test]
async fn files_that_were_rotated_twice_between_two_looks_are_read_in_order() {
    let mut log = Followed::new();
    write(log.beside("2"), "of long ago\n").unwrap();
    write(log.path.with_file_name("frontend-2.log"), "of another\n").unwrap();
    log.append("one\n");
    assert_eq!(log.read().await, "one\n");
    log.append("two\n");
    rename(&log.path, log.beside("3")).unwrap();
    log.append("three\n");
    rename(&log.path, log.beside("2")).unwrap();
    log.append("four\n");
    rename(&log.path, log.beside("1")).unwrap();
    log.append("five\n");
    assert_eq!(log.read().await, "two\n|three\n|four\n|five\n");
    log.append("six\n");
    assert_eq!(log.read().await, "six\n");
}

#[tokio::test]
async fn what_was_not_read_before_a_file_was_emptied_is_read_from_its_copy() {
    let mut log = Followed::new();
    log.append("one\n");
    assert_eq!(log.read().await, "one\n");
    log.append("two\n");
    copy(&log.path, log.beside("1")).unwrap();
    write(&log.path, "three\n").unwrap();
    assert_eq!(log.read().await, "two\n|three\n");
    // Twice between two looks.
    log.append("four\n");
    rename(log.beside("1"), log.beside("3")).unwrap();
    copy(&log.path, log.beside("2")).unwrap();
    write(&log.path, "five\n").unwrap();
    copy(&log.path, log.beside("1")).unwrap();
    write(&log.path, "six\n").unwrap();
    assert_eq!(log.read().await, "four\n|five\n|six\n");
}

#[tokio::test]
async fn a_file_that_was_emptied_while_much_of_it_was_unread_is_a_loss() {
    let mut log = Followed::new();
    log.append(&"0123456789abcde\n".repeat(2 * CHUNK_BYTES / 16));
    let mut bytes = Vec::new();
    while bytes.is_empty() {
        assert_eq!(log.follower.poll(&mut bytes).await.unwrap(), ReadOutcome::More);
    }
    write(&log.path, "new\n").unwrap();
    let read = log.read().await;
    assert_eq!(read.replace("<lost 1>", ""), "|new\n");
    assert!(read.contains("<lost 1>"), "{read}");
}

#[tokio::test]
async fn a_file_that_was_removed_and_made_anew_is_followed_on() {
    let mut log = Followed::new();
    log.append("one\n");
    assert_eq!(log.read().await, "one\n");
    log.append("two\n");
    remove_file(&log.path).unwrap();
    log.append("three\n");
    assert_eq!(log.read().await, "two\n|three\n");
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_that_leads_elsewhere_is_followed() {
    use std::os::unix::fs::symlink;
    let mut log = Followed::watched();
    let folder = log.path.parent().unwrap().to_owned();
    for name in ["..1", "..2"] {
        create_dir(folder.join(name)).unwrap();
    }
    write(folder.join("..1/frontend.log"), "one\n").unwrap();
    symlink("..1", folder.join("..data")).unwrap();
    symlink("..data/frontend.log", &log.path).unwrap();
    assert_eq!(log.until("one\n").await, "one\n");
    let mut follower = OpenOptions::new().append(true).open(folder.join("..1/frontend.log")).unwrap();
    follower.write_all(b"two\n").unwrap();
    assert_eq!(log.until("two\n").await, "two\n", "written where the links lead");
    write(folder.join("..2/frontend.log"), "three\n").unwrap();
    symlink("..2", folder.join("..next")).unwrap();
    rename(folder.join("..next"), folder.join("..data")).unwrap();
    assert_eq!(log.until("three\n").await, "|three\n");
    let mut follower = OpenOptions::new().append(true).open(folder.join("..2/frontend.log")).unwrap();
    follower.write_all(b"four\n").unwrap();
    assert_eq!(log.until("four\n").await, "four\n");
}

#[tokio::test]
async fn a_line_comes_by_notification_from_the_first_file_and_from_those_after_it() {
    let mut log = Followed::watched();
    let mut bytes = Vec::new();
    assert!(log.follower.poll(&mut bytes).await.is_err(), "no file yet");
    log.follower.wait(NEVER).await;
    log.append("one\n");
    assert_eq!(log.until("one\n").await, "one\n");
    log.append("two\n");
    assert_eq!(log.until("two\n").await, "two\n");
    rename(&log.path, log.beside("1")).unwrap();
    log.append("three\n");
    assert_eq!(log.until("three\n").await, "|three\n");
    write(&log.path, "four, and longer than before\n").unwrap();
    assert!(log.until("before\n").await.ends_with("|four, and longer than before\n"));
}

#[tokio::test]
async fn a_file_that_came_and_went_unread_is_a_loss() {
    let mut log = Followed::watched();
    log.append("one\n");
    assert_eq!(log.until("one\n").await, "one\n");
    log.confirmed().await;
    rename(&log.path, log.beside("1")).unwrap();
    log.append("two\n");
    remove_file(&log.path).unwrap();
    log.append("three\n");
    assert_eq!(log.until("<lost 1>").await, "|three\n<lost 1>");
    log.confirmed().await;
    rename(&log.path, log.beside("1")).unwrap();
    log.append("four\n");
    assert_eq!(log.until("four\n").await, "|four\n");
    log.confirmed().await;
    log.append("five\n");
    assert_eq!(log.until("five\n").await, "five\n", "rotated once: nothing is lost");
}
