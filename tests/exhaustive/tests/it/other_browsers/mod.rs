//! What every browser must show: in Chromium beside the other tests, in Firefox and in WebKit by `cargo xtask test browsers`.

mod layout;
mod views;
