//! Entries of discovery: a key, a line feed, a value; and the custom resources of Kubernetes that hold such.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::discovery::pieces::{Array, Limits, Splitter};
use radixscope_dynamo::discovery::{ModelCard, decode, kubernetes};

fuzz_target!(|entry: &[u8]| {
    if let Err(error) = ModelCard::decode(entry) {
        radixscope_fuzz::check_error(&error);
    }
    if let Some(Err(error)) = std::str::from_utf8(entry).ok().map(kubernetes::worker_metadata) {
        radixscope_fuzz::check_error(&error);
    }
    let array = Array { field: "\"items\"", depth: 1 };
    let mut splitter = Splitter::new(Some(array), Limits { text_bytes: 16, piece_bytes: 64 });
    let mut rest = entry;
    while splitter.read(&mut rest).is_some() {}
    splitter.unfinished();
    splitter.finish();
    let end = entry.iter().position(|&byte| byte == b'\n').unwrap_or(0);
    let (key, value) = entry.split_at(end);
    // Also values whose keys the fuzzer did not find.
    for key in [
        &*String::from_utf8_lossy(key),
        "v1/event_channels/a/b/c/1",
        "v1/event_sources/namespace/a/topic/t/1",
    ] {
        if let Err(error) = decode(key, value.strip_prefix(b"\n").unwrap_or(value)) {
            radixscope_fuzz::check_error(&error);
        }
    }
});
