//! Notifications that a log may have changed, by the system's own means. Network file systems and some mounts send none, so
//! nobody may rely on them. Knows names and folders, never what is in a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use notify::event::{AccessKind, AccessMode, ModifyKind, RenameMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use super::file::{Identity, identity};

/// Links from one name to the next that are followed: more is a circle.
const MAX_LINKS: usize = 8;

/// Watches the folders through which a path leads to its file: the file's own and those of the links to it.
pub(super) struct Watch {
    watcher: RecommendedWatcher,
    seen: Arc<Seen>,
    folders: BTreeMap<PathBuf, Identity>,
}

/// What the watcher's thread leaves for us.
#[derive(Default)]
struct Seen {
    changed: Notify,
    /// Something came, went or was renamed: the path may lead elsewhere.
    is_moved: AtomicBool,
    /// Times that a file or link took one of `names`.
    appeared: AtomicU64,
    /// The names of the log: its own, and those that links lead to.
    names: Mutex<Vec<PathBuf>>,
}

impl Watch {
    /// # Errors
    /// The system gives no more watches, or knows none.
    pub(super) fn new() -> notify::Result<Self> {
        let seen = Arc::new(Seen { is_moved: AtomicBool::new(true), ..Seen::default() });
        let to = Arc::clone(&seen);
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| to.take(event))?;
        Ok(Self { watcher, seen, folders: BTreeMap::new() })
    }

    /// Watches where the path leads now, if it may have changed or `must`. Gives whether something else is watched than
    /// before: what happened in between was not notified.
    ///
    /// # Errors
    /// A folder cannot be watched.
    pub(super) async fn aim(&mut self, path: &Path, must: bool) -> notify::Result<bool> {
        if !self.seen.is_moved.swap(false, Ordering::AcqRel) && !must {
            return Ok(false);
        }
        let path = path.to_owned();
        let names = tokio::task::spawn_blocking(move || names(&path)).await.unwrap_or_default();
        let mut folders = BTreeMap::new();
        for (name, folder) in &names {
            folders.extend(name.parent().map(|parent| (parent.to_owned(), *folder)));
        }
        *self.seen.names.lock().unwrap_or_else(PoisonError::into_inner) =
            names.into_iter().map(|(name, _)| name).collect();
        if folders == self.folders {
            return Ok(false);
        }
        for (folder, id) in std::mem::take(&mut self.folders) {
            if folders.get(&folder) != Some(&id) {
                // Nothing to be done if it is gone, and with it its watch.
                let _ = self.watcher.unwatch(&folder);
            } else {
                self.folders.insert(folder, id);
            }
        }
        for (folder, id) in folders {
            if !self.folders.contains_key(&folder) {
                self.watcher.watch(&folder, RecursiveMode::NonRecursive)?;
                self.folders.insert(folder, id);
            }
        }
        Ok(true)
    }

    /// Times that a file took the log's name since the beginning; it may be late by milliseconds.
    pub(super) fn appeared(&self) -> u64 {
        self.seen.appeared.load(Ordering::Acquire)
    }

    /// Waits for something to happen to the log; what happened since the last call counts too.
    pub(super) async fn changed(&self) {
        self.seen.changed.notified().await;
    }
}

impl Seen {
    fn take(&self, event: notify::Result<Event>) {
        let Ok(event) = event else {
            self.moved();
            return;
        };
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        match event.kind {
            // Somebody wrote to one of them, or to one that had its name before.
            EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Any)
            | EventKind::Access(AccessKind::Close(AccessMode::Write)) => {
                let is_ours = |path: &PathBuf| names.iter().any(|name| is_like(path, name));
                if event.need_rescan() || event.paths.iter().any(is_ours) {
                    self.changed.notify_one();
                }
            }
            // Readers, us among them.
            EventKind::Access(_) => {}
            kind => {
                let comes = matches!(
                    kind,
                    EventKind::Create(_) | EventKind::Modify(ModifyKind::Name(RenameMode::To))
                );
                if comes && event.paths.iter().any(|path| names.contains(path)) {
                    self.appeared.fetch_add(1, Ordering::AcqRel);
                }
                self.moved();
            }
        }
    }

    fn moved(&self) {
        self.is_moved.store(true, Ordering::Release);
        self.changed.notify_one();
    }
}

/// Whether a file is called like a log, or like one that was moved away.
fn is_like(path: &Path, log: &Path) -> bool {
    let bytes = |path: &Path| path.file_name().map(|name| name.as_encoded_bytes().to_owned());
    let stem = log.file_stem().map(|stem| stem.as_encoded_bytes().to_owned());
    path.parent() == log.parent() && bytes(path).zip(stem).is_some_and(|(name, stem)| name.starts_with(&stem))
}

/// The names through which a path leads to its file, each in a folder by its own name, with the folder's identity.
fn names(path: &Path) -> Vec<(PathBuf, Identity)> {
    let (mut names, mut next) = (Vec::new(), Some(path.to_owned()));
    while let Some(path) = next.take().filter(|_| names.len() < MAX_LINKS) {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { break };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let Ok(folder) = folder.canonicalize() else { break };
        let Ok(metadata) = folder.metadata() else { break };
        let name = folder.join(name);
        next = name.read_link().ok().map(|to| folder.join(to));
        names.push((name, identity(&metadata)));
    }
    names
}
