//! Where a page of the tree ended, as it comes back in an address.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_export::tree::Cursor;

fuzz_target!(|text: &str| {
    if let Ok(cursor) = text.parse::<Cursor>() {
        assert_eq!(cursor.to_string().parse::<Cursor>(), Ok(cursor), "what is written can be read");
    }
});
