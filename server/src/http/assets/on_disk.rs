//! The page of a build that is not optimised: read from disk when requested, and again after changes.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use radixscope_compress::{Effort, forms};
use tokio::sync::OnceCell;

use super::Asset;

const DIST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../app/dist");

/// Modification time and length of a file.
type Tag = String;
/// A file that is or will be loaded.
type Cell = Arc<OnceCell<Arc<Asset>>>;

/// The page's files, loaded on demand.
pub(crate) struct Assets(Mutex<HashMap<String, (Tag, Cell)>>);

impl Assets {
    pub(crate) fn new() -> Self {
        Self(Mutex::default())
    }

    /// A file as it was built.
    #[expect(clippy::unused_self, reason = "the other implementation uses self")]
    pub(in crate::http) fn plain(&self, path: &str) -> Option<Bytes> {
        let (file, _) = found(path)?;
        std::fs::read(file).ok().map(Bytes::from)
    }

    /// A file as gzip, with the lowest effort.
    #[expect(clippy::unused_self, reason = "the other implementation uses self")]
    pub(in crate::http) fn gzip(&self, path: &str) -> Option<Bytes> {
        let (file, _) = found(path)?;
        let plain = std::fs::read(file).ok()?;
        radixscope_compress::gzip(&plain, Effort::Least).map(Bytes::from)
    }

    pub(super) async fn get(&self, path: &str) -> Option<Arc<Asset>> {
        let (file, tag) = found(path)?;
        let cell = {
            let mut ready = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let known = ready.entry(path.to_owned()).or_default();
            if known.0 != tag {
                *known = (tag.clone(), Cell::default());
            }
            Arc::clone(&known.1)
        };
        let path = path.to_owned();
        let read = move || {
            let plain = std::fs::read(file).ok()?;
            // The file may change with the next build, and every test's server does this anew.
            let packed = forms(&path, &plain, Effort::Least).map(|form| form.map(Bytes::from));
            Some(Arc::new(Asset::new(&path, plain.into(), packed, &tag)))
        };
        let asset = cell
            .get_or_try_init(|| async { tokio::task::spawn_blocking(read).await.ok().flatten().ok_or(()) });
        asset.await.ok().cloned()
    }
}

/// A file of the page and its tag; paths outside the page's folder are rejected.
fn found(path: &str) -> Option<(PathBuf, Tag)> {
    let is_below = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    let file = Path::new(DIST).join(path);
    let metadata = std::fs::metadata(&file).ok().filter(|metadata| is_below && metadata.is_file())?;
    let written = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some((file, format!("{:x}-{:x}", written.as_nanos(), metadata.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_the_page_is_found() {
        assert!(Path::new(DIST).join("../index.html").is_file(), "there is such a file");
        for path in ["../index.html", "x/../../index.html", "/etc/passwd", "."] {
            assert!(found(path).is_none(), "{path}");
        }
    }
}
