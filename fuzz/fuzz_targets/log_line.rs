//! Lines of Dynamo's log, text and JSONL.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::log_line::{LogEvent, decode, may_matter};

fuzz_target!(|line: &[u8]| {
    match decode(line) {
        Ok(None) => {}
        Ok(Some(record)) => {
            assert!(may_matter(line), "a line that no search finds says something");
            match &record.event {
                LogEvent::Formula(formula) => {
                    assert!(formula.logit.value.is_finite() && formula.logit.reads_as(formula.logit.value));
                    let _ = (formula.adds_up(), formula.recomputed());
                }
                LogEvent::RoutingInput(input) => assert!(input.local_hashes.len() <= line.len() / 2),
                _ => {}
            }
            assert_eq!(record.clone().into_owned(), record);
        }
        Err(error) => radixscope_fuzz::check_error(&error),
    }
});
