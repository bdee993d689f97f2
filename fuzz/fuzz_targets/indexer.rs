//! What a standalone KV indexer answers: its list of workers, and its dump.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::indexer::{MAX_WORKERS, decode};

fuzz_target!(|body: &[u8]| {
    for (workers, dump, loads) in [(body, &b"{}"[..], None), (b"[]", body, None), (b"[]", b"{}", Some(body))] {
        match decode(workers, dump, loads) {
            Ok(index) => {
                assert!(index.listeners.len() <= MAX_WORKERS && index.loads.len() <= MAX_WORKERS);
                let names = index.blocks.values();
                assert!(names.flat_map(|names| names.windows(2)).all(|pair| pair[0] < pair[1]), "sorted, each once");
            }
            Err(error) => radixscope_fuzz::check_error(&error),
        }
    }
});
