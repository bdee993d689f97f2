//! A message of the event plane as it comes over ZeroMQ: four frames round the envelope (attach reference §5.2).
//!
//! `[topic, publisher id, sequence, 0x01 and length and envelope]`. The envelope is opened once, where its payload is read; here only
//! its publisher and number are compared with the frames. The topic is the bare name at a publisher's own
//! socket and the whole subject at a broker's.

use super::envelope;
use super::error::{DecodeError, Reason};
use super::zmtp::Frames;

/// The layout version of the last frame.
const LAYOUT: u8 = 1;
/// Topic of the messages that are left out: see [`super::subject::SUBSCRIPTIONS`].
const FORWARD_PASS_METRICS: &[u8] = b"forward-pass-metrics";

/// A message, read as far as ZeroMQ goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZmqMessage<'a> {
    /// Name of the topic, or its whole subject.
    pub topic: &'a [u8],
    /// Who published it.
    pub publisher_id: u64,
    /// Its number among those of its publisher.
    pub sequence: u64,
    /// What NATS would carry.
    pub envelope: &'a [u8],
}

impl<'a> ZmqMessage<'a> {
    /// Opens a message.
    ///
    /// # Errors
    /// It is none of Dynamo's, or its frames and its envelope name different publishers or numbers.
    pub fn open(frames: Frames<'a>) -> Result<Self, DecodeError> {
        let (Some(topic), Some(publisher_id), Some(sequence), Some(body), 4) =
            (frames.get(0), frames.get(1), frames.get(2), frames.get(3), frames.len())
        else {
            let text = format!("ZeroMQ message of {} frames instead of 4", frames.len());
            return Err(DecodeError::new(Reason::Malformed, text));
        };
        let publisher_id = number(publisher_id, "publisher id")?;
        let sequence = number(sequence, "sequence")?;
        let envelope = envelope_of(body)?;
        let inner = envelope::identity(envelope)?;
        if inner != (publisher_id, sequence) {
            let text = format!(
                "ZeroMQ frames name message {sequence} of publisher {publisher_id:x}, their envelope {} of {:x}",
                inner.1, inner.0
            );
            return Err(DecodeError::new(Reason::Malformed, text));
        }
        Ok(Self { topic, publisher_id, sequence, envelope })
    }
}

/// Whether a message is one of those that are left out, by its first frame.
pub fn is_left_out(frames: Frames<'_>) -> bool {
    frames.get(0).is_some_and(|topic| topic.ends_with(FORWARD_PASS_METRICS))
}

fn number(frame: &[u8], what: &str) -> Result<u64, DecodeError> {
    let bytes = <[u8; 8]>::try_from(frame).map_err(|_| {
        let text = format!("ZeroMQ {what} of {} bytes instead of 8", frame.len());
        DecodeError::new(Reason::Malformed, text)
    })?;
    Ok(u64::from_be_bytes(bytes))
}

fn envelope_of(body: &[u8]) -> Result<&[u8], DecodeError> {
    let Some(([layout, len @ ..], envelope)) = body.split_first_chunk::<5>() else {
        return Err(DecodeError::new(Reason::Truncated, "ZeroMQ body shorter than 5 bytes"));
    };
    if *layout != LAYOUT {
        let text = format!("ZeroMQ body of layout {layout}; 1 is known");
        return Err(DecodeError::new(Reason::UnknownKind, text));
    }
    if usize::try_from(u32::from_be_bytes(*len)) != Ok(envelope.len()) {
        let text =
            format!("ZeroMQ body of {} bytes that claims {}", envelope.len(), u32::from_be_bytes(*len));
        return Err(DecodeError::new(Reason::Malformed, text));
    }
    Ok(envelope)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zmtp::{Inbound, Unit, message};

    /// A plain envelope: message 3 of publisher 7.
    fn envelope(publisher_id: u8, sequence: u8) -> Vec<u8> {
        let mut bytes = b"\x85\xacpublisher_id".to_vec();
        bytes.push(publisher_id);
        bytes.extend_from_slice(b"\xa8sequence");
        bytes.push(sequence);
        bytes.extend_from_slice(b"\xacpublished_at\x05\xa5topic\xa9kv-events\xa7payload\xc4\x01\x90");
        bytes
    }

    fn body(envelope: &[u8]) -> Vec<u8> {
        [&[LAYOUT][..], &(envelope.len() as u32).to_be_bytes(), envelope].concat()
    }

    fn open(frames: &[&[u8]]) -> Result<(u64, u64, Vec<u8>), DecodeError> {
        let mut inbound = Inbound::default();
        inbound.room().extend_from_slice(&message(frames));
        let Ok(Some(Unit::Message(frames))) = inbound.next() else { panic!("a whole message") };
        ZmqMessage::open(frames).map(|open| (open.publisher_id, open.sequence, open.envelope.to_vec()))
    }

    #[test]
    fn what_is_inside_is_what_nats_would_carry() {
        let envelope = envelope(7, 3);
        let opened = open(&[b"kv-events", &7u64.to_be_bytes(), &3u64.to_be_bytes(), &body(&envelope)]);
        assert_eq!(opened.unwrap(), (7, 3, envelope));
    }

    #[test]
    fn frames_that_differ_from_the_envelope_are_refused() {
        let body = body(&envelope(7, 3));
        for (publisher_id, sequence) in [(8u64, 3u64), (7, 4)] {
            let error =
                open(&[b"t", &publisher_id.to_be_bytes(), &sequence.to_be_bytes(), &body]).unwrap_err();
            assert!(error.detail.contains("their envelope 3 of 7"), "{error}");
        }
    }

    #[test]
    fn what_is_not_dynamos_is_refused_with_a_reason() {
        let (id, sequence, whole) = (7u64.to_be_bytes(), 3u64.to_be_bytes(), body(&envelope(7, 3)));
        let reason = |frames: &[&[u8]]| open(frames).unwrap_err().reason;
        assert_eq!(reason(&[b"t", &id, &whole]), Reason::Malformed);
        assert_eq!(reason(&[b"t", &id, &sequence, &whole, b""]), Reason::Malformed);
        assert_eq!(reason(&[b"t", &id[1..], &sequence, &whole]), Reason::Malformed);
        assert_eq!(reason(&[b"t", &id, &sequence, b"\x01\0\0"]), Reason::Truncated);
        assert_eq!(reason(&[b"t", &id, &sequence, b"\x02\0\0\0\0"]), Reason::UnknownKind);
        assert_eq!(reason(&[b"t", &id, &sequence, &whole[..20]]), Reason::Malformed);
        assert_eq!(reason(&[b"t", &id, &sequence, b"\x01\0\0\0\0"]), Reason::Truncated);
        assert_eq!(reason(&[b"t", &id, &sequence, b"\x01\0\0\0\x02{}"]), Reason::Malformed);
    }
}
