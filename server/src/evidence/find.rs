//! Finds the files in folders and archives. Nothing is ever written under a name that an archive has, and names are shown without
//! control characters.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use radixscope_model::id::Millis;

use super::bounds::{Counted, Guarded};
use super::kind::{self, Archive};
use crate::source::gzip::{Unpacked, is_gzip};

/// Most files, of folders and archives together.
const MAX_FILES: usize = 16_384;
/// Most folders within each other.
const MAX_DEPTH: usize = 16;
/// Longest name that is shown whole, in characters.
const MAX_NAME_CHARS: usize = 200;
/// Most bytes that are read of what stands before an entry of a tar archive: its long name.
const MAX_EXTENSION_BYTES: u64 = 64 << 10;
/// As much as shows whether a file is an archive.
const ARCHIVE_HEAD_BYTES: u64 = 512;

/// A file that was found.
pub(super) struct Found<'f> {
    /// As it is shown: its path, or its name in an archive behind the archive's path.
    pub(super) name: String,
    /// Where it lies by itself; `None`: in an archive.
    pub(super) path: Option<&'f Path>,
    /// When it was last changed, as the file system or the archive has it.
    pub(super) modified: Option<Millis>,
    /// Its content, or why it is not read.
    pub(super) content: Result<&'f mut dyn Read, String>,
}

/// Gives every file to `each`, folders by name, until it fails.
///
/// # Errors
/// A path does not exist or cannot be read, or `each` failed.
pub(super) fn find(paths: &[PathBuf], each: &mut dyn FnMut(Found<'_>) -> io::Result<()>) -> io::Result<()> {
    let mut finder = Finder { each, files: 0, base: PathBuf::new() };
    for path in paths {
        finder.base = path.parent().map(Path::to_owned).unwrap_or_default();
        let metadata = fs::metadata(path).map_err(|error| with_path(path, &error))?;
        if metadata.is_dir() {
            finder.folder(path)?;
        } else if metadata.is_file() {
            finder.file(path)?;
        } else {
            finder.refuse(finder.name(path), "neither a file nor a folder".to_owned())?;
        }
    }
    Ok(())
}

fn with_path(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// A name without control characters, and not too long.
pub(super) fn shown(name: &str) -> String {
    let mut shown = String::new();
    for (at, c) in name.chars().enumerate() {
        if at == MAX_NAME_CHARS {
            shown.push('…');
            break;
        }
        // Also what turns the direction of the text.
        let is_odd = c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if is_odd { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    shown
}

struct Finder<'e> {
    each: &'e mut dyn FnMut(Found<'_>) -> io::Result<()>,
    files: usize,
    /// Where the path lies that is searched: names begin behind it, so that reports tell nothing of the machine.
    base: PathBuf,
}

impl Finder<'_> {
    fn name(&self, path: &Path) -> String {
        shown(&path.strip_prefix(&self.base).unwrap_or(path).display().to_string())
    }

    fn refuse(&mut self, name: String, why: String) -> io::Result<()> {
        (self.each)(Found { name, path: None, modified: None, content: Err(why) })
    }

    fn give_packed(
        &mut self,
        name: String,
        modified: Option<Millis>,
        content: &mut dyn Read,
    ) -> io::Result<()> {
        (self.each)(Found { name, path: None, modified, content: Ok(content) })
    }

    /// Whether there may be one more file; `name` is where the rest lies.
    fn has_room(&mut self, name: &str) -> io::Result<bool> {
        self.files += 1;
        if self.files == MAX_FILES + 1 {
            let why = format!("more than {MAX_FILES} files: from here on they are not read");
            self.refuse(name.to_owned(), why)?;
        }
        Ok(self.files <= MAX_FILES)
    }

    fn folder(&mut self, top: &Path) -> io::Result<()> {
        // Depth first, by name: what is pushed last comes next.
        let mut stack = vec![(top.to_owned(), 0)];
        while let Some((path, depth)) = stack.pop() {
            let name = self.name(&path);
            let metadata = match fs::symlink_metadata(&path) {
                Ok(metadata) => metadata,
                Err(error) => {
                    self.refuse(name, error.to_string())?;
                    continue;
                }
            };
            if metadata.is_dir() || depth == 0 {
                if depth == MAX_DEPTH {
                    self.refuse(name, format!("more than {MAX_DEPTH} folders deep"))?;
                    continue;
                }
                match entries(&path) {
                    Ok(entries) => stack.extend(entries.into_iter().rev().map(|entry| (entry, depth + 1))),
                    Err(error) => self.refuse(name, error.to_string())?,
                }
                continue;
            }
            if !self.has_room(&name)? {
                return Ok(());
            }
            if metadata.is_file() {
                self.opened(&path)?;
            } else if metadata.is_symlink() {
                self.refuse(name, "a symbolic link, which is not followed".to_owned())?;
            } else {
                self.refuse(name, "no regular file".to_owned())?;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> io::Result<()> {
        match self.has_room(&self.name(path))? {
            true => self.opened(path),
            false => Ok(()),
        }
    }

    fn opened(&mut self, path: &Path) -> io::Result<()> {
        let name = self.name(path);
        let opened = File::open(path).and_then(|file| Ok((archive_of(&file)?, file)));
        let (archive, mut file) = match opened {
            Ok(opened) => opened,
            Err(error) => return self.refuse(name, error.to_string()),
        };
        let modified = file.metadata().and_then(|metadata| metadata.modified()).ok().and_then(unix_ms);
        match archive {
            None => (self.each)(Found { name, path: Some(path), modified, content: Ok(&mut file) }),
            Some((Archive::Zip, false)) => self.zip(&name, file),
            Some((Archive::Zip, true)) => {
                self.refuse(name, "a zip archive within gzip: unpack it first".to_owned())
            }
            Some((Archive::Tar, is_packed)) => {
                let counted = Counted::new(BufReader::new(file));
                let bytes = counted.counter();
                if !is_packed {
                    return self.tar(&name, counted, &bytes, |_| None);
                }
                self.tar(&name, Guarded::new(Unpacked::new(counted), Rc::clone(&bytes)), &bytes, |packed| {
                    packed.inner().problem()
                })
            }
        }
    }

    /// `problem` says what was wrong with what the archive was read from.
    fn tar<R: Read>(
        &mut self,
        name: &str,
        from: R,
        bytes: &Rc<Cell<u64>>,
        problem: impl Fn(&R) -> Option<String>,
    ) -> io::Result<()> {
        let mut archive = tar::Archive::new(from);
        // Raw: otherwise the library reads names of any length into memory.
        let entries = match archive.entries() {
            Ok(entries) => entries.raw(true),
            Err(error) => return self.refuse(name.to_owned(), error.to_string()),
        };
        let (mut broken, mut long) = (None, TarExtension::default());
        for entry in entries {
            let mut entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    broken = Some(error.to_string());
                    break;
                }
            };
            let kind = entry.header().entry_type();
            if kind.is_gnu_longname() || kind.is_pax_local_extensions() {
                long.read(kind.is_gnu_longname(), &mut entry);
                continue;
            }
            if kind.is_dir() || kind.is_pax_global_extensions() || kind.is_gnu_longlink() {
                continue;
            }
            let TarExtension { path, has_size } = std::mem::take(&mut long);
            let path = path.unwrap_or_else(|| entry.path_bytes().into_owned());
            let inner = shown(&format!("{name}!{}", String::from_utf8_lossy(&path)));
            if has_size {
                broken = Some(format!("{inner} has more than 8 GiB"));
                break;
            }
            if !self.has_room(&inner)? {
                return Ok(());
            }
            if !(kind.is_file() || kind.is_contiguous()) {
                let why = "a link, a device or a sparse file in an archive, which is not followed";
                self.refuse(inner, why.to_owned())?;
                continue;
            }
            let modified = entry.header().mtime().ok().and_then(|s| s.checked_mul(1_000)).map(Millis);
            self.give_packed(inner, modified, &mut Guarded::new(&mut entry, Rc::clone(bytes)))?;
        }
        let why = problem(&archive.into_inner()).or(broken);
        match why {
            Some(why) => self.refuse(name.to_owned(), format!("{why}: what lies behind is not read")),
            None => Ok(()),
        }
    }

    fn zip(&mut self, name: &str, file: File) -> io::Result<()> {
        let counted = Counted::new(BufReader::new(file));
        let bytes = counted.counter();
        let mut archive = match zip::ZipArchive::new(counted) {
            Ok(archive) => archive,
            Err(error) => return self.refuse(name.to_owned(), error.to_string()),
        };
        for at in 0..archive.len() {
            if !self.has_room(name)? {
                return Ok(());
            }
            let mut entry = match archive.by_index(at) {
                Ok(entry) => entry,
                Err(error) => {
                    self.refuse(format!("{name}!{at}"), error.to_string())?;
                    continue;
                }
            };
            if entry.is_dir() {
                continue;
            }
            let inner = shown(&format!("{name}!{}", entry.name()));
            if !entry.is_file() {
                self.refuse(inner, "a link in an archive, which is not followed".to_owned())?;
                continue;
            }
            let modified = entry.last_modified().and_then(zip_ms);
            self.give_packed(inner, modified, &mut Guarded::new(&mut entry, Rc::clone(&bytes)))?;
        }
        Ok(())
    }
}

/// What stands before an entry of a tar archive, and is of that entry.
#[derive(Default)]
struct TarExtension {
    path: Option<Vec<u8>>,
    /// Its size does not fit into its header. Entries behind it would not be found.
    has_size: bool,
}

impl TarExtension {
    /// Reads the beginning of an extension, which is more than any real one has.
    fn read(&mut self, is_long_name: bool, from: &mut dyn Read) {
        let mut bytes = Vec::new();
        // What is broken shows at the next entry.
        if from.take(MAX_EXTENSION_BYTES).read_to_end(&mut bytes).is_err() {
            return;
        }
        if is_long_name {
            self.path = bytes.split(|&byte| byte == 0).next().map(<[u8]>::to_vec);
            return;
        }
        for extension in tar::PaxExtensions::new(&bytes).flatten() {
            match extension.key_bytes() {
                b"path" => self.path = Some(extension.value_bytes().to_vec()),
                b"size" => self.has_size = true,
                _ => {}
            }
        }
    }
}

/// By name.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.take(MAX_FILES + 1);
    let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.sort();
    Ok(paths)
}

/// Whether a file is an archive, and whether gzip lies around it. It is read from its beginning afterwards.
fn archive_of(mut file: &File) -> io::Result<Option<(Archive, bool)>> {
    let head = |from: &mut dyn Read| {
        let mut head = Vec::new();
        from.take(ARCHIVE_HEAD_BYTES).read_to_end(&mut head).map(|_| head)
    };
    let plain = head(&mut file)?;
    file.rewind()?;
    if !is_gzip(&plain) {
        return Ok(kind::archive(&plain).map(|archive| (archive, false)));
    }
    let unpacked = head(&mut Unpacked::new(file))?;
    file.rewind()?;
    Ok(kind::archive(&unpacked).map(|archive| (archive, true)))
}

fn unix_ms(at: SystemTime) -> Option<Millis> {
    let since = at.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok().map(Millis)
}

/// A time in a zip archive has no zone; it is taken for UTC.
fn zip_ms(at: zip::DateTime) -> Option<Millis> {
    let month = time::Month::try_from(at.month()).ok()?;
    let date = time::Date::from_calendar_date(at.year().into(), month, at.day()).ok()?;
    let time = date.with_hms(at.hour(), at.minute(), at.second()).ok()?;
    let s = u64::try_from(time.assume_utc().unix_timestamp()).ok()?;
    Some(Millis(s * 1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_without_what_a_terminal_would_obey() {
        assert_eq!(shown("a\x1b[2Jb\n"), "a\\u{1b}[2Jb\\u{a}");
        assert_eq!(shown("x\u{202e}y"), "x\\u{202e}y");
        assert_eq!(shown("../../etc/ünï"), "../../etc/ünï");
        assert_eq!(shown(&"z".repeat(10_000)).chars().count(), MAX_NAME_CHARS + 1);
    }
}
