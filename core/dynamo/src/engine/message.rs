//! The frames around an engine's batch: as published, and as sent again from its ring of recent batches.

use crate::error::{DecodeError, Reason};
use crate::zmtp::{self, Frames};

/// Sequence number of the message that ends what is sent again: -1.
pub const REPLAY_END: u64 = u64::MAX;

/// A message, read as far as its frames go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EngineMessage<'a> {
    /// Free text, mostly empty; llm-d's convention is `kv@POD@MODEL`. Empty where the reply has none.
    pub topic: &'a [u8],
    /// Its number: from 0 for each process that publishes, one more for each batch.
    pub sequence: u64,
    /// The batch.
    pub payload: &'a [u8],
}

/// Opens a message as it is published: topic, number, batch.
///
/// # Errors
/// Other frames than these.
pub fn open_live(frames: Frames<'_>) -> Result<EngineMessage<'_>, DecodeError> {
    let (Some(topic), Some(sequence), Some(payload), 3) =
        (frames.get(0), frames.get(1), frames.get(2), frames.len())
    else {
        let text = format!("engine message of {} frames instead of 3", frames.len());
        return Err(DecodeError::new(Reason::Malformed, text));
    };
    Ok(EngineMessage { topic, sequence: number(sequence)?, payload })
}

/// Opens a reply to [`replay_request`]: an empty frame, the topic from vLLM 0.26 or 0.27 and SGLang 0.5.22 on, number and batch. So it is
/// read from its end. [`REPLAY_END`] is the last one.
///
/// # Errors
/// Other frames than these.
pub fn open_replay(frames: Frames<'_>) -> Result<EngineMessage<'_>, DecodeError> {
    let count = frames.len();
    let at = |from_end: usize| count.checked_sub(from_end).and_then(|at| frames.get(at));
    let (Some(sequence), Some(payload), 2..=4) = (at(2), at(1), count) else {
        let text = format!("engine's replay of {count} frames instead of 3 or 4");
        return Err(DecodeError::new(Reason::Malformed, text));
    };
    let topic = if count == 4 { at(3).unwrap_or_default() } else { &[] };
    Ok(EngineMessage { topic, sequence: number(sequence)?, payload })
}

/// Asks an engine's ROUTER socket for every batch from this number on that it still has.
pub fn replay_request(from: u64) -> Vec<u8> {
    zmtp::message(&[b"", &from.to_be_bytes()])
}

fn number(frame: &[u8]) -> Result<u64, DecodeError> {
    let bytes = <[u8; 8]>::try_from(frame).map_err(|_| {
        let text = format!("engine's sequence number of {} bytes instead of 8", frame.len());
        DecodeError::new(Reason::Malformed, text)
    })?;
    Ok(u64::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zmtp::{Inbound, Unit, message};

    fn with<T>(frames: &[&[u8]], read: impl FnOnce(Frames<'_>) -> T) -> T {
        let mut inbound = Inbound::default();
        inbound.room().extend_from_slice(&message(frames));
        let Ok(Some(Unit::Message(frames))) = inbound.next() else { panic!("a whole message") };
        read(frames)
    }

    fn read(
        frames: &[&[u8]],
        open: fn(Frames<'_>) -> Result<EngineMessage<'_>, DecodeError>,
    ) -> Result<(String, u64, Vec<u8>), String> {
        with(frames, |frames| {
            open(frames)
                .map(|open| {
                    (String::from_utf8_lossy(open.topic).into(), open.sequence, open.payload.to_vec())
                })
                .map_err(|error| error.detail)
        })
    }

    #[test]
    fn a_live_message_has_three_frames() {
        let seven = 7u64.to_be_bytes();
        assert_eq!(
            read(&[b"kv@p@m", &seven, b"xy"], open_live).unwrap(),
            ("kv@p@m".into(), 7, b"xy".to_vec())
        );
        assert!(read(&[&seven, b"xy"], open_live).unwrap_err().contains("2 frames"));
        assert!(read(&[b"", b"xy", b"xy"], open_live).unwrap_err().contains("2 bytes instead of 8"));
    }

    #[test]
    fn a_reply_has_a_topic_or_none() {
        let seven = 7u64.to_be_bytes();
        assert_eq!(read(&[b"", &seven, b"xy"], open_replay).unwrap(), (String::new(), 7, b"xy".to_vec()));
        assert_eq!(read(&[b"", b"t", &seven, b"xy"], open_replay).unwrap(), ("t".into(), 7, b"xy".to_vec()));
        let end = REPLAY_END.to_be_bytes();
        assert_eq!(read(&[b"", b"", &end, b""], open_replay).unwrap().1, REPLAY_END);
        assert!(read(&[b"xy"], open_replay).is_err());
        assert!(read(&[b"", b"", b"", &seven, b"xy"], open_replay).is_err());
    }

    #[test]
    fn a_request_is_what_a_router_socket_takes() {
        with(&[b"", &25u64.to_be_bytes()], |frames| assert_eq!(frames.len(), 2));
        assert_eq!(replay_request(25), message(&[b"", &25u64.to_be_bytes()]));
    }
}
