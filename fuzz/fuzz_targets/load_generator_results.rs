//! Results of load generators that a reader drops on the page or names in `--baseline`: what is read can be written as CSV and
//! read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_insight::baseline::{Results, Router, export, import};

fuzz_target!(|text: &str| {
    let mut results = Results::default();
    if results.add(text).is_ok() {
        let read = results.finish("x", Router::Other).baselines;
        assert_eq!(import(&export(&read), "").map(|again| again.baselines), Ok(read));
    }
});
