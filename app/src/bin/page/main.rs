//! The page.
#![forbid(unsafe_code)]

#[cfg(target_arch = "wasm32")]
mod chunks;

#[cfg(target_arch = "wasm32")]
fn main() {
    radixscope_app::start(chunks::CHUNKS);
}

/// On the host there is nothing to do: the page lives in a browser.
#[cfg(not(target_arch = "wasm32"))]
fn main() {}
