//! Reads a worker's response from the connection that it opened, part by part, within bounds of size and time.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use radixscope_dynamo::error::{DecodeError, Reason};
use radixscope_dynamo::request_plane::{Codec, Control, PRELUDE_BYTES, PartSize};
use radixscope_dynamo::tree_query::{QueryFailed, QueryFault, TreeResponse, decode_response};
use radixscope_model::id::Worker;

/// Maximum size of an item: a tree of two million blocks in 0.9's JSON, of eight million in MessagePack.
pub(super) const MAX_ITEM_BYTES: usize = 512 << 20;
/// Larger items are read one at a time.
const LARGE_ITEM_BYTES: usize = 32 << 20;
/// Initial buffer size.
const FIRST_ROOM_BYTES: usize = 1 << 20;
/// Maximum parts of a response, including prologue and end. Every version sends four.
const MAX_PARTS: usize = 64;
/// Idle timeout. 0.9 serialises the whole tree before it sends the first byte.
const SILENT_FOR: Duration = Duration::from_secs(60);
/// Timeout for a whole response.
const RESPONSE_WITHIN: Duration = Duration::from_secs(300);
/// How long to wait for the worker's end marker.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// A response that is being read.
#[derive(Default)]
pub(super) struct Read {
    response: Option<TreeResponse>,
    /// Bytes read.
    pub(super) size_bytes: usize,
}

/// Reads a response to its end. `size_bytes` is increased by the bytes read, also on failure.
pub(super) async fn read(
    from: &mut (impl AsyncRead + Unpin),
    (codec, worker): (Codec, Worker),
    large: &Semaphore,
    size_bytes: &mut usize,
) -> Result<TreeResponse, QueryFailed> {
    let mut read = Read::default();
    let outcome = timeout(RESPONSE_WITHIN, read.parts(from, (codec, worker), large)).await;
    *size_bytes += read.size_bytes;
    match outcome {
        Ok(outcome) => outcome?,
        Err(_) => {
            let detail = format!("The worker's response did not end within {} s.", RESPONSE_WITHIN.as_secs());
            return Err(failed(QueryFault::Truncated, detail));
        }
    }
    read.response.ok_or_else(|| failed(QueryFault::Malformed, "The worker's response is empty.".to_owned()))
}

impl Read {
    async fn parts(
        &mut self,
        from: &mut (impl AsyncRead + Unpin),
        (codec, worker): (Codec, Worker),
        large: &Semaphore,
    ) -> Result<(), QueryFailed> {
        let mut has_begun = false;
        for _ in 0..MAX_PARTS {
            let size = self.sizes(from).await?;
            if size.data == 0 {
                let header = self.bytes(from, size.header).await?;
                match Control::decode(&header).map_err(|error| malformed(&error))? {
                    Control::Prologue { error: Some(why) } => return Err(refused(&why)),
                    Control::Prologue { error: None } => has_begun = true,
                    Control::Sentinel => return Err(truncated("it ended before the last item")),
                    Control::Other => {}
                }
                continue;
            }
            if !has_begun {
                let detail = "The worker's response has no prologue.".to_owned();
                return Err(failed(QueryFault::Malformed, detail));
            }
            // The permit is held until the item is decoded and dropped.
            let (item, _turn) = self.item(from, size.data, large).await?;
            match decoded(item, codec, worker).await? {
                Some(_) if self.response.is_some() => {
                    let detail = "The worker sent two responses.".to_owned();
                    return Err(failed(QueryFault::Malformed, detail));
                }
                Some(response) => self.response = Some(response),
                None => {
                    // The worker closes after this side; whether it sends the end marker first does not matter.
                    let _ = timeout(CLOSE_WITHIN, self.sizes(from)).await;
                    return Ok(());
                }
            }
        }
        Err(failed(QueryFault::Malformed, format!("The worker's response has more than {MAX_PARTS} parts.")))
    }

    async fn sizes(&mut self, from: &mut (impl AsyncRead + Unpin)) -> Result<PartSize, QueryFailed> {
        let mut prelude = [0; PRELUDE_BYTES];
        within_idle_timeout(from.read_exact(&mut prelude)).await?;
        self.size_bytes += PRELUDE_BYTES;
        PartSize::read(&prelude, MAX_ITEM_BYTES).map_err(|error| malformed(&error))
    }

    /// Reads an item. A large one waits for a permit after its first [`LARGE_ITEM_BYTES`].
    async fn item<'t>(
        &mut self,
        from: &mut (impl AsyncRead + Unpin),
        size: usize,
        large: &'t Semaphore,
    ) -> Result<(Vec<u8>, Option<SemaphorePermit<'t>>), QueryFailed> {
        let mut item = self.bytes(from, size.min(LARGE_ITEM_BYTES)).await?;
        if item.len() == size {
            return Ok((item, None));
        }
        let turn = large.acquire().await.ok();
        self.more(from, &mut item, size).await?;
        Ok((item, turn))
    }

    /// Reads `size` bytes. The buffer grows with the received bytes, not with the claimed size.
    async fn bytes(
        &mut self,
        from: &mut (impl AsyncRead + Unpin),
        size: usize,
    ) -> Result<Vec<u8>, QueryFailed> {
        let mut bytes = Vec::with_capacity(size.min(FIRST_ROOM_BYTES));
        self.more(from, &mut bytes, size).await?;
        Ok(bytes)
    }

    async fn more(
        &mut self,
        from: &mut (impl AsyncRead + Unpin),
        bytes: &mut Vec<u8>,
        size: usize,
    ) -> Result<(), QueryFailed> {
        let mut rest = from.take((size - bytes.len()) as u64);
        while bytes.len() < size {
            if bytes.len() == bytes.capacity() {
                bytes.reserve_exact(bytes.len().min(size - bytes.len()));
            }
            let read = within_idle_timeout(rest.read_buf(bytes)).await?;
            if read == 0 {
                return Err(truncated(&format!("received {} of {size} bytes", bytes.len())));
            }
            self.size_bytes += read;
        }
        Ok(())
    }
}

/// Decodes on a blocking thread.
async fn decoded(item: Vec<u8>, codec: Codec, worker: Worker) -> Result<Option<TreeResponse>, QueryFailed> {
    let decode = tokio::task::spawn_blocking(move || decode_response(&item, codec, worker));
    match decode.await {
        Ok(response) => response.map_err(|error| malformed(&error)),
        Err(error) => {
            Err(failed(QueryFault::Malformed, format!("The worker's response failed to decode: {error}.")))
        }
    }
}

/// Limits a read to the idle timeout.
async fn within_idle_timeout<T>(read: impl Future<Output = io::Result<T>>) -> Result<T, QueryFailed> {
    match timeout(SILENT_FOR, read).await {
        Ok(Ok(read)) => Ok(read),
        Ok(Err(error)) => Err(truncated(&error.to_string())),
        Err(_) => Err(truncated(&format!("nothing received for {} s", SILENT_FOR.as_secs()))),
    }
}

fn truncated(why: &str) -> QueryFailed {
    failed(QueryFault::Truncated, format!("The worker's response ended early: {why}."))
}

fn malformed(error: &DecodeError) -> QueryFailed {
    let detail = match error.reason {
        Reason::TooLarge => format!("The worker's response is too large: {error}."),
        _ => format!("The worker's response cannot be decoded: {error}."),
    };
    failed(QueryFault::Malformed, detail)
}

/// The handler failed before its first item.
fn refused(why: &str) -> QueryFailed {
    if why.contains("response plane mismatch") {
        let detail = "The worker responds only over QUIC (--response-plane quic, DYN_RESPONSE_PLANE), which is not supported: its blocks \
                     are known from events only.";
        return failed(QueryFault::Unsupported, detail.to_owned());
    }
    failed(QueryFault::Refused, format!("The worker rejected the query: {why}."))
}

pub(super) fn failed(why: QueryFault, detail: String) -> QueryFailed {
    QueryFailed { why, detail }
}
