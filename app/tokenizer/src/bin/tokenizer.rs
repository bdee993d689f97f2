//! The Web Worker that turns a text into token ids.
#![forbid(unsafe_code)]

#[cfg(target_arch = "wasm32")]
fn main() {
    radixscope_tokenizer::serve::start();
}

/// On the host there is nothing to do: the worker lives in a browser.
#[cfg(not(target_arch = "wasm32"))]
fn main() {}
