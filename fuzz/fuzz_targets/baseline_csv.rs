//! Baselines that a reader drops on the page: what is read can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_insight::baseline::{export, import};

fuzz_target!(|text: &str| {
    if let Ok(read) = import(text, "") {
        assert_eq!(import(&export(&read.baselines), "").map(|again| again.baselines), Ok(read.baselines));
    }
});
