//! `kv-events` as Json.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::envelope::Format;

fuzz_target!(|body: &[u8]| radixscope_fuzz::check_kv_events(body, Format::Json));
