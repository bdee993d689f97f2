//! `active_sequences_events` in both formats, single and batched.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::active_sequence::decode;

fuzz_target!(|body: &[u8]| {
    for format in radixscope_fuzz::FORMATS {
        if let Err(faults) = decode(body, format, &mut Vec::new()) {
            radixscope_fuzz::check_faults(&faults);
        }
    }
});
