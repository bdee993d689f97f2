//! `kv_metrics` in both formats, and whose word it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::load::ActiveLoad;

fuzz_target!(|body: &[u8]| {
    for format in radixscope_fuzz::FORMATS {
        match ActiveLoad::decode(body, format) {
            Ok(load) => {
                for publisher in [None, Some(load.worker.id.0), Some(1)] {
                    let _ = load.origin(publisher);
                }
            }
            Err(error) => radixscope_fuzz::check_error(&error),
        }
    }
});
