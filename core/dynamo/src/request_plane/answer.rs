//! What comes back: the acknowledgement, and the parts of the answer on the connection that the worker opens.

use super::super::error::{DecodeError, Reason};
use super::super::wire::{Fault, InField, Json, Kind, Wire, required};
use radixscope_model::record::Topic;

/// Bytes before the header and the data of a part.
pub const PRELUDE_BYTES: usize = 24;
/// Longest header of a part that is read.
pub const MAX_HEADER_BYTES: usize = 64 * 1024;
/// Longest text of a refusal that is read.
pub const MAX_REFUSAL_BYTES: usize = 16 * 1024;
/// Longest words of a worker that are kept.
const MAX_WORDS_CHARS: usize = 300;

/// Sizes of a part's header and data, in bytes. One of header and data is empty in every part of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartSize {
    /// Of the header.
    pub header: usize,
    /// Of the data.
    pub data: usize,
}

impl PartSize {
    /// Reads the sizes that a part begins with; `most` is the most data that is read.
    ///
    /// # Errors
    /// It is larger than is read, or has both header and data.
    pub fn read(prelude: &[u8; PRELUDE_BYTES], most: usize) -> Result<Self, DecodeError> {
        let [header, data] = [0, 8].map(|at| {
            let bytes = prelude.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            usize::try_from(bytes.map_or(0, u64::from_be_bytes)).unwrap_or(usize::MAX)
        });
        if header > MAX_HEADER_BYTES || data > most {
            let most = if header > MAX_HEADER_BYTES { MAX_HEADER_BYTES } else { most };
            let claimed = if header > MAX_HEADER_BYTES { header } else { data };
            let detail = format!("{}: a part of {claimed} bytes; at most {most} are read", topic());
            return Err(DecodeError::new(Reason::TooLarge, detail));
        }
        if header > 0 && data > 0 {
            let detail = format!("{}: a part with both header and data", topic());
            return Err(DecodeError::new(Reason::Malformed, detail));
        }
        Ok(Self { header, data })
    }
}

/// The header of a part that has no data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Control {
    /// The answer begins. With a text it ends here: the handler failed before its first item.
    Prologue {
        /// Why, shortened.
        error: Option<String>,
    },
    /// The answer is over.
    Sentinel,
    /// Something that asks nothing of a reader.
    Other,
}

impl Control {
    /// Reads a header.
    ///
    /// # Errors
    /// It is no JSON, or says something else.
    pub fn decode(header: &[u8]) -> Result<Self, DecodeError> {
        control(&mut Json::new(header)).map_err(|fault| fault.into_error(topic()))
    }
}

fn control<'a, W: Wire<'a>>(wire: &mut W) -> Result<Control, Fault> {
    if wire.kind()? == Kind::Text {
        let is_over = wire.word()? == b"sentinel";
        wire.end()?;
        return Ok(if is_over { Control::Sentinel } else { Control::Other });
    }
    let (at, mut error) = (wire.at(), None);
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        match key {
            b"error" => error = Some(wire.optional(W::text).field("error")?.map(|text| shortened(&text))),
            _ => wire.skip()?,
        }
    }
    wire.end()?;
    Ok(Control::Prologue { error: required(error, "error", at)? })
}

/// By which subject a connection that was opened to us is to be known: the header of its first part.
///
/// # Errors
/// It is none of a worker that answers.
pub fn call_home(header: &[u8]) -> Result<String, DecodeError> {
    let mut wire = Json::new(header);
    subject(&mut wire).map_err(|fault| fault.into_error(topic()))
}

fn subject<'a, W: Wire<'a>>(wire: &mut W) -> Result<String, Fault> {
    let (at, mut subject, mut is_response) = (wire.at(), None, false);
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        match key {
            b"subject" => subject = Some(wire.text().field("subject")?.into_owned()),
            b"stream_type" => is_response = wire.word().field("stream_type")? == b"response",
            _ => wire.skip()?,
        }
    }
    wire.end()?;
    if !is_response {
        return Err(Fault::new(Reason::UnknownKind, "a connection that brings no answer", at));
    }
    required(subject, "subject", at)
}

/// Words of a worker, bounded.
pub(crate) fn shortened(words: &str) -> String {
    words.chars().take(MAX_WORDS_CHARS).collect()
}

/// Words of a worker as they are sent, bounded.
pub fn words(bytes: &[u8]) -> String {
    shortened(&String::from_utf8_lossy(bytes.get(..MAX_REFUSAL_BYTES).unwrap_or(bytes)))
}

const fn topic() -> &'static str {
    Topic::TreeDump.as_str()
}
