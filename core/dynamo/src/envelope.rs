//! The envelope of the event plane (≥ 0.9, reference §2.4), and telling it from the bare JSON of 0.8 and JetStream.
//!
//! Zero-copy; what a payload means is the topics' own affair.

use super::error::{DecodeError, Reason};
use super::wire::{Fault, InField, MsgPack, Wire, once, required};
use radixscope_model::id::Millis;

/// How a topic's own payload is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Format {
    /// 0.8, and KV events through JetStream.
    Json,
    /// Everything in an envelope.
    MsgPack,
}

/// A message of the event plane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Envelope<'a> {
    /// 0.9: the discovery instance id of the publishing process, so a worker's own id; 1.6: a random number.
    pub publisher_id: u64,
    /// Starts at 0 for each publisher and grows by 1: a jump means loss.
    pub sequence: u64,
    /// By the publisher's clock.
    pub published_at: Millis,
    /// Dynamo's name of the topic, as it is sent.
    pub topic: &'a [u8],
    /// The topic's own MessagePack.
    pub payload: &'a [u8],
}

/// A message as it came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Body<'a> {
    /// Bare JSON; not checked yet.
    Json(&'a [u8]),
    /// With an envelope.
    Enveloped(Envelope<'a>),
}

impl<'a> Body<'a> {
    /// The topic's own bytes and how they are written.
    pub const fn payload(&self) -> (&'a [u8], Format) {
        match self {
            Body::Json(bytes) => (bytes, Format::Json),
            Body::Enveloped(envelope) => (envelope.payload, Format::MsgPack),
        }
    }

    /// The envelope, if there is one.
    pub const fn envelope(&self) -> Option<&Envelope<'a>> {
        match self {
            Body::Json(_) => None,
            Body::Enveloped(envelope) => Some(envelope),
        }
    }
}

/// Tells what kind of message `bytes` are and opens its envelope.
///
/// # Errors
/// Neither JSON nor a whole envelope.
#[inline]
pub fn open(bytes: &[u8]) -> Result<Body<'_>, DecodeError> {
    match open_plain(bytes) {
        Some(envelope) => Ok(Body::Enveloped(envelope)),
        None => open_any(bytes),
    }
}

/// Opens the envelope of a message that is exactly as Dynamo writes it: no field is looked for. A short cut of [`open`] for what
/// comes often; use it where it is, because moving it costs a tenth of reading it. `None`: [`open`] says what it is.
#[inline]
pub fn open_plain(bytes: &[u8]) -> Option<Envelope<'_>> {
    let mut wire = MsgPack::new(bytes);
    let (publisher_id, sequence) = plain_identity(&mut wire)?;
    // A time has eight bytes, so that one look at the length is enough for what is around it.
    let middle = wire.chunk::<28>()?;
    let (before, middle) = middle.split_first_chunk::<14>()?;
    let (published_at, after) = middle.split_first_chunk::<8>()?;
    if before != b"\xacpublished_at\xcf" || after != b"\xa5topic" {
        return None;
    }
    let published_at = Millis(u64::from_be_bytes(*published_at));
    let topic = wire.plain_word()?;
    wire.plain(b"\xa7payload")?;
    let payload = wire.plain_blob()?;
    wire.end().ok()?;
    Some(Envelope { publisher_id, sequence, published_at, topic, payload })
}

fn open_any(bytes: &[u8]) -> Result<Body<'_>, DecodeError> {
    match bytes.first() {
        Some(b'{' | b'[' | b' ' | b'\t' | b'\n' | b'\r') => Ok(Body::Json(bytes)),
        Some(0x80..=0x8f | 0xde | 0xdf) => {
            let envelope = read(&mut MsgPack::new(bytes)).map_err(|fault| fault.into_error("envelope"))?;
            Ok(Body::Enveloped(envelope))
        }
        Some(_) => Err(DecodeError::new(Reason::Malformed, "message: neither JSON nor an envelope (byte 0)")),
        None => Err(DecodeError::new(Reason::Truncated, "message: empty")),
    }
}

/// Publisher and number of a message with an envelope. Where it begins as Dynamo writes it no more of it is read: whoever opens it
/// finds what is wrong with the rest.
///
/// # Errors
/// No whole envelope, if it begins otherwise.
pub fn identity(bytes: &[u8]) -> Result<(u64, u64), DecodeError> {
    if let Some(identity) = plain_identity(&mut MsgPack::new(bytes)) {
        return Ok(identity);
    }
    match open(bytes)? {
        Body::Enveloped(envelope) => Ok((envelope.publisher_id, envelope.sequence)),
        Body::Json(_) => Err(DecodeError::new(Reason::Malformed, "message: no envelope")),
    }
}

/// Publisher and number exactly as Dynamo writes them. Only a short cut.
#[inline]
fn plain_identity(wire: &mut MsgPack<'_>) -> Option<(u64, u64)> {
    wire.plain(b"\x85\xacpublisher_id")?;
    let publisher_id = wire.plain_id()?;
    wire.plain(b"\xa8sequence")?;
    Some((publisher_id, wire.plain_u64()?))
}

fn read<'a>(wire: &mut MsgPack<'a>) -> Result<Envelope<'a>, Fault> {
    let (mut publisher_id, mut sequence, mut published_at) = (None, None, None);
    let (mut topic, mut payload) = (None, None);
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        let at = wire.at();
        match key {
            b"publisher_id" => {
                once(&mut publisher_id, wire.u64().field("publisher_id")?, "publisher_id", at)?
            }
            b"sequence" => once(&mut sequence, wire.u64().field("sequence")?, "sequence", at)?,
            b"published_at" => {
                once(&mut published_at, wire.u64().field("published_at")?, "published_at", at)?
            }
            b"topic" => once(&mut topic, wire.word().field("topic")?, "topic", at)?,
            b"payload" => once(&mut payload, wire.blob().field("payload")?, "payload", at)?,
            _ => wire.skip()?,
        }
    }
    wire.end()?;
    Ok(Envelope {
        publisher_id: required(publisher_id, "publisher_id", 0)?,
        sequence: required(sequence, "sequence", 0)?,
        published_at: Millis(required(published_at, "published_at", 0)?),
        topic: required(topic, "topic", 0)?,
        payload: required(payload, "payload", 0)?,
    })
}
