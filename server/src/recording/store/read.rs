//! Objects read by ranges: blocks that were read lately stay in memory within a bound, and what is read one after the other is fetched in larger
//! pieces. Requests are sent by a thread of its own, so that any code that reads files can read objects.

use std::collections::HashMap;
use std::io::{Error, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt as _};

use radixscope_model::id::Millis;
use radixscope_model::number_format::plural;

use super::Store;
use super::failure::StoreFailure;
use super::layout::MCAP;
use crate::config::StoreAt;
use crate::recording::files::began_ms;
use crate::source::{doubled, with_jitter};

/// What is fetched and kept at once. A chunk of a recording is about as large.
const BLOCK_BYTES: u64 = 64 << 10;
/// Most blocks that stay in memory: 32 MiB.
const MAX_BLOCKS: usize = 512;
/// Most blocks fetched at once for one read: 8 MiB.
const MAX_READ_BLOCKS: u64 = 128;
/// Most blocks fetched at once where reads follow each other: 2 MiB.
const MAX_AHEAD_BLOCKS: u64 = 32;
/// Files whose ends are fetched at the same time when a recording is opened, and requests at a time.
pub(in crate::recording) const OPENED_AT_ONCE: usize = 64;
const REQUESTS_AT_ONCE: usize = 16;
/// Blocks at a file's end that are fetched then: its index.
const END_BLOCKS: u64 = 2;
/// Most objects that are listed: a file every 5 min for a year.
const MAX_LISTED: usize = 120_000;
/// Names of recordings in an error.
const MAX_NAMED: usize = 5;
/// Attempts to read a range, and waits between them.
const ATTEMPTS: u32 = 4;
const RETRY_FIRST: Duration = Duration::from_millis(500);
const RETRY_LONGEST: Duration = Duration::from_secs(5);

/// A range of an object, and who waits for it.
struct Request {
    object: Path,
    range: Range<u64>,
    to: SyncSender<Result<Bytes, StoreFailure>>,
}

/// The blocks in memory, of several files.
#[derive(Default)]
struct Cache {
    blocks: HashMap<(usize, u64), (Bytes, u64)>,
    /// Counts uses.
    now: u64,
}

impl Cache {
    fn get(&mut self, key: (usize, u64)) -> Option<Bytes> {
        self.now += 1;
        let (block, used) = self.blocks.get_mut(&key)?;
        *used = self.now;
        Some(block.clone())
    }

    fn put(&mut self, key: (usize, u64), block: Bytes) {
        self.now += 1;
        if self.blocks.len() >= MAX_BLOCKS
            && let Some(oldest) = self.blocks.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| *key)
        {
            self.blocks.remove(&oldest);
        }
        self.blocks.insert(key, (block, self.now));
    }
}

/// What the files of one recording share.
struct Reads {
    store: Store,
    requests: SyncSender<Vec<Request>>,
    cache: Mutex<Cache>,
    fetched_bytes: AtomicU64,
    fetches: AtomicU64,
}

/// An object, read like a file.
pub(crate) struct StoreFile {
    reads: Arc<Reads>,
    number: usize,
    object: Path,
    len: u64,
    at: u64,
    /// The block after those that were fetched last, and how many these were.
    next: u64,
    ahead: u64,
}

/// The objects of one recording, oldest first; with `between`, only those that may hold something of that time.
///
/// # Errors
/// The store cannot be read, or holds no recording there, or several.
pub(crate) fn open(at: &StoreAt, between: (Millis, Millis)) -> anyhow::Result<Vec<StoreFile>> {
    let store = Store::open(at.clone())?;
    let (requests, received) = sync_channel(1);
    let (found_to, found) = sync_channel(1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let of_thread = store.clone();
    let thread = std::thread::Builder::new().name("store-read".to_owned());
    thread.spawn(move || {
        let found = runtime.block_on(list(&of_thread));
        if found_to.send(found).is_ok() {
            serve(&of_thread, &runtime, &received);
        }
    })?;
    let found = found.recv().context("the thread that reads from the store ended")?;
    let objects = one_recording(at, found.with_context(|| at.to_string())?, between)?;
    let (cache, fetched_bytes, fetches) = Default::default();
    let reads = Arc::new(Reads { store, requests, cache, fetched_bytes, fetches });
    let file = |(number, object): (usize, ObjectMeta)| StoreFile {
        reads: Arc::clone(&reads),
        number,
        object: object.location,
        len: object.size,
        at: 0,
        next: u64::MAX,
        ahead: 0,
    };
    Ok(objects.into_iter().enumerate().map(file).collect())
}

/// The recordings' objects under the prefix; an object itself if the address names one.
async fn list(store: &Store) -> Result<Vec<ObjectMeta>, StoreFailure> {
    let prefix = &store.prefix;
    if is_recording(prefix) {
        let found = store.head(prefix).await?;
        return Ok(found.into_iter().collect());
    }
    let found = store.objects.list(Some(prefix).filter(|prefix| !prefix.as_ref().is_empty()));
    let found =
        found.take(MAX_LISTED).try_filter(|object| std::future::ready(is_recording(&object.location)));
    found.try_collect().await.map_err(|error| store.failure(&error))
}

fn is_recording(object: &Path) -> bool {
    object.extension() == Some(MCAP)
}

/// The objects of the only recording among them.
fn one_recording(
    at: &StoreAt,
    mut found: Vec<ObjectMeta>,
    (from, to): (Millis, Millis),
) -> anyhow::Result<Vec<ObjectMeta>> {
    let folder = |object: &ObjectMeta| {
        let name = object.location.as_ref();
        name.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned()
    };
    let mut latest: HashMap<String, _> = HashMap::new();
    for object in &found {
        let last = latest.entry(folder(object)).or_insert(object.last_modified);
        *last = object.last_modified.max(*last);
    }
    if latest.len() > 1 {
        let mut folders: Vec<_> = latest.into_iter().collect();
        folders.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let count = plural(folders.len() as u64, "recording", "recordings");
        let address = |(folder, _): &(String, _)| format!("{}://{}/{folder}", at.kind.scheme(), at.bucket);
        let named: Vec<_> = folders.iter().take(MAX_NAMED).map(address).collect();
        bail!("{count} are under {at}; name one of them, the latest first: {}", named.join(", "));
    }
    if found.is_empty() {
        return Err(anyhow!("no recording is under {at}: no object there ends with .{MCAP}"));
    }
    let began = |object: &ObjectMeta| began_ms(std::path::Path::new(object.location.as_ref()));
    found.sort_by_key(|object| (began(object), object.location.clone()));
    // A file of another name may be of any time.
    let first =
        found.iter().rposition(|object| began(object).is_some_and(|began| began <= from)).unwrap_or(0);
    found.drain(..first);
    found.retain(|object| began(object).is_none_or(|began| began <= to));
    match found.is_empty() {
        true => Err(anyhow!("the recording under {at} begins after that time")),
        false => Ok(found),
    }
}

/// Fetches ranges until nobody reads any more.
fn serve(store: &Store, runtime: &tokio::runtime::Runtime, received: &Receiver<Vec<Request>>) {
    while let Ok(requests) = received.recv() {
        let each = futures_util::stream::iter(requests).for_each_concurrent(
            REQUESTS_AT_ONCE,
            async |Request { object, range, to }| {
                // The reader may have given up.
                let _ = to.send(fetch(store, &object, range).await);
            },
        );
        runtime.block_on(each);
    }
}

async fn fetch(store: &Store, object: &Path, range: Range<u64>) -> Result<Bytes, StoreFailure> {
    let mut attempt = 0;
    loop {
        let failure = match store.objects.get_range(object, range.clone()).await {
            Ok(bytes) if bytes.len() as u64 == range.end - range.start => return Ok(bytes),
            Ok(_) => StoreFailure::passing("the store sent less than was asked for"),
            Err(error) => store.failure(&error),
        };
        attempt += 1;
        if attempt == ATTEMPTS || !failure.is_passing {
            return Err(failure);
        }
        tokio::time::sleep(with_jitter(doubled(RETRY_FIRST, attempt - 1, RETRY_LONGEST))).await;
    }
}

impl StoreFile {
    /// Its address.
    pub(crate) fn name(&self) -> String {
        let at = &self.reads.store.at;
        format!("{}://{}/{}", at.kind.scheme(), at.bucket, self.object)
    }

    /// Bytes of the object.
    pub(crate) const fn len_bytes(&self) -> u64 {
        self.len
    }

    /// Bytes fetched of all files so far, and in how many requests.
    pub(crate) fn fetched(&self) -> (u64, u64) {
        (self.reads.fetched_bytes.load(Ordering::Relaxed), self.reads.fetches.load(Ordering::Relaxed))
    }

    /// Fetches the beginnings and ends of several files at the same time, for their headers and indices.
    pub(crate) fn prefetch(files: &[StoreFile]) -> Result<(), Error> {
        let Some(first) = files.first() else { return Ok(()) };
        let ends = files.iter().flat_map(|file| {
            let blocks = file.len.div_ceil(BLOCK_BYTES);
            let end = blocks.saturating_sub(END_BLOCKS).max(1);
            [(file, 0..1.min(blocks)), (file, end..blocks)]
        });
        first.reads.fetch(ends.filter(|(_, blocks)| !blocks.is_empty()))
    }

    /// Fetches the block at the position, and more as far as they are needed or likely to be.
    fn fetch(&mut self, block: u64, wanted: u64) -> Result<(), Error> {
        self.ahead = if block == self.next { (self.ahead * 2).min(MAX_AHEAD_BLOCKS) } else { 1 };
        let needed =
            (self.at % BLOCK_BYTES).saturating_add(wanted).div_ceil(BLOCK_BYTES).min(MAX_READ_BLOCKS);
        let most = needed.max(self.ahead).min(self.len.div_ceil(BLOCK_BYTES) - block);
        // What is in memory is not fetched again.
        let cache = self.reads.cache();
        let is_cached = |more: &u64| cache.blocks.contains_key(&(self.number, block + more));
        let count = (1..most).find(is_cached).unwrap_or(most);
        drop(cache);
        self.ahead = self.ahead.max(count.min(MAX_AHEAD_BLOCKS));
        self.next = block + count;
        self.reads.fetch(std::iter::once((&*self, block..block + count)))
    }
}

impl Reads {
    fn cache(&self) -> std::sync::MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fetches blocks of files at the same time.
    fn fetch<'f>(&self, of: impl Iterator<Item = (&'f StoreFile, Range<u64>)>) -> Result<(), Error> {
        let mut requests = Vec::new();
        let mut responses = Vec::new();
        for (file, blocks) in of {
            let range = blocks.start * BLOCK_BYTES..(blocks.end * BLOCK_BYTES).min(file.len);
            let (to, response) = sync_channel(1);
            requests.push(Request { object: file.object.clone(), range, to });
            responses.push((file, blocks.start, response));
        }
        let ended = || Error::other("the thread that reads from the store ended");
        self.requests.send(requests).map_err(|_| ended())?;
        for (file, first, response) in responses {
            let bytes = response.recv().map_err(|_| ended())?;
            let bytes = bytes.map_err(|failure| Error::other(format!("{}: {failure}", file.name())))?;
            self.fetched_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            self.fetches.fetch_add(1, Ordering::Relaxed);
            let mut cache = self.cache();
            for (block, bytes) in (first..).zip(bytes.chunks(BLOCK_BYTES as usize)) {
                // Copied, so that a block that stays does not keep its neighbours.
                cache.put((file.number, block), Bytes::copy_from_slice(bytes));
            }
        }
        Ok(())
    }
}

impl Read for StoreFile {
    fn read(&mut self, to: &mut [u8]) -> Result<usize, Error> {
        if self.at >= self.len || to.is_empty() {
            return Ok(0);
        }
        let block = self.at / BLOCK_BYTES;
        let key = (self.number, block);
        let cached = self.reads.cache().get(key);
        let bytes = match cached {
            Some(bytes) => bytes,
            None => {
                self.fetch(block, to.len() as u64)?;
                let missing = || Error::other("a block that was fetched is gone");
                self.reads.cache().get(key).ok_or_else(missing)?
            }
        };
        let from = usize::try_from(self.at % BLOCK_BYTES).unwrap_or(usize::MAX);
        let rest = bytes.get(from..).unwrap_or_default();
        let len = rest.len().min(to.len());
        to[..len].copy_from_slice(&rest[..len]);
        self.at += len as u64;
        Ok(len)
    }
}

impl Seek for StoreFile {
    fn seek(&mut self, to: SeekFrom) -> Result<u64, Error> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.len.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| Error::from(ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}
