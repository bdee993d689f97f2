//! The stream that answers a request of `radixscope stage`, and the body of one that failed. Whatever pieces it arrives in, it says the same.
#![no_main]

use std::sync::LazyLock;

use axum::body::Bytes;
use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::chat_chunk;
use radixscope_server::stage::load::read;
use tokio::runtime::{Builder, Runtime};

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_all().build().expect("a runtime"));

fuzz_target!(|data: &[u8]| {
    let [piece_bytes, body @ ..] = data else { return };
    if let Err(error) = chat_chunk::decode(body) {
        radixscope_fuzz::check_error(&error);
    }
    let _ = chat_chunk::decode_error(body);
    let whole = RUNTIME.block_on(read(vec![Bytes::copy_from_slice(body)], 8));
    let piece_bytes = usize::from(*piece_bytes).max(1);
    let pieces = body.chunks(piece_bytes).map(Bytes::copy_from_slice).collect();
    let in_pieces = RUNTIME.block_on(read(pieces, 8));
    match &whole {
        Ok((text, _)) => assert!(text.len() <= body.len()),
        Err(words) => assert!(words.chars().count() <= 200),
    }
    assert_eq!(whole.ok(), in_pieces.ok());
});
