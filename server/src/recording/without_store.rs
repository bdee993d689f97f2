//! Recordings in object storage, in a binary that was built without it.

use std::io::{Error, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::thread::JoinHandle;

use radixscope_model::id::Millis;

use super::backlog::Backlog;
use crate::config::{InvalidOption, StoreAt};

/// There is none.
pub(super) const OPENED_AT_ONCE: usize = 1;

/// There is none.
pub(crate) enum Store {}

impl Store {
    /// Refuses to.
    pub(crate) fn open(at: StoreAt) -> Result<Self, InvalidOption> {
        Err(needs_feature(&at))
    }
}

fn needs_feature(at: &StoreAt) -> InvalidOption {
    InvalidOption::needs_feature(at.to_string(), "object-store")
}

pub(super) fn start(store: Store, _: u64, _: Arc<Backlog>) -> Result<JoinHandle<()>, Error> {
    match store {}
}

/// There is none.
pub(crate) enum StoreFile {}

/// Refuses to.
pub(super) fn open(at: &StoreAt, _: (Millis, Millis)) -> anyhow::Result<Vec<StoreFile>> {
    Err(needs_feature(at).into())
}

impl StoreFile {
    pub(super) fn name(&self) -> String {
        match *self {}
    }

    pub(super) fn len_bytes(&self) -> u64 {
        match *self {}
    }

    pub(super) fn fetched(&self) -> (u64, u64) {
        match *self {}
    }

    pub(super) fn prefetch(_: &[StoreFile]) -> Result<(), Error> {
        Ok(())
    }
}

impl Read for StoreFile {
    fn read(&mut self, _: &mut [u8]) -> Result<usize, Error> {
        match *self {}
    }
}

impl Seek for StoreFile {
    fn seek(&mut self, _: SeekFrom) -> Result<u64, Error> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use crate::config::RecordingAt;

    #[test]
    fn an_address_in_a_bucket_is_refused_and_the_missing_feature_named() {
        let at: RecordingAt = "s3://bucket/dynamo".parse().unwrap();
        let error = crate::recording::open(&[at]).err().unwrap().to_string();
        assert!(error.starts_with("s3://bucket/dynamo: this binary was built without"), "{error}");
        assert!(error.contains("feature object-store, which the released one has"), "{error}");
    }
}
