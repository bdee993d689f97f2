//! The Web Worker: jobs that would hold up the page.
#![forbid(unsafe_code)]

#[cfg(target_arch = "wasm32")]
fn main() {
    radixscope_app::worker::serve::start();
}

/// On the host there is nothing to do: the worker lives in a browser.
#[cfg(not(target_arch = "wasm32"))]
fn main() {}
