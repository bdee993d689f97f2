//! A file that claims to be a recording: it opens or says why not, and every state that it gives is whole.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use radixscope_recording::{Channel, Recording, RecordingError, SeekTo, Series};

fuzz_target!(|input: &[u8]| {
    // By a walk, and by what its end claims to be an index.
    check(Recording::open(Cursor::new(input)), input);
    check(Recording::open_by_index(Cursor::new(input)), input);
});

fn check(opened: Result<Recording<Cursor<&[u8]>>, RecordingError>, input: &[u8]) {
    let Ok(mut recording) = opened else { return };
    assert!(recording.lost_bytes() <= input.len() as u64);
    let mut messages = recording.messages(None, &Channel::ALL);
    while let Some(message) = messages.next() {
        if let Ok(message) = message {
            assert!(message.data.len() as u64 <= radixscope_recording::MAX_CHUNK_BYTES);
        }
    }
    let Some((from, to)) = recording.range() else { return };
    for moment in [SeekTo::At(from), SeekTo::At(to)] {
        if let Ok(folded) = recording.state_at(moment) {
            assert!(folded.at_ms <= to);
        }
    }
    if let Ok(mut series) = Series::of(vec![recording]) {
        let _ = series.play(&mut |_| {});
    }
}
