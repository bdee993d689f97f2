//! The page inside the binary, with the encodings that `build.rs` made.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use super::Asset;

/// A file as written by `build.rs`.
struct Packed {
    path: &'static str,
    tag: &'static str,
    plain: &'static [u8],
    brotli: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

static PACKED: &[Packed] = &include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// The page's files.
pub(crate) struct Assets(HashMap<&'static str, Arc<Asset>>);

impl Assets {
    pub(crate) fn new() -> Self {
        let asset = |packed: &Packed| {
            let forms = [packed.brotli, packed.gzip].map(|form| form.map(Bytes::from_static));
            Arc::new(Asset::new(packed.path, Bytes::from_static(packed.plain), forms, packed.tag))
        };
        Self(PACKED.iter().map(|packed| (packed.path, asset(packed))).collect())
    }

    /// A file as it was built.
    pub(in crate::http) fn plain(&self, path: &str) -> Option<Bytes> {
        self.0.get(path).map(|asset| asset.plain.clone())
    }

    /// A file as gzip; `None` if it does not exist or is not smaller.
    pub(in crate::http) fn gzip(&self, path: &str) -> Option<Bytes> {
        self.0.get(path).and_then(|asset| asset.gzip.clone())
    }

    #[expect(clippy::unused_async, reason = "the other implementation reads from disk")]
    pub(super) async fn get(&self, path: &str) -> Option<Arc<Asset>> {
        self.0.get(path).map(Arc::clone)
    }
}
