//! What a ZeroMQ peer sends, in pieces: the first byte says how large.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::zmq_message::{ZmqMessage, is_left_out};
use radixscope_dynamo::zmtp::{Inbound, MAX_FRAMES, Unit, read_greeting};

fuzz_target!(|bytes: &[u8]| {
    let Some((step, bytes)) = bytes.split_first() else { return };
    if let Some(greeting) = bytes.first_chunk() {
        let _ = read_greeting(greeting);
    }
    let (mut inbound, mut sent) = (Inbound::default(), 0);
    for piece in bytes.chunks(usize::from(*step).max(1)) {
        inbound.room().extend_from_slice(piece);
        loop {
            match inbound.next() {
                Ok(None) => break,
                Ok(Some(Unit::Command(_))) => {}
                Ok(Some(Unit::Message(frames))) => {
                    assert!((1..=MAX_FRAMES).contains(&frames.len()));
                    sent += (0..frames.len()).filter_map(|at| frames.get(at)).map(<[u8]>::len).sum::<usize>();
                    assert!(sent <= bytes.len());
                    let _ = is_left_out(frames);
                    match ZmqMessage::open(frames) {
                        Ok(message) => assert!(message.envelope.len() < bytes.len()),
                        Err(error) => radixscope_fuzz::check_error(&error),
                    }
                }
                Err(error) => return radixscope_fuzz::check_error(&error),
            }
        }
    }
});
