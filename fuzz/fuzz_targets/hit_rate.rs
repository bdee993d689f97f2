//! `kv-hit-rate` in both formats.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::hit_rate::HitRate;

fuzz_target!(|body: &[u8]| {
    for format in radixscope_fuzz::FORMATS {
        if let Err(error) = HitRate::decode(body, format) {
            radixscope_fuzz::check_error(&error);
        }
    }
});
