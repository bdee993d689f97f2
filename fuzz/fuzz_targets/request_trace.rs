//! Records of finished requests.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::trace::decode;

fuzz_target!(|body: &[u8]| {
    match decode(body) {
        Ok(Some(trace)) => {
            assert!(trace.ttft_ms.is_none_or(f64::is_finite));
            assert!(trace.input_sequence_hashes.is_none_or(|hashes| hashes.len() <= body.len() / 2));
        }
        Ok(None) => {}
        Err(error) => radixscope_fuzz::check_error(&error),
    }
});
