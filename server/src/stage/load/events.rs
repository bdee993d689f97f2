//! The events of a stream, each as its data. Bytes and lines are bounded before the reader of event streams gets them, which bounds neither.

use std::error::Error;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _};
use sse_stream::{Sse, SseByteStream};

use crate::source::http_client::innermost;

/// Longest line. Dynamo's chunks have 250 bytes, more with log probabilities, which are not asked for.
const MAX_LINE_BYTES: usize = 64 * 1024;
/// Largest response without its tokens.
const MAX_BYTES: usize = 256 * 1024;
/// What a token may add to that.
const MAX_BYTES_PER_TOKEN: usize = 2 * 1024;

/// Why a stream cannot be read on.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EventFault {
    /// Its bytes ended with an error.
    #[error("{0}")]
    Body(String),
    /// As Dynamo up to 0.9 ends a stream, with its words in a comment, which readers drop.
    #[error("the target ended it with an error")]
    Reported,
    /// A line is too long.
    #[error("a line is longer than {} KiB", MAX_LINE_BYTES / 1024)]
    LongLine,
    /// All is too long.
    #[error("it is larger than {} KiB", .0 / 1024)]
    TooLarge(usize),
    /// It is no text.
    #[error("it is not UTF-8")]
    NotUtf8,
}

/// The events of a body.
pub(super) struct Events(SseByteStream<BoxStream<'static, Result<Bytes, EventFault>>>);

impl Events {
    /// `max_tokens`: how many tokens were asked for.
    pub(super) fn new<S, E>(body: S, max_tokens: u32) -> Self
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Error + Send + Sync + 'static,
    {
        let mut size = Size::new(max_tokens);
        let bounded = body.map(move |bytes| {
            let bytes = bytes.map_err(|error| EventFault::Body(innermost(&error)))?;
            size.add(&bytes).map(|()| bytes)
        });
        Self(SseByteStream::new(bounded.boxed()))
    }

    /// The data of the next event that has some. After an error there is none.
    pub(super) async fn next(&mut self) -> Option<Result<String, EventFault>> {
        loop {
            let Sse { event, data, .. } = match self.0.next().await? {
                Ok(event) => event,
                Err(error) => return Some(Err(fault(error))),
            };
            match (event.as_deref(), data) {
                (Some("error"), None) => return Some(Err(EventFault::Reported)),
                // Others without data keep a connection alive.
                (_, None) => {}
                (_, Some(data)) => return Some(Ok(data)),
            }
        }
    }
}

fn fault(error: sse_stream::Error) -> EventFault {
    match error {
        sse_stream::Error::Body(error) => match error.downcast::<EventFault>() {
            Ok(fault) => *fault,
            Err(error) => EventFault::Body(error.to_string()),
        },
        sse_stream::Error::Utf8Parse(_) => EventFault::NotUtf8,
        // Without its feature for strict fields it has no other.
        error => EventFault::Body(error.to_string()),
    }
}

/// How much was received.
struct Size {
    max: usize,
    all: usize,
    line: usize,
}

impl Size {
    fn new(max_tokens: u32) -> Self {
        let max = MAX_BYTES.saturating_add((max_tokens as usize).saturating_mul(MAX_BYTES_PER_TOKEN));
        Self { max, all: 0, line: 0 }
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), EventFault> {
        self.all = self.all.saturating_add(bytes.len());
        if self.all > self.max {
            return Err(EventFault::TooLarge(self.max));
        }
        let mut begin = 0;
        for end in memchr::memchr2_iter(b'\n', b'\r', bytes) {
            if self.line + (end - begin) > MAX_LINE_BYTES {
                return Err(EventFault::LongLine);
            }
            self.line = 0;
            begin = end + 1;
        }
        self.line += bytes.len() - begin;
        if self.line > MAX_LINE_BYTES { Err(EventFault::LongLine) } else { Ok(()) }
    }
}
