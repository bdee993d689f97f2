//! What a load generator measured of a request.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::client_result::decode;
use radixscope_model::record::MAX_CLIENT_ID_BYTES;

fuzz_target!(|line: &[u8]| {
    match decode(line) {
        Ok(record) => assert!(record.x_request_id.is_none_or(|id| id.len() <= MAX_CLIENT_ID_BYTES)),
        Err(error) => radixscope_fuzz::check_error(&error),
    }
});
