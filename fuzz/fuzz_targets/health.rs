//! A frontend's list of workers.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::health::{MAX_INSTANCES, decode};

fuzz_target!(|body: &[u8]| match decode(body) {
    Ok(health) => assert!(health.is_none_or(|health| health.workers.len() <= MAX_INSTANCES)),
    Err(error) => radixscope_fuzz::check_error(&error),
});
