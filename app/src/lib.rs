//! The page: a viewer that runs the same fold as the server and draws what it knows.
//!
//! ```text
//! net     the link: frames in, reconnecting           store   the state, the signals that say it changed
//! view    one file a panel, reads the store           draw    pixels, colours, canvas, chart
//! worker  long jobs beside the page, without Leptos   url     the address of a view
//! keys    the keyboard         theme  dark or light   format  numbers as text
//! json    to and from the API  number text as numbers   time_range  the time that charts show
//! ```
//! What needs no browser (`draw::raster`, `format`, `url` …) compiles and is tested on the host.
#![forbid(unsafe_code)]

pub mod draw;
pub mod format;
pub mod json;
pub mod net;
pub mod paste;
pub mod shown;
pub mod time_range;
pub mod url;
pub mod worker;

#[cfg(target_arch = "wasm32")]
pub mod keys;
#[cfg(target_arch = "wasm32")]
pub mod number;
#[cfg(target_arch = "wasm32")]
pub mod store;
#[cfg(target_arch = "wasm32")]
pub mod theme;
#[cfg(target_arch = "wasm32")]
#[expect(unreachable_pub, reason = "what the component macro writes is public whatever the component is")]
pub mod view;

/// Puts the page into the document.
#[cfg(target_arch = "wasm32")]
pub fn start() {
    console_error_panic_hook::set_once();
    leptos::mount::mount_to_body(view::App);
}
