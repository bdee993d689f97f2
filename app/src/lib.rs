//! The page: a viewer that runs the same fold as the server and draws what it knows.
//!
//! ```text
//! net     the link: frames in, reconnecting           store   the state, the signals that say it changed
//! view    one file a panel, reads the store           draw    pixels, colours, canvas, chart
//! worker  long jobs beside the page, without Leptos   url     the address of a view
//! keys    the keyboard         theme  dark or light   format  numbers as text
//! past    any moment of what the server keeps   timeline  the rows of it
//! player  a recording in the server's place, in a Web Worker
//! json    to and from the API  number text as numbers
//! asset   addresses of the page's files
//! memo    computed values      signal  values that are set  effect  what is done when they change
//! ```
//! What needs no browser (`draw::raster`, `format`, `url` …) compiles and is tested on the host.
#![forbid(unsafe_code)]

pub mod draw;
pub mod format;
pub mod json;
pub mod net;
pub mod past;
pub mod paste;
pub mod player;
pub mod timeline;
pub mod url;
pub mod worker;

pub use radixscope_insight::{time_range, view_context};

#[cfg(target_arch = "wasm32")]
mod asset;
#[cfg(target_arch = "wasm32")]
pub mod effect;
#[cfg(target_arch = "wasm32")]
pub mod keys;
#[cfg(any(target_arch = "wasm32", test))]
pub mod memo;
#[cfg(target_arch = "wasm32")]
pub mod number;
#[cfg(any(target_arch = "wasm32", test))]
pub mod reactive;
#[cfg(any(target_arch = "wasm32", test))]
pub mod signal;
#[cfg(target_arch = "wasm32")]
pub mod store;
#[cfg(target_arch = "wasm32")]
pub mod theme;
#[cfg(target_arch = "wasm32")]
#[expect(unreachable_pub, reason = "what the component macro writes is public whatever the component is")]
#[expect(
    clippy::redundant_closure,
    reason = "a view erases what is written as a function in it, and nothing else"
)]
pub mod view;

/// Puts the page into the document.
#[cfg(target_arch = "wasm32")]
pub fn start() {
    console_error_panic_hook::set_once();
    leptos::mount::mount_to_body(view::App);
}
