//! `session_affinity_events` in both formats: what is read is bounded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::session_affinity::SessionAffinity;
use radixscope_model::record::MAX_SESSION_BYTES;

fuzz_target!(|body: &[u8]| {
    for format in radixscope_fuzz::FORMATS {
        match SessionAffinity::decode(body, format) {
            Ok(affinity) => assert!((1..=MAX_SESSION_BYTES).contains(&affinity.session_id.len())),
            Err(error) => radixscope_fuzz::check_error(&error),
        }
    }
});
