//! The page's entry. On the host it has nothing to do: the page lives in a browser.

#[cfg(target_arch = "wasm32")]
fn main() {
    radixscope_app::start();
}

#[cfg(not(target_arch = "wasm32"))]
fn main() {}
