//! Slots for recording downloads: a bounded number at a time, and only downloads that are not waiting for their client use CPU
//! time. If all slots are taken, the download with the slowest client is closed.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;

use crate::http::listen::ConnectionSlot;

/// Maximum concurrent downloads. Each holds a segment of the history (or a chunk of a file), a compression buffer and
/// [`MAX_WAITING`] parts, about 50 MiB for a report, and a thread.
const MAX_READERS: usize = 4;
/// Maximum downloads that are compressed at a time.
const MAX_COMPUTING: usize = 2;
/// Maximum clients that wait for a slot, in order; more are rejected at once.
const MAX_QUEUED: usize = 16;
/// Maximum waiting time.
const QUEUED_WITHIN: Duration = Duration::from_secs(5);
/// How often the first of them retries: a client becomes slow with time, without an event.
const RETRY_EVERY: Duration = Duration::from_millis(50);
/// Buffered parts per download.
pub(super) const MAX_WAITING: usize = 4;
/// A download that waited this long for its client may be closed for another: it reads less than about 1 MiB/s.
const SLOW_AFTER: Duration = Duration::from_millis(500);
/// Decay of the waiting time per part, so that about the last eight parts count.
const WAIT_DECAY: f64 = 7.0 / 8.0;

/// All downloads.
#[derive(Debug)]
pub(in crate::http) struct Readers {
    computing: Arc<Semaphore>,
    queued: Semaphore,
    first: Semaphore,
    next: AtomicU64,
    open: Mutex<HashMap<u64, ActiveDownload>>,
    /// Downloads that were closed for others.
    pub(in crate::http) evicted: AtomicU64,
}

/// An active download.
#[derive(Debug)]
struct ActiveDownload {
    /// Its connection; `None`: an in-process reader.
    connection: Option<Arc<ConnectionSlot>>,
    /// How long it waited for its client, with decay.
    waited: Duration,
    /// Since when it is waiting for its client.
    waits_since: Option<Instant>,
}

impl ActiveDownload {
    fn slowness(&self) -> Duration {
        self.waited + self.waits_since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

/// A download's slot, released when dropped.
#[derive(Debug)]
pub(super) struct Reader {
    id: u64,
    of: Arc<Readers>,
}

impl Default for Readers {
    fn default() -> Self {
        Self {
            computing: Arc::new(Semaphore::new(MAX_COMPUTING)),
            queued: Semaphore::new(MAX_QUEUED),
            first: Semaphore::new(1),
            next: AtomicU64::new(0),
            open: Mutex::default(),
            evicted: AtomicU64::new(0),
        }
    }
}

impl Readers {
    /// Active downloads.
    pub(in crate::http) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Waits for a slot. `None`: all are taken and no client is slow, or too many are waiting.
    pub(super) async fn slot(self: &Arc<Self>, connection: Option<Arc<ConnectionSlot>>) -> Option<Reader> {
        let _queued = self.queued.try_acquire().ok()?;
        let entered = async {
            let _first = self.first.acquire().await.ok()?;
            loop {
                if let Some(reader) = self.try_slot(connection.clone()) {
                    return Some(reader);
                }
                tokio::time::sleep(RETRY_EVERY).await;
            }
        };
        tokio::time::timeout(QUEUED_WITHIN, entered).await.ok().flatten()
    }

    /// A slot; `None` if all are taken and no client is slow.
    fn try_slot(self: &Arc<Self>, connection: Option<Arc<ConnectionSlot>>) -> Option<Reader> {
        let mut open = self.lock();
        if open.len() >= MAX_READERS && !self.evict_slowest(&mut open) {
            return None;
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        open.insert(id, ActiveDownload { connection, waited: Duration::ZERO, waits_since: None });
        Some(Reader { id, of: Arc::clone(self) })
    }

    /// Closes the connection of the slowest client; false if none is slow.
    fn evict_slowest(&self, open: &mut HashMap<u64, ActiveDownload>) -> bool {
        let slow = open.iter().filter_map(|(id, one)| {
            let connection = one.connection.as_ref()?;
            Some((one.slowness(), *id, Arc::clone(connection)))
                .filter(|(slowness, ..)| *slowness >= SLOW_AFTER)
        });
        let Some((_, id, connection)) = slow.max_by_key(|(slowness, id, _)| (*slowness, *id)) else {
            return false;
        };
        open.remove(&id);
        connection.close();
        self.evicted.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, ActiveDownload>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader {
    /// Waits for a permit to compute.
    pub(super) async fn compute_permit(&self) -> io::Result<OwnedSemaphorePermit> {
        let compute_permit = Arc::clone(&self.of.computing).acquire_owned().await;
        compute_permit.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Sends a part; the time counts as waiting for the client.
    fn send(&self, parts: &mpsc::Sender<io::Result<Bytes>>, part: Bytes) -> io::Result<()> {
        self.with(|open| open.waits_since = Some(Instant::now()));
        let sent = parts.blocking_send(Ok(part));
        self.with(|open| {
            let waited = open.waits_since.take().map_or(Duration::ZERO, |since| since.elapsed());
            open.waited = open.waited.mul_f64(WAIT_DECAY) + waited;
        });
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn with(&self, change: impl FnOnce(&mut ActiveDownload)) {
        if let Some(open) = self.of.lock().get_mut(&self.id) {
            change(open);
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.of.lock().remove(&self.id);
    }
}

/// Bytes of a part.
const PART_BYTES: usize = 64 * 1024;

/// Sends the written bytes in parts. The compute permit is released while a part is sent.
pub(super) struct Pipe {
    parts: mpsc::Sender<io::Result<Bytes>>,
    filled: Vec<u8>,
    reader: Reader,
    compute_permit: Option<OwnedSemaphorePermit>,
    runtime: Handle,
}

impl Pipe {
    pub(super) fn new(
        parts: mpsc::Sender<io::Result<Bytes>>,
        reader: Reader,
        compute_permit: OwnedSemaphorePermit,
        runtime: Handle,
    ) -> Self {
        Self { parts, filled: Vec::new(), reader, compute_permit: Some(compute_permit), runtime }
    }

    fn send_part(&mut self) -> io::Result<()> {
        let part = Bytes::from(std::mem::take(&mut self.filled));
        self.compute_permit = None;
        self.reader.send(&self.parts, part)?;
        self.compute_permit = Some(self.runtime.block_on(self.reader.compute_permit())?);
        Ok(())
    }
}

impl io::Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Accepts the whole buffer, which may have megabytes: base64's writer fails after a short write.
        let mut rest = bytes;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(PART_BYTES - self.filled.len()));
            self.filled.extend(now);
            rest = later;
            if self.filled.len() >= PART_BYTES {
                self.send_part()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.filled.is_empty() { Ok(()) } else { self.send_part() }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::http::listen::ConnectionSlots;

    fn connection() -> Option<Arc<ConnectionSlot>> {
        Arc::new(ConnectionSlots::new(1)).take()
    }

    fn waits(reader: &Reader, for_ms: u64) {
        reader.with(|open| open.waited = Duration::from_millis(for_ms));
    }

    #[tokio::test]
    async fn only_the_slowest_download_is_evicted() {
        let readers = Arc::<Readers>::default();
        let all: Vec<Reader> = (0..MAX_READERS).map(|_| readers.try_slot(connection()).unwrap()).collect();
        assert!(readers.try_slot(connection()).is_none(), "none is slow");
        waits(&all[1], 600);
        waits(&all[2], 900);
        let fast = readers.try_slot(connection()).unwrap();
        assert!(!readers.lock().contains_key(&all[2].id) && readers.lock().contains_key(&all[1].id));
        assert_eq!((readers.len(), readers.evicted.load(Ordering::Relaxed)), (MAX_READERS, 1));
        drop(all);
        assert_eq!(readers.len(), 1);
        drop(fast);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_waits_for_a_place_but_not_for_ever_and_not_with_many() {
        let readers = Arc::<Readers>::default();
        let mut all: Vec<Reader> =
            (0..MAX_READERS).map(|_| readers.try_slot(connection()).unwrap()).collect();
        assert!(readers.slot(connection()).await.is_none(), "none ended and none is slow");
        let waiting: Vec<_> = (0..MAX_QUEUED)
            .map(|_| {
                let readers = Arc::clone(&readers);
                tokio::spawn(async move { readers.slot(connection()).await })
            })
            .collect();
        tokio::task::yield_now().await;
        let since = Instant::now();
        assert!(readers.slot(connection()).await.is_none(), "too many wait");
        assert_eq!(since.elapsed(), Duration::ZERO, "rejected at once");
        all.pop();
        let mut entered = Vec::new();
        for one in waiting {
            entered.extend(one.await.unwrap());
        }
        assert_eq!(entered.len(), 1);
    }

    #[tokio::test]
    async fn who_gives_way_has_its_connection_closed() {
        let readers = Arc::<Readers>::default();
        let slow = connection();
        let all: Vec<Reader> = (0..MAX_READERS).map(|_| readers.try_slot(slow.clone()).unwrap()).collect();
        waits(&all[0], 10_000);
        let _next = readers.try_slot(connection()).unwrap();
        slow.unwrap().ended().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_written_at_once_is_taken_whole_and_sent_in_parts() {
        let readers = Arc::<Readers>::default();
        let reader = readers.try_slot(None).unwrap();
        let compute_permit = reader.compute_permit().await.unwrap();
        let (parts, mut read) = mpsc::channel(MAX_WAITING);
        let mut pipe = Pipe::new(parts, reader, compute_permit, Handle::current());
        let written = tokio::task::spawn_blocking(move || {
            let len = pipe.write(&[7; 3 * PART_BYTES + 5]).unwrap();
            pipe.flush().unwrap();
            len
        });
        let mut lens = Vec::new();
        while let Some(part) = read.recv().await {
            lens.push(part.unwrap().len());
        }
        assert_eq!(lens, [PART_BYTES, PART_BYTES, PART_BYTES, 5]);
        assert_eq!(written.await.unwrap(), 3 * PART_BYTES + 5);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_download_that_waits_for_its_client_holds_no_permit() {
        let readers = Arc::<Readers>::default();
        let mut kept = Vec::new();
        for _ in 0..MAX_READERS {
            let reader = readers.try_slot(None).unwrap();
            let compute_permit = reader.compute_permit().await.unwrap();
            let (parts, read) = mpsc::channel(MAX_WAITING);
            kept.push(read);
            let mut pipe = Pipe::new(parts, reader, compute_permit, Handle::current());
            tokio::task::spawn_blocking(move || {
                let part = [0; PART_BYTES];
                while pipe.write_all(&part).is_ok() {}
            });
        }
        // All turns are free at once although no client reads.
        let all = MAX_COMPUTING as u32;
        drop(Arc::clone(&readers.computing).acquire_many_owned(all).await.unwrap());
        drop(kept);
    }
}
