//! What comes back: the acknowledgement, and the parts of the response on the connection that the worker opens.

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

/// Sizes of a part's header and data, in bytes. One of header and data is empty in every part of a response.
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
    /// The response begins. With a text it ends here: the handler failed before its first item.
    Prologue {
        /// Why, shortened.
        error: Option<String>,
    },
    /// The response is over.
    Sentinel,
    /// Something that asks nothing of a reader.
    Other,
}

impl Control {
    /// Reads a header.
    ///
    /// # Errors
    /// It is no JSON, or has other contents.
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
        return Err(Fault::new(Reason::UnknownKind, "a connection that brings no response", at));
    }
    required(subject, "subject", at)
}

/// Text of a worker, bounded and on one line: control characters, as those of terminals, become spaces.
pub(crate) fn shortened(text: &str) -> String {
    text.chars().take(MAX_WORDS_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// How a worker's refusal of a request begins: 0.9 knows the first, 1.x the others.
const REFUSALS: [&str; 3] = ["Unknown endpoint:", "Server overloaded:", "Server unavailable:"];

/// The text of an acknowledgement with which a worker refuses a request. `None`: no version of Dynamo writes such, so that
/// the bytes are of something else and are not to be shown.
pub fn refusal(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= MAX_REFUSAL_BYTES)?;
    let is_dynamos = REFUSALS.iter().any(|start| text.starts_with(start)) && !text.contains(char::is_control);
    is_dynamos.then(|| shortened(text))
}

/// What a reply is that is none of Dynamo's, without a byte of it: `a 213-byte HTTP reply that is no Dynamo response`.
pub fn foreign_reply(bytes: &[u8]) -> String {
    let is_text = |text: &str| !text.chars().any(|c| c.is_control() && !c.is_ascii_whitespace());
    let kind = match std::str::from_utf8(bytes) {
        _ if bytes.starts_with(b"HTTP/") => "HTTP ",
        _ if matches!(bytes.trim_ascii_start(), [b'{' | b'[', ..]) => "JSON ",
        Ok(text) if is_text(text) => "text ",
        _ => "",
    };
    let more = if bytes.len() >= MAX_REFUSAL_BYTES { " or longer" } else { "" };
    format!("a {}-byte{more} {kind}reply that is no Dynamo response", bytes.len())
}

const fn topic() -> &'static str {
    Topic::TreeDump.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_dynamo_writes_is_a_refusal() {
        for text in [
            "Unknown endpoint: 45421f25bd525ab5/generate",
            "Server overloaded: worker at capacity",
            "Server unavailable: unknown endpoint 7/dynamo/backend/generate",
        ] {
            assert_eq!(refusal(text.as_bytes()).as_deref(), Some(text));
        }
        for other in [
            r#"{"AccessKeyId":"AKIA"}"#,
            r#"{"stream":"KV_cfg","seq":9}"#,
            "HTTP/1.1 400 Bad Request\r\n\r\n",
            "-ERR unknown command",
            "Server overloaded: \u{1b}[2J",
            "",
        ] {
            assert_eq!(refusal(other.as_bytes()), None, "{other}");
        }
        assert_eq!(refusal(b"Unknown endpoint: \xff"), None);
        assert_eq!(refusal(format!("Unknown endpoint: {}", "x".repeat(MAX_REFUSAL_BYTES)).as_bytes()), None);
        let long = refusal(format!("Unknown endpoint: {}", "x".repeat(1_000)).as_bytes());
        assert_eq!(long.map(|text| text.chars().count()), Some(MAX_WORDS_CHARS));
    }

    #[test]
    fn a_reply_that_is_none_of_dynamos_is_named_by_its_length_and_kind() {
        for (bytes, expected) in [
            (&b"HTTP/1.1 200 OK\r\n\r\nsecret"[..], "a 25-byte HTTP reply that is no Dynamo response"),
            (br#" {"AccessKeyId":"AKIA"}"#, "a 23-byte JSON reply that is no Dynamo response"),
            (b"+OK secret\r\n", "a 12-byte text reply that is no Dynamo response"),
            (b"\x00\x01secret", "a 8-byte reply that is no Dynamo response"),
            (&[b' '; MAX_REFUSAL_BYTES], "a 16384-byte or longer text reply that is no Dynamo response"),
        ] {
            assert_eq!(foreign_reply(bytes), expected);
        }
    }

    #[test]
    fn text_of_a_worker_stays_on_one_line() {
        assert_eq!(shortened("a\nb\u{1b}[31m"), "a b [31m");
    }
}
