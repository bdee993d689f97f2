//! What a standalone KV indexer answers: its list of workers, and its dump.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::indexer::{MAX_WORKERS, decode};

fuzz_target!(|body: &[u8]| {
    for (workers, dump) in [(body, &b"{}"[..]), (b"[]", body)] {
        match decode(workers, dump) {
            Ok(index) => {
                assert!(index.listeners.len() <= MAX_WORKERS);
                let names = index.blocks.values();
                assert!(names.flat_map(|names| names.windows(2)).all(|pair| pair[0] < pair[1]), "sorted, each once");
            }
            Err(error) => radixscope_fuzz::check_error(&error),
        }
    }
});
