//! The envelope, and whatever it carries.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::envelope::open;

fuzz_target!(|bytes: &[u8]| {
    match open(bytes) {
        Ok(body) => {
            let (payload, format) = body.payload();
            assert!(payload.len() <= bytes.len());
            radixscope_fuzz::check_kv_events(payload, format);
        }
        Err(error) => radixscope_fuzz::check_error(&error),
    }
});
