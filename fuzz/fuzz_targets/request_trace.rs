//! Records of finished requests, and of choices with what each candidate cost.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::trace::{TraceRecord, decode};

fuzz_target!(|body: &[u8]| {
    match decode(body) {
        Ok(Some(TraceRecord::Ended(trace))) => {
            assert!(trace.ttft_ms.is_none_or(f64::is_finite));
            assert!(trace.input_sequence_hashes.is_none_or(|hashes| hashes.len() <= body.len() / 2));
        }
        Ok(Some(TraceRecord::Selected(selection))) => {
            assert!(selection.candidates.iter().all(|(_, cost)| cost.is_finite()));
            assert!(selection.candidates.len() <= body.len() / 6);
        }
        Ok(None) => {}
        Err(error) => radixscope_fuzz::check_error(&error),
    }
});
