//! The bundle with every panel, loaded when one is opened that the first bundle has not.

#[cfg(target_arch = "wasm32")]
fn main() {
    radixscope_app::start::<radixscope_app::bundle::Full>();
}

/// On the host there is nothing to do: the page lives in a browser.
#[cfg(not(target_arch = "wasm32"))]
fn main() {}
