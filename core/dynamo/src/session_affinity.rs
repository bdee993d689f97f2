//! `session_affinity_events`: which worker a router bound a session to (≥ 1.6, `--router-session-affinity-ttl-secs`). A router
//! publishes one when a request of the session is given to its worker and one when it ends; neither names the request.

use std::borrow::Cow;

use super::envelope::Format;
use super::error::{DecodeError, Reason};
use super::typed;
use radixscope_model::id::Worker;
use radixscope_model::record::{MAX_SESSION_BYTES, Topic};
use serde::Deserialize;

/// A session and its worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionAffinity<'a> {
    /// The session, as the client named it; at most [`MAX_SESSION_BYTES`].
    pub session_id: Cow<'a, str>,
    /// The worker that its requests are bound to.
    pub worker: Worker,
    /// Which binding it is: the same number as long as the session stays bound. It grows within a router, from its start in
    /// nanoseconds of Unix time on.
    pub sequence: u64,
    /// The router that made the binding. `None`: the message does not say.
    pub writer_id: Option<u64>,
}

impl<'a> SessionAffinity<'a> {
    /// Reads the payload of a message.
    ///
    /// # Errors
    /// The first thing that was not understood, or a session id that is empty or too long.
    pub fn decode(body: &'a [u8], format: Format) -> Result<Self, DecodeError> {
        let Message { session_id, worker_id, dp_rank, sequence, writer_id } =
            typed::decode(TOPIC, body, format)?;
        if session_id.is_empty() || session_id.len() > MAX_SESSION_BYTES {
            let problem = format!("{TOPIC}: session_id: expected 1 to {MAX_SESSION_BYTES} bytes (byte 0)");
            return Err(DecodeError::new(Reason::TooLarge, problem));
        }
        let worker = Worker::new(worker_id, dp_rank.unwrap_or(0));
        Ok(Self { session_id, worker, sequence, writer_id })
    }
}

const TOPIC: &str = Topic::SessionAffinity.as_str();

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    session_id: Cow<'a, str>,
    worker_id: u64,
    dp_rank: Option<u32>,
    sequence: u64,
    writer_id: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::{self, Body};

    /// Of 1.6.1 and of 1.7.0.dev20261026, as received over NATS.
    const MESSAGES: [&str; 2] = [
        "85ac7075626c69736865725f6964cf000af2d667ea8672a873657175656e636500ac7075626c69736865645f6174cf000001a2179bce7ea5746f706963b773657373696f6e5f616666696e6974795f6576656e7473a77061796c6f6164c45785aa73657373696f6e5f6964a973657373696f6e2d31a9776f726b65725f6964cf6a6ca2179bb52b06a764705f72616e6b00a873657175656e6365cf18eb94bcd8fb80bfa97772697465725f6964cf6a6ca2179bb52b31",
        "85ac7075626c69736865725f6964cf00029e47f2890587a873657175656e636501ac7075626c69736865645f6174cf000001a2179dc6aea5746f706963b773657373696f6e5f616666696e6974795f6576656e7473a77061796c6f6164c45785aa73657373696f6e5f6964a973657373696f6e2d35a9776f726b65725f6964cf6a6ca2179dabf406a764705f72616e6b00a873657175656e6365cf18eb94db10a837f5a97772697465725f6964cf6a6ca2179dabf433",
    ];

    fn bytes(hex: &str) -> Vec<u8> {
        let digits = hex.as_bytes().chunks(2).map(|two| std::str::from_utf8(two).unwrap());
        digits.map(|two| u8::from_str_radix(two, 16).unwrap()).collect()
    }

    fn payload(hex: &str) -> Vec<u8> {
        let message = bytes(hex);
        match envelope::open(&message) {
            Ok(Body::Enveloped(envelope)) => {
                assert_eq!(envelope.topic, TOPIC.as_bytes());
                envelope.payload.to_vec()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn messages_of_dynamo_are_read() {
        let [first, later] = MESSAGES.map(payload);
        let first = SessionAffinity::decode(&first, Format::MsgPack).unwrap();
        let expected = SessionAffinity {
            session_id: "session-1".into(),
            worker: Worker::new(7_668_682_487_785_401_094, 0),
            sequence: 1_795_692_415_252_398_271,
            writer_id: Some(7_668_682_487_785_401_137),
        };
        assert_eq!(first, expected);
        let later = SessionAffinity::decode(&later, Format::MsgPack).unwrap();
        assert_eq!((&*later.session_id, later.worker.id.0), ("session-5", 7_668_682_487_818_351_622));
    }

    #[test]
    fn every_shorter_message_is_refused() {
        let whole = payload(MESSAGES[0]);
        for len in 0..whole.len() {
            assert!(SessionAffinity::decode(&whole[..len], Format::MsgPack).is_err(), "{len}");
        }
    }

    #[test]
    fn a_session_without_a_name_or_with_an_endless_one_is_refused() {
        let message =
            |id: &str| format!(r#"{{"session_id":"{id}","worker_id":7,"sequence":1,"router_id":2}}"#);
        let read =
            |id: &str| SessionAffinity::decode(message(id).as_bytes(), Format::Json).map(|of| of.worker);
        assert_eq!(read(&"s".repeat(MAX_SESSION_BYTES)), Ok(Worker::new(7, 0)));
        for id in [String::new(), "s".repeat(MAX_SESSION_BYTES + 1)] {
            assert_eq!(read(&id).unwrap_err().reason, Reason::TooLarge);
        }
    }
}
