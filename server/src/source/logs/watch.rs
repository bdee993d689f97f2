//! File system notifications that a log may have changed. Network file systems and some mounts send none, so polling is needed
//! too. Knows names and folders, not file contents.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use notify::event::{AccessKind, AccessMode, ModifyKind, RenameMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use crate::source::file_identity::{Identity, identity};

/// Maximum symbolic links that are followed; more is a loop.
const MAX_LINKS: usize = 8;

/// Watches the folders of a file and of the symbolic links to it.
pub(super) struct Watch {
    watcher: RecommendedWatcher,
    changes: Arc<Changes>,
    folders: BTreeMap<PathBuf, Identity>,
}

/// State shared with the watcher's thread.
#[derive(Default)]
struct Changes {
    changed: Notify,
    /// A file was created, removed or renamed: the path may lead elsewhere.
    is_moved: AtomicBool,
    /// How many files or links appeared under one of `names`.
    appeared: AtomicU64,
    /// The names of the log: its path, and the targets of links.
    names: Mutex<Vec<PathBuf>>,
}

impl Watch {
    /// # Errors
    /// The system has no notifications, or no more watches.
    pub(super) fn new() -> notify::Result<Self> {
        let changes = Arc::new(Changes { is_moved: AtomicBool::new(true), ..Changes::default() });
        let to = Arc::clone(&changes);
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| to.handle(event))?;
        Ok(Self { watcher, changes, folders: BTreeMap::new() })
    }

    /// Updates the watched folders, if the path may lead elsewhere or `must` is set. Returns whether they changed: changes in
    /// between were not notified.
    ///
    /// # Errors
    /// A folder cannot be watched.
    pub(super) async fn retarget(&mut self, path: &Path, must: bool) -> notify::Result<bool> {
        if !self.changes.is_moved.swap(false, Ordering::AcqRel) && !must {
            return Ok(false);
        }
        let path = path.to_owned();
        let names = tokio::task::spawn_blocking(move || names(&path)).await.unwrap_or_default();
        let mut folders = BTreeMap::new();
        for (name, folder) in &names {
            folders.extend(name.parent().map(|parent| (parent.to_owned(), *folder)));
        }
        *self.changes.names.lock().unwrap_or_else(PoisonError::into_inner) =
            names.into_iter().map(|(name, _)| name).collect();
        if folders == self.folders {
            return Ok(false);
        }
        for (folder, id) in std::mem::take(&mut self.folders) {
            if folders.get(&folder) != Some(&id) {
                // Fails if the folder was removed, which removes the watch too.
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

    /// How many files appeared under the log's names; may lag by milliseconds.
    pub(super) fn appeared(&self) -> u64 {
        self.changes.appeared.load(Ordering::Acquire)
    }

    /// Waits for a change since the last call.
    pub(super) async fn changed(&self) {
        self.changes.changed.notified().await;
    }
}

impl Changes {
    fn handle(&self, event: notify::Result<Event>) {
        let Ok(event) = event else {
            self.moved();
            return;
        };
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        match event.kind {
            // A write to the log or to a rotated file.
            EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Any)
            | EventKind::Access(AccessKind::Close(AccessMode::Write)) => {
                let is_ours = |path: &PathBuf| names.iter().any(|name| is_like(path, name));
                if event.need_rescan() || event.paths.iter().any(is_ours) {
                    self.changed.notify_one();
                }
            }
            // Reads, including our own.
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

/// Whether a name is that of the log or of a rotated file.
fn is_like(path: &Path, log: &Path) -> bool {
    let bytes = |path: &Path| path.file_name().map(|name| name.as_encoded_bytes().to_owned());
    let stem = log.file_stem().map(|stem| stem.as_encoded_bytes().to_owned());
    path.parent() == log.parent() && bytes(path).zip(stem).is_some_and(|(name, stem)| name.starts_with(&stem))
}

/// The names through which a path leads to its file, each with its canonical folder, and the folder's identity.
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
