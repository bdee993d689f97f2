//! The parts that a connection to the port for answers begins with: sizes, and a header that names a subject, begins an
//! answer or ends it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::request_plane::{
    Control, MAX_HEADER_BYTES, PRELUDE_BYTES, PartSize, call_home, foreign_reply, refusal,
};
use radixscope_fuzz::check_error;

const MOST: usize = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let Some((prelude, rest)) = bytes.split_first_chunk::<PRELUDE_BYTES>() else { return };
    match PartSize::read(prelude, MOST) {
        Ok(size) => assert!(
            size.header <= MAX_HEADER_BYTES && size.data <= MOST && (size.header == 0 || size.data == 0)
        ),
        Err(error) => check_error(&error),
    }
    if let Err(error) = call_home(rest) {
        check_error(&error);
    }
    match Control::decode(rest) {
        Ok(Control::Prologue { error: Some(why) }) => assert!(why.chars().count() <= 300),
        Ok(_) => {}
        Err(error) => check_error(&error),
    }
    if let Some(text) = refusal(rest) {
        assert!(text.chars().count() <= 300 && !text.contains(char::is_control));
    }
    assert!(foreign_reply(rest).len() < 100, "nothing of the reply");
});
