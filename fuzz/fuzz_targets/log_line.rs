//! Lines of Dynamo's log, text and JSONL.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::log_line::{Said, decode, may_matter};

fuzz_target!(|line: &[u8]| {
    match decode(line) {
        Ok(None) => {}
        Ok(Some(said)) => {
            assert!(may_matter(line), "a line that no search finds says something");
            match &said.said {
                Said::Formula(formula) => {
                    assert!(formula.logit.value.is_finite() && formula.logit.reads_as(formula.logit.value));
                    let _ = (formula.adds_up(), formula.recomputed());
                }
                Said::RoutingInput(input) => assert!(input.local_hashes.len() <= line.len() / 2),
                _ => {}
            }
            assert_eq!(said.clone().into_owned(), said);
        }
        Err(error) => radixscope_fuzz::check_error(&error),
    }
});
