//! The Web Worker that plays a recording in the place of a server.
#![forbid(unsafe_code)]

#[cfg(target_arch = "wasm32")]
fn main() {
    radixscope_app::player::serve::start();
}

/// On the host there is nothing to do: the worker lives in a browser.
#[cfg(not(target_arch = "wasm32"))]
fn main() {}
