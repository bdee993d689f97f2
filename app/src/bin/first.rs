//! The bundle that every viewer loads: the overview and the panels it is made of.

#[cfg(target_arch = "wasm32")]
fn main() {
    radixscope_app::start::<radixscope_app::bundle::First>();
}

/// On the host there is nothing to do: the page lives in a browser.
#[cfg(not(target_arch = "wasm32"))]
fn main() {}
