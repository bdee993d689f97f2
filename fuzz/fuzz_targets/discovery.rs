//! Values of discovery.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::discovery::ModelCard;

fuzz_target!(|value: &[u8]| {
    if let Err(error) = ModelCard::decode(value) {
        radixscope_fuzz::check_error(&error);
    }
});
